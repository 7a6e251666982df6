/* tree.h - the files of a plugin, in memory, between a source and the store.
 *
 * Whatever a plugin comes from (a folder, an archive, a git commit), it becomes
 * a Tree first, and everything that is decided about it - its digest, its
 * manifest, what a person is asked - is decided about these bytes, which are
 * then the bytes that are installed. The rules are those of the specification
 * of the provider host, 1.2 and 1.6 to 1.9.
 *
 *     Tree t = tree_make();
 *     if (!tree_add(&t, STR("bin/run"), true, size, &p, err)) ...; fill p; ...
 *     if (!tree_seal(&t, err)) ...
 *     tree_digest(&t, hex);
 *
 * Every refusal is E8010 and names the path, with its control characters taken
 * out. What is too much is refused before it is read.
 *
 * Memory: paths and contents live in the tree's own arena until tree_free():
 * as much as they have bytes, and 100 more for each file.
 */
#ifndef ABX_TREE_H
#define ABX_TREE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/sha256.h"

typedef struct TreeFile {
    Str   path;                 /* relative, with "/" between its parts */
    bool  executable;
    Str   bytes;
    unsigned char sha256[SHA256_SIZE];  /* of bytes, once the tree is sealed */
} TreeFile;

typedef struct Tree {
    TreeFile *v;                /* in byte order of their paths once it is sealed */
    size_t    n, cap;
    int64_t   total;            /* bytes of all contents */
    size_t    paths;            /* bytes of all paths */
    Arena     own;
} Tree;

enum { TREE_HEX = 65 };         /* a digest as 64 lower-case hexadecimal digits and a NUL */

ABX_FN Tree tree_make(void);
ABX_FN void tree_free(Tree *t);                         /* a zeroed one is fine */

/* A path that may stand in a tree (1.7, items 1 to 5). False: E8010. */
ABX_FN bool tree_path(Str path, Err *err) ABX_CHECK;

/* A file of `size` bytes, which are to be filled in at *bytes. The path must
 * pass; `data`, `.git` and `.abx-install.json` on top (a source whose format
 * has them for other things passes them over first), a size over the limit of a
 * file or of the tree, more files than the limit, and too many folders in one
 * another are refused here. */
ABX_FN bool tree_add(Tree *t, Str path, bool executable, int64_t size, char **bytes, Err *err) ABX_CHECK;

/* The same for a content that is there already, in t->own or somewhere that
 * outlives the tree. */
ABX_FN bool tree_take(Tree *t, Str path, bool executable, Str bytes, Err *err) ABX_CHECK;

/* The file at exactly this path, or NULL. */
ABX_FN const TreeFile *tree_find(const Tree *t, Str path);

/* All files are there: sorts and hashes them, and refuses paths that are one
 * when case does not count, a file that is also a folder, and more folders than
 * are walked through when it is verified. */
ABX_FN bool tree_seal(Tree *t, Err *err) ABX_CHECK;

/* How much of a path, up to a "/", the one before it has too: in byte order,
 * what is behind that are folders that the one before did not need. */
ABX_FN size_t tree_shared(Str path, Str before);

/* Of a sealed tree (1.2). */
ABX_FN void tree_digest(const Tree *t, char hex[static TREE_HEX]);

/* One file's share of a digest: for whoever has hashes, and no contents. */
ABX_FN void tree_digest_file(Sha256 *outer, Str path, bool executable, const unsigned char sha256[static SHA256_SIZE]);
ABX_FN void tree_digest_end(Sha256 *outer, char hex[static TREE_HEX]);

/* "unsafe entry PATH: WHY", E8010; returns false. */
ABX_FN bool tree_refuse(Err *err, Str path, const char *why);

enum { TREE_SHOWN = 4096 };     /* room for a path in a message: what clean_path() takes */

#endif
