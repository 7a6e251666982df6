/* pktline.h - git's packets (gitprotocol-common, "pkt-line format"), read from
 * bytes that come cut anywhere, and written.
 *
 *     PktReader r = pktline_reader();
 *     while ((step = pktline_next(&r, &in, &pkt, err)) == STEP_DONE) ...
 *     pktline_free(&r);
 *
 * Memory: a reader holds one packet, at most PKT_LONGEST bytes. A packet's
 * text is good until the next call.
 */
#ifndef ABX_PKTLINE_H
#define ABX_PKTLINE_H

#include "base/buf.h"
#include "base/err.h"

enum { PKT_LONGEST = 65520 };       /* with its length; more is refused */

typedef enum PktKind {
    PKT_DATA,
    PKT_FLUSH,      /* 0000 */
    PKT_DELIM,      /* 0001 */
    PKT_END,        /* 0002, response-end */
} PktKind;

typedef struct Pkt {
    PktKind kind;
    Str     bytes;  /* PKT_DATA: may be empty */
} Pkt;

typedef struct PktReader {
    char   head[4];
    size_t digits;      /* of the length that are there */
    size_t left;        /* of the payload, while digits is 4 */
    bool   given;       /* the last call handed out what is in `payload` */
    bool   failed;
    Buf    payload;
} PktReader;

ABX_FN PktReader pktline_reader(void);
ABX_FN void      pktline_free(PktReader *r);

/* STEP_DONE: a packet; call again, *in may hold more. STEP_MORE: *in is used up.
 * STEP_ERR: ERR_INPUT, E8010: a length that is none; every later call says so. */
ABX_FN Step pktline_next(PktReader *r, Str *in, Pkt *out, Err *err) ABX_CHECK;

/* Without the one LF that may end a line of text. */
ABX_FN Str pktline_text(Str bytes);

/* A packet to the end of the Buf: a text that is shorter than PKT_LONGEST - 4, or one of the signs. */
ABX_FN void pktline_putf(Buf *b, const char *fmt, ...) ABX_PRINTF(2, 3);
ABX_FN void pktline_sign(Buf *b, PktKind kind);

#endif
