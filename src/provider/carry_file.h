/* carry_file.h - the program that is carried: a static ELF program for x86_64
 * Linux with a build id, read as a file.
 *
 *     if (!carry_file_open(&f, path, err)) ...
 *     Source s = carry_file_source(&f);       (from its beginning, each time)
 *
 * Memory: a descriptor; carry_file_close().
 */
#ifndef ABX_CARRY_FILE_H
#define ABX_CARRY_FILE_H

#include "base/flow.h"

typedef struct CarryFile {
    int     fd;
    int64_t size, at;
    char    name[64];       /* what it is called in a sandbox: abx-VERSION- and 16 digits of its build id */
} CarryFile;

/* False: E8004, it is none that can be carried, and why. */
ABX_FN bool carry_file_open(CarryFile *f, Str path, Err *err) ABX_CHECK;
ABX_FN Source carry_file_source(CarryFile *f);
ABX_FN void carry_file_close(CarryFile *f);

#endif
