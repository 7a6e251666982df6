#include "abx.h"

#include "api/error.h"
#include "api/session.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "host/registry.h"

/* ---- handles ---- */

static abx_sandbox *sandbox__make(abx_session *s, Str id)
{
    abx_sandbox *b = mem_new(sizeof *b);

    b->session = s;
    b->result = arena_make(ARENA_COMMAND);
    b->id = mem_str(id);
    return b;
}

void abx_sandbox_free(abx_sandbox *b)
{
    if (!b)
        return;
    arena_free(&b->result);
    mem_free(b->id);
    mem_free(b);
}

const char *abx_sandbox_id(const abx_sandbox *b)
{
    return b->id;
}

const abx_info *abx_last_info(const abx_sandbox *b)
{
    return b->known ? &b->info : NULL;
}

/* Where an id is one part of a path on its way, whatever reads that path. */
static bool sandbox__is_name(Str id)
{
    enum { LONGEST = 255 };

    return id.n <= LONGEST && !str_has(id, '/') && !str_has(id, '\\') && !str_eq(id, STR(".")) && !str_eq(id, STR(".."));
}

static bool sandbox__id_ok(const ProviderKind *kind, Str id, Err *err)
{
    enum { LONGEST = 1024 };

    if (id.n == 0)
        return err_set(err, ERR_USAGE, E8002, "the sandbox's id is empty");
    if (id.n > LONGEST || str_has_control(id) || (!kind->any_id && !sandbox__is_name(id)))
        return err_set(err, ERR_USAGE, E8002, "\"%.*s\" cannot be the id of a sandbox", STR_ARG(id));
    return true;
}

abx_sandbox *abx_attach(abx_session *s, const char *ref, abx_error *e)
{
    Str id;
    ABX_UNSET Err err;

    if (!registry_ref(s->store, str_from(ref), str_from(s->id), &id, &err) || !sandbox__id_ok(s->provider->kind, id, &err)) {
        error_give(e, &err);
        return NULL;
    }
    return sandbox__make(s, id);
}

/* ---- infos ---- */

static const char *sandbox__text(Arena *a, Str s)
{
    return s.n ? arena_cstr(a, s) : NULL;
}

static abx_info sandbox__info(const SandboxInfo *in, const char *provider, Arena *a)
{
    abx_pair *pairs = arena_array(a, in->metadata_count, sizeof *pairs);

    for (size_t i = 0; i < in->metadata_count; i++)
        pairs[i] = (abx_pair){arena_cstr(a, in->metadata[i].key), arena_cstr(a, in->metadata[i].value)};
    return (abx_info){
        .sandbox_id = arena_cstr(a, in->id), .provider = provider, .template_name = sandbox__text(a, in->template),
        .status = sandbox__text(a, in->status), .reason = sandbox__text(a, in->reason), .metadata = pairs,
        .metadata_count = in->metadata_count, .started_at = sandbox__text(a, in->started_at),
        .end_at = sandbox__text(a, in->end_at), .timeout_s = in->timeout_s, .region = sandbox__text(a, in->region),
    };
}

/* What a call brought: the handle's info, or the error. */
static const abx_info *sandbox__learn(abx_sandbox *b, bool ok, const SandboxInfo *in, const Err *err, abx_error *e)
{
    if (!ok) {
        error_give(e, err);
        return NULL;
    }
    b->info = sandbox__info(in, b->session->id, &b->result);
    b->known = true;
    return &b->info;
}

/* ---- create ---- */

static bool sandbox__request(abx_session *s, const abx_create_options *o, Arena *a, CreateRequest *rq, Err *err)
{
    Str *words = arena_array(a, o->entrypoint_count, sizeof *words);

    for (size_t i = 0; i < o->entrypoint_count; i++)
        words[i] = str_from(o->entrypoint[i]);
    if (o->timeout_s < -1)
        return err_set(err, ERR_USAGE, E8002, "a timeout of %lld seconds makes no sense", (long long)o->timeout_s);
    *rq = (CreateRequest){
        .template = o->template_name && o->template_name[0] ? str_from(o->template_name) : s->default_template,
        .timeout_s = o->timeout_s == 0 ? SESSION_TIMEOUT_S : o->timeout_s < 0 ? 0 : o->timeout_s,
        .env_count = o->env_count, .metadata_count = o->metadata_count,
        .entrypoint = words, .entrypoint_count = o->entrypoint_count,
        .cpu = str_from(o->cpu), .memory = str_from(o->memory),
    };
    return session_pairs(o->env, o->env_count, "environment variable", a, &rq->env, err) &&
           session_pairs(o->metadata, o->metadata_count, "metadata", a, &rq->metadata, err);
}

abx_sandbox *abx_create(abx_session *s, const abx_create_options *o, abx_error *e)
{
    static const abx_create_options none = {0};
    Provider     *p = s->provider;
    Arena         a = arena_make(ARENA_COMMAND);
    CreateRequest rq;
    ABX_UNSET SandboxInfo info;
    abx_sandbox  *b = NULL;
    ABX_UNSET Err err;

    if (!sandbox__request(s, o ? o : &none, &a, &rq, &err) ||
        !p->kind->create(p, &rq, &a, &info, clock_after(LIMIT_CREATE_MS), &err)) {
        error_give(e, &err);
    } else {
        b = sandbox__make(s, info.id);
        sandbox__learn(b, true, &info, NULL, e);
    }
    arena_free(&a);
    return b;
}

/* ---- the daily verbs ---- */

const abx_info *abx_get_info(abx_sandbox *b, abx_error *e)
{
    Provider   *p = b->session->provider;
    ABX_UNSET SandboxInfo info;
    ABX_UNSET Err err;
    Arena      *a = session_result(b);
    bool        ok = p->kind->get(p, str_from(b->id), a, &info, DEADLINE_NONE, &err);

    return sandbox__learn(b, ok, &info, &err, e);
}

const abx_info *abx_pause(abx_sandbox *b, abx_error *e)
{
    Provider   *p = b->session->provider;
    ABX_UNSET SandboxInfo info;
    ABX_UNSET Err err;
    Arena      *a = session_result(b);
    bool        ok = p->kind->pause(p, str_from(b->id), a, &info, clock_after(LIMIT_SWITCH_MS), &err);

    return sandbox__learn(b, ok, &info, &err, e);
}

const abx_info *abx_resume(abx_sandbox *b, abx_error *e)
{
    Provider   *p = b->session->provider;
    ABX_UNSET SandboxInfo info;
    ABX_UNSET Err err;
    Arena      *a = session_result(b);
    bool        ok = p->kind->resume(p, str_from(b->id), a, &info, clock_after(LIMIT_SWITCH_MS), &err);

    return sandbox__learn(b, ok, &info, &err, e);
}

const abx_info *abx_set_timeout(abx_sandbox *b, int64_t seconds, abx_error *e)
{
    Provider   *p = b->session->provider;
    ABX_UNSET SandboxInfo info;
    ABX_UNSET Err err;
    Arena      *a = session_result(b);
    bool        ok;

    if (seconds <= 0)
        ok = err_set(&err, ERR_USAGE, E8002, "a sandbox can be given 1 second or more, not %lld", (long long)seconds);
    else
        ok = p->kind->set_timeout(p, str_from(b->id), seconds, a, &info, DEADLINE_NONE, &err);
    return sandbox__learn(b, ok, &info, &err, e);
}

int abx_kill(abx_sandbox *b, int *killed, abx_error *e)
{
    Provider *p = b->session->provider;
    bool      did = false;
    ABX_UNSET Err err;

    if (!b->gone && !p->kind->kill(p, str_from(b->id), &did, DEADLINE_NONE, &err))
        return error_give(e, &err);
    b->gone = true;
    if (killed)
        *killed = did;
    return 0;
}

const abx_url *abx_port_url(abx_sandbox *b, int port, abx_error *e)
{
    Provider *p = b->session->provider;
    PortUrl   at;
    ABX_UNSET Err err;
    Arena    *a = session_result(b);
    bool      ok = port >= 1 && port <= 65535;

    if (!ok)
        err_set(&err, ERR_USAGE, E8002, "a port is a number from 1 to 65535, not %d", port);
    if (!ok || !p->kind->port_url(p, str_from(b->id), port, a, &at, DEADLINE_NONE, &err)) {
        error_give(e, &err);
        return NULL;
    }
    abx_pair *pairs = arena_array(a, at.headers.n, sizeof *pairs);
    for (size_t i = 0; i < at.headers.n; i++)
        pairs[i] = (abx_pair){arena_cstr(a, at.headers.v[i].name), arena_cstr(a, at.headers.v[i].value)};
    b->url = (abx_url){.url = arena_cstr(a, at.url), .headers = pairs, .header_count = at.headers.n};
    return &b->url;
}

/* ---- list ---- */

int abx_list(abx_session *s, const abx_list_options *o, int (*each)(void *ctx, const abx_info *info), void *ctx,
             int *more, abx_error *e)
{
    static const abx_list_options none = {0};
    Provider   *p = s->provider;
    Arena       a = arena_make(ARENA_COMMAND), one = arena_make(ARENA_COMMAND);
    const Pair *metadata;
    ListPage    page = {.more = true};
    ABX_UNSET Err err;
    int64_t     left;
    bool        ok, stop = false;

    o = o ? o : &none;
    left = o->limit > 0 ? o->limit : INT64_MAX;
    ok = session_pairs(o->metadata, o->metadata_count, "metadata", &a, &metadata, &err);
    Arena kept = a;             /* the filter stays, each page goes */
    for (int number = 1; ok && !stop && page.more; number++) {
        a = kept;
        ok = p->kind->list(p, metadata, o->metadata_count, number, o->limit > 0 ? o->limit : 0, &a, &page,
                           DEADLINE_NONE, &err);
        for (size_t i = 0; ok && !stop && i < page.count; i++) {
            arena_reset(&one);
            abx_info info = sandbox__info(&page.items[i], s->id, &one);
            stop = each(ctx, &info) != 0 || --left == 0;
            if (stop && more)
                *more = i + 1 < page.count || page.more;
        }
    }
    if (ok && !stop && more)
        *more = 0;
    arena_free(&a);
    arena_free(&one);
    return ok ? 0 : error_give(e, &err);
}
