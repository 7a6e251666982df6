/* walk.h - files and folders of this machine, one after the other, as a copy
 * sends them: roots in the order given, each depth first, in byte order of the
 * names, folders before what is in them. No link is followed but a root itself.
 *
 *     Walk *w = walk_open(roots, n);
 *     while (walk_next(w, &e)) ...
 *     walk_close(w);
 *
 * What cannot be read, and what is neither file, folder nor link, comes as
 * WALK_FAILED, and the walk goes on: only opened files are given, and they were
 * regular when they were opened. Nothing here waits for a FIFO or a device.
 * WALK_LEAVE ends each WALK_FOLDER. A folder that cannot be listed is WALK_FAILED
 * and no WALK_FOLDER.
 *
 * Memory: the names of the folders that are open, LIMIT_SYNC_NAMES at most; LIMIT_SYNC_DEPTH descriptors.
 * walk_close() frees it and closes what is open. Entries are good until the next call.
 */
#ifndef ABX_WALK_H
#define ABX_WALK_H

#include "base/arena.h"
#include "base/err.h"

typedef struct WalkRoot {
    const char *path;           /* where it is; the caller keeps it */
    Str         name;           /* the root's name in the copy; "." stands for what is in it */
} WalkRoot;

typedef enum WalkKind { WALK_FOLDER, WALK_FILE, WALK_LINK, WALK_FAILED, WALK_LEAVE } WalkKind;

typedef struct WalkEntry {
    WalkKind kind;
    Str      path;              /* in the copy: the root's name, and what is below it */
    int      fd;                /* WALK_FILE: open for reading, closed by the next call */
    unsigned mode;              /* 0 … 0777 */
    int64_t  size, changed;     /* WALK_FILE: when it was opened; its time of change in nanoseconds */
    bool     sparse;            /* it takes less room than its size */
    Str      target;            /* WALK_LINK */
    int      sys;               /* WALK_FAILED: errno; EOPNOTSUPP for a device, a FIFO, a socket; for a folder ELOOP:
                                   too deep, ENAMETOOLONG: its path leaves no room for a name, EFBIG: too many names, EXDEV: /proc or
                                   /sys, met below a root */
} WalkEntry;

typedef struct Walk Walk;

ABX_FN Walk *walk_open(const WalkRoot *roots, size_t n);
ABX_FN bool  walk_next(Walk *w, WalkEntry *e) ABX_CHECK;   /* false: that was all */
ABX_FN void  walk_skip(Walk *w);                            /* do not go into the folder that came last: no WALK_LEAVE either */
ABX_FN void  walk_unopened(Walk *w);                        /* files come without a descriptor: for who only counts */
ABX_FN void  walk_close(Walk *w);                           /* NULL is fine */

struct stat;
ABX_FN int64_t walk_changed(const struct stat *st);         /* as in an entry */

/* The last part of a path, as the name of a root: of "a/b/" it is "b", of "a/."
 * and "/" it is ".". False: E8002, there is none ("..", "", "a/.."). */
ABX_FN bool walk_name(Str path, Str *name, Err *err) ABX_CHECK;

ABX_FN bool walk_is_pattern(Str path);                      /* or could be one */

/* Paths for a pattern (data/glob: `*`, `?`, `[…]`, `\x`), relative ones from
 * the working directory, in byte order. A path that is there as it stands is
 * itself; so is one without signs. A `*` matches no first dot. False: E4001,
 * nothing matches; E4003, more than LIMIT_SYNC_ROOTS. */
ABX_FN bool walk_expand(Str pattern, Arena *a, const char ***paths, size_t *n, Err *err) ABX_CHECK;

#endif
