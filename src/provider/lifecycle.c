#include "provider/lifecycle.h"

#include "base/limits.h"
#include "base/str.h"
#include "base/time.h"
#include "data/clean.h"
#include "net/dial.h"
#include "os/poll.h"
#include "os/random.h"
#include "provider/refusal.h"

#include <stdio.h>

/* The label by which a sandbox is found again when the answer to its creation
 * was lost. It is ours, so it is not shown as the user's metadata. */
#define LIFECYCLE_LABEL "abx-create"

enum {
    LIFECYCLE_MIN_TTL_S = 60,
    LIFECYCLE_PAGE = 100,
    LIFECYCLE_PAGES = 2000,         /* 200,000 sandboxes: more than a server has */
};

typedef struct LifecycleAnswer {
    int         status;
    Headers     headers;
    Str         body;
    const Json *json;       /* NULL when there is no body */
} LifecycleAnswer;

typedef struct LifecycleCall {
    const char *method;
    Str         path, query;    /* below the base */
    Str         body;           /* p NULL: none */
    bool        idempotent;
    Deadline    deadline;
    const char *what;           /* "create a sandbox", for errors */
    Str         sandbox;        /* whose 404 it would be; empty: nobody's */
} LifecycleCall;

/* Say a 404 as what it means: the sandbox is gone, or there is no such route. */
static bool lifecycle__refused(const Lifecycle *l, const LifecycleCall *call, const LifecycleAnswer *in, Arena *a,
                               Err *err)
{
    Refusal r = refusal_read(in->status, in->headers, in->body, l->key, a);

    refusal_err(&r, in->headers, call->what, err);
    if (r.status == 401 || r.status == 403) {
        if (str_eq(r.code, STR("QUOTA_EXCEEDED")))
            err->code = E2002;
        else
            err_hint(err, "Set ABX_OPENSANDBOX_API_KEY to a key that %.*s accepts.", STR_ARG(url_text(&l->base, a)));
    }
    if (r.status == 404 && r.json && r.code.n && call->sandbox.n) {
        Err was = *err;
        err_set(err, ERR_NOT_FOUND, E2009, "there is no sandbox %.*s", STR_ARG(call->sandbox));
        memcpy(err->request_id, was.request_id, sizeof err->request_id);
        err->status = 404;
    } else if (r.status == 404 && !r.code.n) {
        err->code = E8000;
        err_hint(err, "%.*s does not look like an OpenSandbox server: check base_url.", STR_ARG(url_text(&l->base, a)));
    }
    return false;
}

/* One request and its whole answer; anything but 2xx is the failure it means. */
static bool lifecycle__call(Lifecycle *l, const LifecycleCall *call, Source *body, Arena *a, LifecycleAnswer *out,
                            Err *err)
{
    Header   fields[3] = {{STR("Accept"), STR("application/json")}};
    size_t   n = 1;
    Exchange *x;

    if (l->key.n)
        fields[n++] = (Header){STR("OPEN-SANDBOX-API-KEY"), l->key};
    if (body)
        fields[n++] = (Header){STR("Content-Type"), STR("application/json")};
    ClientRequest rq = {
        .method = call->method, .url = url_join(&l->base, call->path, call->query, a), .headers = {fields, n},
        .body = body, .idempotent = call->idempotent, .deadline = call->deadline,
    };
    if (!client_open(l->http, &rq, &x, err))
        return err_wrap(err, "cannot %s", call->what);

    out->status = client_status(x);
    bool good = out->status >= 200 && out->status <= 299;
    Headers seen = client_headers(x);
    Header *kept = arena_array(a, seen.n, sizeof *kept);
    for (size_t i = 0; i < seen.n; i++)
        kept[i] = (Header){arena_str(a, seen.v[i].name), arena_str(a, seen.v[i].value)};
    out->headers = (Headers){kept, seen.n};

    bool read = client_text(x, good ? LIMIT_ANSWER : LIMIT_ERROR_BODY, a, &out->body, call->deadline, err);
    client_close(x);
    if (!good) {
        if (!read)
            out->body = (Str){0};       /* the status alone says no */
        return lifecycle__refused(l, call, out, a, err);
    }
    if (!read)
        return err_wrap(err, "cannot %s", call->what);
    out->json = NULL;
    if (out->body.n && !json_parse(out->body, a, &out->json, err)) {
        err->code = E5000;
        return err_wrap(err, "cannot %s: the server's answer is not JSON", call->what);
    }
    return true;
}

static bool lifecycle__ask(Lifecycle *l, const LifecycleCall *call, Arena *a, LifecycleAnswer *out, Err *err)
{
    if (strcmp(call->method, "GET") != 0)
        l->near.until = 0;
    if (!call->body.p)
        return lifecycle__call(l, call, NULL, a, out, err);
    Str    view = call->body;
    Source body = flow_from_str(&view);
    return lifecycle__call(l, call, &body, a, out, err);
}

static Deadline lifecycle__soon(const Lifecycle *l, Deadline d)
{
    return clock_sooner(d, clock_after(l->call_ms));
}

static Str lifecycle__path(Str id, const char *behind, Arena *a)
{
    return arena_fmt(a, "/sandboxes/%s%s", url_encode(id, a).p, behind);
}

static const struct { Str word; SandboxState state; } lifecycle__states[] = {
    {{"pending", 7}, SANDBOX_CREATING},  {{"running", 7}, SANDBOX_RUNNING},    {{"pausing", 7}, SANDBOX_PAUSING},
    {{"paused", 6}, SANDBOX_PAUSED},     {{"resuming", 8}, SANDBOX_RESUMING},  {{"stopping", 8}, SANDBOX_STOPPING},
    {{"terminated", 10}, SANDBOX_STOPPED}, {{"failed", 6}, SANDBOX_ERROR},
};

static void lifecycle__state(SandboxInfo *info, Str word, Arena *a)
{
    for (size_t i = 0; i < COUNT_OF(lifecycle__states); i++)
        if (str_eq_nocase(word, lifecycle__states[i].word)) {
            info->state = lifecycle__states[i].state;
            info->status = provider_state_word(info->state);
            return;
        }
    char *lower = arena_cstr(a, word);
    for (size_t i = 0; i < word.n; i++)
        if (lower[i] >= 'A' && lower[i] <= 'Z')
            lower[i] |= 0x20;
    info->state = SANDBOX_UNKNOWN;
    info->status = (Str){lower, word.n};
}

/* A string member, or the empty Str: null, a number or an object is not one. */
static Str lifecycle__text(const Json *object, const char *key)
{
    return json_str(json_get(object, key));
}

/* The same as words for people. */
static Str lifecycle__words(const Lifecycle *l, const Json *object, const char *key, Arena *a)
{
    return clean_message(lifecycle__text(object, key), &l->key, l->key.n ? 1 : 0, a);
}

/* How long it lives altogether, in seconds (a half goes to the even one), or -1
 * where that is not known. */
static int64_t lifecycle__life(Str from, Str to)
{
    int64_t begin, end;

    if (!time_parse(from, &begin) || !time_parse(to, &end) || end <= begin)
        return -1;
    int64_t ms = end - begin, seconds = (ms + 499 + (ms / 1000 & 1)) / 1000;
    return seconds ? seconds : -1;
}

static bool lifecycle__info(const Lifecycle *l, const Json *doc, Arena *a, SandboxInfo *out, Err *err)
{
    const Json *status = json_get(doc, "status"), *metadata = json_get(doc, "metadata");

    *out = (SandboxInfo){.id = lifecycle__text(doc, "id"), .timeout_s = -1};
    if (!out->id.n || str_has_control(out->id))
        return err_set(err, ERR_INPUT, E8020, "the server's answer names no sandbox id");
    lifecycle__state(out, lifecycle__words(l, status, "state", a), a);
    if (!out->status.n)
        return err_set(err, ERR_INPUT, E8020, "the server's answer does not say in which state sandbox %.*s is",
                       STR_ARG(out->id));
    out->reason = lifecycle__words(l, status, "message", a);
    out->template = lifecycle__text(json_get(doc, "image"), "uri");
    out->started_at = lifecycle__text(doc, "createdAt");
    out->end_at = lifecycle__text(doc, "expiresAt");
    out->timeout_s = lifecycle__life(out->started_at, out->end_at);

    Pair *pairs = arena_array(a, json_count(metadata), sizeof *pairs);
    for (size_t i = 0; metadata && metadata->type == JSON_OBJECT && i < metadata->count; i++)
        if (metadata->items[i].type == JSON_STRING && !str_eq(metadata->keys[i], STR(LIFECYCLE_LABEL)))
            pairs[out->metadata_count++] = (Pair){metadata->keys[i], metadata->items[i].text};
    out->metadata = pairs;
    return true;
}

bool lifecycle_get(Lifecycle *l, Str id, Arena *a, SandboxInfo *out, Deadline d, Err *err)
{
    LifecycleCall   call = {.method = "GET", .path = lifecycle__path(id, "", a), .idempotent = true,
                   .deadline = lifecycle__soon(l, d), .what = "look at the sandbox", .sandbox = id};
    ABX_UNSET LifecycleAnswer in;

    return lifecycle__ask(l, &call, a, &in, err) && lifecycle__info(l, in.json, a, out, err);
}

/* ---- create ---- */

static Str lifecycle__image(const Lifecycle *l, Str template)
{
    return template.n == 0 || str_eq(template, STR("base")) ? l->image : template;
}

/* An entrypoint that does not end keeps the sandbox alive; the images of the
 * code interpreter bring one that has to run for their services to be there. */
static void lifecycle__put_entrypoint(const Lifecycle *l, const CreateRequest *rq, Str image, JsonOut *w)
{
    static const Str idle[] = {{"tail", 4}, {"-f", 2}, {"/dev/null", 9}};
    static const Str interpreter[] = {{"/opt/code-interpreter/code-interpreter.sh", 41}};
    const Str *words = idle;
    size_t     n = COUNT_OF(idle);

    for (size_t i = 0; i + 16 <= image.n; i++)
        if (memcmp(image.p + i, "code-interpreter", 16) == 0)
            words = interpreter, n = COUNT_OF(interpreter);
    if (l->entrypoint_count)
        words = l->entrypoint, n = l->entrypoint_count;
    if (rq->entrypoint_count)
        words = rq->entrypoint, n = rq->entrypoint_count;
    json_key(w, "entrypoint");
    json_begin(w, '[');
    for (size_t i = 0; i < n; i++)
        json_put_str(w, words[i]);
    json_end(w, ']');
}

static void lifecycle__put_pairs(JsonOut *w, const Pair *pairs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        json_key_str(w, pairs[i].key);
        json_put_str(w, pairs[i].value);
    }
}

static void lifecycle__put_text(JsonOut *w, const char *key, Str value)
{
    if (!value.n)
        return;
    json_key(w, key);
    json_put_str(w, value);
}

static void lifecycle__put_request(const Lifecycle *l, const CreateRequest *rq, int64_t ttl, Str label, Buf *to)
{
    JsonOut w = json_out(to, JSON_COMPACT);
    Str     image = lifecycle__image(l, rq->template);

    json_begin(&w, '{');
    json_key(&w, "image");
    json_begin(&w, '{');
    lifecycle__put_text(&w, "uri", image);
    json_end(&w, '}');
    lifecycle__put_entrypoint(l, rq, image, &w);
    if (ttl > 0) {
        json_key(&w, "timeout");
        json_put_int(&w, ttl);
    }
    json_key(&w, "resourceLimits");     /* required, even when it says nothing */
    json_begin(&w, '{');
    lifecycle__put_text(&w, "cpu", rq->cpu.n ? rq->cpu : l->cpu);
    lifecycle__put_text(&w, "memory", rq->memory.n ? rq->memory : l->memory);
    json_end(&w, '}');
    if (rq->env_count) {
        json_key(&w, "env");
        json_begin(&w, '{');
        lifecycle__put_pairs(&w, rq->env, rq->env_count);
        json_end(&w, '}');
    }
    json_key(&w, "metadata");
    json_begin(&w, '{');
    lifecycle__put_pairs(&w, rq->metadata, rq->metadata_count);
    lifecycle__put_text(&w, LIFECYCLE_LABEL, label);
    json_end(&w, '}');
    json_end(&w, '}');
}

static int64_t lifecycle__ttl(const Lifecycle *l, int64_t asked, Arena *a)
{
    if (asked <= 0 || asked >= LIFECYCLE_MIN_TTL_S)
        return asked;
    if (l->host->notice)
        l->host->notice(l->host->notice_ctx,
                        arena_fmt(a, "timeout %llds is below OpenSandbox's %d s minimum; using %d s", (long long)asked,
                                  LIFECYCLE_MIN_TTL_S, LIFECYCLE_MIN_TTL_S));
    return LIFECYCLE_MIN_TTL_S;
}

/* One page of the list; *items is an array. */
static bool lifecycle__page(Lifecycle *l, const Pair *metadata, size_t metadata_count, int page, Arena *a,
                            const Json **items, bool *more, Deadline d, Err *err)
{
    Buf             filter = buf_make(LIMIT_URL);
    ABX_UNSET LifecycleAnswer in;

    /* One parameter, whose value is a query string of its own. */
    for (size_t i = 0; i < metadata_count; i++) {
        Arena scratch = *a;
        buf_addf(&filter, "%s%s=%s", i ? "&" : "", url_encode(metadata[i].key, &scratch).p,
                 url_encode(metadata[i].value, &scratch).p);
    }
    Str  query = arena_fmt(a, "page=%d&pageSize=%d%s%s", page, LIFECYCLE_PAGE, filter.n ? "&metadata=" : "",
                           url_encode(buf_str(&filter), a).p);
    bool over = filter.over;
    buf_free(&filter);
    if (over)
        return err_set(err, ERR_USAGE, E8002, "the metadata to look for is longer than %zu bytes", LIMIT_URL);

    LifecycleCall call = {.method = "GET", .path = STR("/sandboxes"), .query = query, .idempotent = true,
                 .deadline = lifecycle__soon(l, d), .what = "list the sandboxes"};
    if (!lifecycle__ask(l, &call, a, &in, err))
        return false;
    *items = json_get(in.json, "items");
    if (!*items || (*items)->type != JSON_ARRAY)
        return err_set(err, ERR_INPUT, E8020, "the server's list of sandboxes has no items");
    *more = (*items)->count > 0 && json_bool(json_get(json_get(in.json, "pagination"), "hasNextPage"), false);
    return true;
}

/* Find what carries the label, and remove it: +1 removed, 0 there is none,
 * -1 it could not be asked. The server goes on creating when its client is
 * gone, so "none" is not the last word until some time has passed. A server
 * that does not know the filter lists everything: each one is looked at. */
static int lifecycle__remove_labelled(Lifecycle *l, Str label, Arena scratch, Deadline d)
{
    Pair        pair = {STR(LIFECYCLE_LABEL), label};
    const Json *items;
    ABX_UNSET Err none;
    bool        killed, more;
    int         removed = 0;

    if (!lifecycle__page(l, &pair, 1, 1, &scratch, &items, &more, d, &none))
        return -1;
    for (size_t i = 0; i < items->count; i++) {
        const Json *one = &items->items[i];
        if (!str_eq(lifecycle__text(json_get(one, "metadata"), LIFECYCLE_LABEL), label))
            continue;
        if (!lifecycle_kill(l, lifecycle__text(one, "id"), &killed, d, &none))
            return -1;
        removed = 1;
    }
    return removed;
}

/* The request was sent and its answer never came, or could not be read. */
static void lifecycle__undo_create(Lifecycle *l, Str label, Arena scratch, Err *err)
{
    Deadline d = clock_after(LIMIT_CLEANUP_MS);
    ABX_UNSET Err none;
    int      got = 0;

    client_cancel_fd(l->http, -1);
    while (!clock_passed(d)) {
        got = lifecycle__remove_labelled(l, label, scratch, d);
        if (got > 0 || !poll_sleep(200, -1, &none))
            break;
    }
    client_cancel_fd(l->http, l->host->cancel_fd);

    size_t n = strlen(err->text);
    if (got > 0)
        snprintf(err->text + n, sizeof err->text - n, "; the sandbox that had been made is removed");
    else
        snprintf(err->text + n, sizeof err->text - n,
                 "; a sandbox may have been made: its metadata would be " LIFECYCLE_LABEL "=%.*s", STR_ARG(label));
}

bool lifecycle_create(Lifecycle *l, const CreateRequest *rq, Arena *a, SandboxInfo *out, Deadline d, Err *err)
{
    ABX_UNSET char label_text[33];
    Buf    json = buf_make(LIMIT_ANSWER);
    ABX_UNSET LifecycleAnswer in;

    for (size_t i = 0; i < rq->metadata_count; i++)
        if (str_eq(rq->metadata[i].key, STR(LIFECYCLE_LABEL)))
            return err_set(err, ERR_USAGE, E8002, "the label " LIFECYCLE_LABEL " is abx's own");
    random_hex(label_text, 32);
    Str     label = str_from(label_text);
    int64_t ttl = lifecycle__ttl(l, rq->timeout_s, a);
    lifecycle__put_request(l, rq, ttl, label, &json);
    if (json.over) {
        buf_free(&json);
        return err_set(err, ERR_LIMIT, E8002, "what is asked of the new sandbox is larger than %zu bytes", json.limit);
    }
    Str    body = buf_str(&json);
    Source source = flow_from_str(&body);
    LifecycleCall   call = {.method = "POST", .path = STR("/sandboxes"), .deadline = d, .what = "create a sandbox"};
    bool   ok = lifecycle__call(l, &call, &source, a, &in, err) && lifecycle__info(l, in.json, a, out, err);

    /* A refusal made nothing, and neither did a request that was not read to
     * its end here. */
    bool refused = !ok && err->status != 0 && err->status != 502 && err->status != 504;
    if (!ok && !refused && err->kind != ERR_UNSENT && body.n == 0)
        lifecycle__undo_create(l, label, *a, err);
    buf_free(&json);
    if (!ok) {
        if (err->status >= 500 && err->code == E8000)
            err->code = E2000;
        return false;
    }
    out->timeout_s = ttl > 0 ? ttl : -1;
    if (!out->template.n)
        out->template = lifecycle__image(l, rq->template);
    return true;
}

/* ---- the others ---- */

bool lifecycle_list(Lifecycle *l, const Pair *metadata, size_t metadata_count, int page, Arena *a, ListPage *out,
                    Deadline d, Err *err)
{
    const Json *items;
    bool        more;

    if (page > LIFECYCLE_PAGES)
        return err_set(err, ERR_LIMIT, E8020, "the server's list of sandboxes does not end after %d pages",
                       LIFECYCLE_PAGES);
    if (!lifecycle__page(l, metadata, metadata_count, page, a, &items, &more, d, err))
        return false;
    SandboxInfo *infos = arena_array(a, items->count, sizeof *infos);
    for (size_t i = 0; i < items->count; i++)
        if (!lifecycle__info(l, &items->items[i], a, &infos[i], err))
            return false;
    *out = (ListPage){.items = infos, .count = items->count, .more = more};
    return true;
}

bool lifecycle_kill(Lifecycle *l, Str id, bool *killed, Deadline d, Err *err)
{
    Arena  a = arena_make(ARENA_COMMAND);
    LifecycleCall   call = {.method = "DELETE", .path = lifecycle__path(id, "", &a), .idempotent = true,
                   .deadline = lifecycle__soon(l, d), .what = "kill the sandbox", .sandbox = id};
    ABX_UNSET LifecycleAnswer in;
    ABX_UNSET Err no;
    bool   ok = lifecycle__ask(l, &call, &a, &in, &no);

    *killed = ok;
    if (!ok && no.code != E2009)
        *err = no;
    else
        ok = true;
    arena_free(&a);
    return ok;
}

bool lifecycle_set_timeout(Lifecycle *l, Str id, int64_t seconds, Arena *a, SandboxInfo *out, Deadline d, Err *err)
{
    LifecycleCall get = {.method = "GET", .path = lifecycle__path(id, "", a), .idempotent = true,
                   .deadline = lifecycle__soon(l, d), .what = "look at the sandbox", .sandbox = id};
    ABX_UNSET LifecycleAnswer in;
    int64_t now;

    if (!lifecycle__ask(l, &get, a, &in, err) || !lifecycle__info(l, in.json, a, out, err))
        return false;
    /* The server compares with its own clock, so ours does not matter if the
     * server says what time it has. */
    if (!time_parse_http(header_get(in.headers, "date"), &now))
        now = clock_unix_ms();
    ABX_UNSET char end[TIME_SIZE];
    if (seconds > INT64_MAX / 2000 - now / 1000 || !time_text(now + seconds * 1000, false, end))
        return err_set(err, ERR_USAGE, E8002, "a timeout of %lld seconds ends after the last date there is",
                       (long long)seconds);
    Buf    body = buf_make(256);
    JsonOut w = json_out(&body, JSON_COMPACT);
    json_begin(&w, '{');
    lifecycle__put_text(&w, "expiresAt", str_from(end));
    json_end(&w, '}');
    LifecycleCall call = {.method = "POST",
                          .path = lifecycle__path(id, "/renew-expiration", a),
                          .body = arena_str(a, buf_str(&body)),
                          .idempotent = true,
                          .deadline = lifecycle__soon(l, d),
                          .what = "set the sandbox's timeout",
                          .sandbox = id};
    buf_free(&body);
    if (!lifecycle__ask(l, &call, a, &in, err))
        return false;
    Str told = lifecycle__text(in.json, "expiresAt");
    out->end_at = told.n ? told : arena_str(a, str_from(end));
    out->timeout_s = lifecycle__life(out->started_at, out->end_at);
    return true;
}

bool lifecycle_switch(Lifecycle *l, Str id, const char *verb, SandboxState goal, Arena *a, SandboxInfo *out,
                      Deadline d, Err *err)
{
    char what[40], behind[20];
    snprintf(what, sizeof what, "%s the sandbox", verb);
    snprintf(behind, sizeof behind, "/%s", verb);
    LifecycleCall   call = {.method = "POST", .path = lifecycle__path(id, behind, a), .deadline = lifecycle__soon(l, d),
                   .what = what, .sandbox = id};
    ABX_UNSET LifecycleAnswer in;

    if (!lifecycle__ask(l, &call, a, &in, err))
        return false;
    for (int64_t pause = 50;; pause = pause < 1000 ? pause * 2 : pause) {
        Arena turn = *a;        /* what the looks before brought is forgotten */
        if (!lifecycle_get(l, id, &turn, out, d, err))
            return false;
        if (out->state == goal) {
            *a = turn;
            return true;
        }
        if (out->state == SANDBOX_STOPPED || out->state == SANDBOX_ERROR)
            return err_set(err, ERR_REMOTE, E8000, "the sandbox ended while it was to %s: %.*s", verb,
                           STR_ARG(out->reason));
        if (clock_passed(d))
            return err_set(err, ERR_TIMEOUT, E8022, "the sandbox is still %.*s, not yet %.*s", STR_ARG(out->status),
                           STR_ARG(provider_state_word(goal)));
        if (!poll_sleep(pause, l->host->cancel_fd, err))
            return false;
    }
}

/* The headers of an endpoint, with room for one more behind them. */
static bool lifecycle__fields(const Json *headers, Arena *a, Header **out, size_t *used, Err *err)
{
    size_t n = headers && headers->type == JSON_OBJECT ? headers->count : 0, bytes = 0;
    bool   ok = n < LIMIT_HEADERS / 2;

    *out = arena_array(a, ok ? n + 1 : 1, sizeof **out);
    for (size_t i = 0; ok && i < n; i++) {
        Header h = {headers->keys[i], headers->items[i].text};
        if (headers->items[i].type != JSON_STRING)
            continue;
        bytes += h.name.n + h.value.n;
        ok = bytes < LIMIT_HEAD / 2 && header_name_ok(h.name) && header_value_ok(h.value);
        (*out)[(*used)++] = h;
    }
    return ok || err_set(err, ERR_INPUT, E8020, "the server's endpoint asks for headers that cannot be sent");
}

bool lifecycle_endpoint(Lifecycle *l, Str id, int port, Arena *a, Endpoint *out, Deadline d, Err *err)
{
    ABX_UNSET char behind[40];
    ABX_UNSET LifecycleAnswer in;

    snprintf(behind, sizeof behind, "/endpoints/%d", port);
    LifecycleCall call = {.method = "GET", .path = lifecycle__path(id, behind, a), .idempotent = true,
                 .query = l->use_proxy ? STR("use_server_proxy=true") : (Str){0},
                 .deadline = lifecycle__soon(l, d), .what = "find the way to the sandbox", .sandbox = id};
    if (!lifecycle__ask(l, &call, a, &in, err))
        return false;
    Str where = lifecycle__text(in.json, "endpoint");
    if (!where.n || where.n > 2048)
        return err_set(err, ERR_INPUT, E8020, "the server's answer names no endpoint");
    if (!url_parse(arena_fmt(a, "%s://%.*s", l->base.tls ? "https" : "http", STR_ARG(where)), a, &out->url, err)) {
        err->code = E8020;
        return err_wrap(err, "the server's endpoint");
    }

    size_t  used = 0;
    Header *fields;
    if (!lifecycle__fields(json_get(in.json, "headers"), a, &fields, &used, err))
        return false;
    /* The sandbox must not see the key: it goes to our own server only. */
    bool ours = l->use_proxy && out->url.port == l->base.port && out->url.tls == l->base.tls &&
                str_eq(out->url.host, l->base.host);
    if (ours && l->key.n)
        fields[used++] = (Header){STR("OPEN-SANDBOX-API-KEY"), l->key};
    out->headers = (Headers){fields, used};
    return true;
}

Str lifecycle_last_words(Lifecycle *l, Str id, Arena *a, Deadline d)
{
    LifecycleCall call = {.method = "GET",
                          .path = lifecycle__path(id, "/diagnostics/logs", a),
                          .query = STR("scope=container"),
                          .idempotent = true,
                          .deadline = lifecycle__soon(l, d),
                          .what = "read the container's log"};
    ABX_UNSET LifecycleAnswer in;
    ABX_UNSET Err none;

    if (!lifecycle__ask(l, &call, a, &in, &none))
        return (Str){0};
    Str text = str_trim(lifecycle__text(in.json, "content"));
    if (text.n > 400)
        str_skip(&text, text.n - 400);
    return text;
}
