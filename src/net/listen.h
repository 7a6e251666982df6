/* listen.h - a TCP port that others connect to, on a poll loop.
 *
 * Connections go to their owner as they come. When the process has no
 * descriptor left, the owner is asked to close something; when it has nothing
 * to close, who wants to connect waits in the kernel's queue.
 *
 * Memory: listen_close() closes the port and frees the Listen.
 */
#ifndef ABX_LISTEN_H
#define ABX_LISTEN_H

#include "os/loop.h"

typedef struct Listen Listen;

typedef struct ListenOwner {
    void (*take)(void *ctx, int fd);    /* a connection, not blocking; it is the owner's from here */
    bool (*spare)(void *ctx);           /* close one descriptor; false: none can be spared */
} ListenOwner;

/* At an address ("127.0.0.1", "::"; "" is every address, IPv6 where there is
 * any) and *port; port 0 is a free one, written to *port. False: ERR_SYSTEM,
 * E5000, or ERR_USAGE, E8002, when host is no address. */
ABX_FN bool listen_open(Loop *loop, const char *host, int *port, const ListenOwner *owner, void *ctx, Listen **out,
                        Err *err) ABX_CHECK;
ABX_FN void listen_rest(Listen *l, bool on);    /* who wants to connect waits in the kernel's queue; NULL is fine */
ABX_FN void listen_close(Listen *l);    /* NULL is fine */

#endif
