#include "agent/link.h"

#include "base/limits.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LINK_BLOCK = 256 << 10 };       /* in one read; memory only where so much comes */

static void link__watch(Link *l)
{
    bool reads = !l->ended && !l->paused, writes = l->out.n > l->sent && !l->broken;

    /* A hang-up comes whatever is asked for: one who pauses does not ask. */
    l->watch.fd = reads || writes || !l->paused ? l->fd : -1;
    l->watch.events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

static void link__end(Link *l)
{
    if (!l->ended) {
        l->ended = true;
        l->owner->ended(l->ctx);
    }
    link__watch(l);
}

/* Nothing can be sent; what came before that may still be read. */
static void link__mute(Link *l)
{
    l->broken = true;
    buf_free(&l->out);
    l->sent = 0;
    link__watch(l);
}

static void link__break(Link *l)
{
    link__mute(l);
    loop_remove(l->loop, &l->watch);
    link__end(l);
}

/* --- reading --- */

static void link__web(Link *l, Str in)
{
    WsEvent ev;
    ABX_UNSET Err err;
    Step    step;

    while (!l->ended && (step = ws_next(&l->reader, &in, &ev, &err)) != STEP_MORE) {
        if (step == STEP_ERR || ev.op == WS_TEXT || ev.op == WS_CLOSE) {
            uint16_t code = step == STEP_ERR ? l->reader.blame : ev.op == WS_TEXT ? WS_REFUSED_KIND : WS_NORMAL;
            ws_put_close(&l->out, code, (Str){0}, NULL);
            link__end(l);
        } else if (ev.op == WS_PING) {
            ws_put(&l->out, WS_PONG, true, ev.bytes, NULL);
        } else if (ev.op == WS_BINARY && ev.bytes.n) {
            l->owner->bytes(l->ctx, ev.bytes);
        }
    }
}

void link_feed(Link *l, Str bytes)
{
    if (l->web)
        link__web(l, bytes);
    else if (bytes.n)
        l->owner->bytes(l->ctx, bytes);
}

static void link__read(Link *l)
{
    static char scratch[LINK_BLOCK];
    ssize_t     n = recv(l->fd, scratch, sizeof scratch, MSG_DONTWAIT);

    if (n > 0)
        link_feed(l, (Str){scratch, (size_t)n});
    else if (n == 0)
        link__end(l);
    else if (errno != EAGAIN && errno != EINTR)
        link__break(l);
}

static void link__wake(LoopWatch *w, short revents)
{
    Link *l = w->owner;

    if (revents & ~POLLIN)
        l->full = false;
    if ((revents & POLLIN) && !l->ended && !l->paused)
        link__read(l);
    else if (revents & (POLLERR | POLLHUP))
        link__break(l);
    if (!l->broken)
        link_flush(l);
}

/* --- writing --- */

size_t link_room(const Link *l)
{
    size_t waits = l->out.n - l->sent;

    return l->broken || waits > LIMIT_CARRY_QUEUE ? 0 : LIMIT_CARRY_QUEUE - waits;
}

/* The bytes were taken up to n; the rest of the pieces is queued. */
static void link__rest(Link *l, const struct iovec *v, int count, size_t n)
{
    for (int i = 0; i < count; i++) {
        size_t gone = n < v[i].iov_len ? n : v[i].iov_len;
        n -= gone;
        buf_add(&l->out, (Str){(const char *)v[i].iov_base + gone, v[i].iov_len - gone});
    }
}

/* Send what is queued, then the pieces, for the first of which v has room; queue what stays. */
static void link__send(Link *l, struct iovec *v, int count)
{
    size_t        waits = l->out.n - l->sent;
    struct msghdr m = {.msg_iov = v, .msg_iovlen = count};
    ssize_t       n;

    v[0] = (struct iovec){l->out.p ? l->out.p + l->sent : NULL, waits};
    if (l->broken || (!waits && count == 1))
        return;
    if (l->full) {
        link__rest(l, v + 1, count - 1, 0);
        if (l->out.over)
            link__mute(l);
        return;
    }
    while ((n = sendmsg(l->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT)) < 0 && errno == EINTR)
        continue;
    if (n < 0 && errno != EAGAIN) {
        link__mute(l);
        return;
    }
    size_t done = n < 0 ? 0 : (size_t)n, of_queue = done < waits ? done : waits;
    l->sent += of_queue;
    if (l->sent == l->out.n) {
        buf_clear(&l->out);
        l->sent = 0;
    } else if (l->sent >= LIMIT_CARRY_QUEUE) {
        buf_drop(&l->out, l->sent);
        l->sent = 0;
    }
    link__rest(l, v + 1, count - 1, done - of_queue);
    if (l->out.over)
        link__mute(l);
    l->full = l->out.n > l->sent;
    link__watch(l);
}

void link_put(Link *l, Str frames)
{
    if (l->broken)
        return;
    if (l->web)
        ws_put(&l->out, WS_BINARY, true, frames, NULL);
    else
        buf_add(&l->out, frames);
    if (l->out.over)
        link__mute(l);
}

void link_push(Link *l, const Str *parts, int n)
{
    ABX_UNSET char web[WS_HEAD_MAX];
    struct iovec v[2 + LINK_PARTS];
    size_t       all = 0;

    for (int i = 0; i < n; all += parts[i++].n)
        v[2 + i] = (struct iovec){(char *)parts[i].p, parts[i].n};
    v[1] = (struct iovec){web, l->web ? ws_head(web, WS_BINARY, true, all, NULL) : 0};
    link__send(l, v, 2 + n);
}

void link_flush(Link *l)
{
    struct iovec queue;

    link__send(l, &queue, 1);
}

bool link_idle(const Link *l)
{
    return l->broken || l->out.n == l->sent;
}

void link_bye(Link *l)
{
    if (l->web && !l->broken)
        ws_put_close(&l->out, WS_NORMAL, (Str){0}, NULL);
    link_flush(l);
}

void link_pause(Link *l, bool paused)
{
    l->paused = paused;
    link__watch(l);
}

/* --- life --- */

void link_open(Link *l, Loop *loop, int fd, bool web, const LinkOwner *owner, void *ctx)
{
    *l = (Link){.loop = loop, .fd = fd, .owner = owner, .ctx = ctx, .web = web,
                .out = buf_make(4 * LIMIT_CARRY_QUEUE)};  /* sent, waiting, and one read more */
    if (web)
        l->reader = ws_reader(true, 0);
    l->watch = (LoopWatch){.fd = fd, .events = POLLIN, .deadline = DEADLINE_NONE, .wake = link__wake, .owner = l};
    loop_add(loop, &l->watch);
}

void link_close(Link *l)
{
    loop_remove(l->loop, &l->watch);
    close(l->fd);
    buf_free(&l->out);
}
