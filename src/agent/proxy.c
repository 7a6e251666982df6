#include "agent/proxy.h"

#include "agent/answer.h"
#include "agent/daemon.h"
#include "agent/door.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct Proxy {
    Daemon        *daemon;
    HttpdCall     *call;
    LoopWatch      watch;
    int            fd;
    bool           connected;
    bool           deaf;            /* the service takes no more of the request */
    bool           chunked;         /* the request's body goes out in chunks */
    bool           upgrade;         /* the client asks for one */
    bool           tunnel;          /* and got it */
    bool           half;            /* close our sending side when all was sent */
    bool           over;            /* the answer is complete */
    Buf            out;             /* to the service: out.p[sent ...] */
    size_t         sent;
    HttpHeadReader reader;
    HttpBody       body;
    bool           answering;       /* the head of the answer came */
    int            interim;
    Arena          arena;           /* the head of the answer */
} Proxy;

static void proxy__gone(HttpdCall *c, bool whole)
{
    Proxy *p = c->ctx;

    (void)whole;
    loop_remove(&p->daemon->loop, &p->watch);
    if (p->fd >= 0)
        close(p->fd);
    http_head_free(&p->reader);
    buf_free(&p->out);
    arena_free(&p->arena);
    mem_free(p);
}

/* The service is of no more use. */
static void proxy__hang_up(Proxy *p)
{
    p->over = true;
    loop_remove(&p->daemon->loop, &p->watch);
}

static void proxy__bad_gateway(Proxy *p)
{
    proxy__hang_up(p);
    if (httpd_started(p->call))
        httpd_abort(p->call);
    else
        answer_plain(p->call, 502, "Bad Gateway");
}

/* --- the request --- */

static bool proxy__is_hop(Str name, Headers all)
{
    static const char *const hop[] = {
        "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "TE", "Trailer",
        "Transfer-Encoding", "Upgrade", "Content-Length",
    };
    ABX_UNSET char token[128];

    for (size_t i = 0; i < COUNT_OF(hop); i++)
        if (str_eq_nocase(name, str_from(hop[i])))
            return true;
    /* Fields that Connection names belong to the connection, too. */
    if (name.n >= sizeof token)
        return false;
    memcpy(token, name.p, name.n);
    token[name.n] = '\0';
    return header_has_token(all, "Connection", token);
}

static bool proxy__stays(Str name, Headers all)
{
    return proxy__is_hop(name, all) || str_eq_nocase(name, STR("Host")) || str_eq_nocase(name, STR("Expect")) ||
           str_eq_nocase(name, STR("X-EXECD-ACCESS-TOKEN"));
}

static bool proxy__put_head(Proxy *p, int port, Str target, Err *err)
{
    const HttpdCall *c = p->call;
    Headers          h = c->head.headers;
    Str              host = header_get(h, "Host");
    Arena            scratch = *c->arena;
    int64_t          length = httpd_length(c);

    bool ok = http_put_request_line(&p->out, c->head.method, target, err) &&
              http_put_field(&p->out, STR("Host"), host.n ? host : arena_fmt(&scratch, "127.0.0.1:%d", port), err);
    for (size_t i = 0; i < h.n && ok; i++)
        if (!proxy__stays(h.v[i].name, h))
            ok = http_put_field(&p->out, h.v[i].name, h.v[i].value, err);
    p->chunked = length < 0;
    if (p->chunked)
        ok = ok && http_put_field(&p->out, STR("Transfer-Encoding"), STR("chunked"), err);
    else if (header_count(h, "Content-Length"))
        ok = ok && http_put_field(&p->out, STR("Content-Length"), arena_fmt(&scratch, "%lld", (long long)length), err);
    p->upgrade = header_has_token(h, "Connection", "Upgrade") && header_get(h, "Upgrade").n > 0;
    if (p->upgrade)
        ok = ok && http_put_field(&p->out, STR("Upgrade"), header_get(h, "Upgrade"), err);
    ok = ok && http_put_field(&p->out, STR("Connection"), p->upgrade ? STR("Upgrade") : STR("close"), err);
    buf_add(&p->out, STR("\r\n"));
    return ok && !p->out.over;
}

static size_t proxy__waiting(const Proxy *p)
{
    return p->out.n - p->sent;
}

static void proxy__send(Proxy *p, Str bytes)
{
    if (p->deaf || p->over)
        return;
    buf_add(&p->out, bytes);
    p->watch.events |= POLLOUT;
}

static void proxy__body(HttpdCall *c, Str piece)
{
    Proxy *p = c->ctx;
    ABX_UNSET char line[HTTP_CHUNK_LINE];

    if (p->chunked && !p->tunnel)
        proxy__send(p, (Str){line, http_chunk_line(line, piece.n)});
    proxy__send(p, piece);
    if (p->chunked && !p->tunnel)
        proxy__send(p, STR("\r\n"));
    if (proxy__waiting(p) >= LIMIT_HTTPD_ROOM)
        httpd_pause(c);
}

static void proxy__end(HttpdCall *c)
{
    Proxy *p = c->ctx;

    if (p->chunked && !p->tunnel)
        proxy__send(p, STR("0\r\n\r\n"));
    if (p->tunnel) {
        p->half = true;
        p->watch.events |= POLLOUT;
    }
}

static void proxy__flush(Proxy *p)
{
    while (proxy__waiting(p) && !p->deaf) {
        ssize_t n = send(p->fd, p->out.p + p->sent, proxy__waiting(p), MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n < 0)
            p->deaf = true;         /* it may have answered all the same */
        else
            p->sent += (size_t)n;
    }
    if (p->deaf || !proxy__waiting(p)) {
        buf_clear(&p->out);
        p->sent = 0;
        p->watch.events &= (short)~POLLOUT;
        if (p->half)
            shutdown(p->fd, SHUT_WR);
        p->half = false;
    } else if (p->sent > p->out.n / 2) {
        buf_drop(&p->out, p->sent);
        p->sent = 0;
    }
    if (proxy__waiting(p) < LIMIT_HTTPD_ROOM)
        httpd_resume(p->call);
}

/* --- the answer --- */

/* The fields that go on to the client, in the arena. */
static Headers proxy__fields(Proxy *p, const HttpHead *head)
{
    Header *v = arena_array(&p->arena, head->headers.n + 2, sizeof *v);
    size_t  n = 0;

    for (size_t i = 0; i < head->headers.n; i++) {
        const Header *f = &head->headers.v[i];
        if (!proxy__is_hop(f->name, head->headers) && !str_eq_nocase(f->name, STR("Date")))
            v[n++] = *f;
    }
    if (head->status == 101) {
        v[n++] = (Header){STR("Connection"), STR("Upgrade")};
        v[n++] = (Header){STR("Upgrade"), header_get(head->headers, "Upgrade")};
    }
    return (Headers){v, n};
}

/* A head came. False: it is none that a client could be given. */
static bool proxy__head(Proxy *p, const HttpHead *head)
{
    ABX_UNSET Err err;

    if (head->status == 101) {
        if (!p->upgrade)
            return false;
        Headers h = proxy__fields(p, head);
        p->answering = p->tunnel = true;
        httpd_tunnel(p->call, h.v, h.n);
        return true;
    }
    if (head->status < 200)
        return ++p->interim <= LIMIT_INTERIM;
    if (!http_body_of(HTTP_ANSWER, p->call->head.method, head, &p->body, &err))
        return false;
    Headers h = proxy__fields(p, head);
    p->answering = true;
    httpd_start(p->call, head->status, h.v, h.n, p->body.length);
    return true;
}

static void proxy__finish(Proxy *p)
{
    proxy__hang_up(p);
    httpd_finish(p->call);
}

/* Bytes came from the service. */
static void proxy__take(Proxy *p, Str in)
{
    HttpHead head;
    Str      piece;
    ABX_UNSET Err err;
    Step     step;

    while (!p->answering && in.n && !p->over) {
        step = http_head_next(&p->reader, &in, &p->arena, &head, &err);
        if (step == STEP_MORE)
            return;
        if (step == STEP_ERR || !proxy__head(p, &head))
            proxy__bad_gateway(p);
        else if (!p->answering)
            arena_reset(&p->arena);
    }
    if (p->over)
        return;
    if (p->tunnel) {
        httpd_write(p->call, in);
        return;
    }
    while (p->body.state != HTTP_BODY_DONE) {
        step = http_body_next(&p->body, &in, &piece, &err);
        if (step == STEP_MORE)
            return;
        if (step == STEP_ERR) {
            proxy__bad_gateway(p);
            return;
        }
        httpd_write(p->call, piece);
    }
    proxy__finish(p);
}

/* `torn`: by a reset, which may have taken bytes with it. */
static void proxy__ended(Proxy *p, bool torn)
{
    ABX_UNSET Err err;

    if (torn)
        proxy__bad_gateway(p);
    else if (p->tunnel || (p->answering && http_body_ended(&p->body, &err)))
        proxy__finish(p);
    else
        proxy__bad_gateway(p);
}

static void proxy__read(Proxy *p, bool dead)
{
    if (!httpd_room(p->call)) {
        p->watch.events &= (short)~POLLIN;
        if (dead)
            p->watch.fd = -1;       /* which would wake us all the time */
        return;
    }
    ssize_t n = recv(p->fd, p->daemon->scratch, sizeof p->daemon->scratch, 0);
    if (n > 0)
        proxy__take(p, (Str){p->daemon->scratch, (size_t)n});
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        proxy__ended(p, n < 0);
}

static void proxy__room(HttpdCall *c)
{
    Proxy *p = c->ctx;

    p->watch.fd = p->fd;
    p->watch.events |= POLLIN;
}

static void proxy__wake(LoopWatch *w, short revents)
{
    Proxy    *p = w->owner;
    int       sys = ETIMEDOUT;
    socklen_t n = sizeof sys;

    if (!p->connected) {
        if (revents)
            getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &sys, &n);
        if (sys) {
            proxy__bad_gateway(p);
            return;
        }
        p->connected = true;
        w->events |= POLLIN;
        w->deadline = DEADLINE_NONE;
    }
    proxy__flush(p);
    if (revents & (POLLIN | POLLHUP | POLLERR))
        proxy__read(p, (revents & (POLLHUP | POLLERR)) != 0);
}

void proxy_begin(HttpdCall *c, int port, Str target)
{
    static const HttpdHandler proxy = {
        .body = proxy__body, .end = proxy__end, .room = proxy__room, .gone = proxy__gone,
    };
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    Proxy *p = mem_new(sizeof *p);
    int    on = 1;
    ABX_UNSET Err err;

    *p = (Proxy){.daemon = c->ctx, .call = c, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                 .out = buf_make(LIMIT_HEAD + 2 * LIMIT_HTTPD_READ + LIMIT_HTTPD_ROOM),
                 .reader = http_head_reader(HTTP_ANSWER),
                 .arena = arena_make(LIMIT_HTTPD_ARENA)};
    c->handler = &proxy;
    c->ctx = p;
    p->watch = (LoopWatch){.fd = p->fd, .events = POLLOUT, .deadline = clock_after(LIMIT_CONNECT_MS),
                           .wake = proxy__wake, .owner = p};
    if (p->fd < 0 || !proxy__put_head(p, port, target, &err)) {
        proxy__bad_gateway(p);
        return;
    }
    /* A carried agent speaks with its client by itself: what it says need not be handed on here. */
    if (p->upgrade && door_hand(port, httpd_socket(c), buf_str(&p->out))) {
        httpd_abort(c);
        return;
    }
    setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(p->fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS) {
        proxy__bad_gateway(p);
        return;
    }
    loop_add(&p->daemon->loop, &p->watch);
}
