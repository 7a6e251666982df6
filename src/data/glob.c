#include "data/glob.h"

#include "base/utf8.h"

/* One character off the front of s. A byte that is none becomes a value above
 * all characters, so that it matches itself and `?` and no other byte. */
static uint32_t glob__next(Str *s)
{
    Str      before = *s;
    uint32_t c;

    if (utf8_next(s, &c))
        return c;
    *s = before;
    str_skip(s, 1);
    return 0x110000 + (unsigned char)before.p[0];
}

/* One character of a set, where a backslash takes the next as it is. */
static uint32_t glob__member(Str *p)
{
    if (p->n > 1 && p->p[0] == '\\')
        str_skip(p, 1);
    return glob__next(p);
}

/* Read a set whose `[` was taken; true when a `]` closes it: then *p is behind
 * it and *in says whether c is meant. A `]` in first place is a member. */
static bool glob__set(Str *p, uint32_t c, bool *in)
{
    Str  at = *p;
    bool not = at.n && (at.p[0] == '!' || at.p[0] == '^'), found = false;

    if (not)
        str_skip(&at, 1);
    for (bool first = true; at.n; first = false) {
        if (at.p[0] == ']' && !first) {
            str_skip(&at, 1);
            *p = at;
            *in = found != not;
            return true;
        }
        uint32_t low = glob__member(&at), high = low;
        if (at.n > 1 && at.p[0] == '-' && at.p[1] != ']') {
            str_skip(&at, 1);
            high = glob__member(&at);
        }
        found |= low <= c && c <= high;
    }
    return false;
}

/* Match one character of *name against the front of *p, taking both. Must not
 * be called at a `*`, nor at the end of either. */
static bool glob__one(Str *p, Str *name)
{
    uint32_t c = glob__next(name);
    bool     in;

    if (p->p[0] == '?') {
        str_skip(p, 1);
        return true;
    }
    if (p->p[0] == '[') {
        Str set = {p->p + 1, p->n - 1};
        if (glob__set(&set, c, &in)) {
            *p = set;
            return in;
        }
    }
    return glob__member(p) == c;
}

bool glob_match(Str pattern, Str name)
{
    Str  p = pattern, n = name, star = {NULL, 0}, from = {NULL, 0};

    /* Only the last `*` is ever tried again, one character further on: what an
     * earlier one could give up, the last can take. */
    for (;;) {
        if (p.n && p.p[0] == '*') {
            str_skip(&p, 1);
            star = p;
            from = n;
            continue;
        }
        if (!p.n && !n.n)
            return true;
        if (p.n && n.n && glob__one(&p, &n))
            continue;
        if (!star.p || !from.n)
            return false;
        glob__next(&from);
        p = star;
        n = from;
    }
}

bool glob_name(Str pattern, Str name)
{
    bool dot = pattern.n && pattern.p[pattern.n > 1 && pattern.p[0] == '\\'] == '.';

    return (dot || !name.n || name.p[0] != '.') && glob_match(pattern, name);
}
