/* calls.h - the calls of EPP, carried out on abx.h.
 *
 * A call runs in a process of its own (serve/serve.h), with a session of its
 * own, and may wait as long as abx.h does. What it has to say goes down a pipe
 * as lines for the host, the answer first; beside them are lines for the server
 * alone, which begin with `!`:
 *
 *     !pid N      exec.start: the command's process in the sandbox
 *     !did ID     the answer to request ID was the line before, which is about
 *                 a command that runs (serve/running.h)
 *     !end        exec.start, pty.open: exec.exit, or pty.exit, was sent
 *
 * A sandbox that was made is removed again unless the server says by a byte "k"
 * in the cancel fd that the host was told of it.
 *
 * Text: EPP carries output as text. What is not UTF-8 becomes U+FFFD, as the
 * other hosts read it; a character that output was cut in is put together
 * again, on each stream by itself.
 *
 * Ends: the exit code of a command that signal n ended is 128+n (137 where the
 * backend does not say which), of one that its timeout ended 124. Where the
 * result is unknown, or abx itself failed, a stream ends with 125 and a
 * sentence on stderr; exec.run has errors for both.
 */
#ifndef ABX_CALLS_H
#define ABX_CALLS_H

#include "serve/call.h"

/* There is such a method, but for those of the server itself. */
ABX_FN bool calls_known(Str method);

/* Carry it out. `out`: the pipe. The cancel fd of the options: readable ends the
 * call; a byte "c" in it means that the host gave it up, and the command of an
 * exec.run is ended then, too. */
ABX_FN void calls_run(const Call *call, const abx_options *options, int out);

#endif
