#include "agent/environ.h"

#include "base/limits.h"
#include "base/str.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool environ__same_name(const char *entry, Str name)
{
    return strncmp(entry, name.p, name.n) == 0 && entry[name.n] == '=';
}

EnvironList environ_own(Arena *a)
{
    EnvironList l = {.v = arena_array(a, LIMIT_AGENT_ENV + 1, sizeof *l.v)};

    for (char **e = environ; *e && l.n < LIMIT_AGENT_ENV; e++)
        l.v[l.n++] = *e;
    return l;
}

bool environ_put(EnvironList *l, Arena *a, Str name, Str value)
{
    const char *entry = arena_fmt(a, "%.*s=%.*s", (int)name.n, name.p, (int)value.n, value.p ? value.p : "").p;

    for (size_t i = 0; i < l->n; i++)
        if (environ__same_name(l->v[i], name)) {
            l->v[i] = entry;
            return true;
        }
    if (l->n == LIMIT_AGENT_ENV)
        return false;
    l->v[l->n++] = entry;
    return true;
}

static bool environ__name_ok(Str name)
{
    return name.n && !str_has(name, '=') && !str_has(name, '\0');
}

/* NAME=VALUE in each line; blank lines, lines with # and others are passed over. */
static bool environ__file(EnvironList *l, Arena *a, const char *path)
{
    int   fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *text;
    Str   rest = {0}, line;

    if (fd < 0)
        return true;
    text = arena_alloc(a, LIMIT_DOTENV + 1);
    ssize_t n;
    while (rest.n <= LIMIT_DOTENV && (n = read(fd, text + rest.n, LIMIT_DOTENV + 1 - rest.n)) > 0)
        rest.n += (size_t)n;
    close(fd);
    rest.p = text;
    bool fits = rest.n <= LIMIT_DOTENV;         /* half of a value is none */
    while (fits && rest.n && str_cut(&rest, '\n', &line)) {
        line = str_trim(line);
        size_t eq = str_find(line, '=');
        Str    name = {line.p, eq};
        if (eq == line.n || line.p[0] == '#' || !environ__name_ok(name) || str_has(line, '\0'))
            continue;
        str_skip(&line, eq + 1);
        fits = environ_put(l, a, name, line);
    }
    return fits;
}

const char *const *environ_make(const Json *more, Arena *a, const char **fault)
{
    EnvironList l = environ_own(a);
    const char *file = getenv("EXECD_ENVS");
    bool        fits = l.n == 0 || environ[l.n] == NULL;

    if (fits && file)
        fits = environ__file(&l, a, file);
    for (size_t i = 0; i < json_count(more) && fits; i++) {
        const Json *v = &more->items[i];
        if (v->type == JSON_NULL)
            continue;
        if (v->type != JSON_STRING || !environ__name_ok(more->keys[i]) || str_has(json_str(v), '\0')) {
            *fault = "envs must be an object of names and texts";
            return NULL;
        }
        fits = environ_put(&l, a, more->keys[i], json_str(v));
    }
    if (!fits) {
        *fault = "too many environment variables, or a file of them that is too long";
        return NULL;
    }
    return l.v;
}

static bool environ__runs(const char *path)
{
    ABX_UNSET struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

const char *environ_find(const char *const *env, const char *name, Arena *a)
{
    Str path = STR("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), dir;

    if (strchr(name, '/'))
        return name;
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            path = str_from(*env + 5);
    while (str_cut(&path, ':', &dir)) {
        Arena       one = *a;
        const char *file = arena_fmt(&one, "%.*s/%s", (int)dir.n, dir.p, name).p;
        if (dir.n && environ__runs(file)) {
            *a = one;
            return file;
        }
    }
    return NULL;
}
