#include "api/health.h"

#include "api/error.h"
#include "base/limits.h"
#include "base/str.h"

/* ---- doctor ---- */

bool health_doctor(abx_host *h, const Store *s, Str id, bool handshake, Arena *a, DoctorReport *out, Err *err)
{
    Config *c = session_config(&h->options, &h->notice, a, err);

    if (!c)
        return false;
    ProviderHost host = {
        .cancel_fd = h->options.cancel_fd_set ? h->options.cancel_fd : -1, .notice = session_notice,
        .notice_ctx = &h->notice, .trace = h->options.trace, .trace_ctx = h->options.trace_ctx,
        .ca_file = str_from(h->options.ca_file),
    };
    doctor_run(s, c, id, handshake, &host, a, out);
    return true;
}

static abx_check health__check(const DoctorCheck *c, Arena *a)
{
    const char *standing = c->ok ? "" : code_hint(c->code);

    return (abx_check){.name = c->name, .ok = c->ok, .detail = arena_cstr(a, c->detail),
                       .suggestion = c->hint.n ? arena_cstr(a, c->hint) : standing};
}

const abx_report *abx_doctor(abx_host *h, const char *id, int handshake, abx_error *e)
{
    Arena       *a = plugins_begin(h);
    Store        store;
    Str          which;
    DoctorReport r;
    ABX_UNSET Err err;

    if (!plugins_store(h, &store, &err) || !plugins_id(h, id, &which, &err) ||
        !health_doctor(h, &store, which, handshake != 0, a, &r, &err)) {
        error_give(e, &err);
        return NULL;
    }
    abx_check  *checks = arena_array(a, r.n, sizeof *checks);
    abx_report *out = arena_alloc(a, sizeof *out);
    for (size_t i = 0; i < r.n; i++)
        checks[i] = health__check(&r.v[i], a);
    *out = (abx_report){.id = arena_cstr(a, which), .ok = r.ok, .checks = checks, .count = r.n};
    return out;
}

/* ---- verify ---- */

/* The paths that differ in this way. */
static abx_strings health__paths(const StoreVerdict *v, ListingDiffers how, Arena *a)
{
    const char **out = arena_array(a, v->n, sizeof *out);
    size_t       n = 0;

    for (size_t i = 0; i < v->n; i++)
        if (v->v[i].how == how)
            out[n++] = arena_cstr(a, v->v[i].path);
    return (abx_strings){out, n};
}

static bool health__verify(abx_host *h, Str id, abx_verified *out, Err *err)
{
    Arena       *a = plugins_begin(h);
    Store        s;
    Receipt      r;
    StoreVerdict v = {0};
    ABX_UNSET Err why;

    if (!plugins_installed(h, id, &s, &r))
        return err_set(err, ERR_NOT_FOUND, E8001, "provider \"%.*s\" is not installed", STR_ARG(id));
    *out = (abx_verified){.id = arena_cstr(a, id), .trust = arena_cstr(a, r.trust), .detail = "",
                          .tree_sha256 = arena_cstr(a, r.tree_sha256)};
    if (!store_verify(&s, id, a, &v, &why)) {
        if (why.code != E8011) {
            *err = why;
            return false;
        }
        out->detail = arena_cstr(a, str_from(why.text));
        return true;
    }
    out->ok = v.link || v.same;
    out->named = !v.link && (v.same || v.listed);
    out->detail = v.link ? "a link: nothing is recorded of its files, and they run as they are"
                : v.same ? "" : "the files are not those that were installed";
    out->changed = health__paths(&v, LISTING_CHANGED, a);
    out->added = health__paths(&v, LISTING_ADDED, a);
    out->missing = health__paths(&v, LISTING_MISSING, a);
    return true;
}

const abx_verified *abx_verify(abx_host *h, const char *id, abx_error *e)
{
    abx_verified found;
    ABX_UNSET Err err;

    if (!health__verify(h, str_from(id), &found, &err)) {
        error_give(e, &err);
        return NULL;
    }
    abx_verified *out = arena_alloc(&h->result, sizeof *out);
    *out = found;
    return out;
}
