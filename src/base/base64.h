/* base64.h - base64 (RFC 4648 section 4), the alphabet with + and /.
 *
 * Memory: results in an arena have a NUL behind them.
 */
#ifndef ABX_BASE64_H
#define ABX_BASE64_H

#include "base/arena.h"
#include "base/buf.h"

ABX_FN Str base64_encode(Arena *a, Str bytes);         /* padded, in one line */
ABX_FN void base64_put(Buf *to, Str bytes);            /* the same, behind what is there */

/* Strict: padded to a multiple of four, no white space or line ends, and the
 * bits that no byte uses are zero, so that one content has one spelling. False
 * otherwise, *out is untouched then. */
ABX_FN bool base64_decode(Arena *a, Str text, Str *out) ABX_CHECK;

/* The same into room for 3 bytes for each 4 of the text; *n were written. `to`
 * may hold anything after a false. */
ABX_FN bool base64_decode_to(char *to, Str text, size_t *n) ABX_CHECK;

#endif
