#include "data/gzip.h"

#if !defined(ABX_TLS_NONE) && !defined(ABX_CA_NONE)

#include <zlib.h>

enum { GZIP_PIECE = 64 << 10, GZIP_WRAPPED = 16 + 15 };     /* a gzip member, any window */

static bool gzip__all(z_stream *z, Buf *out, Err *err)
{
    for (;;) {
        size_t piece = out->limit - out->n < GZIP_PIECE ? out->limit - out->n : GZIP_PIECE;
        char   over;
        char  *to = piece ? buf_room(out, piece) : &over;
        z->next_out = (unsigned char *)to;
        z->avail_out = piece ? (unsigned)piece : 1;
        int got = inflate(z, Z_NO_FLUSH);
        if (piece)
            buf_grew(out, piece - z->avail_out);
        else if (z->avail_out == 0)
            return err_set(err, ERR_LIMIT, E0000, "more than %zu bytes when inflated", out->limit);
        if (got == Z_STREAM_END)
            return z->avail_in == 0 || err_set(err, ERR_INPUT, E0000, "something follows the gzip data");
        if (got == Z_MEM_ERROR)
            base_no_memory();
        if (got == Z_BUF_ERROR || (got == Z_OK && z->avail_in == 0 && z->avail_out > 0))
            return err_set(err, ERR_INPUT, E0000, "the gzip data is cut short");
        if (got != Z_OK)
            return err_set(err, ERR_INPUT, E0000, "the gzip data is damaged");
    }
}

bool gzip_inflate(Str member, Buf *out, Err *err)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)member.p, .avail_in = (unsigned)member.n};

    if (member.n > UINT32_MAX)
        return err_set(err, ERR_LIMIT, E0000, "more than 4 GiB of gzip data");
    if (inflateInit2(&z, GZIP_WRAPPED) != Z_OK)
        base_no_memory();
    bool ok = gzip__all(&z, out, err);
    inflateEnd(&z);
    return ok;
}

#endif
