#include "os/tty.h"

#include <fcntl.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

bool tty_is(int fd)
{
    return isatty(fd) == 1;
}

void tty_fill_standard(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);   /* the lowest free one: fd */
}

bool tty_writable(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

static bool tty__size(int fd, TtySize *size)
{
    struct winsize w;

    if (ioctl(fd, TIOCGWINSZ, &w) != 0 || w.ws_col == 0 || w.ws_row == 0)
        return false;
    *size = (TtySize){w.ws_col, w.ws_row};
    return true;
}

TtySize tty_size(void)
{
    TtySize size = {80, 24};

    for (int fd = 0; fd <= 2; fd++)
        if (tty__size(fd, &size))
            return size;
    int own = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (own >= 0) {
        tty__size(own, &size);
        close(own);
    }
    return size;
}

int tty_patient(int fd)
{
    ABX_UNSET char path[32];

    if (!tty_is(fd))
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* ---- raw mode ---- */

static struct {
    volatile sig_atomic_t raw;
    bool           guarded;     /* the handlers are there */
    int            fd;
    pid_t          owner;       /* a forked child has a copy of all this */
    struct termios before;
} tty__mode;

/* A shell may have taken the terminal while this process was in the background:
 * then the mode is the shell's. One that is not ours to control has no such shell. */
static bool tty__in_front(int fd)
{
    pid_t front = tcgetpgrp(fd);

    return front < 0 || front == getpgrp();
}

void tty_restore(void)
{
    int was = errno;

    if (tty__mode.raw && tty__mode.owner == getpid() && tty__in_front(tty__mode.fd)) {
        /* Not to be stopped here, should the front have changed just now. */
        sigset_t stop, old;
        sigemptyset(&stop);
        sigaddset(&stop, SIGTTOU);
        sigprocmask(SIG_BLOCK, &stop, &old);
        tcsetattr(tty__mode.fd, TCSANOW, &tty__mode.before);
        sigprocmask(SIG_SETMASK, &old, NULL);
    }
    tty__mode.raw = 0;
    errno = was;
}

/* SA_RESETHAND has put the signal back to its default. */
static void tty__fatal(int signo)
{
    tty_restore();
    raise(signo);
}

/* The signals whose default does not end a process, or which nobody can catch. */
static bool tty__survives(int signo)
{
    static const int list[] = {SIGKILL, SIGSTOP, SIGCHLD, SIGCONT, SIGURG, SIGWINCH, SIGTSTP, SIGTTIN, SIGTTOU};

    for (size_t i = 0; i < COUNT_OF(list); i++)
        if (signo == list[i])
            return true;
    return false;
}

static void tty__guard(void)
{
    static char stack[16 << 10];        /* a stack that overflowed has no room for a handler */
    struct sigaction act = {.sa_handler = tty__fatal, .sa_flags = SA_RESETHAND | SA_NODEFER | SA_ONSTACK}, was;

    if (tty__mode.guarded)
        return;
    tty__mode.guarded = true;
    atexit(tty_restore);
    base_at_no_memory(tty_restore);
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    for (int signo = 1; signo < NSIG; signo++)
        if (!tty__survives(signo) && sigaction(signo, NULL, &was) == 0 && was.sa_handler == SIG_DFL)
            sigaction(signo, &act, NULL);
}

bool tty_raw(int fd, Err *err)
{
    struct termios mode = tty__mode.before;

    if (!tty__mode.owner && tcgetattr(fd, &mode) != 0)
        return err_sys(err, errno, E0000, "cannot read the mode of the terminal");
    tty__mode.before = mode;
    tty__mode.fd = fd;
    tty__mode.owner = getpid();
    tty__guard();
    cfmakeraw(&mode);
    mode.c_cc[VMIN] = 1;
    mode.c_cc[VTIME] = 0;
    /* Before the change: a signal between the two restores what is still there. */
    tty__mode.raw = 1;
    while (tcsetattr(fd, TCSANOW, &mode) != 0)
        if (errno != EINTR) {
            tty__mode.raw = 0;
            return err_sys(err, errno, E0000, "cannot set the mode of the terminal");
        }
    return true;
}

void tty_stop(void)
{
    struct sigaction act = {.sa_handler = SIG_DFL}, was;

    tty_restore();
    sigaction(SIGTSTP, &act, &was);
    raise(SIGTSTP);
    sigaction(SIGTSTP, &was, NULL);
}
