/* buf.h - bytes that grow, up to a limit named at birth.
 *
 * Running past the limit is remembered, not reported: `over` stays set until
 * buf_clear(), and what did not fit was not added, so a run of appends needs
 * one check, at its end. Limits stand in base/limits.h, each with its reason.
 *
 * Memory: at most the limit, rounded up to the next power of two; buf_free()
 * gives it back. A zeroed Buf holds nothing and can hold nothing.
 */
#ifndef ABX_BUF_H
#define ABX_BUF_H

#include "base/base.h"

typedef struct Buf {
    char  *p;
    size_t n;
    size_t cap;
    size_t limit;
    bool   over;
} Buf;

ABX_FN Buf  buf_make(size_t limit);
ABX_FN void buf_free(Buf *b);
ABX_FN void buf_clear(Buf *b);              /* empties it, keeps the memory */

ABX_FN void buf_add(Buf *b, Str s);
ABX_FN void buf_addc(Buf *b, char c);
ABX_FN void buf_addf(Buf *b, const char *fmt, ...) ABX_PRINTF(2, 3);

/* Room for n more bytes behind what is there, to read into; NULL, and `over`,
 * when that would pass the limit. buf_grew() then says how many came. */
ABX_FN char *buf_room(Buf *b, size_t n);
ABX_FN void  buf_grew(Buf *b, size_t n);

ABX_FN void buf_drop(Buf *b, size_t n);     /* forget the first n bytes */
ABX_FN Str  buf_str(const Buf *b);          /* good until the next change to b */

#endif
