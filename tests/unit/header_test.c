#include "net/header.h"

static void header_name_test(void **state)
{
    static const struct { Str in; bool ok; } cases[] = {
        {{"Host", 4}, true}, {{"x-a!#$%&'*+.^_`|~9", 18}, true}, {{"Z", 1}, true},
        {{"", 0}, false}, {{"a b", 3}, false}, {{"a:", 2}, false}, {{"a\0", 2}, false}, {{"a\r", 2}, false},
        {{"\xc3\xa4", 2}, false}, {{"a\x7f", 2}, false}, {{"@", 1}, false}, {{"[", 1}, false}, {{"{", 1}, false},
        {{"a\"", 2}, false}, {{"a/", 2}, false}, {{"a(", 2}, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (header_name_ok(guard_copy(cases[i].in)) != cases[i].ok)
            fail_msg("row %zu", i);
}

static void header_value_test(void **state)
{
    static const struct { Str in; bool ok; } cases[] = {
        {{"", 0}, true}, {{"x", 1}, true}, {{"a b\tc", 5}, true}, {{"\xc3\xa4\xff", 3}, true}, {{"\"a\"", 3}, true},
        {{" a", 2}, false}, {{"a ", 2}, false}, {{"\ta", 2}, false}, {{"a\t", 2}, false}, {{" ", 1}, false},
        {{"a\rb", 3}, false}, {{"a\nb", 3}, false}, {{"a\0b", 3}, false}, {{"a\x7f", 2}, false}, {{"\x1b[0m", 4}, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (header_value_ok(guard_copy(cases[i].in)) != cases[i].ok)
            fail_msg("row %zu", i);
}

static void header_lookup_test(void **state)
{
    const Header v[] = {
        {STR("Connection"), STR("keep-alive, Upgrade")}, {STR("X"), STR("1")}, {STR("connection"), STR("CLOSE")},
        {STR("x"), STR("2")}, {STR("E"), STR("")},
    };
    Headers h = {v, COUNT_OF(v)};

    (void)state;
    assert_true(str_eq(header_get(h, "x"), STR("1")));
    assert_null(header_get(h, "y").p);
    assert_non_null(header_get(h, "e").p);
    assert_int_equal(header_count(h, "X"), 2);
    assert_int_equal(header_count(h, "nothing"), 0);
    assert_true(header_has_token(h, "CONNECTION", "upgrade"));
    assert_true(header_has_token(h, "Connection", "close"));
    assert_false(header_has_token(h, "Connection", "keep"));
    assert_false(header_has_token(h, "E", "close"));
}

static const struct CMUnitTest header_tests[] = {
    cmocka_unit_test(header_name_test),
    cmocka_unit_test(header_value_test),
    cmocka_unit_test(header_lookup_test),
};
