#include "os/loop.h"

#include "base/mem.h"
#include "os/poll.h"

void loop_free(Loop *l)
{
    mem_free(l->watches);
    mem_free(l->fds);
    *l = (Loop){0};
}

void loop_add(Loop *l, LoopWatch *w)
{
    if (w->place)
        BUG("watch is in a loop already");
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 16;
        l->watches = mem_grow(l->watches, l->cap, sizeof *l->watches);
        l->fds = mem_grow(l->fds, l->cap + 1, sizeof *l->fds);      /* one more for poll_wait() */
    }
    l->watches[l->n++] = w;
    w->place = l->n;
}

void loop_remove(Loop *l, LoopWatch *w)
{
    if (w->place)
        l->watches[w->place - 1] = NULL;
    w->place = 0;
}

/* Close the gaps, and say what to wait for and until when. */
static Deadline loop__collect(Loop *l)
{
    Deadline first = DEADLINE_NONE;
    size_t   n = 0;

    for (size_t i = 0; i < l->n; i++) {
        LoopWatch *w = l->watches[i];
        if (!w)
            continue;
        l->watches[n] = w;
        l->fds[n++] = (struct pollfd){.fd = w->fd, .events = w->events};
        w->place = n;
        first = clock_sooner(first, w->deadline);
    }
    l->n = n;
    return first;
}

bool loop_turn(Loop *l, Err *err)
{
    Deadline first = loop__collect(l);
    size_t   n = l->n;
    ABX_UNSET Err end;

    if (n == 0)
        BUG("nothing to wait for");
    if (!poll_wait(l->fds, n, -1, first, &end) && end.kind != ERR_TIMEOUT) {
        *err = end;
        return false;
    }
    int64_t now = clock_mono_ms();
    for (size_t i = 0; i < n; i++) {
        /* Read anew each time: a wake may have removed or changed any other.
         * One that was removed and added again stands behind n. */
        LoopWatch *w = l->watches[i];
        if (!w)
            continue;
        short came = w->fd == l->fds[i].fd ? l->fds[i].revents : 0;
        if (came || w->deadline <= now)
            w->wake(w, came);
    }
    return true;
}
