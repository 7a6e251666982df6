/* Every input is also fed cut in two at each byte: the events must not change. */
#include "net/sse.h"
#include "base/str.h"

static const struct { const char *in, *want; } sse_cases[] = {
    {"data: a\n\n",                        "(a)"},
    {"data:a\r\ndata: b\r\n\r\n",          "(a\nb)"},
    {"data: a\rdata: b\r\r",               "(a\nb)"},
    {"event: x\ndata: 1\n\ndata: 2\n\n",   "x(1)(2)"},
    {": ping\n\n\ndata\n\n",               "()"},
    {"data: 1\n\n\n",                      "(1)"},
    {"event: x\n\ndata: 2\n\n",            "(2)"},
    {"id: 7\nretry: 1\ndata: a: b\n\n",    "(a: b)"},
    {"data: unfinished\n",                 ""},
};

static void sse_cut_test(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sse_cases); i++) {
        Str whole = str_from(sse_cases[i].in);
        for (size_t cut = 0; cut <= whole.n; cut++) {
            Sse      s = sse_make(64);
            Buf      got = buf_make(256);
            Err      err;
            SseEvent ev;
            Str      part[2] = {{whole.p, cut}, {whole.p + cut, whole.n - cut}};
            for (int k = 0; k < 2; k++) {
                Str in = guard_copy(part[k]);
                while (sse_next(&s, &in, &ev, &err) == STEP_DONE)
                    buf_addf(&got, "%.*s(%.*s)", STR_ARG(ev.name), STR_ARG(ev.data));
            }
            if (!str_eq(buf_str(&got), str_from(sse_cases[i].want)))
                fail_msg("case %zu cut at %zu: %.*s", i, cut, STR_ARG(buf_str(&got)));
            sse_free(&s);
            buf_free(&got);
        }
    }
}

static void sse_limit_test(void **state)
{
    Sse      s = sse_make(8);
    Err      err = {0};
    SseEvent ev;
    Str      in = STR("data: 123456789\n\n");

    (void)state;
    assert_int_equal(sse_next(&s, &in, &ev, &err), STEP_ERR);
    assert_int_equal(err.kind, ERR_LIMIT);
    assert_int_equal(sse_next(&s, &in, &ev, &err), STEP_ERR);
    sse_free(&s);
}

static const struct CMUnitTest sse_tests[] = {
    cmocka_unit_test(sse_cut_test),
    cmocka_unit_test(sse_limit_test),
};
