#include "base/hex.h"

#include "base/num.h"

void hex_write(Str bytes, char *to)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < bytes.n; i++) {
        to[2 * i] = digits[(unsigned char)bytes.p[i] >> 4];
        to[2 * i + 1] = digits[bytes.p[i] & 15];
    }
}

Str hex_encode(Arena *a, Str bytes)
{
    char *p = arena_alloc(a, 2 * bytes.n + 1);

    hex_write(bytes, p);
    return (Str){p, 2 * bytes.n};
}

bool hex_decode(Arena *a, Str text, Str *out)
{
    Arena    trial = *a;        /* becomes *a once all of it was good */
    uint64_t v;

    if (text.n % 2 != 0)
        return false;
    char *p = arena_alloc(&trial, text.n / 2 + 1);
    for (size_t i = 0; i < text.n; i += 2) {
        if (!num_hex((Str){text.p + i, 2}, &v))
            return false;
        p[i / 2] = (char)v;
    }
    *a = trial;
    *out = (Str){p, text.n / 2};
    return true;
}
