#include "os/lookup.h"

#include "base/limits.h"
#include "base/str.h"
#include "os/poll.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOKUP_NAME = 512 };     /* more than any host name and its zone */

/* What the child sends, in one write: less than PIPE_BUF, so all or nothing. */
typedef struct LookupReply {
    int           failure;      /* an EAI_ value, 0: none */
    int           sys;          /* errno, with EAI_SYSTEM */
    int           count;
    LookupAddress address[LOOKUP_MAX];
} LookupReply;

_Static_assert(sizeof(LookupReply) <= 4096, "a reply must fit into one atomic write");

static LookupAddress lookup__v4(struct in_addr address, int port)
{
    LookupAddress a = {.length = sizeof a.sa.v4};

    a.sa.v4.sin_family = AF_INET;
    a.sa.v4.sin_port = htons((uint16_t)port);
    a.sa.v4.sin_addr = address;
    return a;
}

static LookupAddress lookup__v6(struct in6_addr address, unsigned scope, int port)
{
    LookupAddress a = {.length = sizeof a.sa.v6};

    a.sa.v6.sin6_family = AF_INET6;
    a.sa.v6.sin6_port = htons((uint16_t)port);
    a.sa.v6.sin6_addr = address;
    a.sa.v6.sin6_scope_id = scope;
    return a;
}

static bool lookup__literal(const char *name, int port, LookupAddress *out)
{
    struct in_addr  v4;
    struct in6_addr v6;
    ABX_UNSET char text[LOOKUP_NAME];
    unsigned        scope = 0;

    if (inet_pton(AF_INET, name, &v4) == 1) {
        *out = lookup__v4(v4, port);
        return true;
    }
    snprintf(text, sizeof text, "%s", name);
    char *zone = strchr(text, '%');
    if (zone) {
        *zone++ = 0;
        scope = if_nametoindex(zone);
        if (scope == 0)
            scope = (unsigned)strtoul(zone, NULL, 10);
    }
    if (inet_pton(AF_INET6, text, &v6) != 1)
        return false;
    *out = lookup__v6(v6, scope, port);
    return true;
}

static bool lookup__is_localhost(Str host)
{
    Str name = str_ends(host, STR(".")) ? str_from_to(host, 0, host.n - 1) : host;

    if (name.n > 9 && name.p[name.n - 10] == '.')
        str_skip(&name, name.n - 9);
    return str_eq_nocase(name, STR("localhost"));
}

/* --- in the child --------------------------------------------------------------- */

static void lookup__ask(const char *name, int port, LookupReply *reply)
{
    struct addrinfo  hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;

    reply->failure = getaddrinfo(name, NULL, &hints, &list);
    reply->sys = errno;
    for (struct addrinfo *at = reply->failure ? NULL : list; at && reply->count < LOOKUP_MAX; at = at->ai_next) {
        LookupAddress *a = &reply->address[reply->count];
        if (at->ai_family == AF_INET) {
            struct sockaddr_in v4;
            memcpy(&v4, at->ai_addr, sizeof v4);
            *a = lookup__v4(v4.sin_addr, port);
            reply->count++;
        } else if (at->ai_family == AF_INET6) {
            struct sockaddr_in6 v6;
            memcpy(&v6, at->ai_addr, sizeof v6);
            *a = lookup__v6(v6.sin6_addr, v6.sin6_scope_id, port);
            reply->count++;
        }
    }
    if (list)
        freeaddrinfo(list);
}

/* Only the pipe stays open: not the sockets, and not the lock files. */
static void lookup__close_others(int keep)
{
    long top = sysconf(_SC_OPEN_MAX);

#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)keep + 1, ~0u, 0) == 0)
        top = keep;
#endif
    for (int fd = 0; fd < (top > 65536 ? 65536 : top); fd++)
        if (fd != keep)
            close(fd);
}

static ABX_NORETURN void lookup__child(const char *name, int port, int to, pid_t parent)
{
    LookupReply reply = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) {
        lookup__close_others(to);
        lookup__ask(name, port, &reply);
        if (write(to, &reply, sizeof reply) < 0)
            _exit(1);
    }
    _exit(0);
}

/* --- in the parent -------------------------------------------------------------- */

/* The child starts with all signals blocked: those of the terminal are for the
 * parent, whose handlers it must not run. */
static pid_t lookup__fork(const char *name, int port, const int ends[2])
{
    sigset_t all, before;
    pid_t    parent = getpid();

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        lookup__child(name, port, ends[1], parent);
    int saved = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return pid;
}

static bool lookup__refusal(const char *name, const LookupReply *reply, Err *err)
{
    switch (reply->failure) {
    case EAI_NONAME:
#if defined(EAI_NODATA) && EAI_NODATA != EAI_NONAME
    case EAI_NODATA:
#endif
        return err_set(err, ERR_UNSENT, E5001, "there is no host named %s", name);
    case EAI_AGAIN:
        return err_set(err, ERR_UNSENT, E5001, "the name %s could not be looked up: no answer from a name server", name);
    case EAI_SYSTEM:
        err_sys(err, reply->sys, E5001, "the name %s could not be looked up", name);
        break;
    case 0:
        return err_set(err, ERR_UNSENT, E5001, "the host %s has no address", name);
    default:
        return err_set(err, ERR_UNSENT, E5001, "the name %s could not be looked up: %s", name, gai_strerror(reply->failure));
    }
    err->kind = ERR_UNSENT;
    return false;
}

static bool lookup__receive(int from, const char *name, int cancel_fd, Deadline deadline, LookupReply *reply, Err *err)
{
    Deadline until = clock_sooner(deadline, clock_after(LIMIT_RESOLVE_MS));

    if (!poll_one(from, POLLIN, cancel_fd, until, err))
        return err->kind == ERR_TIMEOUT ? err_set(err, ERR_TIMEOUT, E5001, "the name %s was not found in time", name) : false;
    ssize_t got = read(from, reply, sizeof *reply);
    if (got != (ssize_t)sizeof *reply || reply->count < 0 || reply->count > LOOKUP_MAX)
        return err_set(err, ERR_UNSENT, E5001, "the name %s could not be looked up: the lookup ended early", name);
    return true;
}

static bool lookup__elsewhere(const char *name, int port, int cancel_fd, Deadline deadline, LookupReply *reply, Err *err)
{
    int   ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return err_sys(err, errno, E5001, "looking up %s", name);
    pid_t pid = lookup__fork(name, port, ends);
    int   failed = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return err_sys(err, failed, E5001, "looking up %s", name);
    }
    bool ok = lookup__receive(ends[0], name, cancel_fd, deadline, reply, err);
    close(ends[0]);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return ok;
}

bool lookup_host(Str host, int port, int cancel_fd, Deadline deadline, LookupAddress out[static LOOKUP_MAX], size_t *n,
                 Err *err)
{
    ABX_UNSET char name[LOOKUP_NAME];
    LookupReply reply = {0};

    if (host.n >= sizeof name || str_has_control(host))
        return err_set(err, ERR_UNSENT, E5001, "the host's name is not one that can be looked up");
    memcpy(name, host.p, host.n);
    name[host.n] = 0;
    if (lookup__is_localhost(host)) {
        out[0] = lookup__v4((struct in_addr){htonl(INADDR_LOOPBACK)}, port);
        out[1] = lookup__v6(in6addr_loopback, 0, port);
        *n = 2;
        return true;
    }
    if (lookup__literal(name, port, &out[0])) {
        *n = 1;
        return true;
    }
    if (!lookup__elsewhere(name, port, cancel_fd, deadline, &reply, err))
        return false;
    if (reply.failure || reply.count == 0)
        return lookup__refusal(name, &reply, err);
    memcpy(out, reply.address, (size_t)reply.count * sizeof *out);
    *n = (size_t)reply.count;
    return true;
}
