#include "host/receipt.h"

/* tests/unit/receipt holds a manifest, and what the Python host made of it. */
static Str receipt_file(const char *name, Arena *a)
{
    char path[200];
    Buf  b = buf_make(1 << 20);
    Err  err;

    snprintf(path, sizeof path, "tests/unit/receipt/%s", name);
    if (!fs_read(path, &b, &err))
        fail_msg("%s (run the tests in the project's folder)", err.text);
    Str text = arena_str(a, buf_str(&b));
    buf_free(&b);
    return text;
}

static const Json *receipt_json(const char *text, Arena *a)
{
    const Json *doc;
    Err         err;

    assert_true(json_parse(str_from(text), a, &doc, &err));
    return doc;
}

static void receipt_python_test(void **state)
{
    Arena    a = arena_make(ARENA_COMMAND);
    Manifest m;
    Err      err;
    Buf      file = buf_make(LIMIT_RECEIPT), printed = buf_make(LIMIT_RECEIPT);
    JsonOut  w = json_out(&printed, JSON_PRETTY);

    (void)state;
    if (!manifest_parse(receipt_file("abx-provider.toml", &a), STR("x"), &a, &m, &err))
        fail_msg("%s", err.text);
    ReceiptNew r = {
        .manifest = &m, .source = {.type = RECEIPT_LOCAL, .path = STR("/home/user/plug")}, .trust = TRUST_LOCAL,
        .tree_sha256 = STR("4f6b2e8075b0882f4092c058a5bbd0de1632eeaf97f28fdaae3311a57dbd770c"),
        .installed_at = STR("2026-11-30T08:53:12Z"), .installed_by = receipt_json("{\"tool\": \"python-sdk\"}", &a),
    };
    receipt_write(&r, a, &file);
    assert_true(str_eq(buf_str(&file), receipt_file("file.json", &a)));
    receipt_print(&r, &w);
    buf_addc(&printed, '\n');
    assert_true(str_eq(buf_str(&printed), receipt_file("printed.json", &a)));
    buf_free(&file);
    buf_free(&printed);
    arena_free(&a);
}

static void receipt_kinds_test(void **state)
{
    static const struct { ReceiptSource s; const char *want; } sources[] = {
        {{.type = RECEIPT_LINK, .path = {"/p", 2}}, "{\"type\":\"link\",\"path\":\"/p\"}"},
        {{.type = RECEIPT_GIT, .url = {"u", 1}, .ref = {"HEAD", 4}, .commit = {"c", 1}},
         "{\"type\":\"git\",\"url\":\"u\",\"ref\":\"HEAD\",\"commit\":\"c\",\"subdir\":\"\"}"},
        {{.type = RECEIPT_CATALOG, .id = {"i", 1}, .registry = {"r", 1}}, "{\"type\":\"catalog\",\"id\":\"i\",\"registry\":\"r\"}"},
        {{.type = RECEIPT_CATALOG, .id = {"i", 1}, .registry = {"r", 1}, .archive_sha256 = {"a", 1}},
         "{\"type\":\"catalog\",\"id\":\"i\",\"registry\":\"r\",\"archive_sha256\":\"a\"}"},
    };
    /* who installed it is kept, if there is somebody */
    static const struct { const char *by; const char *want; } hosts[] = {
        {"{\"tool\": \"x\"}", "\"installed_by\":{\"tool\":\"x\"}}"}, {"{}", "\"installed_by\":{\"name\":\"abx\",\"version\":\""},
        {"\"x\"", "\"installed_by\":{\"name\":\"abx\",\"version\":\""}, {"null", "\"installed_by\":{\"name\":\"abx\",\"version\":\""},
    };
    Arena    a = arena_make(ARENA_COMMAND);
    Manifest m;
    Err      err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sources); i++) {
        Buf     b = buf_make(1000);
        JsonOut w = json_out(&b, JSON_COMPACT);
        receipt_source(&sources[i].s, &w);
        assert_true(str_eq(buf_str(&b), str_from(sources[i].want)));
        buf_free(&b);
    }
    assert_true(manifest_parse(receipt_file("abx-provider.toml", &a), STR("x"), &a, &m, &err));
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        Buf        b = buf_make(LIMIT_RECEIPT);
        JsonOut    w = json_out(&b, JSON_COMPACT);
        ReceiptNew r = {.manifest = &m, .installed_by = receipt_json(hosts[i].by, &a)};
        receipt_print(&r, &w);
        buf_addc(&b, '\0');
        if (!strstr(b.p, hosts[i].want))
            fail_msg("%s", b.p);
        buf_free(&b);
    }
    arena_free(&a);
}

static void receipt_read_test(void **state)
{
    static const struct { const char *text; bool ok; const char *trust; } cases[] = {
        {"{}", true, ""}, {"{\"trust\": \"local\", \"source\": 5}", true, "local"}, {"{\"trust\": 1}", true, ""},
        {"", false, ""}, {"[]", false, ""}, {"{", false, ""}, {"{} x", false, ""}, {"{\"a\": \"\xff\"}", false, ""}, {"null", false, ""},
    };
    Arena   a = arena_make(ARENA_COMMAND);
    Receipt r;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fs_put(RECEIPT_FILE, cases[i].text);
        bool ok = receipt_read(".", &a, &r);
        if (ok != cases[i].ok || (ok && (!str_eq(r.trust, str_from(cases[i].trust)) || !str_eq(r.text, str_from(cases[i].text)))))
            fail_msg("%s", cases[i].text);
    }
    fs_put(RECEIPT_FILE, "{\"id\":\"i\",\"version\":\"v\",\"tree_sha256\":\"t\",\"trust\":\"pinned\",\"consented\":{\"x\":1},"
                         "\"source\":{\"type\":\"git\",\"url\":\"u\",\"ref\":\"r\",\"commit\":\"c\",\"subdir\":\"s\"}}");
    assert_true(receipt_read(".", &a, &r) && r.source.type == RECEIPT_GIT && str_eq(r.source.url, STR("u")) &&
                str_eq(r.source.ref, STR("r")) && str_eq(r.source.commit, STR("c")) && str_eq(r.source.subdir, STR("s")) &&
                str_eq(r.id, STR("i")) && str_eq(r.version, STR("v")) && str_eq(r.tree_sha256, STR("t")) && json_count(r.consented) == 1);
    unlink(RECEIPT_FILE);
    assert_false(receipt_read(".", &a, &r));
    assert_true(mkfifo(RECEIPT_FILE, 0600) == 0);
    assert_false(receipt_read(".", &a, &r));

    /* another archive_sha256, and nothing else but the order */
    Buf b = buf_make(LIMIT_RECEIPT);
    receipt_rewrite(receipt_json("{\"z\": 1.50, \"source\": {\"type\": \"catalog\", \"archive_sha256\": \"old\", \"id\": \"i\"}, \"a\": [1]}", &a),
                    STR("new"), a, &b);
    assert_true(str_eq(buf_str(&b), STR("{\n  \"a\": [\n    1\n  ],\n  \"source\": {\n    \"archive_sha256\": \"new\",\n"
                                        "    \"id\": \"i\",\n    \"type\": \"catalog\"\n  },\n  \"z\": 1.5\n}\n")));
    buf_free(&b);
    arena_free(&a);
}

static const struct CMUnitTest receipt_tests[] = {
    cmocka_unit_test(receipt_python_test),
    cmocka_unit_test(receipt_kinds_test),
    cmocka_unit_test_setup_teardown(receipt_read_test, fs_enter, tree_leave),
};
