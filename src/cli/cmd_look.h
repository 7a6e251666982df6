/* cmd_look.h - abx file ls|find|stat: what lies where in a sandbox. */
#ifndef ABX_CMD_LOOK_H
#define ABX_CMD_LOOK_H

#include "cli/run.h"

ABX_FN int cmd_look_ls(Run *r);
ABX_FN int cmd_look_find(Run *r);
ABX_FN int cmd_look_stat(Run *r);

#endif
