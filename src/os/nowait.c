#include "os/nowait.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    NOWAIT_FLAG = 8,            /* RWF_NOWAIT */
    NOWAIT_PIECE = 4096,        /* PIPE_BUF */
};

static bool nowait__regular(int fd)
{
    ABX_UNSET struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* One try; *old: this kernel, or this kind of descriptor, cannot be asked so. */
static ssize_t nowait__try(long call, int fd, struct iovec *v, bool *old)
{
    ssize_t n;

    do
        n = syscall(call, fd, v, 1L, -1L, -1L, (long)NOWAIT_FLAG);
    while (n < 0 && errno == EINTR);
    *old = n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL);
    return n;
}

static bool nowait__ready(int fd, short events)
{
    struct pollfd one = {.fd = fd, .events = events};

    if (poll(&one, 1, 0) > 0)
        return true;
    errno = EAGAIN;
    return false;
}

ssize_t nowait_read(int fd, void *p, size_t n)
{
    bool    old = nowait__regular(fd), regular = old;
    ssize_t got = old ? -1 : nowait__try(SYS_preadv2, fd, &(struct iovec){p, n}, &old);

    if (!old || (!regular && !nowait__ready(fd, POLLIN)))
        return got;
    do
        got = read(fd, p, n);
    while (got < 0 && errno == EINTR);
    return got;
}

ssize_t nowait_write(int fd, const void *p, size_t n)
{
    bool    old = nowait__regular(fd), regular = old;
    ssize_t put = old ? -1 : nowait__try(SYS_pwritev2, fd, &(struct iovec){(void *)p, n}, &old);

    if (!old || (!regular && !nowait__ready(fd, POLLOUT)))
        return put;
    do
        put = write(fd, p, regular || n < NOWAIT_PIECE ? n : NOWAIT_PIECE);
    while (put < 0 && errno == EINTR);
    return put;
}
