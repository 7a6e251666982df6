/* shell.h - words for a POSIX shell (XCU 2.2).
 *
 * A quoted word arrives as exactly these bytes, whatever they are; only NUL
 * cannot stand in one.
 */
#ifndef ABX_SHELL_H
#define ABX_SHELL_H

#include "base/buf.h"

ABX_FN void shell_quote(Buf *b, Str word);                      /* adds 'word' */
ABX_FN void shell_command(Buf *b, const Str *argv, size_t n);   /* adds 'a' 'b' 'c' */

#endif
