/* cmd_shell.h - abx shell: a terminal in a sandbox; abx job attach: back to one. */
#ifndef ABX_CMD_SHELL_H
#define ABX_CMD_SHELL_H

#include "cli/run.h"

ABX_FN int cmd_shell_open(Run *r);
ABX_FN int cmd_shell_attach(Run *r);

#endif
