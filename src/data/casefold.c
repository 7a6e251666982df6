#include "data/casefold.h"

#include "base/utf8.h"
#include "data/casefold_table.h"

typedef struct CasefoldRun { uint32_t first, last; int32_t step, delta; } CasefoldRun;

static const CasefoldRun casefold__runs[] = { CASEFOLD_RUNS };
static const struct { uint16_t from, to[CASEFOLD_MOST]; } casefold__several[] = { CASEFOLD_SEVERAL };

/* The last run that begins at c or before, or NULL. */
static const CasefoldRun *casefold__run(uint32_t c)
{
    size_t low = 0, high = COUNT_OF(casefold__runs);

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (casefold__runs[middle].first <= c)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &casefold__runs[low - 1] : NULL;
}

size_t casefold_char(uint32_t c, uint32_t out[static CASEFOLD_MOST])
{
    const CasefoldRun *run = casefold__run(c);

    out[0] = c;
    if (run && c <= run->last && (c - run->first) % (uint32_t)run->step == 0) {
        out[0] = (uint32_t)((int32_t)c + run->delta);
        return 1;
    }
    for (size_t i = 0; i < COUNT_OF(casefold__several) && casefold__several[i].from <= c; i++) {
        if (casefold__several[i].from != c)
            continue;
        size_t n = 0;
        while (n < CASEFOLD_MOST && casefold__several[i].to[n]) {
            out[n] = casefold__several[i].to[n];
            n++;
        }
        return n;
    }
    return 1;
}

void casefold_add(Buf *to, Str s)
{
    while (s.n) {
        uint32_t c, out[CASEFOLD_MOST];
        if ((unsigned char)s.p[0] < 0x80) {
            buf_addc(to, s.p[0] >= 'A' && s.p[0] <= 'Z' ? (char)(s.p[0] | 0x20) : s.p[0]);
            str_skip(&s, 1);
            continue;
        }
        utf8_next(&s, &c);
        size_t n = casefold_char(c, out);
        for (size_t i = 0; i < n; i++) {
            ABX_UNSET char put[4];
            size_t width = utf8_put(put, out[i]);
            buf_add(to, (Str){put, width});
        }
    }
}
