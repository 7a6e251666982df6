/* settings.h - changing config.toml and HOME/.env, and nothing else in them
 * (specification, 6.7 to 6.9; rows 9 and 10 of docs/differences.md).
 *
 * The edits are pure functions of texts, and each file is replaced as a whole,
 * mode 0600, so that nobody sees half of one.
 *
 * Memory: new texts in the arena.
 */
#ifndef ABX_SETTINGS_H
#define ABX_SETTINGS_H

#include "host/config.h"

/* The default provider; an empty id (or the built-in's) takes the key out. `text`
 * p NULL: there is no file; *out p NULL: there is none afterwards either. */
ABX_FN bool settings_default(Str text, Str id, Arena *a, Str *out, Err *err) ABX_CHECK;

/* Everything of one provider; `others` are ids whose settings stay. */
ABX_FN bool settings_purge_toml(Str text, Str id, Arena *a, Str *out, Err *err) ABX_CHECK;
ABX_FN Str  settings_purge_env(Str text, Str id, const Str *others, size_t n, Arena *a);

/* The same on the files in HOME. *was_default: `id` was the default in config.toml. */
ABX_FN bool settings_set_default(Str home, Str id, Err *err) ABX_CHECK;
ABX_FN bool settings_is_default(Str home, Str id);
ABX_FN bool settings_purge(Str home, Str id, const Str *others, size_t n, Err *err) ABX_CHECK;

/* One key: `table` as "transport" or "providers.demo"; a secret goes to .env
 * under `variable`. value p NULL: take it out. */
ABX_FN bool settings_put_toml(Str home, Str table, Str key, FieldType type, Str value, Err *err) ABX_CHECK;
ABX_FN bool settings_put_env(Str home, Str variable, Str value, Err *err) ABX_CHECK;

#endif
