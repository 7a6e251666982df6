#include "abx.h"

#include "api/consent.h"
#include "api/error.h"
#include "api/health.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "host/install.h"
#include "host/settings.h"
#include "os/env.h"

/* ---- what the installer needs of us ---- */

typedef struct InstallingWork {
    abx_host    *h;
    Store        store;
    Consent      consent;
    InstallHost  host;
} InstallingWork;

/* 3.7: missing credentials may come later, the rest must hold. */
static bool installing__verify(void *ctx, Str id, Err *err)
{
    InstallingWork *w = ctx;
    DoctorReport report;
    Arena        a = arena_make(ARENA_COMMAND);
    bool         ok = health_doctor(w->h, &w->store, id, true, &a, &report, err);

    for (size_t i = 0; ok && i < report.n; i++) {
        const DoctorCheck *c = &report.v[i];
        if (c->ok || strcmp(c->name, "config") == 0)
            continue;
        ok = err_set(err, ERR_REMOTE, E8010, "verification failed: %s: %.*s", c->name, STR_ARG(c->detail));
        if (c->hint.n)
            err_hint(err, "%.*s", STR_ARG(c->hint));
    }
    mem_wipe(a.p, a.used);
    arena_free(&a);
    return ok;
}

static bool installing__work(abx_host *h, abx_consent *ask, void *ctx, bool verify, InstallingWork *w, Err *err)
{
    plugins_begin(h);
    *w = (InstallingWork){.h = h, .consent = {ask, ctx}};
    if (!plugins_store(h, &w->store, err))
        return false;
    w->host = (InstallHost){
        .source = {
            .cancel_fd = h->options.cancel_fd_set ? h->options.cancel_fd : -1,
            .ca_file = str_from(h->options.ca_file), .registry = str_trim(env_get("ABX_PROVIDER_REGISTRY")),
            .environ = env_all(), .notice = session_notice, .notice_ctx = &h->notice,
            .trace = h->options.trace, .trace_ctx = h->options.trace_ctx,
        },
        .consent = ask ? consent_ask : NULL, .consent_ctx = &w->consent,
        .verify = verify ? installing__verify : NULL, .verify_ctx = w,
    };
    return true;
}

/* ---- installing ---- */

static const abx_installed *installing__installed(abx_host *h, const InstallingWork *w, Installed *in)
{
    Arena         *a = &h->result;
    abx_installed *out = arena_alloc(a, sizeof *out);
    Receipt        r;

    *out = (abx_installed){.id = arena_cstr(a, in->id), .version = arena_cstr(a, in->version), .trust = "",
                           .receipt = arena_cstr(a, buf_str(&in->receipt))};
    if (store_receipt(&w->store, in->id, a, &r))
        out->trust = arena_cstr(a, r.trust);
    buf_free(&in->receipt);
    return out;
}

const abx_installed *abx_install(abx_host *h, const abx_install_options *o, abx_error *e)
{
    InstallingWork w;
    Installed   in = {0};
    ABX_UNSET Err err;
    bool        ok = installing__work(h, o->consent, o->consent_ctx, !o->no_verify, &w, &err);

    if (ok) {
        InstallAsk ask = {
            .source = {.source = str_from(o->source), .ref = str_from(o->ref), .subdir = str_from(o->subdir),
                       .archive_sha256 = str_from(o->archive_sha256),
                       .allow_insecure = o->allow_insecure_transport != 0, .allow_unverified = o->allow_unverified != 0},
            .sha256 = str_from(o->sha256), .link = o->link != 0, .force = o->force != 0, .yes = o->yes != 0,
            .allow_unpinned = o->allow_unpinned != 0,
        };
        ok = install_add(&w.store, &ask, &w.host, &h->result, &in, &err);
    }
    if (ok)
        return installing__installed(h, &w, &in);
    error_give(e, &err);
    return NULL;
}

const abx_installed *abx_rollback(abx_host *h, const char *id, int no_verify, abx_error *e)
{
    InstallingWork w;
    Installed   in = {0};
    ABX_UNSET Err err;

    if (installing__work(h, NULL, NULL, !no_verify, &w, &err) &&
        install_rollback(&w.store, str_from(id), &w.host, &h->result, &in, &err))
        return installing__installed(h, &w, &in);
    error_give(e, &err);
    return NULL;
}

/* ---- updating ---- */

static const char *installing__maybe(Str s, Arena *a)
{
    return s.p ? arena_cstr(a, s) : NULL;
}

static abx_updated installing__updated(const Updated *u, Arena *a)
{
    abx_updated out = {
        .id = arena_cstr(a, u->id), .status = arena_cstr(a, u->status), .installed = arena_cstr(a, u->installed),
        .available = installing__maybe(u->available, a), .changes = plugins_strings(u->changes, u->change_count, a),
        .message = installing__maybe(u->message, a),
    };

    if (u->receipt) {
        Buf     b = buf_make(LIMIT_ANSWER);
        JsonOut w = json_out(&b, JSON_PRETTY);
        json_put(&w, u->receipt);
        out.receipt = arena_cstr(a, buf_str(&b));
        buf_free(&b);
    }
    return out;
}

const abx_updated *abx_update(abx_host *h, const char *id, const abx_update_options *o, size_t *n, abx_error *e)
{
    InstallingWork w;
    ABX_UNSET Err err;
    Str         one = str_from(id);
    const Str  *ids = &one;
    size_t      count = 1;
    bool        ok = installing__work(h, o->consent, o->consent_ctx, !o->no_verify, &w, &err) &&
                     (id || store_ids(&w.store, &ids, &count, &err));
    UpdateAsk   ask = {
        .ref = str_from(o->ref), .check = o->check != 0, .yes = o->yes != 0, .allow_unpinned = o->allow_unpinned != 0,
        .allow_insecure = o->allow_insecure_transport != 0, .allow_unverified = o->allow_unverified != 0,
    };
    abx_updated *out = arena_array(&h->result, count, sizeof *out);

    for (size_t i = 0; ok && i < count; i++) {
        Updated u = {0};
        ok = install_update(&w.store, ids[i], &ask, &w.host, &h->result, &u, &err);
        if (ok)
            out[i] = installing__updated(&u, &h->result);
        else if (!id)
            err_wrap(&err, "%.*s", STR_ARG(ids[i]));
    }
    if (ok) {
        *n = count;
        return out;
    }
    error_give(e, &err);
    return NULL;
}

/* ---- uninstalling ---- */

static bool installing__remove(abx_host *h, Str id, bool purge, bool *was_default, Err *err)
{
    InstallingWork w;
    const Str  *ids;
    size_t      n;

    if (!installing__work(h, NULL, NULL, false, &w, err))
        return false;
    /* Nothing else counts here: not the environment, not a .env file. */
    *was_default = manifest_is_id(id) && settings_is_default(w.store.home, id);
    if (!install_remove(&w.store, id, purge, w.host.source.cancel_fd, err))
        return false;
    /* The plugin is gone: whichever of the two fails, the other is done. */
    bool ok = !*was_default || settings_set_default(w.store.home, (Str){0}, err) ||
              err_wrap(err, "`%.*s` is removed, but it is still the default", STR_ARG(id));
    if (purge && !(store_ids(&w.store, &ids, &n, err) && settings_purge(w.store.home, id, ids, n, err))) {
        ok = err_wrap(err, "`%.*s` is removed, but not all of its settings", STR_ARG(id));
        err_hint(err, "What is left is in %s/.env and %s/config.toml.", w.store.home.p, w.store.home.p);
    }
    return ok;
}

const abx_uninstalled *abx_uninstall(abx_host *h, const char *id, int purge, abx_error *e)
{
    bool was_default = false;
    ABX_UNSET Err err;

    if (!installing__remove(h, str_from(id), purge != 0, &was_default, &err)) {
        error_give(e, &err);
        return NULL;
    }
    abx_uninstalled *out = arena_alloc(&h->result, sizeof *out);
    *out = (abx_uninstalled){arena_cstr(&h->result, str_from(id)), purge != 0, was_default};
    return out;
}
