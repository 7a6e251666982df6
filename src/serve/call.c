#include "serve/call.h"

#include "base/base64.h"
#include "base/limits.h"
#include "base/str.h"
#include "os/poll.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* ---- sending ---- */

void call_unmake(CallRun *c)
{
    ABX_UNSET abx_error none;

    abx_ignore_cancel(c->session);
    if (c->made && abx_kill(c->box, NULL, &none) != 0)
        fprintf(stderr, "abx: sandbox %s was made for a host that is gone, and could not be removed: %s\n",
                abx_sandbox_id(c->box), none.message);
    c->made = false;
}

void call_flush(CallRun *c)
{
    Str rest = buf_str(&c->lines);

    while (rest.n) {
        ssize_t n = write(c->out, rest.p, rest.n);
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0 && errno != EINTR) {      /* the server is gone, and the host with it */
            if (c->session)
                call_unmake(c);
            _exit(1);
        }
        if (n > 0)
            str_skip(&rest, (size_t)n);
    }
    buf_drop(&c->lines, c->lines.n - rest.n);
}

void call_send(CallRun *c)
{
    ABX_UNSET Err none;

    for (call_flush(c); c->lines.n; call_flush(c))
        if (!poll_one(c->out, POLLOUT, -1, DEADLINE_NONE, &none))
            return;
}

bool call_refuse(CallRun *c, int code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(c->text, sizeof c->text, fmt, args);
    va_end(args);
    c->refused = true;
    c->refusal = (WireError){.code = code, .message = c->text};
    return false;
}

bool call_answered(CallRun *c, WireOut *w)
{
    return wire_end(w) ||
           call_refuse(c, WIRE_FAILED, "the result is larger than the %zu bytes that a line may have", LIMIT_SERVE_LINE);
}

bool call_empty(CallRun *c)
{
    WireOut w = wire_answer(&c->lines, c->call->id);

    json_begin(&w.json, '{');
    json_end(&w.json, '}');
    return call_answered(c, &w);
}

/* ---- parameters ---- */

const Json *call_param(const CallRun *c, const char *key)
{
    const Json *v = json_get(c->call->params, key);

    return v && v->type != JSON_NULL ? v : NULL;
}

bool call_text(CallRun *c, const char *key, bool needed, const char **out)
{
    const Json *v = call_param(c, key);

    if (!v && !needed)
        return true;
    if (!v || v->type != JSON_STRING)
        return call_refuse(c, WIRE_PARAMS, "params.%s must be a string", key);
    if (str_has(v->text, '\0'))
        return call_refuse(c, WIRE_PARAMS, "params.%s holds a NUL", key);
    *out = v->text.p;
    return true;
}

bool call_number(CallRun *c, const char *key, bool needed, int64_t *out)
{
    const Json *v = call_param(c, key);

    if (!v && !needed)
        return true;
    *out = json_int(v, INT64_MIN);
    return *out != INT64_MIN || call_refuse(c, WIRE_PARAMS, "params.%s must be an integer", key);
}

bool call_bytes(CallRun *c, const char *key, Str *out)
{
    const Json *v = call_param(c, key);

    return (v && v->type == JSON_STRING && base64_decode(&c->a, v->text, out)) ||
           call_refuse(c, WIRE_PARAMS, "params.%s must be base64", key);
}

bool call_pid(CallRun *c, const char **out)
{
    const Json *pid = call_param(c, "pid");

    if (!pid || pid->type != JSON_INT)
        return call_text(c, "pid", true, out);
    *out = arena_cstr(&c->a, pid->text);
    return true;
}

bool call_pairs(CallRun *c, const char *key, const abx_pair **out, size_t *n)
{
    const Json *v = call_param(c, key);
    size_t      count = json_count(v);
    abx_pair   *pairs = arena_array(&c->a, count, sizeof *pairs);

    if (v && v->type != JSON_OBJECT)
        return call_refuse(c, WIRE_PARAMS, "params.%s must be an object", key);
    for (size_t i = 0; i < count; i++) {
        if (v->items[i].type != JSON_STRING || str_has(v->items[i].text, '\0') || str_has(v->keys[i], '\0'))
            return call_refuse(c, WIRE_PARAMS, "params.%s must hold strings without NUL", key);
        pairs[i] = (abx_pair){v->keys[i].p, v->items[i].text.p};
    }
    *out = pairs;
    *n = count;
    return true;
}

bool call_unable(CallRun *c, const char *feature, const char *what)
{
    call_refuse(c, WIRE_NO_FEATURE, "the provider cannot %s", what);
    c->refusal.feature = feature;
    return false;
}

void call_failed(CallRun *c)
{
    WireError failed = wire_from(&c->failed);

    wire_error(&c->lines, c->call->id, c->refused ? &c->refusal : &failed);
    c->refused = false;
}

/* ---- results ---- */

void call_member(JsonOut *w, const char *key, const char *value)
{
    if (!value)
        return;
    json_key(w, key);
    json_put_str(w, str_from(value));
}
