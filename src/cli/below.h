/* below.h - all that is below a folder of a sandbox, folder by folder.
 *
 *     Below b = {.run = r, .box = box, .root = "/srv", .deepest = 3, .each = show, .ctx = &mine};
 *     if (below_list(&b, &e) != 0) ...            the root itself cannot be listed
 *     status = b.status;
 *
 * A folder's entries come together, in byte order, and behind them those of its
 * folders. Links are not followed but by the root. A folder that cannot be read
 * is told of, and the rest goes on. What the sandbox lists is not believed: a
 * tree that never ends takes no more memory than one that does.
 *
 * Memory: one listing, and the paths of the folders that are still to be looked
 * into, LIMIT_LIST_FOLDERS at most.
 */
#ifndef ABX_BELOW_H
#define ABX_BELOW_H

#include "base/buf.h"
#include "cli/run.h"

typedef struct Below {
    const Run   *run;
    abx_sandbox *box;
    const char  *root;
    int64_t      deepest;       /* 1: what is in the root alone; LIMIT_SYNC_DEPTH: all, and more is a failure */
    /* `path` goes from the root, without a slash in front. False: enough. */
    bool       (*each)(void *ctx, Str path, const abx_file_info *f);
    void        *ctx;
    int          status;        /* the exit status of the first failure below the root */

    Buf          waiting;       /* paths, a NUL behind each; the next is the last one */
    Buf          found;         /* of the folder at hand, in its order */
    Buf          at, path;      /* of that folder, and of the entry at hand */
    int64_t      depth;         /* of what is in it */
    bool         stop;
} Below;

/* -1: *e, and nothing came. */
ABX_FN int below_list(Below *b, abx_error *e);

#endif
