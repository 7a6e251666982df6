#include "provider/execd_command.h"

#include "base/base64.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "data/clean.h"
#include "net/events.h"
#include "os/poll.h"

#include <signal.h>
#include <stdio.h>

enum {
    EXECD_COMMAND_ARENA = 4 << 20,      /* reserved: events of everyday size, or a short answer with its tree */
    EXECD_COMMAND_SAID = 8192,          /* what is kept of a complaint */
    EXECD_COMMAND_GRACE_MS = 5000,      /* how much later than its timeout a command's end may be reported */
};

typedef struct ExecdCommand {
    ExecCall  base;
    Execd     daemon;
    Arena     own;              /* the address and headers, for the interrupt */
    Arena     event;            /* the event being looked at */
    Exchange *in;
    Events    events;
    char      block[LIMIT_COPY_BLOCK];
    Str       rest;             /* of block: bytes not yet looked at */
    const Json *held;           /* an event that was read but belongs behind what is given now */
    Buf       out;              /* bytes of the event given last */
    bool      over;             /* the answer's body has ended */
    bool      ended;            /* the result was given */
    char      id[65];           /* the daemon's name for the command; "" until its init event */
    char      pid[12];          /* its number in the sandbox; "": not known */
    bool      pid_due;          /* the first line of stderr will be it */
    int64_t   started;          /* monotonic */
    Deadline  silent;           /* when nothing at all has come by then, the stream is dead */
    Deadline  overdue;          /* the command should have been ended by its timeout before */
    int64_t   timeout_ms;
} ExecdCommand;

static ExecdCommand *execd_command__of(ExecCall *x)
{
    return (ExecdCommand *)x;
}

static void execd_command__close(ExecCall *x)
{
    ExecdCommand *c = execd_command__of(x);

    client_close(c->in);
    events_free(&c->events);
    buf_free(&c->out);
    arena_free(&c->event);
    arena_free(&c->own);
    mem_free(c);
}

/* The stock daemon tells a signal in the words of its language's library. */
static const struct { const char *words; int number; } execd_command__signals[] = {
    {"hangup", SIGHUP}, {"interrupt", SIGINT}, {"quit", SIGQUIT}, {"illegal instruction", SIGILL},
    {"trace/breakpoint trap", SIGTRAP}, {"aborted", SIGABRT}, {"bus error", SIGBUS},
    {"floating point exception", SIGFPE}, {"killed", SIGKILL}, {"user defined signal 1", SIGUSR1},
    {"segmentation fault", SIGSEGV}, {"user defined signal 2", SIGUSR2}, {"broken pipe", SIGPIPE},
    {"alarm clock", SIGALRM}, {"terminated", SIGTERM}, {"CPU time limit exceeded", SIGXCPU},
    {"file size limit exceeded", SIGXFSZ}, {"bad system call", SIGSYS},
};

/* The number of the signal, -1 when it is not told. Ours tells the number. */
static int execd_command__signal(const Json *event, Str trace)
{
    int64_t number = json_int(json_get(event, "signal"), 0);

    if (number >= 1 && number <= 64)
        return (int)number;
    if (!str_starts(trace, STR("signal: ")))
        return -1;
    str_skip(&trace, 8);
    for (size_t i = 0; i < COUNT_OF(execd_command__signals); i++)
        if (str_starts(trace, str_from(execd_command__signals[i].words)))
            return execd_command__signals[i].number;
    return -1;
}

/* The final event of a command that did not end with 0. */
static Step execd_command__failed(ExecdCommand *c, const Json *event, ExecEvent *ev, Err *err)
{
    const Json *error = json_get(event, "error");
    Str     name = json_str(json_get(error, "ename")), value = json_str(json_get(error, "evalue"));
    int64_t code;

    if (!num_i64(value, &code)) {
        err_set(err, ERR_REMOTE, E3000, "the sandbox could not run the command: %s",
                clean_message(value.n ? value : name, NULL, 0, &c->event).p);
        return STEP_ERR;
    }
    if (code < -1 || code == 0 || code > 255) {
        err_set(err, ERR_REMOTE, E3000, "the sandbox tells of a failed command with status %lld: the result is unknown",
                (long long)code);
        return STEP_ERR;
    }
    ev->kind = EXEC_EXIT;
    ev->exit_code = (int)code;
    ev->duration_ms = clock_mono_ms() - c->started;
    if (code == -1) {
        ev->signal = execd_command__signal(event, json_str(json_at(json_get(error, "traceback"), 0)));
        /* The stock daemon does not say why it was killed: the time tells. */
        ev->timed_out = json_bool(json_get(event, "timed_out"), c->timeout_ms > 0 && ev->duration_ms >= c->timeout_ms &&
                                                                    ev->signal == SIGKILL);
    }
    c->ended = true;
    return STEP_DONE;
}

/* The command's own number, which its line prints before anything else. */
static void execd_command__take_pid(ExecdCommand *c, size_t from)
{
    Str      text = {c->out.p + from, c->out.n - from};
    size_t   n = str_find(text, '\n');
    uint64_t number;

    c->pid_due = false;
    if (n == text.n || n >= sizeof c->pid || !num_u64((Str){text.p, n}, &number))
        return;
    memcpy(c->pid, text.p, n);
    memmove(c->out.p + from, c->out.p + from + n + 1, text.n - n - 1);
    c->out.n -= n + 1;
}

/* Add the bytes of an output event to c->out. The daemon sends lines without
 * their ends, an empty line as "\n"; ours adds `b64`, the bytes themselves,
 * where these rules would not give them back. */
static bool execd_command__add_output(ExecdCommand *c, const Json *event, Err *err)
{
    Str text = json_str(json_get(event, "text")), b64 = json_str(json_get(event, "b64")), bytes;

    if (b64.n) {
        if (!base64_decode(&c->event, b64, &bytes))
            return err_set(err, ERR_INPUT, E8020, "an output event's bytes are not base64");
        buf_add(&c->out, bytes);
    } else {
        buf_add(&c->out, text);
        if (!str_eq(text, STR("\n")))
            buf_addc(&c->out, '\n');
    }
    if (c->out.over)
        return err_set(err, ERR_LIMIT, E5000, "one line of output is longer than %zu bytes", c->out.limit);
    return true;
}

/* Look at one event. STEP_DONE: *ev is to be given. STEP_MORE: nothing to give
 * for it, or it is output that was gathered and more of its kind may follow. */
static Step execd_command__event(ExecdCommand *c, const Json *event, ExecEvent *ev, Err *err)
{
    Str           type = json_str(json_get(event, "type"));
    bool          is_err = str_eq(type, STR("stderr"));
    ExecEventKind kind = is_err ? EXEC_ERR : EXEC_OUT;

    if (is_err || str_eq(type, STR("stdout"))) {
        if (c->out.n && ev->kind != kind) {
            c->held = event;
            return STEP_DONE;
        }
        ev->kind = kind;
        size_t from = c->out.n;
        if (!execd_command__add_output(c, event, err))
            return STEP_ERR;
        if (is_err && c->pid_due)
            execd_command__take_pid(c, from);
        return c->out.n >= LIMIT_COPY_BLOCK ? STEP_DONE : STEP_MORE;
    }
    bool done = str_eq(type, STR("execution_complete")), failed = str_eq(type, STR("error"));
    if ((done || failed) && c->out.n) {
        c->held = event;
        return STEP_DONE;
    }
    if (failed)
        return execd_command__failed(c, event, ev, err);
    if (done) {
        *ev = (ExecEvent){.kind = EXEC_EXIT, .duration_ms = clock_mono_ms() - c->started};
        c->ended = true;
        return STEP_DONE;
    }
    if (str_eq(type, STR("init"))) {
        Str id = json_str(json_get(event, "text"));
        if (id.n < sizeof c->id && !str_has_control(id))
            memcpy(c->id, id.p, id.n);
    } else if (type.n == 0 && json_get(event, "code")) {
        err_set(err, ERR_REMOTE, E3000, "the sandbox's daemon gave up on the command: %s",
                clean_message(json_str(json_get(event, "message")), NULL, 0, &c->event).p);
        return STEP_ERR;
    }
    return STEP_MORE;       /* ping, and what newer daemons may add */
}

/* The event before is done with; make room for one of n bytes. A tree takes at
 * most 24 bytes for each byte of its text, and base64 less than one more. */
static void execd_command__make_room(ExecdCommand *c, size_t n)
{
    size_t want = n < ARENA_COMMAND / 32 ? n * 26 + 4096 : ARENA_COMMAND;

    if (c->event.size < want) {
        arena_free(&c->event);
        c->event = arena_make(want);
    }
    arena_reset(&c->event);
}

/* Go through what has arrived, until there is something to give. */
static Step execd_command__look(ExecdCommand *c, ExecEvent *ev, Err *err)
{
    const Json *event = c->held;
    Str         text;
    Step        step;

    for (c->held = NULL;; event = NULL) {
        if (!event) {
            step = events_next(&c->events, &c->rest, &text, err);
            if (step == STEP_MORE && c->over)
                step = events_end(&c->events, &text);
            if (step != STEP_DONE)
                break;
            execd_command__make_room(c, text.n);
            if (!json_parse(text, &c->event, &event, err)) {
                err->code = E8020;
                err_wrap(err, "the command's event stream");
                return STEP_ERR;
            }
        }
        step = execd_command__event(c, event, ev, err);
        if (step != STEP_MORE)
            return step;
    }
    return step == STEP_MORE && c->out.n ? STEP_DONE : step;
}

/* The stream is over and there was no final event. What the daemon knows of
 * the command's end is worth saying, but is no result: output may be missing. */
static Step execd_command__unknown(ExecdCommand *c, const char *how, Err *err)
{
    Arena      a = arena_make(EXECD_COMMAND_ARENA);
    ABX_UNSET ExecdReply reply;
    ABX_UNSET Err none;
    ABX_UNSET char path[100];
    char       known[64] = "";

    snprintf(path, sizeof path, "/command/status/%s", url_encode(str_from(c->id), &a).p);
    ExecdCall call = {.method = "GET", .path = path, .idempotent = true, .what = "ask for the command's state",
                      .code = E3000, .most = LIMIT_ERROR_BODY, .deadline = clock_after(LIMIT_CLEANUP_MS)};
    if (c->id[0] && execd_ask(&c->daemon, &call, &a, &reply, &none)) {
        if (json_bool(json_get(reply.json, "running"), false))
            snprintf(known, sizeof known, " (it is still running there)");
        else if (json_get(reply.json, "exit_code"))
            snprintf(known, sizeof known, " (it ended with status %lld there)",
                     (long long)json_int(json_get(reply.json, "exit_code"), -1));
    }
    arena_free(&a);
    err_set(err, ERR_CLOSED, E5000, "%s: the command's result is unknown%s, and output may be missing", how, known);
    c->ended = true;
    return STEP_ERR;
}

static bool execd_command__kill(ExecCall *x, Deadline d, Err *err)
{
    ExecdCommand *c = execd_command__of(x);
    Arena      a = arena_make(EXECD_COMMAND_ARENA);
    ABX_UNSET ExecdReply reply;
    ExecdCall call = {.method = "DELETE",
                      .path = "/command",
                      .query = arena_fmt(&a, "id=%s", url_encode(str_from(c->id), &a).p),
                      .idempotent = true,
                      .what = "stop the command",
                      .code = E3000,
                      .most = LIMIT_ERROR_BODY,
                      .deadline = d};
    bool       ok = c->id[0] != 0;

    if (!ok)
        err_set(err, ERR_REMOTE, E3000, "cannot stop the command: the daemon has not named it yet");
    else
        ok = execd_ask(&c->daemon, &call, &a, &reply, err);
    arena_free(&a);
    return ok;
}

static Step execd_command__next(ExecCall *x, ExecEvent *ev, Err *err)
{
    ExecdCommand *c = execd_command__of(x);

    if (c->ended)
        BUG("a command that has ended was asked again");
    *ev = (ExecEvent){0};
    buf_clear(&c->out);
    for (;;) {
        Step   step = execd_command__look(c, ev, err);
        size_t n;

        if (step == STEP_DONE) {
            if (ev->kind != EXEC_EXIT)
                ev->bytes = buf_str(&c->out);
            return STEP_DONE;
        }
        if (step == STEP_MORE && c->over)
            step = STEP_DONE, n = 0;
        else if (step == STEP_MORE)
            step = client_try(c->in, c->block, sizeof c->block, &n, err);
        if (step == STEP_ERR) {
            c->ended = true;
            return err->kind == ERR_CLOSED ? execd_command__unknown(c, "the connection to the sandbox was lost", err)
                                           : STEP_ERR;
        }
        if (step == STEP_DONE && n == 0) {
            if (c->over)
                return execd_command__unknown(c, "the stream ended early", err);
            c->over = true;     /* a last event without a line end may be there */
            continue;
        }
        if (step == STEP_DONE) {
            c->rest = (Str){c->block, n};
            c->silent = clock_after(LIMIT_SILENCE_MS);
            continue;
        }
        if (clock_passed(c->silent))
            return execd_command__unknown(c, "the sandbox has fallen silent", err);
        if (clock_passed(c->overdue)) {
            ABX_UNSET Err none;
            (void)execd_command__kill(x, clock_after(LIMIT_CLEANUP_MS), &none);
            c->ended = true;
            err_set(err, ERR_TIMEOUT, E3001, "the command ran past its timeout, and its end was not reported");
            return STEP_ERR;
        }
        return STEP_MORE;
    }
}

static Str execd_command__pid(const ExecCall *x)
{
    return str_from(((const ExecdCommand *)x)->pid);
}

static StreamWant execd_command__want(const ExecCall *x)
{
    const ExecdCommand *c = (const ExecdCommand *)x;

    return c->rest.n || c->held ? (StreamWant){.fd = -1, .events = POLLIN} : client_want(c->in);
}

static Deadline execd_command__deadline(const ExecCall *x)
{
    const ExecdCommand *c = (const ExecdCommand *)x;

    return clock_sooner(c->silent, c->overdue);
}

static const ExecOps execd_command__ops = {
    .next = execd_command__next, .want = execd_command__want, .deadline = execd_command__deadline,
    .kill = execd_command__kill, .pid = execd_command__pid, .close = execd_command__close,
};

/* ---- starting ---- */

static void execd_command__request(Buf *json, Str line, const ExecRequest *rq)
{
    JsonOut w = json_out(json, JSON_COMPACT);

    json_begin(&w, '{');
    json_key(&w, "command");
    json_put_str(&w, line);
    /* Our daemon then sends bytes as they come and not line by line
     * (docs/agent.md); the stock one passes it over. */
    json_key(&w, "exact");
    json_put_bool(&w, true);
    if (rq->cwd.n) {
        json_key(&w, "cwd");
        json_put_str(&w, rq->cwd);
    }
    if (rq->timeout_ms > 0) {
        json_key(&w, "timeout");
        json_put_int(&w, rq->timeout_ms);
    }
    if (rq->env_count) {
        json_key(&w, "envs");
        json_begin(&w, '{');
        for (size_t i = 0; i < rq->env_count; i++) {
            json_key_str(&w, rq->env[i].key);
            json_put_str(&w, rq->env[i].value);
        }
        json_end(&w, '}');
    }
    json_end(&w, '}');
}

/* A call with a copy of the daemon's address, for `x` need not live as long. */
static ExecdCommand *execd_command__make(const Execd *x)
{
    ExecdCommand *c = mem_new(sizeof *c);

    c->base.ops = &execd_command__ops;
    c->own = arena_make(EXECD_COMMAND_ARENA);
    c->event = arena_make(EXECD_COMMAND_ARENA);
    c->events = events_make(LIMIT_EVENT);
    c->out = buf_make(LIMIT_EVENT);
    Header *fields = arena_array(&c->own, x->at.headers.n, sizeof *fields);
    for (size_t i = 0; i < x->at.headers.n; i++)
        fields[i] = (Header){arena_str(&c->own, x->at.headers.v[i].name), arena_str(&c->own, x->at.headers.v[i].value)};
    Url at = x->at.url;
    at.host = arena_str(&c->own, at.host);
    at.path = arena_str(&c->own, at.path);
    at.query = (Str){0};
    c->daemon = (Execd){.server = x->server, .id = arena_str(&c->own, x->id), .at = {at, {fields, x->at.headers.n}}};
    return c;
}

bool execd_command_start(Execd *x, Str line, const ExecRequest *rq, ExecCall **out, Deadline d, Err *err)
{
    /* execve(2) takes no single argument over 128 KiB, and the line is one. */
    if (line.n >= 131072)
        return err_set(err, ERR_LIMIT, E8002, "the command is %zu bytes long; the sandbox's shell takes 131071",
                       line.n);

    Buf json = buf_make(LIMIT_ANSWER);
    execd_command__request(&json, line, rq);
    ExecdCommand *c = execd_command__make(x);
    Str           body = buf_str(&json);
    Source        source = flow_from_str(&body);
    ExecdCall     call = {.method = "POST", .path = "/command", .body = &source, .type = STR("application/json"),
                          .what = "run the command", .code = E3000, .deadline = d};
    bool          ok = !json.over;
    if (!ok)
        err_set(err, ERR_LIMIT, E8002, "the command with its environment is larger than %zu bytes", json.limit);
    /* From before it is sent: seen from here the daemon's own clock starts later,
     * so what its timeout ended has lasted that long here, too. */
    c->started = clock_mono_ms();
    ok = ok && execd_open(x, &call, &c->own, &c->in, err);
    buf_free(&json);
    if (!ok) {
        if (body.n == 0 && err->status == 0 && err->kind != ERR_UNSENT)
            err_hint(err, "The command may have been started all the same.");
        execd_command__close(&c->base);
        return false;
    }
    c->silent = clock_after(LIMIT_SILENCE_MS);
    c->timeout_ms = rq->timeout_ms;
    c->pid_due = rq->tell_pid;
    c->overdue = rq->timeout_ms > 0 && rq->timeout_ms < INT64_MAX - EXECD_COMMAND_GRACE_MS
                     ? clock_after(rq->timeout_ms + EXECD_COMMAND_GRACE_MS) : DEADLINE_NONE;
    *out = &c->base;
    return true;
}

/* ---- one of ours, to its end ---- */

/* Read the command's output to its end. */
static bool execd_command__gather(Execd *x, ExecCall *c, ExecEvent *ev, Buf texts[2], Deadline d, Err *err)
{
    for (;;) {
        Step step = c->ops->next(c, ev, err);
        if (step == STEP_MORE) {
            StreamWant w = c->ops->want(c);
            Deadline   until = clock_sooner(d, c->ops->deadline(c));
            if (w.fd < 0 || poll_one(w.fd, w.events, x->server->host->cancel_fd, until, err))
                continue;
            if (err->kind == ERR_TIMEOUT && !clock_passed(d))
                continue;       /* the silence is `next`'s to judge */
            return false;
        }
        if (step == STEP_ERR)
            return false;
        if (ev->kind == EXEC_EXIT)
            return true;
        buf_add(&texts[ev->kind], ev->bytes);
    }
}

bool execd_command_run(Execd *x, ExecdRun *run, Arena *a, Deadline d, Err *err)
{
    ExecRequest rq = {.timeout_ms = run->timeout_ms};
    ExecEvent   ev;
    ExecCall   *c;

    if (!execd_command_start(x, run->line, &rq, &c, clock_sooner(d, clock_after(x->server->call_ms)), err))
        return false;
    Buf  texts[2] = {buf_make(LIMIT_ANSWER), buf_make(EXECD_COMMAND_SAID)};    /* EXEC_OUT, EXEC_ERR */
    bool ok = execd_command__gather(x, c, &ev, texts, d, err);
    if (ok && texts[EXEC_OUT].over)
        ok = err_set(err, ERR_LIMIT, E5000, "the sandbox answers with more than %zu bytes", texts[EXEC_OUT].limit);
    if (ok) {
        run->exit_code = ev.exit_code;
        run->timed_out = ev.timed_out;
        run->out = arena_str(a, buf_str(&texts[EXEC_OUT]));
        run->said = clean_message(str_trim(buf_str(&texts[EXEC_ERR])), NULL, 0, a);
    }
    buf_free(&texts[EXEC_OUT]);
    buf_free(&texts[EXEC_ERR]);
    c->ops->close(c);
    return ok;
}
