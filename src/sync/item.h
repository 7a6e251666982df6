/* item.h - what the two ends of a copy say to each other about single files.
 *
 * An item has two forms. As a line it is `WORD NUMBER SIZE SHA256 PATH`, SHA256
 * in hex or `-`, ended by a NUL, which no path can have: so the receiver talks
 * to the sender, and the agent to whoever asked for hashes or for changes. As a
 * record it stands in the sender's tar stream (data/tar), as an entry of type
 * TAR_RECORD: its name is PATH, its target the four words before it.
 *
 * The stream of a copy, in which everything has one place:
 *
 *     [total]                       when it was asked for
 *     for each root, then below it depth first, in byte order of the names:
 *       folder | link | failed | kept
 *       [from] [sparse] file, its content, then hash or failed
 *     end                           and the archive's own end
 *
 * The name of an entry begins with that of its root, which is its last part, or
 * "." for what is in a folder without the folder. No name repeats, none is
 * absolute or has an empty part, "." or ".." in it (but that root), and a folder
 * comes before what is in it: a receiver takes nothing else.
 *
 * Memory: a reader holds one line; item_reader_free(). Paths are views, good until
 * the next call.
 */
#ifndef ABX_ITEM_H
#define ABX_ITEM_H

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"

typedef enum ItemKind {
    /* the sender, as records */
    ITEM_TOTAL,         /* `number` files with `size` bytes are to come, as far as could be seen */
    ITEM_FROM,          /* the next file's content begins at `size`, and its entry's size is that of what is left: the
                           receiver has what is before */
    ITEM_SPARSE,        /* the next file has holes: a block of zeros may become one */
    ITEM_HASH,          /* of the whole file that just came, and its size, what is before `from` included */
    ITEM_FAILED,        /* errno `number`. Behind a content: it is not what it should be, drop it. Else: could not be read.
                           From the receiver: could not be written */
    ITEM_KEPT,          /* the receiver has this file as it is */
    ITEM_END,           /* `number` files, `size` bytes in all were read, or written: the last one. Not those that failed or
                           were kept, nor what is before `from` */
    /* the receiver, and the agent, as lines */
    ITEM_HAVE,          /* a file that is there, its size and hash */
    ITEM_PART,          /* a partial file (sync/draft.h) that is there, by its own path, its size and hash */
    ITEM_DONE,          /* written whole, size and hash; a folder or a link: size 0, no hash */
    ITEM_CREATED, ITEM_CHANGED, ITEM_REMOVED,   /* watching; a move is REMOVED and CREATED */
    ITEM_LOST,          /* watching: more happened than could be told; look again */
    ITEM_READY,         /* watching: what happens from now on is told; `number` folders */
} ItemKind;

typedef struct Item {
    ItemKind      kind;
    bool          hashed;               /* sha256 is there */
    uint32_t      number;
    int64_t       size;
    unsigned char sha256[SHA256_SIZE];
    Str           path;
} Item;

enum { ITEM_WORDS = 104 };              /* no four words are longer */

/* A line to the end of *to. */
ABX_FN void item_put(Buf *to, const Item *i);
/* The four words; the Str is in `words`. */
ABX_FN Str item_words(const Item *i, char words[static ITEM_WORDS]);
/* From a record's words; `path` is left as it is. False: no item. */
ABX_FN bool item_parse(Str words, Item *i) ABX_CHECK;

typedef struct ItemReader {
    Buf    held;
    size_t given;
} ItemReader;

ABX_FN ItemReader item_reader(void);
ABX_FN void item_reader_free(ItemReader *r);

/* STEP_DONE: *i is the next line. STEP_MORE: *in is used up. STEP_ERR: ERR_INPUT
 * E8020, a line of another form, or longer than a path can be. */
ABX_FN Step item_next(ItemReader *r, Str *in, Item *i, Err *err) ABX_CHECK;

#endif
