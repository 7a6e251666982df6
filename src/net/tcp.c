#include "net/tcp.h"

#include "base/mem.h"
#include "os/poll.h"
#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

typedef struct TcpStream {
    Stream stream;
    int    fd;
} TcpStream;

static Step tcp__failed(int sys, const char *doing, Err *err)
{
    switch (sys) {
    case EAGAIN:
        return STEP_MORE;
    case ECONNRESET:
        err_set(err, ERR_CLOSED, E5000, "the connection was reset");
        break;
    case EPIPE:
        err_set(err, ERR_CLOSED, E5000, "the other side closed the connection");
        break;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ECONNABORTED:
        err_sys(err, sys, E5000, "the connection was lost");
        err->kind = ERR_CLOSED;
        break;
    default:
        err_sys(err, sys, E5000, "%s", doing);
    }
    return STEP_ERR;
}

static Step tcp__read(Stream *s, char *p, size_t cap, size_t *n, Err *err)
{
    ssize_t got;

    while ((got = recv(((TcpStream *)s)->fd, p, cap, 0)) < 0 && errno == EINTR)
        ;
    *n = got < 0 ? 0 : (size_t)got;
    return got < 0 ? tcp__failed(errno, "receiving", err) : STEP_DONE;
}

static Step tcp__write(Stream *s, const char *p, size_t len, size_t *n, Err *err)
{
    ssize_t put;

    while ((put = send(((TcpStream *)s)->fd, p, len, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    *n = put < 0 ? 0 : (size_t)put;
    return put < 0 ? tcp__failed(errno, "sending", err) : STEP_DONE;
}

static StreamWant tcp__want(const Stream *s, StreamSide side)
{
    return (StreamWant){.fd = ((const TcpStream *)s)->fd, .events = side == STREAM_READ ? POLLIN : POLLOUT};
}

static void tcp__close(Stream *s)
{
    close(((TcpStream *)s)->fd);
    mem_free(s);
}

static const StreamOps tcp__ops = {tcp__read, tcp__write, tcp__want, tcp__close};

static bool tcp__refusal(int sys, Err *err)
{
    const char *why = sys == ECONNREFUSED ? "connection refused"
                      : sys == EHOSTUNREACH || sys == ENETUNREACH ? "the host cannot be reached"
                      : sys == ETIMEDOUT ? "the host does not answer" : strerror(sys);

    err_set(err, ERR_UNSENT, E5001, "%s", why);
    err->sys = sys;
    return false;
}

/* Wait for a connect() that goes on in the background. */
static bool tcp__finish(int fd, int cancel_fd, Deadline deadline, Err *err)
{
    int       sys = 0;
    socklen_t size = sizeof sys;

    if (!poll_one(fd, POLLOUT, cancel_fd, deadline, err)) {
        if (err->kind == ERR_TIMEOUT)
            err_set(err, ERR_TIMEOUT, E5001, "the host does not answer");
        return false;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &sys, &size) != 0)
        sys = errno;
    return sys == 0 || tcp__refusal(sys, err);
}

bool tcp_connect(const LookupAddress *to, int cancel_fd, Deadline deadline, Stream **out, Err *err)
{
    int one = 1;
    int fd = socket(to->sa.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return tcp__refusal(errno, err);
    /* Without it each small request waits for the other side's delayed ACK. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    bool ok = connect(fd, &to->sa.any, to->length) == 0 ||
              (errno == EINPROGRESS || errno == EINTR ? tcp__finish(fd, cancel_fd, deadline, err) : tcp__refusal(errno, err));
    if (!ok) {
        close(fd);
        return false;
    }
    TcpStream *s = mem_new(sizeof *s);
    s->stream.ops = &tcp__ops;
    s->fd = fd;
    *out = &s->stream;
    return true;
}
