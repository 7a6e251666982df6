#include "data/clean.h"

static void clean_vectors_test(void **state)
{
    (void)state;
    vectors_whole("sanitize", 51);
}

static void clean_more_test(void **state)
{
    static const struct { const char *text, *out; } cases[] = {
        {"\x1b]0;title\x07rest", "rest"}, {"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"}, {"\xc2\x9b" "31mx", "31mx"},
        {"s3\rcret", "***"}, {"a\r\nb", "a b"}, {"\x1b]0;never ended", ""}, {"\x1b]0;to the line's end\nnext", " next"}, {"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\x1b]52;c;aGk=\x1b\\x", "x"}, {"a\tb\nc\rd", "a b cd"}, {"\x1b[38;5;1mred\x1b[0m", "red"}, {"\x1b", ""},
        {"key=s3cr\x1b[0met!", "key=***!"}, {"s3\x07" "cret", "***"}, {"s3\xc2\x85" "cret", "***"},
    };
    Str secret = STR("s3cret");

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Arena a = arena_make(4096);
        Str   got = clean_message(guard_copy(str_from(cases[i].text)), &secret, 1, &a);
        if (!str_eq(got, str_from(cases[i].out)))
            fail_msg("case %zu: <%.*s>", i, STR_ARG(got));
        arena_free(&a);
    }
}

static const struct CMUnitTest clean_tests[] = {
    cmocka_unit_test(clean_vectors_test),
    cmocka_unit_test(clean_more_test),
};
