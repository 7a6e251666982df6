/* inflate.h - inflates gzip (RFC 1952) and zlib (RFC 1950) data, by zlib. The
 * one file that sees zlib.
 *
 *     Inflate *z = inflate_open(INFLATE_GZIP);
 *     while (there are bytes `in`)
 *         do step = inflate_next(z, &in, p, cap, &n, err); ... while (n == cap);
 *     if (!inflate_whole(z)) ...      cut short
 *     inflate_close(z);
 *
 * How much comes out is the caller's to limit: a kilobyte can become a megabyte.
 *
 * Memory: 48 KiB, until inflate_close().
 */
#ifndef ABX_INFLATE_H
#define ABX_INFLATE_H

#include "base/buf.h"
#include "base/err.h"

/* A stream of bytes cut anywhere. */
typedef struct Inflate Inflate;

typedef enum InflateKind {
    INFLATE_GZIP,       /* members, one after the other, are one stream; zero bytes may fill up its end */
    INFLATE_MEMBER,     /* one gzip member */
    INFLATE_ZLIB,
} InflateKind;

ABX_FN  Inflate *inflate_open(InflateKind kind);
ABX_FN void     inflate_again(Inflate *z);         /* the next stream of the same kind */
ABX_FN  void     inflate_close(Inflate *z);         /* NULL is fine */

/* Inflates from *in into p; *n says how much came, also with STEP_DONE, and *in
 * is moved past what was used.
 *   STEP_DONE  the stream ended, and *in stands right behind it; never for GZIP
 *   STEP_MORE  p is full, or *in is used up and all that it gave is in p
 *   STEP_ERR   ERR_INPUT, E0000: damaged; every later call says the same */
ABX_FN Step inflate_next(Inflate *z, Str *in, char *p, size_t cap, size_t *n, Err *err) ABX_CHECK;

/* The input may end here: a stream was whole. */
ABX_FN bool inflate_whole(const Inflate *z);

/* The contents of one whole gzip member to the end of *out. False: ERR_INPUT
 * (damaged, cut short, or bytes behind it), ERR_LIMIT (more than the Buf
 * holds); E0000: the caller knows what it was. */
ABX_FN bool inflate_gzip(Str member, Buf *out, Err *err) ABX_CHECK;

#endif
