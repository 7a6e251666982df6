/* process.h - the processes of an OpenSandbox sandbox, by commands in it.
 *
 * The daemon has no calls for them. What is used is /proc and what every POSIX
 * shell brings: no ps. All of it is of the moment in which it ran.
 *
 * Standard input: a process is fed through /proc/PID/fd/0, which works exactly
 * when that is a pipe; every other one is refused, above all the /dev/null that
 * the daemon gives its commands. A command started with `open_stdin` has a pipe
 * of its own. Bytes arrive as they are and in order; the end of input cannot be
 * said.
 */
#ifndef ABX_PROCESS_H
#define ABX_PROCESS_H

#include "provider/execd.h"

/* See the functions of these names in provider.h. */
ABX_FN bool process_list(Lifecycle *l, Str id, Arena *a, ProcessList *out, Deadline d, Err *err);
ABX_FN bool process_stdin(Lifecycle *l, Str id, Str pid, Str bytes, Deadline d, Err *err);
ABX_FN bool process_signal(Lifecycle *l, Str id, Str pid, int number, Deadline d, Err *err);

/* Adds to a line for the daemon's shell: makes standard input a pipe that the
 * process itself holds open. Its name in /tmp is gone at once. */
ABX_FN void process_open_stdin(Buf *line);

#endif
