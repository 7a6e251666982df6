/* terminal.h - /pty: bash on a terminal, or behind pipes, over a WebSocket.
 *
 * A session begins with its first client, goes on without one, and begins anew
 * with a client that comes after its end. There is one client at a time; it is
 * given what it missed, as far as the ring of agent/program goes back, then
 * what comes, and holds the program up while it takes nothing. The exit is said
 * when all of the output was.
 *
 * Memory: a ring for each session that has begun, until it is deleted.
 */
#ifndef ABX_TERMINAL_H
#define ABX_TERMINAL_H

#include "net/httpd.h"
#include <sys/types.h>

struct Daemon;

typedef struct Terminal Terminal;

typedef struct Terminals {
    Terminal *first;
    size_t    n;
    LoopWatch tick;
} Terminals;

ABX_FN void terminal_post(HttpdCall *c, Str body);      /* POST /pty, its body gathered */
ABX_FN bool terminal_route(HttpdCall *c, Str path);     /* /pty/ID and /pty/ID/ws; false: it is neither */

ABX_FN void terminal_reaped(struct Daemon *d, pid_t pid, int status);
ABX_FN void terminal_turn(struct Daemon *d);            /* after each turn of the loop */
ABX_FN void terminal_free_all(struct Daemon *d);        /* what runs is hung up */

#endif
