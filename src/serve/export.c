#include "serve/export.h"

#include "base/limits.h"
#include "base/str.h"
#include "data/json.h"
#include "os/random.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* From the outer error back to the inner one. */
static bool export__failed(const abx_error *e, Err *err)
{
    Str      digits = str_from(e->code);
    int      number = 0;

    for (size_t i = 1; i < digits.n; i++)
        number = number * 10 + (digits.p[i] - '0');
    err_set(err, e->kind == ABX_NOT_FOUND ? ERR_NOT_FOUND : ERR_USAGE, (Code)number, "%s", e->message);
    return e->suggestion[0] ? err_hint(err, "%s", e->suggestion) : false;
}

/* What the program itself says of the provider: no file and no store is asked. */
static const abx_details *export__details(abx_host **h, const char *id, Err *err)
{
    abx_options        o = {.config_only = 1};
    ABX_UNSET abx_error e;
    const abx_details *d = NULL;

    *h = abx_host_open(&o, &e);
    if (*h)
        d = abx_provider_details(*h, id, &e);
    if (!d)
        export__failed(&e, err);
    /* What has no operations for a command line has no backend here. */
    else if (strcmp(d->kind, "builtin") != 0 || d->cli.n == 0) {
        err_set(err, ERR_USAGE, E8004, "this abx has no backend for provider %s", id);
        d = NULL;
    }
    return d;
}

bool export_known(const char *id, Err *err)
{
    abx_host *h;
    bool      ok = export__details(&h, id, err) != NULL;

    abx_host_close(h);
    return ok;
}

/* ---- the manifest ---- */

/* Strings and lists of strings are spelled in TOML as JSON spells them. */
static void export__string(Buf *to, const char *key, const char *value)
{
    JsonOut w = json_out(to, JSON_SPACED);

    if (!value || !value[0])
        return;
    buf_addf(to, "%s = ", key);
    json_put_str(&w, str_from(value));
    buf_addc(to, '\n');
}

static void export__list(Buf *to, const char *key, abx_strings list)
{
    JsonOut w = json_out(to, JSON_SPACED);

    buf_addf(to, "%s = ", key);
    json_begin(&w, '[');
    for (size_t i = 0; i < list.n; i++)
        json_put_str(&w, str_from(list.v[i]));
    json_end(&w, ']');
    buf_addc(to, '\n');
}

static void export__field(Buf *to, const abx_field *f)
{
    buf_addf(to, "\n[config.fields.%s]\n", f->key);
    export__string(to, "type", strcmp(f->type, "str") == 0 ? "string" : f->type);
    if (f->required)
        buf_add(to, STR("required = true\n"));
    if (f->secret)
        buf_add(to, STR("secret = true\n"));
    if (f->credential || f->secret)
        buf_add(to, STR("credential = true\n"));
    if (strcmp(f->fallback, "null") != 0)
        buf_addf(to, "default = %s\n", f->fallback);    /* a string, number or boolean of JSON */
    export__string(to, "description", f->description);
    export__string(to, "description_zh", f->description_zh);
    if (f->aliases.n)
        export__list(to, "env", f->aliases);
    if (f->choices.n)
        export__list(to, "choices", f->choices);
}

void export_manifest(const abx_details *d, Buf *to)
{
    const char *command[] = {"./abx", "provider", "serve", d->id};
    static const char *const passed[] = {"SSL_CERT_FILE", "SSL_CERT_DIR"};
    static const char *const network[] = {"the server that is configured", "the sandboxes it names"};

    buf_add(to, STR("manifest_version = 1\noperation_contract_version = 1\n\n[provider]\n"));
    export__string(to, "id", d->id);
    export__string(to, "version", d->version);
    export__string(to, "name", d->name);
    export__string(to, "name_zh", d->name_zh);
    export__string(to, "license", "Apache-2.0");
    export__string(to, "description", "The provider that is compiled into abx, as one static program.");

    /* A sandbox may have to wait for its image; what hangs, abx ends long before. */
    buf_add(to, STR("\n[runtime]\nkind = \"exec\"\n"));
    export__list(to, "command", (abx_strings){command, COUNT_OF(command)});
    buf_addf(to, "startup_timeout_ms = 10000\ncall_timeout_ms = %d\nplatforms = [\"linux-x86_64\"]\n", LIMIT_CREATE_MS);
    buf_add(to, STR("\n[compat]\nprotocol = \"epp/1\"\n\n[features]\n"));
    export__list(to, "supported", d->features);
    buf_add(to, STR("\n[operations]\n"));
    export__list(to, "cli", d->cli);
    export__list(to, "python", d->cli);
    buf_add(to, STR("\n[workflow]\n"));
    export__list(to, "inputs", d->inputs);
    export__list(to, "startups", d->startups);
    buf_add(to, STR("\n[security]\n"));
    export__list(to, "network", (abx_strings){network, COUNT_OF(network)});
    buf_add(to, STR("filesystem = []\n"));
    export__list(to, "env_passthrough", (abx_strings){passed, COUNT_OF(passed)});
    buf_add(to, STR("spawns_processes = true\n"));
    for (size_t i = 0; i < d->field_count; i++)
        export__field(to, &d->fields[i]);
}

/* ---- the folder ---- */

static bool export__bytes(int fd, Str bytes, const char *name, Err *err)
{
    while (bytes.n) {
        ssize_t n = write(fd, bytes.p, bytes.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, errno, E8010, "cannot write %s", name);
        str_skip(&bytes, (size_t)n);
    }
    return true;
}

static bool export__copy(int from, int to, const char *name, Err *err)
{
    ABX_UNSET char block[LIMIT_COPY_BLOCK];
    int64_t all = 0;

    for (;;) {
        ssize_t n = read(from, block, sizeof block);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, errno, E8010, "cannot read this program");
        if (n == 0)
            return true;
        all += n;
        if (all > LIMIT_SERVE_EXPORT)
            return err_set(err, ERR_LIMIT, E8010,
                           "this build of abx is larger than the %d bytes that a file of a plugin may have",
                           LIMIT_SERVE_EXPORT);
        if (!export__bytes(to, (Str){block, (size_t)n}, name, err))
            return false;
    }
}

/* A file in the folder; `content` or, when that is empty, a copy of `program`. */
static bool export__file(int folder, const char *name, int mode, Str content, const char *program, Err *err)
{
    int  fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (mode_t)mode);
    int  from = program ? open(program, O_RDONLY | O_CLOEXEC) : -1;
    bool ok = true;

    if (fd < 0)
        ok = err_sys(err, errno, E8010, "cannot write %s", name);
    else if (program && from < 0)
        ok = err_sys(err, errno, E8010, "cannot read this program");
    ok = ok && (program ? export__copy(from, fd, name, err) : export__bytes(fd, content, name, err));
    if (ok && (fchmod(fd, (mode_t)mode) != 0 || fsync(fd) != 0))
        ok = err_sys(err, errno, E8010, "cannot write %s", name);
    if (from >= 0)
        close(from);
    if (fd >= 0 && close(fd) != 0 && ok)
        ok = err_sys(err, errno, E8010, "cannot write %s", name);
    return ok;
}

static void export__discard(const char *temp)
{
    int folder = open(temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (folder >= 0) {
        unlinkat(folder, "abx", 0);
        unlinkat(folder, "abx-provider.toml", 0);
        close(folder);
    }
    rmdir(temp);
}

/* rename(2) puts a folder onto an empty one, and onto no other. */
static bool export__place(const char *temp, const char *dir, Err *err)
{
    if (rename(temp, dir) == 0)
        return true;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return err_set(err, ERR_USAGE, E8010, "%s is there and not empty", dir) ||
               err_hint(err, "Name a new folder.");
    if (errno == ENOTDIR)
        return err_set(err, ERR_USAGE, E8010, "%s is there and no folder", dir);
    return err_sys(err, errno, E8010, "cannot make %s", dir);
}

bool export_write(const char *id, const char *dir, const char *program, char version[32], Err *err)
{
    Arena              a = arena_make(ARENA_COMMAND);
    abx_host          *h;
    const abx_details *d = export__details(&h, id, err);
    Buf                manifest = buf_make(LIMIT_SETTING);
    Str                name = str_from(dir);
    ABX_UNSET char random[17];
    bool               ok = d != NULL;

    while (name.n > 1 && name.p[name.n - 1] == '/')
        name.n--;
    random_hex(random, 16);
    const char *target = arena_cstr(&a, name), *temp = arena_fmt(&a, "%s.abx-%s", target, random).p;
    if (ok && !name.n)
        ok = err_set(err, ERR_USAGE, E8002, "the folder's name is empty");
    if (ok && mkdir(temp, 0700) != 0) {
        ok = err_sys(err, errno, E8010, "cannot make a folder beside %s", target);
    } else if (ok) {
        int folder = open(temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        export_manifest(d, &manifest);
        snprintf(version, 32, "%s", d->version);
        ok = folder >= 0 || err_sys(err, errno, E8010, "cannot open %s", temp);
        ok = ok && export__file(folder, "abx-provider.toml", 0644, buf_str(&manifest), NULL, err) &&
             export__file(folder, "abx", 0755, (Str){0}, program, err);
        if (ok && (fchmod(folder, 0755) != 0 || fsync(folder) != 0))
            ok = err_sys(err, errno, E8010, "cannot write %s", temp);
        if (folder >= 0)
            close(folder);
        ok = ok && export__place(temp, target, err);
        if (!ok)
            export__discard(temp);
    }
    buf_free(&manifest);
    abx_host_close(h);
    arena_free(&a);
    return ok;
}
