/* nest.h - the folders of a copy that are open, one in the other. A new one has
 * mode 01700 until all that belongs into it is there: the sticky bit, which says
 * nothing in a folder that is its owner's alone, tells the next copy that an
 * interrupted one left it, and it gets its mode then. One that was there before
 * keeps its own.
 *
 * Functions give 0, or an errno. No link is followed. Memory: a descriptor each.
 */
#ifndef ABX_NEST_H
#define ABX_NEST_H

#include "base/base.h"
#include "base/limits.h"

typedef struct NestFolder {
    int      fd;
    bool     fresh;             /* it gets `mode` */
    unsigned mode;
} NestFolder;

typedef struct Nest {
    NestFolder v[LIMIT_SYNC_DEPTH];
    size_t     n;
} Nest;

/* Into the folder `name` of `at`, made unless it is there. ENOTDIR: something else
 * is there; ELOOP: a link is, or it is too deep; `writes`, EACCES: nothing can be made in it. */
ABX_FN int  nest_enter(Nest *n, int at, const char *name, unsigned mode, bool writes);
/* Out of the innermost one, which is whole; why its mode could not be set. */
ABX_FN int  nest_leave(Nest *n);
/* Out of all of them, before their time. Unless the copy is to go on, new ones
 * get their modes, and their owner may still write. */
ABX_FN void nest_abandon(Nest *n, bool goes_on);
/* Is it a folder that an interrupted copy left? */
ABX_FN bool nest_left(int at, const char *name);

#endif
