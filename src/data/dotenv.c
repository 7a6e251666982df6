#include "data/dotenv.h"

#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"
#include <stdlib.h>

/* ---- the lines ---- */

typedef struct DotenvLine {
    Str      key, raw;          /* raw.p NULL: no value */
    uint32_t slot;              /* of its key among the distinct ones */
    Str      all;               /* from its first word to the line end that closes it */
} DotenvLine;

/* How many bytes the white space at the front of s has, without its LFs or
 * with them. */
static size_t dotenv__space(Str s, bool lines)
{
    Str      rest = s;
    uint32_t c;

    while (rest.n) {
        Str at = rest;
        if (!utf8_next(&rest, &c) || !utf8_space(c) || (c == '\n' && !lines))
            return s.n - at.n;
    }
    return s.n;
}

static bool dotenv__at(Str s, char c)
{
    return s.n && s.p[0] == c;
}

static void dotenv__export(Str *in)
{
    Str word = STR("export");

    if (str_starts(*in, word)) {
        size_t blanks = dotenv__space((Str){in->p + word.n, in->n - word.n}, false);
        if (blanks)
            str_skip(in, word.n + blanks);
    }
}

static bool dotenv__key(Str *in, Str *key)
{
    Str      rest = *in;
    uint32_t c;

    if (dotenv__at(rest, '\'')) {
        str_skip(&rest, 1);
        size_t n = str_find(rest, '\'');
        if (n == 0 || n == rest.n)
            return false;
        *key = (Str){rest.p, n};
        str_skip(in, n + 2);
        return true;
    }
    while (rest.n && rest.p[0] != '=' && rest.p[0] != '#') {
        Str at = rest;
        if (utf8_next(&rest, &c) && utf8_space(c)) {
            rest = at;
            break;
        }
    }
    *key = (Str){in->p, in->n - rest.n};
    str_skip(in, key->n);
    return key->n > 0;
}

/* The text between quotes, its escapes resolved where it stands (which only
 * makes it shorter). False: the quote is not closed. */
static bool dotenv__quoted(Str *in, Str *value)
{
    static const char names[] = "abfnrtv", bytes[] = "\a\b\f\n\r\t\v";
    char   quote = in->p[0];
    size_t end = 1;

    while (end < in->n && in->p[end] != quote)
        end += in->p[end] == '\\' ? 2 : 1;
    if (end >= in->n)
        return false;
    char *start = (char *)in->p + 1, *to = start;
    for (const char *from = start; from < in->p + end; from++) {
        if (*from != '\\') {
            *to++ = *from;
            continue;
        }
        from++;
        const char *name = quote == '"' && *from ? strchr(names, *from) : NULL;
        if (name) {
            *to++ = bytes[name - names];
        } else {
            if (*from != '\\' && *from != '\'' && (*from != '"' || quote == '\''))
                *to++ = '\\';
            *to++ = *from;
        }
    }
    *value = (Str){start, (size_t)(to - start)};
    str_skip(in, end + 1);
    return true;
}

/* A bare value: the rest of the line, up to a # with white space before it. */
static Str dotenv__bare(Str *in)
{
    Str line = {in->p, str_find(*in, '\n')};

    str_skip(in, line.n);
    for (size_t at = 0; at < line.n;) {
        size_t   blanks = dotenv__space((Str){line.p + at, line.n - at}, true);
        Str      rest = {line.p + at + blanks, line.n - at - blanks};
        uint32_t c;
        if (blanks && dotenv__at(rest, '#'))
            line.n = at;
        else if (rest.n)
            utf8_next(&rest, &c);
        at = (size_t)(rest.p - line.p);
    }
    /* White space in front was taken with the `=`. */
    return utf8_trim(line);
}

static bool dotenv__value(Str *in, Str *value)
{
    str_skip(in, 1);
    size_t blanks = dotenv__space(*in, false);
    str_skip(in, blanks);
    if (dotenv__at(*in, '\'') || dotenv__at(*in, '"'))
        return dotenv__quoted(in, value);
    if (blanks && dotenv__at(*in, '#'))
        *value = STR("");
    else
        *value = dotenv__bare(in);
    return true;
}

/* One binding from the front of *in. False: it is malformed, and *in stands
 * where that was seen. *line has no key for a comment. */
static bool dotenv__binding(Str *in, DotenvLine *line)
{
    dotenv__export(in);
    if (!dotenv__at(*in, '#') && !dotenv__key(in, &line->key))
        return false;
    str_skip(in, dotenv__space(*in, false));
    if (dotenv__at(*in, '=') && (!line->key.p || !dotenv__value(in, &line->raw)))
        return false;
    str_skip(in, dotenv__space(*in, false));
    if (dotenv__at(*in, '#'))
        str_skip(in, str_find(*in, '\n'));
    if (in->n && in->p[0] != '\n')
        return false;
    return true;
}

/* A copy that can be written to, with LF for CR LF and CR. */
static Str dotenv__copy(Str text, Arena *a)
{
    char *p = arena_alloc(a, text.n + 1), *to = p;

    if (str_starts(text, STR("\xef\xbb\xbf")))
        str_skip(&text, 3);
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '\r')
            *to++ = text.p[i];
        else if (i + 1 == text.n || text.p[i + 1] != '\n')
            *to++ = '\n';
    }
    return (Str){p, (size_t)(to - p)};
}

static size_t dotenv__lines(Str in, DotenvLine *lines)
{
    size_t n = 0;

    for (;;) {
        str_skip(&in, dotenv__space(in, true));
        if (in.n == 0)
            return n;
        DotenvLine line = {.all = {in.p, 0}};
        if (dotenv__binding(&in, &line)) {
            line.all.n = (size_t)(in.p - line.all.p);
            if (line.key.p)
                lines[n++] = line;
        } else {
            str_skip(&in, str_find(in, '\n'));
        }
    }
}

/* ---- ${NAME} ---- */

typedef struct DotenvFill {
    DotenvEntry *slots;         /* the distinct keys, sorted */
    bool        *bound;         /* a line before gave it */
    size_t       n;
    DotenvLookup env;
    Buf          out;           /* the value at hand; its limit is what all may still take */
    bool         outside;
} DotenvFill;

static const DotenvEntry *dotenv__find(const DotenvEntry *v, size_t n, Str key)
{
    size_t from = 0;

    while (n) {
        size_t half = n / 2;
        int    d = str_order(key, v[from + half].key);
        if (d == 0)
            return &v[from + half];
        if (d > 0) {
            from += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return NULL;
}

static void dotenv__name(DotenvFill *f, Str name, Str otherwise)
{
    const DotenvEntry *e = dotenv__find(f->slots, f->n, name);
    Str value = otherwise;

    if (e && f->bound[e - f->slots]) {
        value = e->value;
        f->outside |= e->outside;
    } else {
        Str given = f->env.get(f->env.ctx, name);
        if (given.p) {
            value = given;
            f->outside = true;
        }
    }
    buf_add(&f->out, value);
}

/* Read a ${...} from the front of *in into its parts. False: it is none, and
 * *in is moved past what cannot begin one: any other ${ in there would end at
 * the same place in the same way. */
static bool dotenv__reference(Str *in, Str *name, Str *otherwise)
{
    size_t end = 2;

    while (end < in->n && in->p[end] != '}' && in->p[end] != ':')
        end++;
    *name = str_from_to(*in, 2, end);
    *otherwise = (Str){0};
    str_skip(in, end);
    if (dotenv__at(*in, ':')) {
        if (!str_starts(*in, STR(":-")))
            return false;
        size_t close = str_find(*in, '}');
        *otherwise = str_from_to(*in, 2, close);
        str_skip(in, close);
    }
    if (in->n == 0)
        return false;
    str_skip(in, 1);
    return true;
}

/* The value of a line into f->out. */
static void dotenv__fill(DotenvFill *f, Str raw)
{
    Str name, otherwise;

    buf_clear(&f->out);
    f->outside = false;
    while (raw.n) {
        Str at = raw;
        while (at.n && !str_starts(at, STR("${")))
            str_skip(&at, 1);
        buf_add(&f->out, (Str){raw.p, raw.n - at.n});
        raw = at;
        if (raw.n == 0)
            break;
        if (dotenv__reference(&raw, &name, &otherwise))
            dotenv__name(f, name, otherwise);
        else
            buf_add(&f->out, (Str){at.p, at.n - raw.n});
    }
}

/* ---- all of it ---- */

static int dotenv__by_key(const void *left, const void *right)
{
    const DotenvLine *a = *(const DotenvLine *const *)left, *b = *(const DotenvLine *const *)right;

    return str_order(a->key, b->key);
}

/* Number the distinct keys in their order: how many there are. */
static size_t dotenv__slots(DotenvLine *lines, size_t n, DotenvEntry *slots, Arena scratch)
{
    DotenvLine **sorted = arena_array(&scratch, n, sizeof *sorted);
    size_t       count = 0;

    for (size_t i = 0; i < n; i++)
        sorted[i] = &lines[i];
    qsort(sorted, n, sizeof *sorted, dotenv__by_key);
    for (size_t i = 0; i < n; i++) {
        if (count == 0 || !str_eq(slots[count - 1].key, sorted[i]->key))
            slots[count++].key = sorted[i]->key;
        sorted[i]->slot = (uint32_t)(count - 1);
    }
    return count;
}

/* The bindings of a text, in a copy of it. False: it is no text, or too long. */
static bool dotenv__read(Str text, Arena *a, Str *copy, DotenvLine **lines, size_t *n, Err *err)
{
    if (text.n > LIMIT_DOTENV)
        return err_set(err, ERR_LIMIT, E8002, "%zu bytes, more than %zu", text.n, LIMIT_DOTENV);
    if (!utf8_valid(text))
        return err_set(err, ERR_INPUT, E8002, "not UTF-8 at byte %zu", utf8_good(text));
    *copy = dotenv__copy(text, a);
    /* A binding is at least "A" and a line end. */
    *lines = arena_array(a, copy->n / 2 + 1, sizeof **lines);
    *n = dotenv__lines(*copy, *lines);
    return true;
}

bool dotenv_parse(Str text, DotenvLookup env, Arena *a, Dotenv *out, Err *err)
{
    DotenvLine *lines;
    size_t      n;

    if (!dotenv__read(text, a, &text, &lines, &n, err))
        return false;
    DotenvFill  f = {.slots = arena_array(a, n, sizeof *f.slots), .bound = arena_array(a, n, 1), .env = env};

    f.n = dotenv__slots(lines, n, f.slots, *a);
    f.out = buf_make(LIMIT_DOTENV_VALUES);
    for (size_t i = 0; i < n && !f.out.over; i++) {
        DotenvEntry *e = &f.slots[lines[i].slot];
        if (lines[i].raw.p) {
            dotenv__fill(&f, lines[i].raw);
            f.out.limit -= f.out.n;
            e->value = arena_str(a, buf_str(&f.out));
        } else {
            e->value = (Str){0};
        }
        e->outside = lines[i].raw.p && f.outside;
        f.bound[lines[i].slot] = true;
    }
    bool fits = !f.out.over;
    buf_free(&f.out);
    if (!fits)
        return err_set(err, ERR_LIMIT, E8002, "its values are longer than %zu bytes", LIMIT_DOTENV_VALUES);
    *out = (Dotenv){f.slots, f.n};
    return true;
}

const DotenvEntry *dotenv_get(const Dotenv *d, Str key)
{
    return dotenv__find(d->v, d->n, key);
}

/* ---- editing ---- */

/* Where byte `want` of the copy stands in the text, which has more bytes: *at
 * and *copied are where the walk is. A CR that was dropped counts to its LF. */
static size_t dotenv__place(Str text, size_t want, size_t *at, size_t *copied)
{
    for (; *copied < want; ++*at)
        if (text.p[*at] != '\r' || *at + 1 == text.n || text.p[*at + 1] != '\n')
            ++*copied;
    return *at;
}

bool dotenv_spans(Str text, Arena *a, const DotenvSpan **out, size_t *n, Err *err)
{
    DotenvLine *lines;
    Str         copy;

    if (!dotenv__read(text, a, &copy, &lines, n, err))
        return false;
    DotenvSpan *spans = arena_array(a, *n, sizeof *spans);
    size_t      at = str_starts(text, STR("\xef\xbb\xbf")) ? 3 : 0, copied = 0, start = at;
    for (size_t i = 0; i < *n; i++) {
        size_t begin = (size_t)(lines[i].all.p - copy.p);
        size_t from = dotenv__place(text, begin, &at, &copied);
        while (from > start && text.p[from - 1] != '\n' && text.p[from - 1] != '\r')
            from--;
        size_t to = dotenv__place(text, begin + lines[i].all.n, &at, &copied);
        if (to < text.n && text.p[to] == '\r')
            to++;
        if (to < text.n && text.p[to] == '\n')
            to++;
        spans[i] = (DotenvSpan){lines[i].key, from, to};
    }
    *out = spans;
    return true;
}

/* What stands for a character between double quotes; 0: itself. */
static char dotenv__escape(char c)
{
    static const char bytes[] = "\a\b\f\n\r\t\v\\\"", names[] = "abfnrtv\\\"";
    const char *at = c ? strchr(bytes, c) : NULL;

    return at ? names[at - bytes] : '\0';
}

Str dotenv_quote(Str value, Arena *a)
{
    char  *p = arena_alloc(a, 6 * value.n + 3), *to = p;
    bool   bare = value.n > 0, escapes = false;

    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];
        escapes |= c == '\'' || (dotenv__escape(c) && c != '"');
        bare &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                (c && strchr("_-./:@%+,=", c));
    }
    if (bare)
        return arena_str(a, value);
    *to++ = escapes ? '"' : '\'';
    for (size_t i = 0; i < value.n; i++) {
        char name = escapes ? dotenv__escape(value.p[i]) : '\0';
        if (str_starts(str_from_to(value, i, value.n), STR("${"))) {
            memcpy(to, "${:-$}", 6);    /* a name that nothing has, and what stands for it then */
            to += 6;
            continue;
        }
        if (name)
            *to++ = '\\';
        *to++ = name ? name : value.p[i];
    }
    *to++ = escapes ? '"' : '\'';
    return (Str){p, (size_t)(to - p)};
}
