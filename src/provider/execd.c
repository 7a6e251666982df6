#include "provider/execd.h"

#include "base/limits.h"
#include "base/str.h"
#include "data/clean.h"
#include "provider/refusal.h"

enum { EXECD_PORT = 44772 };

bool execd_find(Lifecycle *l, Str id, Code code, Arena *a, Execd *out, Deadline d, Err *err)
{
    ABX_UNSET SandboxInfo info;

    if (!lifecycle_get(l, id, a, &info, d, err))
        return false;
    if (info.state != SANDBOX_RUNNING) {
        bool paused = info.state == SANDBOX_PAUSED || info.state == SANDBOX_PAUSING;
        err_set(err, ERR_REMOTE, code, "sandbox %.*s is %.*s, not running", STR_ARG(id), STR_ARG(info.status));
        if (paused)
            err_hint(err, "Resume it first: abx sandbox resume %.*s", STR_ARG(id));
        else if (info.reason.n)
            err_hint(err, "The server says: %.*s", STR_ARG(info.reason));
        return false;
    }
    *out = (Execd){.server = l, .id = id};
    return lifecycle_endpoint(l, id, EXECD_PORT, a, &out->at, d, err);
}

bool execd_near(Lifecycle *l, Str id, Execd *out, Deadline d, Err *err)
{
    if (!clock_passed(l->near.until) && str_eq(l->near.id, id)) {
        *out = (Execd){.server = l, .id = l->near.id, .at = l->near.at};
        return true;
    }
    if (!l->near.own.size)
        l->near.own = arena_make(ARENA_COMMAND);
    arena_reset(&l->near.own);
    l->near.id = arena_str(&l->near.own, id);
    l->near.until = 0;
    if (!execd_find(l, l->near.id, E4000, &l->near.own, out, d, err))
        return false;
    l->near.at = out->at;
    l->near.until = clock_after(LIMIT_NEAR_MS);
    return true;
}

/* ---- calls ---- */

static bool execd__refused(const Execd *x, const ExecdCall *call, Exchange *in, Arena *a, Err *err)
{
    int  status = client_status(in);
    Str  body = {0};
    ABX_UNSET Err none;

    if (!client_text(in, LIMIT_ERROR_BODY, a, &body, clock_sooner(call->deadline, clock_after(LIMIT_CALL_MS)), &none))
        body = (Str){0};
    Refusal r = refusal_read(status, client_headers(in), body, x->server->key, a);
    refusal_err(&r, client_headers(in), call->what, err);
    if (status == 401)
        err->code = E9001;
    else if (str_eq(r.code, STR("SANDBOX_NOT_FOUND")))
        err->code = E2009;
    else if (str_eq(r.code, STR("FILE_NOT_FOUND")))
        err->code = E4001;
    else if (status == 404 || status == 409 || status == 400 || status == 500)
        err->code = call->code;
    return false;
}

bool execd_open(Execd *x, const ExecdCall *call, Arena *a, Exchange **out, Err *err)
{
    size_t  n = x->at.headers.n;
    Header *fields = arena_array(a, n + 1, sizeof *fields);

    for (size_t i = 0; i < n; i++)
        fields[i] = x->at.headers.v[i];
    if (call->body && call->type.n)
        fields[n++] = (Header){STR("Content-Type"), call->type};
    ClientRequest rq = {
        .method = call->method,
        .url = url_join(&x->at.url, str_from(call->path), call->query, a),
        .headers = {fields, n},
        .body = call->body,
        .idempotent = call->idempotent,
        .websocket = call->websocket,
        .deadline = call->deadline,
        .idle_ms = call->idle_ms,
    };
    if (!client_open(x->server->http, &rq, out, err))
        return err_wrap(err, "cannot %s", call->what);
    if (call->websocket ? client_status(*out) == 101 : client_status(*out) >= 200 && client_status(*out) <= 299)
        return true;
    execd__refused(x, call, *out, a, err);
    client_close(*out);
    *out = NULL;
    return false;
}

bool execd_ask(Execd *x, const ExecdCall *call, Arena *a, ExecdReply *out, Err *err)
{
    Exchange *in;

    if (!execd_open(x, call, a, &in, err))
        return false;
    *out = (ExecdReply){.status = client_status(in)};
    /* The head can have taken long, after a body; what follows it cannot. */
    Deadline rest = clock_sooner(call->deadline, clock_after(x->server->call_ms));
    bool     read = client_text(in, call->most ? call->most : LIMIT_ANSWER, a, &out->body, rest, err);
    client_close(in);
    if (!read)
        return err_wrap(err, "cannot %s", call->what);
    if (out->body.n && !json_parse(out->body, a, &out->json, err)) {
        err->code = E8020;
        return err_wrap(err, "cannot %s: the daemon's answer is not JSON", call->what);
    }
    return true;
}

bool execd_ping(Execd *x, Arena scratch, Deadline d, Err *err)
{
    ExecdCall call = {.method = "GET", .path = "/ping", .idempotent = true, .what = "reach the sandbox's daemon",
                      .code = E9003, .deadline = d};
    Exchange *in;
    ABX_UNSET char rest[256];
    size_t    n;

    if (!execd_open(x, &call, &scratch, &in, err))
        return false;
    bool ok = client_read(in, rest, sizeof rest, &n, d, err);
    client_close(in);
    return ok;
}
