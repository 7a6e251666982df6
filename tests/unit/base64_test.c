#include "base/base64.h"
#include "base/hex.h"

static void base64_both_test(void **state)
{
    /* RFC 4648 section 10, and every value a byte can have */
    static const struct { Str plain, text; } cases[] = {
        {{"", 0}, {"", 0}}, {{"f", 1}, {"Zg==", 4}}, {{"fo", 2}, {"Zm8=", 4}}, {{"foo", 3}, {"Zm9v", 4}},
        {{"foob", 4}, {"Zm9vYg==", 8}}, {{"fooba", 5}, {"Zm9vYmE=", 8}}, {{"foobar", 6}, {"Zm9vYmFy", 8}},
        {{"\0\0\0", 3}, {"AAAA", 4}}, {{"\xff\xff\xff", 3}, {"////", 4}}, {{"\xfb\xef\xbe", 3}, {"++++", 4}},
        {{"\xff", 1}, {"/w==", 4}}, {{"\xff\xff", 2}, {"//8=", 4}},
    };
    Arena a = arena_make(1 << 16);
    Str   back;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str text = base64_encode(&a, guard_copy(cases[i].plain));
        assert_true(str_eq(text, cases[i].text) && text.p[text.n] == '\0');
        assert_true(base64_decode(&a, guard_copy(cases[i].text), &back) && str_eq(back, cases[i].plain));
        assert_true(back.p[back.n] == '\0');
    }
    for (size_t n = 0; n < 600; n++) {
        char bytes[600];
        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)(i * 7 + n);
        Arena scratch = a;
        assert_true(base64_decode(&scratch, base64_encode(&scratch, (Str){bytes, n}), &back));
        assert_true(str_eq(back, (Str){bytes, n}));
    }
    arena_free(&a);
}

static void base64_refuse_test(void **state)
{
    static const char *const bad[] = {
        "Z", "Zg", "Zg=", "Zg===", "=", "==", "====", "Z===", "Zh==", "Zm9=", "Zg==Zg==", "Zm8=Zm8=", "Zm9v\n", "Zm 9",
        " Zm9v", "Zm9-", "Zm9_", "Z=9v", "Zg=v", "Zm9v=", "Zm9vZm9", "\xffm9v",
    };
    Arena a = arena_make(4096);
    Str   out = STR("untouched");

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (base64_decode(&a, guard_copy(str_from(bad[i])), &out) || out.n != 9 || a.used != 0)
            fail_msg("%s was taken", bad[i]);
    assert_false(base64_decode(&a, STR("AA\0A"), &out));
    arena_free(&a);
}

static void base64_hex_test(void **state)
{
    static const char *const bad[] = {"0", "0g", "g0", "0x", " 0", "000", "+1", "0\n"};
    Arena a = arena_make(4096);
    Str   out = STR("untouched");

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(hex_decode(&a, guard_copy(str_from(bad[i])), &out) || out.n != 9 || a.used != 0);
    assert_string_equal(hex_encode(&a, guard_copy((Str){"\0\x01\x7f\x80\xff", 5})).p, "00017f80ff");
    assert_true(hex_decode(&a, guard_copy(STR("00017F80fF")), &out) && str_eq(out, (Str){"\0\x01\x7f\x80\xff", 5}));
    assert_true(hex_decode(&a, (Str){0}, &out) && out.n == 0);
    arena_free(&a);
}

static const struct CMUnitTest base64_tests[] = {
    cmocka_unit_test(base64_both_test),
    cmocka_unit_test(base64_refuse_test),
    cmocka_unit_test(base64_hex_test),
};
