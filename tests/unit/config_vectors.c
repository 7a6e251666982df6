#include "vectors.h"

#include "base/base64.h"
#include "host/coerce.h"
#include "host/keys.h"
#include "host/registry.h"
#include <math.h>
#include <stdlib.h>

static Str config_vector_text(const Json *v)
{
    if (v->type == JSON_BOOL)
        return v->boolean ? STR("true") : STR("false");
    return v->type == JSON_NULL || v->type == JSON_OBJECT || v->type == JSON_ARRAY ? (Str){0} : v->text;
}

static const char *const *config_vector_strings(const Json *array, Arena *a)
{
    const char **v = arena_array(a, json_count(array) + 1, sizeof *v);

    for (size_t i = 0; i < json_count(array); i++)
        v[i] = json_str(json_at(array, i)).p;
    return v;
}

static FieldType config_vector_type(Str name)
{
    static const struct { Str name; FieldType type; } types[] = {
        {{"string", 6}, FIELD_STR}, {{"str", 3}, FIELD_STR}, {{"path", 4}, FIELD_PATH}, {{"url", 3}, FIELD_URL},
        {{"int", 3}, FIELD_INT}, {{"float", 5}, FIELD_FLOAT}, {{"bool", 4}, FIELD_BOOL}, {{"csv", 3}, FIELD_CSV},
        {{"enum", 4}, FIELD_ENUM}, {{"", 0}, FIELD_STR},
    };

    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (str_eq(types[i].name, name))
            return types[i].type;
    return FIELD_STR;
}

static bool config_vector_inherits(const Json *provider, Str key)
{
    const Json *list = json_get(provider, "inherit");

    for (size_t i = 0; i < json_count(list); i++)
        if (str_eq(json_str(json_at(list, i)), key))
            return true;
    return false;
}

/* A JSON value as the same value of a TOML document. Null is none. */
static const Toml *config_vector_toml(const Json *v, Arena *a)
{
    static const TomlType types[] = {[JSON_BOOL] = TOML_BOOL, [JSON_INT] = TOML_INT, [JSON_REAL] = TOML_FLOAT,
                                     [JSON_STRING] = TOML_STRING, [JSON_ARRAY] = TOML_ARRAY, [JSON_OBJECT] = TOML_TABLE};
    Toml *t = arena_new(a, Toml);

    if (!v || v->type == JSON_NULL)
        return NULL;
    *t = (Toml){.type = types[v->type], .boolean = json_bool(v, false), .integer = json_int(v, 0), .real = json_real(v, 0),
                .text = json_str(v)};
    if (v->type != JSON_ARRAY && v->type != JSON_OBJECT)
        return t;
    Toml *items = arena_array(a, v->count, sizeof *items);
    for (size_t i = 0; i < v->count; i++) {
        const Toml *one = config_vector_toml(&v->items[i], a);
        items[i] = one ? *one : (Toml){.type = TOML_TABLE};
    }
    t->items = items;
    t->count = v->count;
    t->keys = v->type == JSON_OBJECT ? v->keys : NULL;
    return t;
}

static const Pair *config_vector_pairs(const Json *object, Arena *a)
{
    Pair *v = arena_array(a, json_count(object), sizeof *v);

    for (size_t i = 0; i < json_count(object); i++)
        v[i] = (Pair){object->keys[i], json_str(&object->items[i])};
    return v;
}

static ConfigSchema config_vector_schema(const Json *provider, Arena *a)
{
    RegistryRow  row;
    const Json  *fields = json_get(provider, "fields"), *fixed = json_get(provider, "endpoint_defaults");
    const Json  *derive = json_get(provider, "derive");
    ConfigField *f = arena_array(a, json_count(fields), sizeof *f);

    if (provider->type == JSON_STRING) {
        return registry_row(0, a, &row) ? row.schema : (ConfigSchema){0};
    }
    for (size_t i = 0; i < json_count(fields); i++) {
        const Json *in = json_at(fields, i);
        f[i] = (ConfigField){.key = json_str(json_get(in, "key")).p, .type = config_vector_type(json_str(json_get(in, "type"))),
                             .secret = json_bool(json_get(in, "secret"), false), .env = config_vector_strings(json_get(in, "env"), a),
                             .choices = json_get(in, "choices") ? config_vector_strings(json_get(in, "choices"), a) : NULL,
                             .own_default = config_vector_toml(json_get(in, "default"), a)};
    }
    return (ConfigSchema){
        .id = json_str(json_get(provider, "id")), .fields = f, .count = json_count(fields),
        .inherits_api_key = config_vector_inherits(provider, STR("sandbox_api_key")),
        .inherits_base_url = config_vector_inherits(provider, STR("sandbox_base_url")),
        .inherits_domain = config_vector_inherits(provider, STR("sandbox_domain")),
        .base_url = json_str(json_get(fixed, "sandbox_base_url")).p, .domain = json_str(json_get(fixed, "sandbox_domain")).p,
        .derive = config_vector_pairs(derive, a), .derive_count = json_count(derive),
    };
}

/* Options are text here; a list becomes what a list in config.toml would. */
static Str config_vector_override(const ConfigSchema *schema, Str key, const Json *value, Arena *a)
{
    ConfigField f;
    size_t      core;
    Str         text = {0};

    if (value->type != JSON_ARRAY && value->type != JSON_OBJECT)
        return config_vector_text(value);
    if (keys_find(key, &core))
        f = *keys_core(core);
    else if (!config_has(schema, key, &f))
        return (Str){0};
    return coerce_toml(f.type, f.choices, config_vector_toml(value, a), a, &text) ? text : (Str){0};
}

static Config *config_vector_load(const Json *test, const ConfigSchema *schema, Arena *a)
{
    const Json  *overrides = json_get(test, "overrides"), *environ_ = json_get(test, "environ"), *texts = json_get(test, "dotenv_texts");
    Pair        *pairs = arena_array(a, overrides->count, sizeof *pairs);
    const char **vars = arena_array(a, environ_->count + 1, sizeof *vars);
    ConfigFile  *files = arena_array(a, texts->count, sizeof *files);

    for (size_t i = 0; i < overrides->count; i++)
        pairs[i] = (Pair){overrides->keys[i], config_vector_override(schema, overrides->keys[i], &overrides->items[i], a)};
    for (size_t i = 0; i < environ_->count; i++)
        vars[i] = arena_fmt(a, "%s=%s", environ_->keys[i].p, json_str(&environ_->items[i]).p).p;
    for (size_t i = 0; i < texts->count; i++) {
        files[i] = (ConfigFile){.path = STR("a file"), .text = json_str(&texts->items[i])};
        if (!files[i].text.p && !base64_decode(a, json_str(json_get(&texts->items[i], "b64")), &files[i].text))
            abort();
    }
    return config_load(&(ConfigInput){.overrides = pairs, .override_count = overrides->count, .environ = vars, .files = files,
                                      .file_count = texts->count,
                                      .toml = {.path = STR("config.toml"), .text = json_str(json_get(test, "toml_text"))}}, a);
}

static bool config_vector_same(ConfigValue v, const Json *want, bool index)
{
    static const char *const layers[] = {"", "override", "environ", "dotenv", "toml", "derived", "default"};
    const Json *value = json_get(want, "value"), *marked = json_get(value, "$float");
    bool        same;

    if (marked && str_eq(json_str(marked), STR("nan")))
        same = isnan(strtod(v.value.p, NULL));
    else if (marked)
        same = strtod(v.value.p, NULL) == strtod(json_str(marked).p, NULL);
    else if (value->type == JSON_INT || value->type == JSON_REAL)
        same = v.value.p && strtod(v.value.p, NULL) == json_real(value, 0);
    else
        same = str_eq(v.value, config_vector_text(value));
    if (index && v.layer == CONFIG_DOTENV)
        same = same && (int64_t)v.file == json_int(json_get(want, "index"), -1);
    return same && str_eq(v.name, json_str(json_get(want, "name"))) &&
           str_eq(str_from(layers[v.layer]), json_str(json_get(want, "layer")));
}

/* What is right where the other host slips, by the row of differences.md. A
 * value of NULL: unset. */
typedef struct ConfigSlip { int row; const char *test, *key, *value; ConfigLayer layer; } ConfigSlip;

static const ConfigSlip config_vector_slips[] = {
    {6, "field enum mixed", "opt", "Big", CONFIG_ENVIRON},
    {21, "derive width", "sandbox_domain", NULL, CONFIG_UNSET},
    {21, "derive precision", "sandbox_domain", NULL, CONFIG_UNSET},
    {21, "derive index item", "sandbox_domain", NULL, CONFIG_UNSET},
    {37, "override default_template dict", "default_template", "base", CONFIG_DEFAULT},
    {37, "toml arrays and tables", "sandbox_domain", "cn-hangzhou.e2b.fc.aliyuncs.com", CONFIG_DEFAULT},
    {37, "field csv override mixed list", "opt", NULL, CONFIG_UNSET},
    {37, "field csv override nested", "opt", NULL, CONFIG_UNSET},
    {37, "max_connections '9223372036854775808'", "max_connections", "100", CONFIG_DEFAULT},
    {37, "max_connections '99999999999999999999.0'", "max_connections", "100", CONFIG_DEFAULT},
    {41, "field enum sharp s", "opt", "dflt", CONFIG_DEFAULT},
    {46, "http_timeout '\xd9\xa5'", "http_timeout", "9.0", CONFIG_TOML},
    {47, "derive bool field", "sandbox_domain", "true.test", CONFIG_DERIVED},
};

static const ConfigSlip *config_vector_slip(Str test, const char *key)
{
    for (size_t i = 0; i < COUNT_OF(config_vector_slips); i++)
        if (str_eq(test, str_from(config_vector_slips[i].test)) && strcmp(key, config_vector_slips[i].key) == 0)
            return &config_vector_slips[i];
    return NULL;
}

static bool config_vector_ascii(Str s)
{
    while (s.n && (unsigned char)*s.p < 0x80)
        str_skip(&s, 1);
    return s.n == 0;
}

/* The template of an endpoint holds more than {name}. */
static bool config_vector_format(const ConfigSchema *schema, const char *key)
{
    for (size_t i = 0; i < schema->derive_count; i++) {
        bool inside = false;
        Str  text = schema->derive[i].value;
        for (; str_eq(schema->derive[i].key, str_from(key)) && text.n; str_skip(&text, 1)) {
            if (inside && str_has(STR(":!.["), *text.p))
                return true;
            inside = *text.p == '{' || (inside && *text.p != '}');
        }
    }
    return false;
}

/* The value comes from a layer below the one that the other host took it from. */
static bool config_vector_below(const Json *want, ConfigValue got)
{
    static const char *const layers[] = {"", "override", "environ", "dotenv", "toml", "derived", "default"};

    for (int i = 1; i < (int)COUNT_OF(layers); i++)
        if (str_eq(json_str(json_get(want, "layer")), str_from(layers[i])))
            return got.layer == CONFIG_UNSET || (int)got.layer > i;
    return false;
}

/* Something that is configured is not ASCII. */
static bool config_vector_foreign(const Json *row)
{
    static const char *const parts[] = {"overrides", "environ", "dotenv_texts", "toml_text"};
    Buf  text = buf_make(1 << 20);
    bool ascii = true;

    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        JsonOut w = json_out(&text, JSON_COMPACT);
        json_put(&w, json_get(row, parts[i]));
    }
    ascii = config_vector_ascii(buf_str(&text));
    buf_free(&text);
    return !ascii;
}

/* Python's text of a table, of an integer outside 64 bits, or of what is odd in
 * a list. */
static bool config_vector_python(Str text)
{
    Str digits = text;
    bool number = true;

    if (digits.n && *digits.p == '-')
        str_skip(&digits, 1);
    for (size_t i = 0; i < digits.n; i++)
        number = number && digits.p[i] >= '0' && digits.p[i] <= '9';
    return str_has(text, '{') || str_has(text, '[') || str_has(text, '(') || str_has(text, 'N') || str_has(text, 'T') ||
           str_has(text, 'F') || (number && digits.n > 18);
}

/* The row of differences.md that a row that no slip names falls under; 0: none. */
static int config_vector_rule(const Json *row, const ConfigSchema *schema, const char *key, const Json *want, ConfigValue got)
{
    const Json *value = json_get(want, "value");
    Str         text = value && value->type == JSON_STRING ? value->text : (Str){0};
    bool        below = config_vector_below(want, got);
    bool        number = value && (value->type == JSON_INT || value->type == JSON_REAL);
    ConfigField f;

    if (below && (json_get(value, "$int") || (number && (json_real(value, 0) >= 0x1p63 || json_real(value, 0) < -0x1p63))))
        return 37;
    if (config_has(schema, str_from(key), &f) && f.type == FIELD_ENUM) {
        if (below)
            return config_vector_foreign(row) ? 41 : 0;
        for (const char *const *c = f.choices; c && *c; c++)
            if (str_eq(got.value, str_from(*c)) && got.layer != CONFIG_DEFAULT)
                return 6;
    }
    if (str_eq(json_str(json_get(want, "layer")), STR("derived")))
        return config_vector_format(schema, key) ? 21 : str_has(text, 'T') || str_has(text, 'F') ? 47 : 0;
    if (below && number && config_vector_foreign(row))
        return 46;
    return below && text.n && config_vector_python(text) ? 37 : 0;
}

static bool config_vector_key(Vector *v, const ConfigSchema *schema, const char *key, ConfigValue got)
{
    const Json       *want = json_get(json_get(v->row, "expect"), key);
    const ConfigSlip *s = config_vector_slip(json_str(json_get(v->row, "name")), key);

    if (s && got.layer == s->layer && (s->value ? str_eq(got.value, str_from(s->value)) : !got.value.p))
        return vector_differs(v, s->row);
    if (!s && (want ? config_vector_same(got, want, true) : !got.value.p))
        return true;
    int row = s || !want ? 0 : config_vector_rule(v->row, schema, key, want, got);
    return row ? vector_differs(v, row) :
           vector_fail(v, "%.*s: %s is <%.*s> of layer %d, name %.*s", STR_ARG(json_str(json_get(v->row, "name"))), key,
                       STR_ARG(got.value), got.layer, STR_ARG(got.name));
}

static bool config_vector(Vector *v)
{
    ConfigSchema       schema = config_vector_schema(json_get(v->row, "provider"), v->a);
    Config            *c = config_vector_load(v->row, &schema, v->a);
    const ConfigField *core;
    ConfigField        f;

    if (!json_get(v->row, "expect")) {  /* row 20: it ends in an exception there, and is no template here */
        if (json_get(v->row, "uncaught") && !config_field(c, &schema, STR("sandbox_domain"), v->a).value.p)
            return vector_differs(v, 20);
        return vector_fail(v, "no exception");
    }
    if (!config_vector_same(config_core(c, "provider", v->a), json_get(v->row, "selected"), false))
        return vector_fail(v, "selected");
    for (size_t k = 1; (core = keys_core(k)) != NULL; k++)
        if (k >= KEYS_GENERIC + CONFIG_GENERIC && !config_vector_key(v, &schema, core->key, config_core(c, core->key, v->a)))
            return false;
    for (size_t k = 0; config_key(&schema, k, &f); k++)
        if (!config_vector_key(v, &schema, f.key, config_field(c, &schema, str_from(f.key), v->a)))
            return false;
    return true;
}
