#include "os/poll.h"

#include <errno.h>
#include <limits.h>

/* Milliseconds for poll(2): never less than what is left, so that a wait does
 * not end just before its deadline and spin. */
static int poll__left(Deadline deadline)
{
    if (deadline == DEADLINE_NONE)
        return -1;
    int64_t left = deadline - clock_mono_ms();
    if (left <= 0)
        return 0;
    return left > INT_MAX ? INT_MAX : (int)left;
}

bool poll_wait(struct pollfd *fds, size_t n, int cancel_fd, Deadline deadline, Err *err)
{
    fds[n] = (struct pollfd){.fd = cancel_fd, .events = POLLIN};
    for (;;) {
        int got = poll(fds, n + 1, poll__left(deadline));
        if (got < 0 && errno != EINTR)
            return err_sys(err, errno, E5000, "poll");
        if (got > 0 && fds[n].revents)
            return err_set(err, ERR_CANCELLED, E0000, "interrupted");
        if (got > 0)
            return true;
        if (clock_passed(deadline))
            return err_set(err, ERR_TIMEOUT, E5000, "timed out");
    }
}

bool poll_one(int fd, short events, int cancel_fd, Deadline deadline, Err *err)
{
    struct pollfd fds[2] = {{.fd = fd, .events = events}};

    return poll_wait(fds, 1, cancel_fd, deadline, err);
}

bool poll_sleep(int64_t ms, int cancel_fd, Err *err)
{
    struct pollfd none[1];
    ABX_UNSET Err end;

    if (poll_wait(none, 0, cancel_fd, clock_after(ms), &end) || end.kind == ERR_TIMEOUT)
        return true;
    *err = end;
    return false;
}
