/* dotenv.h - reads a .env file as python-dotenv 1.2.4 does, so that every host
 * finds the same values in it.
 *
 * Lines are KEY=value, with an optional `export`, blanks around the `=`, and
 * `# comments`. A value is bare (to the end of the line), or in single or
 * double quotes, over several lines if need be. A line that cannot be read is
 * passed over. A KEY without `=` is known and has no value. Of a key given
 * twice the last line counts.
 *
 * ${NAME} and ${NAME:-default} in a value, quoted or not, become what NAME is
 * in the lines before, else in the process environment, which the caller looks
 * up: this file reads nothing by itself.
 *
 *     Dotenv d;
 *     if (!dotenv_parse(text, env, &a, &d, err)) ...
 *     Str v = dotenv_get(&d, STR("ABX_PROVIDER"))->value;
 *
 * Memory: all in the arena, at most 50 times the text and LIMIT_DOTENV_VALUES;
 * `text` may go afterwards. The time is O(n log n), whatever the text is.
 */
#ifndef ABX_DOTENV_H
#define ABX_DOTENV_H

#include "base/arena.h"
#include "base/err.h"

/* The process environment: value of a name, p NULL when it has none. */
typedef struct DotenvLookup {
    Str  (*get)(void *ctx, Str name);
    void  *ctx;
} DotenvLookup;

typedef struct DotenvEntry {
    Str  key;
    Str  value;     /* p NULL: a key without `=`. Not trimmed */
    bool outside;   /* a part of the value came from the process environment */
} DotenvEntry;

typedef struct Dotenv {
    const DotenvEntry *v;       /* sorted by key, each once */
    size_t             n;
} Dotenv;

/* False: ERR_INPUT when the text is not UTF-8, ERR_LIMIT when it is longer than
 * LIMIT_DOTENV or its values than LIMIT_DOTENV_VALUES (E8002). */
ABX_FN bool dotenv_parse(Str text, DotenvLookup env, Arena *a, Dotenv *out, Err *err) ABX_CHECK;

ABX_FN const DotenvEntry *dotenv_get(const Dotenv *d, Str key);     /* NULL: not there */

/* ---- editing ---- */

/* The lines of one binding: bytes [from, to) of the text, from the start of a
 * line to behind the line end that closes it, or to the end of the text. */
typedef struct DotenvSpan { Str key; size_t from, to; } DotenvSpan;

/* All bindings, in their order; those without `=` too. Keys are in the arena.
 * False: as dotenv_parse(). */
ABX_FN bool dotenv_spans(Str text, Arena *a, const DotenvSpan **out, size_t *n, Err *err) ABX_CHECK;

/* A value as it is written behind `KEY=`, in one line, so that python-dotenv
 * 1.2.4 and dotenv_parse() read back exactly this text (which both of them
 * leave as it is; that hosts trim values is another matter): bare where no
 * character means anything, else in single quotes, or in double ones where
 * escapes are needed. `${` becomes `${:-$}{`, which no variable can change. The
 * value is UTF-8 without NUL. */
ABX_FN Str dotenv_quote(Str value, Arena *a);

#endif
