/* shell.h - words for a POSIX shell (XCU 2.2).
 *
 * A quoted word arrives as exactly these bytes, whatever they are; only NUL
 * cannot stand in one.
 */
#ifndef ABX_SHELL_H
#define ABX_SHELL_H

#include "base/buf.h"

/* A line that becomes a person's shell: their own, bash, or sh. */
#define SHELL_INTERACTIVE \
    "case ${SHELL##*/} in ''|nologin|false) ;; *) [ -x \"$SHELL\" ] && exec \"$SHELL\";; esac; " \
    "command -v bash >/dev/null && exec bash; exec sh"

ABX_FN void shell_quote(Buf *b, Str word);                      /* adds 'word' */
ABX_FN void shell_command(Buf *b, const Str *argv, size_t n);   /* adds 'a' 'b' 'c' */

#endif
