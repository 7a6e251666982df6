#include "base/base64.h"

static const char base64__digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static char *base64__encode(char *to, Str bytes)
{
    for (size_t i = 0; i < bytes.n; i += 3) {
        size_t   have = bytes.n - i < 3 ? bytes.n - i : 3;
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (k < have ? (unsigned char)bytes.p[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            *to++ = k <= have ? base64__digits[v >> (18 - 6 * k) & 63] : '=';
    }
    return to;
}

Str base64_encode(Arena *a, Str bytes)
{
    char *p = arena_alloc(a, (bytes.n + 2) / 3 * 4 + 1);

    return (Str){p, (size_t)(base64__encode(p, bytes) - p)};
}

void base64_put(Buf *to, Str bytes)
{
    size_t n = (bytes.n + 2) / 3 * 4;
    char  *room = buf_room(to, n);

    if (room) {
        base64__encode(room, bytes);
        buf_grew(to, n);
    }
}

/* From '+' to 'z'. A table, because bundles of certificates are read through it
 * before each first https request. */
static const signed char base64__values[] = {
    62, -1, -1, -1, 63, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, -1, -1, -1, -1, -1, -1, -1, 0,  1,  2,  3,  4,
    5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, -1, -1, -1, -1, -1, -1,
    26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51,
};

static int base64__value(char c)
{
    unsigned at = (unsigned)(unsigned char)c - '+';

    return at < sizeof base64__values ? base64__values[at] : -1;
}

bool base64_decode_to(char *to, Str text, size_t *n)
{
    size_t   pad = 0;
    uint32_t v = 0;
    char    *from = to;

    while (pad < 2 && pad < text.n && text.p[text.n - 1 - pad] == '=')
        pad++;
    if (text.n % 4 != 0)
        return false;
    size_t digits = text.n - pad;
    for (size_t i = 0; i < digits; i++) {
        int d = base64__value(text.p[i]);
        if (d < 0)
            return false;
        v = v << 6 | (uint32_t)d;
        if (i % 4 > 0)
            *to++ = (char)(v >> (6 - 2 * (i % 4)));
    }
    *n = (size_t)(to - from);
    return !(pad == 1 && (v & 3)) && !(pad == 2 && (v & 15));
}

bool base64_decode(Arena *a, Str text, Str *out)
{
    Arena  trial = *a;          /* becomes *a once all of it was good */
    char  *p = arena_alloc(&trial, text.n / 4 * 3 + 1);
    size_t n;

    if (!base64_decode_to(p, text, &n))
        return false;
    p[n] = '\0';
    *a = trial;
    *out = (Str){p, n};
    return true;
}
