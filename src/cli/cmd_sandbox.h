/* cmd_sandbox.h - abx sandbox create|list|info|pause|resume|timeout|url|kill */
#ifndef ABX_CMD_SANDBOX_H
#define ABX_CMD_SANDBOX_H

#include "cli/run.h"

ABX_FN int cmd_sandbox_create(Run *r);
ABX_FN int cmd_sandbox_list(Run *r);
ABX_FN int cmd_sandbox_info(Run *r);
ABX_FN int cmd_sandbox_pause(Run *r);
ABX_FN int cmd_sandbox_resume(Run *r);
ABX_FN int cmd_sandbox_timeout(Run *r);
ABX_FN int cmd_sandbox_url(Run *r);
ABX_FN int cmd_sandbox_kill(Run *r);

#endif
