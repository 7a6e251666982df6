/* cmd_copy.h - abx sandbox upload|download|cp: files and trees, there, back, and between
 * sandboxes; `-` is standard input or output. */
#ifndef ABX_CMD_COPY_H
#define ABX_CMD_COPY_H

#include "cli/run.h"

ABX_FN int cmd_copy_upload(Run *r);
ABX_FN int cmd_copy_download(Run *r);
ABX_FN int cmd_copy_between(Run *r);

#endif
