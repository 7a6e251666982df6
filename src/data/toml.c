#include "data/toml.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/clean.h"
#include <stdlib.h>

/* The text is read into nodes, which are lists that can grow anywhere, since a
 * later header may add to an early table; toml__finish() then makes the tree
 * of them. Nodes live in an arena of their own that goes at the end. All keys
 * of all tables are found through one trie over the bits of a hash, so that a
 * table of many keys does not take its square in time. */

typedef struct TomlNode TomlNode;
struct TomlNode {
    Toml      v;
    Str       key;
    TomlNode *table;            /* that it is a member of */
    uint64_t  hash;
    TomlNode *child[4];         /* the trie below it */
    TomlNode *first, *last;     /* its own members */
    TomlNode *next;
    uint32_t  serial;
    uint32_t  depth;
};

typedef struct TomlReader {
    const char *start, *at, *end;
    const char *line;           /* of a header: where its line begins */
    size_t      key_at;         /* where the key or header that is being read begins */
    Arena      *a;
    Arena       nodes;
    TomlNode   *trie;
    TomlNode   *body;           /* the table whose body this is */
    uint32_t    values;
    Buf         text;           /* a string while it is read */
    Err        *err;
} TomlReader;

/* ---- where we are ---- */

void toml_position(Str text, size_t at, size_t *line, size_t *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < at && i < text.n; i++) {
        if (text.p[i] == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)text.p[i] & 0xc0) != 0x80) {
            ++*column;
        }
    }
}

static bool toml__fail(TomlReader *r, const char *at, ErrKind kind, const char *what, Str name)
{
    size_t line, column;

    toml_position((Str){r->start, (size_t)(r->end - r->start)}, (size_t)(at - r->start), &line, &column);
    name = clean_message(str_trim(name), NULL, 0, r->a);
    return err_set(r->err, kind, E0000, "line %zu, column %zu: %.*s%s%s", line, column, STR_ARG(name),
                   name.n ? " " : "", what);
}

static bool toml__bad(TomlReader *r, const char *at, const char *what)
{
    return toml__fail(r, at, ERR_INPUT, what, (Str){0});
}

/* With what is written in [from, r->at) in front. */
static bool toml__bad_key(TomlReader *r, const char *from, const char *what)
{
    return toml__fail(r, from, ERR_INPUT, what, (Str){from, (size_t)(r->at - from)});
}

/* NUL at the end: nowhere else, since it is a control character. */
static char toml__peek(const TomlReader *r, size_t i)
{
    return (size_t)(r->end - r->at) > i ? r->at[i] : '\0';
}

static void toml__blanks(TomlReader *r)
{
    while (toml__peek(r, 0) == ' ' || toml__peek(r, 0) == '\t')
        r->at++;
}

static bool toml__newline(TomlReader *r)
{
    if (toml__peek(r, 0) == '\r')
        r->at++;                /* the LF is there, or the text was refused */
    if (toml__peek(r, 0) != '\n')
        return false;
    r->at++;
    return true;
}

static void toml__comment(TomlReader *r)
{
    if (toml__peek(r, 0) == '#')
        while (r->at < r->end && *r->at != '\n' && *r->at != '\r')
            r->at++;
}

static bool toml__line_end(TomlReader *r)
{
    toml__blanks(r);
    toml__comment(r);
    return r->at == r->end || toml__newline(r) || toml__bad(r, r->at, "expected the end of the line");
}

/* Blanks, line ends and comments, as between the elements of an array. */
static void toml__space(TomlReader *r)
{
    do {
        toml__blanks(r);
        toml__comment(r);
    } while (toml__newline(r));
}

/* ---- nodes ---- */

/* FNV-1a of the key, begun differently in each table */
static uint64_t toml__hash(const TomlNode *table, Str key)
{
    uint64_t h = 0xcbf29ce484222325u ^ table->serial;

    for (size_t i = 0; i < key.n; i++)
        h = (h ^ (unsigned char)key.p[i]) * 0x100000001b3u;
    return h;
}

/* Where the member is in the trie, or would be. */
static TomlNode **toml__slot(TomlReader *r, const TomlNode *table, Str key)
{
    uint64_t   h = toml__hash(table, key);
    TomlNode **slot = &r->trie;

    for (uint64_t bits = h; *slot; bits <<= 2) {
        if ((*slot)->hash == h && (*slot)->table == table && str_eq((*slot)->key, key))
            break;
        slot = &(*slot)->child[bits >> 62];
    }
    return slot;
}

/* A new member of a table, or with a key of p NULL of an array; NULL: too much. */
static TomlNode *toml__add(TomlReader *r, TomlNode *to, Str key, TomlType type)
{
    if (++r->values > LIMIT_TOML_VALUES) {
        toml__fail(r, r->at, ERR_LIMIT, "values are too many", (Str){0});
        return NULL;
    }
    if (to->depth >= LIMIT_TOML_DEPTH) {
        toml__fail(r, r->at, ERR_LIMIT, "this is nested too deep", (Str){0});
        return NULL;
    }
    TomlNode *n = arena_new(&r->nodes, TomlNode);
    n->v.type = type;
    n->v.key_at = n->v.at = n->v.end = r->key_at;
    n->depth = to->depth + 1;
    n->serial = r->values;
    n->table = to;
    if (key.p) {
        TomlNode **slot = toml__slot(r, to, key);
        n->key = key;
        n->hash = toml__hash(to, key);
        *slot = n;
    }
    *(to->last ? &to->last->next : &to->first) = n;
    to->last = n;
    to->v.count++;
    return n;
}

/* ---- strings and keys ---- */

/* At the backslash: the escape goes into r->text. */
static bool toml__escape(TomlReader *r)
{
    static const char names[] = "btnfr\"\\", bytes[] = "\b\t\n\f\r\"\\";
    const char *from = r->at;
    char        c = toml__peek(r, 1), u[4];
    const char *name = c ? strchr(names, c) : NULL;
    uint64_t    point;
    size_t      digits = c == 'u' ? 4 : 8;

    if (name) {
        buf_addc(&r->text, bytes[name - names]);
        r->at += 2;
        return true;
    }
    if (c != 'u' && c != 'U')
        return toml__bad(r, from, "unknown escape in a string");
    r->at += 2;
    if ((size_t)(r->end - r->at) < digits || !num_hex((Str){r->at, digits}, &point) || point > 0x10ffff ||
        (point >= 0xd800 && point <= 0xdfff))
        return toml__bad(r, from, "this escape is no character");
    r->at += digits;
    buf_add(&r->text, (Str){u, utf8_put(u, (uint32_t)point)});
    return true;
}

/* A backslash that ends its line takes all white space behind it along. */
static bool toml__fold(TomlReader *r)
{
    const char *from = r->at++;

    toml__blanks(r);
    if (!toml__newline(r)) {
        r->at = from;
        return false;
    }
    do
        toml__blanks(r);
    while (toml__newline(r));
    return true;
}

/* At a quote: true when the string ends with it. In a multi-line string up to
 * two quotes may stand before the three that end it. */
static bool toml__quotes(TomlReader *r, char quote, bool multi)
{
    size_t n = 1;

    while (multi && n < 5 && toml__peek(r, n) == quote)
        n++;
    r->at += n;
    if (!multi)
        return true;
    for (size_t i = n < 3 ? 0 : 3; i < n; i++)
        buf_addc(&r->text, quote);
    return n >= 3;
}

static bool toml__string(TomlReader *r, bool multi, Str *out)
{
    const char *from = r->at;
    char        quote = *r->at;

    buf_clear(&r->text);
    r->at += multi ? 3 : 1;
    if (multi)
        toml__newline(r);
    for (;;) {
        char c = toml__peek(r, 0);
        if (r->at == r->end || (!multi && (c == '\n' || c == '\r')))
            return toml__bad(r, from, "this string does not end");
        if (c == quote) {
            if (toml__quotes(r, quote, multi))
                break;
        } else if (c == '\\' && quote == '"') {
            if (!(multi && toml__fold(r)) && !toml__escape(r))
                return false;
        } else if (toml__newline(r)) {
            buf_addc(&r->text, '\n');
        } else {
            buf_addc(&r->text, *r->at++);
        }
    }
    *out = arena_str(r->a, buf_str(&r->text));
    return true;
}

static bool toml__multi(const TomlReader *r)
{
    return toml__peek(r, 1) == *r->at && toml__peek(r, 2) == *r->at;
}

static bool toml__bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* One part of a dotted key, and the blanks behind it. */
static bool toml__part(TomlReader *r, Str *out)
{
    const char *from = r->at;

    if (toml__peek(r, 0) == '"' || toml__peek(r, 0) == '\'') {
        if (toml__multi(r))
            return toml__bad(r, from, "a multi-line string cannot be a key");
        if (!toml__string(r, false, out))
            return false;
    } else {
        while (toml__bare(toml__peek(r, 0)))
            r->at++;
        if (r->at == from)
            return toml__bad(r, from, "expected a key");
        *out = arena_str(r->a, (Str){from, (size_t)(r->at - from)});
    }
    toml__blanks(r);
    return true;
}

/* From *table into the member `key`, which is made where it is missing. */
static bool toml__enter(TomlReader *r, TomlNode **table, Str key, bool header, const char *from)
{
    TomlNode *n = *toml__slot(r, *table, key);

    if (!n) {
        n = toml__add(r, *table, key, TOML_TABLE);
        if (!n)
            return false;
        n->v.dotted = !header;
    }
    if (n->v.type == TOML_ARRAY && !n->v.inlined && header)
        n = n->last;
    if (n->v.type != TOML_TABLE)
        return toml__bad_key(r, from, "is no table");
    if (n->v.inlined)
        return toml__bad_key(r, from, "is complete: nothing can be added to an inline table");
    if (!header && n->v.header)
        return toml__bad_key(r, from, "has a header: dotted keys cannot add to it");
    if (!header)
        n->v.dotted = true;
    *table = n;
    return true;
}

/* A dotted key below *table: *table is the table that its last part, *key,
 * belongs into. */
static bool toml__key(TomlReader *r, TomlNode **table, bool header, Str *key)
{
    for (;;) {
        const char *from = r->at;
        if (!toml__part(r, key))
            return false;
        if (toml__peek(r, 0) != '.')
            return true;
        if (!toml__enter(r, table, *key, header, from))
            return false;
        r->at++;
        toml__blanks(r);
    }
}

/* ---- numbers and dates ---- */

static size_t toml__digit(char c, unsigned base)
{
    size_t v = c >= '0' && c <= '9' ? (size_t)(c - '0')
               : c >= 'a' && c <= 'f' ? (size_t)(c - 'a' + 10)
               : c >= 'A' && c <= 'F' ? (size_t)(c - 'A' + 10) : 99;

    return v < base ? v : 99;
}

/* Take digits off the front, with single underscores between them; false when
 * there are none, or an underscore is misplaced. */
static bool toml__digits(Str *s, unsigned base)
{
    size_t i = 0;

    while (i < s->n && toml__digit(s->p[i], base) != 99) {
        i++;
        if (i + 1 < s->n && s->p[i] == '_' && toml__digit(s->p[i + 1], base) != 99)
            i++;
    }
    str_skip(s, i);
    return i > 0;
}

/* What an integer of any size is in decimal: by hand, in limbs of nine digits,
 * as many digits at once as a limb can be multiplied by. */
static Str toml__decimal(TomlReader *r, Str digits, unsigned base, bool minus)
{
    Arena     scratch = r->nodes;
    uint32_t *limbs = arena_array(&scratch, LIMIT_TOML_DIGITS / 7, sizeof *limbs);  /* 16^7 < 10^9 */
    size_t    n = 1;
    uint64_t  times = 1, plus = 0;

    for (size_t i = 0; i < digits.n; i++) {
        if (digits.p[i] != '_') {
            times *= base;
            plus = plus * base + toml__digit(digits.p[i], base);
        }
        if (times * base <= 1000000000 && i + 1 < digits.n)
            continue;
        for (size_t k = 0; k < n || plus; k++) {
            plus += limbs[k] * times;
            limbs[k] = (uint32_t)(plus % 1000000000);
            plus /= 1000000000;
            n = k < n ? n : k + 1;
        }
        times = 1;
    }
    buf_clear(&r->text);
    buf_addf(&r->text, "%s%lu", minus ? "-" : "", (unsigned long)limbs[--n]);
    while (n > 0)
        buf_addf(&r->text, "%09lu", (unsigned long)limbs[--n]);
    return arena_str(r->a, buf_str(&r->text));
}

static bool toml__integer(TomlReader *r, Str token, TomlNode *n)
{
    bool     minus = token.p[0] == '-';
    unsigned base = 10;

    if (token.p[0] == '0' && token.n > 1) {
        base = token.p[1] == 'x' ? 16 : token.p[1] == 'o' ? 8 : token.p[1] == 'b' ? 2 : 0;
        str_skip(&token, 2);
    } else if (minus || token.p[0] == '+') {
        str_skip(&token, 1);
    }
    Str rest = token;
    if (base == 0 || !toml__digits(&rest, base) || rest.n || (base == 10 && token.p[0] == '0' && token.n > 1))
        return toml__bad(r, r->at, "this is no number");
    if (token.n > LIMIT_TOML_DIGITS)
        return toml__fail(r, r->at, ERR_LIMIT, "this integer has too many digits", (Str){0});
    Str decimal = toml__decimal(r, token, base, minus);
    n->v.type = num_i64(decimal, &n->v.integer) ? TOML_INT : TOML_BIG;
    if (n->v.type == TOML_BIG)
        n->v.text = decimal;
    return true;
}

static bool toml__float(TomlReader *r, Str token, TomlNode *n)
{
    Str whole, rest = token;

    n->v.type = TOML_FLOAT;
    if (rest.p[0] == '-' || rest.p[0] == '+')
        str_skip(&rest, 1);
    bool word = str_eq(rest, STR("inf")) || str_eq(rest, STR("nan"));
    whole = rest;
    bool ok = word || toml__digits(&rest, 10);
    whole.n -= rest.n;
    ok = ok && (whole.n < 2 || whole.p[0] != '0');
    if (ok && !word && rest.n && rest.p[0] == '.') {
        str_skip(&rest, 1);
        ok = toml__digits(&rest, 10);
    }
    if (ok && !word && rest.n && (rest.p[0] == 'e' || rest.p[0] == 'E')) {
        str_skip(&rest, 1);
        if (rest.n && (rest.p[0] == '-' || rest.p[0] == '+'))
            str_skip(&rest, 1);
        ok = toml__digits(&rest, 10);
    }
    if (!ok || (!word && rest.n))
        return toml__bad(r, r->at, "this is no number");
    buf_clear(&r->text);
    for (size_t i = 0; i < token.n; i++)
        if (token.p[i] != '_')
            buf_addc(&r->text, token.p[i]);
    buf_addc(&r->text, '\0');
    n->v.real = strtod(r->text.p, NULL);
    return true;
}

/* Two digits at the front of *s, up to max. */
static bool toml__two(Str *s, int max, int *out)
{
    if (s->n < 2 || toml__digit(s->p[0], 10) == 99 || toml__digit(s->p[1], 10) == 99)
        return false;
    *out = (s->p[0] - '0') * 10 + (s->p[1] - '0');
    str_skip(s, 2);
    return *out <= max;
}

static bool toml__one(Str *s, char c)
{
    if (s->n == 0 || *s->p != c)
        return false;
    str_skip(s, 1);
    return true;
}

/* YYYY-MM-DD (RFC 3339: full-date) */
static bool toml__day(Str *s)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int century, year, month, day;

    if (!toml__two(s, 99, &century) || !toml__two(s, 99, &year) || !toml__one(s, '-') || !toml__two(s, 12, &month) ||
        !toml__one(s, '-') || !toml__two(s, 31, &day) || month == 0 || day == 0)
        return false;
    bool leap = year ? year % 4 == 0 : century % 4 == 0;
    return day <= days[month - 1] + (leap && month == 2);
}

/* HH:MM:SS, and a fraction (partial-time). A leap second is none that a
 * calendar can tell from a mistake: refused, as the other host does. */
static bool toml__time(Str *s)
{
    int n;

    if (!toml__two(s, 23, &n) || !toml__one(s, ':') || !toml__two(s, 59, &n) || !toml__one(s, ':') ||
        !toml__two(s, 59, &n))
        return false;
    if (!toml__one(s, '.'))
        return true;
    size_t digits = 0;
    while (s->n && toml__digit(*s->p, 10) != 99) {
        str_skip(s, 1);
        digits++;
    }
    return digits > 0;
}

static bool toml__offset(Str *s)
{
    int n;

    if (toml__one(s, 'Z') || toml__one(s, 'z'))
        return true;
    return (toml__one(s, '+') || toml__one(s, '-')) && toml__two(s, 23, &n) && toml__one(s, ':') && toml__two(s, 59, &n);
}

static bool toml__date(TomlReader *r, Str token, TomlNode *n)
{
    Str  rest = token;
    bool timed = token.n > 2 && token.p[2] == ':', ok = true;

    n->v.type = TOML_DATE;
    n->v.date = timed ? TOML_LOCAL_TIME : TOML_LOCAL_DATE;
    if (!timed)
        ok = toml__day(&rest);
    if (ok && (timed || rest.n)) {
        ok = (timed || toml__one(&rest, 'T') || toml__one(&rest, 't') || toml__one(&rest, ' ')) && toml__time(&rest);
        if (!timed)
            n->v.date = rest.n ? TOML_OFFSET_DATETIME : TOML_LOCAL_DATETIME;
    }
    if (ok && n->v.date == TOML_OFFSET_DATETIME)
        ok = toml__offset(&rest);
    return (ok && rest.n == 0) || toml__bad(r, r->at, "this is no date or time that exists");
}

/* What stands up to the next character that no number, word or date has. */
static Str toml__token(const TomlReader *r)
{
    size_t n = 0;

    for (;;) {
        char c = toml__peek(r, n);
        bool gap = c == ' ' && n == 10 && r->at[4] == '-' && toml__digit(toml__peek(r, 11), 10) != 99;
        if (!toml__bare(c) && c != '+' && c != '.' && c != ':' && !gap)
            return (Str){r->at, n};
        n++;
    }
}

static bool toml__scalar(TomlReader *r, TomlNode *n)
{
    Str token = toml__token(r);

    if (token.n == 0)
        return toml__bad(r, r->at, "expected a value");
    n->v.text = arena_str(r->a, token);
    if (str_eq(token, STR("true")) || str_eq(token, STR("false"))) {
        n->v.type = TOML_BOOL;
        n->v.boolean = token.n == 4;
    } else if ((token.n > 4 && token.p[4] == '-' && toml__digit(token.p[0], 10) != 99 && toml__digit(token.p[3], 10) != 99) ||
               (token.n > 2 && token.p[2] == ':')) {
        if (!toml__date(r, token, n))
            return false;
    } else {
        bool hex = token.n > 1 && token.p[0] == '0' && str_has(STR("xob"), token.p[1]);
        bool real = !hex && (str_has(token, '.') || str_has(token, 'e') || str_has(token, 'E') ||
                             str_ends(token, STR("inf")) || str_ends(token, STR("nan")));
        if (!(real ? toml__float(r, token, n) : toml__integer(r, token, n)))
            return false;
    }
    r->at += token.n;
    return true;
}

/* ---- values ---- */

static bool toml__value(TomlReader *r, TomlNode *n);

static bool toml__array(TomlReader *r, TomlNode *array)
{
    array->v.type = TOML_ARRAY;
    array->v.inlined = true;
    r->at++;
    for (;;) {
        toml__space(r);
        if (toml__peek(r, 0) == ']')
            break;
        r->key_at = (size_t)(r->at - r->start);
        TomlNode *n = toml__add(r, array, (Str){0}, TOML_STRING);
        if (!n || !toml__value(r, n))
            return false;
        toml__space(r);
        if (toml__peek(r, 0) == ']')
            break;
        if (toml__peek(r, 0) != ',')
            return toml__bad(r, r->at, "expected ',' or ']'");
        r->at++;
    }
    r->at++;
    return true;
}

/* key = value, the value at its place below `table`. */
static bool toml__pair(TomlReader *r, TomlNode *table)
{
    const char *from = r->at;
    Str         key;

    r->key_at = (size_t)(from - r->start);
    if (!toml__key(r, &table, false, &key))
        return false;
    if (*toml__slot(r, table, key))
        return toml__bad_key(r, from, "stands here a second time");
    if (toml__peek(r, 0) != '=')
        return toml__bad(r, r->at, "expected '=' behind the key");
    r->at++;
    toml__blanks(r);
    TomlNode *n = toml__add(r, table, key, TOML_STRING);
    return n && toml__value(r, n);
}

static bool toml__inline_table(TomlReader *r, TomlNode *table)
{
    table->v.type = TOML_TABLE;
    r->at++;
    toml__blanks(r);
    for (bool more = toml__peek(r, 0) != '}'; more;) {
        if (!toml__pair(r, table))
            return false;
        toml__blanks(r);
        more = toml__peek(r, 0) == ',';
        if (!more && toml__peek(r, 0) != '}')
            return toml__bad(r, r->at, "expected ',' or '}' on the same line");
        r->at += more;
        toml__blanks(r);
    }
    table->v.inlined = true;
    r->at++;
    return true;
}

static bool toml__value(TomlReader *r, TomlNode *n)
{
    char   c = toml__peek(r, 0);
    bool   ok;

    n->v.at = (size_t)(r->at - r->start);
    if (c == '[') {
        ok = toml__array(r, n);
    } else if (c == '{') {
        ok = toml__inline_table(r, n);
    } else if (c == '"' || c == '\'') {
        n->v.type = TOML_STRING;
        ok = toml__string(r, toml__multi(r), &n->v.text);
    } else {
        ok = toml__scalar(r, n);
    }
    n->v.end = (size_t)(r->at - r->start);
    return ok;
}

/* ---- the document ---- */

static bool toml__define(TomlReader *r, TomlNode *table, Str key, bool many, const char *from)
{
    TomlNode *n = *toml__slot(r, table, key);

    if (n && many && (n->v.type != TOML_ARRAY || n->v.inlined))
        return toml__bad_key(r, from, "is there already, and is no array of tables");
    if (n && !many && (n->v.type != TOML_TABLE || n->v.inlined || n->v.dotted || n->v.header))
        return toml__bad_key(r, from, "is there already");
    if (!n)
        n = toml__add(r, table, key, many ? TOML_ARRAY : TOML_TABLE);
    if (n && many)
        n = toml__add(r, n, (Str){0}, TOML_TABLE);
    if (!n)
        return false;
    n->v.header = true;
    r->body = n;
    return true;
}

static bool toml__header(TomlReader *r)
{
    TomlNode   *table = r->body;
    bool        many = toml__peek(r, 1) == '[';
    const char *from;
    Str         key;

    while (table->table)
        table = table->table;
    r->key_at = (size_t)(r->at - r->start);
    r->body->v.end = (size_t)(r->line - r->start);
    r->at += many ? 2 : 1;
    toml__blanks(r);
    from = r->at;
    if (!toml__key(r, &table, true, &key) || !toml__define(r, table, key, many, from))
        return false;
    if (toml__peek(r, 0) != ']' || (many && toml__peek(r, 1) != ']'))
        return toml__bad(r, r->at, many ? "expected ']]'" : "expected ']'");
    r->at += many ? 2 : 1;
    r->body->v.key_at = r->key_at;
    if (!toml__line_end(r))
        return false;
    r->body->v.at = (size_t)(r->at - r->start);
    return true;
}

static bool toml__document(TomlReader *r)
{
    while (r->at < r->end) {
        r->line = r->at;
        toml__blanks(r);
        char c = toml__peek(r, 0);
        if (c == '[') {
            if (!toml__header(r))
                return false;
        } else if ((r->at < r->end && c != '#' && c != '\n' && c != '\r' && !toml__pair(r, r->body)) ||
                   !toml__line_end(r)) {
            return false;
        }
    }
    r->body->v.end = (size_t)(r->end - r->start);
    return true;
}

/* What may stand nowhere, not even in a comment. */
static bool toml__characters(TomlReader *r)
{
    Str    text = {r->start, (size_t)(r->end - r->start)};
    size_t good = utf8_good(text);

    for (size_t i = 0; i < good; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == '\r' && (i + 1 == good || text.p[i + 1] != '\n'))
            return toml__bad(r, text.p + i, "a carriage return without a line feed");
        if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
            return toml__bad(r, text.p + i, "a control character");
    }
    return good == text.n || toml__bad(r, text.p + good, "this is not UTF-8");
}

/* As deep as the document is, which has a limit. */
static void toml__finish(const TomlNode *n, Arena *a, Toml *out)
{
    *out = n->v;
    if (n->v.type != TOML_TABLE && n->v.type != TOML_ARRAY)
        return;
    Toml  *items = arena_array(a, n->v.count, sizeof *items);
    Str   *keys = n->v.type == TOML_TABLE ? arena_array(a, n->v.count, sizeof *keys) : NULL;
    size_t i = 0;
    for (const TomlNode *m = n->first; m; m = m->next, i++) {
        toml__finish(m, a, &items[i]);
        if (keys)
            keys[i] = m->key;
    }
    out->items = items;
    out->keys = keys;
}

bool toml_parse(Str text, Arena *a, const Toml **out, Err *err)
{
    if (text.n == 0)
        text = STR("");         /* not NULL, for sums with pointers */
    if (text.n > LIMIT_TOML_BYTES)
        return err_set(err, ERR_LIMIT, E0000, "%zu bytes, more than %zu", text.n, LIMIT_TOML_BYTES);
    TomlReader r = {.start = text.p, .at = text.p, .end = text.p + text.n, .a = a, .err = err};
    /* A value has two bytes of text, but for arrays that are still open; and
     * toml__decimal() wants some room. */
    size_t values = text.n / 2 + LIMIT_TOML_DEPTH;
    values = 8 + (values < LIMIT_TOML_VALUES ? values : LIMIT_TOML_VALUES);
    r.nodes = arena_make(values * (sizeof(TomlNode) + 16) + LIMIT_TOML_DIGITS);
    r.text = buf_make(LIMIT_TOML_BYTES + 1);
    r.body = arena_new(&r.nodes, TomlNode);
    r.body->v.type = TOML_TABLE;
    r.body->v.header = true;
    const TomlNode *root = r.body;
    bool ok = toml__characters(&r) && toml__document(&r);
    if (ok) {
        Toml *doc = arena_new(a, Toml);
        toml__finish(root, a, doc);
        *out = doc;
    }
    buf_free(&r.text);
    arena_free(&r.nodes);
    return ok;
}

/* ---- looking ---- */

const Toml *toml_get_str(const Toml *table, Str key)
{
    if (table && table->type == TOML_TABLE)
        for (uint32_t i = 0; i < table->count; i++)
            if (str_eq(table->keys[i], key))
                return &table->items[i];
    return NULL;
}

const Toml *toml_get(const Toml *table, const char *key)
{
    return toml_get_str(table, str_from(key));
}

Str toml_str(const Toml *v)
{
    return v && v->type == TOML_STRING ? v->text : (Str){0};
}
