/* screen.h - text that a terminal may be given.
 *
 * What a server, a sandbox or an argument says can move the cursor, rename the
 * window or turn a line around. screen_add() copies text with every such
 * character made visible: C0 but TAB and LF, DEL, C1, and the characters that
 * steer writing direction as \uXXXX (inside JSON that means the same), bytes
 * that are not UTF-8 as \xXX. It is for terminals only: files and pipes get
 * the bytes.
 */
#ifndef ABX_SCREEN_H
#define ABX_SCREEN_H

#include "base/arena.h"
#include "base/buf.h"

ABX_FN void screen_add(Buf *to, Str s);

/* The same text on one line: CR, LF and the Unicode line ends are made visible
 * too. For messages and the cells of a table, on any kind of stream. */
ABX_FN Str screen_line(Arena *a, Str s, bool terminal);

/* How many columns it takes (Unicode 14: wide and combining characters). A
 * byte that is not UTF-8 counts as one. */
ABX_FN size_t screen_width(Str s);

#endif
