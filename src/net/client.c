#include "net/client.h"

#include "base/base64.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/http.h"
#include "net/pool.h"
#include "net/ws.h"
#include "os/poll.h"
#include "os/random.h"
#include <stdarg.h>
#include <stdio.h>

enum {
    CLIENT_DIRECT = 16 << 10,       /* from here on a copy costs more than a call */
    CLIENT_REST = 16,               /* pieces read at the end to keep a connection */
};

struct Client {
    ClientDial *dial;
    void       *dial_ctx;
    int         cancel_fd;
    int64_t     grace_ms;       /* 0: cancelling counts at once */
    Deadline    grace_end;      /* cancelling was seen, and counts then; 0: not seen */
    char       *agent;
    void      (*trace)(void *ctx, const char *line);
    void       *trace_ctx;
    Pool        pool;
};

struct Exchange {
    Client   *client;
    PoolConn *conn;
    char     *where;        /* "host:port", what errors begin with */
    int64_t   idle_ms;

    Buf       out;          /* the piece being sent; [out_at, n) is still to go */
    size_t    out_at;
    bool      sending;
    bool      last;         /* `out` is the end of the request */
    int64_t   given;        /* bytes that the body's source gave */
    uint64_t  sent;         /* bytes the connection took */

    bool      answered;     /* a byte of an answer came */
    bool      lost;         /* the connection ended or failed; nothing else did */
    bool      maybe;        /* an earlier connection took a part of the request */
    bool      keep;         /* the connection can carry another exchange */
    bool      broken;
    char      accept[WS_ACCEPT + 1];    /* the proof that is wanted of a 101; "": none was asked for */
    HttpHead  head;
    HttpBody  body;
};

Client *client_make(const ClientOptions *options)
{
    Client *c = mem_new(sizeof *c);

    c->dial = options->dial;
    c->dial_ctx = options->dial_ctx;
    c->cancel_fd = options->cancel_fd;
    c->agent = mem_str(options->agent);
    c->trace = options->trace;
    c->trace_ctx = options->trace_ctx;
    return c;
}

void client_free(Client *c)
{
    if (!c)
        return;
    pool_free(&c->pool);
    mem_free(c->agent);
    mem_free(c);
}

void client_cancel_fd(Client *c, int cancel_fd)
{
    c->cancel_fd = cancel_fd;
    c->grace_ms = c->grace_end = 0;
}

void client_cancel_grace(Client *c, int64_t ms)
{
    c->grace_ms = ms;
}

/* --- the trace ---------------------------------------------------------------- */

static ABX_PRINTF(2, 3) void client__say(const Client *c, const char *fmt, ...)
{
    ABX_UNSET char line[1024];
    va_list ap;

    if (!c->trace)
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    c->trace(c->trace_ctx, line);
}

/* The fields whose values may be seen. All others may hold a secret: keys have
 * many names, and an endpoint answer can bring new ones. */
static void client__say_field(const Client *c, char mark, Str name, Str value)
{
    static const char *const open[] = {
        "Accept", "Accept-Encoding", "Cache-Control", "Connection", "Content-Disposition", "Content-Length",
        "Content-Range", "Content-Type", "Date", "Host", "Keep-Alive", "Range", "Retry-After", "Server",
        "Transfer-Encoding", "Upgrade", "User-Agent", "X-Request-Id",
    };
    bool shown = false;

    for (size_t i = 0; i < COUNT_OF(open); i++)
        shown = shown || str_eq_nocase(name, str_from(open[i]));
    client__say(c, "%c %.*s: %.*s", mark, STR_ARG(name), STR_ARG(shown ? value : STR("***")));
}

/* What a WebSocket's path ends with may be a token. */
static void client__say_request(const Client *c, const ClientRequest *r)
{
    Str path = r->url.path;

    while (r->websocket && path.n && path.p[path.n - 1] != '/')
        path.n--;
    client__say(c, "> %s %.*s%s%s", r->method, STR_ARG(path), path.n < r->url.path.n ? "***" : "", r->url.query.p ? "?***" : "");
}

static void client__say_head(const Client *c, const HttpHead *head)
{
    if (!c->trace)
        return;
    client__say(c, "< %d %.*s", head->status, STR_ARG(head->reason));
    for (size_t i = 0; i < head->headers.n; i++)
        client__say_field(c, '<', head->headers.v[i].name, head->headers.v[i].value);
}

/* --- waiting ------------------------------------------------------------------ */

static bool client__late(const Exchange *x, Err *err)
{
    return err_set(err, ERR_TIMEOUT, E5000, x->answered ? "%s: the answer did not come to its end in time"
                                                        : "%s: no answer came in time", x->where);
}

/* Where bytes come or go without a wait between them: nobody has had enough. */
/* Cancelling was seen. False, and *err, when that ends the wait. */
static bool client__graced(Client *c, Err *err)
{
    if (c->grace_ms > 0 && c->grace_end == 0)
        c->grace_end = clock_after(c->grace_ms);
    if (c->grace_ms > 0 && !clock_passed(c->grace_end))
        return true;
    return err_set(err, ERR_CANCELLED, E0000, "interrupted");
}

static bool client__goes_on(const Exchange *x, Deadline deadline, Err *err)
{
    struct pollfd none[1];
    ABX_UNSET Err seen;

    if (!poll_wait(none, 0, x->client->cancel_fd, 0, &seen) && seen.kind == ERR_CANCELLED &&
        !client__graced(x->client, err))
        return false;
    return !clock_passed(deadline) || client__late(x, err);
}

static bool client__wait(Exchange *x, bool writing, Deadline deadline, Err *err)
{
    const Stream *s = x->conn->stream;
    Client       *c = x->client;
    StreamWant    read = stream_want(s, STREAM_READ), write = {.fd = -1};
    struct pollfd fds[3] = {{.fd = read.fd, .events = read.events}};
    int           cancel_fd = c->grace_end ? -1 : c->cancel_fd;
    int64_t       storing = x->sending ? 0 : (int64_t)(x->sent / LIMIT_STORE_SPEED);
    int64_t       idle = x->idle_ms + (storing < LIMIT_STORE_MS ? storing : LIMIT_STORE_MS);
    Deadline      until = x->idle_ms > 0 ? clock_sooner(deadline, clock_after(idle)) : deadline;
    Deadline      end = c->grace_end ? clock_sooner(until, c->grace_end) : until;
    bool          ready;

    if (writing) {
        write = stream_want(s, STREAM_WRITE);
        fds[1] = (struct pollfd){.fd = write.fd, .events = write.events};
    }
    if (read.fd < 0 || (writing && write.fd < 0))
        ready = stream_wait(s, read.fd < 0 ? STREAM_READ : STREAM_WRITE, cancel_fd, end, err);
    else
        ready = poll_wait(fds, writing ? 2 : 1, cancel_fd, end, err);
    if (!ready && err->kind == ERR_CANCELLED)
        return client__graced(c, err) && client__wait(x, writing, deadline, err);
    if (ready || err->kind != ERR_TIMEOUT)
        return ready;
    if (c->grace_end && clock_passed(c->grace_end))
        return client__graced(c, err);
    if (until < deadline)
        return err_set(err, ERR_TIMEOUT, E5000, "%s: not a byte moved for %g s", x->where, (double)idle / 1000);
    return client__late(x, err);
}

/* --- the request -------------------------------------------------------------- */

/* What frames the message and names the server is said here alone: a caller,
 * or a server's list of headers for its next call, must not say it again. */
static bool client__own_field(Str name)
{
    static const char *const own[] = {
        "Host", "User-Agent", "Accept-Encoding", "Content-Length", "Transfer-Encoding", "TE", "Trailer", "Expect",
        "Upgrade", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Extensions", "Sec-WebSocket-Protocol",
    };

    for (size_t i = 0; i < COUNT_OF(own); i++)
        if (str_eq_nocase(name, str_from(own[i])))
            return true;
    return false;
}

static bool client__put(Exchange *x, Str name, Str value, Err *err)
{
    if (!http_put_field(&x->out, name, value, err))
        return false;
    client__say_field(x->client, '>', name, value);
    return true;
}

static bool client__put_length(Exchange *x, const ClientRequest *r, Err *err)
{
    ABX_UNSET char length[24];
    bool wants_body = strcmp(r->method, "POST") == 0 || strcmp(r->method, "PUT") == 0 || strcmp(r->method, "PATCH") == 0;

    if (!r->body && !wants_body)
        return true;
    if (r->body && r->body->size < 0)
        return client__put(x, STR("Transfer-Encoding"), STR("chunked"), err);
    snprintf(length, sizeof length, "%lld", r->body ? (long long)r->body->size : 0);
    return client__put(x, STR("Content-Length"), str_from(length), err);
}

/* The wish for WebSocket, under a key that was not used before. */
static bool client__put_upgrade(Exchange *x, Err *err)
{
    unsigned char nonce[16];
    Buf           key = buf_make(WS_KEY);
    bool          ok;

    random_bytes(nonce, sizeof nonce);
    base64_put(&key, (Str){(const char *)nonce, sizeof nonce});
    ws_accept(buf_str(&key), x->accept);
    ok = client__put(x, STR("Connection"), STR("Upgrade"), err) && client__put(x, STR("Upgrade"), STR("websocket"), err) &&
         client__put(x, STR("Sec-WebSocket-Version"), STR("13"), err) &&
         client__put(x, STR("Sec-WebSocket-Key"), buf_str(&key), err);
    buf_free(&key);
    return ok;
}

/* The head of the request into `out`. */
static bool client__head(Exchange *x, const ClientRequest *r, Err *err)
{
    Client *c = x->client;
    Buf     target = buf_make(2 * LIMIT_URL);
    Arena   a = arena_make(4096);
    bool    ok;

    buf_clear(&x->out);
    x->out_at = 0;
    buf_add(&target, r->url.path);
    if (r->url.query.p) {
        buf_addc(&target, '?');
        buf_add(&target, r->url.query);
    }
    ok = !target.over || err_set(err, ERR_LIMIT, E8002, "the path of the request is longer than %zu bytes", target.limit);
    ok = ok && http_put_request_line(&x->out, str_from(r->method), buf_str(&target), err);
    if (ok)         /* a query may hold a signature */
        client__say_request(c, r);
    ok = ok && client__put(x, STR("Host"), url_authority(&r->url, &a), err) &&
         (!c->agent[0] || client__put(x, STR("User-Agent"), str_from(c->agent), err)) &&
         client__put(x, STR("Accept-Encoding"), STR("identity"), err) && client__put_length(x, r, err) &&
         (!r->websocket || client__put_upgrade(x, err));
    for (size_t i = 0; ok && i < r->headers.n; i++) {
        Header h = r->headers.v[i];
        ok = client__own_field(h.name)
                 ? err_set(err, ERR_USAGE, E8002, "the header %.*s cannot be set from outside", STR_ARG(h.name))
                 : client__put(x, h.name, h.value, err);
    }
    buf_add(&x->out, STR("\r\n"));
    arena_free(&a);
    buf_free(&target);
    if (ok && x->out.n > LIMIT_HEAD)
        return err_set(err, ERR_LIMIT, E8002, "the head of a request would be longer than %zu bytes", LIMIT_HEAD);
    return ok;
}

static bool client__give(Exchange *x, const Source *body, char *p, size_t cap, size_t *n, Err *err)
{
    *n = 0;
    if (!body->read(body->ctx, p, cap, n, err))
        return false;
    if (*n > cap)
        BUG("a source gave more than there was room for");
    x->given += (int64_t)*n;
    return true;
}

/* A body whose size was announced: just so many bytes, behind what is in `out`. */
static bool client__fill_sized(Exchange *x, const Source *body, Err *err)
{
    size_t  room = LIMIT_COPY_BLOCK - x->out.n, n;
    int64_t left = body->size - x->given;
    char    more;

    if ((uint64_t)left < room)
        room = (size_t)left;
    if (left > 0) {
        if (!client__give(x, body, buf_room(&x->out, room), room, &n, err))
            return false;
        if (n == 0)
            return err_set(err, ERR_INPUT, E5000, "what is sent ended after %lld of its %lld bytes", (long long)x->given,
                           (long long)body->size);
        buf_grew(&x->out, n);
    }
    if (x->given < body->size)
        return true;
    /* Asked before the last piece goes out: the server must not take a part for the whole. */
    if (!client__give(x, body, &more, 1, &n, err))
        return false;
    if (n)
        return err_set(err, ERR_INPUT, E5000, "what is sent grew beyond its %lld bytes meanwhile", (long long)body->size);
    x->last = true;
    return true;
}

/* One chunk. Its size line goes right in front of it; `out_at` passes over the
 * room that the line left. */
static bool client__fill_chunk(Exchange *x, const Source *body, Err *err)
{
    size_t room = LIMIT_COPY_BLOCK, n;
    char  *p = buf_room(&x->out, HTTP_CHUNK_LINE + room + 2), line[HTTP_CHUNK_LINE];

    if (!client__give(x, body, p + HTTP_CHUNK_LINE, room, &n, err))
        return false;
    if (n == 0) {
        buf_add(&x->out, STR("0\r\n\r\n"));
        x->last = true;
        return true;
    }
    size_t length = http_chunk_line(line, n);
    x->out_at = HTTP_CHUNK_LINE - length;
    memcpy(p + x->out_at, line, length);
    memcpy(p + HTTP_CHUNK_LINE + n, "\r\n", 2);
    buf_grew(&x->out, HTTP_CHUNK_LINE + n + 2);
    return true;
}

/* The next piece of the request into `out`, behind its head when that left room. */
static bool client__fill(Exchange *x, const ClientRequest *r, Err *err)
{
    if (!r->body) {
        x->last = true;
        return true;
    }
    if (r->body->size < 0)
        return x->out.n > 0 || client__fill_chunk(x, r->body, err);
    return x->out.n > LIMIT_COPY_BLOCK / 2 || client__fill_sized(x, r->body, err);
}

/* STEP_DONE: `out` is gone, and with it the request when it was the last. */
static Step client__send(Exchange *x, Err *err)
{
    while (x->out_at < x->out.n) {
        size_t n;
        Step   step = stream_write(x->conn->stream, x->out.p + x->out_at, x->out.n - x->out_at, &n, err);
        if (step != STEP_DONE)
            return step;
        x->out_at += n;
        x->sent += n;
    }
    buf_clear(&x->out);
    x->out_at = 0;
    x->sending = !x->last;
    return STEP_DONE;
}

/* --- the head of the answer ----------------------------------------------------- */

static Step client__ended(Exchange *x, Err *err)
{
    err_set(err, ERR_CLOSED, E5000, x->answered ? "the connection ended in the middle of the answer's head"
                                                : "the connection was closed without an answer");
    return STEP_ERR;
}

static Step client__in(Exchange *x, Err *err)
{
    PoolConn *k = x->conn;

    if (k->at < k->n)
        return STEP_DONE;
    k->at = k->n = 0;
    return stream_read(k->stream, k->in, POOL_IN_SIZE, &k->n, err);
}

/* A 101: the change that was asked for, and nothing that was not (RFC 6455, 4.1). */
static Step client__switched(const Exchange *x, Err *err)
{
    Headers     h = x->head.headers;
    const char *wrong = !x->accept[0] ? "to a protocol that was not asked for"
                        : !str_eq_nocase(header_get(h, "Upgrade"), STR("websocket")) ? "to another protocol than WebSocket"
                        : !header_has_token(h, "Connection", "upgrade") ? "without a field Connection: Upgrade"
                        : !str_eq(header_get(h, "Sec-WebSocket-Accept"), str_from(x->accept)) ? "without the proof that it speaks it"
                        : header_count(h, "Sec-WebSocket-Extensions") || header_count(h, "Sec-WebSocket-Protocol")
                            ? "with an extension that was not asked for" : NULL;

    if (!wrong)
        return STEP_DONE;
    err_set(err, ERR_INPUT, E5000, "bad HTTP: the server changes %s", wrong);
    return STEP_ERR;
}

/* STEP_DONE: the head of the final answer is there. */
static Step client__answer(Exchange *x, int *interim, Err *err)
{
    PoolConn *k = x->conn;

    for (;;) {
        Step step = client__in(x, err);
        if (step != STEP_DONE)
            return step;
        if (k->n == 0)
            return client__ended(x, err);
        Str in = {k->in + k->at, k->n - k->at};
        x->answered = true;
        step = http_head_next(&k->head, &in, &k->arena, &x->head, err);
        k->at = k->n - in.n;
        if (step == STEP_ERR || (step == STEP_DONE && x->head.status >= 200))
            return step;
        if (step == STEP_MORE)
            continue;
        if (x->head.status == 101)
            return client__switched(x, err);
        client__say_head(x->client, &x->head);
        if (++*interim > LIMIT_INTERIM) {
            err_set(err, ERR_LIMIT, E5000, "more than %d interim answers", LIMIT_INTERIM);
            return STEP_ERR;
        }
        arena_reset(&k->arena);
    }
}

static bool client__lost(Exchange *x, Err *err)
{
    x->lost = err->kind == ERR_CLOSED;
    return err_wrap(err, "%s", x->where);
}

/* Send and wait for the head. An answer may come at any time: it is looked for
 * between the pieces of the body, and when the connection takes no more. */
static bool client__talk(Exchange *x, const ClientRequest *r, Err *err)
{
    Deadline head = DEADLINE_NONE;
    int      interim = 0;
    Step     step;

    for (;;) {
        bool blocked = false, first = x->sent == 0;
        if (x->sending) {
            if (x->out_at == x->out.n && !client__fill(x, r, err))
                return false;
            step = client__send(x, err);
            blocked = step == STEP_MORE;
            if (step == STEP_ERR) {
                /* A server that refuses may answer and close before all was sent. */
                Err closed = *err;
                if (closed.kind == ERR_CLOSED && x->sent > 0 && client__answer(x, &interim, err) == STEP_DONE)
                    return true;
                *err = closed;
                return client__lost(x, err);
            }
        }
        /* Right behind the first bytes there cannot be an answer yet. */
        step = first ? STEP_MORE : client__answer(x, &interim, err);
        if (step == STEP_DONE)
            return true;
        if (step == STEP_ERR)
            return client__lost(x, err);
        /* A head that has begun must not drip in for ever, however long the body takes. */
        if (http_head_idle(&x->conn->head))
            head = DEADLINE_NONE;
        else if (head == DEADLINE_NONE && r->idle_ms > 0)
            head = clock_after(r->idle_ms);
        Deadline until = clock_sooner(r->deadline, head);
        if (blocked || !x->sending ? !client__wait(x, blocked, until, err) : !client__goes_on(x, until, err))
            return false;
    }
}

/* --- an exchange ---------------------------------------------------------------- */

static bool client__connect(Exchange *x, const ClientRequest *r, bool fresh, Err *err)
{
    Client *c = x->client;
    Stream *stream = NULL;
    Buf     origin = buf_make(1024);

    buf_addf(&origin, "%s://%s", r->url.tls ? "tls" : "tcp", x->where);
    buf_addc(&origin, 0);
    x->conn = fresh ? NULL : pool_take(&c->pool, origin.p);
    if (x->conn)
        client__say(c, "* the kept connection to %s", x->where);
    else if (c->dial(c->dial_ctx, &r->url, c->cancel_fd, r->deadline, &stream, err)) {
        x->conn = pool_conn(stream, origin.p);
        client__say(c, "* connected to %s", x->where);
    }
    buf_free(&origin);
    return x->conn;
}

/* The request can go out again on another connection: nothing was heard on the
 * kept one, and doing it twice does no harm. */
static bool client__can_repeat(const Exchange *x, const ClientRequest *r)
{
    if (!x->lost || !x->conn->reused || x->answered)
        return false;
    return x->sent == 0 || (r->idempotent && (!r->body || r->rewind));
}

static bool client__repeat(Exchange *x, const ClientRequest *r, Err *err)
{
    bool again = x->sent > 0;       /* else `out` still holds all that was taken from the source */

    client__say(x->client, "* it was closed: once more on a new one");
    pool_drop(x->conn);
    x->conn = NULL;
    x->sending = true;
    x->lost = false;
    x->maybe = again;
    if (again) {
        x->sent = 0;
        x->given = 0;
        x->last = false;
        if ((r->body && !r->rewind(r->body->ctx, err)) || !client__head(x, r, err))
            return false;
    }
    return client__connect(x, r, true, err) && (!again || client__fill(x, r, err)) && client__talk(x, r, err);
}

static bool client__open(Exchange *x, const ClientRequest *r, Err *err)
{
    if (!client__head(x, r, err) || !client__connect(x, r, false, err))
        return false;
    x->sending = true;
    if (!client__fill(x, r, err))
        return false;
    if (!client__talk(x, r, err) && !(client__can_repeat(x, r) && client__repeat(x, r, err))) {
        /* "Unsent" is a promise: it counts all connections that were tried. */
        if (x->lost && x->sent == 0 && !x->maybe) {
            err->kind = ERR_UNSENT;
            err->code = E5001;
        } else if (err->kind == ERR_UNSENT && x->maybe) {
            err->kind = ERR_CLOSED;
        }
        return false;
    }
    if (!http_body_of(HTTP_ANSWER, str_from(r->method), &x->head, &x->body, err))
        return err_wrap(err, "%s", x->where);
    x->keep = x->head.status != 101 && http_keeps(&x->head) && !x->sending && x->body.state != HTTP_BODY_UNTIL_END &&
              !header_has_token(r->headers, "Connection", "close");
    client__say_head(x->client, &x->head);
    return true;
}

Stream *client_take(Exchange *x, Buf *rest)
{
    PoolConn *k = x->conn;
    Stream   *s = k->stream;

    if (x->head.status != 101)
        BUG("a connection that did not change its protocol");
    buf_add(rest, (Str){k->in + k->at, k->n - k->at});
    k->stream = NULL;
    client_close(x);
    return s;
}

bool client_open(Client *c, const ClientRequest *request, Exchange **out, Err *err)
{
    Exchange *x = mem_new(sizeof *x);

    *out = NULL;
    x->client = c;
    x->idle_ms = request->idle_ms;
    x->out = buf_make(LIMIT_HEAD + LIMIT_COPY_BLOCK);
    Buf where = buf_make(512);
    buf_addf(&where, request->url.ipv6 ? "[%.*s]:%d" : "%.*s:%d", STR_ARG(request->url.host), request->url.port);
    x->where = mem_str(buf_str(&where));
    buf_free(&where);
    if (!client__open(x, request, err)) {
        x->broken = true;
        client__say(c, "* %s", err->text);
        client_close(x);
        return false;
    }
    buf_free(&x->out);
    *out = x;
    return true;
}

int client_status(const Exchange *x)
{
    return x->head.status;
}

Headers client_headers(const Exchange *x)
{
    return x->head.headers;
}

int64_t client_length(const Exchange *x)
{
    return x->body.length;
}

bool client_framed(const Exchange *x)
{
    return x->body.state != HTTP_BODY_UNTIL_END;
}

/* --- the body ------------------------------------------------------------------- */

/* How much may be read right into the caller's memory: what is certainly body,
 * when it is enough to be worth a call of its own. */
static size_t client__direct(const HttpBody *b, size_t cap)
{
    if (cap < CLIENT_DIRECT || (b->state != HTTP_BODY_LENGTH && b->state != HTTP_BODY_UNTIL_END && b->state != HTTP_BODY_CHUNK))
        return 0;
    if (b->state == HTTP_BODY_UNTIL_END)
        return cap;
    if (b->state == HTTP_BODY_CHUNK && b->left < POOL_IN_SIZE)
        return 0;       /* the buffer takes the next size line along */
    return (uint64_t)b->left < cap ? (size_t)b->left : cap;
}

static Step client__body(Exchange *x, char *p, size_t cap, size_t *n, Err *err)
{
    PoolConn *k = x->conn;
    Str       piece = {0};

    while (x->body.state != HTTP_BODY_DONE) {
        size_t direct = k->at == k->n ? client__direct(&x->body, cap) : 0, got;
        Step   step = direct ? stream_read(k->stream, p, direct, &got, err) : client__in(x, err);
        if (step != STEP_DONE)
            return step;
        Str    in = direct ? (Str){p, got} : (Str){k->in + k->at, k->n - k->at};
        if (in.n == 0) {
            if (!http_body_ended(&x->body, err))
                return STEP_ERR;
            x->body.state = HTTP_BODY_DONE;
            break;
        }
        if (in.n > cap)
            in.n = cap;
        size_t had = in.n;
        step = http_body_next(&x->body, &in, &piece, err);
        if (!direct)
            k->at += had - in.n;
        if (step == STEP_ERR)
            return step;
        if (step == STEP_DONE && piece.n) {
            if (!direct)
                memcpy(p, piece.p, piece.n);
            *n = piece.n;
            return STEP_DONE;
        }
    }
    return STEP_DONE;
}

Step client_try(Exchange *x, char *p, size_t cap, size_t *n, Err *err)
{
    *n = 0;
    if (cap == 0)
        BUG("no room to read into");
    if (x->broken) {
        err_set(err, ERR_CLOSED, E5000, "%s: the answer broke off before", x->where);
        return STEP_ERR;
    }
    Step step = client__body(x, p, cap, n, err);
    if (step == STEP_ERR) {
        x->broken = true;
        err_wrap(err, "%s", x->where);
    }
    return step;
}

StreamWant client_want(const Exchange *x)
{
    if (x->broken || x->body.state == HTTP_BODY_DONE || x->conn->at < x->conn->n)
        return (StreamWant){.fd = -1};
    return stream_want(x->conn->stream, STREAM_READ);
}

bool client_read(Exchange *x, char *p, size_t cap, size_t *n, Deadline deadline, Err *err)
{
    Step step;

    *n = 0;
    if (!client__goes_on(x, deadline, err))
        return false;
    while ((step = client_try(x, p, cap, n, err)) == STEP_MORE)
        if (!client__wait(x, false, deadline, err))
            return false;
    return step == STEP_DONE;
}

bool client_text(Exchange *x, size_t limit, Arena *a, Str *body, Deadline deadline, Err *err)
{
    Buf    text = buf_make(limit);
    size_t n;
    bool   ok;
    ABX_UNSET char piece[8192];

    if (x->body.state != HTTP_BODY_DONE && x->body.length >= 0 && (uint64_t)x->body.length > limit)
        return err_set(err, ERR_LIMIT, E5000, "%s: an answer of more than %zu bytes", x->where, limit);
    while ((ok = client_read(x, piece, sizeof piece, &n, deadline, err)) && n && !text.over)
        buf_add(&text, (Str){piece, n});
    if (ok && text.over)
        ok = err_set(err, ERR_LIMIT, E5000, "%s: an answer of more than %zu bytes", x->where, limit);
    if (ok)
        *body = arena_str(a, buf_str(&text));
    buf_free(&text);
    return ok;
}

/* What little is left of an answer and already there, such as the last chunk. */
static void client__finish(Exchange *x)
{
    ABX_UNSET char piece[4096];
    size_t n;
    ABX_UNSET Err err;

    for (int i = 0; i < CLIENT_REST && x->body.state != HTTP_BODY_DONE; i++)
        if (client_try(x, piece, sizeof piece, &n, &err) != STEP_DONE)
            return;
}

void client_close(Exchange *x)
{
    if (!x)
        return;
    if (x->keep && !x->broken)
        client__finish(x);
    if (x->conn && x->keep && !x->broken && x->body.state == HTTP_BODY_DONE && x->conn->at == x->conn->n)
        pool_keep(&x->client->pool, x->conn);
    else
        pool_drop(x->conn);
    buf_free(&x->out);
    mem_free(x->where);
    mem_free(x);
}
