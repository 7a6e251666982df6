#include "cli/pipe.h"

#include <errno.h>
#include <unistd.h>

#include "os/poll.h"

ptrdiff_t pipe_read(void *ctx, void *p, size_t size)
{
    Pipe *pipe = ctx;

    for (;;) {
        pipe->failed = !poll_one(STDIN_FILENO, POLLIN, pipe->out->cancel_fd, DEADLINE_NONE, &pipe->err);
        if (pipe->failed) {
            errno = EINTR;
            return -1;
        }
        ssize_t n = read(STDIN_FILENO, p, size);
        if (n >= 0)
            return n;
        if (errno != EINTR && errno != EAGAIN) {
            int sys = errno;
            pipe->failed = !err_sys(&pipe->err, sys, E4000, "cannot read standard input");
            errno = sys;
            return -1;
        }
    }
}

int pipe_write(void *ctx, const void *p, size_t size)
{
    Pipe *pipe = ctx;

    pipe->failed = !output_bytes(pipe->out, STDOUT_FILENO, (Str){p, size}, &pipe->err);
    errno = !pipe->failed ? 0 : pipe->err.sys ? pipe->err.sys : EINTR;
    return pipe->failed ? -1 : 0;
}

int pipe_fail(const Run *r, const Pipe *pipe, const abx_error *e)
{
    return pipe->failed ? run_fail_own(r, &pipe->err) : run_fail(r, e);
}
