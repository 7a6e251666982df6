/* query.h - the parts of a request's target (RFC 3986, 3.3 and 3.4), and the
 * paths that clients name. */
#ifndef ABX_QUERY_H
#define ABX_QUERY_H

#include "base/arena.h"

ABX_FN Str query_path(Str target);      /* up to the '?' */
ABX_FN Str query_text(Str target);      /* behind it, p NULL when there is none */

/* %XX undone, and '+' is a blank where `form` says so. False: a bad %XX. */
ABX_FN bool query_decode(Str in, bool form, Arena *a, Str *out) ABX_CHECK;

/* The next name=value of a query; a pair with a bad %XX is passed over. Each
 * takes more of the arena than of the query: reset it between them. */
ABX_FN bool query_next(Str *rest, Arena *a, Str *name, Str *value);

/* The first value of that name; false: there is none, *value is untouched. */
ABX_FN bool query_get(Str target, const char *name, Arena *a, Str *value);

/* A path as the system calls want it: `~` and `~/...` begin at HOME, nothing
 * else is expanded. NULL: it is empty, or holds a NUL. */
ABX_FN const char *query_file(Str path, Arena *a);

/* "/a/b/" and "b" are named b; "/" is "/". */
ABX_FN Str query_base(const char *path);

#endif
