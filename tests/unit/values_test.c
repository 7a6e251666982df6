#include "cli/commands.h"
#include "cli/values.h"

static void values_duration_test(void **state)
{
    static const struct { const char *in; bool ok; int64_t ms, s; } cases[] = {
        {"90", true, 90000, 90}, {"none", true, -1, -1}, {"250ms", true, 250, 1}, {"1h30m", true, 5400000, 5400},
        {"1001ms", true, 1001, 2}, {"0", false, 0, 0}, {"0s", false, 0, 0}, {"", false, 0, 0}, {"None", false, 0, 0},
        {"-1", false, 0, 0}, {"5 m", false, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t ms = 0, s = 0;
        Err     err;
        bool    ok = values_duration("--timeout", cases[i].in, &ms, &err);
        if (ok != cases[i].ok || ms != cases[i].ms || values_seconds("--timeout", cases[i].in, &s, &err) != ok ||
            s != cases[i].s)
            fail_msg("%s: %d %lld %lld", cases[i].in, ok, (long long)ms, (long long)s);
        if (!ok)
            assert_true(err.code == E8002 && strstr(err.text, "--timeout"));
    }
}

static void values_number_test(void **state)
{
    static const struct { const char *in; bool ok; } cases[] = {
        {"1", true}, {"65535", true}, {"0", false}, {"65536", false}, {"", false}, {"8o", false}, {"-1", false},
        {"99999999999999999999", false},
    };
    int64_t v = 0;
    Err     err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (values_number("PORT", cases[i].in, 1, 65535, &v, &err) != cases[i].ok)
            fail_msg("%s", cases[i].in);
}

static bool values_test_parse(char **words, Arena *a, Args *args)
{
    Err err;
    int argc = 0;

    while (words[argc])
        argc++;
    return args_parse(argc, words, commands_table(), a, args, &err);
}

static void values_env_test(void **state)
{
    Arena a = arena_make(ARENA_COMMAND);
    char *words[] = {"abx", "sandbox", "create", "-e", "A=1=2", "-e", "B=", "-e", "ABX_TEST_SET", NULL};
    char *unset[] = {"abx", "sandbox", "create", "-e", "ABX_TEST_UNSET", NULL};
    char *empty[] = {"abx", "sandbox", "create", "-e", "=x", NULL};
    ValuesPairs got;
    Args  args;
    Err   err;

    (void)state;
    setenv("ABX_TEST_SET", "from outside", 1);
    unsetenv("ABX_TEST_UNSET");
    assert_true(values_test_parse(words, &a, &args) && values_env(&args, -1, &a, &got, &err));
    assert_int_equal(got.n, 3);
    assert_string_equal(got.p[0].key, "A");
    assert_string_equal(got.p[0].value, "1=2");
    assert_string_equal(got.p[1].value, "");
    assert_string_equal(got.p[2].value, "from outside");
    assert_true(values_test_parse(unset, &a, &args));
    assert_false(values_env(&args, -1, &a, &got, &err));
    assert_non_null(strstr(err.text, "ABX_TEST_UNSET"));
    assert_true(values_test_parse(empty, &a, &args));
    assert_false(values_env(&args, -1, &a, &got, &err));
    setenv("ABX_TEST_SET", "\xff", 1);
    assert_true(values_test_parse(words, &a, &args));
    assert_false(values_env(&args, -1, &a, &got, &err));
    unsetenv("ABX_TEST_SET");
    arena_free(&a);
}

static void values_secret_test(void **state)
{
    static const struct { const char *key; bool secret; } cases[] = {
        {"api_key", true}, {"sandbox_api_key", true}, {"token", true}, {"access_key_secret", true},
        {"password", true}, {"base_url", false}, {"image", false}, {"", false},
    };
    Arena a = arena_make(ARENA_COMMAND);
    char *words[] = {"abx", "--option", "api_key=hunter2hunter2", "version", NULL};
    ValuesSettings got;
    Args  args;
    Err   err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(values__is_secret(cases[i].key), cases[i].secret);
    assert_true(values_test_parse(words, &a, &args));
    assert_false(values_settings(&args, -1, &a, &got, &err));
    assert_int_equal(err.code, E8002);
    assert_null(strstr(err.text, "hunter2"));
    assert_non_null(strstr(err.hint, "api_key=@FILE"));
    arena_free(&a);
}

/* A file of n letters and a line end, given as a setting. */
static bool values_test_file(size_t n, size_t *got_n)
{
    char   path[] = "/tmp/abx-values-XXXXXX";
    int    fd = mkstemp(path);
    Arena  a = arena_make(ARENA_COMMAND);
    char  *letters = arena_alloc(&a, n + 1);
    char  *words[] = {"abx", "--option", (char *)arena_fmt(&a, "api_key=@%s", path).p, "version", NULL};
    ValuesSettings got;
    Args   args;
    Err    err;

    memset(letters, 'k', n);
    assert_true(write(fd, letters, n) == (ssize_t)n && write(fd, "\n", 1) == 1);
    close(fd);
    assert_true(values_test_parse(words, &a, &args));
    bool ok = values_settings(&args, -1, &a, &got, &err);
    *got_n = ok ? strlen(got.p[0].value) : 0;
    unlink(path);
    arena_free(&a);
    return ok;
}

static void values_file_test(void **state)
{
    size_t n;

    (void)state;
    assert_true(values_test_file(10, &n) && n == 10);
    assert_true(values_test_file(LIMIT_SETTING - 1, &n) && n == LIMIT_SETTING - 1);
    assert_false(values_test_file(LIMIT_SETTING, &n));
}

static const struct CMUnitTest values_tests[] = {
    cmocka_unit_test(values_duration_test),
    cmocka_unit_test(values_number_test),
    cmocka_unit_test(values_env_test),
    cmocka_unit_test(values_secret_test),
    cmocka_unit_test(values_file_test),
};
