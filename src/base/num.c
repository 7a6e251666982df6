#include "base/num.h"

#include "base/str.h"

bool num_u64(Str s, uint64_t *out)
{
    uint64_t v = 0;

    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
            return false;
    }
    *out = v;
    return true;
}

bool num_i64(Str s, int64_t *out)
{
    bool     minus = s.n && s.p[0] == '-';
    uint64_t v;

    if (minus)
        str_skip(&s, 1);
    if (!num_u64(s, &v) || v > (uint64_t)INT64_MAX + minus)
        return false;
    *out = minus ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

static int num__digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool num_hex(Str s, uint64_t *out)
{
    uint64_t v = 0;

    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        int d = num__digit(s.p[i]);
        if (d < 0 || v >> 60)
            return false;
        v = v << 4 | (uint64_t)d;
    }
    *out = v;
    return true;
}

bool num_duration(Str s, int64_t *ms)
{
    static const struct { Str unit; int64_t ms; } units[] = {
        {{"d", 1}, 86400000}, {{"h", 1}, 3600000}, {{"m", 1}, 60000}, {{"s", 1}, 1000}, {{"ms", 2}, 1},
    };
    int64_t total = 0, part;
    size_t  next = 0;       /* the first unit that may still come */

    if (s.n == 0)
        return false;
    while (s.n) {
        size_t digits = 0, i;
        while (digits < s.n && s.p[digits] >= '0' && s.p[digits] <= '9')
            digits++;
        if (!num_i64((Str){s.p, digits}, &part))
            return false;
        str_skip(&s, digits);
        size_t letters = 0;
        while (letters < s.n && (s.p[letters] < '0' || s.p[letters] > '9'))
            letters++;
        Str unit = letters ? (Str){s.p, letters} : STR("s");
        if (letters == 0 && next > 0)
            return false;       /* 1h30: thirty what? */
        for (i = next; i < COUNT_OF(units) && !str_eq(units[i].unit, unit); i++)
            ;
        if (i == COUNT_OF(units) || __builtin_mul_overflow(part, units[i].ms, &part) ||
            __builtin_add_overflow(total, part, &total))
            return false;
        next = i + 1;
        str_skip(&s, letters);
    }
    *ms = total;
    return true;
}
