/* epp_file.h - files, processes and ports through a plugin (specification, 4.8).
 *
 * A file travels in one line, so it has a largest size: what cannot fit is
 * E4003 before anything is sent, where the size can be known. The protocol has
 * no word for a file's mode. See provider.h for what the functions do.
 */
#ifndef ABX_EPP_FILE_H
#define ABX_EPP_FILE_H

#include "provider/provider.h"

ABX_FN bool epp_file_write(Provider *p, Str id, Str path, int mode, Source src, int64_t *size, Deadline d, Err *err);
ABX_FN bool epp_file_read(Provider *p, Str id, Str path, Sink to, int64_t *size, Deadline d, Err *err);
ABX_FN bool epp_file_stat(Provider *p, Str id, Str path, Arena *a, FileInfo *out, Deadline d, Err *err);
ABX_FN bool epp_file_list(Provider *p, Str id, Str path, Arena *a, FileList *out, Deadline d, Err *err);
ABX_FN bool epp_file_make_folder(Provider *p, Str id, Str path, Deadline d, Err *err);
ABX_FN bool epp_file_move(Provider *p, Str id, Str from, Str to, Deadline d, Err *err);
ABX_FN bool epp_file_remove(Provider *p, Str id, Str path, Deadline d, Err *err);
ABX_FN bool epp_file_processes(Provider *p, Str id, Arena *a, ProcessList *out, Deadline d, Err *err);
ABX_FN bool epp_file_stdin(Provider *p, Str id, Str pid, Str bytes, Deadline d, Err *err);
ABX_FN bool epp_file_signal(Provider *p, Str id, Str pid, int number, Deadline d, Err *err);
ABX_FN bool epp_file_port(Provider *p, Str id, int port, Arena *a, PortUrl *out, Deadline d, Err *err);

#endif
