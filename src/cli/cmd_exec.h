/* cmd_exec.h - abx sandbox exec|shell-stream: a command in a sandbox. */
#ifndef ABX_CMD_EXEC_H
#define ABX_CMD_EXEC_H

#include "cli/console.h"

ABX_FN int cmd_exec_run(Run *r);
ABX_FN int cmd_exec_stream(Run *r);

/* What the options of such a verb say; the command is the words from `skip` on.
 * What is wrong with them is wrong usage, also of a command whose status is passed on. */
ABX_FN bool cmd_exec_options(const Run *r, size_t skip, abx_exec_options *o, Err *err) ABX_CHECK;

/* What -t says; c->run stays NULL without it. `keys` as of console_options(). */
ABX_FN bool cmd_exec_console(Run *r, abx_exec_options *o, const char *keys, Console *c, Err *err) ABX_CHECK;

/* There is a command. */
ABX_FN bool cmd_exec_named(const abx_exec_options *o, Err *err) ABX_CHECK;

/* Runs it in a sandbox and ends as it does: the exit status. `box` NULL: *e says why there is none. */
ABX_FN int cmd_exec_in(Run *r, abx_sandbox *box, abx_exec_options *o, Console *c, abx_error *e);

#endif
