#include "agent/channels.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CHANNELS_PIECE = FRAME_PAYLOAD - FRAME_HEAD,    /* with its head a message of 64 KiB */
    CHANNELS_TRY_MS = 50,       /* this machine's own services answer at once, or their queue is full */
    CHANNELS_CONNECT_MS = 60000,
};

typedef struct Channel Channel;
struct Channel {
    Channels *of;
    Channel  *next;             /* in the one list where it is, if any */
    uint16_t  id;               /* 0: none any more, for the client gave it to another one */
    uint16_t  port;
    int       fd;
    bool      six;              /* ::1 is tried, for 127.0.0.1 refused */
    bool      connected;
    bool      waits;            /* there may be something to read, and no room to say it */
    bool      deaf;             /* the service takes no more, and may have said something all the same */
    bool      in_ended;         /* the client's EOF came, */
    bool      shut;             /* and was handed on */
    bool      out_ended;        /* the service's was told */
    Deadline  until;            /* connecting is tried */
    LoopWatch watch;
    Buf       in;               /* for the service: in.p[in_at ...] */
    size_t    in_at;
    uint64_t  data, told;       /* DATA that came, and what the client was told of what was taken */
    uint64_t  sent, credited;   /* OUT */
};

struct Channels {
    ChannelsLink link;
    Channel    **v;             /* by number */
    size_t       n;
    Channel     *first, *last;  /* those that wait, in the order in which they came */
    Channel     *nameless;      /* they have all that they get, and hand on what is left of it */
    Channel     *pending;       /* to connect, when it is their turn: */
    Channel     *turns;         /* one for each port is connecting */
    LoopWatch    tick;          /* somebody's turn may have come */
    char         piece[FRAME_HEAD + CHANNELS_PIECE];
};

static void channels__turn(LoopWatch *w, short revents);

Channels *channels_make(const ChannelsLink *link)
{
    Channels     *c = mem_new(sizeof *c);
    struct rlimit files;

    *c = (Channels){.link = *link,
                    .tick = {.fd = -1, .deadline = DEADLINE_NONE, .wake = channels__turn, .owner = c}};
    loop_add(link->loop, &c->tick);
    /* Each connection is a descriptor; nothing is started here that would inherit the limit. */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    return c;
}

/* ---- one that ends ---- */

/* True: it was there. */
static bool channels__unlink(Channel **at, const Channel *ch)
{
    while (*at && *at != ch)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = ch->next;
    return true;
}

static void channels__settled(Channel *ch)
{
    if (channels__unlink(&ch->of->turns, ch) && ch->of->pending)
        ch->of->tick.deadline = clock_mono_ms();
}

static void channels__close(Channel *ch, bool reset)
{
    static const struct linger now = {.l_onoff = 1};

    loop_remove(ch->of->link.loop, &ch->watch);
    if (ch->fd >= 0 && reset)
        setsockopt(ch->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    if (ch->fd >= 0)
        close(ch->fd);
    ch->fd = -1;
}

static void channels__drop(Channel *ch, bool reset)
{
    Channels *c = ch->of;

    if (ch->waits) {
        channels__unlink(&c->first, ch);
        for (c->last = c->first; c->last && c->last->next; c->last = c->last->next)
            continue;
    }
    if (ch->id)
        c->v[ch->id] = NULL;
    else
        channels__unlink(&c->nameless, ch);
    if (!ch->connected && !channels__unlink(&c->pending, ch))
        channels__settled(ch);
    channels__close(ch, reset);
    buf_free(&ch->in);
    mem_free(ch);
}

void channels_free(Channels *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i])
            channels__drop(c->v[i], true);
    while (c->nameless)
        channels__drop(c->nameless, false);
    loop_remove(c->link.loop, &c->tick);
    mem_free(c->v);
    mem_free(c);
}

/* ---- what is said ---- */

static void channels__say(Channel *ch, Buf *frames)
{
    if (ch->id)
        ch->of->link.say(ch->of->link.ctx, buf_str(frames));
    buf_free(frames);
}

static void channels__fail(Channel *ch, FrameStage stage, int sys)
{
    FrameFail fail = {stage, (uint32_t)sys, str_from(strerror(sys))};
    Buf       b = buf_make(2 * FRAME_FAIL_TEXT);

    frame_put_fail(&b, ch->id, &fail);
    channels__say(ch, &b);
    channels__drop(ch, true);
}

static void channels__tell(Channel *ch, FrameType type)
{
    Buf b = buf_make(64);

    if (type == FRAME_STARTED)
        frame_put_started(&b, ch->id, &(FrameStarted){0});
    else if (type == FRAME_AGENT_EOF)
        frame_put(&b, type, ch->id, (Str){0});
    else
        frame_put_u64(&b, type, ch->id, ch->told);
    channels__say(ch, &b);
}

/* ---- between the service and the client ---- */

static uint64_t channels__left(const Channel *ch)
{
    return ch->in.n - ch->in_at;
}

static uint64_t channels__window(const Channel *ch)
{
    return FRAME_FORWARD_WINDOW - (ch->sent - ch->credited);
}

/* What to be woken for. At rest the descriptor is left out: a hang-up would
 * wake us all the time. */
static void channels__watch(Channel *ch)
{
    short events = 0;

    if (!ch->connected)
        events = POLLOUT;
    else if (!ch->deaf && channels__left(ch))
        events = POLLOUT;
    if (ch->connected && !ch->out_ended && !ch->waits && channels__window(ch))
        events |= POLLIN;
    ch->watch.events = events;
    ch->watch.fd = events ? ch->fd : -1;
}

/* Both ends were handed on: true, and it is gone. */
static bool channels__over(Channel *ch)
{
    bool over = ch->out_ended && ch->in_ended && (ch->deaf || !channels__left(ch));

    if (over)
        channels__drop(ch, false);
    return over;
}

/* Hand the client's bytes on to the service, as far as it takes them. */
static void channels__send(Channel *ch)
{
    while (channels__left(ch) && !ch->deaf) {
        ssize_t n = send(ch->fd, ch->in.p + ch->in_at, channels__left(ch), MSG_NOSIGNAL);
        if (n >= 0)
            ch->in_at += (size_t)n;
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR)
            ch->deaf = true;
    }
    uint64_t taken = ch->data - (ch->deaf ? 0 : channels__left(ch));
    if (ch->deaf || !channels__left(ch)) {
        buf_clear(&ch->in);
        ch->in_at = 0;
        if (ch->in_ended && !ch->shut)
            shutdown(ch->fd, SHUT_WR);
        ch->shut = ch->in_ended;
    } else if (ch->in_at >= FRAME_FORWARD_WINDOW / 2) {
        buf_drop(&ch->in, ch->in_at);
        ch->in_at = 0;
    }
    if (taken - ch->told < FRAME_FORWARD_WINDOW / 4)
        return;
    ch->told = taken;
    channels__tell(ch, FRAME_AGENT_CREDIT);
}

/* Take one piece from the service. False: it is gone. */
static bool channels__read(Channel *ch)
{
    Channels *c = ch->of;
    size_t    most = channels__window(ch) < CHANNELS_PIECE ? (size_t)channels__window(ch) : CHANNELS_PIECE;
    ssize_t   n = recv(ch->fd, c->piece + FRAME_HEAD, most, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n < 0 || (n == 0 && ch->deaf)) {
        channels__fail(ch, FRAME_AT_CONNECT, n < 0 ? errno : ECONNRESET);
        return false;
    }
    if (n == 0) {
        ch->out_ended = true;
        channels__tell(ch, FRAME_AGENT_EOF);
        return !channels__over(ch);
    }
    frame_head(c->piece, FRAME_OUT, ch->id, (size_t)n);
    c->link.say(c->link.ctx, (Str){c->piece, FRAME_HEAD + (size_t)n});
    ch->sent += (size_t)n;
    return true;
}

/* In the order in which they came, so that none takes all the room. */
static void channels__wait(Channel *ch)
{
    Channels *c = ch->of;

    ch->waits = true;
    ch->next = NULL;
    *(c->last ? &c->last->next : &c->first) = ch;
    c->last = ch;
}

void channels_room(Channels *c)
{
    while (c->first && c->link.room(c->link.ctx)) {
        Channel *ch = c->first;
        c->first = ch->next;
        if (!c->first)
            c->last = NULL;
        ch->waits = false;
        if (channels__read(ch))
            channels__watch(ch);
    }
}

/* ---- connecting ---- */

static int channels__connect(Channel *ch)
{
    struct sockaddr_in  four = {.sin_family = AF_INET, .sin_port = htons(ch->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(ch->port), .sin6_addr = in6addr_loopback};
    const void         *to = ch->six ? (const void *)&six : &four;
    int                 on = 1;

    ch->fd = socket(ch->six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (ch->fd < 0)
        return errno;
    setsockopt(ch->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(ch->fd, to, ch->six ? sizeof six : sizeof four) != 0 && errno != EINPROGRESS)
        return errno;
    ch->watch.deadline = clock_sooner(clock_after(CHANNELS_TRY_MS), ch->until);
    loop_add(ch->of->link.loop, &ch->watch);
    channels__watch(ch);
    return 0;
}

/* A service may listen on ::1 alone. What is told is what 127.0.0.1 said. */
static void channels__begin(Channel *ch)
{
    int sys = channels__connect(ch);

    if (sys == ECONNREFUSED && !ch->six) {
        channels__close(ch, false);
        ch->six = true;
        sys = channels__connect(ch);
    }
    if (sys)
        channels__fail(ch, FRAME_AT_CONNECT, ch->six ? ECONNREFUSED : sys);
}

/* False: it is gone, or tried anew: a service with a full queue is silent, and
 * the kernel would ask again after a second, and then after two. */
static bool channels__connected(Channel *ch, bool silent)
{
    int       sys = ETIMEDOUT;
    socklen_t n = sizeof sys;

    if (silent && !clock_passed(ch->until)) {
        channels__close(ch, false);
        ch->six = false;
        channels__begin(ch);
        return false;
    }
    if (!silent)
        getsockopt(ch->fd, SOL_SOCKET, SO_ERROR, &sys, &n);
    if (sys == ECONNREFUSED && !ch->six) {
        channels__close(ch, false);
        ch->six = true;
        channels__begin(ch);
        return false;
    }
    if (sys) {
        channels__fail(ch, FRAME_AT_CONNECT, ch->six ? ECONNREFUSED : sys);
        return false;
    }
    channels__settled(ch);
    ch->connected = true;
    ch->watch.deadline = DEADLINE_NONE;
    channels__tell(ch, FRAME_STARTED);
    return true;
}

/* A port's connections are made one after the other. Many at once to a service
 * with a short queue make the kernel fall back to cookies, and then it resets
 * those that it had called connected. */
static void channels__turn(LoopWatch *w, short revents)
{
    Channels *c = w->owner;

    (void)revents;
    w->deadline = DEADLINE_NONE;
    for (Channel **at = &c->pending; *at;) {
        Channel *ch = *at, *busy = c->turns;
        while (busy && busy->port != ch->port)
            busy = busy->next;
        if (busy) {
            at = &ch->next;
            continue;
        }
        *at = ch->next;
        ch->next = c->turns;
        c->turns = ch;
        channels__begin(ch);
    }
}

static void channels__queue(Channel *ch)
{
    Channel **at = &ch->of->pending;

    while (*at)
        at = &(*at)->next;
    *at = ch;
    ch->of->tick.deadline = clock_mono_ms();
}

static void channels__wake(LoopWatch *w, short revents)
{
    Channel  *ch = w->owner;
    Channels *c = ch->of;

    if (!ch->connected && !channels__connected(ch, !revents))
        return;
    channels__send(ch);
    if (channels__over(ch))
        return;
    if ((revents & (POLLIN | POLLHUP | POLLERR)) && (w->events & POLLIN)) {
        if (c->first || !c->link.room(c->link.ctx))
            channels__wait(ch);
        else if (!channels__read(ch))
            return;
    }
    channels__watch(ch);
}

/* ---- the client's frames ---- */

static bool channels__start(Channels *c, const Frame *f, Err *err)
{
    Arena      a = arena_make(2 * FRAME_PAYLOAD);
    FrameStart s;
    bool       ok = frame_start(f->payload, &a, &s, err);

    arena_free(&a);
    if (!ok)
        return false;
    if (f->channel >= c->n) {
        size_t n = (size_t)f->channel + 1 + c->n / 2;
        c->v = mem_grow(c->v, n, sizeof *c->v);
        memset(c->v + c->n, 0, (n - c->n) * sizeof *c->v);
        c->n = n;
    }
    Channel *ch = c->v[f->channel];
    if (ch && !(ch->in_ended && ch->out_ended))
        return err_set(err, ERR_INPUT, E8020, "a channel was started twice");
    if (ch) {
        ch->id = 0;
        ch->next = c->nameless;
        c->nameless = ch;
    }
    c->v[f->channel] = ch = mem_new(sizeof *ch);
    *ch = (Channel){.of = c, .id = f->channel, .port = s.port, .fd = -1, .in = buf_make(2 * FRAME_FORWARD_WINDOW),
                    .until = clock_after(CHANNELS_CONNECT_MS),
                    .watch = {.fd = -1, .deadline = DEADLINE_NONE, .wake = channels__wake, .owner = ch}};
    if (s.kind != FRAME_FORWARD || !s.port)
        channels__fail(ch, FRAME_AT_START, EINVAL);
    else
        channels__queue(ch);
    return true;
}

/* False: more than its window, or behind its end. */
static bool channels__data(Channel *ch, Str bytes)
{
    if (ch->in_ended || ch->data + bytes.n - ch->told > FRAME_FORWARD_WINDOW)
        return false;
    ch->data += bytes.n;
    if (!ch->deaf)
        buf_add(&ch->in, bytes);
    return true;
}

/* For one that is there. False: no honest client sends it. */
static bool channels__take(Channel *ch, const Frame *f)
{
    uint64_t value;

    if (f->type == FRAME_DATA) {
        if (!channels__data(ch, f->payload))
            return false;
    } else if (f->type == FRAME_EOF) {
        if (ch->in_ended || f->payload.n)
            return false;
        ch->in_ended = true;
    } else if (f->type == FRAME_CREDIT) {
        if (!frame_u64(f, &value) || value < ch->credited || value > ch->sent)
            return false;
        ch->credited = value;
    } else if (f->type == FRAME_KILL) {
        channels__drop(ch, true);
        return true;
    } else {
        return false;
    }
    if (!ch->connected)
        return true;
    channels__send(ch);
    if (!channels__over(ch))
        channels__watch(ch);
    return true;
}

bool channels_frame(Channels *c, const Frame *f, Err *err)
{
    Channel *ch = f->channel < c->n ? c->v[f->channel] : NULL;

    if (f->type == FRAME_START)
        return channels__start(c, f, err);
    /* What it sent before it heard of the end; ACK says that it did. */
    if (!ch && (f->type == FRAME_DATA || f->type == FRAME_EOF || f->type == FRAME_CREDIT || f->type == FRAME_KILL ||
                f->type == FRAME_ACK))
        return true;
    return (ch && channels__take(ch, f)) || err_set(err, ERR_INPUT, E8020, "a frame out of its place on a channel");
}
