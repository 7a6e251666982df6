#include "data/pep440.h"

#include "base/str.h"
#include "base/utf8.h"

static bool pep440__is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char pep440__lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* ---- reading ---- */

static Str pep440__digits(Str *s)
{
    size_t n = 0;

    while (n < s->n && pep440__is_digit(s->p[n]))
        n++;
    Str digits = {s->p, n};
    str_skip(s, n);
    return digits;
}

/* Without leading zeros, so that longer is larger; 0 becomes "". */
static Str pep440__number(Str digits)
{
    while (digits.n && *digits.p == '0')
        str_skip(&digits, 1);
    return digits;
}

static void pep440__separator(Str *s)
{
    if (s->n && str_has(STR("-_."), *s->p))
        str_skip(s, 1);
}

/* One of the words, behind a separator that may be there or not; with the
 * number behind it. The words stand so that none hides a longer one. -1: none. */
static int pep440__word(Str *s, const char *const *words, Str *number)
{
    Str rest = *s;

    pep440__separator(&rest);
    for (int i = 0; words[i]; i++) {
        Str word = str_from(words[i]);
        if (rest.n < word.n || !str_eq_nocase((Str){rest.p, word.n}, word))
            continue;
        str_skip(&rest, word.n);
        pep440__separator(&rest);
        *number = pep440__number(pep440__digits(&rest));
        *s = rest;
        return i;
    }
    return -1;
}

static bool pep440__release(Str *s, Version *v)
{
    Str start = *s, digits = pep440__digits(s);

    if (digits.n && s->n && *s->p == '!') {
        v->epoch = pep440__number(digits);
        str_skip(s, 1);
        start = *s;
        digits = pep440__digits(s);
    }
    if (digits.n == 0)
        return false;
    while (s->n > 1 && s->p[0] == '.' && pep440__is_digit(s->p[1])) {
        str_skip(s, 1);
        pep440__digits(s);
    }
    v->release = (Str){start.p, start.n - s->n};
    return true;
}

static bool pep440__local(Str s)
{
    bool between = true;        /* at the start of a part */

    for (; s.n; str_skip(&s, 1)) {
        char c = pep440__lower(*s.p);
        bool separator = str_has(STR("-_."), c);
        if (separator ? between : !(pep440__is_digit(c) || (c >= 'a' && c <= 'z')))
            return false;
        between = separator;
    }
    return !between;
}

bool pep440_parse(Str text, Version *out)
{
    static const char *const pre[] = {"alpha", "a", "beta", "b", "preview", "pre", "c", "rc", NULL};
    static const char *const post[] = {"post", "rev", "r", NULL}, *const dev[] = {"dev", NULL};
    Version v = {0};
    Str     s = utf8_trim(text);
    int     i;

    if (s.n && pep440__lower(*s.p) == 'v')
        str_skip(&s, 1);
    if (!pep440__release(&s, &v))
        return false;
    i = pep440__word(&s, pre, &v.pre_number);
    v.pre = i < 0 ? '\0' : "aabbcccc"[i];
    v.post = true;
    if (s.n > 1 && s.p[0] == '-' && pep440__is_digit(s.p[1])) {
        str_skip(&s, 1);
        v.post_number = pep440__number(pep440__digits(&s));
    } else {
        v.post = pep440__word(&s, post, &v.post_number) >= 0;
    }
    v.dev = pep440__word(&s, dev, &v.dev_number) >= 0;
    if (s.n && *s.p == '+') {
        str_skip(&s, 1);
        v.local = s;
        if (!pep440__local(s))
            return false;
        s.n = 0;
    }
    if (s.n)
        return false;
    *out = v;
    return true;
}

/* ---- the order ---- */

static int pep440__order(int d)
{
    return (d > 0) - (d < 0);
}

static int pep440__by_number(Str a, Str b)
{
    if (a.n != b.n)
        return a.n < b.n ? -1 : 1;
    return a.n ? pep440__order(memcmp(a.p, b.p, a.n)) : 0;
}

/* Missing parts are zeros. */
static int pep440__by_release(Str a, Str b)
{
    while (a.n || b.n) {
        Str left = pep440__number(pep440__digits(&a)), right = pep440__number(pep440__digits(&b));
        int d = pep440__by_number(left, right);
        if (d)
            return d;
        str_skip(&a, a.n > 0);
        str_skip(&b, b.n > 0);
    }
    return 0;
}

/* Behind the release: a development release of nothing comes first, then a
 * pre-release, then none. */
static int pep440__stage(const Version *v)
{
    return v->pre ? v->pre : v->dev && !v->post ? 0 : 'z';
}

static Str pep440__part(Str *s)
{
    size_t n = 0;

    while (n < s->n && !str_has(STR("-_."), s->p[n]))
        n++;
    Str part = {s->p, n};
    str_skip(s, n < s->n ? n + 1 : n);
    return part;
}

/* Numbers come behind words. */
static int pep440__by_part(Str a, Str b)
{
    Str  left = a, right = b;
    bool numeric = pep440__digits(&left).n && left.n == 0, other = pep440__digits(&right).n && right.n == 0;

    if (numeric != other)
        return numeric ? 1 : -1;
    if (numeric)
        return pep440__by_number(pep440__number(a), pep440__number(b));
    for (size_t i = 0; i < a.n && i < b.n; i++)
        if (pep440__lower(a.p[i]) != pep440__lower(b.p[i]))
            return pep440__lower(a.p[i]) < pep440__lower(b.p[i]) ? -1 : 1;
    return a.n == b.n ? 0 : a.n < b.n ? -1 : 1;
}

static int pep440__by_local(Str a, Str b)
{
    if (!a.p || !b.p)
        return (a.p != NULL) - (b.p != NULL);
    while (a.n && b.n) {
        int d = pep440__by_part(pep440__part(&a), pep440__part(&b));
        if (d)
            return d;
    }
    return (a.n > 0) - (b.n > 0);
}

int pep440_compare(const Version *a, const Version *b)
{
    int d = pep440__by_number(a->epoch, b->epoch);

    d = d ? d : pep440__by_release(a->release, b->release);
    d = d ? d : pep440__order(pep440__stage(a) - pep440__stage(b));
    d = d ? d : pep440__by_number(a->pre_number, b->pre_number);
    d = d ? d : a->post - b->post;
    d = d ? d : pep440__by_number(a->post_number, b->post_number);
    d = d ? d : b->dev - a->dev;        /* with .dev comes before without */
    d = d ? d : pep440__by_number(a->dev_number, b->dev_number);
    return d ? d : pep440__by_local(a->local, b->local);
}

/* ---- comparators ---- */

/* The first version that `~= v` no longer means: of its release numbers the
 * last is dropped, if it is not the only one, and the new last one is one more. */
static Version pep440__above(const Version *v, Arena *a)
{
    size_t last = v->release.n;
    bool   carry = true;

    for (size_t i = 0; i < v->release.n; i++)
        if (v->release.p[i] == '.')
            last = i;
    char *text = arena_alloc(a, last + 1);
    memcpy(text + 1, v->release.p, last);       /* with room for a carry in front */
    size_t i = last;
    for (; carry && i > 0 && pep440__is_digit(text[i]); i--) {
        carry = text[i] == '9';
        text[i] = carry ? '0' : (char)(text[i] + 1);
    }
    if (carry) {                                /* 9 to 10: what stands before makes room */
        memmove(text, text + 1, i);
        text[i] = '1';
    }
    return (Version){.epoch = v->epoch, .release = carry ? (Str){text, last + 1} : (Str){text + 1, last}};
}

static bool pep440__one(Str item, const Version *have, Arena *a, bool *yes)
{
    static const Str ops[] = {{">=", 2}, {"<=", 2}, {"==", 2}, {"!=", 2}, {"~=", 2}, {">", 1}, {"<", 1}};
    Version v;
    size_t  op = 0;

    while (op < COUNT_OF(ops) && !str_starts(item, ops[op]))
        op++;
    if (op == COUNT_OF(ops))
        return false;
    str_skip(&item, ops[op].n);
    if (!pep440_parse(item, &v))
        return false;
    int     d = pep440_compare(have, &v);
    Version above = pep440__above(&v, a);
    bool    all[] = {d >= 0, d <= 0, d == 0, d != 0, d >= 0 && pep440_compare(have, &above) < 0, d > 0, d < 0};
    *yes = *yes && all[op];
    return true;
}

bool pep440_list(Str list, const Version *have, Arena scratch, bool *yes, Str *bad)
{
    Str item;

    *yes = true;
    while (str_cut(&list, ',', &item)) {
        item = utf8_trim(item);
        if (item.n && !pep440__one(item, have, &scratch, yes)) {
            *bad = item;
            return false;
        }
    }
    return true;
}
