/* place.h - putting a file where it belongs, whole or not at all.
 *
 *     if (!place_open(&p, path, &owner, err)) ...         now write to p.fd
 *     if (!place_close(&p, err) || !place_commit(&p, err)) ...
 *     place_free(&p);
 *
 * The bytes go to a new file under a name that nobody knows, in the folder
 * where it is to lie; the commit renames it. So a reader sees the old file or
 * the new one. What that costs: the file gets a new inode, and hard links to
 * the old one keep the old content. A link at the path is followed. Where a
 * rename cannot be (a mounted file, another's in a sticky folder, a folder that
 * may not be written to) the file is written in place.
 *
 * An existing file keeps its owner, and its mode where none is asked for; a
 * new one is 0755 less the umask, as the stock daemon has it. Folders that are
 * missing are made, 0755 less the umask.
 *
 * Memory: place_free(), which also removes what was not committed.
 */
#ifndef ABX_PLACE_H
#define ABX_PLACE_H

#include "agent/owner.h"

typedef struct Place {
    char *target;       /* the path without links at its end */
    char *temp;         /* what is written to; NULL: the target itself, or committed */
    int   fd;           /* -1: not open */
    bool  old;          /* fd is the target, and nothing was written over its content yet */
    Owner owner;
} Place;

/* False: ERR_SYSTEM; *p needs no place_free(). */
ABX_FN bool place_open(Place *p, const char *path, const Owner *owner, Err *err) ABX_CHECK;

ABX_FN bool place_write(Place *p, Str data, Err *err) ABX_CHECK;
ABX_FN bool place_close(Place *p, Err *err) ABX_CHECK;      /* all was written: owner and mode, then close */
ABX_FN bool place_commit(Place *p, Err *err) ABX_CHECK;
ABX_FN void place_free(Place *p);

/* mkdir -p; `path` is changed meanwhile. False: errno. */
ABX_FN bool place_folders(char *path, mode_t mode) ABX_CHECK;

/* How much of a path is its folder, the last slash included; 0: none. */
ABX_FN size_t place_folder(const char *path);

#endif
