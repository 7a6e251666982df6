/* cmd_job.h - abx job list|logs|wait|kill|rm, abx agent remove: what goes on in
 * a sandbox by itself, and what it needs there. */
#ifndef ABX_CMD_JOB_H
#define ABX_CMD_JOB_H

#include "cli/run.h"

ABX_FN int cmd_job_list(Run *r);
ABX_FN int cmd_job_logs(Run *r);
ABX_FN int cmd_job_wait(Run *r);
ABX_FN int cmd_job_kill(Run *r);
ABX_FN int cmd_job_forget(Run *r);
ABX_FN int cmd_job_remove_agent(Run *r);

#endif
