/* folder.h - changing entries of folders, each named by a descriptor of its
 * folder and a name.
 *
 * Nothing here follows a link. Where a function returns an int it is 0, or the
 * errno of what failed.
 */
#ifndef ABX_FOLDER_H
#define ABX_FOLDER_H

#include "base/arena.h"
#include "base/err.h"

/* The folder `name` in `at`, opened; -1 and errno when it is none. */
ABX_FN int folder_open(int at, const char *name);

/* Two entries of one file system change places, at one instant. EINVAL where
 * the file system or the kernel cannot. */
ABX_FN int folder_exchange(int a, const char *x, int b, const char *y);

/* x becomes y, which must not be there: EEXIST. */
ABX_FN int folder_move(int a, const char *x, int b, const char *y);

/* Whatever is there goes, a folder with all that is in it, however deep; a link
 * alone, not what it leads to. What cannot be removed stays. */
ABX_FN void folder_remove(int at, const char *name);

/* The names in a folder, without "." and "..", in the arena, sorted by bytes; a
 * name behind the `most`th is left out. -1: it cannot be read, errno says why. */
ABX_FN ptrdiff_t folder_names(int folder, size_t most, Arena *a, const Str **names);

/* All that was written to the file system that the folder is on is on the disk. */
ABX_FN int folder_flush_all(int folder);

/* The folder's own entries are. */
ABX_FN int folder_flush(int folder);

#endif
