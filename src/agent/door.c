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
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    DOOR_HEAD = 16 << 10,
    DOOR_READ = 4096,
    DOOR_PORT = LIMIT_CARRY_KNOCKS, DOOR_HANDS,     /* their places among what is polled */
    DOOR_POLLED,
};

typedef struct DoorKnock {
    int            fd;          /* -1: free */
    bool           hands;       /* somebody who will hand one over */
    int64_t        since;
    HttpHeadReader reader;
    size_t         read;        /* of a head */
} DoorKnock;

/* ---- connections that are handed over ---- */

/* A socket that has the port's name, or is connected to the one that has it. */
static int door__named(int port, int (*join)(int, const struct sockaddr *, socklen_t))
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t             n = offsetof(struct sockaddr_un, sun_path) + 1;
    int                fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    n += (size_t)snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "abx-door-%d", port);
    if (fd >= 0 && join(fd, (const struct sockaddr *)&at, (socklen_t)n) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* One descriptor, and no room for more. */
typedef union DoorPass {
    struct cmsghdr head;
    char           room[CMSG_LEN(sizeof(int))];
} DoorPass;

static struct msghdr door__message(struct iovec *v, DoorPass *pass)
{
    return (struct msghdr){.msg_iov = v, .msg_iovlen = 1, .msg_control = pass, .msg_controllen = CMSG_LEN(sizeof(int))};
}

bool door_hand(int port, int client, Str head)
{
    struct ucred  who;
    socklen_t     n = sizeof who;
    DoorPass      pass = {.head = {.cmsg_len = CMSG_LEN(sizeof client), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec  v = {(char *)head.p, head.n};
    struct msghdr m = door__message(&v, &pass);
    int           fd = client < 0 || head.n > DOOR_READ ? -1 : door__named(port, connect);

    if (fd < 0)
        return false;
    memcpy(CMSG_DATA(&pass.head), &client, sizeof client);
    /* Anybody may have taken the name. */
    bool ok = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.uid == geteuid() &&
              sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)head.n;
    close(fd);
    return ok;
}

/* The head, as if it had been read from the connection that comes with it. */
static ssize_t door__take(DoorKnock *k, char *to)
{
    DoorPass      pass;
    struct iovec  v = {to, DOOR_READ};
    struct msghdr m = door__message(&v, &pass);
    ssize_t       n = recvmsg(k->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (n < 0 || m.msg_controllen < CMSG_LEN(sizeof k->fd) || pass.head.cmsg_type != SCM_RIGHTS)
        return n < 0 ? n : 0;
    close(k->fd);
    memcpy(&k->fd, CMSG_DATA(&pass.head), sizeof k->fd);
    k->hands = false;
    return n;
}

bool door_open(Door *d, Err *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t          n = sizeof at;
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, n) != 0 || listen(fd, 16 * LIMIT_CARRY_KNOCKS) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) != 0) {
        err_sys(err, errno, E5000, "listen on 127.0.0.1");
        if (fd >= 0)
            close(fd);
        return false;
    }
    *d = (Door){.port = ntohs(at.sin_port), .port_fd = fd, .hand_fd = door__named(ntohs(at.sin_port), bind)};
    (void)listen(d->hand_fd, LIMIT_CARRY_KNOCKS);
    return true;
}

/* ---- who knocks ---- */

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
    ABX_UNSET char accept_text[WS_ACCEPT + 1];
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
    ABX_UNSET char bytes[DOOR_READ];
    ssize_t  n = k->hands ? door__take(k, bytes) : recv(k->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    Str      in = {bytes, n > 0 ? (size_t)n : 0};
    Arena    a = arena_make(LIMIT_HTTPD_ARENA);
    HttpHead head;
    ABX_UNSET Err err;
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

static void door__knock(DoorKnock *knocks, int fd, bool hands)
{
    DoorKnock *k = knocks;
    int        on = 1;

    for (int i = 1; i < LIMIT_CARRY_KNOCKS && k->fd >= 0; i++)
        if (knocks[i].fd < 0 || knocks[i].since < k->since)
            k = &knocks[i];
    door__drop(k);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *k = (DoorKnock){.fd = fd, .hands = hands, .since = clock_mono_ms(), .reader = http_head_reader(HTTP_REQUEST)};
}

int door_wait(const Door *d, Str token, Buf *rest)
{
    DoorKnock     knocks[LIMIT_CARRY_KNOCKS];
    struct pollfd fds[DOOR_POLLED + 1];
    Deadline      until = clock_after(LIMIT_CARRY_WAIT_MS);
    int           found = -1, fd;
    ABX_UNSET Err err;

    for (int i = 0; i < LIMIT_CARRY_KNOCKS; i++)
        knocks[i].fd = -1;
    while (found < 0 && !clock_passed(until)) {
        for (int i = 0; i < LIMIT_CARRY_KNOCKS; i++)
            fds[i] = (struct pollfd){.fd = knocks[i].fd, .events = POLLIN};
        fds[DOOR_PORT] = (struct pollfd){.fd = d->port_fd, .events = POLLIN};
        fds[DOOR_HANDS] = (struct pollfd){.fd = d->hand_fd, .events = POLLIN};
        if (!poll_wait(fds, DOOR_POLLED, -1, until, &err))
            break;
        for (int i = 0; i < LIMIT_CARRY_KNOCKS && found < 0; i++)
            if (fds[i].fd >= 0 && fds[i].revents && door__listen(&knocks[i], token, rest)) {
                found = knocks[i].fd;
                http_head_free(&knocks[i].reader);
                knocks[i].fd = -1;
            }
        /* No more at once than can be heard: what they said is looked at first. */
        for (int i = 0; i < LIMIT_CARRY_KNOCKS / 2 && found < 0; i++)
            for (int at = DOOR_PORT; at < DOOR_POLLED; at++)
                if (fds[at].revents && (fd = accept4(fds[at].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
                    door__knock(knocks, fd, at == DOOR_HANDS);
    }
    close(d->port_fd);
    if (d->hand_fd >= 0)
        close(d->hand_fd);
    for (int i = 0; i < LIMIT_CARRY_KNOCKS; i++)
        door__drop(&knocks[i]);
    return found;
}
