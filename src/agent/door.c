#include "agent/door.h"

#include "base/limits.h"
#include "base/str.h"
#include "net/http.h"
#include "net/ws.h"
#include "os/poll.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DOOR_HEAD = 16 << 10, DOOR_PORT = LIMIT_CARRY_KNOCKS };  /* the place of the port among what is polled */

typedef struct DoorKnock {
    int            fd;          /* -1: free */
    int64_t        since;
    HttpHeadReader reader;
    size_t         read;        /* of a head */
} DoorKnock;

int door_open(int *port, Err *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t          n = sizeof at;
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, n) != 0 || listen(fd, 16 * LIMIT_CARRY_KNOCKS) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) != 0) {
        err_sys(err, errno, E5000, "listen on 127.0.0.1");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    *port = ntohs(at.sin_port);
    return fd;
}

static void door__drop(DoorKnock *k)
{
    if (k->fd < 0)
        return;
    close(k->fd);
    http_head_free(&k->reader);
    k->fd = -1;
}

/* In the same time, however much of it is right. */
static bool door__same(Str a, Str b)
{
    unsigned char other = 0;

    for (size_t i = 0; i < a.n && a.n == b.n; i++)
        other |= (unsigned char)(a.p[i] ^ b.p[i]);
    return a.n == b.n && other == 0;
}

static bool door__good(const HttpHead *h, Str token)
{
    Str path = h->target;

    if (path.n == 0)
        return false;
    str_skip(&path, 1);
    return door__same(path, token) && str_eq(h->method, STR("GET")) && h->minor == 1 &&
           header_has_token(h->headers, "Connection", "upgrade") &&
           header_has_token(h->headers, "Upgrade", "websocket") &&
           str_eq(header_get(h->headers, "Sec-WebSocket-Version"), STR("13")) &&
           header_get(h->headers, "Sec-WebSocket-Key").n == WS_KEY;
}

/* A new connection has room for so little: what does not go at once never will. */
static bool door__send(int fd, const Buf *b)
{
    return send(fd, b->p, b->n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)b->n;
}

static bool door__welcome(int fd, const HttpHead *h)
{
    char accept_text[WS_ACCEPT + 1];
    Buf  b = buf_make(512);

    ws_accept(header_get(h->headers, "Sec-WebSocket-Key"), accept_text);
    buf_addf(&b, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Accept: %s\r\n\r\n", accept_text);
    bool ok = door__send(fd, &b);
    buf_free(&b);
    return ok;
}

static void door__refuse(DoorKnock *k)
{
    Buf b = buf_make(128);

    buf_add(&b, STR("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
    if (!door__send(k->fd, &b))
        shutdown(k->fd, SHUT_RDWR);
    buf_free(&b);
    door__drop(k);
}

/* True: this is the one. */
static bool door__listen(DoorKnock *k, Str token, Buf *rest)
{
    char     bytes[4096];
    ssize_t  n = recv(k->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    Str      in = {bytes, n > 0 ? (size_t)n : 0};
    Arena    a = arena_make(LIMIT_HTTPD_ARENA);
    HttpHead head;
    ABX_UNSET Err      err;
    bool     good = false;

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        arena_free(&a);
        return false;
    }
    k->read += in.n;
    Step step = n <= 0 || k->read > DOOR_HEAD ? STEP_ERR : http_head_next(&k->reader, &in, &a, &head, &err);
    if (step == STEP_DONE && door__good(&head, token)) {
        buf_add(rest, in);
        good = door__welcome(k->fd, &head);
    }
    if (!good && step != STEP_MORE)
        door__refuse(k);
    arena_free(&a);
    return good;
}

static void door__knock(DoorKnock *knocks, int fd)
{
    DoorKnock *k = knocks;
    int        on = 1;

    for (int i = 1; i < LIMIT_CARRY_KNOCKS && k->fd >= 0; i++)
        if (knocks[i].fd < 0 || knocks[i].since < k->since)
            k = &knocks[i];
    door__drop(k);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *k = (DoorKnock){.fd = fd, .since = clock_mono_ms(), .reader = http_head_reader(HTTP_REQUEST)};
}

int door_wait(int port_fd, Str token, Buf *rest)
{
    DoorKnock     knocks[LIMIT_CARRY_KNOCKS];
    struct pollfd fds[LIMIT_CARRY_KNOCKS + 2];
    Deadline      until = clock_after(LIMIT_CARRY_WAIT_MS);
    int           found = -1, fd;
    ABX_UNSET Err           err;

    for (int i = 0; i < LIMIT_CARRY_KNOCKS; i++)
        knocks[i].fd = -1;
    while (found < 0 && !clock_passed(until)) {
        for (int i = 0; i < LIMIT_CARRY_KNOCKS; i++)
            fds[i] = (struct pollfd){.fd = knocks[i].fd, .events = POLLIN};
        fds[DOOR_PORT] = (struct pollfd){.fd = port_fd, .events = POLLIN};
        if (!poll_wait(fds, DOOR_PORT + 1, -1, until, &err))
            break;
        for (int i = 0; i < LIMIT_CARRY_KNOCKS && found < 0; i++)
            if (fds[i].fd >= 0 && fds[i].revents && door__listen(&knocks[i], token, rest)) {
                found = knocks[i].fd;
                http_head_free(&knocks[i].reader);
                knocks[i].fd = -1;
            }
        /* No more at once than can be heard: what they said is looked at first. */
        for (int i = 0; i < LIMIT_CARRY_KNOCKS / 2 && found < 0 && fds[DOOR_PORT].revents; i++)
            if ((fd = accept4(port_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
                door__knock(knocks, fd);
    }
    close(port_fd);
    for (int i = 0; i < LIMIT_CARRY_KNOCKS; i++)
        door__drop(&knocks[i]);
    return found;
}
