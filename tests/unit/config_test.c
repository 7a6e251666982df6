#include "base/base64.h"
#include "host/coerce.h"
#include "host/keys.h"
#include "host/registry.h"
#include "vectors.h"
#include <math.h>
#include <sys/stat.h>

/* ---- the recorded answers of another host ---- */

static Str config_test_text(const Json *v)
{
    if (v->type == JSON_BOOL)
        return v->boolean ? STR("true") : STR("false");
    return v->type == JSON_NULL || v->type == JSON_OBJECT || v->type == JSON_ARRAY ? (Str){0} : v->text;
}

static const char *const *config_test_strings(const Json *array, Arena *a)
{
    const char **v = arena_array(a, json_count(array) + 1, sizeof *v);

    for (size_t i = 0; i < json_count(array); i++)
        v[i] = json_str(json_at(array, i)).p;
    return v;
}

static FieldType config_test_type(Str name)
{
    static const struct { Str name; FieldType type; } types[] = {
        {{"string", 6}, FIELD_STR}, {{"str", 3}, FIELD_STR}, {{"path", 4}, FIELD_PATH}, {{"url", 3}, FIELD_URL},
        {{"int", 3}, FIELD_INT}, {{"float", 5}, FIELD_FLOAT}, {{"bool", 4}, FIELD_BOOL}, {{"csv", 3}, FIELD_CSV},
        {{"enum", 4}, FIELD_ENUM}, {{"", 0}, FIELD_STR},
    };

    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (str_eq(types[i].name, name))
            return types[i].type;
    fail_msg("type %.*s", STR_ARG(name));
    return FIELD_STR;
}

static bool config_test_inherits(const Json *provider, Str key)
{
    const Json *list = json_get(provider, "inherit");

    for (size_t i = 0; i < json_count(list); i++)
        if (str_eq(json_str(json_at(list, i)), key))
            return true;
    return false;
}

/* A JSON value as the same value of a TOML document. Null is none. */
static const Toml *config_test_toml(const Json *v, Arena *a)
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
        const Toml *one = config_test_toml(&v->items[i], a);
        items[i] = one ? *one : (Toml){.type = TOML_TABLE};
    }
    t->items = items;
    t->count = v->count;
    t->keys = v->type == JSON_OBJECT ? v->keys : NULL;
    return t;
}

static const Pair *config_test_pairs(const Json *object, Arena *a)
{
    Pair *v = arena_array(a, json_count(object), sizeof *v);

    for (size_t i = 0; i < json_count(object); i++)
        v[i] = (Pair){object->keys[i], json_str(&object->items[i])};
    return v;
}

static ConfigSchema config_test_schema(const Json *provider, Arena *a)
{
    RegistryRow  row;
    const Json  *fields = json_get(provider, "fields"), *fixed = json_get(provider, "endpoint_defaults");
    const Json  *derive = json_get(provider, "derive");
    ConfigField *f = arena_array(a, json_count(fields), sizeof *f);

    if (provider->type == JSON_STRING) {
        assert_true(registry_row(0, a, &row));
        return row.schema;
    }
    for (size_t i = 0; i < json_count(fields); i++) {
        const Json *in = json_at(fields, i);
        f[i] = (ConfigField){.key = json_str(json_get(in, "key")).p, .type = config_test_type(json_str(json_get(in, "type"))),
                             .secret = json_bool(json_get(in, "secret"), false), .env = config_test_strings(json_get(in, "env"), a),
                             .choices = json_get(in, "choices") ? config_test_strings(json_get(in, "choices"), a) : NULL,
                             .own_default = config_test_toml(json_get(in, "default"), a)};
    }
    return (ConfigSchema){
        .id = json_str(json_get(provider, "id")), .fields = f, .count = json_count(fields),
        .inherits_api_key = config_test_inherits(provider, STR("sandbox_api_key")),
        .inherits_base_url = config_test_inherits(provider, STR("sandbox_base_url")),
        .inherits_domain = config_test_inherits(provider, STR("sandbox_domain")),
        .base_url = json_str(json_get(fixed, "sandbox_base_url")).p, .domain = json_str(json_get(fixed, "sandbox_domain")).p,
        .derive = config_test_pairs(derive, a), .derive_count = json_count(derive),
    };
}

/* Options are text here; a list becomes what a list in config.toml would. */
static Str config_test_override(const ConfigSchema *schema, Str key, const Json *value, Arena *a)
{
    ConfigField f;
    size_t      core;
    Str         text = {0};

    if (value->type != JSON_ARRAY && value->type != JSON_OBJECT)
        return config_test_text(value);
    if (keys_find(key, &core))
        f = *keys_core(core);
    else if (!config_has(schema, key, &f))
        return (Str){0};
    return coerce_toml(f.type, f.choices, config_test_toml(value, a), a, &text) ? text : (Str){0};
}

static Config *config_test_load(const Json *test, const ConfigSchema *schema, Arena *a)
{
    const Json  *overrides = json_get(test, "overrides"), *environ_ = json_get(test, "environ"), *texts = json_get(test, "dotenv_texts");
    Pair        *pairs = arena_array(a, overrides->count, sizeof *pairs);
    const char **vars = arena_array(a, environ_->count + 1, sizeof *vars);
    ConfigFile  *files = arena_array(a, texts->count, sizeof *files);

    for (size_t i = 0; i < overrides->count; i++)
        pairs[i] = (Pair){overrides->keys[i], config_test_override(schema, overrides->keys[i], &overrides->items[i], a)};
    for (size_t i = 0; i < environ_->count; i++)
        vars[i] = arena_fmt(a, "%s=%s", environ_->keys[i].p, json_str(&environ_->items[i]).p).p;
    for (size_t i = 0; i < texts->count; i++) {
        files[i] = (ConfigFile){.path = STR("a file"), .text = json_str(&texts->items[i])};
        if (!files[i].text.p)
            assert_true(base64_decode(a, json_str(json_get(&texts->items[i], "b64")), &files[i].text));
    }
    return config_load(&(ConfigInput){.overrides = pairs, .override_count = overrides->count, .environ = vars, .files = files,
                                      .file_count = texts->count,
                                      .toml = {.path = STR("config.toml"), .text = json_str(json_get(test, "toml_text"))}}, a);
}

static bool config_test_same(ConfigValue v, const Json *want, bool index)
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
        same = str_eq(v.value, config_test_text(value));
    if (index && v.layer == CONFIG_DOTENV)
        same = same && (int64_t)v.file == json_int(json_get(want, "index"), -1);
    return same && str_eq(v.name, json_str(json_get(want, "name"))) &&
           str_eq(str_from(layers[v.layer]), json_str(json_get(want, "layer")));
}

/* What is right where the other host slips, by the row of differences.md. A
 * value of NULL: unset. */
typedef struct ConfigSlip { int row; const char *test, *key, *value; ConfigLayer layer; } ConfigSlip;

static const ConfigSlip config_test_slips[] = {
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

static bool config_test_slipped(Str test, const char *key, ConfigValue v)
{
    for (size_t i = 0; i < COUNT_OF(config_test_slips); i++) {
        const ConfigSlip *s = &config_test_slips[i];
        if (!str_eq(test, str_from(s->test)) || strcmp(key, s->key) != 0)
            continue;
        if (v.layer != s->layer || (s->value ? !str_eq(v.value, str_from(s->value)) : v.value.p != NULL))
            fail_msg("%.*s: %s is <%.*s>", STR_ARG(test), key, STR_ARG(v.value));
        return true;
    }
    return false;
}

static void config_test_key(Str test, const Json *expect, const char *key, ConfigValue v)
{
    const Json *want = json_get(expect, key);

    if (!config_test_slipped(test, key, v) && (want ? !config_test_same(v, want, true) : v.value.p != NULL))
        fail_msg("%.*s: %s is <%.*s> of layer %d, name %.*s", STR_ARG(test), key, STR_ARG(v.value), v.layer, STR_ARG(v.name));
}

static void config_test_vector(const Json *test, Arena *a)
{
    const Json        *expect = json_get(test, "expect");
    Str                name = json_str(json_get(test, "name"));
    ConfigSchema       schema = config_test_schema(json_get(test, "provider"), a);
    Config            *c = config_test_load(test, &schema, a);
    const ConfigField *core;
    ConfigField        f;

    if (!expect) {      /* row 20: it ends in an exception there, and is no template here */
        assert_true(json_get(test, "uncaught") && !config_field(c, &schema, STR("sandbox_domain"), a).value.p);
        return;
    }
    if (!config_test_same(config_core(c, "provider", a), json_get(test, "selected"), false))
        fail_msg("%.*s: selected", STR_ARG(name));
    for (size_t k = 1; (core = keys_core(k)) != NULL; k++)
        if (k >= KEYS_GENERIC + CONFIG_GENERIC)
            config_test_key(name, expect, core->key, config_core(c, core->key, a));
    for (size_t k = 0; config_key(&schema, k, &f); k++)
        config_test_key(name, expect, f.key, config_field(c, &schema, str_from(f.key), a));
}

static void config_vectors_test(void **state)
{
    Arena       a = arena_make(64 << 20);
    const Json *tests = vectors_open("config", &a);

    (void)state;
    for (size_t i = 0; i < json_count(tests); i++) {
        Arena own = a;
        config_test_vector(json_at(tests, i), &own);
    }
    assert_int_equal(json_count(tests), 176);
    arena_free(&a);
}

/* ---- ours ---- */

static const ConfigField config_test_fields[] = {
    {.key = "base_url", .type = FIELD_URL, .fallback = "http://127.0.0.1:8080"},
    {.key = "api_key", .secret = true},
    {.key = "port", .type = FIELD_INT},
    {.key = "ratio", .type = FIELD_FLOAT},
    {.key = "level", .type = FIELD_ENUM, .choices = (const char *const[]){"Low", "High", NULL}},
    {.key = "pin", .type = FIELD_INT, .secret = true},
    {.key = "eu_domain"},
};

static const ConfigSchema config_test_box = {.id = {"demo-box", 8}, .fields = config_test_fields,
                                             .count = COUNT_OF(config_test_fields)};

static const char *config_test_setting(Settings s, const char *key)
{
    for (size_t i = 0; i < s.n; i++)
        if (str_eq(s.v[i].key, str_from(key)))
            return s.v[i].value.p;
    return NULL;
}

static void config_coerce_test(void **state)
{
    static const struct { FieldType type; const char *in, *out; } cases[] = {
        {FIELD_INT, "5", "5"}, {FIELD_INT, " +5 ", "5"}, {FIELD_INT, "-007", "-7"}, {FIELD_INT, "1_000", "1000"},
        {FIELD_INT, "5.", "5"}, {FIELD_INT, "-3.000", "-3"}, {FIELD_INT, "9223372036854775807", "9223372036854775807"},
        {FIELD_INT, "9223372036854775808", NULL}, {FIELD_INT, "-9223372036854775808.0", "-9223372036854775808"},
        {FIELD_INT, "1__0", NULL}, {FIELD_INT, "_1", NULL}, {FIELD_INT, "1_", NULL}, {FIELD_INT, "1_0.0", NULL}, {FIELD_INT, "", NULL},
        {FIELD_INT, "5.5", NULL}, {FIELD_INT, "1e3", NULL}, {FIELD_INT, "0x10", NULL}, {FIELD_INT, ".0", NULL}, {FIELD_INT, "+", NULL},
        {FIELD_INT, "+-5", NULL}, {FIELD_INT, "5 5", NULL}, {FIELD_INT, "\xd9\xa3", NULL},
        {FIELD_FLOAT, "2.5", "2.5"}, {FIELD_FLOAT, "+1_0.2_5e-1_0", "1.025e-09"}, {FIELD_FLOAT, ".5", "0.5"}, {FIELD_FLOAT, "5.", "5.0"},
        {FIELD_FLOAT, "-Infinity", "-inf"}, {FIELD_FLOAT, "+NaN", "nan"}, {FIELD_FLOAT, "INF", "inf"}, {FIELD_FLOAT, ".", NULL},
        {FIELD_FLOAT, "1e", NULL}, {FIELD_FLOAT, "e5", NULL}, {FIELD_FLOAT, "1._5", NULL}, {FIELD_FLOAT, "0x1p3", NULL},
        {FIELD_FLOAT, "nan(1)", NULL}, {FIELD_FLOAT, "1,5", NULL}, {FIELD_FLOAT, "infin", NULL},
        {FIELD_BOOL, "YES", "true"}, {FIELD_BOOL, "1", "true"}, {FIELD_BOOL, "Off", "false"}, {FIELD_BOOL, "2", NULL},
        {FIELD_ENUM, "HIGH", "High"}, {FIELD_ENUM, "low ", "Low"}, {FIELD_ENUM, "mid", NULL},
        {FIELD_STR, "\xc2\xa0 a b\t", "a b"}, {FIELD_STR, " \t", NULL}, {FIELD_URL, "not a url", "not a url"}, {FIELD_CSV, "a, b", "a, b"},
    };
    Arena a = arena_make(1 << 20);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str  out = {0};
        bool ok = coerce_text(cases[i].type, config_test_fields[4].choices, guard_copy(str_from(cases[i].in)), &a, &out);
        if (ok != (cases[i].out != NULL) || (ok && !str_eq(out, str_from(cases[i].out))))
            fail_msg("<%s> became <%.*s>", cases[i].in, STR_ARG(out));
    }
    arena_free(&a);
}

/* Overrides, environment, the two files; which settings come of it, or which error. */
typedef struct ConfigCase {
    Pair        overrides[3];
    const char *environ_[6];
    const char *cwd, *home;
    bool        allow;
    const char *key, *want;     /* a setting of demo-box */
    Code        code;           /* E0000: none */
    const char *text;           /* a part of the error */
} ConfigCase;

static void config_test_case(const ConfigCase *t)
{
    Arena        a = arena_make(8 << 20);
    ConfigFile   files[2] = {{.path = STR("./.env"), .text = str_from(t->cwd), .cwd = true},
                             {.path = STR("/h/.env"), .text = str_from(t->home)}};
    ConfigInput  in = {.overrides = t->overrides, .environ = t->environ_, .files = files, .file_count = 2, .allow_cwd_env = t->allow};
    Settings     s = {0};
    Err          err = {0};

    while (in.override_count < 3 && t->overrides[in.override_count].key.p)
        in.override_count++;
    bool        ok = config_provider(config_load(&in, &a), &config_test_box, &a, &s, &err);
    const char *got = t->key && ok ? config_test_setting(s, t->key) : NULL;
    if (ok != (t->code == E0000) || err.code != t->code || (t->text && !strstr(err.text, t->text)) ||
        (ok && t->key && (!got != !t->want || (got && strcmp(got, t->want) != 0))) || strstr(err.text, "SECRET") ||
        strstr(err.hint, "SECRET"))
        fail_msg("%s / %s: <%s>, %s (%s)", t->cwd ? t->cwd : "", t->environ_[0] ? t->environ_[0] : "", got ? got : "", err.text, err.hint);
    assert_true(ok || code_exit(err.code) == 2);
    arena_free(&a);
}

#define CONFIG_P(k, v) {{k, sizeof(k) - 1}, {v, sizeof(v) - 1}}
static void config_layers_test(void **state)
{
    static const ConfigCase cases[] = {
        {.key = "base_url", .want = "http://127.0.0.1:8080"}, {.key = "api_key"}, {.key = "sandbox_api_key"},
        {.environ_ = {"ABX_DEMO_BOX_PORT=1"}, .cwd = "ABX_DEMO_BOX_PORT=2", .home = "ABX_DEMO_BOX_PORT=3", .key = "port", .want = "1"},
        {.environ_ = {"ABX_DEMO_BOX_PORT=x"}, .cwd = "ABX_DEMO_BOX_PORT=2", .home = "ABX_DEMO_BOX_PORT=3", .key = "port", .want = "2"},
        {.environ_ = {"ABX_DEMO_BOX_PORT= "}, .cwd = "ABX_DEMO_BOX_PORT", .home = "ABX_DEMO_BOX_PORT=3", .key = "port", .want = "3"},
        {.overrides = {CONFIG_P("port", "4")}, .environ_ = {"ABX_DEMO_BOX_PORT=1"}, .key = "port", .want = "4"},
        {.overrides = {CONFIG_P("port", "4"), CONFIG_P("port", "5.0")}, .key = "port", .want = "5"},
        {.overrides = {CONFIG_P("port", " ")}, .environ_ = {"ABX_DEMO_BOX_PORT=1"}, .key = "port", .want = "1"},
        {.environ_ = {"ABX_DEMO_BOX_PORTX=1", "XABX_DEMO_BOX_PORT=1", "ABX_DEMO_BOX_PORT"}, .key = "port"},
        {.environ_ = {"ABX_DEMO_BOX_EU_DOMAINX=1", "ABX_DEMO_BOX_EU_DOMAIN"}, .key = "eu_domain"},
        {.environ_ = {"ABX_SANDBOX_API_KEY=k", "ABX_DEMO_BOX_SANDBOX_API_KEY=k"}, .key = "sandbox_api_key"},
        {.overrides = {CONFIG_P("http_timeout", "2")}, .key = "http_timeout"},
        /* a file that is no text is no layer */
        {.cwd = "ABX_DEMO_BOX_PORT=2\n\xff", .home = "ABX_DEMO_BOX_PORT=3", .key = "port", .want = "3"},
        /* overrides that cannot be meant */
        {.overrides = {CONFIG_P("port", "abc")}, .code = E8002, .text = "port must be a whole number of 64 bits, not \"abc\""},
        {.overrides = {CONFIG_P("ratio", "1/2")}, .code = E8002, .text = "ratio must be a number"},
        {.overrides = {CONFIG_P("level", "mid")}, .code = E8002, .text = "level must be one of its choices"},
        {.overrides = {CONFIG_P("http2", "maybe")}, .code = E8002, .text = "http2 must be true or false"},
        {.overrides = {CONFIG_P("pin", "SECRET")}, .code = E8002, .text = "pin must be a whole number"},
        {.overrides = {CONFIG_P("prot", "80")}, .code = E8002, .text = "demo-box has no setting \"prot\""},
        {.overrides = {CONFIG_P("sandbox_api_key", "SECRET")}, .code = E8002, .text = "demo-box has no setting \"sandbox_api_key\""},
        {.overrides = {CONFIG_P("", "")}, .code = E8002, .text = "no setting \"\""},
        /* numbers that nothing works with */
        {.environ_ = {"ABX_HTTP_TIMEOUT=0.5"}, .code = E8002, .text = "http_timeout must be at least 1, and ABX_HTTP_TIMEOUT in the environment is 0.5"},
        {.cwd = "ABX_HTTP_TIMEOUT=nan", .code = E8002, .text = "and ABX_HTTP_TIMEOUT in ./.env is nan"},
        {.overrides = {CONFIG_P("max_connections", "-5")}, .code = E8002, .text = "and an explicit option is -5"},
        {.environ_ = {"ABX_HTTP_TIMEOUT=1"}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        config_test_case(&cases[i]);
}

/* What a working directory may decide, and what not. */
static void config_hostile_test(void **state)
{
#define EVIL "ABX_DEMO_BOX_BASE_URL=http://evil\n"
    static const ConfigCase cases[] = {
        {.cwd = EVIL, .key = "base_url", .want = "http://evil"},
        {.cwd = EVIL "ABX_DEMO_BOX_API_KEY=SECRET\n", .key = "base_url", .want = "http://evil"},
        {.cwd = EVIL, .environ_ = {"ABX_DEMO_BOX_API_KEY=SECRET"}, .code = E8012,
         .text = "base_url comes from ABX_DEMO_BOX_BASE_URL in ./.env, but api_key from ABX_DEMO_BOX_API_KEY in the environment"},
        {.cwd = EVIL, .home = "ABX_DEMO_BOX_API_KEY=SECRET", .code = E8012,
         .text = "base_url comes from ABX_DEMO_BOX_BASE_URL in ./.env, but api_key from ABX_DEMO_BOX_API_KEY in /h/.env"},
        {.cwd = EVIL, .overrides = {CONFIG_P("api_key", "SECRET")}, .code = E8012, .text = "but api_key from an explicit option"},
        {.cwd = EVIL "ABX_DEMO_BOX_API_KEY=SECRET\n", .environ_ = {"ABX_DEMO_BOX_API_KEY=SECRET"}, .code = E8012},
        {.cwd = EVIL "ABX_DEMO_BOX_API_KEY=SECRET\n", .environ_ = {"ABX_DEMO_BOX_PIN=1"}, .code = E8012, .text = "but pin from"},
        {.cwd = "ABX_DEMO_BOX_EU_DOMAIN=evil", .environ_ = {"ABX_DEMO_BOX_API_KEY=SECRET"}, .code = E8012, .text = "eu_domain comes"},
        {.cwd = EVIL, .environ_ = {"ABX_DEMO_BOX_API_KEY=SECRET", "ABX_ALLOW_CWD_ENV=1"}, .key = "base_url", .want = "http://evil"},
        {.cwd = EVIL, .environ_ = {"ABX_DEMO_BOX_API_KEY=SECRET"}, .allow = true, .key = "base_url", .want = "http://evil"},
        {.cwd = EVIL "ABX_ALLOW_CWD_ENV=1\n", .environ_ = {"ABX_DEMO_BOX_API_KEY=SECRET"}, .code = E8012},
        {.cwd = EVIL, .environ_ = {"ABX_DEMO_BOX_API_KEY=SECRET", "ABX_ALLOW_CWD_ENV=0"}, .code = E8012},
        {.cwd = EVIL, .environ_ = {"ABX_DEMO_BOX_API_KEY=SECRET", "ABX_DEMO_BOX_BASE_URL=http://mine"}, .key = "base_url", .want = "http://mine"},
        {.cwd = EVIL, .environ_ = {"ABX_DEMO_BOX_API_KEY= "}, .key = "base_url", .want = "http://evil"},
        {.home = EVIL, .environ_ = {"ABX_DEMO_BOX_API_KEY=SECRET"}, .key = "base_url", .want = "http://evil"},
        {.home = EVIL, .cwd = "ABX_DEMO_BOX_API_KEY=SECRET", .key = "base_url", .want = "http://evil"},
        {.cwd = "ABX_DEMO_BOX_PORT=80", .environ_ = {"ABX_DEMO_BOX_API_KEY=SECRET"}, .key = "port", .want = "80"},
        /* no key of the provider's, but the rest of the environment */
        {.cwd = "ABX_DEMO_BOX_BASE_URL=http://evil/${CLOUD}\n", .environ_ = {"CLOUD=SECRET"}, .code = E8012,
         .text = "base_url comes from ABX_DEMO_BOX_BASE_URL in ./.env, with something of the environment in it"},
        {.cwd = "X=${CLOUD}\nABX_DEMO_BOX_BASE_URL=http://evil/$X${X}\n", .environ_ = {"CLOUD=SECRET"}, .code = E8012},
        {.cwd = "ABX_DEMO_BOX_BASE_URL=http://evil/${CLOUD}\n", .key = "base_url", .want = "http://evil/"},
        {.cwd = "ABX_DEMO_BOX_BASE_URL=http://evil/${CLOUD}\n", .environ_ = {"CLOUD=1"}, .allow = true, .key = "base_url", .want = "http://evil/1"},
        {.home = "ABX_DEMO_BOX_BASE_URL=http://mine/${CLOUD}\n", .environ_ = {"CLOUD=1", "ABX_DEMO_BOX_API_KEY=SECRET"}, .key = "base_url", .want = "http://mine/1"},
    };
#undef EVIL

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        config_test_case(&cases[i]);
}
#undef CONFIG_P

static void config_test_notice(void *ctx, Str line)
{
    buf_addf(ctx, "%.*s\n", STR_ARG(line));
}

/* The files themselves: in a folder of its own, a home folder in it. */
static void config_open_test(void **state)
{
    Arena       a = arena_make(ARENA_COMMAND);
    Buf         said = buf_make(1000);
    ConfigInput in = {.notice = config_test_notice, .notice_ctx = &said};

    (void)state;
    unsetenv("ABX_DEFAULT_TEMPLATE");
    assert_true(config_core(config_open(&in, STR("home"), &a), "default_template", &a).layer == CONFIG_DEFAULT);
    assert_true(mkdir("home", 0700) == 0 && chdir("home") == 0);
    fs_put(".env", "ABX_DEFAULT_TEMPLATE=home");
    assert_true(chdir("..") == 0);
    ConfigValue v = config_core(config_open(&in, STR("home"), &a), "default_template", &a);
    assert_true(str_eq(v.value, STR("home")) && v.layer == CONFIG_DOTENV && v.file == 0);

    fs_put("real", "ABX_DEFAULT_TEMPLATE=cwd");
    assert_true(symlink("real", ".env") == 0);
    v = config_core(config_open(&in, STR("home"), &a), "default_template", &a);
    assert_true(str_eq(v.value, STR("cwd")) && str_eq(v.name, STR("ABX_DEFAULT_TEMPLATE")));
    setenv("ABX_DEFAULT_TEMPLATE", "env", 1);
    v = config_core(config_open(&in, STR("home"), &a), "default_template", &a);
    assert_true(str_eq(v.value, STR("env")) && v.layer == CONFIG_ENVIRON);
    unsetenv("ABX_DEFAULT_TEMPLATE");

    /* no regular file: not a word. Unreadable text: one line, and the next layer */
    assert_true(unlink(".env") == 0 && mkdir(".env", 0700) == 0);
    v = config_core(config_open(&in, STR("home"), &a), "default_template", &a);
    assert_true(str_eq(v.value, STR("home")) && said.n == 0);
    assert_true(rmdir(".env") == 0);
    fs_put(".env", "ABX_DEFAULT_TEMPLATE=cwd\n\xff");
    v = config_core(config_open(&in, STR("home"), &a), "default_template", &a);
    assert_true(str_eq(v.value, STR("home")));
    assert_true(str_eq(buf_str(&said), STR("warning: ./.env: not UTF-8 at byte 25; the file is left out\n")));
    buf_clear(&said);
    assert_true(truncate(".env", LIMIT_DOTENV + 1) == 0);
    v = config_core(config_open(&in, STR("home"), &a), "default_template", &a);
    assert_true(str_eq(v.value, STR("home")));
    assert_true(str_eq(buf_str(&said), STR("warning: ./.env: more than 1048576 bytes; the file is left out\n")));
    /* ./.env is the one that is not trusted */
    Settings s;
    Err      err;
    setenv("ABX_DEMO_BOX_API_KEY", "SECRET", 1);
    fs_put(".env", "ABX_DEMO_BOX_BASE_URL=http://evil");
    assert_false(config_provider(config_open(&in, STR("home"), &a), &config_test_box, &a, &s, &err));
    assert_true(err.code == E8012 && strstr(err.text, " in ./.env, but api_key from ABX_DEMO_BOX_API_KEY in the environment"));
    assert_true(rename(".env", "home/.env") == 0);
    assert_true(config_provider(config_open(&in, STR("home"), &a), &config_test_box, &a, &s, &err));
    assert_string_equal(config_test_setting(s, "base_url"), "http://evil");
    unsetenv("ABX_DEMO_BOX_API_KEY");
    assert_true(chdir("home") == 0 && unlink(".env") == 0 && chdir("..") == 0);
    buf_free(&said);
    arena_free(&a);
}

static void config_refs_test(void **state)
{
    Arena       a = arena_make(8 << 20);
    const Json *tests = vectors_open("refs", &a);
    size_t      installed = 0;

    (void)state;
    for (size_t i = 0; i < json_count(tests); i++) {
        const Json *test = json_at(tests, i);
        Str         ref = json_str(json_get(test, "ref")), provider = {0}, id = {0}, code = json_str(json_get(test, "code"));
        Str         want = json_str(json_get(test, "provider"));
        char        name[6] = "";
        Err         err = {0};
        if (str_eq(want, STR("demo-box"))) {    /* nothing can be installed yet */
            installed++;
            continue;
        }
        bool ok = registry_split(guard_copy(ref), &provider, &id, &err);
        code_name(err.code, name);
        if (str_eq(ref, STR("opensandbox:sb-1")))       /* differences.md, row 35 */
            assert_true(ok && str_eq(provider, STR("opensandbox")) && str_eq(id, STR("sb-1")));
        else if (ok != !code.p || (ok && (!str_eq(provider, want) || !str_eq(id, json_str(json_get(test, "id"))))) ||
                 (!ok && !str_eq(code, str_from(name))))
            fail_msg("%.*s: %s", STR_ARG(ref), err.text);
    }
    assert_int_equal(json_count(tests) - installed, 28);
    arena_free(&a);
}

/* What can stand before the colon, whether or not it is there. */
static void config_ids_test(void **state)
{
    static const char *const good[] = {"ab", "a1", "a-b", "a-1", "opensandbox", "alicloud-container", "e2b", "cubesandbox",
                                       "abcdefghijklmnopqrstuvwxyz-abcdefghijklm"};
    static const char *const bad[] = {"", "a", "1a", "-a", "a-", "a--b", "A-b", "a_b", "a.b", "a b", "ab\n", "core",
                                      "abx-x", "alicloud-x", "shortcutsx", "abcdefghijklmnopqrstuvwxyz-abcdefghijklmn"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        if (!registry__is_id(guard_copy(str_from(good[i]))))
            fail_msg("%s", good[i]);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (registry__is_id(guard_copy(str_from(bad[i]))))
            fail_msg("%s", bad[i]);
}

static void config_registry_test(void **state)
{
    Arena       a = arena_make(1 << 20);
    RegistryRow row;
    Str         id = {0};
    Err         err = {0};

    (void)state;
    assert_true(registry_row(0, &a, &row) && str_eq(row.id, STR("alicloud-express")) && !row.kind);
    assert_true(registry_row(1, &a, &row) && str_eq(row.id, STR("opensandbox")) && str_eq(row.schema.id, row.id));
    assert_false(registry_row(2, &a, &row));
    assert_true(registry_find(STR("opensandbox"), &a, &row, &err));
    assert_false(registry_find(STR("opensandbx"), &a, &row, &err));
    assert_true(err.code == E8001 && strstr(err.hint, "\"opensandbox\"") && code_exit(err.code) == 4);
    assert_true(!registry_find(STR(""), &a, &row, &err) && err.code == E8001 && !err.hint[0]);
    assert_true(registry_ref(STR("opensandbox:a:b"), STR("opensandbox"), &id, &err) && str_eq(id, STR("a:b")));
    assert_true(registry_ref(STR("a"), STR("opensandbox"), &id, &err) && str_eq(id, STR("a")));
    assert_false(registry_ref(STR("opensandbox:a"), STR("alicloud-express"), &id, &err));
    assert_true(err.code == E8030 && strstr(err.text, "belongs to opensandbox, not to alicloud-express"));
    arena_free(&a);
}

static const struct CMUnitTest config_tests[] = {
    cmocka_unit_test(config_vectors_test),
    cmocka_unit_test(config_coerce_test),
    cmocka_unit_test(config_layers_test),
    cmocka_unit_test(config_hostile_test),
    cmocka_unit_test_setup_teardown(config_open_test, fs_enter, fs_leave),
    cmocka_unit_test(config_refs_test),
    cmocka_unit_test(config_ids_test),
    cmocka_unit_test(config_registry_test),
};
