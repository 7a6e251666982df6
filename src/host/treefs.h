/* treefs.h - the files of a plugin on disk: a folder becomes a Tree, a Tree
 * becomes a folder, and an installed folder becomes its digest.
 *
 * The rules are those of the specification of the provider host, 1.2, 1.8 and
 * 1.9. No link is followed below the folder that is named, and nothing is opened
 * that is no file or folder.
 *
 *     if (!treefs_read("./plugin", &t, err)) ...
 *     if (!treefs_write(&t, fd, err)) ...
 *     if (!treefs_digest("…/plugins/x", NULL, NULL, hex, err)) ...
 *
 * Refusals name the path; E8010 where nothing else is said. What was begun stays
 * when treefs_write() fails: the folder is the caller's to remove.
 *
 * Memory: a Tree as tree.h says; beside it the names of the folders that are
 * open, and a block of LIMIT_COPY_BLOCK bytes.
 */
#ifndef ABX_TREEFS_H
#define ABX_TREEFS_H

#include "host/tree.h"

/* A source folder, read by the rules of 1.8: no link, no special file, no hard
 * link; an unreadable folder is refused too. Sealed. `.git` and
 * `.abx-install.json` on top are passed over. */
ABX_FN bool treefs_read(const char *folder, Tree *out, Err *err) ABX_CHECK;

/* Write it into a folder that was just made, by the rules of 1.9. */
ABX_FN bool treefs_write(const Tree *t, int folder_fd, Err *err) ABX_CHECK;

/* The text of the link that stands for an installed plugin's `data` for an
 * instant, while a change moves that folder (store.c): it leads into the store
 * itself. Any other link is somebody's own, and is not followed to be moved. */
ABX_FN bool treefs_hop(Str text);

/* The digest of an installed tree, read and hashed file by file in constant
 * memory: without `.git`, `.abx-install.json` and the folder `data` on top. A
 * link or a special file in it, and what cannot be read, is E8011. `each` (may be
 * NULL) hears of every file, in byte order of the paths: its path, its execute
 * bit and the SHA-256 of its content. */
typedef void TreeSeen(void *ctx, Str path, bool executable, const unsigned char sha256[static SHA256_SIZE]);
ABX_FN bool treefs_digest(const char *folder, TreeSeen *each, void *ctx, char hex[static TREE_HEX], Err *err) ABX_CHECK;

#endif
