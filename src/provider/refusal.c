#include "provider/refusal.h"

#include "base/str.h"
#include "data/clean.h"
#include "data/json.h"

/* What of FastAPI's list a person needs: where, and what is wrong there. */
static Str refusal__details(const Json *list, Arena *a)
{
    Buf b = buf_make(1024);

    for (size_t i = 0; i < json_count(list) && i < 4; i++) {
        const Json *one = json_at(list, i), *loc = json_get(one, "loc");
        if (i)
            buf_add(&b, STR("; "));
        for (size_t k = 0; k < json_count(loc); k++) {
            const Json *at = json_at(loc, k);
            Str         part = at->type == JSON_STRING || at->type == JSON_INT ? at->text : STR("?");
            if (k == 0 && json_count(loc) > 1)
                continue;       /* "body", "query": no news */
            buf_addf(&b, "%.*s%s", STR_ARG(part), k + 1 < json_count(loc) ? "." : ": ");
        }
        buf_add(&b, json_str(json_get(one, "msg")));
    }
    Str text = arena_str(a, buf_str(&b));
    buf_free(&b);
    return text;
}

static Str refusal__plain(int status, Headers headers, Str body, Arena *a)
{
    Str rest = header_get(headers, "content-type"), type = {0}, text = str_trim(body);

    str_cut(&rest, ';', &type);
    if (text.n && text.n <= 200 && str_starts(type, STR("text/plain")))
        return text;
    if (text.n == 0)
        return arena_fmt(a, "status %d with nothing more", status);
    return arena_fmt(a, "status %d with a body of type %.*s, which is not this server's", status,
                     STR_ARG(type.n && type.n < 100 ? type : STR("unknown")));
}

Refusal refusal_read(int status, Headers headers, Str body, Str secret, Arena *a)
{
    Refusal     r = {.status = status};
    const Json *doc = NULL;
    ABX_UNSET Err none;

    if (body.n && json_parse(body, a, &doc, &none)) {
        const Json *detail = json_get(doc, "detail");
        r.code = json_str(json_get(doc, "code"));
        r.message = json_str(json_get(doc, "message"));
        if (!r.message.n)
            r.message = json_str(json_get(doc, "error"));
        if (!r.message.n)
            r.message = json_str(detail);
        if (!r.message.n && detail)
            r.message = refusal__details(detail, a);
        r.json = r.message.n > 0 || r.code.n > 0;
    }
    for (size_t i = 0; i + 1 < r.code.n; i++)
        if (r.code.p[i] == ':' && r.code.p[i + 1] == ':') {
            str_skip(&r.code, i + 2);
            break;
        }
    if (!r.message.n)
        r.message = r.code.n ? r.code : refusal__plain(status, headers, body, a);
    r.message = clean_message(r.message, &secret, secret.n ? 1 : 0, a);
    if (!r.message.n)
        r.message = arena_fmt(a, "status %d", status);
    return r;
}

static const struct { int from, to; ErrKind kind; Code code; bool retryable; } refusal__rows[] = {
    {300, 399, ERR_REMOTE, E5001, false},
    {400, 400, ERR_REMOTE, E8002, false},
    {401, 401, ERR_DENIED, E1001, false},
    {403, 403, ERR_DENIED, E1001, false},
    {404, 404, ERR_NOT_FOUND, E8005, false},
    {405, 405, ERR_REMOTE, E8000, false},
    {409, 409, ERR_REMOTE, E8000, false},
    {413, 413, ERR_REMOTE, E9004, false},
    {422, 422, ERR_REMOTE, E8002, false},
    {429, 429, ERR_REMOTE, E9005, true},
    {502, 504, ERR_REMOTE, E9003, true},
    {0, 999, ERR_REMOTE, E8000, false},
};

bool refusal_err(const Refusal *r, Headers headers, const char *what, Err *err)
{
    size_t i = 0;

    while (r->status < refusal__rows[i].from || r->status > refusal__rows[i].to)
        i++;
    err_set(err, refusal__rows[i].kind, refusal__rows[i].code, "cannot %s: %.*s", what, STR_ARG(r->message));
    err->status = r->status;
    err->retryable = refusal__rows[i].retryable;

    Str id = header_get(headers, "x-request-id");
    if (id.n && id.n < sizeof err->request_id && !str_has_control(id))
        memcpy(err->request_id, id.p, id.n);
    if (r->status >= 300 && r->status <= 399)
        err_hint(err, "The address of the server redirects: set base_url to where it leads.");
    return false;
}
