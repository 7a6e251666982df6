/* Git's packets. Every input is also fed cut in two at each byte. */
#include "data/pktline.h"

static const struct { const char *in, *want; } pktline_cases[] = {
    {"0000",                                    "[flush]"},
    {"00010002",                                "[delim][end]"},
    {"000eversion 2\n0000",                     "(version 2)[flush]"},
    {"000ddeepen 1\n000cdeepen 1",              "(deepen 1)(deepen 1)"},
    {"0004" "0005\n" "0006\n\n",                "()()(\n)"},
    {"001e# service=git-upload-pack\n0000",     "(# service=git-upload-pack)[flush]"},
    {"000Aabcdef",                              "(abcdef)"},
    {"000",                                     "..."},
    {"0009abc",                                 "..."},
    {"0000000",                                 "[flush]..."},
    {"0003",                                    "!"},
    {"fff1",                                    "!"},
    {"ffff",                                    "!"},
    {"<htm",                                    "!"},
    {"-001",                                    "!"},
    {"0x04",                                    "!"},
    {" 004",                                    "!"},
    {"00000003",                                "[flush]!"},
};

static void pktline_test__feed(PktReader *r, Str part, Buf *got)
{
    static const char *const signs[] = {[PKT_FLUSH] = "[flush]", [PKT_DELIM] = "[delim]", [PKT_END] = "[end]"};
    Str  in = guard_copy(part);
    Pkt  pkt;
    Err  err;
    Step step;

    while ((step = pktline_next(r, &in, &pkt, &err)) == STEP_DONE)
        if (pkt.kind == PKT_DATA)
            buf_addf(got, "(%.*s)", STR_ARG(pktline_text(pkt.bytes)));
        else
            buf_addf(got, "%s", signs[pkt.kind]);
    if (step == STEP_ERR && !(got->n && got->p[got->n - 1] == '!'))
        buf_addc(got, '!');
}

static void pktline_cut_test(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pktline_cases); i++) {
        Str whole = str_from(pktline_cases[i].in);
        for (size_t cut = 0; cut <= whole.n; cut++) {
            PktReader r = pktline_reader();
            Buf       got = buf_make(1024);
            pktline_test__feed(&r, (Str){whole.p, cut}, &got);
            pktline_test__feed(&r, (Str){whole.p + cut, whole.n - cut}, &got);
            if (!r.failed && !r.given && r.digits)
                buf_addf(&got, "...");
            if (!str_eq(buf_str(&got), str_from(pktline_cases[i].want)))
                fail_msg("case %zu cut at %zu: %.*s", i, cut, STR_ARG(buf_str(&got)));
            pktline_free(&r);
            buf_free(&got);
        }
    }
}

/* The longest there may be, byte by byte and at once, and one more. */
static void pktline_longest_test(void **state)
{
    char *p = malloc(PKT_LONGEST + 1);
    Err   err = {0};
    Pkt   pkt;

    (void)state;
    memset(p, 'x', PKT_LONGEST + 1);
    for (size_t piece = 1; piece <= PKT_LONGEST; piece += PKT_LONGEST / 2 + 1) {
        PktReader r = pktline_reader();
        memcpy(p, "fff0", 4);
        Step step = STEP_MORE;
        for (size_t at = 0; at < PKT_LONGEST; at += piece) {
            Str in = {p + at, PKT_LONGEST - at < piece ? PKT_LONGEST - at : piece};
            assert_int_equal(step, STEP_MORE);
            step = pktline_next(&r, &in, &pkt, &err);
        }
        assert_int_equal(step, STEP_DONE);
        assert_int_equal(pkt.bytes.n, PKT_LONGEST - 4);
        pktline_free(&r);
    }
    PktReader r = pktline_reader();
    Str       in = STR("fff1");
    assert_int_equal(pktline_next(&r, &in, &pkt, &err), STEP_ERR);
    in = STR("0000");
    assert_int_equal(pktline_next(&r, &in, &pkt, &err), STEP_ERR);
    assert_int_equal(err.code, E8010);
    pktline_free(&r);
    free(p);
}

static void pktline_put_test(void **state)
{
    Buf b = buf_make(256);

    (void)state;
    pktline_putf(&b, "command=%s\n", "ls-refs");
    pktline_sign(&b, PKT_DELIM);
    pktline_putf(&b, "peel");
    pktline_sign(&b, PKT_FLUSH);
    assert_true(str_eq(buf_str(&b), STR("0014command=ls-refs\n00010008peel0000")));
    buf_free(&b);
}

static const struct CMUnitTest pktline_tests[] = {
    cmocka_unit_test(pktline_cut_test),
    cmocka_unit_test(pktline_longest_test),
    cmocka_unit_test(pktline_put_test),
};
