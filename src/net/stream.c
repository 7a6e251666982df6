#include "net/stream.h"

#include "os/poll.h"

Step stream_read(Stream *s, char *p, size_t cap, size_t *n, Err *err)
{
    return s->ops->read(s, p, cap, n, err);
}

Step stream_write(Stream *s, const char *p, size_t len, size_t *n, Err *err)
{
    return s->ops->write(s, p, len, n, err);
}

StreamWant stream_want(const Stream *s, StreamSide side)
{
    return s->ops->want(s, side);
}

bool stream_wait(const Stream *s, StreamSide side, int cancel_fd, Deadline deadline, Err *err)
{
    StreamWant want = stream_want(s, side);

    if (want.fd >= 0)
        return poll_one(want.fd, want.events, cancel_fd, deadline, err);
    /* Ready at once; but a deadline and Ctrl-C count here, too. */
    struct pollfd none[1];
    ABX_UNSET Err now;
    if (clock_passed(deadline) || (!poll_wait(none, 0, cancel_fd, clock_after(0), &now) && now.kind != ERR_TIMEOUT))
        return poll_wait(none, 0, cancel_fd, clock_after(0), err);
    return true;
}

void stream_close(Stream *s)
{
    if (s)
        s->ops->close(s);
}
