#include "net/ws.h"

#include "base/hex.h"
#include "base/str.h"
#include "guard.h"

/* What a reader makes of `in`, given in pieces that end at `cut` and at its end:
 * "T(hello)" a text message, "B(" its beginning, "P(x)" a ping, "C1000(x)". */
static bool ws_test_read(WsReader *r, Str in, Buf *got)
{
    WsEvent ev;
    Err     err = {0};
    Step    step;

    while ((step = ws_next(r, &in, &ev, &err)) == STEP_DONE) {
        if (ev.first)
            buf_addf(got, "%c", ev.op == WS_TEXT ? 'T' : ev.op == WS_BINARY ? 'B' : ev.op == WS_CLOSE ? 'C' :
                                ev.op == WS_PING ? 'P' : 'Q');
        if (ev.first && ev.op == WS_CLOSE)
            buf_addf(got, "%d", ev.code);
        buf_add(got, ev.first ? STR("(") : STR(""));
        buf_add(got, ev.bytes);
        buf_add(got, ev.last ? STR(")") : STR(""));
    }
    if (step == STEP_ERR) {
        assert_int_equal(err.code, E8020);
        assert_true(r->blame == WS_PROTOCOL || r->blame == WS_BAD_TEXT || r->blame == WS_TOO_LONG);
        buf_addf(got, "!%d", r->blame);
    }
    return step == STEP_MORE;
}

/* In hexadecimal; what a client reads, or with a mask, a server. */
static const struct { bool server; const char *in, *want; } ws_rows[] = {
    /* RFC 6455, 5.7 */
    {false, "810548656c6c6f", "T(Hello)"},
    {true, "818537fa213d7f9f4d5158", "T(Hello)"},
    {false, "010348656c80026c6f", "T(Hello)"},
    {false, "890548656c6c6f", "P(Hello)"},
    {true, "8a8537fa213d7f9f4d5158", "Q(Hello)"},
    /* control frames between fragments, empty messages and fragments */
    {false, "020141890000000200", "B(AP()!1002"},
    {false, "0201418900800142", "B(AP()B)"},
    {false, "020141880203e8800142", "B(AC1000()B)"},
    {false, "8200", "B()"},
    {false, "020000008000", "B()"},
    {false, "02000000800141", "B(A)"},
    {false, "0201410000800142", "B(AB)"},
    {true, "828000000000828100000000ff", "B()B(\xff)"},
    /* close */
    {false, "8800", "C1005()"}, {false, "880103", "!1002"},
    {false, "880203e8", "C1000()"}, {false, "880403e86279", "C1000(by)"},
    {false, "880203e7", "!1002"}, {false, "880203ec", "!1002"}, {false, "880203ed", "!1002"}, {false, "880203ee", "!1002"},
    {false, "880203f6", "C1014()"}, {false, "880203f7", "!1002"}, {false, "88020bb7", "!1002"}, {false, "88020bb8", "C3000()"},
    {false, "88021387", "C4999()"}, {false, "88021388", "!1002"}, {false, "880303e8ff", "!1007"},
    /* what is forbidden */
    {false, "c100", "!1002"}, {false, "a100", "!1002"}, {false, "9100", "!1002"},
    {false, "8300", "!1002"}, {false, "8700", "!1002"}, {false, "8b00", "!1002"}, {false, "8f00", "!1002"},
    {false, "8180000000", "!1002"}, {true, "8100", "!1002"}, {true, "818137fa213d", ""},
    {false, "897e0001", "!1002"}, {false, "0900", "!1002"}, {false, "0800", "!1002"}, {false, "8000", "!1002"},
    {false, "0000", "!1002"}, {false, "010141810142", "T(A!1002"}, {false, "020141820142", "B(A!1002"},
    /* lengths */
    {false, "827e007d", "!1002"}, {false, "827e007e", ""}, {false, "827f000000000000ffff", "!1002"},
    {false, "827f0000000000010000", ""}, {false, "827f8000000000000000", "!1002"}, {false, "827f7fffffffffffffff", ""},
    /* text */
    {false, "8102c3a4", "T(\xc3\xa4)"}, {false, "0101c38001a4", "T(\xc3\xa4)"}, {false, "8101c3", "!1007"}, {false, "8101ff", "!1007"},
    {false, "8102c3c3", "!1007"}, {false, "8102c080", "!1007"}, {false, "8103eda080", "!1007"}, {false, "8104f4908080", "!1007"},
    {false, "8103e08080", "!1007"}, {false, "8104f0808080", "!1007"}, {false, "8104f48fbfbf", "T(\xf4\x8f\xbf\xbf)"},
    {false, "0101c3800101", "!1007"}, {false, "8102c3a481", "T(\xc3\xa4)"}, {false, "0101c38000", "!1007"},
    {false, "0101c38900", "T(\xc3P()"}, {false, "8201ff", "B(\xff)"},
};

/* Pieces that a cut makes are put together again, so what comes is the same,
 * but for text that turns bad behind the cut. */
static void ws_rows_test(void **state)
{
    Buf   got = buf_make(1 << 16);
    Arena a = arena_make(1 << 20);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(ws_rows); i++) {
        Str hex = str_from(ws_rows[i].in), in, want = str_from(ws_rows[i].want);
        assert_true(hex_decode(&a, hex, &in));
        for (size_t cut = 0; cut <= in.n; cut++) {
            WsReader r = ws_reader(ws_rows[i].server, 0);
            char     head[64];
            buf_clear(&got);
            memcpy(head, in.p, cut);
            if (ws_test_read(&r, (Str){head, cut}, &got))
                (void)ws_test_read(&r, guard_copy((Str){in.p + cut, in.n - cut}), &got);
            Str is = buf_str(&got);
            if (str_ends(want, STR("!1007")) ? !str_ends(is, want) : !str_eq(is, want))
                fail_msg("row %zu cut at %zu: %.*s", i, cut, STR_ARG(is));
        }
    }
    arena_free(&a);
    buf_free(&got);
}

/* What is put is read back, with every kind of length and at every place of the mask. */
static void ws_put_test(void **state)
{
    static const size_t  sizes[] = {0, 1, 7, 8, 9, 125, 126, 127, 65535, 65536, 100003};
    const unsigned char  mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    Buf                  wire = buf_make(1 << 18), got = buf_make(1 << 18);
    char                *bytes = malloc(100003);

    (void)state;
    for (size_t i = 0; i < 100003; i++)
        bytes[i] = (char)(i * 7 + (i >> 8));
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (size_t piece = 1; piece < 40; piece += 6)
            for (int masked = 0; masked < 2; masked++) {
                WsReader r = ws_reader(masked, sizes[i]);
                WsEvent  ev = {0};
                Err      err;
                buf_clear(&wire);
                buf_clear(&got);
                ws_put(&wire, WS_BINARY, true, (Str){bytes, sizes[i]}, masked ? mask : NULL);
                size_t step = sizes[i] > 200 ? piece * 997 : piece;
                for (size_t at = 0; at < wire.n; at += step) {
                    Str in = {wire.p + at, wire.n - at < step ? wire.n - at : step};
                    while (ws_next(&r, &in, &ev, &err) == STEP_DONE)
                        buf_add(&got, ev.bytes);
                    assert_int_equal(r.blame, 0);
                }
                assert_true(ev.last);
                assert_true(str_eq(buf_str(&got), (Str){bytes, sizes[i]}));
            }
    free(bytes);
    buf_free(&wire);
    buf_free(&got);
}

static void ws_limit_test(void **state)
{
    static const struct { uint64_t limit; const char *in, *want; } rows[] = {
        {4, "\x82\4abcd", "B(abcd)"}, {4, "\x82\5abcde", "!1009"}, {4, "\2\2ab\x80\2cd", "B(abcd)"},
        {4, "\2\2ab\x80\3cde", "B(ab!1009"}, {4, "\x82\4abcd\x82\4efgh", "B(abcd)B(efgh)"}, {4, "\x89\5abcde", "P(abcde)"},
    };
    Buf got = buf_make(4096), wire = buf_make(4096);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        WsReader r = ws_reader(false, rows[i].limit);
        buf_clear(&got);
        (void)ws_test_read(&r, str_from(rows[i].in), &got);
        assert_true(str_eq(buf_str(&got), str_from(rows[i].want)));
    }
    /* A reason is cut at a character, and a close may have neither. */
    char reason[200];
    memset(reason, 'x', sizeof reason);
    memcpy(reason + 122, "\xc3\xa4", 2);
    WsReader r = ws_reader(false, 0);
    buf_clear(&got);
    ws_put_close(&wire, 1001, (Str){reason, sizeof reason}, NULL);
    ws_put_close(&wire, WS_NO_CODE, STR("x"), NULL);
    assert_true(ws_test_read(&r, buf_str(&wire), &got));
    assert_int_equal(got.n, strlen("C1001()C1005()") + 122);
    /* After what is forbidden nothing is read. */
    buf_clear(&got);
    assert_false(ws_test_read(&r, STR("\xff"
                                      "\x00"), &got));
    assert_false(ws_test_read(&r, STR("\x82\1a"), &got));
    assert_true(str_eq(buf_str(&got), STR("!1002!1002")));
    buf_free(&got);
    buf_free(&wire);
}

static void ws_accept_test(void **state)
{
    char out[WS_ACCEPT + 1];

    (void)state;
    ws_accept(STR("dGhlIHNhbXBsZSBub25jZQ=="), out);
    assert_string_equal(out, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");      /* RFC 6455, 1.3 */
    ws_accept(STR("AAAAAAAAAAAAAAAAAAAAAA=="), out);
    assert_string_equal(out, "ICX+Yqv66kxgM0FcWaLWlFLwTAI=");
}

static const struct CMUnitTest ws_tests[] = {
    cmocka_unit_test(ws_rows_test), cmocka_unit_test(ws_put_test), cmocka_unit_test(ws_limit_test),
    cmocka_unit_test(ws_accept_test),
};
