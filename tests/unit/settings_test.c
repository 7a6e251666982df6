#include "host/edit.h"
#include "host/settings.h"

static void settings_vectors_test(void **state)
{
    (void)state;
    vectors_whole("settings_edit", 44);
}

/* ---- one change to a TOML text ---- */

typedef struct EditCase {
    const char *path, *before, *after;      /* after NULL: E8002 */
} EditCase;

static EditPath edit_test_path(const char *text)
{
    EditPath path = {.n = 0};
    Str      rest = str_from(text), part;

    while (str_cut(&rest, '.', &part))
        path.part[path.n++] = part;
    return path;
}

static void edit_test_case(const EditCase *t, bool cut, EditWhere where)
{
    Arena    a = arena_make(64 << 20);
    EditPath path = edit_test_path(t->path);
    Str      out = {0}, text = guard_copy(str_from(t->before));
    Err      err = {0};
    bool     ok = cut ? edit_cut(text, &path, &a, &out, &err) : edit_put(text, &path, STR("9"), where, &a, &out, &err);

    if (ok != (t->after != NULL) || (ok && !str_eq(out, str_from(t->after))) || (!ok && err.code != E8002))
        fail_msg("%s of <%s>: <%.*s> %s", t->path, t->before, STR_ARG(out), err.text);
    arena_free(&a);
}

static void edit_put_test(void **state)
{
    static const EditCase cases[] = {
        {"t.k", "", "[t]\nk = 9\n"},
        {"t.k", "# c", "# c\n\n[t]\nk = 9\n"},
        {"t.k", "[t]", "[t]\nk = 9\n"},
        {"t.k", "[t] # c\n  k = 1 # d\n", "[t] # c\n  k = 9 # d\n"},
        {"t.k", "[t]\na = 1\n\n# about x\n[x]\n", "[t]\na = 1\nk = 9\n\n# about x\n[x]\n"},
        {"t.k", "[t]\na = \"\"\"\n[x]\n\"\"\" # c\n[x]\n", "[t]\na = \"\"\"\n[x]\n\"\"\" # c\nk = 9\n[x]\n"},
        {"t.k", "[t]\n# nothing yet\n[x]\n", "[t]\nk = 9\n# nothing yet\n[x]\n"},
        {"t.k", "[t]\nk = [\n 1,\n # c\n 2 ] # d\n", "[t]\nk = 9 # d\n"},
        {"t.k", "[t]\na.b = 1\n\n[x]\n", "[t]\na.b = 1\nk = 9\n\n[x]\n"},
        {"t.k", "t.k = 1\n", "t.k = 9\n"},
        {"t.k", "t.a = 1 # c\nu = 2\n[x]\n", "t.a = 1 # c\nt.k = 9\nu = 2\n[x]\n"},
        {"t.k", "t = {}\n", "t = { k = 9 }\n"},
        {"t.k", "t = {a = 1, b.c = {d = 2} } # e\n", "t = {a = 1, b.c = {d = 2}, k = 9 } # e\n"},
        {"t.k", "t = { \"k\" = {a = 1} }\n", "t = { \"k\" = 9 }\n"},
        {"t.k", "[t.sub]\na = 1\n", "[t.sub]\na = 1\n\n[t]\nk = 9\n"},
        {"t.k", "['t']\n'k' = 1", "['t']\n'k' = 9"},
        {"t.k", "[x]\r\na = 1\r\n", "[x]\r\na = 1\r\n\r\n[t]\r\nk = 9\r\n"},
        {"p.d.k", "[p.e]\nk = 1\n", "[p.e]\nk = 1\n\n[p.d]\nk = 9\n"},
        {"p.d.k", "[p]\nd.a = 1\n[p.d.sub]\n", "[p]\nd.a = 1\nd.k = 9\n[p.d.sub]\n"},
        {"p.d.k", "p.d.a = 1\n", "p.d.a = 1\np.d.k = 9\n"},
        {"p.d.k", "p.e.a = 1\n", "p.e.a = 1\n\n[p.d]\nk = 9\n"},
        {"p.d.k", "p = { e = {} }\n", "p = { e = {}, d.k = 9 }\n"},
        {"p.d.k", "p = { d.a = 1 }\n", "p = { d.a = 1, d.k = 9 }\n"},
        {"p.d.k", "[p]\nd = { a = 1 }\n", "[p]\nd = { a = 1, k = 9 }\n"},
        {"t.k", "t = 1\n", NULL}, {"t.k", "[[t]]\na = 1\n", NULL}, {"t.k", "[t.k]\na = 1\n", NULL}, {"t.k", "t.k.a = 1\n", NULL},
        {"t.k", "[t\n", NULL}, {"t.k", "a = 1\na = 2\n", NULL}, {"p.d.k", "p.d = 1\n", NULL},
    };
    static const EditCase as_hosts[] = {
        {"t.k", "[t]\n  k = 1 # d\na = 2\n", "[t]\nk = 9\na = 2\n"},
        {"t.k", "[t]\na = 1\n# c\n\n[x]\n", "[t]\na = 1\n# c\n\nk = 9\n[x]\n"},
        {"t.k", "t = { k = 1 } # c\n", "t = { k = 9 } # c\n"}, {"t.k", "t.k = 1 # c\n", "t.k = 9 # c\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        edit_test_case(&cases[i], false, EDIT_BESIDE);
    for (size_t i = 0; i < COUNT_OF(as_hosts); i++)
        edit_test_case(&as_hosts[i], false, EDIT_AS_HOSTS);
}

static void edit_cut_test(void **state)
{
    static const EditCase cases[] = {
        {"t.k", "", ""}, {"t.k", "[t]\na = 1\n", "[t]\na = 1\n"}, {"t.k", "[t]\nk = 1 # c\na = 2", "[t]\na = 2"},
        {"t.k", "[t]\nk = '''\n[x]\n'''\r\na = 2\r\n", "[t]\na = 2\r\n"},
        {"t.k", "t.k = 1\nt.a = 2\n", "t.a = 2\n"}, {"t.k", "t.k.a = 1\nx = 3\nt.k.b = 2\n", "x = 3\n"},
        {"t.k", "t = { k = 1 }\n", "t = {  }\n"}, {"t.k", "t = { k = 1, a = 2 }\n", "t = { a = 2 }\n"},
        {"t.k", "t = { a = 2, k = 1 }\n", "t = { a = 2 }\n"},
        {"t.k", "t = { k.b = 1, a = 2, k.c = { d = 3 } } # e\n", "t = { a = 2 } # e\n"},
        {"t.k", "t = { a.b = 1, k = 2, a.c = 3 }\n", "t = { a.b = 1, a.c = 3 }\n"},
        {"p.d", "[p.d]\na = 1\n[x]\n[p.d.e]\n[[p.d.f]]\n[[p.d.f]]\nb = 2\n[p.dd]\n", "[x]\n[p.dd]\n"},
        {"p.d", "p.d.a = 1\n", ""}, {"p.d", "[p]\nd = 1\n[p.e]\n", "[p]\n[p.e]\n"},
        {"p.d", "[[p.d]]\n[p.d.a]\n[[p.d]]\n[p]\n", "[p]\n"},
        {"p.d", "[[p]]\n[p.d]\n", "[[p]]\n[p.d]\n"},    /* a list is no table: nothing of it is named so */
        {"p.d", "[p.d\n", NULL}, {"p.d", "\xff", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        edit_test_case(&cases[i], true, EDIT_BESIDE);
}

static void edit_literal_test(void **state)
{
    Arena a = arena_make(1 << 20);

    (void)state;
    assert_true(str_eq(edit_literal(FIELD_INT, STR("5"), &a), STR("5")));
    assert_true(str_eq(edit_literal(FIELD_CSV, STR("a,b"), &a), STR("\"a,b\"")));
    assert_true(str_eq(edit_literal(FIELD_STR, STR("\"\\\n\t\r\x01\x7f\xc3\xa9"), &a),
                       STR("\"\\\"\\\\\\n\\t\\r\\u0001\\u007F\xc3\xa9\"")));
    arena_free(&a);
}

/* ---- .env ---- */

static void settings_env_test(void **state)
{
    static const struct { const char *before, *value, *after; } cases[] = {
        {NULL, "v", "K=v\n"}, {"", "v", "K=v\n"}, {"A=1", "v", "A=1\nK=v\n"}, {"K=1 # c\nA=2\n", "v", "K=v\nA=2\n"},
        {"export K='a\nb'\r\nA=2\r\nK=3\r\n\r\n", "v", "A=2\r\nK=v\n\r\n"}, {"\xef\xbb\xbfK=1\n", "v", "\xef\xbb\xbfK=v\n"},
        {"KK=1\nK\n", "v", "KK=1\nK=v\n"}, {"K=1\rA=2\r", "v", "K=v\nA=2\r"},
        {"A=1\n", "a b", "A=1\nK='a b'\n"}, {"", "it's", "K=\"it's\"\n"}, {"", "a\nb\\", "K=\"a\\nb\\\\\"\n"},
        {"", "x${A}", "K='x${:-$}{A}'\n"}, {"", "#", "K='#'\n"}, {"", "a\"b", "K='a\"b'\n"},
        {"K=1\nA=2\n", NULL, "A=2\n"}, {"A=2\n", NULL, "A=2\n"}, {NULL, NULL, NULL},
        {"A=\"open\n", "it's", ""}, {"A='open\n", "a b", ""},       /* "": E8002 */
        {"\xff", "v", ""}, {"", "", ""}, {"", " a", ""}, {"", "a\xc2\xa0", ""}, {"", "\xff", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Arena a = arena_make(64 << 20);
        Str   before = cases[i].before ? guard_copy(str_from(cases[i].before)) : (Str){0}, out = {0};
        Str   value = str_from(cases[i].value), after = str_from(cases[i].after);
        bool  there, refused = after.p && after.n == 0;
        Err   err = {0};
        bool  ok = settings_env(before, STR("K"), value, &a, &out, &there, &err);
        if (ok == refused || (ok && (!out.p != !after.p || !str_eq(out, after))) || (!ok && err.code != E8002))
            fail_msg("row %zu: <%.*s> %s", i, STR_ARG(out), err.text);
        arena_free(&a);
    }
}

/* Variables of the host look like those of a provider called sandbox. */
static void settings_purge_test(void **state)
{
    Arena a = arena_make(64 << 20);
    Str   out;
    Err   err;

    (void)state;
    assert_true(settings_purge_env(STR("ABX_SANDBOX_API_KEY=1\nABX_SANDBOX_ZONE=2\nABX_SANDBOX_X_A=3\n"), STR("sandbox"),
                                   &STR("sandbox-x"), 1, &a, &out, &err));
    assert_true(str_eq(out, STR("ABX_SANDBOX_API_KEY=1\nABX_SANDBOX_X_A=3\n")));
    assert_true(settings_purge_env(STR("A=1\nABX_DEMO_X='a\nABX_B=2'\nB=3"), STR("demo"), NULL, 0, &a, &out, &err));
    assert_true(str_eq(out, STR("A=1\nB=3\n")));
    assert_true(!settings_purge_env(STR("\xff"), STR("demo"), NULL, 0, &a, &out, &err) && err.code == E8002);
    arena_free(&a);
}

/* The files: made, changed, and left alone when they cannot be understood. */
static void settings_files_test(void **state)
{
    struct stat st;
    bool        there;
    Err         err = {0};
    Str         home = STR("home");

    (void)state;
    assert_true(settings_set_default(home, STR(""), &err) && stat("home/config.toml", &st) != 0);
    assert_true(settings_set_default(home, STR("demo"), &err) && settings_is_default(home, STR("demo")));
    assert_true(stat("home/config.toml", &st) == 0 && (st.st_mode & 0777) == 0600);
    assert_true(settings_put_toml(home, STR("providers.demo"), STR("zone"), FIELD_STR, STR("a"), NULL, &err));
    assert_true(settings_put_env(home, STR("ABX_DEMO_TOKEN"), STR("t"), NULL, &err));
    assert_true(settings_put_env(home, STR("ABX_DEMO_TOKEN"), (Str){0}, &there, &err) && there);
    assert_true(settings_put_toml(home, STR("providers.demo"), STR("zone"), FIELD_STR, (Str){0}, &there, &err) && there);
    assert_true(settings_put_toml(home, STR("providers.demo"), STR("zone"), FIELD_STR, (Str){0}, &there, &err) && !there);
    assert_true(settings_purge(home, STR("demo"), NULL, 0, &err));
    assert_true(settings_set_default(home, STR("alicloud-express"), &err) && !settings_is_default(home, STR("demo")));
    fs_put("home/config.toml", "[core\n");
    assert_true(!settings_set_default(home, STR("demo"), &err) && err.code == E8002 && strstr(err.text, "home/config.toml: line 1"));
    assert_true(!settings_set_default(STR(""), STR("demo"), &err) && err.code == E8002);
    assert_true(unlink("home/config.toml") == 0 && mkdir("home/config.toml", 0700) == 0);
    assert_true(!settings_set_default(home, STR("demo"), &err) && err.kind == ERR_INPUT);
    assert_true(rmdir("home/config.toml") == 0 && unlink("home/.env") == 0 && rmdir("home") == 0);
}

static const struct CMUnitTest settings_tests[] = {
    cmocka_unit_test(settings_vectors_test),
    cmocka_unit_test(edit_put_test),
    cmocka_unit_test(edit_cut_test),
    cmocka_unit_test(edit_literal_test),
    cmocka_unit_test(settings_env_test),
    cmocka_unit_test(settings_purge_test),
    cmocka_unit_test_setup_teardown(settings_files_test, fs_enter, fs_leave),
};
