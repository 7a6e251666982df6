#include "net/httpd.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/listen.h"
#include "base/time.h"
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

typedef enum HttpdState {
    HTTPD_HEAD,         /* reads a head; at rest when no byte of it came */
    HTTPD_CALL,         /* a request is being read and answered */
    HTTPD_TUNNEL,       /* the same after 101: raw bytes */
    HTTPD_LINGER,       /* our side is closed; reads until the client closes its own */
    HTTPD_DEAD,         /* to be freed when the wake is over */
} HttpdState;

typedef struct HttpdConn {
    HttpdCall      call;            /* first: a call is its connection */
    Httpd         *httpd;
    struct HttpdConn *next, *prev;
    LoopWatch      watch;
    int            fd;
    HttpdState     state;
    HttpHeadReader reader;
    HttpBody       body;
    Arena          arena;
    Buf            rest;            /* came, and nobody took it yet */
    bool           more;            /* something came behind the head */
    Buf            out;             /* not sent yet: out.p[sent ...] */
    size_t         sent;
    int            file;            /* follows `out`; -1: none */
    int64_t        file_at, file_left;
    Deadline       read_by;         /* until when the next byte must come */
    Deadline       send_by;
    bool           eof;             /* the client sends no more */
    bool           paused;          /* the handler wants no more of the body yet */
    bool           body_over;       /* all of the body was handed on */
    bool           started;         /* the head of the answer was written */
    bool           finished;        /* and so was its end */
    bool           chunked;
    bool           no_body;         /* an answer to HEAD, or one that has none */
    bool           close;           /* after this answer */
    bool           hungry;          /* room() is owed as soon as there is any */
    bool           again;           /* room() is owed in the next turn */
    bool           cut;             /* the handler gave up */
    bool           entered;         /* begin was called, gone is owed */
    int64_t        left;            /* of the announced answer; -1: not announced */
    Buf            gather;          /* httpd_collect() */
    void         (*then)(HttpdCall *c, Str body);
} HttpdConn;

struct Httpd {
    Loop          *loop;
    HttpdBegin    *begin;
    void          *ctx;
    HttpdConn     *conns;
    Listen        *listener;
    char           scratch[LIMIT_HTTPD_READ];
};

static const HttpdHandler httpd__nobody;

static HttpdConn *httpd__conn(const HttpdCall *c)
{
    return (HttpdConn *)c;
}

static bool httpd__serving(const HttpdConn *k)
{
    return k->state == HTTPD_CALL || k->state == HTTPD_TUNNEL;
}

/* --- writing an answer ------------------------------------------------------ */

static void httpd__date(Buf *out)
{
    ABX_UNSET char text[TIME_HTTP_SIZE];

    time_http(clock_unix_ms(), text);
    buf_addf(out, "Date: %s\r\n", text);
}

/* A request whose body is not read yet, and is long, is not read at all: the
 * client is told to send the next one elsewhere. */
static void httpd__judge_body(HttpdConn *k)
{
    bool waits = header_count(k->call.head.headers, "Expect") > 0;

    if (!k->body_over && k->body.state != HTTP_BODY_DONE &&
        (waits || k->body.length < 0 || (uint64_t)k->body.length > LIMIT_HTTPD_DRAIN))
        k->close = true;
}

static void httpd__head(HttpdConn *k, int status, const Header *fields, size_t n)
{
    ABX_UNSET Err err;

    buf_addf(&k->out, "HTTP/1.1 %d %s\r\n", status, http_reason(status));
    httpd__date(&k->out);
    for (size_t i = 0; i < n; i++) {
        size_t before = k->out.n;
        if (!http_put_field(&k->out, fields[i].name, fields[i].value, &err))
            k->out.n = before;
    }
    k->started = true;
}

/* There is something to send, which the client must take in time. */
static void httpd__sends(HttpdConn *k)
{
    if (k->send_by == DEADLINE_NONE)
        k->send_by = clock_after(LIMIT_HTTPD_SEND_MS);
    k->watch.events |= POLLOUT;
    k->watch.deadline = clock_sooner(k->watch.deadline, k->send_by);
}

void httpd_start(HttpdCall *c, int status, const Header *fields, size_t n, int64_t length)
{
    HttpdConn *k = httpd__conn(c);

    if (k->started)
        BUG("a second answer");
    httpd__judge_body(k);
    bool none = status == 204 || status == 304;
    k->no_body = none || str_eq(c->head.method, STR("HEAD"));
    k->left = k->no_body ? 0 : length;
    k->chunked = length < 0 && !k->no_body && c->head.minor == 1;
    if (length < 0 && !k->no_body && !k->chunked)
        k->close = true;
    httpd__head(k, status, fields, n);
    if (length >= 0 && !none)
        buf_addf(&k->out, "Content-Length: %lld\r\n", (long long)length);
    else if (k->chunked)
        buf_add(&k->out, STR("Transfer-Encoding: chunked\r\n"));
    if (k->close)
        buf_add(&k->out, STR("Connection: close\r\n"));
    else if (c->head.minor == 0)
        buf_add(&k->out, STR("Connection: keep-alive\r\n"));
    buf_add(&k->out, STR("\r\n"));
    httpd__sends(k);
}

bool httpd_started(const HttpdCall *c)
{
    return httpd__conn(c)->started;
}

/* Bytes that wait for the client. */
static size_t httpd__waiting(const HttpdConn *k)
{
    return k->out.n - k->sent;
}

size_t httpd_room(HttpdCall *c)
{
    HttpdConn *k = httpd__conn(c);
    size_t     waiting = httpd__waiting(k);

    if (k->finished || k->cut || waiting >= LIMIT_HTTPD_ROOM) {
        k->hungry = true;
        return 0;
    }
    return LIMIT_HTTPD_ROOM - waiting;
}

static void httpd__wake_soon(HttpdConn *k)
{
    k->watch.deadline = 0;
}

void httpd_abort(HttpdCall *c)
{
    HttpdConn *k = httpd__conn(c);

    k->cut = true;
    httpd__wake_soon(k);
}

void httpd_write(HttpdCall *c, Str bytes)
{
    HttpdConn *k = httpd__conn(c);
    ABX_UNSET char line[HTTP_CHUNK_LINE];

    if (!k->started || k->finished)
        BUG("a write outside an answer");
    if (bytes.n == 0 || k->no_body || k->cut)
        return;
    if (k->left >= 0 && k->state == HTTPD_CALL) {
        if ((uint64_t)k->left < bytes.n) {          /* more than was announced */
            httpd_abort(c);
            return;
        }
        k->left -= (int64_t)bytes.n;
    }
    if (k->sent && k->sent == k->out.n) {
        buf_clear(&k->out);
        k->sent = 0;
    }
    if (k->state == HTTPD_TUNNEL && !httpd__waiting(k)) {     /* what goes at once is not kept */
        ssize_t sent = send(k->fd, bytes.p, bytes.n, MSG_NOSIGNAL);
        str_skip(&bytes, sent > 0 ? (size_t)sent : 0);
        if (!bytes.n)
            return;
    }
    if (k->chunked)
        buf_add(&k->out, (Str){line, http_chunk_line(line, bytes.n)});
    buf_add(&k->out, bytes);
    if (k->chunked)
        buf_add(&k->out, STR("\r\n"));
    if (k->out.over)
        httpd_abort(c);
    httpd__sends(k);
}

void httpd_finish(HttpdCall *c)
{
    HttpdConn *k = httpd__conn(c);

    if (!k->started || k->finished)
        BUG("the end of no answer");
    if (k->chunked)
        buf_add(&k->out, STR("0\r\n\r\n"));
    if (k->left > 0 && k->file < 0 && k->state == HTTPD_CALL)
        k->cut = true;                              /* less than was announced */
    k->paused = false;                              /* nobody is left to resume */
    k->finished = true;
    httpd__wake_soon(k);
}

void httpd_file(HttpdCall *c, int fd, int64_t offset, int64_t n)
{
    HttpdConn *k = httpd__conn(c);

    if (k->chunked || k->file >= 0)
        BUG("a file in a chunked answer");
    if (k->no_body || n == 0) {
        close(fd);
    } else {
        k->file = fd;
        k->file_at = offset;
        k->file_left = n;
        k->send_by = clock_after(LIMIT_HTTPD_SEND_MS);
    }
    httpd_finish(c);
}

void httpd_answer(HttpdCall *c, int status, const char *type, Str body)
{
    Header field = {STR("Content-Type"), str_from(type)};

    httpd_start(c, status, &field, type != NULL, (int64_t)body.n);
    httpd_write(c, body);
    httpd_finish(c);
}

void httpd_again(HttpdCall *c)
{
    httpd__conn(c)->again = true;
    httpd__wake_soon(httpd__conn(c));
}

void httpd_tunnel(HttpdCall *c, const Header *fields, size_t n)
{
    HttpdConn *k = httpd__conn(c);

    if (k->started)
        BUG("a second answer");
    httpd__head(k, 101, fields, n);
    buf_add(&k->out, STR("\r\n"));
    k->state = HTTPD_TUNNEL;
    k->close = true;
    k->left = -1;
    k->body_over = false;
    k->read_by = DEADLINE_NONE;
    k->watch.events |= POLLOUT;
    httpd__wake_soon(k);
}

/* --- the request's body ------------------------------------------------------ */

void httpd_pause(HttpdCall *c)
{
    HttpdConn *k = httpd__conn(c);

    k->paused = !k->finished;
}

void httpd_resume(HttpdCall *c)
{
    HttpdConn *k = httpd__conn(c);

    if (k->paused)
        httpd__wake_soon(k);
    k->paused = false;
}

int64_t httpd_length(const HttpdCall *c)
{
    const HttpdConn *k = httpd__conn(c);

    return k->body.length < 0 && k->body_over ? 0 : k->body.length;
}

static void httpd__gather(HttpdCall *c, Str piece)
{
    HttpdConn *k = httpd__conn(c);

    buf_add(&k->gather, piece);
    if (k->gather.over && !k->started) {
        c->handler = &httpd__nobody;
        k->close = true;
        httpd_answer(c, 413, "text/plain; charset=utf-8", STR("request body too large"));
    }
}

static void httpd__gathered(HttpdCall *c)
{
    HttpdConn *k = httpd__conn(c);
    Buf        bytes = k->gather;

    k->gather = (Buf){0};
    c->handler = &httpd__nobody;
    k->then(c, buf_str(&bytes));
    buf_free(&bytes);
}

static void httpd__gather_gone(HttpdCall *c, bool whole)
{
    (void)whole;
    buf_free(&httpd__conn(c)->gather);
}

void httpd_collect(HttpdCall *c, size_t limit, void (*then)(HttpdCall *c, Str body))
{
    static const HttpdHandler gather = {.body = httpd__gather, .end = httpd__gathered, .gone = httpd__gather_gone};
    HttpdConn *k = httpd__conn(c);

    k->gather = buf_make(limit);
    k->then = then;
    c->handler = &gather;
    if (k->body.length > 0 && (uint64_t)k->body.length > limit) {
        k->gather.over = true;
        httpd__gather(c, STR("x"));
    }
}

/* --- the life of a connection ------------------------------------------------ */

static void httpd__drop(HttpdConn *k)
{
    Httpd *h = k->httpd;

    loop_remove(h->loop, &k->watch);
    if (k->prev)
        k->prev->next = k->next;
    else
        h->conns = k->next;
    if (k->next)
        k->next->prev = k->prev;
    close(k->fd);
    if (k->file >= 0)
        close(k->file);
    http_head_free(&k->reader);
    buf_free(&k->rest);
    buf_free(&k->out);
    buf_free(&k->gather);
    arena_free(&k->arena);
    mem_free(k);
}

/* The call is over: tell its handler, forget it. */
static void httpd__leave(HttpdConn *k, bool whole)
{
    if (!k->entered)
        return;
    k->entered = false;
    if (k->call.handler->gone)
        k->call.handler->gone(&k->call, whole);
    if (k->file >= 0)
        close(k->file);
    k->file = -1;
    buf_free(&k->gather);
    k->call = (HttpdCall){.handler = &httpd__nobody, .arena = &k->arena};
}

static void httpd__die(HttpdConn *k)
{
    if (k->state == HTTPD_DEAD)
        return;
    k->state = HTTPD_DEAD;
    httpd__leave(k, false);
}

/* Ready for the next request on the same connection. */
static void httpd__rest(HttpdConn *k)
{
    k->state = HTTPD_HEAD;
    k->paused = k->body_over = k->started = k->finished = k->chunked = k->no_body = k->hungry = k->again = false;
    k->left = -1;
    k->sent = 0;
    buf_free(&k->out);
    /* A long head does not stay in memory with a connection at rest. */
    if (k->arena.used > 4096)
        arena_free(&k->arena);
    arena_reset(&k->arena);
    if (k->reader.bytes.cap > 4096)
        http_head_free(&k->reader);
    k->send_by = DEADLINE_NONE;
    k->read_by = clock_after(LIMIT_HTTPD_KEEP_MS);
}

/* Our side is closed; reading on for a while lets the answer arrive, where
 * closing at once would make the kernel send a reset in front of it. */
static void httpd__linger(HttpdConn *k)
{
    k->state = HTTPD_LINGER;
    buf_free(&k->rest);
    buf_free(&k->out);
    k->sent = 0;
    k->send_by = DEADLINE_NONE;
    if (k->eof || shutdown(k->fd, SHUT_WR) != 0)
        httpd__die(k);
    k->read_by = clock_after(LIMIT_HTTPD_LINGER_MS);
}

/* An answer to something that never became a call. */
static void httpd__refuse(HttpdConn *k, int status)
{
    ABX_UNSET char text[80];

    k->call.head = (HttpHead){.minor = 1, .method = STR("GET")};
    k->state = HTTPD_CALL;
    k->body = (HttpBody){.state = HTTP_BODY_DONE};
    k->body_over = k->close = true;
    snprintf(text, sizeof text, "%d %s", status, http_reason(status));
    httpd_answer(&k->call, status, "text/plain; charset=utf-8", str_from(text));
}

/* 0: the head is fit to be served; else the status that refuses it. */
static int httpd__head_fault(HttpdConn *k)
{
    const HttpHead *head = &k->call.head;
    Str             expect = header_get(head->headers, "Expect");
    ABX_UNSET Err err;

    if (!http_body_of(HTTP_REQUEST, head->method, head, &k->body, &err))
        return err.status ? err.status : 400;
    /* RFC 9112, 3.2: no Host, or two of them, is a bad request. */
    if (header_count(head->headers, "Host") > 1 || (head->minor == 1 && header_count(head->headers, "Host") == 0))
        return 400;
    if (expect.n && !str_eq_nocase(expect, STR("100-continue")))
        return 417;
    return 0;
}

/* A head is there. */
static void httpd__enter(HttpdConn *k)
{
    int fault = httpd__head_fault(k);

    if (fault) {
        httpd__refuse(k, fault);
        return;
    }
    k->state = HTTPD_CALL;
    k->close = !http_keeps(&k->call.head);
    k->read_by = clock_after(LIMIT_HTTPD_BODY_MS);
    k->entered = true;
    k->httpd->begin(k->httpd->ctx, &k->call);
    if (!k->started && k->body.state != HTTP_BODY_DONE && k->call.head.minor == 1 &&
        header_has_token(k->call.head.headers, "Expect", "100-continue")) {
        buf_add(&k->out, STR("HTTP/1.1 100 Continue\r\n\r\n"));
        k->send_by = clock_after(LIMIT_HTTPD_SEND_MS);
    }
}

static void httpd__body_end(HttpdConn *k)
{
    k->body_over = true;
    k->read_by = DEADLINE_NONE;
    if (k->call.handler->end)
        k->call.handler->end(&k->call);
}

/* Give the handler what came of the body. True when that changed anything. */
static bool httpd__take_body(HttpdConn *k, Str *in)
{
    Str before = *in, piece;
    ABX_UNSET Err err;

    while (k->state == HTTPD_CALL && !k->body_over && !k->paused && !k->cut) {
        if (k->body.state == HTTP_BODY_DONE) {
            httpd__body_end(k);
            return true;
        }
        Step step = http_body_next(&k->body, in, &piece, &err);
        if (step == STEP_ERR) {
            if (k->started)
                k->cut = true;
            else
                httpd__leave(k, false), httpd__refuse(k, err.status ? err.status : 400);
            return true;
        }
        if (step == STEP_MORE)
            break;
        if (piece.n && k->call.handler->body)
            k->call.handler->body(&k->call, piece);
    }
    return in->n != before.n;
}

static bool httpd__take_raw(HttpdConn *k, Str *in)
{
    Str piece = *in;

    if (k->paused || k->cut || !in->n)
        return false;
    str_skip(in, in->n);
    if (k->call.handler->body)
        k->call.handler->body(&k->call, piece);
    return true;
}

/* Use up what came, as far as the state allows. True when anything changed. */
static bool httpd__take(HttpdConn *k, Str *in)
{
    ABX_UNSET Err err;
    Step step;

    switch (k->state) {
    case HTTPD_HEAD:
        if (!in->n)
            return false;
        if (!k->arena.p)
            k->arena = arena_make(LIMIT_HTTPD_ARENA);
        if (http_head_idle(&k->reader))
            k->read_by = clock_after(LIMIT_HTTPD_HEAD_MS);
        step = http_head_next(&k->reader, in, &k->arena, &k->call.head, &err);
        if (step == STEP_ERR)
            httpd__refuse(k, err.status ? err.status : err.kind == ERR_LIMIT ? 431 : 400);
        k->more = in->n > 0;
        if (step == STEP_DONE)
            httpd__enter(k);
        return step != STEP_MORE;
    case HTTPD_CALL:
        return httpd__take_body(k, in);
    case HTTPD_TUNNEL:
        return httpd__take_raw(k, in);
    case HTTPD_LINGER:
    case HTTPD_DEAD:
        str_skip(in, in->n);
        break;
    }
    return false;
}

/* The client sends no more. */
static void httpd__ended(HttpdConn *k)
{
    k->eof = true;
    if (k->state == HTTPD_HEAD || k->state == HTTPD_LINGER)
        httpd__die(k);
    else if (k->state == HTTPD_TUNNEL && !k->body_over)
        httpd__body_end(k);
    else if (k->state == HTTPD_CALL && !k->body_over && k->started)
        httpd__die(k);
    else if (k->state == HTTPD_CALL && !k->body_over)
        httpd__leave(k, false), httpd__refuse(k, 400);
}

/* --- sending ------------------------------------------------------------------ */

static bool httpd__blocked(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

/* Some file systems cannot be sent from: read those. Not into the scratch of
 * all, where the next request may stand. */
static ssize_t httpd__copy(HttpdConn *k, size_t want)
{
    ABX_UNSET char p[16384];
    ssize_t n = pread(k->file, p, want < sizeof p ? want : sizeof p, k->file_at);

    if (n <= 0)
        return 0;
    ssize_t sent = send(k->fd, p, (size_t)n, MSG_NOSIGNAL);
    if (sent > 0)
        k->file_at += sent;
    return sent;
}

static ssize_t httpd__send_file(HttpdConn *k)
{
    size_t  want = k->file_left > (1 << 20) ? 1 << 20 : (size_t)k->file_left;
    off_t   at = k->file_at;
    ssize_t n = sendfile(k->fd, k->file, &at, want);

    if (n < 0 && (errno == EINVAL || errno == ENOSYS))
        return httpd__copy(k, want);
    if (n > 0)
        k->file_at += n;
    return n;
}

/* One piece to the client: bytes sent, 0 when there is none or not now, -1
 * when it is lost. */
static ssize_t httpd__send_piece(HttpdConn *k)
{
    ssize_t n;

    if (httpd__waiting(k)) {
        n = send(k->fd, k->out.p + k->sent, httpd__waiting(k), MSG_NOSIGNAL);
        if (n > 0)
            k->sent += (size_t)n;
    } else if (k->file >= 0) {
        n = httpd__send_file(k);
        if (n == 0)
            return -1;                              /* the file became shorter */
        if (n > 0 && (k->file_left -= n) == 0) {
            close(k->file);
            k->file = -1;
        }
    } else {
        return 0;
    }
    return httpd__blocked(n) ? 0 : n;
}

static bool httpd__pending(const HttpdConn *k)
{
    return httpd__waiting(k) || k->file >= 0;
}

static void httpd__flush(HttpdConn *k)
{
    /* Others wait, too: no more than this much for one client at a time. */
    for (int64_t budget = 4 << 20; budget > 0 && httpd__pending(k);) {
        ssize_t n = httpd__send_piece(k);
        if (n < 0) {
            httpd__die(k);
            return;
        }
        if (n == 0)
            break;
        budget -= n;
        k->send_by = clock_after(LIMIT_HTTPD_SEND_MS);
    }
    if (!httpd__pending(k))
        k->send_by = DEADLINE_NONE;
    if (!httpd__waiting(k)) {
        if (k->out.cap > LIMIT_HTTPD_ROOM)
            buf_free(&k->out);
        buf_clear(&k->out);
        k->sent = 0;
    } else if (k->sent > k->out.n / 2) {
        buf_drop(&k->out, k->sent);
        k->sent = 0;
    }
}

static void httpd__offer_room(HttpdConn *k)
{
    bool owed = k->again || (k->hungry && httpd__waiting(k) < LIMIT_HTTPD_ROOM);

    if (!owed || !httpd__serving(k) || k->finished || k->cut)
        return;
    k->again = k->hungry = false;
    if (k->call.handler->room)
        k->call.handler->room(&k->call);
}

/* What is finished ends: true when the connection went on to something else. */
static bool httpd__settle(HttpdConn *k)
{
    if (k->state == HTTPD_DEAD || !httpd__serving(k))
        return false;
    if (k->cut) {
        httpd__die(k);
        return true;
    }
    if (!k->finished || httpd__pending(k))
        return false;
    if (k->state == HTTPD_TUNNEL) {
        if (k->body_over)
            httpd__leave(k, true), httpd__die(k);
        else if (!k->no_body)
            shutdown(k->fd, SHUT_WR), k->no_body = true;
        return false;
    }
    if (!k->body_over && !k->close)
        return false;                               /* the rest of the body is read and dropped */
    httpd__leave(k, true);
    if (k->close)
        httpd__linger(k);
    else
        httpd__rest(k);
    return true;
}

int httpd_socket(const HttpdCall *c)
{
    const HttpdConn *k = httpd__conn(c);

    return k->more || k->eof || k->body.state != HTTP_BODY_DONE || httpd__pending(k) ? -1 : k->fd;
}

/* --- waking -------------------------------------------------------------------- */

static void httpd__late(HttpdConn *k, int64_t now)
{
    bool idle = k->state == HTTPD_HEAD && http_head_idle(&k->reader);

    if (k->send_by <= now || k->state == HTTPD_LINGER || idle || k->started) {
        httpd__die(k);
    } else {
        httpd__leave(k, false);
        httpd__refuse(k, 408);
    }
}

static bool httpd__wants_more(const HttpdConn *k)
{
    if (k->eof || k->rest.n)
        return false;
    if (httpd__serving(k))
        return !k->body_over && !k->paused && !k->cut;
    return k->state != HTTPD_DEAD;
}

/* Read, use, answer, until nothing moves any more. */
static void httpd__run(HttpdConn *k, bool readable)
{
    Httpd *h = k->httpd;
    Buf    kept = k->rest;
    Str    in = buf_str(&kept);
    bool   moved;

    k->rest = buf_make(LIMIT_HTTPD_READ);
    if (readable && !in.n) {
        ssize_t n = recv(k->fd, h->scratch, sizeof h->scratch, 0);
        if (n > 0) {
            in = (Str){h->scratch, (size_t)n};
            if (k->state == HTTPD_CALL)
                k->read_by = clock_after(LIMIT_HTTPD_BODY_MS);
        } else if (n == 0) {
            httpd__ended(k);
        } else if (!httpd__blocked(n)) {
            httpd__die(k);
        }
    }
    do {
        moved = httpd__take(k, &in);
        httpd__flush(k);
        httpd__offer_room(k);
        moved |= httpd__settle(k);
    } while (moved && k->state != HTTPD_DEAD);
    if (k->state != HTTPD_DEAD && k->state != HTTPD_LINGER)
        buf_add(&k->rest, in);
    buf_free(&kept);
}

static void httpd__wake(LoopWatch *w, short revents)
{
    HttpdConn *k = w->owner;
    int64_t    now = clock_mono_ms();

    w->deadline = DEADLINE_NONE;
    if ((k->read_by <= now && httpd__wants_more(k)) || k->send_by <= now)
        httpd__late(k, now);
    if ((revents & POLLERR) || ((revents & POLLHUP) && !(revents & POLLIN) && !httpd__wants_more(k)))
        httpd__die(k);
    if (k->state != HTTPD_DEAD)
        httpd__run(k, (revents & (POLLIN | POLLHUP)) != 0 && httpd__wants_more(k));
    if (k->state == HTTPD_DEAD) {
        httpd__drop(k);
        return;
    }
    w->events = (short)((httpd__wants_more(k) ? POLLIN : 0) | (httpd__pending(k) ? POLLOUT : 0));
    /* 0: a handler asked to be woken soon, and its call is not over. */
    if (w->deadline != 0 || !httpd__serving(k))
        w->deadline = clock_sooner(httpd__wants_more(k) ? k->read_by : DEADLINE_NONE, k->send_by);
}

void httpd_adopt(Httpd *h, int fd)
{
    HttpdConn *k = mem_new(sizeof *k);
    int        on = 1, rest = LIMIT_HTTPD_PROBE_S;

    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    /* A client that is gone is told from one that has said all by this alone. */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &rest, sizeof rest);
    *k = (HttpdConn){.httpd = h, .fd = fd, .file = -1, .next = h->conns, .reader = http_head_reader(HTTP_REQUEST),
                     .rest = buf_make(LIMIT_HTTPD_READ), .out = buf_make(LIMIT_HTTPD_OUT)};
    k->call = (HttpdCall){.handler = &httpd__nobody, .arena = &k->arena};
    httpd__rest(k);
    k->watch = (LoopWatch){.fd = fd, .events = POLLIN, .deadline = k->read_by, .wake = httpd__wake, .owner = k};
    if (h->conns)
        h->conns->prev = k;
    h->conns = k;
    loop_add(h->loop, &k->watch);
}

/* --- listening ------------------------------------------------------------------ */

static void httpd__take_connection(void *ctx, int fd)
{
    httpd_adopt(ctx, fd);
}

/* No descriptor is left: the connection that rested longest makes room. One
 * that came just now may have a request on its way. */
static bool httpd__evict(void *ctx)
{
    Httpd     *h = ctx;
    HttpdConn *oldest = NULL;
    Deadline   rested = clock_after(LIMIT_HTTPD_KEEP_MS - 1000);

    for (HttpdConn *k = h->conns; k; k = k->next)
        if (k->state == HTTPD_HEAD && http_head_idle(&k->reader) && k->read_by <= rested) {
            oldest = k;
            rested = k->read_by;
        }
    if (oldest)
        httpd__drop(oldest);
    return oldest != NULL;
}

bool httpd_listen(Httpd *h, const char *host, int *port, Err *err)
{
    static const ListenOwner owner = {.take = httpd__take_connection, .spare = httpd__evict};

    if (h->listener)
        BUG("a server listens at one address");
    return listen_open(h->loop, host, port, &owner, h, &h->listener, err);
}

Httpd *httpd_make(Loop *loop, HttpdBegin *begin, void *ctx)
{
    Httpd *h = mem_new(sizeof *h);

    h->loop = loop;
    h->begin = begin;
    h->ctx = ctx;
    return h;
}

void httpd_free(Httpd *h)
{
    while (h->conns) {
        httpd__leave(h->conns, false);
        httpd__drop(h->conns);
    }
    listen_close(h->listener);
    mem_free(h);
}
