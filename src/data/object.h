/* object.h - git's objects (gitformat-pack, git's object model): their ids, and
 * what stands in commits, tags and trees.
 *
 * An id is the hash of "TYPE SIZE\0" and the content: SHA-1, or SHA-256 in
 * repositories of that kind. Nothing here believes a name or a mode: what no
 * checkout could bear is refused where the entry is read.
 *
 * Memory: none of its own; results are views into the text that was given.
 */
#ifndef ABX_OBJECT_H
#define ABX_OBJECT_H

#include "base/err.h"
#include "base/sha1.h"
#include "base/sha256.h"

typedef enum ObjectHash { OBJECT_SHA1, OBJECT_SHA256 } ObjectHash;

enum { OBJECT_ID_MAX = 32, OBJECT_HEX = 2 * OBJECT_ID_MAX + 1 };

/* Raw bytes, 20 or 32 of them; the rest is zero, so that ids compare whole. */
typedef struct ObjectId { unsigned char b[OBJECT_ID_MAX]; } ObjectId;

ABX_FN size_t object_id_size(ObjectHash hash);                              /* 20, 32 */
ABX_FN bool   object_id_read(ObjectHash hash, Str hex, ObjectId *out);      /* exactly so many digits, either case */
ABX_FN void   object_id_hex(ObjectHash hash, const ObjectId *id, char hex[static OBJECT_HEX]);  /* lower case, NUL */
ABX_FN int    object_id_cmp(const ObjectId *a, const ObjectId *b);          /* as memcmp */

/* The numbers are those of packs. */
typedef enum ObjectType { OBJECT_NONE, OBJECT_COMMIT, OBJECT_TREE, OBJECT_BLOB, OBJECT_TAG } ObjectType;

ABX_FN const char *object_type_name(ObjectType type);

/* The id of a content that comes in pieces. */
typedef struct ObjectDigest {
    ObjectHash hash;
    union { Sha1 one; Sha256 two; } u;
} ObjectDigest;

ABX_FN ObjectDigest object_digest(ObjectHash hash);                 /* of raw bytes, such as a pack */
ABX_FN ObjectDigest object_digest_of(ObjectHash hash, ObjectType type, uint64_t size);
ABX_FN void         object_digest_add(ObjectDigest *d, Str bytes);
ABX_FN void         object_digest_end(ObjectDigest *d, ObjectId *out);

/* Of a whole one. */
ABX_FN void object_id_of(ObjectHash hash, ObjectType type, Str content, ObjectId *out);

/* The tree of a commit; the object of a tag, with its type. False: E8010. */
ABX_FN bool object_commit_tree(ObjectHash hash, Str commit, ObjectId *tree, Err *err) ABX_CHECK;
ABX_FN bool object_tag_target(ObjectHash hash, Str tag, ObjectId *target, ObjectType *type, Err *err) ABX_CHECK;

typedef struct ObjectEntry {
    Str      name;
    unsigned mode;              /* 040000, 0100644, 0100755, 0120000, 0160000, or what else was written */
    ObjectId id;
} ObjectEntry;

enum { OBJECT_NAME_MAX = 255 };     /* what file systems bear (NAME_MAX) */

typedef struct ObjectTree {
    ObjectHash hash;
    Str        rest;
    Str        last;            /* the entry before */
    bool       last_tree;
    bool       file[OBJECT_NAME_MAX + 1];   /* so many bytes of it are the name of a file before */
} ObjectTree;

ABX_FN ObjectTree object_tree(ObjectHash hash, Str content);

/* STEP_DONE: an entry. STEP_MORE: there are no more. STEP_ERR (E8010): not a
 * tree; an entry with an empty name, one over OBJECT_NAME_MAX, `.`, `..` or `.git`
 * in any case; a name twice, one out of git's order. */
ABX_FN Step object_tree_next(ObjectTree *t, ObjectEntry *out, Err *err) ABX_CHECK;

enum { OBJECT_MODE_TREE = 040000, OBJECT_MODE_FILE = 0100644, OBJECT_MODE_PROGRAM = 0100755 };

#endif
