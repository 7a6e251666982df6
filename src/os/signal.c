#include "os/signal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int signal__pipe[2] = {-1, -1};
static sigset_t signal__caught;
static volatile sig_atomic_t signal__once;

static void signal__came(int signo)
{
    int           before = errno;
    unsigned char byte = (unsigned char)signo;

    /* A full pipe is readable already, which is all that matters. */
    if (write(signal__pipe[1], &byte, 1) < 0)
        errno = before;
    for (int i = 1; signal__once && i < SIGRTMIN; i++)
        if (sigismember(&signal__caught, i) == 1)
            signal(i, SIG_DFL);
}

void signal_once(void)
{
    signal__once = 1;
}

bool signal_catch(const int *signals, size_t n, int *fd, Err *err)
{
    if (signal__pipe[0] < 0 && pipe2(signal__pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        return err_sys(err, errno, E0000, "pipe");
    for (size_t i = 0; i < n; i++) {
        struct sigaction act = {.sa_handler = signal__came, .sa_flags = SA_RESTART};
        sigset_t         one;
        sigfillset(&act.sa_mask);
        if (sigaction(signals[i], &act, NULL) != 0)
            return err_sys(err, errno, E0000, "sigaction %d", signals[i]);
        sigemptyset(&one);
        sigaddset(&one, signals[i]);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
        sigaddset(&signal__caught, signals[i]);
    }
    *fd = signal__pipe[0];
    return true;
}

int signal_next(void)
{
    unsigned char byte;

    return read(signal__pipe[0], &byte, 1) == 1 ? byte : 0;
}

void signal_ignore_writes(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}
