#include "os/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILD_PIDFD_OPEN = 434 };        /* the same on every architecture; not in older headers */

static void child__drop(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Three pipes: mine[i] and its[i] are the ends of descriptor i. */
static bool child__pipes(int mine[static 3], int its[static 3])
{
    for (int i = 0; i < 3; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0)
            return false;
        mine[i] = ends[i == 0];
        its[i] = ends[i != 0];
        if (fcntl(mine[i], F_SETFL, O_NONBLOCK) != 0)
            return false;
    }
    return true;
}

bool child_start(const ProcSpec *spec, Child *out, Err *err)
{
    int      mine[3] = {-1, -1, -1}, its[3] = {-1, -1, -1};
    ProcSpec use = *spec;
    Child    c = {.watch = -1};
    bool     ok;

    if (child__pipes(mine, its)) {
        memcpy(use.fd, its, sizeof its);
        use.session = true;
        ok = proc_start(&use, &c.pid, err);
    } else {
        ok = err_sys(err, errno, E3005, "pipe");
    }
    for (int i = 0; i < 3; i++) {
        child__drop(&its[i]);
        if (!ok)
            child__drop(&mine[i]);
    }
    if (!ok)
        return false;
    c.in = mine[0];
    c.out = mine[1];
    c.err = mine[2];
    c.watch = (int)syscall(CHILD_PIDFD_OPEN, c.pid, 0);
    *out = c;
    return true;
}

bool child_ended(Child *c)
{
    siginfo_t si = {0};

    if (c->ended || c->pid == 0)
        return true;
    int got = waitid(P_PID, (id_t)c->pid, &si, WEXITED | WNOHANG | WNOWAIT);
    if (got < 0 && errno == EINTR)
        return false;
    if (got == 0 && si.si_pid == 0)
        return false;
    /* Where SIGCHLD is ignored the kernel reaps by itself and tells nobody. */
    c->ended = true;
    c->status = got < 0 ? 0 : si.si_code == CLD_EXITED ? si.si_status : -si.si_status;
    return true;
}

ssize_t child_read(int fd, char *p, size_t cap)
{
    ssize_t n;

    do
        n = read(fd, p, cap);
    while (n < 0 && errno == EINTR);
    return n;
}

static ssize_t child__write(int fd, const char *p, size_t n)
{
    ssize_t done;

    do
        done = write(fd, p, n);
    while (done < 0 && errno == EINTR);
    return done;
}

ssize_t child_write(int fd, const char *p, size_t n)
{
    struct sigaction act;
    struct timespec  now = {0, 0};
    sigset_t         pipe, was, pending;

    if (sigaction(SIGPIPE, NULL, &act) == 0 && act.sa_handler == SIG_IGN)
        return child__write(fd, p, n);
    /* A pipe knows no MSG_NOSIGNAL: the signal is held back, and taken away
     * when it came from here. */
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe, &was);
    ssize_t done = child__write(fd, p, n);
    int     sys = errno;
    if (done < 0 && sys == EPIPE && !sigismember(&pending, SIGPIPE))
        while (sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR)
            continue;
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    errno = sys;
    return done;
}

void child_signal(const Child *c, int number)
{
    if (c->pid > 0)
        kill(-c->pid, number);
}

void child_close(Child *c)
{
    child__drop(&c->in);
    child__drop(&c->out);
    child__drop(&c->err);
    child__drop(&c->watch);
    if (c->pid > 0 && c->ended)
        waitpid(c->pid, NULL, 0);
    c->pid = 0;
}
