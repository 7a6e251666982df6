/* cmd_copy.h - abx sandbox upload|download: one file, there or back. */
#ifndef ABX_CMD_COPY_H
#define ABX_CMD_COPY_H

#include "cli/run.h"

ABX_FN int cmd_copy_upload(Run *r);
ABX_FN int cmd_copy_download(Run *r);

#endif
