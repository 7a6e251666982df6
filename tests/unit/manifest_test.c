#include "base/limits.h"
#include "host/consented.h"
#include "host/manifest.h"

static void manifest_vectors_test(void **state)
{
    (void)state;
    vectors_whole("manifest", 320);
}

#define MANIFEST_HEAD "manifest_version = 1\noperation_contract_version = 1\n[provider]\nid = \"demo\"\nversion = \"1.2\"\n"
#define MANIFEST_EXEC_KIND "[runtime]\nkind = \"exec\"\ncommand = [\"x\"]\n"
#define MANIFEST_REST_KIND "[runtime]\nkind = \"rest\"\n[endpoint]\n"
#define MANIFEST_TAIL "[features]\nsupported = [\"exec.run\"]\n[operations]\ncli = []\npython = []\n[workflow]\ninputs = []\nstartups = []\n"
#define MANIFEST_DEMO MANIFEST_HEAD MANIFEST_EXEC_KIND MANIFEST_TAIL
#define MANIFEST_COMMAND "id=\"%s\"\ndescription=\"d\"\ndescription_zh=\"d\"\neffect=\"read\"\nidempotent=true\n" \
                         "input_schema={type=\"object\",additionalProperties=false}\noutput_schema={}\n"

/* What is refused, and how it is named. */
static void manifest_refuse_test(void **state)
{
    static const struct { const char *in; Code code; const char *text; } cases[] = {
        {"x", E8014, "F: line 1, column 2: expected '=' behind the key"},
        {"manifest_version = 2", E8014, "F: manifest_version must be the number 1"},
        {"manifest_version = 1\nprovider = 1", E8014, "F: provider must be a table"},
        {"manifest_version = 1", E8014, "F: provider is missing: it must be a table"},
        {"manifest_version = 1\n[provider]\nid = \" \"", E8014, "F: provider.id is required: it must be a string that is not blank"},
        {"manifest_version = 1\n[provider]\nid = \"A\\u001b[1m\\u009b\"", E8014, "F: provider.id: \"A\" is no id: words of small letters"},
        {"manifest_version = 1\n[provider]\nid = \"demo\"\nversion = \"one\"", E8014, "F: provider.version: \"one\" is no version (PEP 440)"},
        {MANIFEST_HEAD "[runtime]\nkind = \"python\"", E8014, "F: runtime.kind is \"python\", a kind that hosts no longer run"},
        {MANIFEST_HEAD "[runtime]\nkind = \"exec\"\n[compat]\nprotocol = \"epp/2\"", E8013, "F: compat.protocol is \"epp/2\": this host speaks epp/1"},
        {MANIFEST_HEAD "[runtime]\nkind = \"exec\"\n[compat.requires]\nsdk = \">1, <x\"", E8014, "F: compat.requires.sdk: \"<x\" is no comparison"},
        {MANIFEST_HEAD "[runtime]\nkind = \"exec\"", E8014, "F: runtime.command is required"},
        {MANIFEST_HEAD "[runtime]\nkind = \"exec\"\ncommand = [\"x.Bat\"]", E8014, "F: runtime.command: \"x.Bat\" is a script"},
        {MANIFEST_HEAD "[runtime]\nkind = \"exec\"\ncommand = [\"./a/..\\\\../x\"]", E8014, "F: runtime.command: \"./a/..\\../x\" leads out"},
        {MANIFEST_HEAD "[runtime]\nkind = \"node\"\nentry = \"a/../../x.js\"", E8014, "F: runtime.entry: \"a/../../x.js\" is no path"},
        {MANIFEST_HEAD "[runtime]\nkind = \"node\"\nentry = \"../../x.js\"", E8014, "F: runtime.entry: \"../../x.js\" is no path"},
        {MANIFEST_HEAD "[runtime]\nkind = \"rest\"", E8014, "F: endpoint is missing"},
        {MANIFEST_HEAD MANIFEST_REST_KIND "base_url = \"ftp://x\"", E8014, "F: endpoint.base_url must begin with"},
        {MANIFEST_HEAD MANIFEST_REST_KIND "auth = {scheme = \"basic\"}", E8014, "F: endpoint.auth.scheme must be"},
        {MANIFEST_HEAD MANIFEST_REST_KIND "derive = {x = \"y\"}", E8014, "F: endpoint.derive.*: \"x\" is no key of this table"},
        {MANIFEST_HEAD MANIFEST_REST_KIND "derive = {sandbox_domain = \"{a\"}", E8014, "F: endpoint.derive.sandbox_domain: \"{a\" holds braces"},
        {MANIFEST_HEAD MANIFEST_REST_KIND "derive = {sandbox_domain = \"{a:>3}\"}", E8014, "F: endpoint.derive.sandbox_domain: \"{a:>3}\" holds braces"},
        {MANIFEST_HEAD MANIFEST_REST_KIND "derive = {sandbox_domain = \"{}\"}", E8014, "F: endpoint.derive.sandbox_domain: \"{}\" holds braces"},
        {MANIFEST_HEAD MANIFEST_EXEC_KIND "platforms = 1", E8014, "F: runtime.platforms must be an array of strings"},
        {MANIFEST_HEAD MANIFEST_EXEC_KIND, E8014, "F: features is missing"},
        {MANIFEST_HEAD MANIFEST_EXEC_KIND "[features]\nsupported = [\"fly\"]", E8014, "F: features.supported: \"fly\" is none of the words"},
        {MANIFEST_DEMO "more = 1", E8014, "F: workflow.*: \"more\" is no key"},
        {MANIFEST_HEAD MANIFEST_EXEC_KIND "[features]\n[operations]\ncli = []\npython = []\n[workflow]\ninputs = [\"source\"]\nstartups = []\n"
         "source_placeholders = [\"<tag>\"]", E8014, "F: workflow.source_placeholders needs template.prepare"},
        {MANIFEST_HEAD MANIFEST_REST_KIND MANIFEST_TAIL "[commands]\nprotocol = \"provider-commands/1\"\nentries = [{}]", E8014,
         "F: commands.entries must be empty"},
        {MANIFEST_DEMO "[security]\nenv_passthrough = [\"abx_X\"]", E8014, "F: security.env_passthrough: \"abx_X\" is no name of a variable"},
        {MANIFEST_DEMO "[core]\ninherit = [\"region\"]", E8014, "F: core.inherit: \"region\" is none of the words"},
        {MANIFEST_DEMO "[config.fields.provider]", E8014, "F: config.fields.provider is no key of a setting"},
        {MANIFEST_DEMO "[config.fields.\"a\\n\"]", E8014, "F: config.fields.a  is no key of a setting"},
        {MANIFEST_DEMO "[config.fields]\na = 1", E8014, "F: config.fields.a must be a table"},
        {MANIFEST_DEMO "[config.fields.a]\nsecret = 1\ndefault = 0", E8014, "F: config.fields.a.default is not allowed"},
        {MANIFEST_DEMO "[config.fields.a]\ntype = \"enum\"", E8014, "F: config.fields.a.choices is required"},
        {MANIFEST_DEMO "[config.fields.a]\nenv = [\"e2b_x\"]", E8014, "F: config.fields.a.env: \"e2b_x\" is a variable that hosts keep"},
        {MANIFEST_DEMO "[auth]\nany_of = [[\"b\"]]", E8014, "F: auth.any_of: \"b\" is no setting of this provider"},
        {MANIFEST_DEMO "[commands]\nprotocol = \"provider-commands/1\"\n[[commands.entries]]\nx = 1", E8014, "F: commands.entries[0]: the key \"x\""},
        {MANIFEST_DEMO "[commands]\nprotocol = \"provider-commands/1\"\n[[commands.entries]]\nid = 2020-01-01", E8014,
         "F: commands.entries[0] holds a date"},
        {MANIFEST_DEMO "[commands]\nprotocol = \"provider-commands/1\"\n[[commands.entries]]\nid = \"a.b.\"", E8014, "F: commands.entries[0].id must be"},
    };
    Arena    a = arena_make((size_t)64 << 20);
    Manifest m;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Err err = {0};
        arena_reset(&a);
        if (manifest_parse(guard_copy(str_from(cases[i].in)), STR("F"), &a, &m, &err) || err.code != cases[i].code ||
            strncmp(err.text, cases[i].text, strlen(cases[i].text)) != 0)
            fail_msg("%s: %s", cases[i].in, err.text);
    }
    arena_free(&a);
}

/* Two mistakes: the one that is looked for first is told (2.12). */
static void manifest_order_test(void **state)
{
    static const char *const checks[][2] = {
        {"manifest_version = ", "\n"}, {"[provider]\nid = \"de", "m\"\nversion = \"1\"\n"},
        {"[runtime]\nkind = \"exec\"\ncommand = [", "]\n"}, {"[features]\nsupported = [", "]\n"},
    };
    static const char *const good[] = {"1", "", "\"x\"", "\"pty\""}, *const bad[] = {"2", " ", "1", "1"};
    static const char *const names[] = {"manifest_version", "provider.id", "runtime.command", "features.supported"};
    Arena    a = arena_make((size_t)64 << 20);
    Manifest m;

    (void)state;
    for (size_t first = 0; first < COUNT_OF(checks); first++) {
        char   text[1000];
        size_t n = 0;
        Err    err = {0};
        for (size_t i = 0; i < COUNT_OF(checks); i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s%s", checks[i][0], i < first ? good[i] : bad[i], checks[i][1]);
        arena_reset(&a);
        if (manifest_parse(str_from(text), STR("F"), &a, &m, &err) || strncmp(err.text + 3, names[first], strlen(names[first])) != 0)
            fail_msg("%s: %s", names[first], err.text);
    }
    arena_free(&a);
}

/* Commands come by id, their own keys in one order; in receipts all is sorted. */
static void manifest_consented_test(void **state)
{
    static const char plain[] = "[{\"id\":\"b-1\",\"description\":\"d\",\"description_zh\":\"d\",\"input_schema\":{\"type\":\"object\","
                                "\"additionalProperties\":false},\"output_schema\":{\"z\":100.0,\"y\":99999999999999999999,\"a\":[true,1e-05]},"
                                "\"effect\":\"read\",\"idempotent\":true},{\"id\":\"b.2\"";
    static const char sorted[] = "{\"commands\":[{\"description\":\"d\",\"description_zh\":\"d\",\"effect\":\"read\",\"id\":\"b-1\","
                                 "\"idempotent\":true,\"input_schema\":{\"additionalProperties\":false,\"type\":\"object\"},\"output_schema\":"
                                 "{\"a\":[true,1e-05],\"y\":99999999999999999999,\"z\":100.0}},{\"description\"";
    char     text[2000];
    Arena    a = arena_make((size_t)64 << 20);
    Buf      out = buf_make(100000);
    Manifest m;
    Err      err;

    (void)state;
    snprintf(text, sizeof text, MANIFEST_DEMO "[commands]\nprotocol=\"provider-commands/1\"\n[[commands.entries]]\n" MANIFEST_COMMAND
             "[[commands.entries]]\n" MANIFEST_COMMAND "z=100.0\n", "b.2", "b-1");
    memcpy(strstr(text, "output_schema={}\nz=100.0"), "output_schema.z=1e2 \n   ", 24);
    snprintf(text + strlen(text) - 4, 100, "\noutput_schema.y=99999999999999999999\noutput_schema.a=[true,1e-5]\n");
    if (!manifest_parse(guard_copy(str_from(text)), STR("F"), &a, &m, &err))
        fail_msg("%s", err.text);
    JsonOut w = json_out(&out, JSON_COMPACT);
    consented_put(&m, &w, false);
    buf_addc(&out, '\0');
    if (!strstr(out.p, plain))
        fail_msg("%s", out.p);
    buf_clear(&out);
    w = json_out(&out, JSON_COMPACT);
    consented_put(&m, &w, true);
    buf_addc(&out, '\0');
    if (strncmp(out.p, sorted, sizeof sorted - 1) != 0)
        fail_msg("%s", out.p);
    buf_free(&out);
    arena_free(&a);
}

static void manifest_values_test(void **state)
{
    static const char text[] = MANIFEST_HEAD "name_zh = \"\xe4\xb8\xad\"\n[runtime]\nkind = \"node\"\nentry = \".\\\\a\\\\..\\\\b/./c.mjs\"\n"
        MANIFEST_TAIL "[config.fields.token]\nsecret = true\ncredential = 1\nrequired = [0]\nenv = [\"T\"]\n[config.fields.url]\ntype = \"url\"\n"
        "default = \"\"\n[config.fields.n]\ntype = \"int\"\ndefault = 5\n[auth]\nany_of = [[\"token\", \"sandbox_api_key\"], []]\n"
        "[compat.requires]\nsdk = \">=0.4.0a1,<0.5\"\nabx = \">=0.1\"\nother = \">99\"\n";
    Arena    a = arena_make((size_t)64 << 20);
    Manifest m;
    Err      err;

    (void)state;
    if (!manifest_parse(guard_copy(STR(text)), STR("F"), &a, &m, &err))
        fail_msg("%s", err.text);
    assert_true(str_eq(m.name, STR("demo")) && str_eq(m.name_zh, STR("\xe4\xb8\xad")) && m.kind == MANIFEST_NODE);
    assert_true(m.command.n == 1 && str_eq(m.command.v[0], STR("b/c.mjs")));
    assert_true(m.field_count == 3 && m.fields[0].secret && m.fields[0].credential && m.fields[0].required && m.fields[0].env.n == 1);
    assert_true(m.fields[1].type == FIELD_URL && !m.fields[1].fallback && m.fields[2].fallback->integer == 5);
    assert_true(m.any_of_count == 2 && m.any_of[0].n == 2 && m.any_of[1].n == 0);
    assert_true(m.requires_count == 3 && manifest_supported(&m, &err));
    ((Pair *)m.requires_)[1].value = STR(">=0.1, <0.1");
    assert_true(!manifest_supported(&m, &err) && err.code == E8013);
    assert_string_equal(err.text, "provider demo needs abx >=0.1, <0.1: this host answers for abx " ABX_VERSION);
    ((Pair *)m.requires_)[0].value = STR(">=0.4");
    assert_true(!manifest_supported(&m, &err) && strstr(err.text, "needs sdk >=0.4: this host answers for sdk 0.4.0a6"));
    assert_true(manifest_feature_rank(STR("sandbox.lifecycle")) == 0 && manifest_feature_rank(STR("sessions")) == 17 &&
                manifest_feature_rank(STR("x")) == -1);

    /* every cut is refused, or one that the rest does not matter to */
    size_t whole = strlen(MANIFEST_DEMO), read = 0;
    for (size_t n = 0; n <= whole; n++) {
        arena_reset(&a);
        err = (Err){0};
        bool ok = manifest_parse(guard_copy((Str){MANIFEST_DEMO, n}), STR("F"), &a, &m, &err);
        assert_true(ok ? n >= whole - 1 : err.code == E8014);
        read += ok;
    }
    assert_int_equal(read, 2);
    arena_free(&a);
}

static void manifest_size_test(void **state)
{
    Arena    a = arena_make((size_t)64 << 20);
    Buf      b = buf_make(2 * LIMIT_MANIFEST);
    Manifest m;
    Err      err;

    (void)state;
    buf_add(&b, STR(MANIFEST_DEMO "#"));
    while (b.n < LIMIT_MANIFEST)
        buf_addc(&b, 'x');
    assert_true(manifest_parse(buf_str(&b), STR("F"), &a, &m, &err));
    buf_addc(&b, 'x');
    assert_true(!manifest_parse(buf_str(&b), STR("F"), &a, &m, &err) && err.code == E8014);
    assert_string_equal(err.text, "F: 262145 bytes, more than 262144");
    /* 128 commands, and one more */
    for (int extra = 0; extra < 2; extra++) {
        buf_clear(&b);
        buf_add(&b, STR(MANIFEST_DEMO "[commands]\nprotocol=\"provider-commands/1\"\n"));
        for (int i = 0; i < LIMIT_DESCRIPTORS + extra; i++) {
            char id[16];
            snprintf(id, sizeof id, "c%d", i);
            buf_addf(&b, "[[commands.entries]]\n" MANIFEST_COMMAND, id);
        }
        arena_reset(&a);
        assert_true(manifest_parse(buf_str(&b), STR("F"), &a, &m, &err) == !extra);
    }
    assert_string_equal(err.text, "F: commands.entries must be an array of at most 128 tables");
    buf_free(&b);
    arena_free(&a);
}

/* What can stand before the colon of a reference, whether or not it is there. */
static void manifest_id_test(void **state)
{
    static const char *const good[] = {"ab", "a1", "a-b", "a-1", "opensandbox", "alicloud-container", "e2b", "cubesandbox", "abx", "corex",
                                       "abcdefghijklmnopqrstuvwxyz-abcdefghijklm"};
    static const char *const bad[] = {"", "a", "1a", "-a", "a-", "a--b", "A-b", "a_b", "a.b", "a b", "ab\n", "core", "providers", "alicloud-express",
                                      "abx-x", "alicloud-x", "shortcutsx", "abcdefghijklmnopqrstuvwxyz-abcdefghijklmn"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        if (!manifest_is_id(guard_copy(str_from(good[i]))))
            fail_msg("%s", good[i]);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (manifest_is_id(guard_copy(str_from(bad[i]))))
            fail_msg("%s", bad[i]);
}

static const struct CMUnitTest manifest_tests[] = {
    cmocka_unit_test(manifest_vectors_test),
    cmocka_unit_test(manifest_refuse_test),
    cmocka_unit_test(manifest_order_test),
    cmocka_unit_test(manifest_consented_test),
    cmocka_unit_test(manifest_values_test),
    cmocka_unit_test(manifest_size_test),
    cmocka_unit_test(manifest_id_test),
};
