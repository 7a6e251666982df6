/* agent.h - abx inside a sandbox: `abx agent serve` and `abx agent init`.
 *
 * serve   the execd API that an opensandbox-server and its clients speak:
 *         commands, files, folders, ports, on one TCP port (docs/agent.md)
 * init    a small init: starts the daemon, runs the sandbox's own program,
 *         hands signals on, reaps, ends with its status
 *
 * A sandbox image may hold the binary under the names of the stock daemon:
 * called `execd` it is `agent serve`, called `bootstrap.sh` `agent init`.
 */
#ifndef ABX_AGENT_H
#define ABX_AGENT_H

#include "base/base.h"

/* argv[0] is the program's name, or "agent" when the words follow it; prints
 * its own errors. The exit status of the process. */
ABX_FN int agent_main(int argc, char **argv);

/* The program was started under a name of the stock daemon. */
ABX_FN bool agent_is_name(const char *argv0);

#endif
