#include "data/pep440.h"

static void pep440_vectors_test(void **state)
{
    (void)state;
    vectors_whole("versions", 94);
}

static Version pep440_of(const char *text)
{
    Version v = {0};

    if (!pep440_parse(str_from(text), &v))
        fail_msg("%s", text);
    return v;
}

/* Each before the next, whatever is between them. */
static void pep440_order_test(void **state)
{
    static const char *const sorted[] = {
        "0", "1.dev0", "1.0.dev9", "1.0.dev10", "1.0.dev99999999999999999999999", "1.0a.dev1", "1.0a", "1.0a.post.dev", "1.0a0.post", "1.0a2",
        "1.0a10", "1.0b0", "1.0c1", "1.0rc2", "1.0", "1.0+a", "1.0+a.b", "1.0+ab", "1.0+b.z", "1.0+0", "1.0+0.a", "1.0+1", "1.0+00010",
        "1.0.post0.dev0", "1-0", "1.0-1", "1.0.0.0.1", "1.0.1", "1.1.dev0", "1.1", "1.9", "1.10", "9.99", "10", "99999999999999999999999.1",
        "100000000000000000000000.0", "1!0.dev0", "1!0", "2!0", "10!0",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sorted); i++)
        for (size_t k = 0; k < COUNT_OF(sorted); k++) {
            Version a = pep440_of(sorted[i]), b = pep440_of(sorted[k]);
            int     d = pep440_compare(&a, &b);
            if ((d > 0) - (d < 0) != (i > k) - (i < k))
                fail_msg("%s and %s: %d", sorted[i], sorted[k], d);
        }
}

static void pep440_parse_test(void **state)
{
    static const char *const same[][2] = {
        {"1", "1.0.0"}, {"1a", "1.0-ALPHA_0"}, {"1b2", "1.beta2"}, {"1rc3", "1_c.3"}, {"1rc3", "1preview3"}, {"1rc3", "1-PRE-3"},
        {"1.post4", "1-4"}, {"1.post4", "1r4"}, {"1.post4", "1_rev_004"}, {"1.post0", "1post"}, {"1.dev5", "1DEV5"}, {"1a0", "1a-"},
        {"1a1.post2", "1a1-2"}, {"1a0.dev0", "1a.dev"}, {"1a0.dev0", "1adev"}, {"1+a.1", "1+A-01"}, {"0!1", "1"}, {"\xe3\x80\x80v01 ", "1"},
        {"1a0.post1", "1a--1"}, {"1.post0.dev0", "1.post.dev"}, {"1a0+x", "1a_+x"},
    };
    static const char *const bad[] = {
        "", " ", "v", "v v1", "1.", ".1", "1!", "!1", "1!!2", "1..2", "1.0-", "1.0+", "1+a.", "1+.a", "1+a..b", "1+a+b", "1.0.x", "1 a1", "1a1b1",
        "1.post1.post2", "1.dev1.dev2", "1.dev1a1", "1.dev1.post1", "1.0.*", "1--1", "1a1-", "1,2", "1.0 ;", "\xd9\xa1", "1\xd9\xa1", "1+\xc3\xa9", "1.al",
        "v\n1", "-1", "+1", "1-post--1",
    };
    Version v;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(same); i++) {
        Version a = pep440_of(same[i][0]), b = pep440_of(same[i][1]);
        if (pep440_compare(&a, &b) != 0)
            fail_msg("%s and %s", same[i][0], same[i][1]);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (pep440_parse(guard_copy(str_from(bad[i])), &v))
            fail_msg("%s", bad[i]);
    for (Str whole = STR("v1!2.03.4-rc_5.post6_dev7+ab.8-c"), s = whole; s.n; s.n--)
        (void)!pep440_parse(guard_copy(s), &v);
}

/* What `~=` allows below, and no longer. */
static void pep440_above_test(void **state)
{
    static const char *const cases[][3] = {
        {"~=1.4.2", "1.4.99", "1.5"}, {"~=1.4", "1.99", "2"}, {"~=1", "1.99", "2"}, {"~=9", "9.9", "10"}, {"~=1.9.0", "1.9.9", "1.10"},
        {"~=99.99.1", "99.99.9", "99.100"}, {"~=1!2.9", "1!2.99", "1!3"}, {"~=1.4.0a1", "1.5a1", "1.5"}, {"~=0.0", "0.9", "1"},
        {"~=999999999999999999999", "999999999999999999999.1", "1000000000000000000000"}, {"~=2.2.post3", "2.9", "3"},
    };
    Arena a = arena_make(1 << 16);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Version below = pep440_of(cases[i][1]), above = pep440_of(cases[i][2]);
        bool    yes = false, no = true;
        Str     bad = {0};
        assert_true(pep440_list(guard_copy(str_from(cases[i][0])), &below, a, &yes, &bad));
        assert_true(pep440_list(guard_copy(str_from(cases[i][0])), &above, a, &no, &bad));
        if (!yes || no)
            fail_msg("%s: %d %d", cases[i][0], yes, no);
    }
    bool    yes;
    Str     bad = {0};
    Version v = pep440_of("1");
    assert_true(!pep440_list(STR(">=9, <oops , >x"), &v, a, &yes, &bad) && str_eq(bad, STR("<oops")));
    assert_true(pep440_list(STR(">=9, >0"), &v, a, &yes, &bad) && !yes);
    arena_free(&a);
}

static const struct CMUnitTest pep440_tests[] = {
    cmocka_unit_test(pep440_vectors_test),
    cmocka_unit_test(pep440_order_test),
    cmocka_unit_test(pep440_parse_test),
    cmocka_unit_test(pep440_above_test),
};
