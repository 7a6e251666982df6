/* Every stream is also fed cut in two at each byte, and one byte at a time:
 * the events must not change. */
#include "net/events.h"
#include "net/sse.h"
#include "base/str.h"

static const struct { const char *in, *want; } events_cases[] = {
    {"{\"a\":1}\n\n{\"b\":2}\n\n",                  "({\"a\":1})({\"b\":2})"},
    {"\n \r\n{\"a\":1}\r\n\r\n",                    "({\"a\":1})"},
    {"{\"cpu\":1}\n{\"cpu\":2}\n",                  "({\"cpu\":1})({\"cpu\":2})"},
    {"[1]\n\n\n\n\n[2]\n\n",                        "([1])([2])"},
    {"{\"a\":1}\n\n{\"code\":\"X\"}",               "({\"a\":1})({\"code\":\"X\"})"},
    {"data: {\"a\":1}\n\ndata:{\"b\":2}\n\n",        "({\"a\":1})({\"b\":2})"},
    {": hello\n\nevent: x\ndata: {\ndata: }\n\n",    "({\n})"},
    {"data: {\"cut\":1}\n",                          ""},
    {"",                                             ""},
    {"\n\n",                                         ""},
};

static Str events__run(const Str *parts, size_t n, Buf *got)
{
    Events e = events_make(64);
    Err    err;
    Str    text;

    buf_clear(got);
    for (size_t i = 0; i < n; i++) {
        Str in = guard_copy(parts[i]);
        while (events_next(&e, &in, &text, &err) == STEP_DONE)
            buf_addf(got, "(%.*s)", STR_ARG(text));
        assert_int_equal(in.n, 0);
    }
    if (events_end(&e, &text) == STEP_DONE)
        buf_addf(got, "(%.*s)", STR_ARG(text));
    assert_int_equal(events_end(&e, &text), STEP_MORE);
    events_free(&e);
    return buf_str(got);
}

static void events_cut_test(void **state)
{
    Buf got = buf_make(4096);
    Str bytes[128];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(events_cases); i++) {
        Str in = str_from(events_cases[i].in), want = str_from(events_cases[i].want);
        for (size_t cut = 0; cut <= in.n; cut++) {
            Str parts[2] = {{in.p, cut}, {in.p + cut, in.n - cut}};
            if (!str_eq(events__run(parts, 2, &got), want))
                fail_msg("case %zu cut at %zu: %.*s", i, cut, STR_ARG(buf_str(&got)));
        }
        for (size_t k = 0; k < in.n; k++)
            bytes[k] = (Str){in.p + k, 1};
        if (!str_eq(events__run(bytes, in.n, &got), want))
            fail_msg("case %zu byte by byte: %.*s", i, STR_ARG(buf_str(&got)));
    }
    buf_free(&got);
}

static void events_limit_test(void **state)
{
    static const char *const starts[] = {"{", "data: "};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(starts); i++)
        for (size_t size = 60; size < 72; size++) {
            Events e = events_make(64);
            Buf    in = buf_make(256);
            Err    err = {0};
            Str    text;
            buf_add(&in, str_from(starts[i]));
            while (in.n < size)
                buf_addc(&in, 'x');
            bool whole = size <= 64;
            /* In two parts, so that the reader has to gather. */
            Str a = {in.p, 10}, b = {in.p + 10, in.n - 10}, end = STR("\n\n");
            Step step = events_next(&e, &a, &text, &err);
            assert_int_equal(step, STEP_MORE);
            step = events_next(&e, &b, &text, &err);
            if (step == STEP_MORE)
                step = events_next(&e, &end, &text, &err);
            assert_int_equal(step, whole ? STEP_DONE : STEP_ERR);
            if (!whole) {
                assert_int_equal(err.kind, ERR_LIMIT);
                Str more = STR("{}\n");
                assert_int_equal(events_next(&e, &more, &text, &err), STEP_ERR);
            }
            events_free(&e);
            buf_free(&in);
        }
}

static const struct CMUnitTest events_tests[] = {
    cmocka_unit_test(events_cut_test),
    cmocka_unit_test(events_limit_test),
};
