#include "data/pack.h"

#include "base/limits.h"
#include "base/mem.h"
#include "data/delta.h"
#include "data/inflate.h"
#include <stdlib.h>

enum {
    PACK_HEADER = 12,
    PACK_OFS = 6, PACK_REF = 7,
    PACK_HEAD = 16 + OBJECT_ID_MAX,     /* type and size, and a base: no real one is longer */
    PACK_BLOCK = 32 << 10,
};

typedef enum PackState {
    PACK_AT_HEADER, PACK_AT_OBJECT, PACK_IN_STREAM, PACK_AT_TRAILER,
    PACK_FED,       /* the trailer was right */
    PACK_READY,     /* every object has its id */
    PACK_BAD,
} PackState;

/* A delta that names its base. */
typedef struct PackRef {
    ObjectId base;
    uint32_t object;
} PackRef;

/* One object whose deltas are being resolved; the next frame is one of them. */
typedef struct PackFrame {
    uint32_t object;
    uint32_t child;         /* 1 + index of the next ofs-delta on it */
    size_t   ref, ref_end;  /* the ref-deltas on it that are left */
    char    *content;       /* NULL: to be made again */
} PackFrame;

struct Pack {
    ObjectHash    hash;
    PackStore     store;
    uint64_t      most, most_inflated;
    PackState     state;
    uint64_t      at;               /* bytes of the pack that were used */
    uint64_t      inflated;         /* bytes that came out of it, however often */
    ObjectDigest  all;

    unsigned char head[PACK_HEAD];  /* what is being gathered: header, object head, trailer */
    size_t        head_n;
    Inflate      *z;
    char         *block;            /* PACK_BLOCK: what came out, while it is hashed; */
    char         *input;            /* what goes in, while a content is read again */
    ObjectDigest  digest;
    uint32_t      out;              /* of this object's stream so far */

    PackObject   *v;
    uint32_t      n, cap, count;
    PackRef      *refs;
    size_t        refs_n, refs_cap;

    const PackObject **by_id;       /* those whose id is known, in order */
    size_t        ids;
    PackFrame    *frames;
    size_t        depth, frames_cap, kept;
    bool          sorted;           /* refs are */
    uint32_t      root;             /* objects before it have been looked at */
    bool          too_large;        /* some were left out for their size */
};

static bool pack__bad(Err *err, const char *what)
{
    return err_set(err, ERR_INPUT, E8010, "a damaged git pack: %s", what);
}

Pack *pack_open(ObjectHash hash, const PackStore *store, uint64_t bytes, uint64_t inflated)
{
    Pack *p = mem_new(sizeof *p);

    p->hash = hash;
    p->store = *store;
    p->most = bytes;
    p->most_inflated = inflated;
    p->all = object_digest(hash);
    p->z = inflate_open(INFLATE_ZLIB);
    p->block = mem_grow(NULL, PACK_BLOCK, 1);
    p->input = mem_grow(NULL, PACK_BLOCK, 1);
    return p;
}

void pack_free(Pack *p)
{
    if (!p)
        return;
    while (p->depth)
        mem_free(p->frames[--p->depth].content);
    inflate_close(p->z);
    mem_free(p->block);
    mem_free(p->input);
    mem_free(p->v);
    mem_free(p->refs);
    mem_free(p->by_id);
    mem_free(p->frames);
    mem_free(p);
}

size_t pack_count(const Pack *p)
{
    return p->n;
}

/* Everything that comes out counts, also what is made again: a small pack can
 * ask for much work. */
static bool pack__counts(Pack *p, uint64_t n, Err *err)
{
    if (n > p->most_inflated - p->inflated)
        return err_set(err, ERR_LIMIT, E8010, "a git pack that becomes more than %llu bytes",
                       (unsigned long long)p->most_inflated);
    p->inflated += n;
    return true;
}

/* --- feeding ------------------------------------------------------------------ */

static uint32_t pack__big(const unsigned char *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void pack__next(Pack *p)
{
    p->head_n = 0;
    p->state = p->n < p->count ? PACK_AT_OBJECT : PACK_AT_TRAILER;
}

static Step pack__header(Pack *p, Err *err)
{
    if (p->head_n < PACK_HEADER)
        return STEP_MORE;
    uint32_t version = pack__big(p->head + 4);
    if (memcmp(p->head, "PACK", 4) != 0 || (version != 2 && version != 3)) {
        pack__bad(err, "it does not begin as one");
        return STEP_ERR;
    }
    p->count = pack__big(p->head + 8);
    if (p->count > LIMIT_PACK_OBJECTS) {
        err_set(err, ERR_LIMIT, E8010, "a git pack of %lu objects; %d are the most", (unsigned long)p->count,
                LIMIT_PACK_OBJECTS);
        return STEP_ERR;
    }
    pack__next(p);
    return STEP_DONE;
}

/* The distance to an ofs-delta's base, from byte `at` of the head on. */
static Step pack__distance(const Pack *p, size_t at, uint64_t *distance, size_t *end)
{
    uint64_t v = 0;

    for (size_t i = at; i < p->head_n; i++) {
        v = (i > at ? (v + 1) << 7 : 0) | (p->head[i] & 127);
        if (v >> 56)
            return STEP_ERR;
        if (p->head[i] < 128) {
            *distance = v;
            *end = i + 1;
            return STEP_DONE;
        }
    }
    return STEP_MORE;
}

/* The object that begins at this byte; 0: none does. */
static uint32_t pack__at(const Pack *p, uint64_t start)
{
    uint32_t low = 0, high = p->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->v[middle].start == start)
            return middle + 1;
        if (p->v[middle].start < start)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

static PackObject *pack__new(Pack *p)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 256;
        p->v = mem_grow(p->v, p->cap, sizeof *p->v);
    }
    p->v[p->n] = (PackObject){.start = p->at - p->head_n, .head = (unsigned char)p->head_n};
    return &p->v[p->n];
}

static void pack__ref(Pack *p, const unsigned char *id)
{
    if (p->refs_n == p->refs_cap) {
        p->refs_cap = p->refs_cap ? 2 * p->refs_cap : 256;
        p->refs = mem_grow(p->refs, p->refs_cap, sizeof *p->refs);
    }
    p->refs[p->refs_n] = (PackRef){.object = p->n};
    memcpy(p->refs[p->refs_n++].base.b, id, object_id_size(p->hash));
}

/* What is gathered may be the head of an object: its type and size, and its base. */
static Step pack__object(Pack *p, Err *err)
{
    unsigned char kind = p->head[0] >> 4 & 7;
    uint64_t      size = p->head[0] & 15, distance = 0;
    size_t        i = 1, end;
    uint32_t      base = 0;
    Step          step = STEP_DONE;

    for (unsigned shift = 4; p->head[i - 1] & 128; i++, shift += 7) {
        if (i == p->head_n)
            return STEP_MORE;
        if (shift > 32)
            return pack__counts(p, UINT64_MAX, err) ? STEP_DONE : STEP_ERR;
        size |= (uint64_t)(p->head[i] & 127) << shift;
    }
    end = i;
    if (kind == PACK_OFS)
        step = pack__distance(p, i, &distance, &end);
    else if (kind == PACK_REF)
        end = i + object_id_size(p->hash), step = p->head_n < end ? STEP_MORE : STEP_DONE;
    if (step == STEP_MORE)
        return step;
    if (step == STEP_ERR || kind == 0 || kind == 5) {
        pack__bad(err, "an object of no known kind");
        return STEP_ERR;
    }
    if (!pack__counts(p, size, err))
        return STEP_ERR;
    uint64_t start = p->at - p->head_n;
    if (kind == PACK_OFS && (distance == 0 || distance > start || !(base = pack__at(p, start - distance)))) {
        pack__bad(err, "a delta of what is no object");
        return STEP_ERR;
    }
    PackObject *o = pack__new(p);
    o->kind = kind;
    o->stream = (uint32_t)size;
    if (base) {
        o->base = base;
        o->next = p->v[base - 1].child;
        p->v[base - 1].child = p->n + 1;
    } else if (kind == PACK_REF) {
        pack__ref(p, p->head + i);
    } else {
        o->type = kind;
        o->size = o->stream;
        p->digest = object_digest_of(p->hash, (ObjectType)kind, size);
    }
    p->out = 0;
    inflate_again(p->z);
    p->state = PACK_IN_STREAM;
    return STEP_DONE;
}

/* Gathers bytes until `done` says that they are what it waits for. */
static Step pack__gather(Pack *p, Str *in, size_t most, Step (*done)(Pack *, Err *), Err *err)
{
    while (in->n) {
        if (p->head_n == most) {
            pack__bad(err, "the head of an object has no end");
            return STEP_ERR;
        }
        p->head[p->head_n++] = (unsigned char)*in->p;
        p->at++;
        str_skip(in, 1);
        Step step = done(p, err);
        if (step != STEP_MORE)
            return step;
    }
    return STEP_MORE;
}

static Step pack__stream(Pack *p, Str *in, Err *err)
{
    PackObject *o = &p->v[p->n];
    size_t      had = in->n, n;
    ABX_UNSET Err why;
    Step        step;

    do {
        step = inflate_next(p->z, in, p->block, PACK_BLOCK, &n, &why);
        if (step == STEP_ERR || n > o->stream - p->out) {
            pack__bad(err, "an object that does not inflate to its size");
            return STEP_ERR;
        }
        p->out += (uint32_t)n;
        if (o->type)
            object_digest_add(&p->digest, (Str){p->block, n});
    } while (step == STEP_MORE && n == PACK_BLOCK);
    p->at += had - in->n;
    if (step == STEP_MORE)
        return step;
    if (p->out != o->stream) {
        pack__bad(err, "an object that does not inflate to its size");
        return STEP_ERR;
    }
    if (o->type)
        object_digest_end(&p->digest, &o->id);
    p->n++;
    pack__next(p);
    return STEP_DONE;
}

static Step pack__trailer(Pack *p, Err *err)
{
    ObjectId is, says = {{0}};

    if (p->head_n < object_id_size(p->hash))
        return STEP_MORE;
    memcpy(says.b, p->head, object_id_size(p->hash));
    object_digest_end(&p->all, &is);
    if (object_id_cmp(&is, &says) != 0) {
        pack__bad(err, "its check sum is wrong");
        return STEP_ERR;
    }
    p->state = PACK_FED;
    return STEP_DONE;
}

/* One state's share of *in. STEP_MORE: it is used up. */
static Step pack__step(Pack *p, Str *in, Err *err)
{
    Step step = STEP_MORE;

    if (in->n == 0)
        return STEP_MORE;
    switch (p->state) {
    case PACK_AT_HEADER:
        return pack__gather(p, in, PACK_HEADER, pack__header, err);
    case PACK_AT_OBJECT:
        return pack__gather(p, in, PACK_HEAD, pack__object, err);
    case PACK_IN_STREAM:
        return pack__stream(p, in, err);
    case PACK_AT_TRAILER:
        return pack__gather(p, in, PACK_HEAD, pack__trailer, err);
    case PACK_FED:
    case PACK_READY:
        pack__bad(err, "there is more behind its end");
        return STEP_ERR;
    case PACK_BAD:
        pack__bad(err, "it was damaged before");
        return STEP_ERR;
    }
    return step;
}

Step pack_feed(Pack *p, Str bytes, Err *err)
{
    const char *hashed = bytes.p;
    Step        step = STEP_DONE;

    if (bytes.n > p->most - p->at) {
        p->state = PACK_BAD;
        err_set(err, ERR_LIMIT, E8010, "a git pack of more than %llu bytes", (unsigned long long)p->most);
        return STEP_ERR;
    }
    if (!p->store.in.write(p->store.in.ctx, bytes, err))
        return STEP_ERR;
    while (step == STEP_DONE && (bytes.n || p->state == PACK_AT_TRAILER)) {
        /* The trailer is the hash of all that comes before it. */
        if (p->state == PACK_AT_TRAILER && hashed) {
            object_digest_add(&p->all, (Str){hashed, (size_t)(bytes.p - hashed)});
            hashed = NULL;
        }
        step = pack__step(p, &bytes, err);
    }
    if (step == STEP_ERR) {
        p->state = PACK_BAD;
        return step;
    }
    if (hashed && p->state < PACK_AT_TRAILER)
        object_digest_add(&p->all, (Str){hashed, (size_t)(bytes.p - hashed)});
    return p->state == PACK_FED ? STEP_DONE : STEP_MORE;
}

/* --- contents ------------------------------------------------------------------- */

/* The zlib stream of an object, o->stream bytes of it, into `to`. It inflated
 * well once; the store may give something else now. */
static bool pack__inflate(Pack *p, const PackObject *o, char *to, Err *err)
{
    uint64_t at = o->start + o->head, end = o < p->v + p->n - 1 ? o[1].start : p->at;
    size_t   out = 0;
    Str      in = {0};

    if (!pack__counts(p, o->stream, err))
        return false;
    inflate_again(p->z);
    for (;;) {
        size_t n;
        if (in.n == 0) {
            size_t take = end - at < PACK_BLOCK ? (size_t)(end - at) : PACK_BLOCK;
            if (!p->store.get(p->store.in.ctx, at, p->input, take, err))
                return false;
            in = (Str){p->input, take};
            at += take;
        }
        /* Room for one byte too many, so that the end of the stream is always seen. */
        bool  last = out == o->stream;
        char  spare;
        Step  step = inflate_next(p->z, &in, last ? &spare : to + out, last ? 1 : o->stream - out, &n, err);
        if (step == STEP_ERR || (last && n) || (step == STEP_MORE && in.n == 0 && at == end))
            return pack__bad(err, "an object that changed");
        out += n;
        if (step == STEP_DONE)
            return out == o->stream || pack__bad(err, "an object that changed");
    }
}

/* A delta's bytes, to be freed; its instructions in *rest, its result's size. */
static bool pack__delta(Pack *p, const PackObject *o, const PackObject *base, char **delta, Str *rest, uint64_t *size,
                        Err *err)
{
    uint64_t from;

    *delta = mem_new(o->stream);
    *rest = (Str){*delta, o->stream};
    if (pack__inflate(p, o, *delta, err) && delta_sizes(rest, &from, size, err) &&
        (from == base->size || pack__bad(err, "a delta of another content")))
        return true;
    mem_free(*delta);
    *delta = NULL;
    return false;
}

/* The content of the delta o, made of its base's. */
static bool pack__apply(Pack *p, const PackObject *o, const PackObject *base, const char *content, char *out, Err *err)
{
    char    *delta;
    Str      rest;
    uint64_t size;
    bool     ok = pack__delta(p, o, base, &delta, &rest, &size, err);

    if (!ok)
        return false;
    ok = size == o->size ? pack__counts(p, size, err) && delta_apply((Str){content, base->size}, rest, out, o->size, err)
                         : pack__bad(err, "an object that changed");
    mem_free(delta);
    return ok;
}

/* Up to the object that is no delta, then down again. */
bool pack_read(Pack *p, const PackObject *o, char *out, Err *err)
{
    uint32_t *chain = NULL;
    size_t    depth = 0, cap = 0;
    char     *content = NULL;
    bool      ok;

    if (o->kind < PACK_OFS)
        return pack__inflate(p, o, out, err);
    for (const PackObject *at = o; at->kind >= PACK_OFS; at = &p->v[at->base - 1]) {
        if (depth == cap) {
            cap = cap ? 2 * cap : 64;
            chain = mem_grow(chain, cap, sizeof *chain);
        }
        chain[depth++] = (uint32_t)(at - p->v);
    }
    const PackObject *base = &p->v[p->v[chain[depth - 1]].base - 1];
    content = mem_new(base->size);
    ok = pack__inflate(p, base, content, err);
    while (ok && depth) {
        const PackObject *now = &p->v[chain[--depth]];
        char             *made = depth ? mem_new(now->size) : out;
        ok = pack__apply(p, now, base, content, made, err);
        mem_free(content);
        content = depth ? made : NULL;
        base = now;
    }
    mem_free(content);
    mem_free(chain);
    return ok;
}

/* --- resolving ------------------------------------------------------------------ */

static int pack__by_base(const void *a, const void *b)
{
    return object_id_cmp(&((const PackRef *)a)->base, &((const PackRef *)b)->base);
}

static int pack__by_id(const void *a, const void *b)
{
    return object_id_cmp(&(*(const PackObject *const *)a)->id, &(*(const PackObject *const *)b)->id);
}

/* The ref-deltas on an object: [*from, *to). */
static void pack__refs_on(const Pack *p, const ObjectId *base, size_t *from, size_t *to)
{
    size_t low = 0, high = p->refs_n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (object_id_cmp(&p->refs[middle].base, base) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (*from = *to = low; *to < p->refs_n && object_id_cmp(&p->refs[*to].base, base) == 0; ++*to)
        continue;
}

static void pack__pop(Pack *p)
{
    PackFrame *f = &p->frames[--p->depth];

    if (f->content)
        p->kept -= p->v[f->object].size;
    mem_free(f->content);
}

/* Its content is kept as long as there is room, and that of the latest frame always. */
static void pack__keep(Pack *p, PackFrame *f, char *content)
{
    f->content = content;
    p->kept += p->v[f->object].size;
    for (size_t i = 0; p->kept > LIMIT_PACK_KEEP && &p->frames[i] < f; i++) {
        if (p->frames[i].content)
            p->kept -= p->v[p->frames[i].object].size;
        mem_free(p->frames[i].content);
        p->frames[i].content = NULL;
    }
}

/* An object whose id is known becomes the latest frame, if a delta stands on it. */
static bool pack__push(Pack *p, uint32_t object, char *content, Err *err)
{
    PackFrame f = {.object = object, .child = p->v[object].child};

    pack__refs_on(p, &p->v[object].id, &f.ref, &f.ref_end);
    if (!f.child && f.ref == f.ref_end) {
        mem_free(content);
        return true;
    }
    if (p->depth > LIMIT_PACK_CHAIN) {
        mem_free(content);
        return err_set(err, ERR_LIMIT, E8010, "a git pack with a chain of more than %d deltas", LIMIT_PACK_CHAIN);
    }
    if (p->depth == p->frames_cap) {
        p->frames_cap = p->frames_cap ? 2 * p->frames_cap : 16;
        p->frames = mem_grow(p->frames, p->frames_cap, sizeof *p->frames);
    }
    p->frames[p->depth++] = f;
    if (content)
        pack__keep(p, &p->frames[p->depth - 1], content);
    return true;
}

/* The content of the latest frame, made again where it was let go: from the
 * nearest frame below that has its own, or from the object that is no delta. */
static bool pack__content(Pack *p, Err *err)
{
    PackFrame  *f = &p->frames[p->depth - 1], *at = f;

    if (f->content)
        return true;
    while (at > p->frames && !at->content)
        at--;
    if (!at->content) {
        const PackObject *o = &p->v[at->object];
        char             *content = mem_new(o->size);
        if (!pack__inflate(p, o, content, err)) {
            mem_free(content);
            return false;
        }
        pack__keep(p, at, content);
    }
    for (; at < f; at++) {
        const PackObject *o = &p->v[at[1].object];
        char             *made = mem_new(o->size);
        if (!pack__apply(p, o, &p->v[at->object], at->content, made, err)) {
            mem_free(made);
            return false;
        }
        pack__keep(p, at + 1, made);
    }
    return true;
}

/* The next delta on the latest frame that has no id yet; 0: there is none. */
static uint32_t pack__child(Pack *p)
{
    PackFrame *f = &p->frames[p->depth - 1];

    while (f->child) {
        uint32_t child = f->child;
        f->child = p->v[child - 1].next;
        if (!p->v[child - 1].type)
            return child;
    }
    while (f->ref < f->ref_end) {
        uint32_t child = p->refs[f->ref++].object + 1;
        if (!p->v[child - 1].type)
            return child;
    }
    return 0;
}

/* One delta on the latest frame: its content, its id. */
static bool pack__resolve(Pack *p, uint32_t object, Err *err)
{
    PackObject       *o = &p->v[object];
    uint32_t          parent = p->frames[p->depth - 1].object;
    const PackObject *base = &p->v[parent];
    char             *delta, *content = NULL;
    Str               rest;
    uint64_t          size;
    bool              ok;

    if (base->size > LIMIT_PACK_OBJECT || o->stream > LIMIT_PACK_OBJECT) {
        p->too_large = true;
        return true;
    }
    if (!pack__content(p, err) || !pack__delta(p, o, base, &delta, &rest, &size, err))
        return false;
    if (size > LIMIT_PACK_OBJECT) {
        p->too_large = true;
        mem_free(delta);
        return true;
    }
    content = mem_new((size_t)size);
    ok = pack__counts(p, size, err) &&
         delta_apply((Str){p->frames[p->depth - 1].content, base->size}, rest, content, (size_t)size, err);
    mem_free(delta);
    if (!ok) {
        mem_free(content);
        return false;
    }
    o->size = (uint32_t)size;
    o->base = parent + 1;
    o->type = base->type;
    object_id_of(p->hash, (ObjectType)o->type, (Str){content, o->size}, &o->id);
    return pack__push(p, object, content, err);
}

/* Every object that has an id, in order. False: some have none, and not for their size. */
static bool pack__index(Pack *p, Err *err)
{
    p->by_id = mem_grow(NULL, p->n ? p->n : 1, sizeof *p->by_id);
    for (uint32_t i = 0; i < p->n; i++)
        if (p->v[i].type)
            p->by_id[p->ids++] = &p->v[i];
    if (p->ids < p->n && !p->too_large)
        return pack__bad(err, "a delta without its base");
    qsort(p->by_id, p->ids, sizeof *p->by_id, pack__by_id);
    return true;
}

Step pack_resolve(Pack *p, Err *err)
{
    bool ok = true;

    if (p->state == PACK_READY)
        return STEP_DONE;
    if (p->state != PACK_FED)
        BUG("a pack that is not all there");
    if (!p->sorted && p->refs_n)
        qsort(p->refs, p->refs_n, sizeof *p->refs, pack__by_base);
    p->sorted = true;
    while (ok) {
        uint32_t child = 0;
        while (p->depth && !(child = pack__child(p)))
            pack__pop(p);
        if (p->depth) {
            ok = pack__resolve(p, child - 1, err);
            break;
        }
        while (p->root < p->n && p->v[p->root].kind >= PACK_OFS)
            p->root++;
        if (p->root == p->n) {
            ok = pack__index(p, err);
            p->state = PACK_READY;
            p->inflated = 0;        /* reading has as much again */
            if (ok)
                return STEP_DONE;
            break;
        }
        ok = pack__push(p, p->root++, NULL, err);
    }
    if (ok)
        return STEP_MORE;
    p->state = PACK_BAD;
    return STEP_ERR;
}

const PackObject *pack_find(const Pack *p, const ObjectId *id)
{
    size_t low = 0, high = p->ids;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int    c = object_id_cmp(&p->by_id[middle]->id, id);
        if (c == 0)
            return p->by_id[middle];
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
