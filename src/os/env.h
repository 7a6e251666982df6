/* env.h - the process environment, and the folders it names. */
#ifndef ABX_ENV_H
#define ABX_ENV_H

#include "base/arena.h"

ABX_FN Str env_get(const char *name);              /* p NULL when it is not there */
ABX_FN const char *const *env_all(void);            /* "NAME=value", NULL behind the last */

/* The user's home folder: HOME, else what the system has for the user. p NULL
 * when there is none. */
ABX_FN Str env_home(Arena *a);

/* The folder for configuration and providers: ABX_HOME, else .abx in the
 * user's home folder. p NULL when there is none. */
ABX_FN Str env_abx_home(Arena *a);

#endif
