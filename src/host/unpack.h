/* unpack.h - the entries of a tar archive, plain or compressed by gzip, one
 * after the other from a Source, in constant memory.
 *
 *     Unpack *u = unpack_open(bytes);
 *     while (unpack_next(u, &entry, err) == STEP_DONE)
 *         while (unpack_read(u, p, cap, &n, err) && n) ...
 *     unpack_close(u);
 *
 * What it is, its first bytes tell; archives of another kind are refused by
 * their names. An archive counts as read only when its last byte was: what is
 * behind the last entry is looked at, too.
 *
 * Every failure of the archive is E8010; what the Source says goes up as it is.
 *
 * Memory: 128 KiB and LIMIT_TAR_EXTRA, until unpack_close().
 */
#ifndef ABX_UNPACK_H
#define ABX_UNPACK_H

#include "base/flow.h"
#include "data/tar.h"

typedef struct Unpack Unpack;

ABX_FN Unpack *unpack_open(Source bytes);
ABX_FN void unpack_close(Unpack *u);            /* NULL is fine */

/* STEP_DONE: *out is a TAR_ENTRY; its name and target are good until the next
 * call. What was left unread of the one before is passed over. STEP_MORE: that
 * was the last one, and the archive was whole. STEP_ERR. */
ABX_FN Step unpack_next(Unpack *u, TarEvent *out, Err *err) ABX_CHECK;

/* A piece of the entry's content; *n is 0 at its end. */
ABX_FN bool unpack_read(Unpack *u, char *p, size_t cap, size_t *n, Err *err) ABX_CHECK;

#endif
