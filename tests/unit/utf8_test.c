#include "base/utf8.h"

/* Replacement by maximal subparts: Unicode 3.9, tables 3-8 to 3-11, and more. */
static void utf8_clean_test(void **state)
{
#define FFFD "\xef\xbf\xbd"
    static const struct { Str in, want; } cases[] = {
        {{"", 0}, {"", 0}},
        {{"abc", 3}, {"abc", 3}},
        {{"a\0b", 3}, {"a\0b", 3}},
        {{"\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80", 9}, {"\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80", 9}},
        {{"\xc2\x80\xe0\xa0\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 13}, {"\xc2\x80\xe0\xa0\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 13}},
        {{"\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", 9}, {"\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", 9}},
        {{"\x80", 1}, {FFFD, 3}},
        {{"\xc0\xaf", 2}, {FFFD FFFD, 6}},                                  /* overlong */
        {{"\xc1\xbf", 2}, {FFFD FFFD, 6}},
        {{"\xe0\x80\xbf", 3}, {FFFD FFFD FFFD, 9}},
        {{"\xf0\x81\x82" "A", 4}, {FFFD FFFD FFFD "A", 10}},
        {{"\xf0\x8f\xbf\xbf", 4}, {FFFD FFFD FFFD FFFD, 12}},
        {{"\xed\xa0\x80\xed\xbf\xbf\xed\xaf" "A", 9}, {FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A", 25}}, /* surrogates */
        {{"\xf4\x91\x92\x93\xff" "A\x80\xbf" "B", 9}, {FFFD FFFD FFFD FFFD FFFD "A" FFFD FFFD "B", 23}},
        {{"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf" "A", 9}, {FFFD FFFD FFFD FFFD "A", 13}},
        {{"\xf0\x9f\x98", 3}, {FFFD, 3}},                                   /* cut */
        {{"\xe4\xb8", 2}, {FFFD, 3}},
        {{"\xe4", 1}, {FFFD, 3}},
        {{"\xf5\x80\x80\x80", 4}, {FFFD FFFD FFFD FFFD, 12}},
        {{"\xf8\x88\x80\x80\x80", 5}, {FFFD FFFD FFFD FFFD FFFD, 15}},
        {{"x\xc3(y", 4}, {"x" FFFD "(y", 6}},
    };
    Arena a = arena_make(1 << 16);
    Buf   b = buf_make(100);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str in = guard_copy(cases[i].in), got = utf8_clean(&a, in);
        buf_clear(&b);
        utf8_add(&b, in);
        if (!str_eq(got, cases[i].want) || got.p[got.n] != '\0' || !str_eq(buf_str(&b), cases[i].want) ||
            utf8_valid(in) != str_eq(cases[i].in, cases[i].want))
            fail_msg("case %zu: %.*s", i, STR_ARG(got));
    }
    arena_free(&a);
    buf_free(&b);
#undef FFFD
}

/* Every character there is, out and in again, and cut at every byte. */
static void utf8_all_test(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x110000; c++) {
        char     bytes[4];
        uint32_t back = 0, want = c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0xfffd : c;
        Str      s = {bytes, utf8_put(bytes, c)};
        size_t   n = s.n;
        if (n != (want < 0x80 ? 1 : want < 0x800 ? 2 : want < 0x10000 ? 3 : 4) || !utf8_next(&s, &back) || s.n != 0 ||
            back != want)
            fail_msg("U+%04X came back as U+%04X", c, back);
        for (size_t cut = 1; cut < n; cut++) {
            s = (Str){bytes, cut};
            if (utf8_next(&s, &back) || s.n != 0 || back != 0xfffd)
                fail_msg("U+%04X cut to %zu bytes", c, cut);
        }
    }
}

static void utf8_good_test(void **state)
{
    static const char bad[] = "0123456789abcdef0123456789\xff";

    (void)state;
    for (size_t from = 0; from < sizeof bad - 1; from++)
        assert_int_equal(utf8_good(guard_copy((Str){bad + from, sizeof bad - 1 - from})), sizeof bad - 2 - from);
    assert_int_equal(utf8_good(guard_copy(STR("caf\xc3"))), 3);
    assert_int_equal(utf8_good((Str){0}), 0);
}

static void utf8_trim_test(void **state)
{
    static const struct { const char *in, *want; } cases[] = {
        {"", ""}, {"a", "a"}, {" \t\r\n\v\f", ""}, {" a b\t", "a b"}, {"\xc2\xa0\xe3\x80\x80x\xe2\x80\xa8\x1c\x1f\xc2\x85", "x"},
        {"\xe2\x80\x8bx", "\xe2\x80\x8bx"}, {" \xff ", "\xff"}, {"\xe2\x80", "\xe2\x80"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (!str_eq(utf8_trim(guard_copy(str_from(cases[i].in))), str_from(cases[i].want)))
            fail_msg("case %zu", i);
}

/* Python's str.isspace(), by ranges. */
static void utf8_space_test(void **state)
{
    static const struct { uint32_t from, to; } spaces[] = {
        {0x9, 0xd}, {0x1c, 0x20}, {0x85, 0x85}, {0xa0, 0xa0}, {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029},
        {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
    };
    size_t row = 0;

    (void)state;
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        if (row < COUNT_OF(spaces) && c > spaces[row].to)
            row++;
        if (utf8_space(c) != (row < COUNT_OF(spaces) && c >= spaces[row].from))
            fail_msg("U+%04X", c);
    }
}

static const struct CMUnitTest utf8_tests[] = {
    cmocka_unit_test(utf8_clean_test),
    cmocka_unit_test(utf8_all_test),
    cmocka_unit_test(utf8_good_test),
    cmocka_unit_test(utf8_trim_test),
    cmocka_unit_test(utf8_space_test),
};
