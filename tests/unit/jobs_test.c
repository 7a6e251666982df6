/* A list of jobs as a sandbox sends it: read, or refused. */
#include "abx.h"

#include "base/str.h"

static int jobs_test_each(void *ctx, const abx_job *j)
{
    buf_addf(ctx, "%s %s [%s] %s %s %s %d%d %d %d %d %llu-%llu;", j->id, j->state, j->command, j->pid ? j->pid : "-",
             j->started_at ? j->started_at : "-", j->ended_at ? j->ended_at : "-", j->tty, j->attached, j->exit_code,
             j->signal, j->timed_out, (unsigned long long)j->kept_from, (unsigned long long)j->printed);
    return strcmp(j->id, "stop") == 0;
}

static void test_jobs_lines(void **state)
{
    static const struct { const char *text, *want; } cases[] = {
        {"", ""}, {"\n\n", ""},
        {"{\"id\":\"a\",\"pid\":7,\"command\":\"make -j2\",\"tty\":true,\"state\":\"running\",\"attached\":true,"
         "\"started\":1790000000,\"printed\":120,\"from\":3}\n",
         "a running [make -j2] 7 2026-09-21T14:13:20Z - 11 -1 0 0 3-120;"},
        {"{\"id\":\"a\",\"pid\":7,\"state\":\"ended\",\"ended\":1,\"exit_code\":255}\n{\"id\":\"b\",\"state\":\"ended\",\"signal\":9,\"timed_out\":true}",
         "a ended [] - - 1970-01-01T00:00:01Z 00 255 0 0 0-0;b ended [] - - - 00 -1 9 1 0-0;"},
        /* An end that nobody can tell, and a state that nobody knows. */
        {"{\"id\":\"a\",\"state\":\"ended\",\"exit_code\":256}\n{\"id\":\"b\",\"state\":\"ended\",\"signal\":65}\n{\"id\":\"c\",\"state\":\"new\"}",
         "a lost [] - - - 00 -1 0 0 0-0;b lost [] - - - 00 -1 0 0 0-0;c lost [] - - - 00 -1 0 0 0-0;"},
        {"{\"id\":\"a\",\"pid\":-7,\"state\":\"running\",\"exit_code\":3,\"printed\":-1,\"started\":9223372036854775807}",
         "a running [] - - - 00 -1 0 0 0-0;"},
        {"{\"id\":\"a\",\"command\":\"x\\u001b[2J\\ny\",\"state\":\"lost\"}", "a lost [x y] - - - 00 -1 0 0 0-0;"},
        {"{\"id\":\"stop\"}\nnot read", "stop lost [] - - - 00 -1 0 0 0-0;"},
        {"{\"id\":\"\"}", NULL}, {"{\"id\":7}", NULL}, {"{}", NULL}, {"[]", NULL}, {"7", NULL}, {"{\"id\":\"a\"", NULL},
        {"{\"id\":\"a b\"}", NULL}, {"{\"id\":\"../a\"}", NULL}, {"{\"id\":\"a\\u0000b\"}", NULL},
        {"{\"id\":\"0123456789012345678901234567890123456789012345678901234567890123\"}",
         "0123456789012345678901234567890123456789012345678901234567890123 lost [] - - - 00 -1 0 0 0-0;"},
        {"{\"id\":\"01234567890123456789012345678901234567890123456789012345678901234\"}", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Arena a = arena_make(1 << 20);
        Buf   got = buf_make(4096);
        Err   err = {0};
        bool  ok = jobs__each(str_from(cases[i].text), jobs_test_each, &got, &a, &err);
        if (ok != (cases[i].want != NULL))
            fail_msg("case %zu: %s", i, ok ? "let pass" : err.text);
        if (!ok)
            assert_int_equal(err.code, E8020);
        else if (!str_eq(buf_str(&got), str_from(cases[i].want)))
            fail_msg("case %zu: %.*s", i, STR_ARG(buf_str(&got)));
        buf_free(&got);
        arena_free(&a);
    }
}

static void test_jobs_names(void **state)
{
    static const struct { const char *id; bool good; } cases[] = {
        {"a", true}, {"A-z_0", true}, {"", false}, {NULL, false}, {"a/b", false}, {"..", false}, {"a b", false},
        {"0123456789012345678901234567890123456789012345678901234567890123", true},
        {"01234567890123456789012345678901234567890123456789012345678901234", false},
    };
    Err err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(jobs__name(str_from(cases[i].id), &err), cases[i].good);
}

static const struct CMUnitTest jobs_tests[] = {cmocka_unit_test(test_jobs_lines), cmocka_unit_test(test_jobs_names)};
