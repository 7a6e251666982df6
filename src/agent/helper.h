/* helper.h - `abx agent listen`, `pipe` and `lines`: this program as it was
 * carried into a sandbox, for one conversation (docs/agent.md). */
#ifndef ABX_HELPER_H
#define ABX_HELPER_H

#include "base/base.h"

/* The words behind them; there are none. Exit statuses. */
ABX_FN int helper_listen(int argc, char **argv);
ABX_FN int helper_pipe(int argc, char **argv);
ABX_FN int helper_lines(int argc, char **argv);

#endif
