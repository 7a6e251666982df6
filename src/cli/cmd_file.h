/* cmd_file.h - abx sandbox upload|download: one file, there or back. */
#ifndef ABX_CMD_FILE_H
#define ABX_CMD_FILE_H

#include "cli/run.h"

ABX_FN int cmd_file_upload(Run *r);
ABX_FN int cmd_file_download(Run *r);

#endif
