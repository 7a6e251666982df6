/* asks.h - what is asked of a command that runs, on its way from the server to
 * the call that runs it (serve/running.h has the lines), and who is still to be
 * answered.
 *
 *     Asks asks = asks_make(fd);       one for each such call
 *     asks_add(&asks, id, line);       a request
 *     asks_hand_on(&asks);             whenever asks.fd is writable and asks.to.n is not 0
 *     asks_answered(&asks, id);        the call answered it
 *     asks_free(&asks);                before that, asks.first are those without an answer
 */
#ifndef ABX_ASKS_H
#define ABX_ASKS_H

#include "base/buf.h"

/* A request that the call will answer. */
typedef struct Ask Ask;
struct Ask {
    Ask  *next;
    char *id;                   /* as JSON text */
};

typedef struct Asks {
    int  fd;                    /* a pipe that never blocks; -1: none, or nobody listens any more */
    Buf  to;                    /* goes there as soon as it takes it */
    Ask *first;
} Asks;

ABX_FN Asks asks_make(int fd);              /* the fd belongs to it now */
ABX_FN void asks_free(Asks *a);

/* May a command be meant by a request of this method? */
ABX_FN bool asks_known(Str method);

/* False: more than LIMIT_SERVE_HELD of them, or than LIMIT_SERVE_REQUEST bytes, would wait. */
ABX_FN bool asks_add(Asks *a, Str id, Str line) ABX_CHECK;
ABX_FN void asks_hand_on(Asks *a);
ABX_FN void asks_answered(Asks *a, Str id); /* forget it; nothing where there is none of that id */
ABX_FN void asks_cancel(Asks *a, Str id);   /* tell the call that the host does not wait for it any more */

#endif
