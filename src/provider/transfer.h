/* transfer.h - one file into a sandbox, or out of it, through an execd.
 *
 * The daemon's own upload truncates the target and writes it in place, its mv
 * refuses an existing target, both read `$` in a path as a variable, and its
 * download cannot answer for a name with control characters. So a
 * file is uploaded under a temporary name, its size is compared there, and a
 * command with quoted words renames it: what was under the name before stays
 * until the new content is complete. A path means exactly its bytes; one that
 * is not absolute is taken from `/`, where the daemon lives.
 *
 * A target that is a symbolic link keeps being one: the file behind it is
 * replaced. A folder is refused (E4000). Missing folders are made.
 */
#ifndef ABX_TRANSFER_H
#define ABX_TRANSFER_H

#include "provider/entry.h"

/* See file_write in provider.h. What lies at the temporary name is removed on
 * every failure, for which LIMIT_CLEANUP_MS are given. */
ABX_FN bool transfer_write(Lifecycle *l, Str id, Str path, int mode, Source src, int64_t *size, Deadline d, Err *err);

/* One upload to just this path, which must be one that the daemon takes as it
 * is, written in place: for a name that nobody else knows. *sent: its bytes. */
ABX_FN bool transfer_put(Execd *x, Str path, int mode, Source src, int64_t *sent, Arena *a, Deadline d, Err *err);

/* See file_read in provider.h. E4001: there is no such file. */
ABX_FN bool transfer_read(Lifecycle *l, Str id, Str path, Sink to, int64_t *size, Deadline d, Err *err);

#endif
