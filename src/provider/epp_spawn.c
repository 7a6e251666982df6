#include "provider/epp_spawn.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/str.h"

/* The system's own list, for a plugin without PATH. */
#define EPP_SPAWN_PATH "/bin:/usr/bin"

/* ---- words ---- */

/* Where a path leads: links are followed as far as it exists; what is behind
 * that cannot lead anywhere else, as long as it does not go up. */
static bool epp_spawn__real(const char *path, char out[static PATH_MAX])
{
    ABX_UNSET char part[PATH_MAX];
    size_t n = strlen(path), end = n;

    if (n >= sizeof part)
        return false;
    memcpy(part, path, n + 1);
    while (!realpath(part, out)) {
        if ((errno != ENOENT && errno != ENOTDIR) || end == 0)
            return false;
        do
            end--;
        while (end > 0 && path[end] != '/');
        part[end] = '\0';
    }
    size_t have = strlen(out), rest = n - end;
    if (strstr(path + end, "/../") || str_ends(str_from(path + end), STR("/..")) || have + rest >= PATH_MAX)
        return false;
    memcpy(out + have, path + end, rest + 1);
    return true;
}

static bool epp_spawn__word(const EppSpec *spec, const char *root, Str word, Arena *a, const char **out, Err *err)
{
    ABX_UNSET char real[PATH_MAX];
    bool        back = str_starts(word, STR(".\\"));
    size_t      n = strlen(root);

    *out = arena_cstr(a, word);
    if (!back && !str_starts(word, STR("./")))
        return true;
    char *path = (char *)arena_fmt(a, "%s/%s", root, *out + 2).p;
    for (char *p = path + n; back && *p; p++)
        if (*p == '\\')
            *p = '/';
    if (!epp_spawn__real(path, real) || strncmp(real, root, n) != 0 || (real[n] != '/' && real[n] != '\0'))
        return err_set(err, ERR_INPUT, E8014, "provider %.*s: \"%.*s\" of its command is no file of the plugin",
                       STR_ARG(spec->id), STR_ARG(word));
    *out = arena_cstr(a, str_from(real));
    return true;
}

/* ---- environment ---- */

static bool epp_spawn__passes(const EppSpec *spec, Str name)
{
    static const char *const names[] = {
        "PATH", "HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "LANG", "SYSTEMROOT", "COMSPEC", "ComSpec",
    };

    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (str_eq(name, str_from(names[i])))
            return true;
    for (size_t i = 0; i < spec->env_passthrough.n; i++)
        if (str_eq(name, spec->env_passthrough.v[i]))
            return true;
    return str_starts(name, STR("LC_"));
}

static const char *const *epp_spawn__environ(const EppSpec *spec, Arena *a, const char **search)
{
    size_t n = 0, kept = 0;

    while (spec->environ && spec->environ[n])
        n++;
    const char **v = arena_array(a, n + 3, sizeof *v);
    for (size_t i = 0; i < n; i++) {
        Str rest = str_from(spec->environ[i]), name;
        if (!str_has(rest, '=') || !str_cut(&rest, '=', &name) || !epp_spawn__passes(spec, name))
            continue;
        if (str_eq(name, STR("PATH")))
            *search = spec->environ[i] + sizeof "PATH";
        v[kept++] = spec->environ[i];
    }
    v[kept++] = arena_fmt(a, "ABX_PROVIDER_DATA_DIR=%s", spec->data_dir).p;
    v[kept] = "PYTHONDONTWRITEBYTECODE=1";
    return v;
}

bool epp_spawn_spec(const EppSpec *spec, Arena *a, ProcSpec *out, Err *err)
{
    ABX_UNSET char root[PATH_MAX];
    const char **argv = arena_array(a, spec->command.n + 1, sizeof *argv);

    if (!realpath(spec->files, root))
        return err_sys(err, errno, E8021, "%s", spec->files);
    for (size_t i = 0; i < spec->command.n; i++)
        if (!epp_spawn__word(spec, root, spec->command.v[i], a, &argv[i], err))
            return false;
    *out = (ProcSpec){.argv = argv, .file = argv[0], .cwd = spec->data_dir, .search = EPP_SPAWN_PATH};
    out->env = epp_spawn__environ(spec, a, &out->search);
    return true;
}
