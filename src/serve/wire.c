#include "serve/wire.h"

#include "base/limits.h"
#include "base/str.h"

/* ---- reading ---- */

WireReader wire_reader(size_t limit)
{
    return (WireReader){.line = buf_make(limit)};
}

void wire_free(WireReader *r)
{
    buf_free(&r->line);
}

/* Whether the line says anything; *out is filled in if so. */
static bool wire__given(WireReader *r, WireLine *out)
{
    Str text = buf_str(&r->line);

    r->given = true;
    if (text.n && text.p[text.n - 1] == '\r')
        text.n--;
    *out = (WireLine){text, r->skipping};
    r->skipping = false;
    return out->too_long || str_trim(text).n > 0;
}

static void wire__gather(WireReader *r, Str bytes)
{
    if (r->skipping)
        return;
    size_t room = r->line.limit - r->line.n;
    r->skipping = bytes.n > room;
    if (!r->skipping) {
        buf_add(&r->line, bytes);
        return;
    }
    /* Its beginning is enough from here on; the rest is not held. */
    size_t keep = r->line.limit < LIMIT_SERVE_BEGIN ? r->line.limit : LIMIT_SERVE_BEGIN;
    Buf    begin = buf_make(r->line.limit);
    buf_add(&begin, (Str){r->line.p, r->line.n < keep ? r->line.n : keep});
    keep -= begin.n;
    buf_add(&begin, (Str){bytes.p, bytes.n < keep ? bytes.n : keep});
    buf_free(&r->line);
    r->line = begin;
}

Step wire_next(WireReader *r, Str *in, WireLine *out)
{
    while (in->n) {
        if (r->given) {
            buf_clear(&r->line);
            r->given = false;
        }
        size_t n = str_find(*in, '\n');
        bool   whole = n < in->n;
        wire__gather(r, (Str){in->p, n});
        str_skip(in, whole ? n + 1 : n);
        if (whole && wire__given(r, out))
            return STEP_DONE;
    }
    return STEP_MORE;
}

bool wire_last(WireReader *r, WireLine *out)
{
    if (r->given || (r->line.n == 0 && !r->skipping))
        return false;
    return wire__given(r, out);
}

/* Move past a string whose opening quote is gone. False: it is cut. */
static bool wire__string(Str *s)
{
    while (s->n && s->p[0] != '"')
        str_skip(s, s->p[0] == '\\' && s->n > 1 ? 2 : 1);
    if (!s->n)
        return false;
    str_skip(s, 1);
    return true;
}

static void wire__blanks(Str *s)
{
    while (s->n && strchr(" \t\r\n", s->p[0]))
        str_skip(s, 1);
}

/* Move past a value: up to the comma or brace that is not inside it. */
static bool wire__value(Str *s)
{
    int depth = 0;

    while (s->n) {
        char c = s->p[0];
        if (depth == 0 && (c == ',' || c == '}'))
            return true;
        str_skip(s, 1);
        if (c == '"' && !wire__string(s))
            return false;
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    }
    return false;
}

Str wire_find_id(Str s)
{
    wire__blanks(&s);
    if (!s.n || s.p[0] != '{')
        return (Str){0};
    do {
        str_skip(&s, 1);
        wire__blanks(&s);
        Str key = s;
        if (!s.n || s.p[0] != '"')
            break;
        str_skip(&s, 1);
        if (!wire__string(&s))
            break;
        key.n -= s.n;
        wire__blanks(&s);
        if (!s.n || s.p[0] != ':')
            break;
        str_skip(&s, 1);
        Str value = s;
        if (!wire__value(&s))
            break;
        value.n -= s.n;
        if (str_eq(key, STR("\"id\"")))
            return str_trim(value);
    } while (s.n && s.p[0] == ',');
    return (Str){0};
}

/* ---- writing ---- */

static WireOut wire__begin(Buf *to)
{
    WireOut w = {.to = to, .from = to->n};

    w.json = json_out(to, JSON_COMPACT);
    json_begin(&w.json, '{');
    json_key(&w.json, "jsonrpc");
    json_put_str(&w.json, STR("2.0"));
    return w;
}

/* The id goes back as it came: a number, a string, or null. */
static void wire__id(WireOut *w, Str id)
{
    json_key(&w->json, "id");
    json_put_digits(&w->json, id.n ? id : STR("null"));
}

WireOut wire_answer(Buf *to, Str id)
{
    WireOut w = wire__begin(to);

    wire__id(&w, id);
    json_key(&w.json, "result");
    return w;
}

WireOut wire_notification(Buf *to, const char *method)
{
    WireOut w = wire__begin(to);

    json_key(&w.json, "method");
    json_put_str(&w.json, str_from(method));
    json_key(&w.json, "params");
    return w;
}

bool wire_end(WireOut *w)
{
    json_end(&w->json, '}');
    buf_addc(w->to, '\n');
    if (!w->to->over && w->to->n - w->from <= LIMIT_SERVE_LINE)
        return true;
    w->to->n = w->from;
    w->to->over = false;
    return false;
}

static void wire__member(JsonOut *json, const char *key, const char *value)
{
    if (!value || !value[0])
        return;
    json_key(json, key);
    json_put_str(json, str_from(value));
}

void wire_error(Buf *to, Str id, const WireError *e)
{
    WireOut w = wire__begin(to);

    wire__id(&w, id);
    json_key(&w.json, "error");
    json_begin(&w.json, '{');
    json_key(&w.json, "code");
    json_put_int(&w.json, e->code);
    wire__member(&w.json, "message", e->message);
    if ((e->sdk_code && e->sdk_code[0]) || (e->suggestion && e->suggestion[0]) || e->feature) {
        json_key(&w.json, "data");
        json_begin(&w.json, '{');
        wire__member(&w.json, "sdk_code", e->sdk_code);
        wire__member(&w.json, "suggestion", e->suggestion);
        if (e->feature) {
            json_key(&w.json, "details");
            json_begin(&w.json, '{');
            wire__member(&w.json, "feature", e->feature);
            json_end(&w.json, '}');
        }
        json_end(&w.json, '}');
    }
    json_end(&w.json, '}');
    if (!wire_end(&w))
        BUG("an error of EPP that fits no line");
}

/* What code of EPP leads back to a code of ours, and whether hosts take the
 * code beside it. Others are -32000. */
static const struct { const char *ours; int code; bool sdk; } wire__codes[] = {
    {"E1000", WIRE_DENIED, false},      {"E1001", WIRE_DENIED, true},      {"E1002", WIRE_DENIED, true},
    {"E1003", WIRE_DENIED, true},       {"E1004", WIRE_DENIED, true},      {"E9001", WIRE_DENIED, false},
    {"E2001", WIRE_NOT_FOUND, true},    {"E2009", WIRE_NOT_FOUND, true},   {"E4001", WIRE_NOT_FOUND, true},
    {"E8005", WIRE_NOT_FOUND, false},   {"E8004", WIRE_NO_FEATURE, false}, {"E2002", WIRE_QUOTA, false},
    {"E5001", WIRE_UNREACHABLE, false}, {"E8022", WIRE_UNREACHABLE, false},
    {"E8002", WIRE_CONFIG, false},      {"E8012", WIRE_CONFIG, false},
    {"E2003", WIRE_FAILED, true},       {"E3001", WIRE_FAILED, true},      {"E4002", WIRE_FAILED, true},
    {"E5000", WIRE_FAILED, true},
};

WireError wire_from(const abx_error *e)
{
    WireError w = {.code = WIRE_FAILED, .message = e->message, .suggestion = e->suggestion};

    for (size_t i = 0; i < COUNT_OF(wire__codes); i++)
        if (strcmp(wire__codes[i].ours, e->code) == 0) {
            w.code = wire__codes[i].code;
            w.sdk_code = wire__codes[i].sdk ? e->code : NULL;
        }
    return w;
}
