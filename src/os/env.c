#include "os/env.h"

#include "base/str.h"
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

Str env_get(const char *name)
{
    return str_from(getenv(name));
}

const char *const *env_all(void)
{
    return (const char *const *)environ;
}

/* For a user without HOME, such as a service's. */
static Str env__passwd_home(Arena *a)
{
    enum { SIZE = 16384 };
    struct passwd entry, *found = NULL;
    char *room = arena_alloc(a, SIZE);

    if (getpwuid_r(getuid(), &entry, room, SIZE, &found) != 0 || !found)
        return (Str){0};
    return str_from(found->pw_dir);
}

Str env_home(Arena *a)
{
    Str home = env_get("HOME");

    return home.n ? arena_str(a, home) : env__passwd_home(a);
}

Str env_abx_home(Arena *a)
{
    Str home = env_get("ABX_HOME");

    if (home.n)
        return arena_str(a, home);
    home = env_home(a);
    return home.n ? arena_fmt(a, "%s/.abx", home.p) : (Str){0};
}
