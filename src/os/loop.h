/* loop.h - one poll loop over many descriptors and deadlines.
 *
 *     w = (LoopWatch){.fd = fd, .events = POLLIN, .deadline = DEADLINE_NONE, .wake = read_it, .owner = me};
 *     loop_add(&loop, &w);
 *     while (running && loop_turn(&loop, err)) ...
 *
 * A watch belongs to its owner, who may change fd, events and deadline at any
 * time, and remove or add any watch from inside a wake. POLLERR and POLLHUP
 * come whatever `events` says: to rest, set fd to -1. A deadline that passed
 * wakes again and again until it is moved.
 *
 * Memory: loop_free(); watches are the owners'.
 */
#ifndef ABX_LOOP_H
#define ABX_LOOP_H

#include "base/err.h"
#include "os/clock.h"
#include <poll.h>

typedef struct LoopWatch LoopWatch;
struct LoopWatch {
    int      fd;                                    /* -1: the deadline alone */
    short    events;
    Deadline deadline;
    void   (*wake)(LoopWatch *w, short revents);    /* revents 0: the deadline passed */
    void    *owner;
    size_t   place;                                 /* private: 1 + its index, 0 when it is in no loop */
};

typedef struct Loop {
    LoopWatch    **watches;     /* NULL where one was removed */
    struct pollfd *fds;
    size_t         n, cap;
} Loop;

ABX_FN void loop_free(Loop *l);
ABX_FN void loop_add(Loop *l, LoopWatch *w);
ABX_FN void loop_remove(Loop *l, LoopWatch *w);     /* one that is in no loop is fine */

/* Wait for the next thing, then wake everybody it concerns, in the order in
 * which they were added. False: ERR_SYSTEM. */
ABX_FN bool loop_turn(Loop *l, Err *err) ABX_CHECK;

#endif
