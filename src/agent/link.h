/* link.h - one connection of the carried helper's: a socket that carries its
 * bytes as they are, or as WebSocket messages, on a poll loop.
 *
 *     link_open(&l, &loop, fd, web, rest, &owner, ctx);
 *     link_put(&l, frames); link_push(&l, parts, n); link_flush(&l);
 *
 * What cannot be sent at once is queued: link_room() says how much more is
 * welcome. The owner's functions are called from the loop alone, and never
 * free the Link from inside.
 *
 * Memory: the queue; link_close().
 */
#ifndef ABX_LINK_H
#define ABX_LINK_H

#include "net/ws.h"
#include "os/loop.h"

enum { LINK_PARTS = 8 };        /* most that are pushed at once */

typedef struct LinkOwner {
    void (*bytes)(void *ctx, Str bytes);
    void (*ended)(void *ctx);       /* the other side sends no more; once */
} LinkOwner;

typedef struct Link {
    Loop            *loop;
    LoopWatch        watch;
    int              fd;
    const LinkOwner *owner;
    void            *ctx;
    WsReader         reader;
    Buf              out;
    size_t           sent;          /* of `out` */
    bool             full;          /* the kernel takes no more until it says so: who waits for room is woken */
    bool             web;
    bool             ended;         /* nothing more will come */
    bool             broken;        /* nothing more can be sent, or too much waits */
    bool             paused;        /* the owner wants nothing now */
} Link;

/* Takes the descriptor, which does not block. */
ABX_FN void link_open(Link *l, Loop *loop, int fd, bool web, const LinkOwner *owner, void *ctx);
ABX_FN void link_close(Link *l);

/* What was read before the link was made. */
ABX_FN void link_feed(Link *l, Str bytes);

ABX_FN size_t link_room(const Link *l);
ABX_FN void   link_put(Link *l, Str frames);            /* queued, until link_flush() */
ABX_FN void   link_push(Link *l, const Str *parts, int n);   /* sent, as far as it goes, behind what is queued */
ABX_FN void   link_flush(Link *l);
ABX_FN bool   link_idle(const Link *l);                 /* nothing is queued, or it never can be sent */
ABX_FN void   link_bye(Link *l);                        /* say that nothing follows */
ABX_FN void   link_pause(Link *l, bool paused);

#endif
