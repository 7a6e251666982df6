/* lines.h - a command's output, cut into what events carry (docs/agent.md).
 *
 * The stock daemon's clients get one event a line, without its terminator; LF,
 * CR LF and CR each end one. What such an event cannot say goes into it beside
 * the text, as exact bytes, so that a client that knows of them loses nothing.
 *
 * Bytes come in cut anywhere. A CR waits for the byte behind it, a line for
 * its end, up to LIMIT_AGENT_LINE: then what is there is handed on, unended.
 *
 * Memory: at most LIMIT_AGENT_LINE, freed by lines_free().
 */
#ifndef ABX_LINES_H
#define ABX_LINES_H

#include "base/buf.h"

typedef struct Lines {
    Buf  part;          /* the beginning of a line, from earlier calls */
    size_t given;       /* so much of it was handed out by the last call */
    bool exact;         /* see lines_make() */
} Lines;

typedef struct LinesPiece {
    Str  bytes;         /* exactly what came, terminator included; good until the next call */
    Str  text;          /* what stands in the event's text; p NULL: nothing does */
    bool odd;           /* text and LF are not the bytes */
} LinesPiece;

/* exact: not line by line but as it comes, whole lines together. */
ABX_FN Lines lines_make(bool exact);
ABX_FN void  lines_free(Lines *l);

/* STEP_DONE: *piece is the next one. STEP_MORE: *in is used up. `last`: no
 * more bytes will follow *in, so what is left is a piece, too. */
ABX_FN Step lines_next(Lines *l, Str *in, bool last, LinesPiece *piece);

#endif
