#include "data/json.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "base/utf8.h"
#include <stdio.h>
#include <stdlib.h>

/* A document is read twice. The first pass finds every mistake and counts the
 * members of each container, in the order in which they open; the second
 * cannot fail, and puts each container's members into one array of the right
 * size. Strings are unescaped where they stand, in a copy of the text. */

typedef struct JsonCheck {
    const char *start, *at, *end;
    int         depth;
    size_t      values;
    Buf         counts;         /* a uint32_t for each container */
    Err        *err;
} JsonCheck;

static bool json__bad(JsonCheck *r, const char *what)
{
    return err_set(r->err, ERR_INPUT, E0000, "JSON: %s at byte %zu", what, (size_t)(r->at - r->start));
}

static bool json__over(JsonCheck *r, const char *what, size_t limit)
{
    return err_set(r->err, ERR_LIMIT, E0000, "JSON: more than %zu %s at byte %zu", limit, what,
                   (size_t)(r->at - r->start));
}

static const char *json__space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

static bool json__digit(const JsonCheck *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

/* The four digits behind "\u"; false when there are not four. */
static bool json__hex4(const char *at, const char *end, uint32_t *c)
{
    uint64_t v;

    if (end - at < 4 || !num_hex((Str){at, 4}, &v))
        return false;
    *c = (uint32_t)v;
    return true;
}

/* The character of the \u escape at `at` (its backslash), a surrogate pair
 * included: how many bytes it is written with; 0 when it is malformed. */
static size_t json__unicode(const char *at, const char *end, uint32_t *c)
{
    uint32_t low;

    if (!json__hex4(at + 2, end, c) || (*c >= 0xdc00 && *c <= 0xdfff))
        return 0;
    if (*c < 0xd800 || *c > 0xdbff)
        return 6;
    if (end - at < 12 || at[6] != '\\' || at[7] != 'u' || !json__hex4(at + 8, end, &low) || low < 0xdc00 ||
        low > 0xdfff)
        return 0;
    *c = 0x10000 + ((*c - 0xd800) << 10) + (low - 0xdc00);
    return 12;
}

static bool json__check_escape(JsonCheck *r)
{
    uint32_t c;

    if (r->end - r->at < 2)
        return json__bad(r, "the text ends inside a string");
    if (r->at[1] != 'u') {
        if (r->at[1] == '\0' || !strchr("\"\\/bfnrt", r->at[1]))
            return json__bad(r, "unknown escape");
        r->at += 2;
        return true;
    }
    size_t n = json__unicode(r->at, r->end, &c);
    if (n == 0)
        return json__bad(r, "malformed \\u escape, or half of a surrogate pair");
    r->at += n;
    return true;
}

static bool json__check_string(JsonCheck *r)
{
    if (r->at == r->end || *r->at != '"')
        return json__bad(r, "expected a string");
    r->at++;
    while (r->at < r->end && *r->at != '"') {
        if (*r->at == '\\') {
            if (!json__check_escape(r))
                return false;
        } else if ((unsigned char)*r->at < 0x20) {
            return json__bad(r, "control character in a string");
        } else {
            r->at++;
        }
    }
    if (r->at == r->end)
        return json__bad(r, "the text ends inside a string");
    r->at++;
    return true;
}

static bool json__check_digits(JsonCheck *r)
{
    if (!json__digit(r))
        return json__bad(r, "expected a digit");
    while (json__digit(r))
        r->at++;
    return true;
}

static bool json__check_number(JsonCheck *r)
{
    if (*r->at == '-')
        r->at++;
    if (r->at < r->end && *r->at == '0')
        r->at++;                /* nothing but a fraction or an exponent may follow */
    else if (!json__check_digits(r))
        return false;
    if (r->at < r->end && *r->at == '.') {
        r->at++;
        if (!json__check_digits(r))
            return false;
    }
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
            r->at++;
        return json__check_digits(r);
    }
    return true;
}

static bool json__check_word(JsonCheck *r)
{
    static const Str words[] = {{"true", 4}, {"false", 5}, {"null", 4}};

    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (str_starts((Str){r->at, (size_t)(r->end - r->at)}, words[i])) {
            r->at += words[i].n;
            return true;
        }
    return json__bad(r, r->at == r->end ? "the text ends where a value should be" : "expected a value");
}

static bool json__check_value(JsonCheck *r);

static bool json__check_members(JsonCheck *r, char close, uint32_t *count)
{
    r->at = json__space(r->at + 1, r->end);
    if (r->at < r->end && *r->at == close)
        return true;
    for (;;) {
        if (close == '}') {
            if (!json__check_string(r))
                return false;
            r->at = json__space(r->at, r->end);
            if (r->at == r->end || *r->at != ':')
                return json__bad(r, "expected ':'");
            r->at = json__space(r->at + 1, r->end);
        }
        if (!json__check_value(r))
            return false;
        ++*count;
        r->at = json__space(r->at, r->end);
        if (r->at < r->end && *r->at == close)
            return true;
        if (r->at == r->end || *r->at != ',')
            return json__bad(r, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
        r->at = json__space(r->at + 1, r->end);
    }
}

static bool json__check_container(JsonCheck *r, char close)
{
    uint32_t count = 0;
    size_t   slot = r->counts.n;

    if (++r->depth > LIMIT_JSON_DEPTH)
        return json__over(r, "levels", LIMIT_JSON_DEPTH);
    buf_add(&r->counts, (Str){(const char *)&count, sizeof count});
    if (!json__check_members(r, close, &count))
        return false;
    memcpy(r->counts.p + slot, &count, sizeof count);
    r->depth--;
    r->at++;
    return true;
}

static bool json__check_value(JsonCheck *r)
{
    if (++r->values > LIMIT_JSON_VALUES)
        return json__over(r, "values", LIMIT_JSON_VALUES);
    char c = r->at < r->end ? *r->at : '\0';
    if (c == '{' || c == '[')
        return json__check_container(r, c == '{' ? '}' : ']');
    if (c == '"')
        return json__check_string(r);
    if (c == '-' || (c >= '0' && c <= '9'))
        return json__check_number(r);
    return json__check_word(r);
}

static bool json__check(JsonCheck *r)
{
    size_t good = utf8_good((Str){r->start, (size_t)(r->end - r->start)});

    r->at = r->start + good;
    if (r->at < r->end)
        return json__bad(r, "not UTF-8");
    r->at = json__space(r->start, r->end);
    if (!json__check_value(r))
        return false;
    r->at = json__space(r->at, r->end);
    return r->at == r->end || json__bad(r, "something follows the value");
}

/* ---- the second pass, over what is known to be right ---- */

typedef struct JsonBuild {
    char        *at, *end;
    const char  *counts;        /* of the containers that are still to open */
    Arena       *a;
} JsonBuild;

static char *json__unescape(char *to, char **from, const char *end)
{
    static const char names[] = "bfnrt", bytes[] = "\b\f\n\r\t";
    uint32_t c;
    ABX_UNSET char u[4];

    if ((*from)[1] == 'u') {
        *from += json__unicode(*from, end, &c);
        size_t n = utf8_put(u, c);
        memcpy(to, u, n);
        return to + n;
    }
    const char *name = strchr(names, (*from)[1]);
    *to = name ? bytes[name - names] : (*from)[1];
    *from += 2;
    return to + 1;
}

static Str json__build_string(JsonBuild *b)
{
    char *start = ++b->at, *to, *from;

    while (*b->at != '"' && *b->at != '\\')
        b->at++;
    for (to = from = b->at; *from != '"';) {
        if (*from == '\\')
            to = json__unescape(to, &from, b->end);
        else
            *to++ = *from++;
    }
    b->at = from + 1;
    *to = '\0';
    return (Str){start, (size_t)(to - start)};
}

static void json__build_number(JsonBuild *b, Json *v)
{
    char *start = b->at;

    while (b->at < b->end && *b->at != '\0' && strchr("+-.0123456789eE", *b->at))
        b->at++;
    v->text = (Str){start, (size_t)(b->at - start)};
    v->type = num_i64(v->text, &v->integer) ? JSON_INT : JSON_REAL;
}

/* By name, and of equal names the earlier one first. */
int json_order(const void *left, const void *right)
{
    const Str *a = *(const Str *const *)left, *b = *(const Str *const *)right;
    int        d = str_order(*a, *b);

    return d ? d : a < b ? -1 : a > b;
}

/* Of a name that is there several times, the last value goes to the first
 * place. Sorted, because a server could send very many names. */
static void json__unique(Json *v, Json *items, Str *keys, Arena scratch)
{
    Str    **sorted = arena_array(&scratch, v->count, sizeof *sorted);
    uint32_t first = 0, kept = 0;

    for (uint32_t i = 0; i < v->count; i++)
        sorted[i] = &keys[i];
    qsort(sorted, v->count, sizeof *sorted, json_order);
    for (uint32_t i = 1; i < v->count; i++) {
        if (str_eq(*sorted[i], *sorted[first])) {
            items[sorted[first] - keys] = items[sorted[i] - keys];
            sorted[i]->p = NULL;
        } else {
            first = i;
        }
    }
    for (uint32_t i = 0; i < v->count; i++)
        if (keys[i].p) {
            items[kept] = items[i];
            keys[kept++] = keys[i];
        }
    v->count = kept;
}

static void json__build_value(JsonBuild *b, Json *v);

static void json__build_container(JsonBuild *b, Json *v)
{
    bool object = *b->at == '{';

    v->type = object ? JSON_OBJECT : JSON_ARRAY;
    memcpy(&v->count, b->counts, sizeof v->count);
    b->counts += sizeof v->count;
    Json *items = arena_array(b->a, v->count, sizeof *items);
    Str  *keys = object ? arena_array(b->a, v->count, sizeof *keys) : NULL;
    for (uint32_t i = 0; i < v->count; i++) {
        b->at = (char *)json__space(b->at + 1, b->end);     /* behind the bracket or the comma */
        if (object) {
            keys[i] = json__build_string(b);
            b->at = (char *)json__space(b->at, b->end);
            b->at = (char *)json__space(b->at + 1, b->end);
        }
        json__build_value(b, &items[i]);
        b->at = (char *)json__space(b->at, b->end);
    }
    if (v->count == 0)
        b->at = (char *)json__space(b->at + 1, b->end);
    b->at++;
    v->items = items;
    v->keys = keys;
    if (object && v->count > 1)
        json__unique(v, items, keys, *b->a);
}

static void json__build_value(JsonBuild *b, Json *v)
{
    switch (*b->at) {
    case '{':
    case '[':
        json__build_container(b, v);
        break;
    case '"':
        v->type = JSON_STRING;
        v->text = json__build_string(b);
        break;
    case 't':
    case 'f':
        v->type = JSON_BOOL;
        v->boolean = *b->at == 't';
        b->at += v->boolean ? 4 : 5;
        break;
    case 'n':
        v->type = JSON_NULL;
        b->at += 4;
        break;
    default:
        json__build_number(b, v);
    }
}

bool json_parse(Str text, Arena *a, const Json **out, Err *err)
{
    if (text.n == 0)
        text = STR("");         /* not NULL, for sums with pointers */
    if (text.n > LIMIT_JSON_BYTES)
        return err_set(err, ERR_LIMIT, E0000, "JSON: %zu bytes, more than %zu", text.n, LIMIT_JSON_BYTES);
    JsonCheck check = {.start = text.p, .end = text.p + text.n, .err = err};
    check.counts = buf_make(LIMIT_JSON_VALUES * sizeof(uint32_t));
    if (!json__check(&check)) {
        buf_free(&check.counts);
        return false;
    }
    char     *copy = arena_cstr(a, text);
    JsonBuild build = {.at = copy, .end = copy + text.n, .counts = check.counts.p, .a = a};
    Json     *v = arena_new(a, Json);
    build.at = (char *)json__space(build.at, build.end);
    json__build_value(&build, v);
    buf_free(&check.counts);
    *out = v;
    return true;
}

/* ---- looking ---- */

const Json *json_get(const Json *object, const char *key)
{
    Str name = str_from(key);

    if (object && object->type == JSON_OBJECT)
        for (uint32_t i = 0; i < object->count; i++)
            if (str_eq(object->keys[i], name))
                return &object->items[i];
    return NULL;
}

const Json *json_at(const Json *array, size_t i)
{
    return array && array->type == JSON_ARRAY && i < array->count ? &array->items[i] : NULL;
}

Str json_str(const Json *v)
{
    return v && v->type == JSON_STRING ? v->text : (Str){0};
}

double json_real(const Json *v, double otherwise)
{
    if (v && v->type == JSON_INT)
        return (double)v->integer;
    /* The text is a part of the document's copy: what may stand behind a
     * number there, or the copy's NUL, ends it for strtod() too. */
    return v && v->type == JSON_REAL ? strtod(v->text.p, NULL) : otherwise;
}

int64_t json_int(const Json *v, int64_t otherwise)
{
    if (v && v->type == JSON_INT)
        return v->integer;
    double d = json_real(v, 0.5);
    if (!(d >= -0x1p53 && d <= 0x1p53) || (double)(int64_t)d != d)
        return otherwise;       /* above 2^53 a double may stand for its neighbour */
    return (int64_t)d;
}

bool json_bool(const Json *v, bool otherwise)
{
    return v && v->type == JSON_BOOL ? v->boolean : otherwise;
}

size_t json_count(const Json *v)
{
    return v && (v->type == JSON_ARRAY || v->type == JSON_OBJECT) ? v->count : 0;
}

/* ---- writing ---- */

JsonOut json_out(Buf *to, JsonStyle style)
{
    return (JsonOut){.to = to, .style = style};
}

static void json__line(JsonOut *w)
{
    if (w->style != JSON_PRETTY)
        return;
    buf_addc(w->to, '\n');
    for (int i = 0; i < w->depth; i++)
        buf_add(w->to, STR("  "));
}

/* What stands between the last thing written and the next one. */
static void json__before(JsonOut *w)
{
    if (w->keyed) {
        w->keyed = false;
        return;
    }
    if (w->comma)
        buf_add(w->to, w->style == JSON_SPACED || w->style == JSON_ASCII ? STR(", ") : STR(","));
    if (w->depth > 0)
        json__line(w);
    w->comma = true;
}

/* One character that no string holds as it is. */
static void json__escape(Buf *to, uint32_t c)
{
    static const char bytes[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    const char *name = c && c < 0x80 ? strchr(bytes, (int)c) : NULL;

    /* Without printf: output of a command holds one of these a line. */
    if (name)
        buf_add(to, (Str){(char[]){'\\', names[name - bytes]}, 2});
    else if (c < 0x10000)
        buf_addf(to, "\\u%04x", (unsigned)c);
    else
        buf_addf(to, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)), (unsigned)(0xdc00 + (c & 0x3ff)));
}

static void json__text(JsonOut *w, Str s)
{
    bool     ascii = w->style == JSON_ASCII;
    uint32_t c;

    buf_addc(w->to, '"');
    while (s.n) {
        size_t run = 0;
        while (run < s.n && (unsigned char)s.p[run] >= 0x20 && s.p[run] != '"' && s.p[run] != '\\' &&
               !(ascii && (unsigned char)s.p[run] >= 0x7f))
            run++;
        utf8_add(w->to, (Str){s.p, run});
        str_skip(&s, run);
        if (s.n == 0)
            break;
        utf8_next(&s, &c);
        json__escape(w->to, c);
    }
    buf_addc(w->to, '"');
}

void json_begin(JsonOut *w, char open)
{
    json__before(w);
    buf_addc(w->to, open);
    w->depth++;
    w->comma = false;
}

void json_end(JsonOut *w, char close)
{
    if (w->depth == 0 || w->keyed)
        BUG("json_end without its begin, or behind a key");
    w->depth--;
    if (w->comma)
        json__line(w);
    buf_addc(w->to, close);
    w->comma = true;
}

void json_key_str(JsonOut *w, Str key)
{
    json__before(w);
    json__text(w, key);
    buf_add(w->to, w->style == JSON_COMPACT ? STR(":") : STR(": "));
    w->keyed = true;
}

void json_key(JsonOut *w, const char *key)
{
    json_key_str(w, str_from(key));
}

void json_put_str(JsonOut *w, Str s)
{
    json__before(w);
    json__text(w, s);
}

void json_put_int(JsonOut *w, int64_t v)
{
    json__before(w);
    buf_addf(w->to, "%lld", (long long)v);
}

void json_put_bool(JsonOut *w, bool v)
{
    json__before(w);
    buf_add(w->to, v ? STR("true") : STR("false"));
}

void json_put_null(JsonOut *w)
{
    json__before(w);
    buf_add(w->to, STR("null"));
}

void json_put(JsonOut *w, const Json *v)
{
    switch (v->type) {
    case JSON_NULL:
        json_put_null(w);
        break;
    case JSON_BOOL:
        json_put_bool(w, v->boolean);
        break;
    case JSON_INT:
    case JSON_REAL:
        json__before(w);
        buf_add(w->to, v->text);
        break;
    case JSON_STRING:
        json_put_str(w, v->text);
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        json_begin(w, v->type == JSON_ARRAY ? '[' : '{');
        for (uint32_t i = 0; i < v->count; i++) {
            if (v->type == JSON_OBJECT)
                json_key_str(w, v->keys[i]);
            json_put(w, &v->items[i]);
        }
        json_end(w, v->type == JSON_ARRAY ? ']' : '}');
    }
}

void json_put_digits(JsonOut *w, Str digits)
{
    json__before(w);
    buf_add(w->to, digits);
}

/* One more in the last place of "d.ddde-xx"; false when that carries out of
 * the front. */
static bool json__next(char *text)
{
    char *e = strchr(text, 'e');

    for (char *p = e - 1; p >= text; p--) {
        if (*p == '.')
            continue;
        if (*p != '9') {
            ++*p;
            return true;
        }
        *p = '0';
    }
    return false;
}

/* The fewest digits that read back as v, in the form "d.ddde-xx". The nearest
 * decimal of a length can miss where the next one up does not: below a power
 * of two doubles lie twice as close as above it. */
static void json__shortest(double v, char text[static 32])
{
    for (int places = 0; places < 17; places++) {
        snprintf(text, 32, "%.*e", places, v);
        if (strtod(text, NULL) == v || (json__next(text) && strtod(text, NULL) == v))
            return;
    }
}

void json_put_real(JsonOut *w, double v)
{
    char     text[32], digits[20];
    uint64_t bits;
    int      n = 0;

    json__before(w);
    if (v != v || v - v != 0) {
        buf_add(w->to, v != v ? STR("NaN") : v > 0 ? STR("Infinity") : STR("-Infinity"));
        return;
    }
    memcpy(&bits, &v, sizeof bits);
    if (bits >> 63) {           /* of -0.0 too */
        buf_addc(w->to, '-');
        v = -v;
    }
    json__shortest(v, text);
    char *e = strchr(text, 'e');
    for (const char *p = text; p < e; p++)
        if (*p != '.')
            digits[n++] = *p;
    int power = (int)strtol(e + 1, NULL, 10);
    if (power < -4 || power >= 16) {
        buf_addf(w->to, "%c%s%.*se%c%02d", digits[0], n > 1 ? "." : "", n - 1, digits + 1, power < 0 ? '-' : '+',
                 abs(power));
        return;
    }
    if (power < 0)
        buf_addf(w->to, "0.%.*s", -power - 1, "000");
    for (int i = 0; i < n || i < power + 2; i++) {
        if (power >= 0 && i == power + 1)
            buf_addc(w->to, '.');
        buf_addc(w->to, i < n ? digits[i] : '0');
        if (power < 0 && i + 1 == n)
            break;
    }
}

static void json__sorted_object(JsonOut *w, const Json *v)
{
    const Str **names = mem_new((v->count + 1) * sizeof *names);

    for (uint32_t i = 0; i < v->count; i++)
        names[i] = &v->keys[i];
    qsort(names, v->count, sizeof *names, json_order);
    json_begin(w, '{');
    for (uint32_t i = 0; i < v->count; i++) {
        json_key_str(w, *names[i]);
        json_put_sorted(w, &v->items[names[i] - v->keys]);
    }
    json_end(w, '}');
    mem_free(names);
}

void json_put_sorted(JsonOut *w, const Json *v)
{
    if (v->type == JSON_OBJECT) {
        json__sorted_object(w, v);
    } else if (v->type == JSON_ARRAY) {
        json_begin(w, '[');
        for (uint32_t i = 0; i < v->count; i++)
            json_put_sorted(w, &v->items[i]);
        json_end(w, ']');
    } else if (v->type == JSON_INT) {
        json_put_int(w, v->integer);        /* without the sign of -0 */
    } else if (v->type == JSON_REAL && (str_has(v->text, '.') || str_has(v->text, 'e') || str_has(v->text, 'E'))) {
        json_put_real(w, json_real(v, 0));
    } else {
        json_put(w, v);
    }
}
