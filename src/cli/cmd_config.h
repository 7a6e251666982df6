/* cmd_config.h - abx config list, get, set, unset, explain, path. */
#ifndef ABX_CMD_CONFIG_H
#define ABX_CMD_CONFIG_H

#include "cli/run.h"

ABX_FN int cmd_config_list(Run *r);
ABX_FN int cmd_config_get(Run *r);
ABX_FN int cmd_config_set(Run *r);
ABX_FN int cmd_config_unset(Run *r);
ABX_FN int cmd_config_explain(Run *r);
ABX_FN int cmd_config_path(Run *r);

#endif
