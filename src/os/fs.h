/* fs.h - local files: read whole, or written so that nobody sees half of one.
 *
 *     FsTemp t;
 *     if (!fs_temp_open(path, -1, &t, err)) ...
 *     while (...) if (!fs_temp_write(&t, piece, err)) { fs_temp_abort(&t); ... }
 *     if (!fs_temp_commit(&t, false, err)) ...
 *
 * Errors name the path and say what the system said. The code is E0000, and
 * the caller may set a better one; kind is ERR_NOT_FOUND or ERR_DENIED where
 * that was it, else ERR_SYSTEM, ERR_INPUT or ERR_LIMIT.
 */
#ifndef ABX_FS_H
#define ABX_FS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/flow.h"

/* All of a regular file (links are followed) to the end of *to. Never waits
 * for a FIFO or a device: what is no regular file is ERR_INPUT. ERR_LIMIT when
 * it is more than the Buf holds. */
ABX_FN bool fs_read(const char *path, Buf *to, Err *err) ABX_CHECK;

/* A folder with mode 0700. One that is there already is good. */
ABX_FN bool fs_make_dir(const char *path, Err *err) ABX_CHECK;

/* What a path leads to; links are followed. */
typedef enum FsType { FS_NOTHING, FS_FILE, FS_FOLDER, FS_OTHER } FsType;
ABX_FN FsType fs_type(const char *path);

/* The absolute path of what is there, with its links resolved. */
ABX_FN bool fs_real(const char *path, Arena *a, Str *out, Err *err) ABX_CHECK;

typedef struct FsTemp {
    int   fd;           /* -1: closed */
    char *path;         /* what it becomes */
    char *temp;         /* where it is until then; NULL: written directly */
    int   cancel_fd;    /* the caller's to set; -1 */
    int64_t written;
    int64_t flushing;   /* so much of it is on its way to the disk already */
} FsTemp;

/* A new file beside `path`, under a name that nobody can foresee. mode -1: that
 * of the file that is there, or 0666 without the umask. If `path` is a link,
 * the file it leads to is meant, and the link stays; one that leads nowhere is
 * ERR_NOT_FOUND. A device or a FIFO cannot be replaced: it is written directly,
 * and a FIFO that nobody reads is refused. False for a folder. */
ABX_FN bool fs_temp_open(const char *path, int mode, FsTemp *out, Err *err) ABX_CHECK;

/* All of the bytes. A reader that is slow to take them is waited for: ERR_CANCELLED
 * when t->cancel_fd becomes readable. */
ABX_FN bool fs_temp_write(FsTemp *t, Str bytes, Err *err) ABX_CHECK;
ABX_FN Sink fs_temp_sink(FsTemp *t);

/* Put it in place of `path`. `lasting`: what a power cut must not take back is
 * on the disk before. On failure it is removed, as by fs_temp_abort(). */
ABX_FN bool fs_temp_commit(FsTemp *t, bool lasting, Err *err) ABX_CHECK;
ABX_FN void fs_temp_abort(FsTemp *t);       /* fine after a commit, too */

#endif
