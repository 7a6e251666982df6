#include "cli/document.h"
#include "cli/screen.h"

static void screen_filter_test(void **state)
{
    static const struct { const char *in, *lines, *one; } cases[] = {
        {"", "", ""},
        {"plain caf\xc3\xa9 \xe4\xbd\xa0", "plain caf\xc3\xa9 \xe4\xbd\xa0", "plain caf\xc3\xa9 \xe4\xbd\xa0"},
        {"a\tb\nc", "a\tb\nc", "a\tb\\u000ac"},
        {"\r", "\\u000d", "\\u000d"},
        {"\x1b[31m", "\\u001b[31m", "\\u001b[31m"},
        {"\x7f", "\\u007f", "\\u007f"},
        {"\xc2\x80\xc2\x9b\xc2\xa0", "\\u0080\\u009b\xc2\xa0", "\\u0080\\u009b\xc2\xa0"},
        {"\xe2\x80\xae" "abc\xe2\x81\xa6", "\\u202eabc\\u2066", "\\u202eabc\\u2066"},
        {"\xd8\x9c\xe2\x80\x8e", "\\u061c\\u200e", "\\u061c\\u200e"},
        {"\xe2\x80\xa8", "\xe2\x80\xa8", "\\u2028"},
        {"\xff\xc3", "\\xff\\xc3", "\\xff\\xc3"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Arena a = arena_make(ARENA_COMMAND);
        Buf   b = buf_make(1000);
        screen_add(&b, guard_copy(str_from(cases[i].in)));
        if (!str_eq(buf_str(&b), str_from(cases[i].lines)))
            fail_msg("%zu: %.*s", i, STR_ARG(buf_str(&b)));
        Str one = screen_line(&a, guard_copy(str_from(cases[i].in)), true);
        if (!str_eq(one, str_from(cases[i].one)))
            fail_msg("%zu: %.*s", i, STR_ARG(one));
        buf_free(&b);
        arena_free(&a);
    }
}

/* Every byte string of two, and what steers never gets through. */
static void screen_all_pairs_test(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 65536; i++) {
        char in[2] = {(char)(i >> 8), (char)i};
        Buf  b = buf_make(100);
        screen_add(&b, (Str){in, 2});
        assert_true(utf8_valid(buf_str(&b)) && !b.over);
        for (size_t k = 0; k < b.n; k++) {
            unsigned char c = (unsigned char)b.p[k];
            assert_true((c >= 0x20 || c == '\t' || c == '\n') && c != 0x7f);
            assert_false(c == 0xc2 && (unsigned char)b.p[k + 1] < 0xa0);
        }
        buf_free(&b);
    }
}

/* A pipe gets the bytes, but one line stays one line. */
static void screen_pipe_test(void **state)
{
    Arena a = arena_make(ARENA_COMMAND);

    (void)state;
    assert_true(str_eq(screen_line(&a, STR("a\x1b\xff\nb"), false), STR("a\x1b\xff\\u000ab")));
    arena_free(&a);
}

static void screen_width_test(void **state)
{
    static const struct { const char *in; size_t want; } cases[] = {
        {"", 0}, {"abc", 3}, {"caf\xc3\xa9", 4}, {"cafe\xcc\x81", 4}, {"\xe4\xbd\xa0\xe5\xa5\xbd", 4},
        {"\xf0\x9f\x98\x80", 2}, {"\xff", 1}, {"\xe2\x80\x8b", 0}, {"\xea\xb0\x80", 2}, {"\xef\xbd\xb1", 1},
        {"\xe2\x80\xa6", 1}, {"\xf0\xa0\x80\x80", 2},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (screen_width(guard_copy(str_from(cases[i].in))) != cases[i].want)
            fail_msg("%s: %zu", cases[i].in, screen_width(str_from(cases[i].in)));
}

static void screen_ranges_test(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(screen__zero); i++)
        assert_true(screen__zero[i][0] <= screen__zero[i][1] && (i == 0 || screen__zero[i - 1][1] < screen__zero[i][0]));
    for (size_t i = 0; i < COUNT_OF(screen__wide); i++)
        assert_true(screen__wide[i][0] <= screen__wide[i][1] && (i == 0 || screen__wide[i - 1][1] < screen__wide[i][0]));
}

static void screen_table_test(void **state)
{
    static const char *const cells[] = {
        "ID", "STATUS", "NOTE", "a", "running", "", "\xe4\xbd\xa0\xe5\xa5\xbd", "x\ny", "end",
    };
    Arena a = arena_make(ARENA_COMMAND);
    Buf   b = buf_make(1000);
    DocumentTable t = document_table(&a, 3, false);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cells); i++)
        document_cell(&t, str_from(cells[i]));
    document_table_end(&t, &b);
    assert_true(str_eq(buf_str(&b), STR("ID    STATUS    NOTE\n"
                                        "a     running\n"
                                        "\xe4\xbd\xa0\xe5\xa5\xbd  x\\u000ay  end\n")));
    buf_free(&b);
    arena_free(&a);
}

static void screen_table_grows_test(void **state)
{
    Arena a = arena_make(ARENA_COMMAND);
    Buf   b = buf_make(1 << 20);
    DocumentTable t = document_table(&a, 1, false);

    (void)state;
    for (int i = 0; i < 1000; i++)
        document_cell(&t, arena_fmt(&a, "%d", i));
    document_table_end(&t, &b);
    assert_true(str_starts(buf_str(&b), STR("0\n1\n2\n")) && str_ends(buf_str(&b), STR("\n998\n999\n")));
    buf_free(&b);
    arena_free(&a);
}

static const struct CMUnitTest screen_tests[] = {
    cmocka_unit_test(screen_filter_test),
    cmocka_unit_test(screen_all_pairs_test),
    cmocka_unit_test(screen_pipe_test),
    cmocka_unit_test(screen_width_test),
    cmocka_unit_test(screen_ranges_test),
    cmocka_unit_test(screen_table_test),
    cmocka_unit_test(screen_table_grows_test),
};
