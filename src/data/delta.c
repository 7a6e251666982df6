#include "data/delta.h"

static bool delta__bad(Err *err)
{
    return err_set(err, ERR_INPUT, E8010, "a damaged delta");
}

/* Seven bits a byte, low ones first. */
static bool delta__number(Str *in, uint64_t *out)
{
    uint64_t v = 0;

    for (unsigned shift = 0; in->n && shift < 63; shift += 7) {
        unsigned char c = (unsigned char)*in->p;
        str_skip(in, 1);
        v |= (uint64_t)(c & 127) << shift;
        if (c < 128) {
            *out = v;
            return true;
        }
    }
    return false;
}

bool delta_sizes(Str *delta, uint64_t *base, uint64_t *result, Err *err)
{
    return (delta__number(delta, base) && delta__number(delta, result)) || delta__bad(err);
}

/* `bits` say which of up to n bytes of a number follow, low ones first. */
static bool delta__bytes(Str *in, unsigned bits, unsigned n, size_t *out)
{
    *out = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!(bits >> i & 1))
            continue;
        if (in->n == 0)
            return false;
        *out |= (size_t)(unsigned char)*in->p << (8 * i);
        str_skip(in, 1);
    }
    return true;
}

bool delta_apply(Str base, Str delta, char *out, size_t n, Err *err)
{
    while (delta.n) {
        unsigned    op = (unsigned char)*delta.p;
        size_t      from, size = op;
        const char *source;
        str_skip(&delta, 1);
        if (op & 128) {
            if (!delta__bytes(&delta, op, 4, &from) || !delta__bytes(&delta, op >> 4 & 7, 3, &size))
                return delta__bad(err);
            size = size ? size : 65536;
            if (from > base.n || size > base.n - from)
                return delta__bad(err);
            source = base.p + from;
        } else {
            if (op == 0 || op > delta.n)
                return delta__bad(err);
            source = delta.p;
            str_skip(&delta, op);
        }
        if (size > n)
            return delta__bad(err);
        memcpy(out, source, size);
        out += size;
        n -= size;
    }
    return n == 0 || delta__bad(err);
}
