/* have.h - what a receiver has already, so that a copy that was interrupted
 * goes on where it was.
 *
 * The receiver says it in lines (sync/item.h, ITEM_HAVE and ITEM_PART, behind
 * them ITEM_END); the sender keeps them as a set, and asks for each file.
 *
 * Memory: about 64 bytes for each file, LIMIT_SYNC_HAVE files at most;
 * have_free().
 */
#ifndef ABX_HAVE_H
#define ABX_HAVE_H

#include "base/flow.h"
#include "sync/item.h"

typedef struct Have Have;

ABX_FN Have *have_make(void);
ABX_FN void  have_free(Have *h);                            /* NULL is fine */
/* False: E4003, more than it holds. */
ABX_FN bool  have_add(Have *h, const Item *i, Err *err) ABX_CHECK;
/* The file that is there whole (ITEM_HAVE), or a part of it (ITEM_PART). False: there is none. */
ABX_FN bool  have_find(const Have *h, ItemKind kind, Str path, Item *i) ABX_CHECK;

/* Lists, as lines to the sink and to ITEM_END, all files that a copy of a root
 * `name` to `target` would find: at target/name where the target is a folder and
 * name is not ".", else at the target; their paths begin with `name`. Of several
 * roots, or a pattern for them, the target is to end in a slash. Reads and hashes all of it. `partials`:
 * those of interrupted copies, as ITEM_PART with a path of their own, by which
 * have_find() knows their file, and not as ITEM_HAVE. Nothing there: ITEM_END
 * alone. What cannot be read is left out. False: the sink's error. */
ABX_FN bool have_list(const char *target, Str name, bool partials, Sink to, Err *err) ABX_CHECK;

/* `size` bytes from the beginning of fd, or what there is of them, into a hash; -1: all.
 * False: errno. */
ABX_FN bool have_sum(int fd, int64_t size, Sha256 *sum, int64_t *got) ABX_CHECK;

/* The hash of `size` bytes from the beginning of fd; -1: of all. *got: how many
 * they were. False: errno. */
ABX_SET bool have_hash(int fd, int64_t size, int64_t *got, unsigned char sha256[static SHA256_SIZE]) ABX_CHECK;

#endif
