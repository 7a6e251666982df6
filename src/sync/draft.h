/* draft.h - a file that is being written, under a name that nobody knows, in the
 * folder it will be in: `.abx-` and 16 digits. When it is whole it is renamed.
 *
 *     sys = draft_open(&d, folder, name, resume, from);
 *     if (!sys) sys = draft_write(&d, piece); ...
 *     if (!sys) sys = draft_done(&d, name, mode);
 *     draft_drop(&d, keep);
 *
 * With `resume` the digits come from the file's name, `.part` is behind them,
 * and the next copy finds it again; flock(2) keeps two writers apart. What lies
 * there is used only where it is nobody else's: a regular file of this user
 * with this one name.
 *
 * Functions give 0, or an errno. Memory: one descriptor.
 */
#ifndef ABX_DRAFT_H
#define ABX_DRAFT_H

#include "base/base.h"
#include "base/sha256.h"

enum { DRAFT_NAME = 32, DRAFT_HOLE = 4096 };        /* blocks of zeros that may become holes */

typedef struct Draft {
    int     folder;             /* the caller's */
    int     fd;                 /* -1: none is open */
    bool    partial;            /* its name is one that is found again */
    bool    sparse;             /* the caller's to set: blocks of zeros are not written */
    int64_t lasting;            /* the same: one of so many bytes, or more, is on the disk before it has its name; 0: none */
    int64_t at;                 /* so much of the file is there */
    int64_t flushing;           /* so much of it is on its way to the disk */
    Sha256  sum;
    char    name[DRAFT_NAME];
} Draft;

/* For the file `name`. from: so much of it is to be there from another time; EIO: it is
 * not. EBUSY: somebody else is writing it. */
ABX_FN int draft_open(Draft *d, int folder, Str name, bool resume, int64_t from);
ABX_FN int draft_write(Draft *d, Str bytes);
ABX_FN int draft_done(Draft *d, const char *name, unsigned mode);
/* Unless it is done, removes it; `keep`: but not a partial one with something in it. */
ABX_FN void draft_drop(Draft *d, bool keep);

/* Names for what is not whole. */
ABX_FN void draft_temp_name(char to[static DRAFT_NAME]);
ABX_FN void draft_part_name(Str name, char to[static DRAFT_NAME]);
ABX_FN bool draft_is_part(Str name) ABX_CHECK;
/* Whether a file of such a name is one to go on with: a regular file of this user with this one name. */
ABX_FN bool draft_is_ours(int fd) ABX_CHECK;

/* A mode, where the file system has any. */
ABX_FN int draft_mode(int fd, unsigned mode);

#endif
