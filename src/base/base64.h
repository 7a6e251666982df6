/* base64.h - base64 (RFC 4648 section 4), the alphabet with + and /.
 *
 * Memory: results live in the arena, with a NUL behind them.
 */
#ifndef ABX_BASE64_H
#define ABX_BASE64_H

#include "base/arena.h"

ABX_FN Str base64_encode(Arena *a, Str bytes);         /* padded, in one line */

/* Strict: padded to a multiple of four, no white space or line ends, and the
 * bits that no byte uses are zero, so that one content has one spelling. False
 * otherwise, *out is untouched then. */
ABX_FN bool base64_decode(Arena *a, Str text, Str *out) ABX_CHECK;

#endif
