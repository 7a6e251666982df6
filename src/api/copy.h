/* copy.h - what the ways of abx_copy() share: copy.c chooses between them, and
 * moves a single file by the backend's own calls; copy_stream.c has the carried
 * agent, copy_plain.c the backend's own calls for a tree. */
#ifndef ABX_COPY_H
#define ABX_COPY_H

#include "api/session.h"
#include "base/sha256.h"
#include "os/clock.h"
#include "provider/carry.h"
#include "sync/item.h"
#include "sync/walk.h"

typedef struct Copy {
    const abx_copy_options *o;
    abx_copied     *out;
    Arena           a;          /* names, until the copy ends */
    const WalkRoot *roots;      /* the sources; in a sandbox they may be patterns, and so their names */
    bool            several;    /* or a pattern, of which nobody knows how many it is */
    bool            verify;     /* each file's SHA-256 is compared */
    int64_t         moved;      /* bytes of files */
    int64_t         total, total_files;     /* -1: not known */
    Deadline        told;       /* no PROGRESS before this */
} Copy;

/* A local file that is open, to be sent: its Source. */
typedef struct CopyLocal {
    int         fd;
    const char *name;
    bool        folder;
    int         mode;           /* -1: it is no ordinary file */
    int64_t     size;           /* that it had when it was opened; -1: it did not say */
    int64_t     changed;        /* walk_changed() of it then; 0: that does not matter */
    int64_t     n;              /* bytes that were read of it */
    int         cancel_fd;
    Copy       *c;              /* whose bytes they are; NULL: nobody listens */
    Sha256      hash;           /* with c->verify */
} CopyLocal;

ABX_FN Source copy_source(CopyLocal *f);

/* What is told. Paths and reasons may be hostile. */
ABX_FN void copy_moved(Copy *c, int64_t bytes);
ABX_FN void copy_done(Copy *c, abx_copy_kind kind, Str path, int64_t size,     /* -1: of a folder or a link */
                      const unsigned char *sha256);     /* NULL: not known */
ABX_FN void copy_failed(Copy *c, Str path, const char *reason);
ABX_FN void copy_item(Copy *c, const Item *i, Str why);     /* what a receiver says; `why` something FAILED, if it is known */
ABX_FN const char *copy_reason(int sys);

ABX_FN bool copy_ends_in_folder(Str path);      /* "x/" and "x/." are folders, whatever is there */
ABX_FN Str  copy_join(Arena *a, Str folder, Str name);
/* False: E8002, two of the names are one, and would come to lie at one place. */
ABX_FN bool copy_differ(Str *names, size_t n, Err *err);
/* What is at a path in a sandbox, and whether it leads to a folder. */
ABX_FN bool copy_look(const abx_sandbox *b, Str path, Arena *a, FileInfo *info, bool *there, bool *folder, Err *err);
/* Where one file lies now. */
ABX_FN void copy_lies(Copy *c, Str path);

/* The other ways, for all that is to be copied. CARRY_CANNOT: nothing was done, and *err (E8004) says why. */
ABX_FN CarryResult copy_stream_all(Copy *c, Err *err);
ABX_FN bool        copy_plain_all(Copy *c, Err *err);

#endif
