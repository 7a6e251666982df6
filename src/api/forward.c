#include "api/error.h"
#include "api/session.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/listen.h"
#include "provider/talk.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FORWARD_TRIES = 10, FORWARD_TEXT = 2 * ERR_TEXT_SIZE };

typedef struct ForwardPort {
    abx_forward *of;
    Listen      *listen[2];
    const char  *address;       /* NULL: both of this machine's own */
    int          local, remote;
} ForwardPort;

/* A connection here, and its channel. */
typedef struct ForwardConn ForwardConn;
struct ForwardConn {
    abx_forward *of;
    ForwardPort *port;
    ForwardConn *next;          /* among those whose bytes wait for room */
    uint16_t     channel;
    int          fd;
    bool         started;       /* the service there accepted it */
    bool         waits;
    bool         read_end;      /* the client here sends no more, */
    bool         in_ended;      /* which was said */
    bool         out_ended;     /* the service sends no more, */
    bool         shut;          /* which was handed on */
    LoopWatch    watch;
    Buf          in;            /* from the client here, not taken by the conversation */
    Buf          out;           /* for it: out.p[out_at ...] */
    size_t       out_at;
};

struct abx_forward {
    abx_sandbox *box;
    Talk        *talk;          /* NULL: the link is lost, and made anew when `tick` passes */
    Loop         loop;
    LoopWatch    link, cancel, tick;
    bool         cancelled;
    ForwardPort *ports;
    size_t       port_count;
    ForwardConn **v;            /* by channel; NULL: none */
    size_t       n;
    size_t       open;          /* of them there are */
    bool         told;          /* that they are too many */
    uint16_t     last;          /* the channel that was given out last */
    ForwardConn *first, *behind;    /* those whose bytes wait, in turn */
    int          tries;         /* to connect again, in vain */
    void       (*event)(void *ctx, const abx_forward_event *ev);
    void        *ctx;
    char         piece[FRAME_PAYLOAD];
};

static void forward__say(const ForwardConn *c, abx_forward_kind kind, const char *reason)
{
    const abx_forward *f = c->of;

    if (f->event)
        f->event(f->ctx, &(abx_forward_event){kind, c->port->local, c->port->remote, reason});
}

/* ---- one connection ---- */

/* Who connects while the link is made anew, or when there are too many already,
 * waits until he can be served: a port that is forwarded to itself ends here, too. */
static void forward__rest(abx_forward *f)
{
    bool rests = !f->talk || f->open >= LIMIT_FORWARD_CONNS;

    for (size_t i = 0; i < f->port_count; i++)
        for (int k = 0; k < 2; k++)
            listen_rest(f->ports[i].listen[k], rests);
    if (!f->talk || !rests || f->told)
        return;
    f->told = true;
    session_notice(&f->box->session->notice, STR("as many connections as are forwarded at once: more wait for one to end"));
}

static size_t forward__left(const ForwardConn *c)
{
    return c->out.n - c->out_at;
}

/* Without events the descriptor stays, for a client that resets is seen by
 * them; but for one that both sides have ended, which would wake us all the time. */
static void forward__watch(ForwardConn *c)
{
    short events = 0;

    if (c->started && !c->read_end && !c->in.n)
        events = POLLIN;
    if (forward__left(c))
        events |= POLLOUT;
    c->watch.events = events;
    c->watch.fd = events || !(c->shut && c->read_end) ? c->fd : -1;
}

static void forward__unwait(ForwardConn *c)
{
    abx_forward *f = c->of;
    ForwardConn  *before = NULL;

    for (ForwardConn *at = f->first; c->waits && at != c; at = at->next)
        before = at;
    if (!c->waits)
        return;
    *(before ? &before->next : &f->first) = c->next;
    if (f->behind == c)
        f->behind = before;
    c->waits = false;
}

static void forward__drop(ForwardConn *c, bool reset)
{
    static const struct linger now = {.l_onoff = 1};
    abx_forward *f = c->of;

    forward__unwait(c);
    f->v[c->channel] = NULL;
    f->open--;
    forward__rest(f);
    loop_remove(&f->loop, &c->watch);
    if (reset)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(c->fd);
    buf_free(&c->in);
    buf_free(&c->out);
    mem_free(c);
}

/* The client here is gone. */
static void forward__gone(ForwardConn *c)
{
    if (c->of->talk)
        talk_reset(c->of->talk, c->channel);
    forward__say(c, ABX_FORWARD_CLOSED, "the client reset it");
    forward__drop(c, true);
}

/* What came goes to the conversation, and with it the end, as far as there is
 * room; the rest waits, each in its turn. */
static void forward__push(ForwardConn *c)
{
    abx_forward *f = c->of;

    if (c->in.n && f->talk)
        buf_drop(&c->in, talk_write(f->talk, c->channel, buf_str(&c->in)));
    if (c->in.n && !c->waits) {
        c->waits = true;
        c->next = NULL;
        *(f->behind ? &f->behind->next : &f->first) = c;
        f->behind = c;
    }
    if (!c->in.n && c->read_end && !c->in_ended && f->talk) {
        c->in_ended = true;
        talk_end(f->talk, c->channel);
    }
}

/* True: both ends were handed on, and it is gone. */
static bool forward__over(ForwardConn *c)
{
    bool over = c->in_ended && c->shut;

    if (over) {
        forward__say(c, ABX_FORWARD_CLOSED, NULL);
        forward__drop(c, false);
    }
    return over;
}

/* To the client here, as far as it takes it. False: it is gone. */
static bool forward__send(ForwardConn *c)
{
    while (forward__left(c)) {
        ssize_t n = send(c->fd, c->out.p + c->out_at, forward__left(c), MSG_NOSIGNAL);
        if (n >= 0) {
            c->out_at += (size_t)n;
            talk_taken(c->of->talk, c->channel, (size_t)n);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            forward__gone(c);
            return false;
        }
    }
    if (!forward__left(c)) {
        buf_clear(&c->out);
        c->out_at = 0;
        if (c->out_ended && !c->shut)
            shutdown(c->fd, SHUT_WR);
        c->shut = c->out_ended;
    } else if (c->out_at >= FRAME_FORWARD_WINDOW) {
        buf_drop(&c->out, c->out_at);
        c->out_at = 0;
    }
    return true;
}

/* From the client here. False: it is gone. */
static bool forward__read(ForwardConn *c)
{
    abx_forward *f = c->of;
    ssize_t      n = recv(c->fd, f->piece, sizeof f->piece, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n < 0) {
        forward__gone(c);
        return false;
    }
    Str bytes = {f->piece, (size_t)n};
    str_skip(&bytes, talk_write(f->talk, c->channel, bytes));
    buf_add(&c->in, bytes);
    c->read_end = n == 0;
    forward__push(c);
    return true;
}

static void forward__wake(LoopWatch *w, short revents)
{
    ForwardConn *c = w->owner;

    if (!c->of->talk)
        return;
    if ((revents & POLLERR) || ((revents & POLLHUP) && !c->shut && !(w->events & POLLIN))) {
        forward__gone(c);
        return;
    }
    if (!forward__send(c))
        return;
    if ((revents & (POLLIN | POLLHUP)) && (w->events & POLLIN) && !forward__read(c))
        return;
    if (!forward__over(c))
        forward__watch(c);
}

/* A channel that nobody has: not the one that was given back last, of which
 * something may still be under way. 0: all are taken. */
static uint16_t forward__channel(abx_forward *f)
{
    for (int i = 0; i < UINT16_MAX; i++) {
        f->last = (uint16_t)(f->last == UINT16_MAX ? 1 : f->last + 1);
        if (f->last >= f->n || !f->v[f->last])
            return f->last;
    }
    return 0;
}

static void forward__take(void *ctx, int fd)
{
    ForwardPort *port = ctx;
    abx_forward *f = port->of;
    FrameStart   start = {.kind = FRAME_FORWARD, .port = (uint16_t)port->remote};
    uint16_t     channel = f->talk ? forward__channel(f) : 0;
    int          on = 1;
    ABX_UNSET Err err;

    if (!channel || !talk_start(f->talk, channel, &start, &err)) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (channel >= f->n) {
        size_t n = (size_t)channel + 1 + f->n / 2;
        f->v = mem_grow(f->v, n, sizeof *f->v);
        memset(f->v + f->n, 0, (n - f->n) * sizeof *f->v);
        f->n = n;
    }
    ForwardConn *c = f->v[channel] = mem_new(sizeof *c);
    *c = (ForwardConn){.of = f, .port = port, .channel = channel, .fd = fd, .in = buf_make(FRAME_PAYLOAD),
                      .out = buf_make(2 * FRAME_FORWARD_WINDOW),
                      .watch = {.fd = fd, .deadline = DEADLINE_NONE, .wake = forward__wake, .owner = c}};
    loop_add(&f->loop, &c->watch);
    f->open++;
    forward__rest(f);
}

/* Others may end, and then there is room. */
static bool forward__spare(void *ctx)
{
    (void)ctx;
    return false;
}

/* ---- the link ---- */

static void forward__event(abx_forward *f, const TalkEvent *ev)
{
    ForwardConn *c = ev->channel < f->n ? f->v[ev->channel] : NULL;

    if (!c)
        return;
    if (ev->type == FRAME_STARTED) {
        c->started = true;
        forward__say(c, ABX_FORWARD_OPENED, NULL);
    } else if (ev->type == FRAME_FAIL) {
        forward__say(c, c->started ? ABX_FORWARD_CLOSED : ABX_FORWARD_REFUSED, strerror((int)(ev->fail.sys & INT16_MAX)));
        forward__drop(c, true);
        return;
    } else if (ev->type == FRAME_OUT) {
        buf_add(&c->out, ev->bytes);
    } else {
        c->out_ended = true;
    }
    if (forward__send(c) && !forward__over(c))
        forward__watch(c);
}

static void forward__cut(abx_forward *f)
{
    talk_close(f->talk);
    f->talk = NULL;
    f->link.fd = -1;
    f->link.deadline = DEADLINE_NONE;
    forward__rest(f);
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i]) {
            forward__say(f->v[i], ABX_FORWARD_CLOSED, "the connection to the sandbox was lost");
            forward__drop(f->v[i], true);
        }
}

static bool forward__connect(abx_forward *f, Err *err)
{
    Provider   *p = f->box->session->provider;
    ABX_UNSET Err why;
    CarryResult r = talk_open(p, str_from(f->box->id), NULL, true, &f->talk, clock_after(LIMIT_CARRY_MS), &why);

    if (r == CARRY_DONE) {
        forward__rest(f);
        return true;
    }
    *err = why;
    return r == CARRY_CANNOT ? err_set(err, ERR_REMOTE, E8004, "ports are forwarded by the agent, and %s", why.text) : false;
}

/* A link that is lost is made anew, with growing pauses; what the sandbox says
 * against it, or what makes no sense, is the end. */
static bool forward__lost(abx_forward *f, const Err *why, Err *err)
{
    bool  may = why->kind == ERR_CLOSED || why->kind == ERR_UNSENT || why->kind == ERR_TIMEOUT;
    ABX_UNSET char line[FORWARD_TEXT];

    if (f->talk)
        forward__cut(f);
    if (!may || f->tries >= FORWARD_TRIES) {
        *err = *why;
        return false;
    }
    if (!f->tries) {
        snprintf(line, sizeof line, "%s; connecting again", why->text);
        session_notice(&f->box->session->notice, str_from(line));
    }
    f->tick.deadline = clock_after(f->tries < 5 ? (int64_t)250 << f->tries : 8000);
    f->tries++;
    return true;
}

static bool forward__again(abx_forward *f, Err *err)
{
    ABX_UNSET Err why;

    if (!clock_passed(f->tick.deadline))
        return true;
    f->tick.deadline = DEADLINE_NONE;
    return forward__connect(f, &why) || forward__lost(f, &why, err);
}

/* All that the link has to say, and what waited for it. */
static bool forward__talk(abx_forward *f, Err *err)
{
    TalkEvent ev;
    ABX_UNSET Err why;
    Step      step;

    while ((step = talk_next(f->talk, &ev, &why)) == STEP_DONE)
        forward__event(f, &ev);
    if (step == STEP_ERR)
        return forward__lost(f, &why, err);
    if (talk_hello(f->talk))
        f->tries = 0;
    ForwardConn *c = f->first, *next;
    f->first = f->behind = NULL;
    for (; c; c = next) {
        next = c->next;
        c->waits = false;
        forward__push(c);
        if (!forward__over(c))
            forward__watch(c);
    }
    StreamWant want = talk_want(f->talk);
    f->link.fd = want.fd;
    f->link.events = want.events;
    f->link.deadline = want.fd < 0 ? clock_mono_ms() : talk_deadline(f->talk);
    return true;
}

/* ---- listening ---- */

static bool forward__at(ForwardPort *port, int which, const char *address, Err *err)
{
    static const ListenOwner owner = {.take = forward__take, .spare = forward__spare};

    return listen_open(&port->of->loop, address, &port->local, &owner, port, &port->listen[which], err);
}

/* Both of this machine's own addresses, where it has the second one. A free
 * port of the one may be taken at the other. */
static bool forward__listen(ForwardPort *port, Err *err)
{
    bool any = port->local == 0;

    if (port->address)
        return forward__at(port, 0, port->address, err);
    for (int i = 0;; i++) {
        if (!forward__at(port, 0, "127.0.0.1", err))
            return false;
        if (forward__at(port, 1, "::1", err) || err->sys == EADDRNOTAVAIL || err->sys == EAFNOSUPPORT)
            return true;
        if (!any || i == FORWARD_TRIES)
            return false;
        listen_close(port->listen[0]);
        port->listen[0] = NULL;
        port->local = 0;
    }
}

static void forward__wake_other(LoopWatch *w, short revents)
{
    abx_forward *f = w->owner;

    if (w == &f->cancel && revents)
        f->cancelled = true;
}

static bool forward__ports(abx_forward *f, const abx_forward_options *o, Err *err)
{
    f->ports = mem_new(o->count * sizeof *f->ports);
    for (size_t i = 0; i < o->count; i++) {
        const abx_forward_port *p = &o->ports[i];
        if (p->local < 0 || p->local > UINT16_MAX || p->remote < 1 || p->remote > UINT16_MAX)
            return err_set(err, ERR_USAGE, E8002, "port %d to port %d makes no sense", p->local, p->remote);
        f->ports[i] = (ForwardPort){.of = f, .address = p->address, .local = p->local, .remote = p->remote};
        f->port_count = i + 1;
        if (!forward__listen(&f->ports[i], err))
            return false;
    }
    return true;
}

abx_forward *abx_forward_open(abx_sandbox *b, const abx_forward_options *o, abx_error *e)
{
    abx_forward    *f = mem_new(sizeof *f);
    const Provider *p = b->session->provider;
    LoopWatch       other = {.fd = -1, .deadline = DEADLINE_NONE, .wake = forward__wake_other, .owner = f};
    const char     *why = b->session->no_agent;
    ABX_UNSET Err err;
    bool            ok = true;

    f->box = b;
    f->event = o->event;
    f->ctx = o->ctx;
    f->link = f->cancel = f->tick = other;
    f->cancel.fd = p->host.cancel_fd;
    f->cancel.events = POLLIN;
    loop_add(&f->loop, &f->link);
    loop_add(&f->loop, &f->cancel);
    loop_add(&f->loop, &f->tick);
    if (!p->kind->carrier || !p->host.agent_path.n)
        ok = err_set(&err, ERR_REMOTE, E8004, "ports are forwarded by the agent, and %s",
                     p->kind->carrier && why && why[0] ? why : "it cannot be carried here");
    if (ok && forward__ports(f, o, &err) && forward__connect(f, &err))
        return f;
    abx_forward_close(f);
    error_give(e, &err);
    return NULL;
}

int abx_forward_local(const abx_forward *f, size_t i)
{
    return i < f->port_count ? f->ports[i].local : -1;
}

int abx_forward_step(abx_forward *f, int wait, abx_error *e)
{
    ABX_UNSET Err err;
    bool ok = f->talk ? forward__talk(f, &err) : forward__again(f, &err);

    if (ok && f->talk)
        f->tick.deadline = wait ? DEADLINE_NONE : clock_mono_ms();
    if (ok)
        ok = loop_turn(&f->loop, &err);
    if (ok && f->cancelled)
        ok = err_set(&err, ERR_CANCELLED, E0000, "cancelled");
    return ok ? 0 : error_give(e, &err);
}

size_t abx_forward_want(const abx_forward *f, abx_want *v, size_t room)
{
    size_t n = 0;

    for (size_t i = 0; i < f->loop.n; i++) {
        const LoopWatch *w = f->loop.watches[i];
        if (!w || w == &f->cancel || (w->fd < 0 && w->deadline == DEADLINE_NONE))
            continue;
        int64_t left = w->deadline == DEADLINE_NONE ? -1 : w->deadline - clock_mono_ms();
        if (n++ < room)
            v[n - 1] = (abx_want){w->fd, w->events, w->deadline != DEADLINE_NONE && left < 0 ? 0 : left};
    }
    return n;
}

void abx_forward_close(abx_forward *f)
{
    if (!f)
        return;
    f->event = NULL;
    for (size_t i = 0; i < f->port_count; i++) {
        listen_close(f->ports[i].listen[0]);
        listen_close(f->ports[i].listen[1]);
    }
    f->port_count = 0;
    forward__cut(f);
    mem_free(f->ports);
    mem_free(f->v);
    loop_free(&f->loop);
    mem_free(f);
}
