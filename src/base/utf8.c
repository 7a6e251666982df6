#include "base/utf8.h"

#include "base/str.h"

/* Unicode table 3-7: what may follow a first byte. */
static const struct { unsigned char first, last, low, high, more; } utf8__rows[] = {
    {0xc2, 0xdf, 0x80, 0xbf, 1},
    {0xe0, 0xe0, 0xa0, 0xbf, 2}, {0xe1, 0xec, 0x80, 0xbf, 2}, {0xed, 0xed, 0x80, 0x9f, 2}, {0xee, 0xef, 0x80, 0xbf, 2},
    {0xf0, 0xf0, 0x90, 0xbf, 3}, {0xf1, 0xf3, 0x80, 0xbf, 3}, {0xf4, 0xf4, 0x80, 0x8f, 3},
};

bool utf8_next(Str *s, uint32_t *c)
{
    unsigned char first = (unsigned char)s->p[0];
    size_t        row = 0, i;

    if (first < 0x80) {
        *c = first;
        str_skip(s, 1);
        return true;
    }
    *c = 0xfffd;
    while (row < COUNT_OF(utf8__rows) && (first < utf8__rows[row].first || first > utf8__rows[row].last))
        row++;
    if (row == COUNT_OF(utf8__rows)) {
        str_skip(s, 1);
        return false;
    }
    size_t   more = utf8__rows[row].more;
    uint32_t value = first & (0x3fu >> more);
    for (i = 1; i <= more && i < s->n; i++) {
        unsigned char b = (unsigned char)s->p[i];
        if (b < (i == 1 ? utf8__rows[row].low : 0x80) || b > (i == 1 ? utf8__rows[row].high : 0xbf))
            break;
        value = value << 6 | (b & 0x3fu);
    }
    str_skip(s, i);
    if (i <= more)
        return false;
    *c = value;
    return true;
}

size_t utf8_good(Str s)
{
    Str      rest = s;
    uint32_t c;

    while (rest.n) {
        uint64_t eight;
        if (rest.n >= sizeof eight) {
            memcpy(&eight, rest.p, sizeof eight);
            if ((eight & 0x8080808080808080u) == 0) {
                str_skip(&rest, sizeof eight);
                continue;
            }
        }
        size_t at = s.n - rest.n;
        if (!utf8_next(&rest, &c))
            return at;
    }
    return s.n;
}

bool utf8_valid(Str s)
{
    return utf8_good(s) == s.n;
}

bool utf8_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

Str utf8_trim(Str s)
{
    Str      rest = s;
    size_t   from = s.n, to = s.n;
    uint32_t c;

    while (rest.n) {
        size_t at = s.n - rest.n;
        if (!utf8_next(&rest, &c) || !utf8_space(c)) {
            if (from == s.n)
                from = at;
            to = s.n - rest.n;
        }
    }
    return str_from_to(s, from, to);
}

size_t utf8_put(char out[static 4], uint32_t c)
{
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        c = 0xfffd;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    for (size_t i = more; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xff00u >> (more + 1) & 0xff) | c);
    return more + 1;
}

/* The next piece of *s that can be copied as it is; empty when *s begins with
 * something ill-formed, which is taken off then. */
static Str utf8__piece(Str *s)
{
    Str      good = {s->p, utf8_good(*s)};
    uint32_t c;

    if (good.n)
        str_skip(s, good.n);
    else
        utf8_next(s, &c);
    return good;
}

void utf8_add(Buf *to, Str s)
{
    while (s.n) {
        Str piece = utf8__piece(&s);
        buf_add(to, piece.n ? piece : STR("\xef\xbf\xbd"));
    }
}

Str utf8_clean(Arena *a, Str s)
{
    Str    rest = s, piece;
    size_t n = 0;

    while (rest.n)
        n += (piece = utf8__piece(&rest)).n ? piece.n : 3;
    char *p = arena_alloc(a, n + 1);
    Str   out = {p, n};
    while (s.n) {
        piece = utf8__piece(&s);
        if (piece.n == 0)
            piece = STR("\xef\xbf\xbd");
        memcpy(p, piece.p, piece.n);
        p += piece.n;
    }
    return out;
}
