/* ring.h - the end of what a program printed: OUT and ERR in their order, kept
 * for those who have not got it yet, or who come back for it.
 *
 *     while ((n = ring_space(&r, keep, &p)) > 0 && (n = read(fd, p, n)) > 0)
 *         ring_grew(&r, kind, n);
 *     RingPlace at = ring_place(&r, offset);
 *     while ((piece = ring_piece(&r, &at, most, &kind)).n)
 *         ... ring_pass(&at, piece.n)
 *
 * Bytes are counted from the program's start, OUT and ERR together. What is new
 * takes the room of what is oldest, but not of what is at or behind `keep`.
 *
 * Memory: RING_BYTES, touched as they are used; ring_free().
 */
#ifndef ABX_RING_H
#define ABX_RING_H

#include "base/base.h"

enum { RING_BYTES = 1 << 20, RING_RUNS = 16384 };

typedef struct Ring {
    char     *data;
    uint32_t *runs;             /* pieces of one kind, the oldest at first % RING_RUNS: kind in the highest bit, length */
    uint64_t  first, last;      /* runs [first, last), counted from the start */
    uint64_t  base, end;        /* bytes [base, end) are there */
    size_t    at;               /* where `end` goes in data */
    uint64_t  total[2];         /* of OUT, of ERR */
} Ring;

typedef struct RingPlace {
    uint64_t offset;
    uint64_t run;               /* which, and how far in it */
    uint32_t in;
} RingPlace;

ABX_FN Ring ring_make(void);
ABX_FN void ring_free(Ring *r);

/* Room in one piece behind `end`; 0: bytes from `keep` on would be lost. */
ABX_FN size_t ring_space(Ring *r, uint64_t keep, char **p);
ABX_FN void   ring_grew(Ring *r, bool is_err, size_t n);

/* Nobody needs what is there: begin at the front again, in memory that is warm. */
ABX_FN void ring_rewind(Ring *r);

/* Where `offset` is; where the ring begins if that is gone already. */
ABX_FN RingPlace ring_place(const Ring *r, uint64_t offset);

/* What is there, at most `most` bytes; empty: nothing yet. A place that was
 * overrun has moved to where the ring begins. */
ABX_FN Str  ring_piece(const Ring *r, RingPlace *at, size_t most, bool *is_err);
ABX_FN void ring_pass(RingPlace *at, size_t n);

#endif
