#include "data/clean.h"

#include "base/buf.h"
#include "base/utf8.h"

enum { CLEAN_SECRET_CHARS = 4, CLEAN_PATH = 500, CLEAN_ESC = 0x1b, CLEAN_BEL = 0x07 };

/* The length of a CSI sequence without its ESC [, 0 when it is none. */
static size_t clean__csi(Str s)
{
    size_t n = 0;

    while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') || s.p[n] == ';' || s.p[n] == '?'))
        n++;
    while (n < s.n && s.p[n] >= 0x20 && s.p[n] <= 0x2f)
        n++;
    return n < s.n && s.p[n] >= '@' && s.p[n] <= '~' ? n + 1 : 0;
}

/* The length of an OSC string without its ESC ], terminator included; one that
 * is not ended goes to the end of its line. */
static size_t clean__osc(Str s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] != '\n') {
        if (s.p[n] == CLEAN_BEL)
            return n + 1;
        if (s.p[n] == CLEAN_ESC && n + 1 < s.n && s.p[n + 1] == '\\')
            return n + 2;
        n++;
    }
    return n;
}

/* Take an escape sequence off the front, where an ESC stands. */
static void clean__escape(Str *s)
{
    str_skip(s, 1);
    if (s->n == 0 || s->p[0] < '@' || s->p[0] > '_')
        return;
    char kind = s->p[0];
    str_skip(s, 1);
    if (kind == '[')
        str_skip(s, clean__csi(*s));
    else if (kind == ']')
        str_skip(s, clean__osc(*s));
}

static Str clean__strip(Str s, bool returns, Arena *a)
{
    char    *out = arena_alloc(a, s.n * 3 + 1);     /* one bad byte becomes the three of U+FFFD */
    size_t   n = 0;
    uint32_t c;

    while (s.n) {
        if (s.p[0] == CLEAN_ESC) {
            clean__escape(&s);
            continue;
        }
        utf8_next(&s, &c);
        if ((c < 0x20 && c != '\t' && c != '\n' && !(c == '\r' && returns)) || (c >= 0x7f && c <= 0x9f))
            continue;
        ABX_UNSET char put[4];
        size_t width = utf8_put(put, c);
        memcpy(out + n, put, width);
        n += width;
    }
    return (Str){out, n};
}

static size_t clean__chars(Str s)
{
    size_t   n = 0;
    uint32_t c;

    while (s.n) {
        utf8_next(&s, &c);
        n++;
    }
    return n;
}

static Str clean__redact(Str s, Str secret, Arena *a)
{
    /* A secret has four bytes or more, so that *** never makes it longer. */
    char  *out = arena_alloc(a, s.n + 1);
    size_t n = 0;

    while (s.n) {
        bool hit = s.n >= secret.n && memcmp(s.p, secret.p, secret.n) == 0;
        memcpy(out + n, hit ? "***" : s.p, hit ? 3 : 1);
        n += hit ? 3 : 1;
        str_skip(&s, hit ? secret.n : 1);
    }
    return (Str){out, n};
}

static Str clean__all(Str text, const Str *secrets, size_t n, bool returns, Arena *a)
{
    Str out = clean__strip(text, returns, a);

    for (size_t i = 0; i < n; i++) {
        Str secret = clean__strip(secrets[i], returns, a);
        if (clean__chars(secret) >= CLEAN_SECRET_CHARS)
            out = clean__redact(out, secret, a);
    }
    return out;
}

Str clean_text(Str text, const Str *secrets, size_t n, Arena *a)
{
    return clean__all(text, secrets, n, true, a);
}

Str clean_message(Str text, const Str *secrets, size_t n, Arena *a)
{
    Str   clean = clean__all(text, secrets, n, false, a);
    char *line = arena_cstr(a, clean);

    for (size_t i = 0; i < clean.n; i++)
        if (line[i] == '\n' || line[i] == '\t')
            line[i] = ' ';
    return (Str){line, clean.n};
}

Str clean_path(Str path, Arena *a)
{
    path.n = path.n < CLEAN_PATH ? path.n : CLEAN_PATH;
    return clean_message(path, NULL, 0, a);
}
