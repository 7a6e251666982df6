/* environ.h - what a command is started with: its environment and its program. */
#ifndef ABX_ENVIRON_H
#define ABX_ENVIRON_H

#include "base/arena.h"
#include "data/json.h"

typedef struct EnvironList { const char **v; size_t n; } EnvironList;

/* This process's environment: a list for execve, v, with room for more. One
 * that is larger than LIMIT_AGENT_ENV is cut. */
ABX_FN EnvironList environ_own(Arena *a);

/* "name=value" over an older one of that name. False: too many. */
ABX_FN bool environ_put(EnvironList *l, Arena *a, Str name, Str value) ABX_CHECK;

/* The daemon's environment, over it the lines of the file that EXECD_ENVS
 * names, over those the object `more` (may be NULL): a list for execve. NULL,
 * with *fault: a name or a value that no environment can hold, or too many. */
ABX_FN const char *const *environ_make(const Json *more, Arena *a, const char **fault);

/* `name` as execve wants it: itself when it has a slash, else where PATH (of
 * `env`) has an executable file of that name; NULL: nowhere. */
ABX_FN const char *environ_find(const char *const *env, const char *name, Arena *a);

#endif
