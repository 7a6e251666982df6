/* cmd_run.h - abx run: a command in a sandbox of its own. */
#ifndef ABX_CMD_RUN_H
#define ABX_CMD_RUN_H

#include "cli/run.h"

ABX_FN int cmd_run_once(Run *r);

#endif
