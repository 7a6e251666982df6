/* clean.h - somebody else's text before it is shown, stored or quoted.
 *
 * The protocol filter of the provider host (its specification, 4.10, with row
 * 11 of docs/differences.md): what a server, a plugin or a sandbox says may
 * drive a terminal, and may repeat a secret. First control sequences go: CSI
 * sequences, OSC strings whole, other two-byte escapes; then control
 * characters, C0 but TAB, LF and CR, DEL and C1; ill-formed UTF-8 becomes U+FFFD.
 * Then each secret of four characters or more becomes ***, in the order given:
 * stripping first defeats a secret that was broken by control characters.
 *
 * Memory: the result lives in the arena, with a NUL behind it.
 */
#ifndef ABX_CLEAN_H
#define ABX_CLEAN_H

#include "base/arena.h"

ABX_SET Str clean_text(Str text, const Str *secrets, size_t n, Arena *a);

/* The same in one line: TAB and LF become blanks, and CR goes with the control
 * characters. */
ABX_FN Str clean_message(Str text, const Str *secrets, size_t n, Arena *a);

/* A path or a name for a message: the same of its first 500 bytes. Takes at
 * most 4 KB of the arena. */
ABX_FN Str clean_path(Str path, Arena *a);

#endif
