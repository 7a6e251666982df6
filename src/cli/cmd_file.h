/* cmd_file.h - abx file cat|write|mkdir|mv|rm|chmod|watch: files of a sandbox, one by one. */
#ifndef ABX_CMD_FILE_H
#define ABX_CMD_FILE_H

#include "cli/run.h"

ABX_FN int cmd_file_cat(Run *r);
ABX_FN int cmd_file_write(Run *r);
ABX_FN int cmd_file_mkdir(Run *r);
ABX_FN int cmd_file_mv(Run *r);
ABX_FN int cmd_file_rm(Run *r);
ABX_FN int cmd_file_chmod(Run *r);
ABX_FN int cmd_file_watch(Run *r);

#endif
