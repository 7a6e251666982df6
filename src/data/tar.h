/* tar.h - reads tar archives (POSIX ustar and pax, GNU long names), cut anywhere.
 *
 *     TarReader *r = tar_open();
 *     while ((step = tar_next(r, &in, &ev, err)) == STEP_DONE) ...
 *
 * Memory: names in an event are good until the next call.
 */
#ifndef ABX_TAR_H
#define ABX_TAR_H

#include "base/buf.h"
#include "base/err.h"

typedef struct TarReader TarReader;

typedef enum TarType { TAR_FILE, TAR_FOLDER, TAR_SYMLINK, TAR_HARDLINK, TAR_SPECIAL } TarType;

typedef enum TarEventKind { TAR_ENTRY, TAR_BYTES, TAR_END } TarEventKind;

typedef struct TarEvent {
    TarEventKind kind;
    TarType      type;          /* TAR_ENTRY */
    Str          name, target;
    unsigned     mode;
    int64_t      size;          /* of a TAR_FILE's content, which follows as TAR_BYTES */
    Str          bytes;         /* TAR_BYTES: a view into the input */
} TarEvent;

ABX_FN TarReader *tar_open(void);
ABX_FN void tar_close(TarReader *r);                /* NULL is fine */

/* STEP_DONE: *ev is what came next. STEP_MORE: *in is used up. STEP_ERR:
 * ERR_INPUT or ERR_LIMIT, E0000. */
ABX_FN Step tar_next(TarReader *r, Str *in, TarEvent *ev, Err *err) ABX_CHECK;

/* The input ended here. False: in the middle. */
ABX_FN bool tar_ended(const TarReader *r, Err *err) ABX_CHECK;

#endif
