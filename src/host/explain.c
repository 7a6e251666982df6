#include "host/explain.h"

#include "base/str.h"
#include "base/utf8.h"
#include "host/keys.h"

static bool explain__generic(size_t i)
{
    return i >= KEYS_GENERIC && i < KEYS_GENERIC + CONFIG_GENERIC;
}

const ExplainRow *explain_all(const Config *c, const ConfigSchema *s, Arena *a, size_t *n)
{
    const ConfigField *core;
    size_t             cores = 0;

    while (keys_core(cores))
        cores++;
    ExplainRow *rows = arena_array(a, cores + s->count, sizeof *rows);
    *n = 0;
    for (size_t i = 0; (core = keys_core(i)) != NULL; i++) {
        ExplainRow *r = &rows[*n];
        *r = (ExplainRow){.field = *core};
        r->v = explain__generic(i) ? config_field(c, s, str_from(core->key), a) : config_core(c, core->key, a);
        /* One that it does not inherit can be derived all the same. */
        *n += !explain__generic(i) || r->v.value.p || config_has(s, str_from(core->key), &r->field);
    }
    for (size_t i = 0; i < s->count; i++)
        rows[(*n)++] = (ExplainRow){s->fields[i], config_field(c, s, str_from(s->fields[i].key), a), true};
    return rows;
}

Str explain_mask(Str secret, Arena *a)
{
    size_t   chars = 0, from = 0;
    uint32_t c;

    for (Str rest = secret; rest.n; chars++)
        utf8_next(&rest, &c);
    if (chars <= 8)
        return STR("****");
    for (Str rest = secret; chars > 4; chars--, from = secret.n - rest.n)
        utf8_next(&rest, &c);
    return arena_fmt(a, "****%.*s", STR_ARG(str_from_to(secret, from, secret.n)));
}

void explain_json(JsonOut *w, FieldType type, Str value)
{
    bool number = (type == FIELD_INT || type == FIELD_FLOAT) && !str_ends(value, STR("inf")) && !str_eq(value, STR("nan"));

    if (number || type == FIELD_JSON)
        json_put(w, &(Json){.type = JSON_REAL, .text = value});
    else if (type == FIELD_BOOL)
        json_put_bool(w, str_eq(value, STR("true")));
    else
        json_put_str(w, value);
}

Str explain_source(ConfigLayer layer)
{
    return layer == CONFIG_DEFAULT ? STR("default") : config_source(layer);
}
