#include "host/doctor.h"
#include "host/plugin.h"
#include "host/registry.h"

#define PLUGIN_HEAD "manifest_version = 1\noperation_contract_version = 1\n"
#define PLUGIN_TAIL "[features]\nsupported = [\"exec.run\"]\n[operations]\ncli = [\"exec.run\"]\npython = []\n" \
                    "[workflow]\ninputs = []\nstartups = [\"exec\"]\n"
#define PLUGIN_EXEC(id) PLUGIN_HEAD "[provider]\nid = \"" id "\"\nversion = \"1.2\"\nname = \"Demo\"\n" \
                        "[runtime]\nkind = \"exec\"\ncommand = [\"./run\"]\n" PLUGIN_TAIL
#define PLUGIN_REST PLUGIN_HEAD "[provider]\nid = \"demo\"\nversion = \"1\"\n[runtime]\nkind = \"rest\"\n[endpoint]\n" \
                    "base_url = \"https://{x}\"\n" PLUGIN_TAIL

typedef struct PluginWorld { Arena a; Store s; Plugin p; Err err; } PluginWorld;

static PluginWorld plugin_open_world(void)
{
    PluginWorld w = {.a = arena_make(ARENA_COMMAND)};

    return w;
}

/* A plugin `demo` with this manifest and these members of its receipt, in ./home. */
static bool plugin_install(PluginWorld *w, const char *manifest, const char *receipt)
{
    StoreLock   lock;
    StoreChange change;
    Tree        t = tree_make();
    char        hex[TREE_HEX];

    w->s = store_make(STR("home"), &w->a);
    assert_true(mkdir("home", 0700) == 0 || errno == EEXIST);
    assert_true(tree_put(&t, MANIFEST_FILE, false, manifest, &w->err) && tree_put(&t, "run", true, "#!/bin/sh\nexit 7\n", &w->err));
    assert_true(tree_seal(&t, &w->err) && store_lock(&w->s, -1, &lock, &w->err));
    tree_digest(&t, hex);
    Str text = arena_fmt(&w->a, "{\"id\": \"demo\", \"version\": \"1.2\", \"trust\": \"local\", \"tree_sha256\": \"%s\"%s}\n", hex, receipt);
    assert_true(store_put(&lock, STR("demo"), &t, text, &change, &w->err));
    store_keep(&lock, &change);
    store_unlock(&lock);
    tree_free(&t);
    return plugin_load(&w->s, STR("demo"), &w->a, &w->p, &w->err);
}

static void plugin_close_world(PluginWorld *w)
{
    assert_int_equal(system("rm -rf home"), 0);
    arena_free(&w->a);
}

static void plugin_load_test(void **state)
{
    static const struct { const char *manifest; Code code; const char *text; } bad[] = {
        {PLUGIN_EXEC("other"), E8001, "is the manifest of \"other\", not of \"demo\""},
        {"manifest_version = 2\n", E8014, "home/providers/demo/abx-provider.toml"},
        {"x", E8014, "home/providers/demo/abx-provider.toml"},
        {PLUGIN_EXEC("demo") "[compat]\nrequires = { sdk = \">=99\" }\n", E8013, "sdk"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        PluginWorld w = plugin_open_world();
        if (plugin_install(&w, bad[i].manifest, "") || w.err.code != bad[i].code || !strstr(w.err.text, bad[i].text))
            fail_msg("%zu: %s", i, w.err.text);
        plugin_close_world(&w);
    }
    PluginWorld w = plugin_open_world();
    assert_true(plugin_install(&w, PLUGIN_EXEC("demo"), ""));
    assert_true(str_eq(w.p.manifest.id, STR("demo")) && w.p.inherit.n == 0 && strstr(w.p.files, "providers/demo"));
    /* A plugin that runs code is hashed when it is started, and not before. */
    assert_int_equal(system("echo >> home/providers/demo/run"), 0);
    assert_true(plugin_load(&w.s, STR("demo"), &w.a, &w.p, &w.err));
    assert_false(plugin_load(&w.s, STR("absent"), &w.a, &w.p, &w.err));
    assert_true(w.err.code == E8001);
    assert_true(!plugin_load(&w.s, STR("../demo"), &w.a, &w.p, &w.err) && w.err.code == E8001);
    assert_int_equal(system("rm home/providers/demo/abx-provider.toml"), 0);
    assert_true(!plugin_load(&w.s, STR("demo"), &w.a, &w.p, &w.err) && w.err.code == E8014);
    plugin_close_world(&w);
}

/* One that runs no code is hashed at once, and opening it says what it is. */
static void plugin_kind_test(void **state)
{
    PluginWorld w = plugin_open_world();
    Provider   *provider;

    (void)state;
    if (!plugin_install(&w, PLUGIN_REST, ""))
        fail_msg("%s", w.err.text);
    Config *c = config_load(&(ConfigInput){.allow_cwd_env = false}, &w.a);
    assert_false(plugin_open(&w.s, &w.p, c, &(ProviderHost){.cancel_fd = -1}, &provider, &w.err));
    assert_true(w.err.code == E8021 && strstr(w.err.text, "kind rest"));
    Settings none = {0};
    assert_true(!plugin_validate(&w.p, none, &w.err) && w.err.code == E1001);
    assert_int_equal(system("echo >> home/providers/demo/run"), 0);
    assert_true(!plugin_load(&w.s, STR("demo"), &w.a, &w.p, &w.err) && w.err.code == E8011);
    plugin_close_world(&w);
}

#define PLUGIN_FIELDS PLUGIN_EXEC("demo") \
    "[core]\ninherit = [\"sandbox_api_key\", \"sandbox_domain\"]\n" \
    "[config.fields.zone]\ndefault = 5\n[config.fields.size]\ntype = \"int\"\nrequired = true\n" \
    "[config.fields.token]\nsecret = true\ncredential = true\nrequired = true\nenv = [\"BOX_TOKEN\"]\n" \
    "[config.fields.list]\ntype = \"csv\"\ndefault = [\"a\", 1.0, { b = true }]\n" \
    "[config.fields.ratio]\ntype = \"float\"\ndefault = 1e-5\n[config.fields.big]\ndefault = 99999999999999999999\n" \
    "[config.fields.mode]\ntype = \"enum\"\nchoices = [\"Fast\"]\n[config.fields.none]\ndefault = \"\"\n"

/* What it gets of the core keys is what it asked for and was given. */
static void plugin_consent_test(void **state)
{
    PluginWorld w = plugin_open_world();

    (void)state;
    assert_true(plugin_install(&w, PLUGIN_FIELDS, ", \"consented\": {\"inherit\": [\"sandbox_base_url\", \"sandbox_domain\"]}"));
    assert_true(w.p.inherit.n == 1 && str_eq(w.p.inherit.v[0], STR("sandbox_domain")));
    assert_true(w.p.schema.inherits_domain && !w.p.schema.inherits_api_key && !w.p.schema.inherits_base_url);
    plugin_close_world(&w);
}

static void plugin_test_field(const Config *c, const PluginWorld *w, const char *key, FieldType type, const char *value)
{
    Arena       a = w->a;
    ConfigValue v = config_field(c, &w->p.schema, str_from(key), &a);

    if (v.type != type || !str_eq(v.value, str_from(value)))
        fail_msg("%s is <%.*s> of type %d", key, STR_ARG(v.value), v.type);
}

/* Defaults keep the type they have in the manifest; what is given gets the field's. */
static void plugin_types_test(void **state)
{
    const char *const none[] = {NULL}, *const given[] = {"ABX_DEMO_ZONE=5", "ABX_DEMO_LIST=x", "ABX_DEMO_RATIO=2", "ABX_DEMO_MODE=FAST", NULL};
    PluginWorld w = plugin_open_world();

    (void)state;
    assert_true(plugin_install(&w, PLUGIN_FIELDS, ""));
    Config *c = config_load(&(ConfigInput){.environ = none}, &w.a);
    plugin_test_field(c, &w, "zone", FIELD_INT, "5");
    plugin_test_field(c, &w, "list", FIELD_JSON, "[\"a\",1.0,{\"b\":true}]");
    plugin_test_field(c, &w, "ratio", FIELD_FLOAT, "1e-05");
    plugin_test_field(c, &w, "big", FIELD_STR, NULL);
    plugin_test_field(c, &w, "none", FIELD_STR, NULL);
    c = config_load(&(ConfigInput){.environ = given}, &w.a);
    plugin_test_field(c, &w, "zone", FIELD_STR, "5");
    plugin_test_field(c, &w, "list", FIELD_CSV, "x");
    plugin_test_field(c, &w, "ratio", FIELD_FLOAT, "2.0");
    plugin_test_field(c, &w, "mode", FIELD_ENUM, "Fast");
    plugin_close_world(&w);
}

#define PLUGIN_P(k, v) {{k, sizeof(k) - 1}, {v, sizeof(v) - 1}}
static void plugin_validate_test(void **state)
{
    static const Pair all[] = {PLUGIN_P("size", "1"), PLUGIN_P("token", "t"), PLUGIN_P("sandbox_domain", "d")};
    PluginWorld w = plugin_open_world();

    (void)state;
    assert_true(plugin_install(&w, PLUGIN_FIELDS "[auth]\nany_of = [[\"zone\", \"token\"], [\"sandbox_api_key\"], [\"sandbox_domain\"]]\n",
                               ", \"consented\": {\"inherit\": [\"sandbox_domain\"]}"));
    assert_false(plugin_validate(&w.p, (Settings){0}, &w.err));
    assert_true(w.err.code == E8002 && strstr(w.err.text, "size") && strstr(w.err.hint, "ABX_DEMO_SIZE") && strstr(w.err.hint, "providers.demo.size"));
    assert_false(plugin_validate(&w.p, (Settings){all, 1}, &w.err));
    assert_true(w.err.code == E1003 && strstr(w.err.text, "token") && strstr(w.err.hint, "ABX_DEMO_TOKEN, BOX_TOKEN"));
    assert_false(plugin_validate(&w.p, (Settings){all, 2}, &w.err));
    assert_true(w.err.code == E1003 && strstr(w.err.text, "ABX_DEMO_ZONE with ABX_DEMO_TOKEN, BOX_TOKEN; or ABX_DEMO_SANDBOX_API_KEY"));
    assert_true(plugin_validate(&w.p, (Settings){all, 3}, &w.err));
    plugin_close_world(&w);
}
#undef PLUGIN_P

/* An installed one takes precedence, and everything has one row. */
static void plugin_registry_test(void **state)
{
    PluginWorld w = plugin_open_world();
    RegistryRow row;
    const Str  *ids;
    size_t      n;

    (void)state;
    assert_true(plugin_install(&w, PLUGIN_EXEC("demo"), ""));
    assert_true(registry_find(&w.s, STR("demo"), &w.a, &row, &w.err) && row.plugin && !row.kind && str_eq(row.name, STR("Demo")));
    assert_int_equal(system("cd home/providers && cp -r demo opensandbox && cp -r demo zz && mkdir Bad && cp -r demo/. Bad"), 0);
    assert_true(registry_ids(&w.s, &w.a, &ids, &n, &w.err) && n == 4);
    assert_true(str_eq(ids[0], STR("alicloud-express")) && str_eq(ids[1], STR("demo")) && str_eq(ids[2], STR("opensandbox")) &&
                str_eq(ids[3], STR("zz")));
    /* An installed one that is broken does not fall back to the one compiled in. */
    assert_true(!registry_find(&w.s, STR("opensandbox"), &w.a, &row, &w.err) && w.err.code == E8001);
    assert_true(registry_find(NULL, STR("opensandbox"), &w.a, &row, &w.err) && row.kind);
    /* Data that an uninstalled one left behind is no plugin. */
    assert_int_equal(system("rm -r home/providers/opensandbox/* home/providers/opensandbox/.abx* && mkdir home/providers/opensandbox/data"), 0);
    assert_true(registry_find(&w.s, STR("opensandbox"), &w.a, &row, &w.err) && row.kind);
    assert_true(!registry_find(&w.s, STR("dem"), &w.a, &row, &w.err) && strstr(w.err.hint, "\"demo\""));
    plugin_close_world(&w);
}

static void plugin_doctor_say(const DoctorReport *r, Buf *to)
{
    buf_clear(to);
    for (size_t i = 0; i < r->n; i++)
        buf_addf(to, "%s %s: %.*s\n", r->v[i].name, r->v[i].ok ? "ok" : "FAIL", STR_ARG(r->v[i].detail));
}

static void plugin_doctor_test(void **state)
{
    const char *const none[] = {NULL}, *const given[] = {"ABX_DEMO_SIZE=1", "ABX_DEMO_TOKEN=t", NULL};
    PluginWorld  w = plugin_open_world();
    ProviderHost host = {.cancel_fd = -1};
    Buf          said = buf_make(10000);
    DoctorReport r;

    (void)state;
    assert_true(plugin_install(&w, PLUGIN_FIELDS, ""));
    Config *c = config_load(&(ConfigInput){.environ = none}, &w.a), *full = config_load(&(ConfigInput){.environ = given}, &w.a);
    doctor_run(&w.s, c, STR("absent"), true, &host, &w.a, &r);
    assert_true(!r.ok && r.n == 1 && r.v[0].code == E8001 && strcmp(r.v[0].name, "installed") == 0);
    doctor_run(&w.s, c, STR("opensandbox"), true, &host, &w.a, &r);
    plugin_doctor_say(&r, &said);
    assert_true(r.ok && str_eq(buf_str(&said), arena_fmt(&w.a, "installed ok: OpenSandbox %s\nconfig ok: \n", ABX_VERSION)));
    doctor_run(&w.s, c, STR("alicloud-express"), true, &host, &w.a, &r);
    assert_true(!r.ok && r.n == 1);
    doctor_run(&w.s, c, STR("demo"), true, &host, &w.a, &r);
    plugin_doctor_say(&r, &said);
    assert_true(!r.ok && str_eq(buf_str(&said), arena_fmt(&w.a, "installed ok: Demo 1.2\nintegrity ok: %.16s\n"
                                "config FAIL: provider demo needs the setting size, and it is not set\n", w.p.receipt.tree_sha256.p)));
    doctor_run(&w.s, full, STR("demo"), false, &host, &w.a, &r);
    assert_true(r.ok && r.n == 3);
    /* It ends with 7 at once: said, and no check passes for it. */
    doctor_run(&w.s, full, STR("demo"), true, &host, &w.a, &r);
    assert_true(!r.ok && r.n == 4 && strcmp(r.v[3].name, "handshake") == 0 && r.v[3].code == E8021);
    assert_int_equal(system("echo >> home/providers/demo/run"), 0);
    doctor_run(&w.s, full, STR("demo"), true, &host, &w.a, &r);
    assert_true(!r.ok && r.n == 2 && r.v[1].code == E8011);
    buf_free(&said);
    plugin_close_world(&w);
}

static const struct CMUnitTest plugin_tests[] = {
    cmocka_unit_test_setup_teardown(plugin_load_test, fs_enter, fs_leave),
    cmocka_unit_test_setup_teardown(plugin_kind_test, fs_enter, fs_leave),
    cmocka_unit_test_setup_teardown(plugin_consent_test, fs_enter, fs_leave),
    cmocka_unit_test_setup_teardown(plugin_types_test, fs_enter, fs_leave),
    cmocka_unit_test_setup_teardown(plugin_validate_test, fs_enter, fs_leave),
    cmocka_unit_test_setup_teardown(plugin_registry_test, fs_enter, fs_leave),
    cmocka_unit_test_setup_teardown(plugin_doctor_test, fs_enter, fs_leave),
};
