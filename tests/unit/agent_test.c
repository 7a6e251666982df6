#include "agent/download.h"
#include "agent/environ.h"
#include "agent/event.h"
#include "agent/lines.h"
#include "agent/owner.h"
#include "agent/query.h"

/* Feed bytes cut in two; each piece as "text" or "text|bytes" where odd, in
 * parentheses; all of the bytes together in *all. */
static void agent_test__lines(bool exact, Str in, size_t cut, Buf *out, Buf *all)
{
    Lines      l = lines_make(exact);
    LinesPiece p;

    for (int half = 0; half < 2; half++) {
        Str part = guard_copy(half ? str_from_to(in, cut, in.n) : str_from_to(in, 0, cut));
        while (lines_next(&l, &part, half == 1, &p) == STEP_DONE) {
            assert_true(p.bytes.n > 0);
            buf_addf(out, "(%.*s", STR_ARG(p.text));
            if (p.odd)
                buf_addf(out, "|%.*s", STR_ARG(p.bytes));
            buf_addc(out, ')');
            buf_add(all, p.bytes);
            /* What a client makes of a piece that is not odd. */
            if (!p.odd) {
                assert_true(p.bytes.p[p.bytes.n - 1] == '\n');
                assert_true(str_eq(p.text, STR("\n")) ? p.bytes.n == 1 : p.text.n + 1 == p.bytes.n);
            }
        }
        assert_int_equal(part.n, 0);
    }
    lines_free(&l);
}

static void lines_cut_test(void **state)
{
    static const struct { const char *in, *want; } cases[] = {
        {"", ""}, {"a\n", "(a)"}, {"a\nb\n", "(a)(b)"}, {"\n", "(\n)"}, {"\n\n", "(\n)(\n)"}, {"a", "(a|a)"},
        {"a\nb", "(a)(b|b)"}, {"a\r\nb\r\n", "(a|a\r\n)(b|b\r\n)"}, {"a\rb\n", "(a|a\r)(b)"}, {"a\r", "(a|a\r)"},
        {"\r\n", "(\n|\r\n)"}, {"\r", "(\n|\r)"}, {"\r\r\n\n", "(\n|\r)(\n|\r\n)(\n)"}, {"\n\r", "(\n)(\n|\r)"},
        {"caf\xc3\xa9\n", "(caf\xc3\xa9)"}, {"\xff\n", "(\xff|\xff\n)"}, {"\xc3\n", "(\xc3|\xc3\n)"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str in = str_from(cases[i].in);
        for (size_t cut = 0; cut <= in.n; cut++) {
            Buf out = buf_make(1 << 16), all = buf_make(1 << 16);
            agent_test__lines(false, in, cut, &out, &all);
            if (!str_eq(buf_str(&out), str_from(cases[i].want)))
                fail_msg("case %zu cut %zu: %.*s, not %s", i, cut, (int)out.n, out.p, cases[i].want);
            assert_true(str_eq(buf_str(&all), in));
            buf_clear(&out);
            buf_clear(&all);
            agent_test__lines(true, in, cut, &out, &all);
            assert_true(str_eq(buf_str(&all), in));
            buf_free(&out);
            buf_free(&all);
        }
    }
}

static void lines_long_test(void **state)
{
    static const size_t lengths[] = {
        LIMIT_AGENT_LINE - 2, LIMIT_AGENT_LINE - 1, LIMIT_AGENT_LINE, LIMIT_AGENT_LINE + 1, 3 * LIMIT_AGENT_LINE + 7,
    };
    static const char *const ends[] = {"\n", "\r\n", "\r", ""};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(lengths); i++)
        for (size_t e = 0; e < COUNT_OF(ends); e++) {
            Buf in = buf_make(1 << 21), out = buf_make(1 << 23), all = buf_make(1 << 21);
            while (in.n < lengths[i])
                buf_addc(&in, 'x');
            buf_add(&in, str_from(ends[e]));
            for (size_t cut = 0; cut <= in.n; cut += in.n / 7) {
                buf_clear(&all);
                buf_clear(&out);
                agent_test__lines(false, buf_str(&in), cut, &out, &all);
                assert_true(str_eq(buf_str(&all), buf_str(&in)));
            }
            buf_free(&in);
            buf_free(&out);
            buf_free(&all);
        }
}

/* Where a line is cut for its length alone, no character is. */
static void lines_whole_characters_test(void **state)
{
    static const char *const chars[] = {"\xc3\xa9", "\xe4\xbd\xa0", "\xf0\x9f\x98\x80"};

    (void)state;
    for (size_t i = 0; i < 4 * COUNT_OF(chars); i++) {
        Buf        in = buf_make(1 << 21), all = buf_make(1 << 21);
        Lines      l = lines_make(false);
        LinesPiece p;
        size_t     pieces = 0;

        buf_add(&in, (Str){"abc", i / COUNT_OF(chars)});
        while (in.n < 2 * LIMIT_AGENT_LINE)
            buf_add(&in, str_from(chars[i % COUNT_OF(chars)]));
        for (Str rest = buf_str(&in); lines_next(&l, &rest, true, &p) == STEP_DONE; pieces++) {
            assert_true(utf8_valid(p.text) && p.bytes.n > 0);
            buf_add(&all, p.bytes);
        }
        assert_true(str_eq(buf_str(&all), buf_str(&in)) && pieces <= 3);
        lines_free(&l);
        buf_free(&in);
        buf_free(&all);
    }
}

static void lines_exact_test(void **state)
{
    static const struct { const char *in, *want; } cases[] = {
        {"a\nb\nc", "(a\nb)(|c)"}, {"a\n", "(a)"}, {"\n", "(|\n)"}, {"\n\n", "(|\n\n)"}, {"\n\n\n", "(\n\n)"},
        {"$ ", "(|$ )"}, {"\xff\n", "(|\xff\n)"}, {"a\r\n", "(a\r)"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Buf out = buf_make(1 << 16), all = buf_make(1 << 16);
        agent_test__lines(true, str_from(cases[i].in), 0, &out, &all);
        if (!str_eq(buf_str(&out), str_from(cases[i].want)))
            fail_msg("case %zu: %.*s, not %s", i, (int)out.n, out.p, cases[i].want);
        buf_free(&out);
        buf_free(&all);
    }
}

static void query_test(void **state)
{
    static const struct { const char *target, *name, *want; } cases[] = {
        {"/x?path=/a", "path", "/a"}, {"/x?path=/a&path=/b", "path", "/a"}, {"/x?a=1&path=%2Fa+b%2b", "path", "/a b+"},
        {"/x?path", "path", ""}, {"/x?path=", "path", ""}, {"/x?path=a=b", "path", "a=b"}, {"/x?&&path=1", "path", "1"},
        {"/x?path=%zz&path=2", "path", "2"}, {"/x?path=%", "path", NULL}, {"/x?path=%4", "path", NULL},
        {"/x?paths=1", "path", NULL}, {"/x", "path", NULL}, {"/x?", "path", NULL}, {"/x?=1", "path", NULL},
        {"/x?p%61th=1", "path", "1"}, {"/x?path=%24HOME", "path", "$HOME"},
    };
    Arena a = arena_make(1 << 16);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str  value = STR("untouched");
        bool ok = query_get(guard_copy(str_from(cases[i].target)), cases[i].name, &a, &value);
        if (ok != (cases[i].want != NULL) || !str_eq(value, ok ? str_from(cases[i].want) : STR("untouched")))
            fail_msg("%s: %d %.*s", cases[i].target, ok, STR_ARG(value));
    }
    setenv("HOME", "/home/x", 1);
    assert_string_equal(query_file(STR("~"), &a), "/home/x");
    assert_string_equal(query_file(STR("~/a"), &a), "/home/x/a");
    assert_string_equal(query_file(STR("~a"), &a), "~a");
    assert_string_equal(query_file(STR("/a/~"), &a), "/a/~");
    assert_string_equal(query_file(STR("$HOME/${X}"), &a), "$HOME/${X}");
    assert_null(query_file(STR(""), &a));
    assert_null(query_file(STR("a\0b"), &a));
    assert_true(str_eq(query_base("/a/b"), STR("b")) && str_eq(query_base("/a/b//"), STR("b")));
    assert_true(str_eq(query_base("b"), STR("b")) && str_eq(query_base("/"), STR("/")) && str_eq(query_base("//"), STR("/")));
    arena_free(&a);
}

static void owner_mode_test(void **state)
{
    static const struct { int64_t digits; int mode; } cases[] = {
        {0, 0}, {644, 0644}, {755, 0755}, {600, 0600}, {7, 07}, {7777, 07777}, {4755, 04755}, {999, -1}, {648, -1},
        {8, -1}, {10000, -1}, {-1, -1}, {INT64_MAX, -1}, {INT64_MIN, -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(owner__mode(cases[i].digits), cases[i].mode);
    for (mode_t m = 0; m <= 0777; m++)
        assert_int_equal(owner__mode(owner_mode_digits(m | 04000)), m);
}

static void download_range_test(void **state)
{
    static const struct { const char *in; int64_t size; DownloadRange kind; int64_t from, end; } cases[] = {
        {"bytes=0-4", 24, DOWNLOAD_PART, 0, 5}, {"bytes=6-", 24, DOWNLOAD_PART, 6, 24}, {"bytes=-6", 24, DOWNLOAD_PART, 18, 24},
        {"bytes=-60", 24, DOWNLOAD_PART, 0, 24}, {"bytes=0-0,5-6", 24, DOWNLOAD_PART, 0, 1}, {"bytes=23-99", 24, DOWNLOAD_PART, 23, 24},
        {"bytes= 1 - 2 ", 24, DOWNLOAD_PART, 1, 3}, {"bytes=0-9223372036854775807", 24, DOWNLOAD_PART, 0, 24},
        {"bytes=24-", 24, DOWNLOAD_OUTSIDE, 0, 0}, {"bytes=100-200", 24, DOWNLOAD_OUTSIDE, 0, 0}, {"bytes=-0", 24, DOWNLOAD_OUTSIDE, 0, 0},
        {"bytes=0-", 0, DOWNLOAD_OUTSIDE, 0, 0}, {"bytes=-5", 0, DOWNLOAD_OUTSIDE, 0, 0},
        {"lines=1-2", 24, DOWNLOAD_MALFORMED, 0, 0}, {"bytes=", 24, DOWNLOAD_MALFORMED, 0, 0}, {"bytes=-", 24, DOWNLOAD_MALFORMED, 0, 0},
        {"bytes=5-4", 24, DOWNLOAD_MALFORMED, 0, 0}, {"bytes=a-b", 24, DOWNLOAD_MALFORMED, 0, 0}, {"bytes=1", 24, DOWNLOAD_MALFORMED, 0, 0},
        {"bytes=--1", 24, DOWNLOAD_MALFORMED, 0, 0}, {"bytes=0-9223372036854775808", 24, DOWNLOAD_MALFORMED, 0, 0},
        {"bytes=1-2-3", 24, DOWNLOAD_MALFORMED, 0, 0}, {"", 24, DOWNLOAD_MALFORMED, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t       from = -1, end = -1;
        DownloadRange kind = download__range(guard_copy(str_from(cases[i].in)), cases[i].size, &from, &end);
        if (kind != cases[i].kind || (kind == DOWNLOAD_PART && (from != cases[i].from || end != cases[i].end)))
            fail_msg("%s: %d %lld %lld", cases[i].in, (int)kind, (long long)from, (long long)end);
    }
}

static void download_lines_test(void **state)
{
    static const struct { const char *text; int64_t first, count; const char *want; } cases[] = {
        {"a\nb\nc\n", 1, 0, "a\nb\nc"}, {"a\nb\nc\n", 2, 1, "b"}, {"a\nb\nc\n", 2, 2, "b\nc"}, {"a\nb\nc", 3, 9, "c"},
        {"a\nb\nc\n", 4, 1, ""}, {"a\nb\nc\n", 9, 1, ""}, {"", 1, 1, ""}, {"\n\n", 1, 1, ""}, {"\n\n", 2, 1, ""}, {"\na", 2, 1, "a"},
        {"a", 1, 1, "a"}, {"a\n", 1, 1, "a"}, {"a\n\nb", 1, 2, "a\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int     fd = memfd_create("lines", MFD_CLOEXEC);
        int64_t from, end;
        assert_true(write(fd, cases[i].text, strlen(cases[i].text)) >= 0);
        download__find_lines(fd, cases[i].first, cases[i].count, &from, &end);
        Str got = {cases[i].text + from, (size_t)(end - from)};
        if (!str_eq(got, str_from(cases[i].want)))
            fail_msg("case %zu: %.*s, not %s", i, STR_ARG(got), cases[i].want);
        close(fd);
    }
}

static void event_result_test(void **state)
{
    static const struct { int status, code; const char *text; } cases[] = {
        {0, 0, "exit status 0"}, {3 << 8, 3, "exit status 3"}, {255 << 8, 255, "exit status 255"}, {SIGKILL, -1, "signal: killed"},
        {SIGTERM, -1, "signal: terminated"}, {SIGSEGV | 0x80, -1, "signal: segmentation fault (core dumped)"}, {40, -1, "signal: signal 40"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[EVENT_RESULT];
        int  code;
        event_result(cases[i].status, &code, text);
        assert_int_equal(code, cases[i].code);
        assert_string_equal(text, cases[i].text);
    }
}

/* The file over the environment, the request over the file. */
static void environ_test(void **state)
{
    char        name[] = "/tmp/abx-environ-test-XXXXXX";
    int         fd = mkstemp(name);
    Arena       a = arena_make((size_t)16 << 20);
    const Json *more;
    const char *fault = NULL;
    Err         err;
    int         seen = 0;

    (void)state;
    dprintf(fd, "# comment\n\nABX_T1=file\nABX_T2=file\r\n  ABX_T3 = x\nno equals\n=nothing\nABX_T4=a=b # c\nABX_T1=again");
    close(fd);
    setenv("ABX_T1", "process", 1);
    setenv("ABX_T5", "process", 1);
    setenv("EXECD_ENVS", name, 1);
    assert_true(json_parse(STR("{\"ABX_T2\":\"asked\",\"ABX_T6\":\"two words\",\"ABX_T7\":null}"), &a, &more, &err));
    const char *const *env = environ_make(more, &a, &fault);
    assert_non_null(env);
    for (const char *const *e = env; *e; e++) {
        static const char *const want[] = {"ABX_T1=again", "ABX_T2=asked", "ABX_T3 = x", "ABX_T4=a=b # c", "ABX_T5=process", "ABX_T6=two words"};
        for (size_t i = 0; i < COUNT_OF(want); i++)
            seen += strcmp(*e, want[i]) == 0;
        assert_true(strncmp(*e, "ABX_T7", 6) != 0);
    }
    assert_int_equal(seen, 6);
    static const char *const bad[] = {"{\"\":\"x\"}", "{\"A=B\":\"x\"}", "{\"A\":1}", "{\"A\":\"a\\u0000b\"}", "{\"A\\u0000\":\"b\"}"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_true(json_parse(str_from(bad[i]), &a, &more, &err));
        assert_null(environ_make(more, &a, &fault));
    }
    unlink(name);
    unsetenv("EXECD_ENVS");
    assert_string_equal(environ_find((const char *const[]){"PATH=/nope:/bin", NULL}, "sh", &a), "/bin/sh");
    assert_null(environ_find((const char *const[]){"PATH=/nope:", NULL}, "sh", &a));
    assert_string_equal(environ_find((const char *const[]){NULL}, "./x", &a), "./x");
    arena_free(&a);
}

static const struct CMUnitTest agent_tests[] = {
    cmocka_unit_test(lines_cut_test),
    cmocka_unit_test(lines_long_test),
    cmocka_unit_test(lines_whole_characters_test),
    cmocka_unit_test(lines_exact_test),
    cmocka_unit_test(query_test),
    cmocka_unit_test(owner_mode_test),
    cmocka_unit_test(download_range_test),
    cmocka_unit_test(download_lines_test),
    cmocka_unit_test(event_result_test),
    cmocka_unit_test(environ_test),
};
