#include "host/unpack.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/inflate.h"

enum { UNPACK__MAGIC = 6 };

struct Unpack {
    Source     from;
    bool       known;           /* the first bytes were looked at */
    bool       ended;           /* of `from` */
    Inflate   *z;               /* NULL: not compressed */
    TarReader *tar;
    char      *packed;          /* LIMIT_COPY_BLOCK bytes each; `packed` as it came, */
    char      *room;            /* and inflated */
    Str        in;              /* what of `packed` was not inflated yet */
    Str        data;            /* what of the archive was not looked at yet */
    int64_t    packed_total, total;
    int64_t    left;            /* of the entry's content */
    Str        piece;           /* of it, not given out yet */
};

Unpack *unpack_open(Source bytes)
{
    Unpack *u = mem_new(sizeof *u);

    u->from = bytes;
    u->packed = mem_new(LIMIT_COPY_BLOCK);
    u->room = mem_new(LIMIT_COPY_BLOCK);
    u->tar = tar_open();
    return u;
}

void unpack_close(Unpack *u)
{
    if (!u)
        return;
    inflate_close(u->z);
    tar_close(u->tar);
    mem_free(u->packed);
    mem_free(u->room);
    mem_free(u);
}

static bool unpack__bad(Err *err)
{
    err->code = E8010;
    return false;
}

static const struct { Str magic; const char *name; } unpack__others[] = {
    {{"BZh", 3}, "bzip2"}, {{"\xfd" "7zXZ\0", 6}, "xz"}, {{"\x28\xb5\x2f\xfd", 4}, "Zstandard"}, {{"LZIP", 4}, "lzip"},
    {{"\x5d\0\0", 3}, "LZMA"}, {{"\x1f\x9d", 2}, "compress"},
};

static bool unpack__look(Unpack *u, Err *err)
{
    u->known = true;
    for (size_t i = 0; i < COUNT_OF(unpack__others); i++)
        if (str_starts(u->in, unpack__others[i].magic)) {
            err_set(err, ERR_INPUT, E8010, "the archive is compressed by %s", unpack__others[i].name);
            return err_hint(err, "Compress it by gzip, or not at all.");
        }
    if (str_starts(u->in, STR("PK\3\4")) || str_starts(u->in, STR("PK\5\6"))) {
        err_set(err, ERR_INPUT, E8010, "this is a zip archive");
        return err_hint(err, "Make it a tar archive: .tar, .tar.gz or .tgz.");
    }
    if (str_starts(u->in, STR("\x1f\x8b")))
        u->z = inflate_open(INFLATE_GZIP);
    return true;
}

/* More bytes as they come, behind what is left of them (at the very beginning only). */
static bool unpack__fetch(Unpack *u, Err *err)
{
    size_t n;

    if (u->in.n)
        memmove(u->packed, u->in.p, u->in.n);
    if (!u->from.read(u->from.ctx, u->packed + u->in.n, LIMIT_COPY_BLOCK - u->in.n, &n, err))
        return false;
    u->in = (Str){u->packed, u->in.n + n};
    u->ended = n == 0;
    u->packed_total += (int64_t)n;
    if (u->z && u->packed_total > LIMIT_ARCHIVE)
        return err_set(err, ERR_LIMIT, E8010, "the compressed archive has more than 50 MiB");
    return true;
}

/* The first bytes, enough to tell what it is. */
static bool unpack__begin(Unpack *u, Err *err)
{
    while (!u->ended && u->in.n < UNPACK__MAGIC)
        if (!unpack__fetch(u, err))
            return false;
    return unpack__look(u, err);
}

/* More of the archive into u->data; nothing: it is at its end. */
static bool unpack__fill(Unpack *u, Err *err)
{
    size_t n = 0;

    if (!u->known && !unpack__begin(u, err))
        return false;
    while (u->data.n == 0) {
        if (!u->z) {
            u->data = u->in;
            u->in.n = 0;
        } else {
            if (inflate_next(u->z, &u->in, u->room, LIMIT_COPY_BLOCK, &n, err) == STEP_ERR)
                return unpack__bad(err);
            u->data = (Str){u->room, n};
        }
        u->total += (int64_t)u->data.n;
        if (u->total > LIMIT_ARCHIVE_BYTES)
            return err_set(err, ERR_LIMIT, E8010, "the archive has more than 512 MiB when it is unpacked");
        if (u->data.n)
            break;
        if (u->ended)
            return !u->z || inflate_whole(u->z) || err_set(err, ERR_INPUT, E8010, "the compressed archive is cut short");
        if (!unpack__fetch(u, err))
            return false;
    }
    return true;
}

/* The next thing of the archive. */
static Step unpack__event(Unpack *u, TarEvent *ev, Err *err)
{
    for (;;) {
        Step step = tar_next(u->tar, &u->data, ev, err);
        if (step == STEP_ERR)
            unpack__bad(err);
        if (step != STEP_MORE)
            return step;
        if (!unpack__fill(u, err))
            return STEP_ERR;
        if (u->data.n == 0)
            return tar_ended(u->tar, err) ? STEP_MORE : (unpack__bad(err), STEP_ERR);
    }
}

bool unpack_read(Unpack *u, char *p, size_t cap, size_t *n, Err *err)
{
    ABX_UNSET TarEvent ev;

    *n = 0;
    if (u->left == 0)
        return true;
    if (u->piece.n == 0) {
        Step step = unpack__event(u, &ev, err);
        if (step == STEP_ERR)
            return false;
        if (step != STEP_DONE || ev.kind != TAR_BYTES)
            BUG("an archive with less content than it promised");
        u->piece = ev.bytes;
    }
    *n = cap < u->piece.n ? cap : u->piece.n;
    memcpy(p, u->piece.p, *n);
    str_skip(&u->piece, *n);
    u->left -= (int64_t)*n;
    return true;
}

Step unpack_next(Unpack *u, TarEvent *out, Err *err)
{
    Step step;

    u->piece = (Str){0};
    do
        step = unpack__event(u, out, err);
    while (step == STEP_DONE && out->kind != TAR_ENTRY);
    u->left = step == STEP_DONE ? out->size : 0;
    return step;
}
