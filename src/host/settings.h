/* settings.h - changing config.toml and HOME/.env, and nothing else in them
 * (specification, 6.7 to 6.9; rows 9 and 10 of docs/differences.md).
 *
 * The edits are pure functions of texts, and each file is replaced as a whole,
 * mode 0600, so that nobody sees half of one; a link stays a link. Who changes
 * settings at the same time waits, up to LIMIT_SETTINGS_MS; other hosts do not
 * know of that. A file that cannot be understood is left as it is: E8002.
 *
 * Memory: new texts in the arena.
 */
#ifndef ABX_SETTINGS_H
#define ABX_SETTINGS_H

#include "host/config.h"

/* The default provider; an empty id (or the built-in's) takes the key out. `text`
 * p NULL: there is no file; *out p NULL: there is none afterwards either. */
ABX_FN bool settings_default(Str text, Str id, Arena *a, Str *out, Err *err) ABX_CHECK;

/* Everything of one provider; `others` are ids whose variables stay, as those
 * of the core keys do. */
ABX_FN bool settings_purge_toml(Str text, Str id, Arena *a, Str *out, Err *err) ABX_CHECK;
ABX_FN bool settings_purge_env(Str text, Str id, const Str *others, size_t n, Arena *a, Str *out, Err *err) ABX_CHECK;

/* One variable of a .env; value p NULL: take it out, *there says whether it was
 * there. False: E8002, no host would read back the value. */
ABX_FN bool settings_env(Str text, Str variable, Str value, Arena *a, Str *out, bool *there, Err *err) ABX_CHECK;

/* The same on the files in HOME. settings_is_default(): `id` is the default in
 * config.toml. */
ABX_FN bool settings_set_default(Str home, Str id, Err *err) ABX_CHECK;
ABX_FN bool settings_is_default(Str home, Str id);
ABX_FN bool settings_purge(Str home, Str id, const Str *others, size_t n, Err *err) ABX_CHECK;

/* One key of config.toml: `table` as "transport" or "providers.demo"; and one
 * variable of .env. value p NULL: take it out; *there, which may be NULL, says
 * whether it was there. */
ABX_FN bool settings_put_toml(Str home, Str table, Str key, FieldType type, Str value, bool *there, Err *err) ABX_CHECK;
ABX_FN bool settings_put_env(Str home, Str variable, Str value, bool *there, Err *err) ABX_CHECK;

#endif
