#include "agent/query.h"

#include "base/num.h"
#include "base/str.h"

#include <stdlib.h>

Str query_path(Str target)
{
    return (Str){target.p, str_find(target, '?')};
}

Str query_text(Str target)
{
    size_t n = str_find(target, '?');

    return n == target.n ? (Str){0} : str_from_to(target, n + 1, target.n);
}

bool query_decode(Str in, bool form, Arena *a, Str *out)
{
    char  *to = arena_alloc(a, in.n + 1);
    size_t n = 0;

    for (; in.n; str_skip(&in, 1)) {
        uint64_t byte = (unsigned char)in.p[0];
        if (byte == '%') {
            if (in.n < 3 || !num_hex((Str){in.p + 1, 2}, &byte))
                return false;
            str_skip(&in, 2);
        } else if (byte == '+' && form) {
            byte = ' ';
        }
        to[n++] = (char)byte;
    }
    *out = (Str){to, n};
    return true;
}

bool query_next(Str *rest, Arena *a, Str *name, Str *value)
{
    Str pair, key;

    while (rest->n && str_cut(rest, '&', &pair)) {
        size_t n = str_find(pair, '=');
        key = (Str){pair.p, n};
        str_skip(&pair, n < pair.n ? n + 1 : n);
        Arena one = *a;
        if (key.n && query_decode(key, true, &one, name) && query_decode(pair, true, &one, value)) {
            *a = one;
            return true;
        }
    }
    return false;
}

bool query_get(Str target, const char *name, Arena *a, Str *value)
{
    Str rest = query_text(target), key, found;

    /* Thousands of other names may be there: no more than one is kept. */
    for (Arena one = *a; query_next(&rest, &one, &key, &found); one = *a)
        if (str_eq(key, str_from(name))) {
            *value = found;
            *a = one;
            return true;
        }
    return false;
}

const char *query_file(Str path, Arena *a)
{
    const char *home = getenv("HOME");

    if (path.n == 0 || str_has(path, '\0'))
        return NULL;
    if (path.p[0] == '~' && (path.n == 1 || path.p[1] == '/')) {
        str_skip(&path, 1);
        return arena_fmt(a, "%s%.*s", home ? home : "/", (int)path.n, path.p).p;
    }
    return arena_cstr(a, path);
}

Str query_base(const char *path)
{
    Str s = str_from(path);

    while (s.n > 1 && s.p[s.n - 1] == '/')
        s.n--;
    size_t at = s.n;
    while (at > 0 && s.p[at - 1] != '/')
        at--;
    return at == s.n ? s : str_from_to(s, at, s.n);
}
