/* Plugins that keep to the protocol and plugins that do not, each a process
 * that follows a script (epp_script.h), in a folder of its own. */
#include "base/limits.h"
#include "base/str.h"
#include "epp_script.h"
#include "provider/epp.h"
#include "provider/epp_record.h"
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EPP_TEST_MOST_MS = 60000 };      /* for a case, on a machine that has other things to do */

#define EPP_TEST_ANSWER(result) ">{\"id\":@,\"result\":" result "}\n"
#define EPP_TEST_RECORD "{\"sandbox_id\":\"sb-1\",\"status\":\"running\"}"
#define EPP_TEST_CONNECT "<\n" EPP_TEST_ANSWER(EPP_TEST_RECORD)

typedef struct EppTest {
    Arena     a;
    Provider *p;
    char      trace[4096];      /* what was told to the trace, a line each */
    int       cancel[2];        /* a pipe whose reader is the cancel fd */
    bool      checked;
} EppTest;

static void epp_test_trace(void *ctx, const char *line)
{
    EppTest *t = ctx;
    size_t   n = strlen(t->trace);

    snprintf(t->trace + n, sizeof t->trace - n, "%s\n", line);
}

static bool epp_test_check(void *ctx, Err *err)
{
    (void)err;
    ((EppTest *)ctx)->checked = true;
    return true;
}

#define EPP_TEST_STRS(name, ...) \
    static const char *const name##_words[] = {__VA_ARGS__}; \
    static Str name##_strs[COUNT_OF(name##_words)]; \
    for (size_t i = 0; i < COUNT_OF(name##_words); i++) \
        name##_strs[i] = str_from(name##_words[i]); \
    const Strs name = {name##_strs, COUNT_OF(name##_words)}

static void epp_test_open(EppTest *t, const char *script, int64_t call_ms)
{
    EPP_TEST_STRS(features, "sandbox.lifecycle", "sandbox.timeout", "exec.run", "exec.stream", "process.manage", "files.rw",
                  "ports.url", "sandbox.pause");
    EPP_TEST_STRS(cli, "sandbox.create", "sandbox.list", "sandbox.get", "sandbox.delete", "sandbox.timeout", "exec.run",
                  "exec.stream", "files.read", "files.write", "files.stat", "files.list", "ports.resolve");
    EPP_TEST_STRS(python, "sandbox.create");
    EPP_TEST_STRS(startups, "x");
    EPP_TEST_STRS(inherit, "sandbox_api_key", "sandbox_domain");
    static const ProviderField fields[] = {
        {.key = "token", .type = FIELD_STR, .secret = true}, {.key = "port", .type = FIELD_INT}, {.key = "on", .type = FIELD_BOOL},
        {.key = "ratio", .type = FIELD_FLOAT}, {.key = "words", .type = FIELD_JSON}, {.key = "unset", .type = FIELD_STR},
        {.key = "entrypoint", .type = FIELD_STR},
    };
    static const Pair settings[] = {
        {{"token", 5}, {"s3cret-t\xc3\xb6ken", 13}}, {{"port", 4}, {"8080", 4}}, {{"on", 2}, {"true", 4}}, {{"ratio", 5}, {"1e-05", 5}},
        {{"words", 5}, {"[\"a\",1]", 7}}, {{"http_timeout", 12}, {"30.0", 4}}, {{"sandbox_api_key", 15}, {"core-key", 8}},
    };
    static const char *const vars[] = {"PATH=/usr/bin:/bin", "HOME=/h", "ABX_X=1", "LC_ALL=C", "PASSED=yes", "OTHER=no", "E2B_KEY=k", NULL};
    static const Str pass[] = {{"PASSED", 6}};
    static char  self[PATH_MAX];     /* as a path: valgrind cannot start itself by /proc */
    Err          err;

    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    Str command[] = {str_from(self), STR("--plugin"), str_from(script)};

    *t = (EppTest){.a = arena_make((size_t)64 << 20)};
    assert_int_equal(pipe(t->cancel), 0);
    ProviderHost host = {.cancel_fd = t->cancel[0], .trace = epp_test_trace, .trace_ctx = t};
    EppSpec spec = {
        .id = STR("demo"), .name = STR("Demo"), .files = ".", .command = {command, 3}, .env_passthrough = {pass, 1},
        .data_dir = arena_cstr(&t->a, str_from(getcwd((char[1000]){0}, 1000))), .startup_ms = 20000, .call_ms = call_ms,
        .features = features, .cli = cli, .python = python, .startups = startups, .fields = fields,
        .field_count = COUNT_OF(fields), .inherit = inherit, .credential = STR("ABX_DEMO_TOKEN"), .environ = vars,
        .check = epp_test_check, .check_ctx = t,
    };
    assert_true(epp_open(&spec, (Settings){settings, COUNT_OF(settings)}, &host, &t->p, &err));
}

static bool epp_test_alive(long pid)
{
    char  path[64], line[512] = "", state = 'Z';
    FILE *f;

    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    if ((f = fopen(path, "r")) == NULL)
        return false;
    if (fgets(line, sizeof line, f) && strrchr(line, ')'))
        state = strrchr(line, ')')[2];
    fclose(f);
    return state != 'Z' && state != 'X';
}

/* How many processes of all that were started are left, other than those in
 * sessions of their own; they are ended. */
static int epp_test_left(void)
{
    FILE *f = fopen("pids", "r");
    long  pid;
    int   left = 0;

    while (f && fscanf(f, "%ld", &pid) == 1) {
        /* One that was killed needs a moment to be gone. */
        for (int i = 0; i < 100 && epp_test_alive(pid); i++)
            usleep(10000);
        if (epp_test_alive(pid)) {
            left++;
            kill((pid_t)pid, SIGKILL);
        }
    }
    if (f)
        fclose(f);
    remove("pids");
    remove("starts");
    return left;
}

static void epp_test_close(EppTest *t)
{
    t->p->kind->close(t->p);
    arena_free(&t->a);
    close(t->cancel[0]);
    close(t->cancel[1]);
}

/* What a script's plugin did: o(...) e(...) x(code) of a command, ids of
 * sandboxes, or !(code text | hint). */
static void epp_test_fail(const Err *err, Buf *got)
{
    char code[6];

    code_name(err->code, code);
    buf_addf(got, "!(%s %s%s%s)", code, err->text, err->hint[0] ? " | " : "", err->hint);
}

static void epp_test_exec(EppTest *t, const ExecRequest *rq, Buf *got)
{
    const ProviderKind *k = t->p->kind;
    ExecCall *x;
    ExecEvent ev;
    Err       err, none;
    Step      step;

    if (!k->exec(t->p, STR("sb-1"), rq, &x, clock_after(10000), &err)) {
        epp_test_fail(&err, got);
        return;
    }
    do {
        step = x->ops->next(x, &ev, &err);
        if (step == STEP_ERR)
            epp_test_fail(&err, got);
        else if (step == STEP_DONE && ev.kind == EXEC_EXIT)
            ev.exit_code < 0 ? buf_addf(got, "s(%d)", ev.signal) : buf_addf(got, "x(%d)", ev.exit_code);
        else if (step == STEP_DONE)
            buf_addf(got, "%c(%.*s)", ev.kind == EXEC_OUT ? 'o' : 'e', STR_ARG(ev.bytes));
        else if (x->ops->want(x).fd >= 0 && !poll_one(x->ops->want(x).fd, x->ops->want(x).events, -1, x->ops->deadline(x), &none))
            assert_int_equal(none.kind, ERR_TIMEOUT);
    } while (step == STEP_MORE || (step == STEP_DONE && ev.kind != EXEC_EXIT));
    x->ops->close(x);
}

static bool epp_test_sink(void *ctx, Str bytes, Err *err)
{
    (void)err;
    buf_add(ctx, bytes);
    return true;
}

static void epp_test_list(EppTest *t, Buf *got)
{
    ListPage page = {.more = true};
    Err      err;

    for (int n = 1; page.more; n++) {
        if (!t->p->kind->list(t->p, NULL, 0, n, 0, &t->a, &page, DEADLINE_NONE, &err)) {
            epp_test_fail(&err, got);
            return;
        }
        for (size_t i = 0; i < page.count; i++)
            buf_addf(got, "%.*s ", STR_ARG(page.items[i].id));
    }
    buf_addc(got, '.');
}

/* g get, l list, c create, k kill, x exec, r read, w write, t stat, p port, h handshake, u set_timeout */
static void epp_test_do(EppTest *t, char what, Buf *got)
{
    static const Str words[] = {{"echo hi", 7}}, several[] = {{"/bin/echo", 9}, {"-n", 2}, {"\xc3\xa9", 2}};
    static const Pair pair[] = {{{"K", 1}, {"v", 1}}};
    static const Str point[] = {{"sleep", 5}, {"inf", 3}};
    const ProviderKind *k = t->p->kind;
    CreateRequest create = {.template = STR("base"), .timeout_s = 300, .env = pair, .env_count = 1, .cpu = STR("2"),
                            .memory = STR("2Gi")};
    ExecRequest rq = {.argv = words, .argc = 1, .timeout_ms = 300}, rq3 = {.argv = several, .argc = 3, .env = pair, .env_count = 1, .cwd = STR("/w")};
    SandboxInfo info = {0};
    FileInfo    file;
    PortUrl     url;
    bool        killed = false, ok = true;
    int64_t     size;
    Str         content = STR("he\xc3\xa9llo");
    Err         err = {0};

    switch (what) {
    case 'g': ok = k->get(t->p, STR("sb-1"), &t->a, &info, DEADLINE_NONE, &err); break;
    case 'c': ok = k->create(t->p, &create, &t->a, &info, DEADLINE_NONE, &err); break;
    case 'C':
        create.entrypoint = point;
        create.entrypoint_count = 2;
        ok = k->create(t->p, &create, &t->a, &info, DEADLINE_NONE, &err);
        break;
    case 'u': ok = k->set_timeout(t->p, STR("sb-1"), 600, &t->a, &info, DEADLINE_NONE, &err); break;
    case 'l': epp_test_list(t, got); return;
    case 'x': epp_test_exec(t, &rq, got); return;
    case 'X': epp_test_exec(t, &rq3, got); return;
    case 'k':
        ok = k->kill(t->p, STR("sb-1"), &killed, DEADLINE_NONE, &err);
        if (ok)
            buf_addf(got, "killed:%d", killed);
        break;
    case 'r': ok = k->file_read(t->p, STR("sb-1"), STR("/f"), (Sink){epp_test_sink, got}, &size, DEADLINE_NONE, &err); break;
    case 'w': ok = k->file_write(t->p, STR("sb-1"), STR("/f"), -1, flow_from_str(&content), &size, DEADLINE_NONE, &err); break;
    case 't':
        ok = k->file_stat(t->p, STR("sb-1"), STR("/f"), &t->a, &file, DEADLINE_NONE, &err);
        if (ok)
            buf_addf(got, "%.*s %.*s %lld %d", STR_ARG(file.name), STR_ARG(file.path), (long long)file.size, file.type);
        break;
    case 'p':
        ok = k->port_url(t->p, STR("sb-1"), 80, &t->a, &url, DEADLINE_NONE, &err);
        if (ok)
            buf_addf(got, "%.*s %zu", STR_ARG(url.url), url.headers.n);
        break;
    case 's': ok = k->pause(t->p, STR("sb-1"), &t->a, &info, DEADLINE_NONE, &err); break;
    case 'W':
        content = (Str){arena_alloc(&t->a, 6000000), 6000000};
        ok = k->file_write(t->p, STR("sb-1"), STR("/f"), -1, flow_from_str(&content), &size, DEADLINE_NONE, &err);
        break;
    case 'h': ok = epp_handshake(t->p, DEADLINE_NONE, &err); break;
    default: fail();
    }
    if (!ok)
        epp_test_fail(&err, got);
    else if (info.id.n)
        buf_addf(got, "%.*s:%.*s", STR_ARG(info.id), STR_ARG(info.status));
}

typedef struct EppCase {
    const char *name, *script, *todo;   /* todo: a letter for each call */
    const char *want;                   /* joined by ; a * at the end matches the rest */
    bool        aside;                  /* it sleeps a lot: run beside the others */
    int64_t     call_ms;                /* for one call; 0: 20 s; -1: that, and one process may be left, in another session */
} EppCase;

static const EppCase epp_cases[] = {
    {"get", "h\n<\n" EPP_TEST_ANSWER(EPP_TEST_RECORD) "w", "g", "sb-1:running", 0, 0},
    {"cr lf and blank lines", "h\n<\n> \t\n.\r\n>{\"id\":@,\"result\":" EPP_TEST_RECORD "}\r\nw", "g", "sb-1:running", 0, 0},
    {"an end without a line feed", "h\n<\n.{\"id\":@,\"result\":" EPP_TEST_RECORD "}\nx 0", "g", "sb-1:running", 0, 0},
    {"answers to others", "h\n<\n>{\"id\":99,\"result\":{}}\n>{\"id\":\"2\",\"result\":{}}\n>{\"id\":2.0,\"result\":{}}\n"
     ">{\"id\":true,\"result\":{}}\n>{\"method\":\"ask\",\"id\":2}\n" EPP_TEST_ANSWER(EPP_TEST_RECORD) "w", "g", "sb-1:running", 0, 0},
    {"two answers", "h\n<\n" EPP_TEST_ANSWER(EPP_TEST_RECORD) EPP_TEST_ANSWER("{\"sandbox_id\":\"evil\"}") "<\n" EPP_TEST_ANSWER(EPP_TEST_RECORD) "w",
     "gg", "sb-1:running;sb-1:running", 0, 0},
    {"an error that is no object", "h\n<\n>{\"id\":@,\"error\":7,\"result\":" EPP_TEST_RECORD "}\nw", "g", "sb-1:running", 0, 0},
    {"a log", "h\n<\n>{\"method\":\"log\",\"params\":{\"message\":\"hi s3cret-t\\u00f6ken\"}}\n" EPP_TEST_ANSWER(EPP_TEST_RECORD) "w", "g", "sb-1:running", 0, 0},
    {"get without the method", "h\n<\n>{\"id\":@,\"error\":{\"code\":-32601}}\n<\nd$\n" EPP_TEST_ANSWER(EPP_TEST_RECORD) "w", "g", "sb-1:running", 0, 0},
    {"get of what is not there", "h\n<\n>{\"id\":@,\"error\":{\"code\":-32002,\"message\":\"no such box\"}}\nw", "g", "!(E2009 no such box)", 0, 0},
    {"kill of what is not there", "h\n<\n>{\"id\":@,\"error\":{\"code\":-32002,\"data\":{\"sdk_code\":\"E2009\"}}}\nw", "k", "killed:0", 0, 0},
    {"kill", "h\n<\n" EPP_TEST_ANSWER("null") "w", "k", "killed:1", 0, 0},
    {"list of two pages", "h\n<\n" EPP_TEST_ANSWER("{\"sandboxes\":[" EPP_TEST_RECORD "],\"next\":\"c\"}") "<\n"
     EPP_TEST_ANSWER("{\"sandboxes\":[{\"sandbox_id\":2}]}") "w", "l", "sb-1 2 .", 0, 0},
    {"a cursor that leads nowhere", "h\n<\n" EPP_TEST_ANSWER("{\"sandboxes\":[],\"next\":\"c\"}") "<\n"
     EPP_TEST_ANSWER("{\"sandboxes\":[],\"next\":\"c\"}") "w", "l", ".", 0, 0},
    {"sandboxes no array", "h\n<\n" EPP_TEST_ANSWER("{\"sandboxes\":7}") "w", "l",
     "!(E8020 the plugin of provider demo answers sandbox.list wrongly: sandboxes is no array)", 0, 0},
    {"a record that is none", "h\n<\n" EPP_TEST_ANSWER("{\"sandboxes\":[" EPP_TEST_RECORD ",5]}") "w", "l",
     "!(E8020 the plugin of provider demo answers sandbox.list wrongly: it is no object)", 0, 0},
    {"exec", "h\n" EPP_TEST_CONNECT "<\n>{\"method\":\"exec.output\",\"params\":{\"process_id\":7,\"data\":\"early \"}}\n"
     EPP_TEST_ANSWER("{\"process_id\":\"7\"}") ">{\"method\":\"exec.output\",\"params\":{\"process_id\":7,\"stream\":\"stderr\",\"data\":\"\\ud83d\\ude00\"}}\n"
     ">{\"method\":\"exec.output\",\"params\":{\"process_id\":\"8\",\"data\":\"of another\"}}\n>{\"method\":\"exec.more\",\"params\":{\"process_id\":7}}\n"
     ">{\"method\":\"exec.output\",\"params\":{\"process_id\":\"7\",\"data\":\"half \\ud83d\"}}\n"
     ">{\"method\":\"exec.exit\",\"params\":{\"process_id\":7,\"exit_code\":3}}\nw", "x", "o(early )e(\xf0\x9f\x98\x80)o(half \xef\xbf\xbd)x(3)", 0, 0},
    {"exec ended by a signal", "h\n" EPP_TEST_CONNECT "<\n" EPP_TEST_ANSWER("{\"process_id\":7}") ">{\"method\":\"exec.exit\",\"params\":{\"process_id\":7,\"exit_code\":-9}}\nw",
     "x", "s(9)", 0, 0},
    {"no exit code", "h\n" EPP_TEST_CONNECT "<\n" EPP_TEST_ANSWER("{\"process_id\":7}") ">{\"method\":\"exec.exit\",\"params\":{\"process_id\":7}}\nw",
     "x", "!(E8020 the plugin of provider demo answers exec.exit wrongly: exit_code is none)", 0, 0},
    {"no process id", "h\n" EPP_TEST_CONNECT "<\n" EPP_TEST_ANSWER("{}") "w", "x", "!(E8020 the plugin of provider demo answers exec.start wrongly: *", 0, 0},
    {"dead in the middle of output", "h\n" EPP_TEST_CONNECT "<\n" EPP_TEST_ANSWER("{\"process_id\":7}")
     ">{\"method\":\"exec.output\",\"params\":{\"process_id\":7,\"data\":\"o\"}}\nk", "x", "o(o)!(E8021 the plugin of provider demo exited unexpectedly (code -9))", 0, 0},
    {"a command that does not end", "h\n" EPP_TEST_CONNECT "<\n" EPP_TEST_ANSWER("{\"process_id\":7}") "<\nd$\n" EPP_TEST_ANSWER("null")
     ">{\"method\":\"exec.exit\",\"params\":{\"process_id\":7,\"exit_code\":143}}\nw", "x", "!(E3001 *", 1, 0},
    {"read", "h\n" EPP_TEST_CONNECT "<\n" EPP_TEST_ANSWER("{\"name\":\"f\",\"size\":5}") "<\n" EPP_TEST_ANSWER("{\"content_b64\":\"aGkhaGk=\"}") "w", "r", "hi!hi", 0, 0},
    {"read of base64 that is none", "h\n" EPP_TEST_CONNECT "<\n" EPP_TEST_ANSWER("{\"size\":null}") "<\n" EPP_TEST_ANSWER("{\"content_b64\":\"aGk\"}") "w", "r",
     "!(E8020 the plugin of provider demo answers files.read wrongly: content_b64 is no base64)", 0, 0},
    {"read without content", "h\n" EPP_TEST_CONNECT "<\n" EPP_TEST_ANSWER("{}") "<\n" EPP_TEST_ANSWER("{}") "w", "r",
     "!(E8020 the plugin of provider demo answers files.read wrongly: content_b64 is no text)", 0, 0},
    {"read of what is too large", "h\n" EPP_TEST_CONNECT "<\n" EPP_TEST_ANSWER("{\"size\":7000000}") "w", "r", "!(E4003 *", 0, 0},
    {"stat", "h\n" EPP_TEST_CONNECT "<\n" EPP_TEST_ANSWER("{\"name\":\"f\",\"path\":\"/f\",\"type\":\"dir\",\"size\":4096}") "w", "t", "f /f 4096 1", 0, 0},
    {"stat with a size that is none", "h\n" EPP_TEST_CONNECT "<\n" EPP_TEST_ANSWER("{\"size\":\"x\"}") "w", "t",
     "!(E8020 the plugin of provider demo answers files.stat wrongly: size is no number of bytes)", 0, 0},
    {"port", "h\n" EPP_TEST_CONNECT "<\n" EPP_TEST_ANSWER("{\"url\":\"http://h:1\",\"headers\":{\"X-A\":5}}") "w", "p", "http://h:1 1", 0, 0},
    {"port without url", "h\n" EPP_TEST_CONNECT "<\n" EPP_TEST_ANSWER("{\"url\":5}") "w", "p", "!(E8020 *", 0, 0},
    {"port with a bad header", "h\n" EPP_TEST_CONNECT "<\n" EPP_TEST_ANSWER("{\"url\":\"u\",\"headers\":{\"a b\":\"\"}}") "w", "p", "!(E8020 *", 0, 0},
    {"what it does not declare", "h\nw", "s", "!(E8004 provider demo has not implemented sandbox.pause | `abx provider info demo` shows what it can do.)", 0, 0},
    {"set_timeout", "h\n" EPP_TEST_CONNECT "<\n" EPP_TEST_ANSWER("null") "<\n" EPP_TEST_ANSWER(EPP_TEST_RECORD) "w", "u", "sb-1:running", 0, 0},
    {"create with an id that is none", "h\n<\n" EPP_TEST_ANSWER("{\"sandbox_id\":\"a\\nb\"}") "w", "c", "!(E8020 *", 0, 0},
    /* what is broken */
    {"garbage", "h\n<\neI am s3cret-t\xc3\xb6ken, broken\ns 50\n>garbage\nw", "gg",
     "!(E8020 the plugin of provider demo sent a line that is no message (JSON: expected a value at byte 0) | The plugin printed: I am ***, broken);!(E8020 *", 0, 0},
    {"an array", "h\n<\n>[1]\nw", "g", "!(E8020 the plugin of provider demo sent a line that is no message (JSON, but no object))", 0, 0},
    {"no UTF-8", "h\n<\n>{\"a\":\"\xff\"}\nw", "g", "!(E8020 *", 0, 0},
    {"a line of 8 MiB and one", "h\n<\n.{\"id\":@,\"result\":{\"sandbox_id\":\"sb-1\",\"pad\":\"\n*8388560 x\n>\"}}\nw", "g", "!(E8020 the plugin of provider demo sent a line of more than 8388608 bytes)", 1, 0},
    {"a line of 8 MiB", "h\n<\n.{\"id\":@,\"result\":{\"sandbox_id\":\"sb-1\",\"pad\":\"\n*8388559 x\n>\"}}\nw", "g", "sb-1:running", 1, 0},
    {"a line without end", "h\n<\n*100000000 x\nw", "g", "!(E8020 *", 1, 0},
    {"dead before the handshake", "ebad config\nx 7", "gg", "!(E8021 the plugin of provider demo exited unexpectedly (code 7) | The plugin printed: bad config);!(E8021 *", 0, 0},
    {"dead in the middle of a line", "h\n<\n.{\"id\":@,\nx 1", "g", "!(E8020 *", 0, 0},
    {"dead, and a child holds stdout", "h\n<\nf\nk", "g", "!(E8021 the plugin of provider demo exited unexpectedly (code -9))", 0, 0},
    {"stalls", "h\n<\nd$\nw", "g", "!(E8022 the plugin of provider demo did not answer sandbox.get within 1.5 s)", 1, 1500},
    {"leaves a child behind", "h\nf\n<\n" EPP_TEST_ANSWER(EPP_TEST_RECORD) "w", "g", "sb-1:running", 1, 0},
    {"ignores all that asks it to end", "h\nt\n<\n" EPP_TEST_ANSWER(EPP_TEST_RECORD) "z", "g", "sb-1:running", 1, 0},
    {"closes its output", "h\n<\nc 1\nz", "g", "!(E8021 the plugin of provider demo closed its output and went on running)", 1, 9000},
    {"closes its input", "h\n<\nc 0\n" EPP_TEST_ANSWER(EPP_TEST_RECORD) "z", "gg", "sb-1:running;!(E8021 the plugin of provider demo closed its input)", 1, 0},
    {"kill after it died", "h\n<\n>garbage\nw", "gk", "!(E8020 *", 1, 0},
    {"another protocol", "<\n>{\"id\":1,\"result\":{\"protocol\":\"epp/2\"}}\nw", "g", "!(E8013 *", 0, 0},
    {"another contract", "<\n>{\"id\":1,\"result\":{\"protocol\":\"epp/1\",\"operation_contract_version\":true}}\nw", "g", "!(E8013 *", 0, 0},
    {"a handshake that is refused", "<\n>{\"id\":1,\"error\":{\"code\":-32001,\"message\":\"bad core-key\",\"data\":{\"sdk_code\":\"E1001\"}}}\nw", "g",
     "!(E1001 bad *** | Check ABX_DEMO_TOKEN: it is where the key of provider demo is read from.)", 0, 0},
    {"handshake", "h\nw", "hh", ";", 1, 0},
    {"floods stderr", "h\n<\ne\n*1 \n" EPP_TEST_ANSWER(EPP_TEST_RECORD) "w", "g", "sb-1:running", 0, 0},
    {"reads no more", "h\n" EPP_TEST_CONNECT "z", "W", "!(E8022 the plugin of provider demo does not read its input)", 1, 1500},
    {"reads no more, and prints", "h\n" EPP_TEST_CONNECT "*100000000 {\"method\":\"log\"}|\nz", "W", "!(E8022 the plugin of provider demo does not read its input)", 1, 1500},
    {"prints lines without end", "h\n<\n*100000000 {\"method\":\"log\"}|\nz", "g", "!(E8022 *", 1, 1500},
    {"kill by a fresh one", "h\n<\n>garbage\nz\n=\nh\n<\n" EPP_TEST_ANSWER("{}") "w", "gk", "!(E8020 *", 1, 0},
    {"kill by a fresh one, after it was late", "h\n<\nz\n=\nh\n<\n" EPP_TEST_ANSWER("{}") "w", "gk",
     "!(E8022 the plugin of provider demo did not answer sandbox.get within 1.5 s);killed:1", 1, 1500},
    {"dead over a kill", "h\n<\nk\n=\nh\n<\n" EPP_TEST_ANSWER("{}") "w", "k", "killed:1", 1, 0},
    {"create undone by a fresh one", "h\n<\n" EPP_TEST_ANSWER("{\"sandbox_id\":\"sb-9\",\"envd_access_token\":5}") "w\n=\nh\n<\nd$\n" EPP_TEST_ANSWER("{}") "w", "c",
     "!(E8020 sandbox sb-9 (removed again): the plugin of provider demo answers sandbox.create wrongly: envd_access_token is no text)", 1, 0},
    {"create that cannot be undone", "h\n<\n" EPP_TEST_ANSWER("{\"sandbox_id\":\"sb-9\",\"envd_access_token\":5}") "w\n=\nx 3", "c",
     "!(E8020 sandbox sb-9 (it could not be removed: the plugin of provider demo exited unexpectedly (code 3)): *", 1, 0},
    {"stdout held from another session", "h\n<\nF\nk", "g", "!(E8021 the plugin of provider demo exited unexpectedly (code -9))", 1, -1},
    {"notes of as many commands as there may be", "h\n<\nn 256\n" EPP_TEST_ANSWER(EPP_TEST_RECORD) "w", "g", "sb-1:running", 1, 0},
    {"notes of many commands", "h\n<\nn 257\nw", "g", "!(E8020 the plugin of provider demo told more of commands than anybody asked for)", 1, 0},
    {"notes for nobody", "h\n<\n*300000 {\"method\":\"exec.output\",\"params\":{\"process_id\":7,\"data\":\"xxxxxxxxxxxxxxxxxx\"}}|\nw", "g", "!(E8020 *", 1, 20000},
};

static bool epp_case_run(const EppCase *c)
{
    Buf     got = buf_make(1 << 20);
    int64_t start = clock_mono_ms();
    EppTest t;

    epp_test_open(&t, c->script, c->call_ms > 0 ? c->call_ms : 20000);
    for (const char *w = c->todo; *w; w++) {
        buf_add(&got, w > c->todo ? STR(";") : STR(""));
        epp_test_do(&t, *w, &got);
    }
    epp_test_close(&t);
    Str want = str_from(c->want), is = buf_str(&got);
    if (str_ends(want, STR("*")) && is.n >= want.n - 1) {
        want.n--;
        is.n = want.n;
    }
    int64_t took = clock_mono_ms() - start;
    int     left = epp_test_left();
    bool    ok = str_eq(is, want) && took < EPP_TEST_MOST_MS && left == (c->call_ms < 0);
    if (!ok)
        print_error("%s: %.*s, after %lld ms, %d processes left\n", c->name, STR_ARG(buf_str(&got)), (long long)took, left);
    buf_free(&got);
    return ok;
}

/* One that sleeps a lot, beside the others, in a folder of its own. */
static pid_t epp_case_start(const EppCase *c)
{
    void *state;
    pid_t child = fork();

    if (child == 0)
        _exit(fs_enter(&state) == 0 && epp_case_run(c) && fs_leave(&state) == 0 ? 0 : 1);
    return child;
}

static void epp_cases_test(void **state)
{
    pid_t children[COUNT_OF(epp_cases)];
    int   failed = 0, status;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(epp_cases); i++)
        children[i] = epp_cases[i].aside && !strchr(epp_cases[i].script, '*') ? epp_case_start(&epp_cases[i]) : 0;
    for (size_t i = 0; i < COUNT_OF(epp_cases); i++)
        failed += children[i] == 0 && !epp_case_run(&epp_cases[i]);
    for (size_t i = 0; i < COUNT_OF(epp_cases); i++)
        if (children[i] != 0)
            failed += children[i] < 0 || waitpid(children[i], &status, 0) != children[i] || status != 0;
    assert_int_equal(failed, 0);
}

/* What the requests are, byte by byte, and what the plugin was started with. */
static void epp_bytes_test(void **state)
{
    static const char script[] = "v\nH\n<\nd$\n" EPP_TEST_ANSWER(EPP_TEST_RECORD) "<\nd$\n" EPP_TEST_ANSWER("{\"process_id\":\"p\"}")
        ">{\"method\":\"exec.exit\",\"params\":{\"process_id\":\"p\",\"exit_code\":\"4\"}}\n<\nd$\n" EPP_TEST_ANSWER("{\"process_id\":8}")
        ">{\"method\":\"exec.exit\",\"params\":{\"process_id\":8,\"exit_code\":0}}\n<\nd$\n" EPP_TEST_ANSWER("{}") "<\nd$\n" EPP_TEST_ANSWER("{\"sandboxes\":[],\"next\":\"a/b\"}")
        "<\nd$\n" EPP_TEST_ANSWER("{\"sandboxes\":[]}") "<\nd$\n>{\"id\":@,\"result\":null}";
    static const char want[] =
        "ABX_PROVIDER_DATA_DIR=%s\nHOME=/h\nLC_ALL=C\nPASSED=yes\nPATH=/usr/bin:/bin\nPYTHONDONTWRITEBYTECODE=1\n"
        "%s, session 1, group 1, descriptors 0, core %llu\n"
        "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"initialize\", \"params\": {\"protocol\": \"epp/1\", \"host\": {\"name\": \"abx\", "
        "\"version\": \"" ABX_VERSION "\"}, \"provider_id\": \"demo\", \"config\": {\"token\": \"s3cret-t\\u00f6ken\", \"port\": 8080, \"on\": true, "
        "\"ratio\": 1e-05, \"words\": [\"a\", 1]}, \"core\": {\"sandbox_api_key\": \"core-key\", \"sandbox_domain\": \"\", \"http_timeout\": 30.0}, "
        "\"locale\": \"en\", \"data_dir\": \"%s\"}}\n"
        "{\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"sandbox.create\", \"params\": {\"template\": \"base\", \"timeout\": 300, \"metadata\": {}, "
        "\"envs\": {\"K\": \"v\"}, \"cpu\": 2, \"memory\": 2048, \"disk\": null, \"gpu\": null, \"request_timeout\": null, "
        "\"options\": {\"entrypoint\": \"sleep inf\"}}}\n"
        "{\"jsonrpc\": \"2.0\", \"id\": 3, \"method\": \"exec.start\", \"params\": {\"sandbox_id\": \"sb-1\", \"cmd\": \"sh\", \"args\": [\"-c\", \"echo hi\"], "
        "\"env\": {}, \"cwd\": \"\", \"user\": \"\", \"timeout\": 1}}\n"
        "{\"jsonrpc\": \"2.0\", \"id\": 4, \"method\": \"exec.start\", \"params\": {\"sandbox_id\": \"sb-1\", \"cmd\": \"/bin/echo\", \"args\": [\"-n\", \"\\u00e9\"], "
        "\"env\": {\"K\": \"v\"}, \"cwd\": \"/w\", \"user\": \"\", \"timeout\": 86400}}\n"
        "{\"jsonrpc\": \"2.0\", \"id\": 5, \"method\": \"files.write\", \"params\": {\"sandbox_id\": \"sb-1\", \"path\": \"/f\", \"content_b64\": \"aGXDqWxsbw==\"}}\n"
        "{\"jsonrpc\": \"2.0\", \"id\": 6, \"method\": \"sandbox.list\", \"params\": {\"limit\": 100}}\n"
        "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"sandbox.list\", \"params\": {\"limit\": 100, \"cursor\": \"a/b\"}}\n"
        "{\"jsonrpc\": \"2.0\", \"id\": 8, \"method\": \"shutdown\", \"params\": {}}\n";
    Buf     got = buf_make(1 << 20), log = buf_make(1 << 20), all = buf_make(1 << 20);
    char    dir[1000];
    EppTest t;
    Err     err;
    struct rlimit core, now;

    (void)state;
    assert_true(getrlimit(RLIMIT_CORE, &core) == 0);
    proc_no_core();
    assert_true(getrlimit(RLIMIT_CORE, &now) == 0 && now.rlim_cur == 0 && now.rlim_max == core.rlim_max);
    epp_test_open(&t, script, 1500);
    for (const char *w = "CxXwl"; *w; w++)
        epp_test_do(&t, *w, &got);
    assert_true(t.checked);
    epp_test_close(&t);
    assert_int_equal(epp_test_left(), 0);
    assert_true(str_eq(buf_str(&got), STR("sb-1:runningx(4)x(0).")));
    assert_true(fs_read("log", &log, &err) && getcwd(dir, sizeof dir));
    buf_addf(&all, want, dir, dir, (unsigned long long)core.rlim_cur, dir);
    if (!str_eq(buf_str(&log), buf_str(&all)))
        fail_msg("%.*s", STR_ARG(buf_str(&log)));
    buf_free(&got);
    buf_free(&log);
    buf_free(&all);
}

/* Lines come out the same however the bytes are cut; a pipe stands for the plugin. */
static void epp_cut_test(void **state)
{
    static const char text[] = "{\"a\":1}\n\n \t\r\n{\"b\":\"\xc3\xa9\"}\r\n\v\f\nlast";
    static const char want[] = "{\"a\":1}|{\"b\":\"\xc3\xa9\"}\r|last|";
    EppVoice voice = {.id = STR("demo")};
    Buf      got = buf_make(1000);
    Err      err;

    (void)state;
    for (size_t cut = 0; cut < sizeof text; cut++) {
        EppLink l = {.voice = &voice, .ready = -1, .doom = DEADLINE_NONE, .in = buf_make(1 << 20), .child = {.in = -1, .err = -1, .watch = -1}};
        int     ends[2];
        Str     line;
        l.child.pid = fork();
        if (l.child.pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                pause();
        }
        assert_true(pipe(ends) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
        l.child.out = ends[0];
        buf_clear(&got);
        for (int part = 0; part < 2; part++) {
            const char *from = part ? text + cut : text;
            size_t      n = part ? sizeof text - 1 - cut : cut;
            assert_true(n == 0 || write(ends[1], from, n) == (ssize_t)n);
            if (part)
                close(ends[1]);
            for (int turn = 0; turn < 2; turn++) {
                assert_true(!epp_link_turn(&l, -1, 0, &err) && err.kind == ERR_TIMEOUT);
                while (epp_link_line(&l, &line))
                    buf_addf(&got, "%.*s|", STR_ARG(line));
            }
        }
        if (!str_eq(buf_str(&got), STR(want)))
            fail_msg("cut at %zu: %.*s", cut, STR_ARG(buf_str(&got)));
        kill(l.child.pid, SIGKILL);
        epp_link_end(&l);
    }
    buf_free(&got);
}

/* Ctrl-C while a sandbox is made: it is made all the same, and taken away. */
static void epp_cancel_test(void **state)
{
    static const char create[] = "h\n<\nd$\n<\nd$\n>{\"id\":2,\"result\":" EPP_TEST_RECORD "}\n<\nd$\n" EPP_TEST_ANSWER("{}") "w";
    static const char want[] =
        "{\"jsonrpc\": \"2.0\", \"method\": \"$/cancel\", \"params\": {\"id\": 2}}\n"
        "{\"jsonrpc\": \"2.0\", \"id\": 3, \"method\": \"sandbox.kill\", \"params\": {\"sandbox_id\": \"sb-1\"}}\n";
    Buf     got = buf_make(1 << 20), log = buf_make(1 << 20);
    EppTest t;
    Err     err;
    Str     first, rest;

    (void)state;
    epp_test_open(&t, create, 20000);
    assert_true(epp_plugin_fresh((Epp *)t.p, DEADLINE_NONE, &err));
    assert_int_equal(write(t.cancel[1], "x", 1), 1);
    epp_test_do(&t, 'c', &got);
    assert_true(str_starts(buf_str(&got), STR("!(E0000 sandbox sb-1 (removed again): interrupted")));
    epp_test_do(&t, 'g', &got);     /* every wait ends at once, */
    t.p->kind->ignore_cancel(t.p);
    epp_test_close(&t);             /* but not this one */
    assert_int_equal(epp_test_left(), 0);
    assert_true(fs_read("log", &log, &err));
    rest = buf_str(&log);
    assert_true(str_cut(&rest, '\n', &first) && str_starts(rest, STR(want)));
    buf_free(&got);
    buf_free(&log);
}

static void epp_vectors_test(void **state)
{
    (void)state;
    vectors_whole("errors", 77);
    vectors_whole("epp_records", 72);
}

static const struct CMUnitTest epp_tests[] = {
    cmocka_unit_test(epp_vectors_test),
    cmocka_unit_test(epp_cut_test),
    cmocka_unit_test_setup_teardown(epp_cancel_test, fs_enter, fs_leave),
    cmocka_unit_test_setup_teardown(epp_bytes_test, fs_enter, fs_leave),
    cmocka_unit_test_setup_teardown(epp_cases_test, fs_enter, fs_leave),
};
