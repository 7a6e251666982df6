#include "data/inflate.h"

#include "base/mem.h"
#include <limits.h>
#include <zlib.h>

enum { INFLATE__PIECE = 64 << 10, INFLATE__GZIP_BITS = 16 + 15, INFLATE__ZLIB_BITS = 15 };   /* any window */

typedef enum InflateState {
    INFLATE_FIRST,      /* nothing came yet */
    INFLATE_INSIDE,     /* in the middle of a stream */
    INFLATE_BETWEEN,    /* behind one; GZIP: another may follow */
    INFLATE_FILLED,     /* zero bytes came behind it, and nothing else may */
    INFLATE_BAD,
} InflateState;

struct Inflate {
    z_stream     z;
    InflateKind  kind;
    InflateState state;
};

Inflate *inflate_open(InflateKind kind)
{
    Inflate *z = mem_new(sizeof *z);

    z->kind = kind;
    if (inflateInit2(&z->z, kind == INFLATE_ZLIB ? INFLATE__ZLIB_BITS : INFLATE__GZIP_BITS) != Z_OK)
        base_no_memory();
    return z;
}

void inflate_again(Inflate *z)
{
    if (inflateReset(&z->z) != Z_OK)
        BUG("a stream of zlib is broken");
    z->state = INFLATE_FIRST;
}

void inflate_close(Inflate *z)
{
    if (!z)
        return;
    inflateEnd(&z->z);
    mem_free(z);
}

bool inflate_whole(const Inflate *z)
{
    return z->state == INFLATE_BETWEEN || z->state == INFLATE_FILLED;
}

static Step inflate__bad(Inflate *z, const char *what, Err *err)
{
    z->state = INFLATE_BAD;
    err_set(err, ERR_INPUT, E0000, "%s", what);
    return STEP_ERR;
}

/* Behind a member. True: another one begins at *in. */
static bool inflate__another(Inflate *z, Str *in)
{
    while (in->n && *in->p == 0) {
        z->state = INFLATE_FILLED;
        str_skip(in, 1);
    }
    if (!in->n || z->state == INFLATE_FILLED)
        return false;
    inflate_again(z);
    return true;
}

Step inflate_next(Inflate *z, Str *in, char *p, size_t cap, size_t *n, Err *err)
{
    *n = 0;
    if (z->state == INFLATE_BAD)
        return inflate__bad(z, "the compressed data is damaged", err);
    while (*n < cap) {
        if (inflate_whole(z)) {
            if (z->kind != INFLATE_GZIP)
                return STEP_DONE;
            if (!inflate__another(z, in))
                return in->n ? inflate__bad(z, "something follows the compressed data", err) : STEP_MORE;
        }
        z->z.next_in = (unsigned char *)(uintptr_t)in->p;
        z->z.avail_in = in->n < INT_MAX ? (unsigned)in->n : INT_MAX;
        z->z.next_out = (unsigned char *)p + *n;
        z->z.avail_out = cap - *n < INT_MAX ? (unsigned)(cap - *n) : INT_MAX;
        size_t had = z->z.avail_in, room = z->z.avail_out;
        int got = inflate(&z->z, Z_NO_FLUSH);
        size_t took = had - z->z.avail_in, gave = room - z->z.avail_out;
        str_skip(in, took);
        *n += gave;
        if (took)
            z->state = INFLATE_INSIDE;
        if (got == Z_STREAM_END)
            z->state = INFLATE_BETWEEN;
        else if (got == Z_MEM_ERROR)
            base_no_memory();
        else if (got != Z_OK && got != Z_BUF_ERROR)
            return inflate__bad(z, "the compressed data is damaged", err);
        else if (!took && !gave)
            return STEP_MORE;
    }
    return z->kind != INFLATE_GZIP && inflate_whole(z) ? STEP_DONE : STEP_MORE;
}

static bool inflate__all(Inflate *z, Str in, Buf *out, Err *err)
{
    for (Step step = STEP_MORE;;) {
        size_t piece = out->limit - out->n < INFLATE__PIECE ? out->limit - out->n : INFLATE__PIECE, n;
        char   over;
        char  *to = piece ? buf_room(out, piece) : &over;
        step = inflate_next(z, &in, to, piece ? piece : 1, &n, err);
        if (piece)
            buf_grew(out, n);
        else if (n)
            return err_set(err, ERR_LIMIT, E0000, "more than %zu bytes when inflated", out->limit);
        if (step == STEP_ERR)
            return false;
        if (step == STEP_DONE)
            return !in.n || err_set(err, ERR_INPUT, E0000, "something follows the compressed data");
        if (n < (piece ? piece : 1))
            return err_set(err, ERR_INPUT, E0000, "the compressed data is cut short");
    }
}

bool inflate_gzip(Str member, Buf *out, Err *err)
{
    Inflate *z = inflate_open(INFLATE_MEMBER);
    bool     ok = inflate__all(z, member, out, err);

    inflate_close(z);
    return ok;
}
