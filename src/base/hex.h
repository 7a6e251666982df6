/* hex.h - bytes as hexadecimal digits, two each.
 *
 * Memory: results live in the arena, with a NUL behind them.
 */
#ifndef ABX_HEX_H
#define ABX_HEX_H

#include "base/arena.h"

ABX_FN void hex_write(Str bytes, char *to);            /* two digits each, no NUL; lower case */
ABX_FN Str  hex_encode(Arena *a, Str bytes);           /* lower case */
ABX_FN bool hex_decode(Arena *a, Str text, Str *out) ABX_CHECK;   /* both cases; false: odd, or another character */

#endif
