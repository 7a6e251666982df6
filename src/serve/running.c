#include "serve/running.h"

#include "base/base64.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/shell.h"
#include "os/poll.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum {
    RUNNING_PIECE = 65536,          /* of output in one notification: written as JSON at most six times as long */
    RUNNING_UNSENT = 256 << 10,     /* so much that the server did not take yet is enough; */
    RUNNING_MOST = 3 * LIMIT_SERVE_LINE,    /* what was on its way by then must fit all the same */
    RUNNING_HOLD_S = 86400,         /* a command without a timeout outlives its host for so long */
    RUNNING_UNKNOWN = 125,          /* the exit codes of the interface, as of `abx sandbox exec` */
    RUNNING_TIMED_OUT = 124,
};

/* ---- starting ---- */

/* A single word is a program in EPP, where abx.h would take it for a line. */
static const char *running__line(CallRun *c, const char *program)
{
    Buf b = buf_make(LIMIT_ANSWER);

    buf_add(&b, STR("exec "));
    shell_quote(&b, str_from(program));
    const char *line = arena_cstr(&c->a, buf_str(&b));
    buf_free(&b);
    return line;
}

/* `cmd` and `args`, as abx.h has them. */
static bool running__words(CallRun *c, abx_exec_options *o)
{
    const Json  *args = call_param(c, "args");
    size_t       n = json_count(args);
    const char **argv = arena_array(&c->a, n + 1, sizeof *argv);

    if (!call_text(c, "cmd", true, &argv[0]))
        return false;
    if (args && args->type != JSON_ARRAY)
        return call_refuse(c, WIRE_PARAMS, "params.args must be an array");
    for (size_t i = 0; i < n; i++) {
        argv[i + 1] = args->items[i].text.p;
        if (args->items[i].type != JSON_STRING || str_has(args->items[i].text, '\0'))
            return call_refuse(c, WIRE_PARAMS, "params.args must hold strings without NUL");
    }
    if (n == 0 && argv[0][0])
        argv[0] = running__line(c, argv[0]);
    o->argv = argv;
    o->argc = n + 1;
    return true;
}

/* What commands and terminals have in common. */
static bool running__place(CallRun *c, abx_exec_options *o)
{
    const char *cwd = "", *user = "";

    if (!call_text(c, "cwd", false, &cwd) || !call_text(c, "user", false, &user) ||
        !call_pairs(c, "env", &o->env, &o->env_count))
        return false;
    o->cwd = cwd[0] ? cwd : NULL;
    o->user = user[0] ? user : NULL;
    return true;
}

static bool running__options(CallRun *c, abx_exec_options *o)
{
    int64_t seconds = 0;

    if (!running__words(c, o) || !running__place(c, o) || !call_number(c, "timeout", false, &seconds))
        return false;
    if (seconds < 0 || seconds > INT32_MAX)
        return call_refuse(c, WIRE_CONFIG, "a timeout of %lld seconds makes no sense", (long long)seconds);
    o->timeout_ms = seconds * 1000;
    return true;
}

static int running__exit_code(const abx_event *e)
{
    if (e->timed_out)
        return RUNNING_TIMED_OUT;
    return e->exit_code >= 0 ? e->exit_code : 128 + (e->signal > 0 ? e->signal : SIGKILL);
}

/* What cannot be done without the agent is named as a feature. */
static abx_exec *running__exec(CallRun *c, const abx_exec_options *o)
{
    abx_exec *x = abx_exec_start(c->box, o, &c->failed);

    if (!x && strcmp(c->failed.code, "E8004") == 0) {
        c->refused = true;
        c->refusal = wire_from(&c->failed);
        c->refusal.feature = o->user ? "exec.user" : o->tty ? "pty" : NULL;
    }
    return x;
}

/* There was no program to run: that is a result, as a shell's would be. */
static bool running__no_program(const CallRun *c, abx_event *e)
{
    *e = (abx_event){.kind = ABX_EXIT, .exit_code = c->failed.command_status};
    return c->failed.command_status != 0;
}

/* The host gave the call up, and did not just leave. */
static bool running__given_up(const CallRun *c)
{
    struct pollfd p = {.fd = c->cancel_fd, .events = POLLIN};
    char          why;

    return poll(&p, 1, 0) == 1 && (p.revents & POLLIN) && read(c->cancel_fd, &why, 1) == 1 && why == 'c';
}

/* ---- exec.run ---- */

bool running_run(CallRun *c)
{
    abx_exec_options o = {0};
    abx_exec *x = running__options(c, &o) ? running__exec(c, &o) : NULL;
    Buf       texts[2] = {buf_make(LIMIT_SERVE_LINE), buf_make(LIMIT_SERVE_LINE)};     /* stdout, stderr */
    abx_event e;
    int       step = -1;

    while (x && (step = abx_exec_next(x, 1, &e, &c->failed)) == 1 && e.kind != ABX_EXIT)
        buf_add(&texts[e.kind == ABX_STDERR], (Str){e.bytes, e.size});
    if (x && step != 1 && running__no_program(c, &e)) {
        step = 1;
        buf_addf(&texts[1], "abx: %s\n", c->failed.message);
    }
    bool ok = x && step == 1;
    if (x && !ok && c->failed.kind == ABX_CANCELLED && running__given_up(c)) {
        ABX_UNSET abx_error none;
        abx_ignore_cancel(c->session);
        abx_exec_kill(x, &none);
    }
    if (ok && (texts[0].over || texts[1].over)) {
        ok = call_refuse(c, WIRE_FAILED, "the command printed more than a line may carry: use exec.start");
    } else if (ok) {
        WireOut w = wire_answer(&c->lines, c->call->id);
        json_begin(&w.json, '{');
        json_key(&w.json, "stdout");
        json_put_str(&w.json, buf_str(&texts[0]));
        json_key(&w.json, "stderr");
        json_put_str(&w.json, buf_str(&texts[1]));
        json_key(&w.json, "exit_code");
        json_put_int(&w.json, running__exit_code(&e));
        json_end(&w.json, '}');
        ok = call_answered(c, &w);
    }
    buf_free(&texts[0]);
    buf_free(&texts[1]);
    abx_exec_free(x);
    return ok;
}

/* ---- what a running command says ---- */

/* A process.stdin, pty.write or process.signal that cannot be carried out yet. */
typedef struct RunningAsk RunningAsk;
struct RunningAsk {
    RunningAsk *next;
    char       *id;             /* of the request, as JSON text */
    char       *bytes;          /* for its standard input, */
    size_t      n, at;          /* so many of them, and so many were taken */
    bool        eof;            /* and that is the end */
    int         number;         /* a signal; 0: it is input */
};

typedef enum RunningInput { RUNNING_NONE, RUNNING_FED, RUNNING_OPENED } RunningInput;

typedef struct Running {
    CallRun     *c;
    abx_exec    *x;
    WireReader   reader;
    int          asks;          /* -1: it has ended */
    RunningAsk  *first;
    size_t       asked;         /* bytes in all of them */
    bool         closed;        /* the end of its input was asked for */
    RunningInput input;         /* FED by the call itself; OPENED for the backend's own process_stdin */
    bool         pty;
    bool         carried;       /* by the agent: there are credits, and it tells that it runs */
    bool         held_back;     /* no more credit is given now */
    bool         told;          /* the server knows the process */
    Buf          held[2];       /* of stdout, of stderr: the beginning of a character */
} Running;

/* The bytes at the end of s that may be the beginning of a character. */
static size_t running__begun(Str s)
{
    for (size_t k = 1; k <= 3 && k <= s.n; k++) {
        unsigned char c = (unsigned char)s.p[s.n - k];
        if (c >= 0xc0)
            return (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) > k ? k : 0;
        if (c < 0x80)
            return 0;
    }
    return 0;
}

static WireOut running__notification(Running *r, const char *method)
{
    WireOut w = wire_notification(&r->c->lines, method);

    json_begin(&w.json, '{');
    call_member(&w.json, "process_id", r->c->call->process_id);
    return w;
}

/* What has credits is never waited with, for its connection must be looked after. */
static void running__sent(Running *r, WireOut *w)
{
    json_end(&w->json, '}');
    if (!wire_end(w))
        BUG("a notification that fits no line");
    if (r->c->lines.n >= (r->carried ? RUNNING_MOST : RUNNING_UNSENT))
        call_send(r->c);
}

static void running__text(Running *r, bool is_err, Str text)
{
    WireOut w = running__notification(r, "exec.output");

    call_member(&w.json, "stream", is_err ? "stderr" : "stdout");
    json_key(&w.json, "data");
    json_put_str(&w.json, text);
    running__sent(r, &w);
}

/* Send what is held, all of it or up to the character it was cut in. */
static void running__output(Running *r, bool is_err, bool all)
{
    Buf *held = &r->held[is_err];
    Str  rest = buf_str(held);

    while (rest.n) {
        Str  s = rest;
        bool last = s.n <= RUNNING_PIECE;
        s.n = last ? s.n : RUNNING_PIECE;
        if (!last || !all)
            s.n -= running__begun(s);
        if (!s.n)
            break;
        running__text(r, is_err, s);
        str_skip(&rest, s.n);
    }
    buf_drop(held, held->n - rest.n);
}

static void running__screen(Running *r, Str bytes)
{
    while (bytes.n) {
        Arena   kept = r->c->a;
        WireOut w = running__notification(r, "pty.output");
        Str     piece = {bytes.p, bytes.n < RUNNING_PIECE ? bytes.n : RUNNING_PIECE};
        json_key(&w.json, "data_b64");
        json_put_str(&w.json, base64_encode(&r->c->a, piece));
        running__sent(r, &w);
        r->c->a = kept;
        str_skip(&bytes, piece.n);
    }
}

static void running__heard(Running *r, const abx_event *e)
{
    bool is_err = e->kind == ABX_STDERR;
    Str  bytes = {e->bytes, e->size};

    if (e->kind != ABX_STDOUT && !is_err)
        return;
    if (r->pty) {
        running__screen(r, bytes);
        return;
    }
    buf_add(&r->held[is_err], bytes);
    running__output(r, is_err, false);
}

/* The end; e NULL: its result is unknown, for the reason in c->failed. */
static void running__over(Running *r, const abx_event *e)
{
    CallRun *c = r->c;

    if (!r->pty) {
        running__output(r, false, true);
        running__output(r, true, true);
    }
    if (c->failed.message[0] && !r->pty)
        running__text(r, true, arena_fmt(&c->a, "abx: %s\n", c->failed.message));
    WireOut w = running__notification(r, r->pty ? "pty.exit" : "exec.exit");
    json_key(&w.json, "exit_code");
    json_put_int(&w.json, e ? running__exit_code(e) : RUNNING_UNKNOWN);
    if (c->failed.message[0] && r->pty)
        call_member(&w.json, "message", c->failed.message);
    running__sent(r, &w);
    buf_add(&c->lines, STR("!end\n"));
}

/* ---- what is asked of it ---- */

static void running__reply(Running *r, Str id, bool ok)
{
    CallRun    *c = r->c;
    const Call *outer = c->call;
    Call        call = {.id = id};

    c->call = &call;
    if (!ok || !call_empty(c))
        call_failed(c);
    buf_addf(&c->lines, "!did %.*s\n", STR_ARG(id));
    c->call = outer;
}

static void running__drop(Running *r, RunningAsk **at)
{
    RunningAsk *ask = *at;

    *at = ask->next;
    r->asked -= ask->n;
    mem_free(ask->id);
    mem_free(ask->bytes);
    mem_free(ask);
}

/* 1: done. 0: not yet. -1: c->refusal or c->failed. */
static int running__feed(Running *r, RunningAsk *ask)
{
    CallRun *c = r->c;

    if (r->input == RUNNING_NONE) {
        call_refuse(c, WIRE_FAILED, "the command's standard input is no pipe: it was started without \"stdin\": true");
        return -1;
    }
    if (r->input == RUNNING_OPENED) {
        const char *pid = abx_exec_pid(r->x);
        if (ask->eof) {
            call_unable(c, "exec.stdin", "end the standard input of a command without its agent in the sandbox");
            return -1;
        }
        return !pid ? 0 : abx_process_stdin(c->box, pid, ask->bytes, ask->n, &c->failed) == 0 ? 1 : -1;
    }
    while (ask->at < ask->n) {
        ptrdiff_t n = abx_exec_write(r->x, ask->bytes + ask->at, ask->n - ask->at, &c->failed);
        if (n <= 0)
            return n < 0 ? -1 : 0;
        ask->at += (size_t)n;
    }
    return !ask->eof || abx_exec_end_input(r->x, &c->failed) == 0 ? 1 : -1;
}

static int running__signal(Running *r, int number)
{
    CallRun *c = r->c;

    if (abx_exec_signal(r->x, number, &c->failed) == 0)
        return 1;
    if (strcmp(c->failed.code, "E8004") != 0)
        return -1;
    /* By the backend's own calls: a command is meant with all that it started. */
    const char *pid = abx_exec_pid(r->x);
    if (!pid)
        return 0;
    return abx_process_signal(c->box, arena_fmt(&c->a, "-%s", pid).p, number, &c->failed) == 0 ? 1 : -1;
}

/* Do what can be done by now; input is taken in the order in which it came. */
static void running__serve(Running *r)
{
    bool blocked = false;

    for (RunningAsk **at = &r->first; *at;) {
        RunningAsk *ask = *at;
        if (blocked && !ask->number) {
            at = &ask->next;
            continue;
        }
        int done = ask->number ? running__signal(r, ask->number) : running__feed(r, ask);
        blocked = blocked || (!ask->number && done == 0);
        if (done == 0) {
            at = &ask->next;
            continue;
        }
        running__reply(r, str_from(ask->id), done > 0);
        running__drop(r, at);
    }
}

static void running__keep(Running *r, Str bytes, bool eof, int number)
{
    RunningAsk  *ask = mem_new(sizeof *ask);
    RunningAsk **end = &r->first;

    *ask = (RunningAsk){.id = mem_str(r->c->call->id), .bytes = mem_str(bytes), .n = bytes.n, .eof = eof, .number = number};
    r->asked += bytes.n;
    while (*end)
        end = &(*end)->next;
    *end = ask;
}

static bool running__size(CallRun *c, int64_t *cols, int64_t *rows)
{
    if (!call_number(c, "cols", false, cols) || !call_number(c, "rows", false, rows))
        return false;
    return (*cols >= 1 && *cols <= UINT16_MAX && *rows >= 1 && *rows <= UINT16_MAX) ||
           call_refuse(c, WIRE_CONFIG, "a terminal has 1 to %d columns and rows", UINT16_MAX);
}

/* False: refused, or failed. *later: it will be answered when it is done. */
static bool running__asked(Running *r, bool *later)
{
    CallRun    *c = r->c;
    Str         method = c->call->method, bytes = {0};
    const Json *data = call_param(c, "data");
    int64_t     number = SIGTERM, cols = 0, rows = 0;

    *later = false;
    if (str_eq(method, STR("pty.resize")))
        return running__size(c, &cols, &rows) && abx_exec_resize(r->x, (int)cols, (int)rows, &c->failed) == 0;
    if (str_eq(method, STR("pty.close")))
        return abx_exec_kill(r->x, &c->failed) == 0;
    if (str_eq(method, STR("process.signal"))) {
        if (!call_number(c, "signal", false, &number))
            return false;
        if (number < 1 || number > 64)
            return call_refuse(c, WIRE_CONFIG, "%lld is no signal: 1 to 64 are", (long long)number);
        running__keep(r, (Str){0}, false, (int)number);
    } else {
        bool eof = json_bool(call_param(c, "eof"), false);
        bool text = str_eq(method, STR("process.stdin"));
        if (text && (data ? data->type != JSON_STRING : !eof))
            return call_refuse(c, WIRE_PARAMS, "params.data must be a string");
        if (!text && !call_bytes(c, "data_b64", &bytes))
            return false;
        if (text)
            bytes = json_str(data);
        if (r->closed)
            return call_refuse(c, WIRE_FAILED, "the end of its standard input was said already");
        if (bytes.n > LIMIT_SERVE_REQUEST - r->asked)
            return call_refuse(c, WIRE_FAILED, "too much waits to be read by this command already");
        r->closed = text && eof && r->input == RUNNING_FED;
        running__keep(r, bytes, text && eof, 0);
    }
    return *later = true;
}

/* The host does not wait for it any more. */
static void running__cancel(Running *r, Str id)
{
    for (RunningAsk **at = &r->first; *at; at = &(*at)->next)
        if (str_eq(str_from((*at)->id), id)) {
            call_refuse(r->c, WIRE_FAILED, "cancelled: %zu of %zu bytes were taken", (*at)->at, (*at)->n);
            running__reply(r, id, false);
            running__drop(r, at);
            return;
        }
}

static void running__line_in(Running *r, Str line)
{
    CallRun    *c = r->c;
    const Call *outer = c->call;
    Arena       kept = c->a;
    const Json *doc;
    bool        later;
    ABX_UNSET Err none;

    /* The id comes first, as JSON text, and then the request as the host sent it. */
    Str id = line;
    id.n = str_find(line, '\t');
    str_skip(&line, id.n + 1);
    if (!line.n) {
        running__cancel(r, id);
    } else if (json_parse(line, &c->a, &doc, &none)) {
        Call call = {.method = json_str(json_get(doc, "method")), .id = id, .params = json_get(doc, "params")};
        c->call = &call;
        bool ok = running__asked(r, &later);
        c->call = outer;
        if (!later)
            running__reply(r, id, ok);
    }
    c->a = kept;
}

/* The server never waits for us: what it has to say is always read. */
static void running__hear(Running *r)
{
    ABX_UNSET char block[LIMIT_COPY_BLOCK];
    WireLine line;
    ssize_t  n = read(r->asks, block, sizeof block);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    Str in = {block, n > 0 ? (size_t)n : 0};
    while (wire_next(&r->reader, &in, &line) == STEP_DONE)
        running__line_in(r, line.text);
    if (n <= 0)
        r->asks = -1;
}

/* ---- its life ---- */

/* The server is gone. */
static bool running__abandoned(const CallRun *c)
{
    char    byte;
    ssize_t n = read(c->cancel_fd, &byte, 1);

    return n == 0;
}

static bool running__room(const Running *r)
{
    return r->c->lines.n < (r->carried ? RUNNING_MOST : RUNNING_UNSENT);
}

static bool running__wait(Running *r)
{
    CallRun      *c = r->c;
    abx_want      w = abx_exec_want(r->x);
    bool          room = running__room(r);
    struct pollfd fds[4 + 1] = {
        {.fd = c->lines.n ? c->out : -1, .events = POLLOUT}, {.fd = r->asks, .events = POLLIN},
        {.fd = c->cancel_fd, .events = POLLIN}, {.fd = room ? w.fd : -1, .events = w.events},
    };
    Deadline d = !room ? DEADLINE_NONE : w.fd < 0 ? clock_after(0) : w.wait_ms < 0 ? DEADLINE_NONE : clock_after(w.wait_ms);
    ABX_UNSET Err none;

    if (!poll_wait(fds, 4, -1, d, &none) && none.kind != ERR_TIMEOUT)
        return false;
    if (fds[1].revents)
        running__hear(r);
    return !fds[2].revents || !running__abandoned(c);
}

/* What it has said by now. 0: all of that, or as much as the server takes. */
static int running__next(Running *r, abx_event *e)
{
    CallRun *c = r->c;
    int      step = 0;

    while (running__room(r)) {
        step = abx_exec_next(r->x, 0, e, &c->failed);
        if (step != 1 || e->kind == ABX_EXIT)
            break;
        running__heard(r, e);
        step = 0;
        if (c->lines.n >= RUNNING_UNSENT)
            call_flush(c);
        bool full = c->lines.n >= RUNNING_UNSENT;
        if (r->carried && full != r->held_back)
            abx_exec_hold(r->x, r->held_back = full);
    }
    if (!r->told && abx_exec_pid(r->x)) {
        r->told = true;
        buf_addf(&c->lines, "!pid %s\n", abx_exec_pid(r->x));
    }
    return step;
}

/* The host is gone. What it fed, and terminals, end with it; other commands go
 * on, as they would under any other host. */
static void running__leave(Running *r)
{
    ABX_UNSET abx_error none;

    abx_ignore_cancel(r->c->session);
    if (r->pty || r->input != RUNNING_NONE)
        abx_exec_kill(r->x, &none);
}

static void running__follow(Running *r, abx_event *e, int step)
{
    CallRun *c = r->c;

    fcntl(c->out, F_SETFL, O_NONBLOCK);
    while (step == 0) {
        step = running__next(r, e);
        if (step == 0)
            running__serve(r);          /* into the room that came just now, before there is a wait */
        call_flush(c);
        if (r->held_back && c->lines.n < RUNNING_UNSENT)
            abx_exec_hold(r->x, r->held_back = false);
        if (step < 0 && c->failed.kind == ABX_CANCELLED)
            step = 0;
        if (step == 0 && !running__wait(r)) {
            running__leave(r);
            return;
        }
    }
    while (r->first) {
        call_refuse(c, WIRE_NOT_FOUND, "the command has ended");
        running__reply(r, str_from(r->first->id), false);
        running__drop(r, &r->first);
    }
    if (step == 1)
        c->failed.message[0] = '\0';    /* of something asked, if anything */
    running__over(r, step == 1 || running__no_program(c, e) ? e : NULL);
    call_send(c);
}

static void running__say_started(Running *r)
{
    CallRun *c = r->c;
    WireOut  w = wire_answer(&c->lines, c->call->id);

    json_begin(&w.json, '{');
    call_member(&w.json, "process_id", c->call->process_id);
    if (r->input != RUNNING_NONE && !r->pty) {
        json_key(&w.json, "stdin");
        json_put_bool(&w.json, true);
    }
    json_end(&w.json, '}');
    if (!call_answered(c, &w))
        BUG("a process id that fits no line");
    call_send(c);
}

/* It was started: say so, and stay with it to its end. The agent tells whether
 * it runs, and why it does not; the backend's own calls do not. */
static bool running__begin(Running *r)
{
    CallRun  *c = r->c;
    abx_event e = {0};
    int       step = 0;

    r->carried = abx_exec_hold(r->x, 0) != 0;
    if (r->carried && (step = abx_exec_next(r->x, 1, &e, &c->failed)) != 1 && !running__no_program(c, &e)) {
        abx_exec_free(r->x);
        return false;
    }
    running__say_started(r);
    r->asks = c->call->asks;
    r->reader = wire_reader(LIMIT_SERVE_REQUEST + LIMIT_SERVE_BEGIN);
    r->held[0] = buf_make(LIMIT_EVENT + 8);
    r->held[1] = buf_make(LIMIT_EVENT + 8);
    if (step == 1) {
        running__heard(r, &e);
        step = e.kind == ABX_EXIT;
    }
    running__follow(r, &e, step);
    while (r->first)
        running__drop(r, &r->first);
    wire_free(&r->reader);
    buf_free(&r->held[0]);
    buf_free(&r->held[1]);
    abx_exec_free(r->x);
    return true;
}

bool running_start(CallRun *c)
{
    abx_exec_options o = {.tell_pid = 1, .tell_start = 1};
    Running          r = {.c = c};
    const Json      *fed = call_param(c, "stdin");

    if (!running__options(c, &o))
        return false;
    o.input = json_bool(fed, false);
    if (!o.input)       /* it goes on without its host, as it would under any other */
        o.hold_s = o.timeout_ms > 0 ? o.timeout_ms / 1000 : RUNNING_HOLD_S;
    r.input = o.input ? RUNNING_FED : RUNNING_NONE;
    r.x = running__exec(c, &o);
    /* Without the agent there is still a way in for text, one request a piece. */
    if (!r.x && o.input && strcmp(c->failed.code, "E8004") == 0) {
        o.input = 0;
        o.open_stdin = 1;
        r.input = RUNNING_OPENED;
        c->refused = false;
        r.x = running__exec(c, &o);
    }
    return r.x && running__begin(&r);
}

/* The shell of a terminal for which no command was named. */
static const char *const running__shell[] = {SHELL_INTERACTIVE};

static bool running__names_term(const abx_exec_options *o)
{
    for (size_t i = 0; i < o->env_count; i++)
        if (strcmp(o->env[i].key, "TERM") == 0)
            return true;
    return false;
}

bool running_open(CallRun *c)
{
    abx_exec_options o = {.argv = running__shell, .argc = 1, .tty = 1, .tell_pid = 1, .tell_start = 1};
    Running          r = {.c = c, .input = RUNNING_FED, .pty = true};
    int64_t          cols = 80, rows = 24;

    if (!running__size(c, &cols, &rows) || (call_param(c, "cmd") && !running__words(c, &o)) || !running__place(c, &o))
        return false;
    o.cols = (int)cols;
    o.rows = (int)rows;
    if (!running__names_term(&o)) {
        abx_pair *env = arena_array(&c->a, o.env_count + 1, sizeof *env);
        for (size_t i = 0; i < o.env_count; i++)
            env[i] = o.env[i];
        env[o.env_count++] = (abx_pair){"TERM", "xterm-256color"};
        o.env = env;
    }
    r.x = running__exec(c, &o);
    return r.x && running__begin(&r);
}
