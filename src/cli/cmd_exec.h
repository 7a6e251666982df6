/* cmd_exec.h - abx sandbox exec|shell-stream: a command, and its output as it comes. */
#ifndef ABX_CMD_EXEC_H
#define ABX_CMD_EXEC_H

#include "cli/run.h"

ABX_FN int cmd_exec_run(Run *r);
ABX_FN int cmd_exec_stream(Run *r);

#endif
