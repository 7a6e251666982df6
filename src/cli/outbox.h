/* outbox.h - output on its way to standard output and standard error, for a
 * loop that must not wait for their readers.
 *
 * One queue for both, so that what they are given keeps its order also where
 * both are one file. Small pieces gather until they are a block, large ones that
 * nothing waits in front of go out at once, as far as they go; a reader that
 * takes nothing makes the queue grow, and its owner stops adding when it is
 * full (outbox_full).
 *
 * Memory: outbox_free().
 */
#ifndef ABX_OUTBOX_H
#define ABX_OUTBOX_H

#include "base/buf.h"
#include "base/err.h"

typedef struct Outbox {
    Buf    queue;       /* pieces: a head of 4 bytes (length, and whose it is in the top bit), its bytes */
    size_t at;          /* where the first piece starts */
    size_t done;        /* so much of its bytes was written */
    size_t last;        /* where the last piece starts */
} Outbox;

ABX_FN Outbox outbox_make(void);
ABX_FN void   outbox_free(Outbox *o);

/* Never fails: memory is bounded by whoever looks at outbox_full(). */
ABX_FN void outbox_add(Outbox *o, int fd, Str bytes);
ABX_FN bool outbox_full(const Outbox *o);
ABX_FN bool outbox_empty(const Outbox *o);

/* Writes what can be written without waiting. False: ERR_SYSTEM with sys EPIPE
 * where the reader has gone, ENOSPC, EBADF, ... */
ABX_FN bool outbox_flush(Outbox *o, Err *err) ABX_CHECK;

/* The descriptor that must become writable before more can be written; -1: none. */
ABX_FN int outbox_fd(const Outbox *o);

#endif
