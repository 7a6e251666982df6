#include "provider/epp_link.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "os/poll.h"

enum {
    EPP_LINK_BLOCK = 64 << 10,      /* read at once: what a pipe holds */
    EPP_LINK_STDERR_BLOCK = 4096,
    EPP_LINK_DRAIN = 64,            /* blocks that are read of one who has ended: more than any pipe holds */
};

/* A line that is not whole, a block behind it, and as much again that was
 * given out and lies before it. */
#define EPP_LINK_IN (2 * (LIMIT_EPP_LINE + EPP_LINK_BLOCK) + EPP_LINK_BLOCK)

bool epp_link_hint(EppLink *l, Err *err)
{
    Arena a = arena_make(2 * LIMIT_EPP_VOICE);
    Str   text = epp_voice_tail(l->voice, buf_str(&l->said), l->said_cut, LIMIT_EPP_TAIL, &a);

    if (text.n)
        err_hint(err, "The plugin printed: %.*s", STR_ARG(text));
    arena_free(&a);
    return false;
}

/* ---- reading and writing what is there ---- */

static void epp_link__stop_watching(EppLink *l, int *fd)
{
    if (*fd < 0)
        return;
    epoll_ctl(l->ready, EPOLL_CTL_DEL, *fd, NULL);
    close(*fd);
    *fd = -1;
}

static bool epp_link__read_err(EppLink *l)
{
    ABX_UNSET char block[EPP_LINK_STDERR_BLOCK];
    ssize_t n = l->child.err < 0 ? -1 : child_read(l->child.err, block, sizeof block);

    if (n > 0) {
        if (l->said.n + (size_t)n > l->said.limit) {
            buf_drop(&l->said, l->said.n - LIMIT_EPP_STDERR);
            l->said_cut = true;
        }
        buf_add(&l->said, (Str){block, (size_t)n});
    } else if (l->child.err >= 0 && (n == 0 || errno != EAGAIN)) {
        epp_link__stop_watching(l, &l->child.err);
    }
    return n > 0;
}

static void epp_link__doom(EppLink *l, int64_t ms, const char *why)
{
    Deadline d = clock_after(ms);

    if (d >= l->doom)
        return;
    l->doom = d;
    l->why = why;
}

static bool epp_link__read_out(EppLink *l)
{
    if (l->child.out < 0)
        return false;
    if (l->taken >= l->in.n - l->taken) {
        buf_drop(&l->in, l->taken);
        l->looked -= l->taken;
        l->taken = 0;
    }
    char *to = buf_room(&l->in, EPP_LINK_BLOCK);
    if (!to)
        BUG("lines of a plugin are to be taken before more is read");
    ssize_t n = child_read(l->child.out, to, EPP_LINK_BLOCK);
    if (n > 0) {
        buf_grew(&l->in, (size_t)n);
    } else if (n == 0 || errno != EAGAIN) {
        epp_link__stop_watching(l, &l->child.out);
        l->in_over = true;
        epp_link__doom(l, LIMIT_EPP_EXIT_MS, "closed its output and went on running");
    }
    return n > 0;
}

static void epp_link__wipe_out(EppLink *l)
{
    mem_wipe(l->out.p, l->out.n);
    buf_clear(&l->out);
    l->sent = 0;
}

static void epp_link__write(EppLink *l)
{
    while (l->child.in >= 0 && !epp_link_idle(l)) {
        ssize_t n = child_write(l->child.in, l->out.p + l->sent, l->out.n - l->sent);
        if (n > 0) {
            l->sent += (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            return;
        } else {
            close(l->child.in);
            l->child.in = -1;
            epp_link__doom(l, LIMIT_EPP_SOON_MS, "closed its input");
        }
    }
    epp_link__wipe_out(l);
}

/* Its process has ended: what is left in the pipes is all there will be. Its
 * children go first, so that nobody writes any more. */
static void epp_link__gone(EppLink *l)
{
    child_signal(&l->child, SIGKILL);
    for (int i = 0; i < EPP_LINK_DRAIN && epp_link__read_err(l); i++)
        continue;
    epp_link__stop_watching(l, &l->child.watch);
    l->gone = true;
}

/* ---- ending it ---- */

/* Wait for its end, and throw away what it prints meanwhile. */
static bool epp_link__wait_end(EppLink *l, int64_t ms)
{
    Deadline d = clock_after(ms);
    ABX_UNSET char block[EPP_LINK_STDERR_BLOCK];
    ABX_UNSET Err none;

    while (!child_ended(&l->child)) {
        struct pollfd fds[4] = {{.fd = l->child.watch, .events = POLLIN}, {.fd = l->child.out, .events = POLLIN},
                                {.fd = l->child.err, .events = POLLIN}};
        Deadline until = l->child.watch < 0 ? clock_sooner(d, clock_after(LIMIT_EPP_WATCH_MS)) : d;
        if (!poll_wait(fds, 3, -1, until, &none) && clock_passed(d))
            return child_ended(&l->child);
        if (fds[1].revents && child_read(l->child.out, block, sizeof block) <= 0)
            epp_link__stop_watching(l, &l->child.out);
        if (fds[2].revents)
            epp_link__read_err(l);
    }
    return true;
}

static void epp_link__close(EppLink *l)
{
    child_close(&l->child);
    if (l->ready >= 0)
        close(l->ready);
    l->ready = -1;
    epp_link__wipe_out(l);
}

static bool epp_link__fail(EppLink *l, ErrKind kind, Code code, const char *what)
{
    if (l->failed)
        return false;
    l->failed = true;
    child_signal(&l->child, SIGKILL);
    epp_link__wait_end(l, LIMIT_EPP_EXIT_MS);
    for (int i = 0; i < EPP_LINK_DRAIN && epp_link__read_err(l); i++)
        continue;
    err_set(&l->failure, kind, code, "the plugin of provider %.*s %s", STR_ARG(l->voice->id), what);
    epp_link_hint(l, &l->failure);
    epp_link__close(l);
    return false;
}

static void epp_link__ended(EppLink *l)
{
    ABX_UNSET char what[64];

    snprintf(what, sizeof what, "exited unexpectedly (code %d)", l->child.status);
    epp_link__fail(l, ERR_CLOSED, E8021, what);
}

bool epp_link_break(EppLink *l, Code code, const char *what, Err *err)
{
    epp_link__fail(l, code == E8022 ? ERR_TIMEOUT : ERR_INPUT, code, what);
    *err = l->failure;
    return false;
}

void epp_link_end(EppLink *l)
{
    if (l->child.pid > 0 && !l->failed) {
        if (l->child.in >= 0)
            close(l->child.in);
        l->child.in = -1;
        if (!epp_link__wait_end(l, LIMIT_EPP_EXIT_MS)) {
            child_signal(&l->child, SIGTERM);
            if (!epp_link__wait_end(l, LIMIT_EPP_EXIT_MS)) {
                child_signal(&l->child, SIGKILL);
                epp_link__wait_end(l, LIMIT_EPP_EXIT_MS);
            }
        }
        child_signal(&l->child, SIGKILL);       /* those that it left behind */
    }
    epp_link__close(l);
    buf_free(&l->in);
    buf_free(&l->out);
    buf_free(&l->said);
}

/* ---- a living one ---- */

static bool epp_link__watch(EppLink *l)
{
    const int fds[] = {l->child.out, l->child.err, l->child.watch};

    l->ready = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; l->ready >= 0 && i < COUNT_OF(fds); i++) {
        struct epoll_event ev = {.events = EPOLLIN};
        if (fds[i] >= 0 && epoll_ctl(l->ready, EPOLL_CTL_ADD, fds[i], &ev) != 0)
            return false;
    }
    return l->ready >= 0;
}

bool epp_link_start(EppLink *l, const ProcSpec *spec, const EppVoice *voice, Err *err)
{
    *l = (EppLink){.voice = voice, .ready = -1, .doom = DEADLINE_NONE};
    l->in = buf_make(EPP_LINK_IN);
    l->out = buf_make(2 * LIMIT_EPP_LINE);
    l->said = buf_make(2 * LIMIT_EPP_STDERR);
    if (!child_start(spec, &l->child, err)) {
        l->child = (Child){.in = -1, .out = -1, .err = -1, .watch = -1};
        err->code = E8021;
        return err_wrap(err, "the plugin of provider %.*s does not start", STR_ARG(voice->id));
    }
    if (epp_link__watch(l))
        return true;
    err_sys(err, errno, E8021, "epoll");
    child_signal(&l->child, SIGKILL);
    epp_link_end(l);
    return false;
}

bool epp_link_idle(const EppLink *l)
{
    return l->sent == l->out.n;
}

void epp_link_put(EppLink *l, Str bytes)
{
    buf_add(&l->out, bytes);
    if (l->out.over)
        epp_link__doom(l, 0, "does not read its input");
    epp_link__write(l);
}

/* ASCII white space is what makes a line blank. */
static bool epp_link__blank(Str line)
{
    for (size_t i = 0; i < line.n; i++)
        if (line.p[i] != ' ' && (line.p[i] < '\t' || line.p[i] > '\r'))
            return false;
    return true;
}

bool epp_link_line(EppLink *l, Str *line)
{
    while (!l->failed && (l->looked < l->in.n || (l->in_over && l->taken < l->in.n))) {
        char  *from = l->in.p + l->taken, *end = l->in.p + l->in.n;
        char  *lf = memchr(l->in.p + l->looked, '\n', l->in.n - l->looked);
        size_t n = (size_t)((lf ? lf + 1 : end) - from);
        if (n > LIMIT_EPP_LINE || (n == LIMIT_EPP_LINE && !lf))
            return epp_link__fail(l, ERR_INPUT, E8020, "sent a line of more than 8388608 bytes");
        l->looked = l->in.n;
        if (!lf && !l->in_over)
            return false;
        if (lf)
            l->looked = l->taken + n;
        l->taken = l->looked;
        *line = (Str){from, lf ? n - 1 : n};
        if (!epp_link__blank(*line))
            return true;
    }
    return false;
}

Deadline epp_link_deadline(const EppLink *l)
{
    return l->child.watch >= 0 || l->gone ? l->doom : clock_sooner(l->doom, clock_after(LIMIT_EPP_WATCH_MS));
}

/* Take what one who is gone left in the pipe, a block each time; then it is
 * over, whoever may still hold the other end. */
static void epp_link__finish(EppLink *l)
{
    if (l->drained++ < EPP_LINK_DRAIN && epp_link__read_out(l))
        return;
    l->in_over = true;
    if (l->taken == l->in.n)
        epp_link__ended(l);
}

bool epp_link_turn(EppLink *l, int cancel_fd, Deadline d, Err *err)
{
    struct pollfd fds[5] = {
        {.fd = l->child.out, .events = POLLIN}, {.fd = l->child.err, .events = POLLIN},
        {.fd = l->child.watch, .events = POLLIN}, {.fd = epp_link_idle(l) ? -1 : l->child.in, .events = POLLOUT},
    };
    ABX_UNSET Err end;

    if (!l->failed && !l->gone) {
        if (!poll_wait(fds, 4, cancel_fd, clock_sooner(d, epp_link_deadline(l)), &end) && end.kind != ERR_TIMEOUT) {
            *err = end;
            return false;
        }
        if (fds[1].revents)
            epp_link__read_err(l);
        if (fds[0].revents)
            epp_link__read_out(l);
        if (fds[3].revents)
            epp_link__write(l);
        if ((fds[2].revents || l->child.watch < 0) && child_ended(&l->child))
            epp_link__gone(l);
        else if (clock_passed(l->doom))
            epp_link__fail(l, ERR_CLOSED, E8021, l->why);
    }
    if (l->gone && !l->failed)
        epp_link__finish(l);
    if (l->failed) {
        *err = l->failure;
        return false;
    }
    /* One that never stops printing is late, too. */
    return !clock_passed(d) || err_set(err, ERR_TIMEOUT, E8022, "timed out");
}
