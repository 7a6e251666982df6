#include "vectors.h"

#include "base/utf8.h"
#include "data/clean.h"
#include "guard.h"

/* docs/differences.md, row 11: OSC strings and C1 controls go whole, and what
 * goes goes before secrets are looked for. */
static bool sanitize_row_11(Str text, size_t secrets)
{
    uint32_t c, before = 0;
    bool     any = false;

    for (; text.n; before = c) {
        utf8_next(&text, &c);
        any = any || (c >= 0x80 && c < 0xa0) || (before == 0x1b && c == ']') ||
              (secrets && (c < 0x20 || c == 0x7f));
    }
    return any;
}

static size_t sanitize_length(Str s)
{
    size_t   n = 0;
    uint32_t c;

    for (; s.n; n++)
        utf8_next(&s, &c);
    return n;
}

/* What stays true where the answer is our own. */
static bool sanitize_safe(Str out, const Str *secrets, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t at = 0; sanitize_length(secrets[i]) >= 4 && at + secrets[i].n <= out.n; at++)
            if (memcmp(out.p + at, secrets[i].p, secrets[i].n) == 0)
                return false;
    while (out.n) {
        uint32_t c;
        utf8_next(&out, &c);
        if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || (c >= 0x7f && c < 0xa0))
            return false;
    }
    return true;
}

static bool sanitize_vector(Vector *v)
{
    const Json *list = json_get(v->row, "secrets");
    Str         text = json_str(json_get(v->row, "text")), want = json_str(json_get(v->row, "out"));
    Str        *secrets = arena_array(v->a, json_count(list), sizeof *secrets);

    for (size_t i = 0; i < json_count(list); i++)
        secrets[i] = json_str(json_at(list, i));
    Str got = clean_text(guard_copy(text), secrets, json_count(list), v->a);
    if (str_eq(got, want))
        return true;
    if (sanitize_row_11(text, json_count(list)) && sanitize_safe(got, secrets, json_count(list)))
        return vector_differs(v, 11);
    return vector_fail(v, "<%.*s>, not <%.*s>", STR_ARG(got), STR_ARG(want));
}
