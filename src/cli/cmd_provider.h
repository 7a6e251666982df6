/* cmd_provider.h - abx provider list|info|default */
#ifndef ABX_CMD_PROVIDER_H
#define ABX_CMD_PROVIDER_H

#include "cli/run.h"

ABX_FN int cmd_provider_list(Run *r);
ABX_FN int cmd_provider_info(Run *r);
ABX_FN int cmd_provider_default(Run *r);

#endif
