/* lock.h - a lock file that other programs use, too (specification of the
 * provider host, 1.5; row 19 of docs/differences.md).
 *
 * The file is made with O_EXCL, holds the process id in decimal digits, and is
 * removed by whoever made it. A lock that nobody holds any more is taken over:
 *
 *   made by abx       at once: abx holds flock(2) on the file, which the kernel
 *                     gives back when the process dies. That abx made it shows
 *                     in its second name, NAME-abx-xxxxxxxx
 *   made by another   after 300 s, unless a process of that id (of the same user
 *                     and of this pid namespace) was there when it was made
 *
 * Taking over is done with flock(2) on the file that is removed, so no abx
 * removes a lock that is new.
 */
#ifndef ABX_LOCK_H
#define ABX_LOCK_H

#include "base/err.h"
#include "os/clock.h"

typedef struct Lock {
    int      folder;            /* the caller's */
    int      fd;
    uint64_t inode;
    int64_t  renewed;           /* on the monotonic clock */
    char     name[32];
    char     mine[48];          /* its second name; "" where there are no links */
} Lock;

/* The file `name` in the folder, which must stay open. Tried until the deadline.
 * False: E8010 with the path in the hint (`shown` is the folder's), or
 * ERR_CANCELLED. */
ABX_FN bool lock_take(int folder, const char *name, const char *shown, int cancel_fd, Deadline deadline, Lock *out,
                      Err *err) ABX_CHECK;

/* In long work, now and then, and before each step that counts: renews the
 * file's time, so that no other host thinks us gone. `ahead_ms`: for how long
 * this process will not come back here, 0 for less than two minutes. False:
 * somebody else has taken it over. E8010. */
ABX_FN bool lock_renew(Lock *l, int64_t ahead_ms, Err *err) ABX_CHECK;

/* Removes the file if it is still ours. */
ABX_FN void lock_release(Lock *l);

#endif
