/* epp_pty.h - a terminal of a plugin's own: pty.open and what belongs to it, for
 * sandboxes into which nothing can be carried.
 *
 * The protocol knows a shell in a terminal, and no command: the command is typed
 * into it, at most EPP_PTY_TYPED bytes of it, as `exec COMMAND`. It knows no
 * user, no environment and no exit code: the first two are refused with E8004,
 * but for TERM, and the end of a terminal is an unknown result (ERR_CLOSED,
 * E5000), unless the plugin adds "exit_code" to pty.exit. Signals: INT and QUIT
 * are typed, others close the terminal.
 */
#ifndef ABX_EPP_PTY_H
#define ABX_EPP_PTY_H

#include "provider/epp_plugin.h"

enum { EPP_PTY_TYPED = 2000 };      /* a terminal takes lines of 4095 bytes, and echoes them */

/* The plugin declares `pty`, and was attached to the sandbox. */
ABX_FN bool epp_pty_start(Epp *e, Str id, const ExecRequest *rq, ExecCall **out, Deadline d, Err *err);

#endif
