#include "data/glob.h"

static void glob_match_test(void **state)
{
    static const struct { const char *pattern, *yes, *no; } cases[] = {
        /* names apart by blanks; () is the empty one */
        {"",            "()",                       "a"},
        {"*",           "() a .a a/b \xff",         NULL},
        {"**",          "() a abc",                 NULL},
        {"a",           "a",                        "() b aa A"},
        {"?",           "a . / \xc3\xa4 \xe4\xbd\xa0 \xff", "() aa \xc3\xa4\xc3\xa4 \xff\xff"},
        {"*.txt",       ".txt a.txt a.b.txt",       "txt a.txt. a.tx"},
        {"a*b*c",       "abc aXbYc abbcc abcbc",    "ab acb abcd () bc"},
        {"*aab",        "aab aaab aabaab",          "aaba ab"},
        {"a?c*",        "abc abcd a\xc3\xa4" "c",   "ac abd"},
        {"[abc]",       "a b c",                    "() d ab"},
        {"[a-c]x",      "ax bx cx",                 "dx x -x ()"},
        {"[!a-c]",      "d A - \xc3\xa4",           "a b c"},
        {"[^a-c]",      "d ^",                      "a b c"},
        {"[]a]",        "] a",                      "b ]a"},
        {"[!]a]",       "b",                        "] a"},
        {"[a-]",        "a -",                      "b"},
        {"[-a]",        "a -",                      "b"},
        {"[a-a]",       "a",                        "b"},
        {"[c-a]",       NULL,                       "a b c"},
        {"[\\]]",       "]",                        "\\ a"},
        {"[\xc3\xa0-\xc3\xbf]", "\xc3\xa4",         "a \xc3 \xc4\x80"},
        {"[",           "[",                        "a ()"},
        {"[a",          "[a",                       "a [ [b"},
        {"[!",          "[!",                       "a"},
        {"[]",          "[]",                       "] ["},
        {"a[",          "a[",                       "a ab"},
        {"\\*",         "*",                        "a \\* ()"},
        {"\\[a]",       "[a]",                      "a"},
        {"\\",          "\\",                       "a ()"},
        {"a\\",         "a\\",                      "a"},
        {"\xff",        "\xff",                     "\xfe a"},
        {"\xef\xbf\xbd", "\xef\xbf\xbd",            "\xff"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int no = 0; no < 2; no++) {
            Str names = str_from(no ? cases[i].no : cases[i].yes), name;
            while (names.n) {
                if (!str_cut(&names, ' ', &name))
                    name = names, names.n = 0;
                if (str_eq(name, STR("()")))
                    name.n = 0;
                if (glob_match(str_from(cases[i].pattern), guard_copy(name)) != !no)
                    fail_msg("%s and %.*s", cases[i].pattern, STR_ARG(name));
            }
        }
}

/* What a folder hides, a pattern names by its dot. */
static void glob_name_test(void **state)
{
    static const struct { const char *pattern, *name; bool is; } cases[] = {
        {"*", "a", true}, {"*", ".a", false}, {"?a", ".a", false}, {"[.]a", ".a", false}, {".*", ".a", true}, {"\\.*", ".a", true},
        {"\\a*", ".a", false}, {".a", ".a", true}, {"a.*", "a.b", true}, {"*", "", true}, {"", ".", false}, {"\\", ".", false},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (glob_name(str_from(cases[i].pattern), guard_copy(str_from(cases[i].name))) != cases[i].is)
            fail_msg("%s and %s", cases[i].pattern, cases[i].name);
}

/* Patterns flush against the end of memory, cut everywhere. */
static void glob_cut_test(void **state)
{
    static const char pattern[] = "*[!a-\xc3\xa4\\]]?\\x[]z-*\xe4\xbd\xa0";
    (void)state;

    for (size_t n = 0; n < sizeof pattern; n++)
        glob_match(guard_copy((Str){pattern, n}), STR("aab\xe4\xbd\xa0x]z*"));
}

/* A pattern made to be slow: with one star to go back to it is not. */
static void glob_slow_test(void **state)
{
    char pattern[2 * 1000 + 1], name[2000];
    (void)state;

    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = i % 2 ? 'a' : '*';
    pattern[sizeof pattern - 1] = 'b';
    memset(name, 'a', sizeof name);
    assert_false(glob_match((Str){pattern, sizeof pattern}, (Str){name, sizeof name}));
}

static const struct CMUnitTest glob_tests[] = {
    cmocka_unit_test(glob_match_test), cmocka_unit_test(glob_name_test),
    cmocka_unit_test(glob_cut_test),
    cmocka_unit_test(glob_slow_test),
};
