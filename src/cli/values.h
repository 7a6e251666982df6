/* values.h - what the words of options mean: times, pairs, ports, settings.
 *
 * Each returns false with ERR_USAGE and E8002 in words that name the option.
 * Memory: in the arena.
 */
#ifndef ABX_VALUES_H
#define ABX_VALUES_H

#include "abx.h"
#include "cli/args.h"

/* "90", "30s", "5m", "1h30m", or "none", which is -1. Zero is refused. */
ABX_FN bool values_duration(const char *what, const char *text, int64_t *ms, Err *err) ABX_CHECK;

/* The same in whole seconds, a part of one counting as one. */
ABX_FN bool values_seconds(const char *what, const char *text, int64_t *s, Err *err) ABX_CHECK;

/* A number from `low` to `high`. */
ABX_FN bool values_number(const char *what, const char *text, int64_t low, int64_t high, int64_t *out, Err *err)
    ABX_CHECK;

typedef struct ValuesPairs { const abx_pair *p; size_t n; } ValuesPairs;

/* The option's KEY=VALUE, each. */
ABX_FN bool values_pairs(const Args *args, const char *option, Arena *a, ValuesPairs *out, Err *err) ABX_CHECK;

/* --env-file and --env, which wins: NAME=VALUE, or NAME, whose value is taken
 * from abx's own environment and so never stands in a list of processes. Not
 * set there: refused. A file has one to a line, taken as it is but for white
 * space in front and a CR at the end; empty lines and lines with # are passed
 * over. Messages name file and line. ERR_CANCELLED: a signal came. */
ABX_FN bool values_env(const Args *args, int cancel_fd, Arena *a, ValuesPairs *out, Err *err) ABX_CHECK;

typedef struct ValuesSettings {
    const abx_pair    *p;
    size_t             n;
    const char *const *exposed;     /* the keys whose values stood on the command line */
    size_t             exposed_count;
} ValuesSettings;

/* --option: KEY=VALUE, KEY=@FILE, KEY=- for standard input, once. What is
 * called a key, a token, a secret or a password must come in one of the latter
 * ways. ERR_CANCELLED: a signal came while it was read. */
ABX_FN bool values_settings(const Args *args, int cancel_fd, Arena *a, ValuesSettings *out, Err *err) ABX_CHECK;

/* A value that is "-" for standard input, "@FILE", or the word itself, which
 * others can read: *exposed. `what` is for messages. */
ABX_FN bool values_given(const char *what, const char *word, int cancel_fd, Arena *a, const char **out, bool *exposed,
                         Err *err) ABX_CHECK;

/* One of the settings is read from standard input. */
ABX_FN bool values_take_input(const Args *args, Arena *a);

#endif
