#include "net/listen.h"

#include "base/mem.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTEN_AT_ONCE = 64, LISTEN_QUEUE = 1024, LISTEN_FULL_MS = 100 };

struct Listen {
    Loop              *loop;
    LoopWatch          watch;
    const ListenOwner *owner;
    void              *ctx;
    bool               rests;
};

static void listen__accept(LoopWatch *w, short revents)
{
    Listen *l = w->owner;

    w->deadline = DEADLINE_NONE;
    w->events = l->rests ? 0 : POLLIN;
    if (!revents)
        return;
    for (int i = 0; i < LISTEN_AT_ONCE && !l->rests; i++) {
        int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            l->owner->take(l->ctx, fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        bool full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        /* Only at first: a full table is said also where nobody waits any more. */
        if (full && i == 0 && !l->owner->spare(l->ctx)) {
            w->events = 0;                          /* looked at again in a while */
            w->deadline = clock_after(LISTEN_FULL_MS);
        }
        return;
    }
}

static int listen__bind(const struct addrinfo *ai)
{
    int on = 1, off = 0;
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (ai->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, LISTEN_QUEUE) == 0)
        return fd;
    int sys = errno;
    close(fd);
    errno = sys;
    return -1;
}

/* The port stands at the same place in both kinds of address. */
static int listen__bound_port(int fd)
{
    struct sockaddr_in6 a;
    socklen_t           n = sizeof a;

    return getsockname(fd, (struct sockaddr *)&a, &n) == 0 ? ntohs(a.sin6_port) : 0;
}

static bool listen__at(const char *host, int *port, int *fd, Err *err)
{
    struct addrinfo  hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *ai = NULL;
    ABX_UNSET char service[16];

    snprintf(service, sizeof service, "%d", *port);
    if (*port < 0 || *port > 65535 || getaddrinfo(host, service, &hints, &ai) != 0)
        return err_set(err, ERR_USAGE, E8002, "cannot listen at %s port %d: not an address", host, *port);
    *fd = listen__bind(ai);
    int sys = errno;
    freeaddrinfo(ai);
    if (*fd < 0)
        return err_sys(err, sys, E5000, "cannot listen at %s port %d", host, *port);
    *port = listen__bound_port(*fd);
    return true;
}

bool listen_open(Loop *loop, const char *host, int *port, const ListenOwner *owner, void *ctx, Listen **out, Err *err)
{
    int  fd = -1;
    bool ok = *host ? listen__at(host, port, &fd, err)
                    : listen__at("::", port, &fd, err) || listen__at("0.0.0.0", port, &fd, err);

    if (!ok)
        return false;
    Listen *l = mem_new(sizeof *l);
    *l = (Listen){.loop = loop, .owner = owner, .ctx = ctx};
    l->watch = (LoopWatch){.fd = fd, .events = POLLIN, .deadline = DEADLINE_NONE, .wake = listen__accept, .owner = l};
    loop_add(loop, &l->watch);
    *out = l;
    return true;
}

void listen_rest(Listen *l, bool on)
{
    if (!l)
        return;
    l->rests = on;
    l->watch.events = on ? 0 : POLLIN;
}

void listen_close(Listen *l)
{
    if (!l)
        return;
    loop_remove(l->loop, &l->watch);
    close(l->watch.fd);
    mem_free(l);
}
