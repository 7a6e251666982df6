/* The lines of the plugin server: read however they are cut, written within
 * the limit; and that its manifest is one by our own parser. */
#include "base/limits.h"
#include "base/str.h"
#include "host/manifest.h"
#include "serve/export.h"
#include "serve/running.h"
#include "serve/wire.h"

/* ---- reading lines ---- */

/* What comes out, each line in brackets, with its beginning where it is too long. */
static void wire__test_read(const char *in, size_t limit, size_t piece, Buf *got)
{
    WireReader r = wire_reader(limit);
    Str        rest = str_from(in);
    WireLine   line;

    buf_clear(got);
    while (rest.n) {
        Str part = guard_copy((Str){rest.p, rest.n < piece ? rest.n : piece});
        str_skip(&rest, part.n);
        while (wire_next(&r, &part, &line) == STEP_DONE)
            buf_addf(got, "[%.*s%s]", STR_ARG(line.text), line.too_long ? "..." : "");
    }
    if (wire_last(&r, &line))
        buf_addf(got, "<%.*s%s>", STR_ARG(line.text), line.too_long ? "..." : "");
    wire_free(&r);
}

static void serve_lines_test(void **state)
{
    static const struct { const char *in, *want; } cases[] = {
        {"", ""}, {"\n", ""}, {"a\n", "[a]"}, {"a", "<a>"}, {"a\r\nb\n", "[a][b]"}, {"a\n\n \t\r\nb", "[a]<b>"},
        {"12345678\n", "[12345678]"}, {"123456789\nb\n", "[12345678...][b]"}, {"123456789", "<12345678...>"},
        {"a\n1234567890123456789012345678901234567890\nb\n\nc", "[a][12345678...][b]<c>"}, {"\r\n", ""}, {"   ", ""},
    };
    Buf got = buf_make(4096);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t piece = 1; piece <= strlen(cases[i].in) + 1; piece++) {
            wire__test_read(cases[i].in, 8, piece, &got);
            if (!str_eq(buf_str(&got), str_from(cases[i].want)))
                fail_msg("case %zu in pieces of %zu: %.*s", i, piece, STR_ARG(buf_str(&got)));
        }
    buf_free(&got);
}

static void serve_id_test(void **state)
{
    static const struct { const char *begin, *want; } cases[] = {
        {"{\"jsonrpc\": \"2.0\", \"id\": 41, \"method\": \"x\", \"params\": {\"a\": \"bbbb", "41"},
        {"{\"id\":\"a\\\"b\",\"x", "\"a\\\"b\""}, {" {\"params\":{\"id\":1,\"x\":[\"}]\",{\"id\":2}]},\"id\":3,\"", "3"},
        {"{\"id\": 4}", "4"}, {"{\"id\": 4", ""}, {"{\"id", ""}, {"{\"x\":\"\\", ""}, {"", ""}, {"[1]", ""}, {"{}", ""},
        {"{\"a\":1}", ""}, {"{\"a\":{\"id\":7", ""}, {"{\"a\" 1, \"id\": 2,", ""}, {"{\"\\\\\":\"\\\\\",\"id\":5,", "5"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str got = wire_find_id(guard_copy(str_from(cases[i].begin)));
        if (!str_eq(got, str_from(cases[i].want)))
            fail_msg("case %zu: %.*s", i, STR_ARG(got));
        for (size_t n = 0; n < strlen(cases[i].begin); n++)     /* cut anywhere: no id, or the same */
            wire_find_id(guard_copy((Str){cases[i].begin, n}));
    }
}

/* ---- writing lines ---- */

static void serve_limit_test(void **state)
{
    Buf   to = buf_make(2 * LIMIT_SERVE_LINE), text = buf_make(LIMIT_SERVE_LINE);
    bool  fits = true;
    char *fill = buf_room(&text, LIMIT_SERVE_LINE - 100);

    (void)state;
    memset(fill, 'x', LIMIT_SERVE_LINE - 100);
    for (size_t n = LIMIT_SERVE_LINE - 100; n > LIMIT_SERVE_LINE - 140 || !fits; n--) {
        buf_clear(&to);
        buf_add(&to, STR("before\n"));
        WireOut w = wire_answer(&to, STR("7"));
        json_put_str(&w.json, (Str){fill, n});
        fits = wire_end(&w);
        if (fits)
            assert_true(to.n == 7 + LIMIT_SERVE_LINE || n < LIMIT_SERVE_LINE - 38);
        else
            assert_true(str_eq(buf_str(&to), STR("before\n")));
        assert_true(to.n <= 7 + LIMIT_SERVE_LINE);
    }
    buf_free(&to);
    buf_free(&text);
}

static void serve_error_test(void **state)
{
    static const struct { const char *code; int epp; const char *sdk; } cases[] = {
        {"E1000", -32001, NULL}, {"E1001", -32001, "E1001"}, {"E1004", -32001, "E1004"}, {"E2001", -32002, "E2001"},
        {"E2002", -32004, NULL}, {"E2003", -32000, "E2003"}, {"E2009", -32002, "E2009"}, {"E3001", -32000, "E3001"},
        {"E4001", -32002, "E4001"}, {"E4002", -32000, "E4002"}, {"E5000", -32000, "E5000"}, {"E5001", -32005, NULL},
        {"E8002", -32006, NULL}, {"E8004", -32003, NULL}, {"E8005", -32002, NULL}, {"E8022", -32005, NULL},
        {"E9001", -32001, NULL}, {"E3000", -32000, NULL}, {"E4000", -32000, NULL}, {"E8000", -32000, NULL},
        {"E8020", -32000, NULL}, {"E0000", -32000, NULL}, {"E4003", -32000, NULL},
    };
    Buf to = buf_make(4096);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        abx_error e = {.message = "m"};
        snprintf(e.code, sizeof e.code, "%s", cases[i].code);
        WireError w = wire_from(&e);
        assert_int_equal(w.code, cases[i].epp);
        assert_true((w.sdk_code == NULL) == (cases[i].sdk == NULL) && (!w.sdk_code || strcmp(w.sdk_code, cases[i].sdk) == 0));
    }
    wire_error(&to, STR("\"a\""), &(WireError){.code = -32003, .message = "m\n", .suggestion = "s", .feature = "f"});
    wire_error(&to, (Str){0}, &(WireError){.code = -32000, .message = "x"});
    assert_true(str_eq(buf_str(&to), STR(
        "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":-32003,\"message\":\"m\\n\",\"data\":{\"suggestion\":\"s\","
        "\"details\":{\"feature\":\"f\"}}}}\n{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":\"x\"}}\n")));
    buf_free(&to);
}

/* ---- text that was cut ---- */

static void serve_cut_text_test(void **state)
{
    static const struct { const char *text; size_t begun; } cases[] = {
        {"", 0}, {"a", 0}, {"\xc3", 1}, {"\xc3\xa9", 0}, {"a\xe4\xb8", 2}, {"\xe4", 1}, {"\xe4\xb8\x96", 0}, {"\xf0\x9f\x98", 3},
        {"\xf0\x9f\x98\x80", 0}, {"\x80", 0}, {"\x80\x80\x80", 0}, {"\xff", 1}, {"\xc3\xa9\xa9", 0}, {"\xf0", 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(running__begun(guard_copy(str_from(cases[i].text))), cases[i].begun);
}

/* Whatever the pieces: what is sent, put together, is the text. */
static void serve_output_test(void **state)
{
    static const char text[] = "h\xc3\xa9\xe4\xb8\x96\xf0\x9f\x98\x80\xff\xe4\xb8x\xf0\x9f";
    char              want[64], got[256];

    (void)state;
    Arena a = arena_make((size_t)1 << 20);
    Str   clean = utf8_clean(&a, str_from(text));
    snprintf(want, sizeof want, "%.*s", STR_ARG(clean));
    for (size_t piece = 1; piece <= sizeof text; piece++) {
        Call    call = {.process_id = "p"};
        CallRun c = {.call = &call, .lines = buf_make(4096)};
        Running r = {.c = &c, .held = {buf_make(4096), buf_make(4096)}};
        Str     rest = str_from(text);
        while (rest.n) {
            size_t n = rest.n < piece ? rest.n : piece;
            buf_add(&r.held[0], (Str){rest.p, n});
            str_skip(&rest, n);
            running__output(&r, false, false);
        }
        running__output(&r, false, true);
        got[0] = '\0';
        Str lines = buf_str(&c.lines), line;
        while (str_cut(&lines, '\n', &line) && line.n) {
            const Json *doc;
            Err         err;
            assert_true(json_parse(line, &a, &doc, &err));
            Str data = json_str(json_get(json_get(doc, "params"), "data"));
            strncat(got, data.p, data.n);
        }
        if (strcmp(got, want) != 0)
            fail_msg("in pieces of %zu: %s", piece, got);
        buf_free(&r.held[0]);
        buf_free(&r.held[1]);
        buf_free(&c.lines);
    }
    arena_free(&a);
}

/* ---- the manifest ---- */

static bool serve__test_same(Strs a, abx_strings b)
{
    bool same = a.n == b.n;

    for (size_t i = 0; same && i < a.n; i++)
        same = str_eq(a.v[i], str_from(b.v[i]));
    return same;
}

static void serve_manifest_test(void **state)
{
    Arena              a = arena_make(ARENA_COMMAND);
    Buf                text = buf_make(LIMIT_SETTING);
    abx_host          *h;
    Err                err;
    const abx_details *d = export__details(&h, "opensandbox", &err);
    Manifest           m;

    (void)state;
    assert_non_null(d);
    export_manifest(d, &text);
    if (!manifest_parse(buf_str(&text), STR("abx-provider.toml"), &a, &m, &err))
        fail_msg("%s", err.text);
    assert_true(str_eq(m.id, STR("opensandbox")) && m.kind == MANIFEST_EXEC && m.command.n == 4);
    assert_true(serve__test_same(m.features, d->features) && serve__test_same(m.cli, d->cli) && serve__test_same(m.python, d->cli));
    assert_true(serve__test_same(m.inputs, d->inputs) && serve__test_same(m.startups, d->startups));
    assert_int_equal(m.field_count, d->field_count);
    assert_int_equal(m.inherit.n, 0);
    buf_free(&text);
    abx_host_close(h);
    arena_free(&a);
}

static const struct CMUnitTest serve_tests[] = {
    cmocka_unit_test(serve_lines_test), cmocka_unit_test(serve_id_test), cmocka_unit_test(serve_limit_test),
    cmocka_unit_test(serve_error_test), cmocka_unit_test(serve_cut_text_test), cmocka_unit_test(serve_output_test),
    cmocka_unit_test(serve_manifest_test),
};
