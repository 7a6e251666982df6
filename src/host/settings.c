#include "host/settings.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/dotenv.h"
#include "host/edit.h"
#include "host/keys.h"
#include "os/clock.h"
#include "os/fs.h"
#include "os/poll.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

/* ---- texts ---- */

static Str settings__add(Str text, Str more, Arena *a)
{
    char *p = arena_alloc(a, text.n + more.n + 1);

    if (text.n)
        memcpy(p, text.p, text.n);
    if (more.n)
        memcpy(p + text.n, more.p, more.n);
    return (Str){p, text.n + more.n};
}

/* The other hosts end what they write with a line feed, an empty file too. */
static Str settings__ended(Str text, Arena *a)
{
    return str_ends(text, STR("\n")) ? text : settings__add(text, STR("\n"), a);
}

static EditPath settings__path(Str table, Str key)
{
    EditPath path = {.n = 0};
    Str      part;

    while (path.n < 2 && str_cut(&table, '.', &part))
        path.part[path.n++] = part;
    if (key.n)
        path.part[path.n++] = key;
    return path;
}

bool settings_default(Str text, Str id, Arena *a, Str *out, Err *err)
{
    EditPath path = settings__path(STR("core"), STR("provider"));

    if (id.n == 0 || str_eq(id, str_from(keys_core(0)->fallback))) {
        *out = (Str){0};
        if (!text.p)
            return true;
        if (!edit_cut(text, &path, a, out, err))
            return false;
    } else if (!edit_put(text, &path, edit_literal(FIELD_STR, id, a), EDIT_AS_HOSTS, a, out, err)) {
        return false;
    }
    *out = settings__ended(*out, a);
    return true;
}

bool settings_purge_toml(Str text, Str id, Arena *a, Str *out, Err *err)
{
    EditPath path = settings__path(STR("providers"), id);

    *out = (Str){0};
    if (!text.p)
        return true;
    if (!edit_cut(text, &path, a, out, err))
        return false;
    *out = settings__ended(*out, a);
    return true;
}

/* text without those of the lines that go. */
static Str settings__without(Str text, const DotenvSpan *spans, const bool *goes, size_t n, Arena *a)
{
    char  *p = arena_alloc(a, text.n + 1);
    size_t used = 0, at = 0;

    for (size_t i = 0; i <= n; i++) {
        size_t to = i == n ? text.n : spans[i].from;
        if (i < n && !goes[i])
            continue;
        memcpy(p + used, text.p + at, to - at);
        used += to - at;
        at = i == n ? to : spans[i].to;
    }
    return (Str){p, used};
}

static bool settings__core_variable(Str name)
{
    const ConfigField *f;

    for (size_t i = 0; (f = keys_core(i)) != NULL; i++)
        for (size_t k = 0; f->env && f->env[k]; k++)
            if (str_eq(str_from(f->env[k]), name))
                return true;
    return false;
}

/* The variable is this provider's, and not that of another whose id goes on
 * where this one ends. */
static bool settings__owns(Str variable, Str id, const Str *others, size_t n, Arena scratch)
{
    Str own = config_variable(id, STR(""), &scratch);

    if (!str_starts(variable, own) || settings__core_variable(variable))
        return false;
    for (size_t i = 0; i < n; i++) {
        Str other = config_variable(others[i], STR(""), &scratch);
        if (other.n > own.n && str_starts(variable, other))
            return false;
    }
    return true;
}

bool settings_purge_env(Str text, Str id, const Str *others, size_t n, Arena *a, Str *out, Err *err)
{
    const DotenvSpan *spans;
    size_t            count;

    *out = (Str){0};
    if (!text.p)
        return true;
    if (!dotenv_spans(text, a, &spans, &count, err))
        return false;
    bool *goes = arena_alloc(a, count + 1);
    for (size_t i = 0; i < count; i++)
        goes[i] = settings__owns(spans[i].key, id, others, n, *a);
    *out = settings__without(text, spans, goes, count, a);
    if (out->n)
        *out = settings__ended(*out, a);
    return true;
}

/* What every host trims away, or cannot hold. */
static bool settings__can_hold(Str variable, Str value, Err *err)
{
    const char *what = value.n == 0 ? "nothing" : str_has(value, '\0') || !utf8_valid(value) ? "what is no text" :
                       utf8_trim(value).n != value.n ? "blanks at its ends" : NULL;

    return !what || err_set(err, ERR_USAGE, E8002, "%.*s: a .env cannot hold %s", STR_ARG(variable), what);
}

static Str settings__no_variable(void *ctx, Str name)
{
    (void)ctx;
    (void)name;
    return (Str){0};
}

/* The bindings of other variables are the same ones in both. */
static bool settings__same_others(Str variable, const DotenvSpan *x, size_t nx, const DotenvSpan *y, size_t ny)
{
    size_t i = 0, k = 0;

    for (;;) {
        while (i < nx && str_eq(x[i].key, variable))
            i++;
        while (k < ny && str_eq(y[k].key, variable))
            k++;
        if (i == nx || k == ny)
            return i == nx && k == ny;
        if (!str_eq(x[i++].key, y[k++].key))
            return false;
    }
}

/* A quote that somebody left open would find its end in a line of ours, and take
 * with it what lies between. */
static bool settings__reads_back(Str text, Str variable, Str value, const DotenvSpan *before, size_t n, Arena scratch,
                                 Err *err)
{
    const DotenvSpan *after;
    size_t            count;
    Dotenv            d;

    if (!dotenv_spans(text, &scratch, &after, &count, err) ||
        !dotenv_parse(text, (DotenvLookup){settings__no_variable, NULL}, &scratch, &d, err))
        return false;
    const DotenvEntry *e = dotenv_get(&d, variable);
    if (settings__same_others(variable, before, n, after, count) && (value.p ? e && str_eq(e->value, value) : !e))
        return true;
    return err_set(err, ERR_INPUT, E8002, "a quote is left open in it, so that nothing can be changed");
}

bool settings_env(Str text, Str variable, Str value, Arena *a, Str *out, bool *there, Err *err)
{
    const DotenvSpan *spans;
    size_t            count, last = SIZE_MAX;

    *there = false;
    *out = text;
    if (!text.p && !value.p)
        return true;
    if ((value.p && !settings__can_hold(variable, value, err)) || !dotenv_spans(text, a, &spans, &count, err))
        return false;
    bool *goes = arena_alloc(a, count + 1);
    for (size_t i = 0; i < count; i++) {
        goes[i] = str_eq(spans[i].key, variable);
        last = goes[i] ? i : last;
    }
    *there = last != SIZE_MAX;
    if (!value.p) {
        *out = settings__without(text, spans, goes, count, a);
        return settings__reads_back(*out, variable, value, spans, count, *a, err);
    }
    Str line = settings__add(settings__add(variable, STR("="), a), dotenv_quote(value, a), a);
    line = settings__add(line, STR("\n"), a);
    if (last == SIZE_MAX) {
        *out = settings__add(text.n ? settings__ended(text, a) : text, line, a);
    } else {    /* in place of the last one, which is the one that counts */
        Str head = settings__without(str_from_to(text, 0, spans[last].from), spans, goes, last, a);
        *out = settings__add(settings__add(head, line, a), str_from_to(text, spans[last].to, text.n), a);
    }
    return settings__reads_back(*out, variable, value, spans, count, *a, err);
}

/* ---- files ---- */

/* A lock on the folder itself, which ends with the process that holds it. */
static bool settings__lock(Str home, int *fd, Err *err)
{
    Deadline until = clock_after(LIMIT_SETTINGS_MS);
    Arena    a = arena_make(1 << 20);
    char    *path = arena_cstr(&a, home);
    bool     ok = home.n ? fs_make_dir(path, err) : err_set(err, ERR_USAGE, E8002, "there is no home folder to keep settings in");

    *fd = ok ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (ok && *fd < 0)
        ok = err_sys(err, errno, E0000, "cannot open %s", path);
    while (ok && flock(*fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            break;                  /* a file system without locks: as the other hosts do it */
        if (clock_passed(until))
            ok = err_set(err, ERR_TIMEOUT, E8010, "another program is changing the settings in %s", path);
        else
            ok = poll_sleep(20, -1, err);
    }
    if (!ok && *fd >= 0)
        close(*fd);
    arena_free(&a);
    return ok;
}

typedef bool SettingsChange(void *ctx, Str text, Arena *a, Str *out, Err *err);

static bool settings__write(const char *path, Str text, Err *err)
{
    FsTemp t;

    if (!fs_temp_open(path, 0600, &t, err))
        return false;
    if (fs_temp_write(&t, text, err))
        return fs_temp_commit(&t, true, err);
    fs_temp_abort(&t);
    return false;
}

static bool settings__replace(const char *path, SettingsChange *change, void *ctx, Arena *a, Err *err)
{
    Buf  now = buf_make(LIMIT_CONFIG);
    Str  text = {0}, next = {0};
    bool there = fs_read(path, &now, err), ok = there || err->kind == ERR_NOT_FOUND;

    if (there)
        text = (Str){now.p ? now.p : "", now.n};
    ok = ok && (change(ctx, text, a, &next, err) || err_wrap(err, "%s", path));
    ok = ok && (!next.p || settings__write(path, next, err));
    mem_wipe(now.p, now.n);
    buf_free(&now);
    return ok;
}

/* The file `name` in home. */
static bool settings__change(Str home, const char *name, SettingsChange *change, void *ctx, Err *err)
{
    Arena a;
    int   fd;

    if (!settings__lock(home, &fd, err))
        return false;
    a = arena_make(ARENA_COMMAND);
    bool ok = settings__replace(arena_fmt(&a, "%.*s/%s", STR_ARG(home), name).p, change, ctx, &a, err);
    close(fd);
    mem_wipe(a.p, a.used);
    arena_free(&a);
    return ok;
}

static bool settings__change_default(void *ctx, Str text, Arena *a, Str *out, Err *err)
{
    return settings_default(text, *(const Str *)ctx, a, out, err);
}

bool settings_set_default(Str home, Str id, Err *err)
{
    return settings__change(home, "config.toml", settings__change_default, &id, err);
}

typedef struct SettingsPurge { Str id; const Str *others; size_t n; } SettingsPurge;

static bool settings__change_toml(void *ctx, Str text, Arena *a, Str *out, Err *err)
{
    return settings_purge_toml(text, ((const SettingsPurge *)ctx)->id, a, out, err);
}

static bool settings__change_env(void *ctx, Str text, Arena *a, Str *out, Err *err)
{
    const SettingsPurge *p = ctx;

    return settings_purge_env(text, p->id, p->others, p->n, a, out, err);
}

bool settings_purge(Str home, Str id, const Str *others, size_t n, Err *err)
{
    SettingsPurge p = {id, others, n};

    return settings__change(home, ".env", settings__change_env, &p, err) &&
           settings__change(home, "config.toml", settings__change_toml, &p, err);
}

typedef struct SettingsPut {
    EditPath  path;
    FieldType type;
    Str       variable, value;
    bool      there;
} SettingsPut;

static bool settings__put_toml(void *ctx, Str text, Arena *a, Str *out, Err *err)
{
    SettingsPut *p = ctx;

    if (p->value.p) {
        if (!utf8_valid(p->value))
            return err_set(err, ERR_USAGE, E8002, "the value is no text");
        return edit_put(text, &p->path, edit_literal(p->type, p->value, a), EDIT_BESIDE, a, out, err);
    }
    *out = text;
    if (!text.p || !edit_cut(text, &p->path, a, out, err))
        return !text.p;
    p->there = !str_eq(text, *out);
    return true;
}

bool settings_put_toml(Str home, Str table, Str key, FieldType type, Str value, bool *there, Err *err)
{
    SettingsPut p = {.path = settings__path(table, key), .type = type, .value = value};
    bool        ok = settings__change(home, "config.toml", settings__put_toml, &p, err);

    if (there)
        *there = p.there;
    return ok;
}

static bool settings__put_env(void *ctx, Str text, Arena *a, Str *out, Err *err)
{
    SettingsPut *p = ctx;

    return settings_env(text, p->variable, p->value, a, out, &p->there, err);
}

bool settings_put_env(Str home, Str variable, Str value, bool *there, Err *err)
{
    SettingsPut p = {.variable = variable, .value = value};
    bool        ok = settings__change(home, ".env", settings__put_env, &p, err);

    if (there)
        *there = p.there;
    return ok;
}

bool settings_is_default(Str home, Str id)
{
    Arena       a = arena_make(ARENA_COMMAND);
    Buf         now = buf_make(LIMIT_CONFIG);
    const Toml *doc;
    ABX_UNSET Err unheard;
    bool        is = fs_read(arena_fmt(&a, "%.*s/config.toml", STR_ARG(home)).p, &now, &unheard) &&
                     toml_parse(buf_str(&now), &a, &doc, &unheard) &&
                     str_eq(utf8_trim(toml_str(toml_get(toml_get(doc, "core"), "provider"))), id);

    buf_free(&now);
    arena_free(&a);
    return is;
}
