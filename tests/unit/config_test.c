#include "host/coerce.h"
#include "host/derive.h"
#include "host/explain.h"
#include "host/keys.h"
#include "host/registry.h"
#include <sys/stat.h>

static void config_vectors_test(void **state)
{
    (void)state;
    vectors_whole("config", 176);
    vectors_whole("refs", 31);
}

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
    assert_true(registry_find(NULL, STR("opensandbox"), &a, &row, &err));
    assert_false(registry_find(NULL, STR("opensandbx"), &a, &row, &err));
    assert_true(err.code == E8001 && strstr(err.hint, "\"opensandbox\"") && code_exit(err.code) == 4);
    assert_true(!registry_find(NULL, STR(""), &a, &row, &err) && err.code == E8001 && strstr(err.hint, "provider list"));
    assert_true(!registry_find(NULL, STR("e2b"), &a, &row, &err) && strstr(err.hint, "install registry:e2b"));
    assert_true(!registry_find(NULL, STR("sandbox-open"), &a, &row, &err) && strstr(err.hint, "\"opensandbox\""));
    assert_true(!registry_find(NULL, STR("sand"), &a, &row, &err) && !strstr(err.hint, "opensandbox"));
    assert_true(registry_ref(NULL, STR("opensandbox:a:b"), STR("opensandbox"), &id, &err) && str_eq(id, STR("a:b")));
    assert_true(registry_ref(NULL, STR("a"), STR("opensandbox"), &id, &err) && str_eq(id, STR("a")));
    assert_false(registry_ref(NULL, STR("opensandbox:a"), STR("alicloud-express"), &id, &err));
    assert_true(err.code == E8030 && strstr(err.text, "belongs to opensandbox, not to alicloud-express"));
    arena_free(&a);
}

/* ---- values of config.toml, templates, masks ---- */

static void config_toml_test(void **state)
{
    static const struct { FieldType type; const char *in, *out; } cases[] = {
        {FIELD_STR, "7", "7"}, {FIELD_STR, "0x1F", "31"}, {FIELD_STR, "1.50", "1.5"}, {FIELD_STR, "1e16", "1e+16"}, {FIELD_STR, "true", "true"},
        {FIELD_STR, "-0.0", "-0.0"}, {FIELD_STR, "\" x \"", "x"}, {FIELD_STR, "\" \"", NULL}, {FIELD_STR, "99999999999999999999", NULL},
        {FIELD_STR, "[\"a\"]", NULL}, {FIELD_STR, "{a = 1}", NULL}, {FIELD_INT, "5.0", "5"}, {FIELD_INT, "5.5", NULL}, {FIELD_INT, "1e2", "100"},
        {FIELD_INT, "1e16", NULL}, {FIELD_INT, "\"+5\"", "5"}, {FIELD_FLOAT, "5", "5.0"}, {FIELD_FLOAT, "true", NULL}, {FIELD_FLOAT, "-inf", "-inf"},
        {FIELD_FLOAT, "nan", "nan"}, {FIELD_BOOL, "1", "true"}, {FIELD_BOOL, "0.0", NULL}, {FIELD_ENUM, "\"low\"", "Low"},
        {FIELD_CSV, "[\"a\", \"b c\", 3, 1.50, true]", "a,b c,3,1.5,true"}, {FIELD_CSV, "[]", NULL}, {FIELD_CSV, "[[1]]", NULL},
        {FIELD_CSV, "[{a = 1}]", NULL}, {FIELD_CSV, "[2024-01-01]", NULL}, {FIELD_CSV, "[99999999999999999999]", NULL}, {FIELD_CSV, "5", "5"},
        {FIELD_STR, "2024-03-01", "2024-03-01"}, {FIELD_STR, "10:00:00", "10:00:00"}, {FIELD_STR, "10:00:00.50", "10:00:00.500000"},
        {FIELD_STR, "10:00:00.000", "10:00:00"}, {FIELD_STR, "2024-03-01T10:00:00Z", "2024-03-01 10:00:00+00:00"},
        {FIELD_STR, "2024-03-01t10:00:00.123456789-08:30", "2024-03-01 10:00:00.123456-08:30"},
        {FIELD_STR, "2024-03-01 10:00:00-00:00", "2024-03-01 10:00:00+00:00"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Arena       a = arena_make(8 << 20);
        const Toml *doc = NULL;
        Str         out = {0};
        Err         err;
        assert_true(toml_parse(arena_fmt(&a, "k = %s\n", cases[i].in), &a, &doc, &err));
        bool ok = coerce_toml(cases[i].type, config_test_fields[4].choices, toml_get(doc, "k"), &a, &out);
        if (ok != (cases[i].out != NULL) || (ok && !str_eq(out, str_from(cases[i].out))))
            fail_msg("<%s> became <%.*s>", cases[i].in, STR_ARG(out));
        arena_free(&a);
    }
}

static Str config_test_name(void *ctx, Str name)
{
    (void)ctx;
    return str_eq(name, STR("a")) ? STR("{x}") : str_eq(name, STR("")) ? STR("empty") : (Str){0};
}

static void config_derive_test(void **state)
{
    static const struct { const char *in, *out; } cases[] = {
        {"", ""}, {"x", "x"}, {"{a}", "{x}"}, {"-{a}-{a}-", "-{x}-{x}-"}, {"{{a}}", "{a}"}, {"{{{a}}}", "{{x}}"}, {"{}", "empty"},
        {"{b}", NULL}, {"{a", NULL}, {"a}", NULL}, {"{", NULL}, {"}", NULL}, {"{a:x}", NULL}, {"{a!r}", NULL}, {"{{a}", NULL},
    };
    Arena a = arena_make(8 << 20);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str  out = {0};
        bool ok = derive_fill(guard_copy(str_from(cases[i].in)), config_test_name, NULL, &a, &out);
        if (ok != (cases[i].out != NULL) || (ok && !str_eq(out, str_from(cases[i].out))))
            fail_msg("<%s> became <%.*s>", cases[i].in, STR_ARG(out));
    }
    arena_free(&a);
}

/* An address that follows from ./.env is one of ./.env; and a template gets at
 * no secret of the host. */
static void config_derived_test(void **state)
{
    static const Pair derive[] = {{{"sandbox_base_url", 16}, {"https://{zone}.test", 19}}, {{"sandbox_domain", 14}, {"{github_token}", 14}}};
    static const ConfigField fields[] = {{.key = "zone"}, {.key = "token", .secret = true}};
    const char *const vars[] = {"ABX_D_TOKEN=SECRET", "GITHUB_TOKEN=SECRET", "CLOUD=x", NULL};
    ConfigSchema schema = {.id = STR("d"), .fields = fields, .count = 2, .inherits_base_url = true, .derive = derive, .derive_count = 2};
    ConfigFile   cwd = {.path = STR("./.env"), .text = STR("ABX_D_ZONE=evil/?\n"), .cwd = true};
    ConfigInput  in = {.environ = vars, .files = &cwd, .file_count = 1};
    Arena        a = arena_make(8 << 20);
    Settings     s;
    Err          err = {0};

    (void)state;
    assert_false(config_provider(config_load(&in, &a), &schema, &a, &s, &err));
    assert_true(err.code == E8012 && strstr(err.text, "sandbox_base_url comes from what is derived from ABX_D_ZONE in ./.env, but token from "
                                                      "ABX_D_TOKEN in the environment"));
    cwd.text = STR("ABX_D_ZONE=${CLOUD}\nABX_D_TOKEN=mine\n");
    in.environ = vars + 1;
    assert_true(!config_provider(config_load(&in, &a), &schema, &a, &s, &err) && strstr(err.text, "something of the environment"));
    cwd.cwd = false;
    Config *c = config_load(&in, &a);
    assert_true(config_provider(c, &schema, &a, &s, &err) && str_eq(provider_setting(s, "sandbox_base_url"), STR("https://x.test")));
    assert_true(!provider_setting(s, "sandbox_domain").p);
    /* What is derived from a secret is one. */
    const Pair own = {STR("sandbox_domain"), STR("{token}.test")};
    schema.derive = &own;
    schema.derive_count = 1;
    ConfigValue v = config_field(c, &schema, STR("sandbox_domain"), &a);
    assert_true(v.layer == CONFIG_DERIVED && v.secret && str_eq(v.value, STR("mine.test")));
    arena_free(&a);
}

static void config_mask_test(void **state)
{
    static const struct { const char *in, *out; } cases[] = {
        {"a", "****"}, {"12345678", "****"}, {"123456789", "****6789"}, {"\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f", "****"},
        {"12345678\xc3\xa4", "****678\xc3\xa4"},
    };
    Arena a = arena_make(1 << 20);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_true(str_eq(explain_mask(guard_copy(str_from(cases[i].in)), &a), str_from(cases[i].out)));
    arena_free(&a);
}

static const struct CMUnitTest config_tests[] = {
    cmocka_unit_test(config_toml_test),
    cmocka_unit_test(config_derive_test),
    cmocka_unit_test(config_derived_test),
    cmocka_unit_test(config_mask_test),
    cmocka_unit_test(config_vectors_test),
    cmocka_unit_test(config_coerce_test),
    cmocka_unit_test(config_layers_test),
    cmocka_unit_test(config_hostile_test),
    cmocka_unit_test_setup_teardown(config_open_test, fs_enter, fs_leave),
    cmocka_unit_test(config_registry_test),
};
