#include "vectors.h"

#include "base/base64.h"
#include "guard.h"
#include "host/consented.h"
#include "host/manifest.h"
#include <stdlib.h>

static Str manifest_vector_text(const Json *row, Arena *a)
{
    const Json *parts = json_get(row, "toml_parts");
    Str         text = json_str(json_get(row, "toml"));
    Buf         all = buf_make((size_t)16 << 20);

    if (json_get(row, "toml_b64") && !base64_decode(a, json_str(json_get(row, "toml_b64")), &text))
        abort();
    for (size_t i = 0; i < json_count(parts); i++)
        for (int64_t n = json_int(json_at(json_at(parts, i), 1), 0); n > 0; n--)
            buf_add(&all, json_str(json_at(json_at(parts, i), 0)));
    if (parts)
        text = arena_str(a, buf_str(&all));
    buf_free(&all);
    return text;
}

static bool manifest_vector_feed(Str s)
{
    return s.n > 1 && s.p[s.n - 1] == '\n';
}

/* docs/differences.md, row 1: a name that ends in a line feed. */
static bool manifest_vector_row_1(const Toml *doc)
{
    const Toml *fields = toml_get(toml_get(doc, "config"), "fields");
    const Toml *passed = toml_get(toml_get(doc, "security"), "env_passthrough");
    bool        any = manifest_vector_feed(toml_str(toml_get(toml_get(doc, "provider"), "id")));

    for (uint32_t i = 0; fields && i < fields->count; i++)
        any = any || manifest_vector_feed(fields->keys[i]);
    for (uint32_t i = 0; passed && i < passed->count; i++)
        any = any || manifest_vector_feed(toml_str(&passed->items[i]));
    return any;
}

/* What the other host accepts and this one refuses: the row, or 0. */
static int manifest_vector_row(Str text, const char *said, Arena *a)
{
    const Toml *doc;
    Err         err;

    if (!toml_parse(text, a, &doc, &err))
        return 0;
    if (manifest_vector_row_1(doc))
        return 1;
    if (strstr(said, "compat.requires."))
        return 4;
    return strstr(said, "endpoint.derive.sandbox_") ? 21 : 0;
}

static bool manifest_vector_summary(Vector *v, const Manifest *m)
{
    const Json *want = json_get(v->row, "summary");
    Buf         got = buf_make((size_t)4 << 20), other = buf_make((size_t)4 << 20);
    bool        same = true;

    for (int sorted = 0; want && same && sorted < 2; sorted++) {
        JsonOut w = json_out(&got, JSON_PRETTY), o = json_out(&other, JSON_PRETTY);
        buf_clear(&got);
        buf_clear(&other);
        consented_put(m, &w, sorted);
        if (sorted)
            json_put_sorted(&o, want);
        else
            json_put(&o, want);
        same = str_eq(buf_str(&got), buf_str(&other)) || vector_fail(v, "summary %d: %.*s", sorted, STR_ARG(buf_str(&got)));
    }
    buf_free(&got);
    buf_free(&other);
    return same;
}

static bool manifest_vector_good(Vector *v, const Manifest *m)
{
    const Json *ms = json_get(v->row, "timeouts_ms");
    Str         kind = manifest_kind_word(m->kind);

    if (!str_eq(m->id, json_str(json_get(v->row, "id"))) || !str_eq(m->version, json_str(json_get(v->row, "version"))) ||
        !str_eq(kind, json_str(json_get(v->row, "kind"))) || !str_eq(m->name, json_str(json_get(v->row, "display_name"))) ||
        !str_eq(str_from(m->sha256), json_str(json_get(v->row, "sha256"))) || m->startup_ms != json_int(json_at(ms, 0), -1) ||
        m->call_ms != json_int(json_at(ms, 1), -1))
        return vector_fail(v, "id %.*s, version %.*s, kind %.*s, name %.*s, %d and %d ms, %s", STR_ARG(m->id), STR_ARG(m->version),
                           STR_ARG(kind), STR_ARG(m->name), (int)m->startup_ms, (int)m->call_ms, m->sha256);
    return manifest_vector_summary(v, m);
}

static bool manifest_vector(Vector *v)
{
    Str         text = manifest_vector_text(v->row, v->a), stage = json_str(json_get(v->row, "stage"));
    const Toml *doc;
    Manifest    m;
    Err         err = {0}, syntax = {0};
    char        code[6];
    bool        ok = manifest_parse(guard_copy(text), STR("F"), v->a, &m, &err);

    if (ok != json_bool(json_get(v->row, "ok"), !ok)) {
        int row = ok ? 0 : manifest_vector_row(text, err.text, v->a);
        return row && err.code == E8014 ? vector_differs(v, row) :
               vector_fail(v, "%.*s: %s", STR_ARG(json_str(json_get(v->row, "name"))), ok ? "accepted" : err.text);
    }
    if (ok)
        return manifest_vector_good(v, &m);
    code_name(err.code, code);
    bool read = toml_parse(text, v->a, &doc, &syntax);
    if (!str_eq(str_from(code), json_str(json_get(v->row, "code"))) || read != !str_eq(stage, STR("syntax")) ||
        strncmp(err.text, "F: ", 3) != 0)
        return vector_fail(v, "%s %s, not %.*s", code, err.text, STR_ARG(json_str(json_get(v->row, "code"))));
    return true;
}
