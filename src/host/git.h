/* git.h - one commit of a git repository, fetched without git and proved.
 *
 * The files of `commit` (or of a folder in it) as a Tree, every object checked
 * against its id, the commit against the pin. The smart protocol (versions 2, 1
 * and 0) over https and http is spoken here; for ssh and file: `ssh` or
 * `git-upload-pack` is started, and nothing else ever is.
 *
 * With protocol 2 and filters the commit comes with its trees alone; its files
 * then come from the forge's archive, where host/forge knows one, and what is
 * not in that, or differs there, by its id. Otherwise all comes in one pack. A
 * pack in memory has LIMIT_GIT_SPOOL, what is more lies in a temporary file
 * without a name (TMPDIR, /tmp).
 *
 * Memory: strings in the arena, files in the tree.
 */
#ifndef ABX_GIT_H
#define ABX_GIT_H

#include "host/source.h"

typedef struct GitGot {
    Tree tree;                  /* sealed */
    Str  commit;                /* 40 or 64 hexadecimal digits */
    bool pinned;                /* the ref was that commit's full id */
    bool proved;                /* every byte hashes to it */
} GitGot;

/* E8010: no such repository, ref, folder; a broken answer; a limit. E8012: what
 * cannot be proved. */
ABX_FN bool git_fetch(const SourceRef *ref, const SourceHost *host, Arena *a, GitGot *out, Err *err) ABX_CHECK;

#endif
