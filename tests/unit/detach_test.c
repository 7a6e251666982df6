#include "cli/detach.h"

static void detach_parse_test(void **state)
{
    static const struct { const char *text, *seq; } cases[] = {
        {"ctrl-p,ctrl-q", "\x10\x11"}, {"none", ""}, {"a", "a"}, {"ctrl-a,d", "\x01" "d"}, {"~,.", "~."},
        {"ctrl-@", ""}, {"ctrl-[", "\x1b"}, {"ctrl-],ctrl-^,ctrl-_,ctrl-\\", "\x1d\x1e\x1f\x1c"},
        {"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", "abcdefghijklmnop"},
        {"", NULL}, {",", NULL}, {"a,", NULL}, {",a", NULL}, {"a,,b", NULL}, {"ab", NULL}, {" ", NULL}, {"\x7f", NULL},
        {"ctrl-", NULL}, {"ctrl-A", NULL}, {"ctrl-`", NULL}, {"ctrl-{", NULL}, {"ctrl-pq", NULL}, {"Ctrl-p", NULL},
        {"none,a", NULL}, {"\xc3\xa9", NULL}, {"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Detach d;
        Err    err = {0};
        if (detach_parse(cases[i].text, &d, &err) != (cases[i].seq != NULL))
            fail_msg("'%s'", cases[i].text);
        if (!cases[i].seq) {
            assert_int_equal(err.code, E8002);
            continue;
        }
        size_t n = strcmp(cases[i].text, "ctrl-@") == 0 ? 1 : strlen(cases[i].seq);
        assert_int_equal(d.n, n);
        assert_memory_equal(d.seq, cases[i].seq, n);
    }
}

/* What the scanner must give, by looking at everything at once. */
static bool detach_test__plain(Str seq, Str typed, Buf *to)
{
    for (size_t i = 0; seq.n && i + seq.n <= typed.n; i++)
        if (memcmp(typed.p + i, seq.p, seq.n) == 0) {
            buf_add(to, (Str){typed.p, i});
            return true;
        }
    size_t held = seq.n ? seq.n - 1 : 0;
    while (held > typed.n || (held && memcmp(seq.p, typed.p + typed.n - held, held) != 0))
        held--;
    buf_add(to, (Str){typed.p, typed.n - held});
    return false;
}

static void detach_test__check(Str seq, Str typed, unsigned cuts)
{
    Detach d = {.n = seq.n};
    Buf    want = buf_make(100), got = buf_make(100);
    size_t from = 0;
    bool   found = false;

    memcpy(d.seq, seq.p, seq.n);
    bool expected = detach_test__plain(seq, typed, &want);
    for (size_t i = 1; i <= typed.n && !found; i++)
        if (i == typed.n || (cuts >> i & 1)) {
            found = detach_scan(&d, guard_copy((Str){typed.p + from, i - from}), &got);
            from = i;
        }
    if (found != expected || !str_eq(buf_str(&want), buf_str(&got)))
        fail_msg("keys '%.*s' typed '%.*s' cuts %x", STR_ARG(seq), STR_ARG(typed), cuts);
    buf_free(&want);
    buf_free(&got);
}

/* All sequences of up to four of two keys, all that can be typed in eight, cut
 * nowhere and everywhere; a few cut in all ways. */
static void detach_scan_test(void **state)
{
    char seq[4], typed[8];

    (void)state;
    for (size_t n = 0; n <= 4; n++)
        for (unsigned s = 0; s < 1u << n; s++) {
            for (size_t i = 0; i < n; i++)
                seq[i] = (s >> i & 1) ? 'a' : 'b';
            for (unsigned t = 0; t < 256; t++) {
                for (size_t i = 0; i < 8; i++)
                    typed[i] = (t >> i & 1) ? 'a' : 'b';
                detach_test__check((Str){seq, n}, (Str){typed, 8}, 0);
                detach_test__check((Str){seq, n}, (Str){typed, 8}, ~0u);
            }
        }
    for (unsigned cuts = 0; cuts < 1 << 10; cuts++) {
        detach_test__check(STR("\x10\x11"), STR("ls\x10\x10 \x10\x11xy"), cuts);
        detach_test__check(STR("aabaaac"), STR("aabaabaaac"), cuts);
        detach_test__check(STR("aabaaac"), STR("aaabaaabaaa"), cuts);
    }
}

/* One that was given may be given again: the scanner begins anew. */
static void detach_again_test(void **state)
{
    Detach d = {.seq = "\x10\x11", .n = 2};
    Buf    got = buf_make(100);

    (void)state;
    assert_true(detach_scan(&d, STR("a\x10\x11" "b"), &got));
    assert_false(detach_scan(&d, STR("\x11" "c\x10"), &got));
    assert_true(detach_scan(&d, STR("\x11"), &got));
    assert_true(str_eq(buf_str(&got), STR("a\x11" "c")));
    buf_free(&got);
}

static const struct CMUnitTest detach_tests[] = {
    cmocka_unit_test(detach_parse_test), cmocka_unit_test(detach_scan_test), cmocka_unit_test(detach_again_test),
};
