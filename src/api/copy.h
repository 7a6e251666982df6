/* copy.h - what the ways of abx_copy() share: copy.c chooses between them, and
 * moves a single file by the backend's own calls. */
#ifndef ABX_COPY_H
#define ABX_COPY_H

#include "api/session.h"
#include "os/clock.h"
#include "provider/carry.h"
#include "base/arena.h"

typedef struct CopyRoot { const char *path; Str name; } CopyRoot;

typedef struct Copy {
    const abx_copy_options *o;
    abx_copied     *out;
    Arena           a;          /* names, until the copy ends */
    const CopyRoot *roots;      /* the sources; in a sandbox they may be patterns, and so their names */
    bool            several;    /* or a pattern, of which nobody knows how many it is */
    bool            verify;     /* each file's SHA-256 is compared */
    int64_t         moved;      /* bytes of files */
    int64_t         total, total_files;     /* -1: not known */
    Deadline        told;       /* no PROGRESS before this */
} Copy;

/* What is told. Paths and reasons may be hostile. */
ABX_FN void copy_moved(Copy *c, int64_t bytes);
ABX_FN void copy_done(Copy *c, abx_copy_kind kind, Str path, int64_t size);     /* size -1: of a folder or a link */

ABX_FN bool copy_is_pattern(Str path);          /* or could be one */
ABX_FN bool copy_ends_in_folder(Str path);      /* "x/" and "x/." are folders, whatever is there */
ABX_FN Str  copy_join(Arena *a, Str folder, Str name);
/* Where one file lies now. */
ABX_FN void copy_lies(Copy *c, Str path);

#endif
