/* sender.h - files of this machine as the stream of a copy (sync/item.h): a
 * walk, made into tar, with the SHA-256 of each file computed as it is read.
 *
 *     Sender *s = sender_open(&rq);
 *     while (sender_read(s, p, cap, &n, err) && n > 0) ...
 *     sender_close(s);
 *
 * A file is sent with the size that it had when it was opened. One that became
 * shorter is filled up with zeros, and like one that was changed while it was
 * read (its size or its time of change is another at the end) declared failed,
 * ESTALE, so that the receiver drops it. One of no bytes is read all the same:
 * what /proc has in such goes with it, up to LIMIT_COPY_BLOCK (EFBIG). Holes are
 * zeros in the stream, and not read from the disk.
 *
 * What takes long without a byte for the stream, counting and hashing what the
 * receiver may have, is done in parts, with tar_put_nothing() between them.
 *
 * Memory: five LIMIT_COPY_BLOCKs at most and a walk; sender_close().
 */
#ifndef ABX_SENDER_H
#define ABX_SENDER_H

#include "sync/have.h"
#include "sync/walk.h"

typedef struct SenderRequest {
    const WalkRoot *roots;      /* the caller keeps them */
    size_t          count;
    const Have     *have;       /* what the receiver has; NULL: nothing */
    bool            total;      /* begin with ITEM_TOTAL: one more walk, in which no file is opened */
    /* Each record as it goes into the stream; NULL: nobody listens. */
    void (*item)(void *ctx, const Item *i);
    /* so many bytes of files went into the stream since the last call; NULL */
    void (*moved)(void *ctx, int64_t bytes);
    void *ctx;
} SenderRequest;

typedef struct Sender Sender;

ABX_FN Sender *sender_open(const SenderRequest *rq);
/* Up to cap bytes (at least 512) into p; *n 0: the end. Local files are read, nothing
 * waits. False: ERR_LIMIT, a name or a link that no archive can hold. */
ABX_FN bool sender_read(Sender *s, char *p, size_t cap, size_t *n, Err *err) ABX_CHECK;
ABX_FN void sender_close(Sender *s);                        /* NULL is fine */

#endif
