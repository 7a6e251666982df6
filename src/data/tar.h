/* tar.h - reads tar archives, cut anywhere, and writes their headers: POSIX ustar and pax (IEEE 1003.1,
 * pax), what came before them (v7), and GNU's long names and large numbers.
 *
 *     TarReader *r = tar_open();
 *     while (there are bytes `in`)
 *         while ((step = tar_next(r, &in, &ev, err)) == STEP_DONE) ...
 *     if (!tar_ended(r, err)) ...
 *
 * Strict where readers differ: what has no correct checksum, a number that is
 * none, an unknown type of entry, sparse files, parts of a larger archive, a
 * global header that would name all files alike, and what follows the end are
 * refused. An archive ends with a block of zero bytes; without one it was cut.
 *
 * Names and targets are what the archive says, any bytes at all: whether they
 * may be used is the caller's to decide. What belongs to the links, folders and
 * special files is nothing but their header.
 *
 * Memory: LIMIT_TAR_EXTRA at most. Names and bytes in an event are good until
 * the next call.
 */
#ifndef ABX_TAR_H
#define ABX_TAR_H

#include "base/buf.h"
#include "base/err.h"

typedef struct TarReader TarReader;

/* TAR_RECORD is an entry of our own kind (typeflag `R`, of those that POSIX leaves
 * to others) in the stream of a copy: a name, a text as its target, no content.
 * A reader knows it only when it was asked to. */
typedef enum TarType { TAR_FILE, TAR_FOLDER, TAR_SYMLINK, TAR_HARDLINK, TAR_SPECIAL, TAR_RECORD } TarType;

typedef enum TarEventKind { TAR_ENTRY, TAR_BYTES, TAR_END } TarEventKind;

typedef struct TarEvent {
    TarEventKind kind;
    TarType      type;          /* TAR_ENTRY */
    Str          name, target;
    unsigned     mode;          /* 0 … 07777 */
    int64_t      size;          /* of a TAR_FILE's content, which follows as TAR_BYTES; else 0 */
    Str          bytes;         /* TAR_BYTES: a view into the input, never empty */
} TarEvent;

ABX_FN TarReader *tar_open(void);
ABX_FN TarReader *tar_open_copy(void);              /* with TAR_RECORD */
ABX_FN void tar_close(TarReader *r);                /* NULL is fine */

/* STEP_DONE: *ev is what came next. STEP_MORE: *in is used up. STEP_ERR:
 * ERR_INPUT or ERR_LIMIT, E0000; every later call says the same. */
ABX_FN Step tar_next(TarReader *r, Str *in, TarEvent *ev, Err *err) ABX_CHECK;

/* The input ended here. False: in the middle. */
ABX_FN bool tar_ended(const TarReader *r, Err *err) ABX_CHECK;

/* ---- writing ---- */

/* The header of an entry, to the end of *to: ustar, with a pax header in front
 * for a name or a target that is longer than its field, or a size of 8 GiB or
 * more. Owner 0, time 0. A file's content is the caller's to add, and behind it
 * tar_pad() bytes of zeros; an archive ends with TAR_TAIL of them. False:
 * ERR_LIMIT, more than a reader takes. */
enum { TAR_BLOCK = 512, TAR_TAIL = 1024 };

typedef struct TarHead {
    TarType  type;              /* not TAR_HARDLINK, nor TAR_SPECIAL */
    Str      name, target;
    unsigned mode;
    int64_t  size;              /* of a TAR_FILE */
} TarHead;

ABX_FN bool   tar_put(Buf *to, const TarHead *h, Err *err) ABX_CHECK;
ABX_FN size_t tar_pad(int64_t size);
/* A block that says nothing, for who waits: a global header without a record. */
ABX_FN void   tar_put_nothing(Buf *to);

#endif
