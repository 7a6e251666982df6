#include "agent/front.h"

#include "base/limits.h"
#include "data/armor.h"
#include "os/poll.h"
#include "os/signal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FRONT_BLOCK = 48 << 10, FRONT_ATOMIC = 4096 };

typedef struct Front {
    const FrontWish *wish;
    Armor  in, out;
    Buf    up, down;            /* to the keeper, to standard output */
    size_t up_at, down_at;
    int    stdout_fd;
    size_t most;                /* in one write to it, so that it does not block */
    bool   socket;
    bool   read_end;
    bool   over;
} Front;

/* A pipe may be shared with whoever has its other descriptor: it is opened anew
 * for a mode of its own. Where that cannot be, a pipe that can be written to
 * takes PIPE_BUF bytes at least. */
static void front__output(Front *f)
{
    ABX_UNSET struct stat st;

    f->stdout_fd = 1;
    f->most = FRONT_BLOCK * 2;
    if (fstat(1, &st) != 0)
        return;
    f->socket = S_ISSOCK(st.st_mode);
    if (!S_ISFIFO(st.st_mode))
        return;
    int fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        f->stdout_fd = fd;
    else
        f->most = FRONT_ATOMIC;
}

static bool front__later(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void front__sent(Buf *b, size_t *at, ssize_t n)
{
    if (n > 0)
        *at += (size_t)n;
    if (*at == b->n) {
        buf_clear(b);
        *at = 0;
    }
}

static void front__read_input(Front *f)
{
    ABX_UNSET char bytes[FRONT_BLOCK];
    ssize_t n = read(0, bytes, sizeof bytes);
    Str     in = {bytes, n > 0 ? (size_t)n : 0}, piece;
    Step    step = STEP_MORE;
    ABX_UNSET Err err;

    if (front__later(n))
        return;
    if (!f->wish->tag)
        buf_add(&f->up, in);
    else
        while ((step = armor_next(&f->in, &in, &piece, &err)) == STEP_DONE)
            buf_add(&f->up, piece);
    if (n > 0 && step != STEP_ERR && !f->up.over)
        return;
    f->read_end = true;
    if (step == STEP_ERR || f->up.over)
        f->over = true;
}

static void front__write_up(Front *f)
{
    ssize_t n = send(f->wish->link, f->up.p + f->up_at, f->up.n - f->up_at, MSG_NOSIGNAL | MSG_DONTWAIT);

    f->over = f->over || (n < 0 && !front__later(n));
    front__sent(&f->up, &f->up_at, n);
}

static void front__read_keeper(Front *f)
{
    ABX_UNSET char bytes[FRONT_BLOCK];
    ssize_t n = recv(f->wish->link, bytes, sizeof bytes, MSG_DONTWAIT);
    Str     in = {bytes, n > 0 ? (size_t)n : 0};

    if (f->wish->tag)
        armor_put(&f->out, &f->down, in, 0);
    else
        buf_add(&f->down, in);
    f->over = f->over || n == 0 || (n < 0 && !front__later(n));
}

static void front__write_down(Front *f)
{
    size_t  n = f->down.n - f->down_at;
    ssize_t done;

    if (n > f->most)
        n = f->most;
    done = f->socket ? send(f->stdout_fd, f->down.p + f->down_at, n, MSG_NOSIGNAL | MSG_DONTWAIT)
                     : write(f->stdout_fd, f->down.p + f->down_at, n);
    if (done < 0 && !front__later(done)) {
        f->over = true;
        buf_clear(&f->down);
        f->down_at = 0;
        return;
    }
    front__sent(&f->down, &f->down_at, done);
}

static void front__signals(Front *f)
{
    while (signal_next() != 0)
        kill(f->wish->keeper, SIGTERM);
}

/* One turn; the four: standard input, standard output, the keeper, signals. */
static bool front__turn(Front *f, int signals)
{
    bool          up = f->up.n > f->up_at, down = f->down.n > f->down_at;
    struct pollfd fds[5] = {
        {.fd = f->wish->reads && !f->read_end && !up && !f->over ? 0 : -1, .events = POLLIN},
        {.fd = f->stdout_fd, .events = down ? POLLOUT : 0},
        {.fd = f->over ? -1 : f->wish->link, .events = (short)((up ? POLLOUT : 0) | (down ? 0 : POLLIN))},
        {.fd = signals, .events = POLLIN},
    };
    ABX_UNSET Err err;

    if (!poll_wait(fds, 4, -1, DEADLINE_NONE, &err))
        return false;
    if (fds[3].revents)
        front__signals(f);
    if (fds[0].revents)
        front__read_input(f);
    if (down && fds[1].revents)
        front__write_down(f);
    else if (fds[1].revents & (POLLERR | POLLNVAL))
        return false;                   /* nobody reads */
    if (fds[2].revents & POLLOUT)
        front__write_up(f);
    if (!down && (fds[2].revents & (POLLIN | POLLHUP)))
        front__read_keeper(f);
    return true;
}

void front_run(const FrontWish *wish)
{
    static const int signals[] = {SIGTERM, SIGHUP, SIGINT};
    Front f = {.wish = wish, .up = buf_make(ARMOR_LINE_MAX), .down = buf_make(2 * ARMOR_LINE_MAX)};
    bool  told = false;
    int   fd;
    ABX_UNSET Err err;

    if (wish->tag) {
        f.in = armor_make(wish->tag);
        f.out = armor_make(wish->tag);
    }
    front__output(&f);
    signal_ignore_writes();
    if (!signal_catch(signals, COUNT_OF(signals), &fd, &err))
        return;
    while (!(f.over && f.down.n == f.down_at) && front__turn(&f, fd)) {
        if (!f.read_end || told || f.up.n > f.up_at)
            continue;
        /* The client is gone, or never had a voice: the keeper knows which. */
        shutdown(wish->link, SHUT_WR);
        told = true;
    }
    buf_free(&f.up);
    buf_free(&f.down);
    armor_free(&f.in);
    armor_free(&f.out);
}
