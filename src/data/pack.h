/* pack.h - git's packs (gitformat-pack, versions 2 and 3): many objects in one
 * stream, some of them told as deltas of others.
 *
 *     Pack *p = pack_open(hash, store, PACK_BYTES, PACK_INFLATED);
 *     while (bytes come) if (pack_feed(p, bytes, err) == STEP_ERR) ...   the last one: STEP_DONE
 *     while ((step = pack_resolve(p, err)) == STEP_MORE) ...
 *     const PackObject *o = pack_find(p, &id);
 *     if (o) pack_read(p, o, room for o->size bytes, err);
 *     pack_free(p);
 *
 * Feeding inflates each object once, hashes those that are no deltas, and
 * checks the trailer; resolving makes each delta's content once, to know its
 * id. A pack that was resolved names every object by its true id: what it
 * calls its objects is never asked.
 *
 * Bases may come later than their deltas, and chains may be long: they are
 * walked without recursion. A delta whose base is not there, or which is its
 * own base by way of others, is an error.
 *
 * Memory: 64 bytes for each object, a few blocks, and while deltas are resolved
 * at most LIMIT_PACK_KEEP of contents and three of LIMIT_PACK_OBJECT. The
 * packed bytes are the store's: they are written in order, and read again
 * where a content is wanted.
 */
#ifndef ABX_PACK_H
#define ABX_PACK_H

#include "base/flow.h"
#include "data/object.h"

typedef struct PackStore {
    Sink   in;                  /* to the end of what it has */
    /* All of the n bytes, which it has; ctx is the sink's. */
    bool (*get)(void *ctx, uint64_t at, char *p, size_t n, Err *err);
} PackStore;

typedef struct PackObject {
    ObjectId      id;
    uint64_t      start;        /* its first byte in the pack */
    uint32_t      size;         /* of its content; of a delta once that is resolved */
    uint32_t      stream;       /* inflated bytes of its zlib stream */
    uint32_t      base;         /* of a delta: 1 + index of its base, 0 while that is not known */
    uint32_t      child, next;  /* 1 + index: the first ofs-delta on it; the next one on the same base */
    unsigned char head;         /* bytes before its zlib stream */
    unsigned char kind;         /* as it is packed: an ObjectType, 6 or 7 */
    unsigned char type;         /* what it is: an ObjectType, OBJECT_NONE while that is not known */
} PackObject;

typedef struct Pack Pack;

/* At most `bytes` may come, and `inflated` (below 4 GiB) may come out of them
 * until all is resolved, deltas' results and what is made again included; as
 * much once more by pack_read(). */
ABX_FN Pack *pack_open(ObjectHash hash, const PackStore *store, uint64_t bytes, uint64_t inflated);
ABX_FN void  pack_free(Pack *p);                /* NULL is fine; the store is the caller's */

ABX_FN size_t pack_count(const Pack *p);        /* objects that came so far */

/* STEP_MORE: all of it was used. STEP_DONE: that was the end, trailer checked.
 * STEP_ERR, E8010: ERR_INPUT or ERR_LIMIT, or what the store said. */
ABX_FN Step pack_feed(Pack *p, Str bytes, Err *err) ABX_CHECK;

/* A fed pack's next delta. STEP_MORE: there may be others. STEP_DONE: all
 * objects have their ids. STEP_ERR, E8010: as above. */
ABX_FN Step pack_resolve(Pack *p, Err *err) ABX_CHECK;

/* Of a resolved pack. NULL: it is not there, or it is a delta with a base or a
 * result over LIMIT_PACK_OBJECT. */
ABX_FN const PackObject *pack_find(const Pack *p, const ObjectId *id);

/* Its content, just o->size bytes. */
ABX_FN bool pack_read(Pack *p, const PackObject *o, char *out, Err *err) ABX_CHECK;

#endif
