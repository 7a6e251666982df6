/* lookup.h - the addresses of a host, found without getting stuck.
 *
 * Address literals and localhost (RFC 6761, 6.3) are answered here, with no
 * system call. Other names go to getaddrinfo() in a forked child, which can be
 * killed when the deadline passes or Ctrl-C comes; it sends the addresses over
 * a pipe and lives no longer than the call.
 *
 *     LookupAddress a[LOOKUP_MAX]; size_t n;
 *     if (!lookup_host(host, 443, cancel_fd, deadline, a, &n, err)) ...
 */
#ifndef ABX_LOOKUP_H
#define ABX_LOOKUP_H

#include "base/err.h"
#include "os/clock.h"
#include <netinet/in.h>
#include <sys/socket.h>

enum { LOOKUP_MAX = 16 };       /* a name with more addresses is tried at its first ones */

typedef struct LookupAddress {
    socklen_t length;
    union {
        struct sockaddr     any;
        struct sockaddr_in  v4;
        struct sockaddr_in6 v6;
    } sa;
} LookupAddress;

/* In the order in which they should be tried; at least one. An IPv6 literal
 * comes without brackets, with its zone behind a % if it has one. False, E5001:
 * ERR_UNSENT (there is no such name, the name server does not answer: the text
 * says which, and names the host), ERR_TIMEOUT, ERR_CANCELLED (E0000). */
ABX_FN bool lookup_host(Str host, int port, int cancel_fd, Deadline deadline, LookupAddress out[static LOOKUP_MAX],
                        size_t *n, Err *err) ABX_CHECK;

#endif
