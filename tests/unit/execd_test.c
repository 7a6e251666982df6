/* A command's event stream through the whole HTTP client, over a scripted
 * connection: as it is, in small pieces, and cut after every byte. A result
 * may only be told when its final event has arrived whole. */
#include "base/limits.h"
#include "base/str.h"
#include "provider/execd_command.h"
#include "script_stream.h"

/* want: o(bytes) and e(bytes), joined as long as the kind stays, x(code) or s(signal), t behind it for a timeout, !(code) */
static const struct { const char *events, *want; } execd_cases[] = {
    {"{\"type\":\"init\",\"text\":\"abc\"}\n\n{\"type\":\"ping\",\"text\":\"pong\"}\n\n"
     "{\"type\":\"stdout\",\"text\":\"hi\"}\n\n{\"type\":\"execution_complete\",\"execution_time\":7}\n\n", "o(hi\n)x(0)"},
    {"{\"type\":\"stdout\",\"text\":\"a\"}\n\n{\"type\":\"stdout\",\"text\":\"\\n\"}\n\n{\"type\":\"stderr\",\"text\":\"e\"}\n\n"
     "{\"type\":\"stdout\",\"text\":\"b\"}\n\n"
     "{\"type\":\"error\",\"error\":{\"ename\":\"CommandExecError\",\"evalue\":\"3\",\"traceback\":[\"exit status 3\"]}}\n\n",
     "o(a\n\n)e(e\n)o(b\n)x(3)"},
    {"{\"type\":\"stdout\",\"text\":\"x\\ufffd\",\"b64\":\"eP8=\"}\n\n{\"type\":\"execution_complete\"}\n\n", "o(x\xff)x(0)"},
    {"{\"type\":\"error\",\"error\":{\"ename\":\"CommandExecError\",\"evalue\":\"-1\",\"traceback\":[\"signal: killed\"]}}\n\n",
     "s(9)"},
    {"{\"type\":\"error\",\"error\":{\"evalue\":\"-1\",\"traceback\":[\"signal: segmentation fault (core dumped)\"]}}\n\n",
     "s(11)"},
    {"{\"type\":\"error\",\"signal\":40,\"timed_out\":true,\"error\":{\"evalue\":\"-1\"}}\n\n", "s(40)t"},
    {"{\"type\":\"error\",\"signal\":0,\"error\":{\"evalue\":\"-1\",\"traceback\":[\"signal: hangup\"]}}\n\n", "s(1)"},
    {"{\"type\":\"error\",\"error\":{\"evalue\":\"-1\",\"traceback\":[\"signal: 40\"]}}\n\n", "s(-1)"},
    {"{\"type\":\"error\",\"error\":{\"ename\":\"CommandExecError\",\"evalue\":\"fork/exec: no memory\"}}\n\n", "!(E3000)"},
    {"{\"type\":\"error\",\"error\":{\"evalue\":\"256\"}}\n\n", "!(E3000)"},
    {"{\"type\":\"error\",\"error\":{\"evalue\":\"-2\"}}\n\n", "!(E3000)"},
    {"{\"type\":\"error\",\"error\":{\"evalue\":\"0\"}}\n\n", "!(E3000)"},
    {"{\"type\":\"error\"}\n\n", "!(E3000)"},
    {"{\"type\":\"stdout\",\"text\":\"a\"}\n\n", "o(a\n)!(E5000)"},
    {"", "!(E5000)"},
    {"{\"code\":\"RUNTIME_ERROR\",\"message\":\"timeout after 1s\"}\n\n", "!(E3000)"},
    {"{\"type\":\"stdout\",\"b64\":\"?\"}\n\n", "!(E8020)"},
    {"{\"type\":\"stdout\",\"text\":\"a\"}\n\n{\"type\":\"execution_complete\"}", "o(a\n)x(0)"},
    {"{\"type\":\"stdout\" \"text\"}\n\n", "!(E8020)"},
    {"{\"type\":\"later_addition\",\"x\":[1]}\n\n{\"type\":\"execution_complete\"}\n\n", "x(0)"},
    {"data: {\"type\":\"stdout\",\"text\":\"std\"}\n\ndata: {\"type\":\"execution_complete\"}\n\n", "o(std\n)x(0)"},
};

/* Run one scripted answer; `got` says what came of it. The last thing told is
 * true if it was a result. */
static bool execd__test_run(Script *script, Buf *got)
{
    ProviderHost host = {.cancel_fd = -1};
    ScriptDial   dial = {.scripts = script, .count = 1};
    Lifecycle    l = {.host = &host, .call_ms = LIMIT_CALL_MS};
    Arena        a = arena_make((size_t)1 << 20);
    Execd        x = {.server = &l, .id = STR("box")};
    ExecRequest  rq = {0};
    ExecCall    *call = NULL;
    ExecEvent    ev;
    Err          err = {0};
    Step         step = STEP_MORE;
    bool         result = false;
    char         code[6], kind = 0;     /* of the output being written down */

    buf_clear(got);
    l.http = client_make(&(ClientOptions){.dial = script_dial, .dial_ctx = &dial, .cancel_fd = -1, .agent = STR("abx")});
    assert_true(url_parse(STR("http://127.0.0.1:1/proxy/44772"), &a, &x.at.url, &err));
    bool ok = execd_command_start(&x, STR("true"), &rq, &call, clock_after(10000), &err);
    while (ok && !result) {
        step = call->ops->next(call, &ev, &err);
        if (step == STEP_MORE)
            continue;
        if (step == STEP_ERR)
            ok = false;
        else if (ev.kind == EXEC_EXIT)
            result = true;
        else {
            char now = ev.kind == EXEC_OUT ? 'o' : 'e';
            if (now != kind)
                buf_addf(got, "%s%c(", kind ? ")" : "", now);
            kind = now;
            buf_add(got, ev.bytes);
        }
    }
    if (kind)
        buf_addc(got, ')');
    code_name(err.code, code);
    if (result && ev.exit_code >= 0)
        buf_addf(got, "x(%d)", ev.exit_code);
    else if (result)
        buf_addf(got, "s(%d)%s", ev.signal, ev.timed_out ? "t" : "");
    else
        buf_addf(got, "!(%s)", code);
    if (call)
        call->ops->close(call);
    client_free(l.http);
    arena_free(&a);
    return result;
}

/* The answer of a real daemon: a chunk for each event. */
static void execd__test_answer(const char *events, Buf *to)
{
    Str rest = str_from(events);

    buf_clear(to);
    buf_add(to, STR("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"));
    while (rest.n) {
        size_t n = str_find(rest, '\n') + 2;
        if (n > rest.n)
            n = rest.n;
        buf_addf(to, "%zx\r\n%.*s\r\n", n, (int)n, rest.p);
        str_skip(&rest, n);
    }
    buf_add(to, STR("0\r\n\r\n"));
}

static void execd_stream_test(void **state)
{
    Buf answer = buf_make(4096), got = buf_make(4096);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(execd_cases); i++) {
        execd__test_answer(execd_cases[i].events, &answer);
        for (size_t piece = 0; piece < 40; piece += 1 + piece / 4) {
            ScriptAnswer all = {"\r\n\r\n", answer.p, answer.n};
            Script       s = {.answers = &all, .count = 1, .piece = piece, .hiccups = piece % 2};
            execd__test_run(&s, &got);
            if (!str_eq(buf_str(&got), str_from(execd_cases[i].want)))
                fail_msg("case %zu in pieces of %zu: %.*s", i, piece, STR_ARG(buf_str(&got)));
            script_free(&s);
        }
    }
    buf_free(&answer);
    buf_free(&got);
}

static void execd_cut_test(void **state)
{
    Buf answer = buf_make(4096), got = buf_make(4096);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(execd_cases); i++) {
        execd__test_answer(execd_cases[i].events, &answer);
        buf_addc(&answer, '\0');
        answer.n--;
        /* Where the final event's line, or else the body, ends: before that there is no result. */
        const char *final = strstr(answer.p, "execution_complete");
        if (!final)
            final = strstr(answer.p, "\"evalue\"");
        for (size_t cut = 1; cut < answer.n; cut++)
            for (int end = SCRIPT_EOF; end <= SCRIPT_RESET; end++) {
                ScriptAnswer all = {"\r\n\r\n", answer.p, answer.n};
                Script       s = {.answers = &all, .count = 1, .cut = cut, .end = (ScriptEnd)end};
                bool         result = execd__test_run(&s, &got);
                const char *whole = final ? strpbrk(final, "\n\r") : NULL;
                if (result && (!final || answer.p + cut <= whole || (*whole == '\r' && cut < answer.n)))
                    fail_msg("case %zu cut at %zu: a result was made up: %.*s", i, cut, STR_ARG(buf_str(&got)));
                script_free(&s);
            }
    }
    buf_free(&answer);
    buf_free(&got);
}

static const struct CMUnitTest execd_tests[] = {
    cmocka_unit_test(execd_stream_test),
    cmocka_unit_test(execd_cut_test),
};
