/* init.h - `abx agent init`: the first process of a sandbox.
 *
 * Makes sure that the file named by EXECD_ENVS is there, starts the daemon
 * (EXECD, else /opt/opensandbox/execd, else this program itself), runs the
 * main program, hands signals on to it, reaps whatever is left to it, and ends
 * with its status: 128 and the number of the signal that killed it. When the
 * daemon dies the main program goes on.
 *
 *   WORDS          the main program with its arguments
 *   -c TEXT WORDS  a shell line (bash, else sh)
 *   (none)         a shell; BOOTSTRAP_CMD is a shell line that wins over all
 */
#ifndef ABX_INIT_H
#define ABX_INIT_H

#include "base/base.h"

ABX_FN int init_main(int argc, char **argv);

#endif
