#include "host/coerce.h"

#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/json.h"
#include <float.h>
#include <stdlib.h>

/* ---- text ---- */

/* Digits, with single underscores between them: how many bytes. */
static size_t coerce__digits(Str s)
{
    size_t n = 0;

    while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') ||
                       (s.p[n] == '_' && n > 0 && n + 1 < s.n && s.p[n + 1] >= '0' && s.p[n + 1] <= '9')))
        n++;
    return n;
}

/* A copy without underscores and without a plus in front. */
static Str coerce__plain(Str s, Arena *a)
{
    char *p = arena_alloc(a, s.n + 1);
    Str   out = {p, 0};

    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != '_' && !(i == 0 && s.p[i] == '+'))
            p[out.n++] = s.p[i];
    return out;
}

static bool coerce__sign(Str *s)
{
    if (s->n == 0 || (s->p[0] != '+' && s->p[0] != '-'))
        return false;
    str_skip(s, 1);
    return true;
}

static bool coerce__int(Str s, Arena *a, Str *out)
{
    Str     rest = s;
    int64_t v;

    coerce__sign(&rest);
    size_t digits = coerce__digits(rest);
    size_t whole = s.n - rest.n + digits;
    str_skip(&rest, digits);
    if (rest.n && rest.p[0] == '.' && !str_has((Str){s.p, whole}, '_')) {
        str_skip(&rest, 1);
        while (rest.n && rest.p[0] == '0')
            str_skip(&rest, 1);
    }
    if (digits == 0 || rest.n || !num_i64(coerce__plain((Str){s.p, whole}, a), &v))
        return false;
    *out = arena_fmt(a, "%lld", (long long)v);
    return true;
}

static Str coerce__real(double v, Arena *a)
{
    if (v != v)
        return STR("nan");
    if (v > DBL_MAX || v < -DBL_MAX)
        return v < 0 ? STR("-inf") : STR("inf");
    Buf     text = buf_make(64);
    JsonOut w = json_out(&text, JSON_COMPACT);
    json_put_real(&w, v);
    Str out = arena_str(a, buf_str(&text));
    buf_free(&text);
    return out;
}

static bool coerce__float(Str s, Arena *a, Str *out)
{
    static const Str words[] = {{"inf", 3}, {"infinity", 8}, {"nan", 3}};
    Str rest = s;

    coerce__sign(&rest);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (str_eq_nocase(rest, words[i])) {
            *out = i == 2 ? STR("nan") : s.p[0] == '-' ? STR("-inf") : STR("inf");
            return true;
        }
    size_t digits = coerce__digits(rest);
    str_skip(&rest, digits);
    if (rest.n && rest.p[0] == '.') {
        str_skip(&rest, 1);
        size_t more = coerce__digits(rest);
        str_skip(&rest, more);
        digits += more;
    }
    if (digits == 0)
        return false;
    if (rest.n && (rest.p[0] == 'e' || rest.p[0] == 'E')) {
        str_skip(&rest, 1);
        coerce__sign(&rest);
        digits = coerce__digits(rest);
        str_skip(&rest, digits);
    }
    if (digits == 0 || rest.n)
        return false;
    *out = coerce__real(strtod(coerce__plain(s, a).p, NULL), a);
    return true;
}

static bool coerce__bool(Str s, Str *out)
{
    static const char *const words[] = {"true", "1", "yes", "on", "false", "0", "no", "off"};

    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (str_eq_nocase(s, str_from(words[i]))) {
            *out = i < 4 ? STR("true") : STR("false");
            return true;
        }
    return false;
}

static bool coerce__choice(Str s, const char *const *choices, Arena *a, Str *out)
{
    for (size_t i = 0; choices && choices[i]; i++)
        if (str_eq_nocase(s, str_from(choices[i]))) {
            *out = str_from(choices[i]);
            return true;
        }
    *out = arena_str(a, s);
    return !choices;
}

bool coerce_text(FieldType type, const char *const *choices, Str raw, Arena *a, Str *out)
{
    Str s = utf8_trim(raw);

    if (s.n == 0)
        return false;
    switch (type) {
    case FIELD_INT:
        return coerce__int(s, a, out);
    case FIELD_FLOAT:
        return coerce__float(s, a, out);
    case FIELD_BOOL:
        return coerce__bool(s, out);
    case FIELD_ENUM:
        return coerce__choice(s, choices, a, out);
    case FIELD_STR:
    case FIELD_URL:
    case FIELD_PATH:
    case FIELD_CSV:
    case FIELD_JSON:
        break;
    }
    *out = arena_str(a, s);
    return true;
}

/* ---- values of a document ---- */

/* A date or time as Python prints it: a blank for the T, an offset for the Z,
 * six digits of a second or none. */
static Str coerce__date(Str s, Arena *a)
{
    char  *p = arena_alloc(a, s.n + 16);
    size_t n = 0, i = 0;

    for (; i < s.n && s.p[i] != '.' && s.p[i] != '+' && !(i > 10 && s.p[i] == '-') && s.p[i] != 'Z' && s.p[i] != 'z'; i++)
        p[n++] = s.p[i] == 'T' || s.p[i] == 't' ? ' ' : s.p[i];
    if (i < s.n && s.p[i] == '.') {
        bool zero = true;
        p[n] = '.';
        for (size_t k = 1; k <= 6; k++) {
            bool digit = i + 1 < s.n && s.p[i + 1] >= '0' && s.p[i + 1] <= '9';
            p[n + k] = digit ? s.p[++i] : '0';
            zero = zero && p[n + k] == '0';
        }
        n += zero ? 0 : 7;
        for (i++; i < s.n && s.p[i] >= '0' && s.p[i] <= '9';)
            i++;
    }
    Str zone = str_from_to(s, i, s.n);
    if (str_eq_nocase(zone, STR("Z")) || str_eq(zone, STR("-00:00")))
        zone = STR("+00:00");
    memcpy(p + n, zone.p ? zone.p : "", zone.n);
    return (Str){p, n + zone.n};
}

/* False: a list, a table, or an integer that is too large. */
static bool coerce__scalar(const Toml *v, Arena *a, Str *out)
{
    switch (v->type) {
    case TOML_STRING:
        *out = v->text;
        return true;
    case TOML_INT:
        *out = arena_fmt(a, "%lld", (long long)v->integer);
        return true;
    case TOML_FLOAT:
        *out = coerce__real(v->real, a);
        return true;
    case TOML_BOOL:
        *out = v->boolean ? STR("true") : STR("false");
        return true;
    case TOML_DATE:
        *out = coerce__date(v->text, a);
        return true;
    case TOML_BIG:
    case TOML_ARRAY:
    case TOML_TABLE:
        break;
    }
    return false;
}

static bool coerce__list(const Toml *v, Arena *a, Str *out)
{
    Buf  all = buf_make(LIMIT_CONFIG);
    bool ok = true;

    for (size_t i = 0; ok && i < v->count; i++) {
        Str one;
        ok = v->items[i].type != TOML_DATE && coerce__scalar(&v->items[i], a, &one);
        if (ok && i)
            buf_addc(&all, ',');
        if (ok)
            buf_add(&all, one);
    }
    if (ok)
        *out = arena_str(a, buf_str(&all));
    buf_free(&all);
    return ok;
}

bool coerce_toml(FieldType type, const char *const *choices, const Toml *v, Arena *a, Str *out)
{
    Str text;

    if (!v || !(v->type == TOML_ARRAY && type == FIELD_CSV ? coerce__list(v, a, &text) : coerce__scalar(v, a, &text)))
        return false;
    return coerce_text(type, choices, text, a, out);
}

static void coerce__json(const Toml *v, Arena *a, JsonOut *w)
{
    Str text = {0};

    if (v->type == TOML_ARRAY || v->type == TOML_TABLE) {
        json_begin(w, v->type == TOML_ARRAY ? '[' : '{');
        for (size_t i = 0; i < v->count; i++) {
            if (v->type == TOML_TABLE)
                json_key_str(w, v->keys[i]);
            coerce__json(&v->items[i], a, w);
        }
        json_end(w, v->type == TOML_ARRAY ? ']' : '}');
        return;
    }
    coerce__scalar(v, a, &text);
    if (v->type == TOML_BIG)
        text = v->text;
    bool finite = v->type == TOML_FLOAT && v->real >= -DBL_MAX && v->real <= DBL_MAX;
    if (v->type == TOML_INT || finite)
        json_put(w, &(Json){.type = JSON_REAL, .text = text});
    else if (v->type == TOML_BOOL)
        json_put_bool(w, v->boolean);
    else
        json_put_str(w, text);
}

bool coerce_as_is(const Toml *v, Arena *a, FieldType *type, Str *out)
{
    static const FieldType types[] = {
        [TOML_STRING] = FIELD_STR, [TOML_INT] = FIELD_INT, [TOML_FLOAT] = FIELD_FLOAT, [TOML_BOOL] = FIELD_BOOL,
        [TOML_DATE] = FIELD_STR, [TOML_BIG] = FIELD_INT, [TOML_ARRAY] = FIELD_JSON, [TOML_TABLE] = FIELD_JSON,
    };

    *type = types[v->type];
    if (*type != FIELD_JSON)
        return coerce__scalar(v, a, out);
    Buf     text = buf_make(LIMIT_CONFIG);
    JsonOut w = json_out(&text, JSON_COMPACT);
    coerce__json(v, a, &w);
    *out = arena_str(a, buf_str(&text));
    buf_free(&text);
    return true;
}

const char *coerce_kind(FieldType type)
{
    switch (type) {
    case FIELD_INT:
        return "a whole number of 64 bits";
    case FIELD_FLOAT:
        return "a number";
    case FIELD_BOOL:
        return "true or false";
    case FIELD_ENUM:
        return "one of its choices";
    case FIELD_STR:
    case FIELD_URL:
    case FIELD_PATH:
    case FIELD_CSV:
    case FIELD_JSON:
        break;
    }
    return "text";
}
