#include "data/armor.h"

#include "base/str.h"

static const char armor_test_tag[] = "0123456789abcdef0123456789abcdef";

static bool armor_test_all(Armor *a, Str in, Buf *got)
{
    Str  bytes;
    Err  err;
    Step step;

    while ((step = armor_next(a, &in, &bytes, &err)) == STEP_DONE)
        buf_add(got, bytes);
    return step == STEP_MORE;
}

/* Cut at every byte, between other lines, what was put comes out. */
static void armor_cuts_test(void **state)
{
    Buf   text = buf_make(1 << 16), got = buf_make(1 << 16);
    Armor out = armor_make(armor_test_tag);

    (void)state;
    buf_add(&text, STR("welcome\n\n0123 0 AAAA\n"));
    armor_put(&out, &text, (Str){"\0\1\2hello\xff", 9}, 4);
    buf_add(&text, STR("a complaint\r\n"));
    armor_put(&out, &text, STR("!"), 0);
    for (size_t cut = 0; cut <= text.n; cut++) {
        Armor in = armor_make(armor_test_tag);
        buf_clear(&got);
        assert_true(armor_test_all(&in, (Str){text.p, cut}, &got));
        assert_true(armor_test_all(&in, (Str){text.p + cut, text.n - cut}, &got));
        assert_int_equal(got.n, 10);
        assert_memory_equal(got.p, "\0\1\2hello\xff!", 10);
        armor_free(&in);
    }
    armor_free(&out);
    buf_free(&text);
    buf_free(&got);
}

static void armor_hostile_test(void **state)
{
    static const struct { const char *lines; bool good; } rows[] = {
        {"T 0 aGk=\nT 1 aGk=\n", true}, {"T 0 aGk=\r\n", true}, {"T 1 aGk=\n", false}, {"T 0 aGk=\nT 0 aGk=\n", false},
        {"T 0 aGk\n", false}, {"T 0 a Gk=\n", false}, {"T x aGk=\n", false}, {"T 0\n", false}, {"T\n", true},
        {"T 0 \n", false}, {"t 0 !!\n", true}, {"T 00000000000000000000000000 aGk=\n", false}, {"T 99999999999999999999 aGk=\n", false},
    };
    Buf got = buf_make(1 << 16), text = buf_make(1 << 23);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        Armor in = armor_make(armor_test_tag);
        buf_clear(&text);
        for (const char *p = rows[i].lines; *p; p++)
            *p == 'T' ? buf_add(&text, str_from(armor_test_tag)) : buf_addc(&text, *p);
        assert_int_equal(armor_test_all(&in, buf_str(&text), &got), rows[i].good);
        armor_free(&in);
    }
    /* A line without end is passed over, and what follows it is read. */
    Armor in = armor_make(armor_test_tag), out = armor_make(armor_test_tag);
    buf_clear(&text);
    for (size_t i = 0; i < ARMOR_LINE_MAX + 100; i++)
        buf_addc(&text, 'x');
    buf_addc(&text, '\n');
    armor_put(&out, &text, STR("good"), 0);
    buf_clear(&got);
    for (size_t at = 0; at < text.n; at += 4096)
        assert_true(armor_test_all(&in, (Str){text.p + at, text.n - at < 4096 ? text.n - at : 4096}, &got));
    assert_true(str_eq(buf_str(&got), STR("good")));
    armor_free(&in);
    armor_free(&out);
    buf_free(&got);
    buf_free(&text);
}

static const struct CMUnitTest armor_tests[] = {
    cmocka_unit_test(armor_cuts_test), cmocka_unit_test(armor_hostile_test),
};
