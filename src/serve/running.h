/* running.h - commands and terminals of EPP: exec.run, exec.start, pty.open,
 * and what is asked of them while they run.
 *
 * A command runs in the process of the call that started it, until its end.
 * Requests about it come from the server (serve/serve.h) as lines: the id of
 * the request as JSON text, a TAB, and the request as the host sent it; nothing
 * behind the TAB: the host does not wait for that id any more. They are always
 * read, so that a signal does not wait behind input that nobody takes; input is
 * answered when the command's side took all of it.
 *
 * Each of these answers the call, too; false: c->refusal or c->failed.
 */
#ifndef ABX_RUNNING_H
#define ABX_RUNNING_H

#include "serve/call.h"

ABX_FN bool running_run(CallRun *c);        /* exec.run: all of it in one answer */
ABX_FN bool running_start(CallRun *c);      /* exec.start */
ABX_FN bool running_open(CallRun *c);       /* pty.open */

#endif
