/* serve.h - a provider that is compiled in, as a plugin for any host.
 *
 * EPP/1 on two descriptors (specification of the provider host, section 4),
 * standing on abx.h. Its configuration comes in `initialize` and from nowhere
 * else: no environment, no file, no store.
 *
 * One process reads, writes and hands out; it waits for nothing but its
 * descriptors, so that requests are taken whatever the calls do, of any number
 * and length. Each call runs in a child of it (serve/calls.h): a call that
 * hangs, or breaks, is that call. The children of exec.start live as long as
 * their commands.
 *
 *   $/cancel       a call that runs is given up: what it half made is removed.
 *                  One that was answered is not touched.
 *   a process_id   is taken where a `pid` is. What is asked of a command that
 *                  runs, or of a terminal, is handed to the call that runs it,
 *                  which answers (serve/running.h); so is the input of a process
 *                  that is named by a command's number.
 *   the end        of the input, SIGTERM and the like, and `shutdown`: calls are
 *                  given up, and all is over within LIMIT_SERVE_END_MS. Commands
 *                  that have input, and terminals, end; others go on. A sandbox whose creation was not told to
 *                  the host to the last byte is removed.
 *   a slow host    is waited for: calls stop at their pipes.
 *
 * Beyond the protocol, and told in docs/serve.md: "stdin" in exec.start and its
 * answer, "eof" in process.stdin, more params of pty.open, "exit_code" in
 * pty.exit; `initialize` says "stdin": true for hosts that want to know.
 */
#ifndef ABX_SERVE_H
#define ABX_SERVE_H

#include "base/err.h"

/* Serve provider `id` until it is over. `signal_fd` (-1: none) readable ends it,
 * too. False: E8001 no such provider here, E8021 the output could not be
 * written. */
ABX_FN bool serve_run(const char *id, int in, int out, int signal_fd, Err *err) ABX_CHECK;

#endif
