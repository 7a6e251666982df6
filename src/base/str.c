#include "base/str.h"

Str str_from(const char *cstr)
{
    return (Str){cstr, cstr ? strlen(cstr) : 0};
}

bool str_starts(Str s, Str head)
{
    return s.n >= head.n && str_eq((Str){s.p, head.n}, head);
}

bool str_ends(Str s, Str tail)
{
    return s.n >= tail.n && str_eq((Str){s.p + (s.n - tail.n), tail.n}, tail);
}

static char str__fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

bool str_eq_nocase(Str a, Str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (str__fold(a.p[i]) != str__fold(b.p[i]))
            return false;
    return true;
}

size_t str_find(Str s, char c)
{
    const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

    return at ? (size_t)(at - s.p) : s.n;
}

bool str_has(Str s, char c)
{
    return str_find(s, c) < s.n;
}

Str str_from_to(Str s, size_t from, size_t to)
{
    str_skip(&s, from);
    s.n = to - from;
    return s;
}

static bool str__blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

Str str_trim(Str s)
{
    while (s.n && str__blank(s.p[0]))
        str_skip(&s, 1);
    while (s.n && str__blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

bool str_cut(Str *rest, char c, Str *head)
{
    if (!rest->p)
        return false;
    size_t at = str_find(*rest, c);
    *head = (Str){rest->p, at};
    if (at < rest->n)
        str_skip(rest, at + 1);
    else
        *rest = (Str){0};
    return true;
}

int str_order(Str a, Str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int    d = n ? memcmp(a.p, b.p, n) : 0;

    return d ? d : (a.n > b.n) - (a.n < b.n);
}

int str_by_bytes(const void *a, const void *b)
{
    return str_order(*(const Str *)a, *(const Str *)b);
}

bool str_has_control(Str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return true;
    return false;
}
