#include "net/header.h"

#include "base/str.h"

Str header_get(Headers h, const char *name)
{
    for (size_t i = 0; i < h.n; i++)
        if (str_eq_nocase(h.v[i].name, str_from(name)))
            return h.v[i].value;
    return (Str){0};
}

size_t header_count(Headers h, const char *name)
{
    size_t count = 0;

    for (size_t i = 0; i < h.n; i++)
        count += str_eq_nocase(h.v[i].name, str_from(name));
    return count;
}

bool header_has_token(Headers h, const char *name, const char *token)
{
    for (size_t i = 0; i < h.n; i++) {
        if (!str_eq_nocase(h.v[i].name, str_from(name)))
            continue;
        Str rest = h.v[i].value, item;
        while (str_cut(&rest, ',', &item))
            if (str_eq_nocase(str_trim(item), str_from(token)))
                return true;
    }
    return false;
}

bool header_name_ok(Str name)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i], lower = (char)(c | 0x20);
        if (!((c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || memchr(marks, c, sizeof marks - 1)))
            return false;
    }
    return name.n > 0;
}

static bool header__blank(char c)
{
    return c == ' ' || c == '\t';
}

bool header_value_ok(Str value)
{
    if (value.n && (header__blank(value.p[0]) || header__blank(value.p[value.n - 1])))
        return false;
    for (size_t i = 0; i < value.n; i++)
        if (((unsigned char)value.p[i] < 0x20 && value.p[i] != '\t') || value.p[i] == 0x7f)
            return false;
    return true;
}
