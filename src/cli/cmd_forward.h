/* cmd_forward.h - abx port-forward: ports here that lead into a sandbox. */
#ifndef ABX_CMD_FORWARD_H
#define ABX_CMD_FORWARD_H

#include "cli/run.h"

ABX_FN int cmd_forward_run(Run *r);

#endif
