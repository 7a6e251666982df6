/* gitfiles.h - the files that a commit has, by its trees, and how they become a
 * Tree: each content is compared with its id where it was put.
 *
 *     GitFiles f = {.hash = hash};
 *     if (!gitfiles_list(&f, pack, &commit, subdir, &a, err)) ...
 *     gitfiles_from_pack(&f, pack, &tree, err);       or from an archive
 *     while ((i = gitfiles_missing(&f, i)) < f.n) ...
 *
 * Refused, all E8010: what is no file of mode 100644 or 100755 (links,
 * submodules: "unsafe entry"), more files than a tree may have, what the tree
 * refuses.
 *
 * Memory: the list's in the arena, contents in the Tree.
 */
#ifndef ABX_GITFILES_H
#define ABX_GITFILES_H

#include "data/pack.h"
#include "host/forge.h"
#include "host/tree.h"

typedef struct GitFile {
    Str      path;          /* in the plugin: without the sub-folder */
    bool     executable;
    bool     there;         /* its content is in the tree, and has this id */
    ObjectId id;
} GitFile;

typedef struct GitFiles {
    ObjectHash hash;
    GitFile   *v;           /* in byte order of their paths */
    size_t     n;
    size_t     folders;     /* trees that were read */
    Str        subdir;      /* without slashes at its ends; empty: all of the commit */
} GitFiles;

/* What lies under `subdir` in the commit. All trees must be in the pack. */
ABX_FN bool gitfiles_list(GitFiles *f, Pack *pack, const ObjectId *commit, Str subdir, Arena *a, Err *err) ABX_CHECK;

/* The first from i on that is not there; f->n: all are. */
ABX_FN size_t gitfiles_missing(const GitFiles *f, size_t i);

/* Those that the pack has. */
ABX_FN bool gitfiles_from_pack(GitFiles *f, Pack *pack, Tree *to, Err *err) ABX_CHECK;

/* Those that an archive of the commit has with the same content. `any`: with
 * whatever content; *differ counts those then. */
ABX_FN bool gitfiles_from_archive(GitFiles *f, Str address, Str other, const SourceHost *host, bool any, Tree *to,
                                  size_t *differ, Err *err) ABX_CHECK;

#endif
