#include "provider/epp_exec.h"

#include <poll.h>
#include <signal.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "provider/epp_pty.h"
#include "provider/epp_record.h"

enum { EPP_EXEC_TERM_MS = 2000 };       /* from SIGTERM to SIGKILL */

/* What an ExecCall of this backend is. */
typedef struct EppExec {
    ExecCall   base;
    Epp       *plugin;
    char      *sandbox;
    EppStream *stream;          /* exec.start; */
    bool       running;         /* or exec.run, whose answer */
    EppWait    wait;            /* is outstanding, */
    Buf        parts[2];        /* or is here: stdout, stderr, */
    int        given;           /* so many of which were given out, */
    ExecEvent  end;             /* and the end */
    unsigned   era;             /* of the plugin's processes: another one knows nothing of it */
    bool       process_is_number;
    bool       fed;             /* process.stdin takes its process_id */
    char      *process;         /* exec.start: its process_id */
    Buf        bytes;           /* of the last event */
    int64_t    started;
    Deadline   overdue;
    bool       over;            /* the last event, or a failure, was given */
} EppExec;

static EppExec *epp_exec__of(ExecCall *x)
{
    return (EppExec *)x;
}

bool epp_exec_fed(const ExecCall *x)
{
    return ((const EppExec *)x)->fed;
}

void epp_exec_put_id(const ExecCall *call, JsonOut *w)
{
    const EppExec *x = (const EppExec *)call;
    Json           id = {.type = x->process_is_number ? JSON_REAL : JSON_STRING, .text = str_from(x->process)};

    json_put(w, &id);
}

bool epp_exec_lives(const ExecCall *call)
{
    const EppExec *x = (const EppExec *)call;

    return x->era == x->plugin->era && !x->plugin->calls.link.failed;
}

/* ---- stopping it ---- */

static bool epp_exec__signal(EppExec *x, int number, Deadline d, Err *err)
{
    JsonOut    *w = epp_plugin_begin(x->plugin, "process.signal", str_from(x->sandbox));
    const Json *result;

    json_key(w, "pid");
    epp_exec_put_id(&x->base, w);
    json_key(w, "signal");
    json_put_int(w, number);
    return epp_plugin_call(x->plugin, d, &result, err);
}

static bool epp_exec__kill(ExecCall *call, Deadline d, Err *err)
{
    EppExec *x = epp_exec__of(call);

    if (x->running && x->era == x->plugin->era) {
        epp_call_forget(&x->plugin->calls, &x->wait, true);
        x->running = false;
        x->over = true;
        return true;
    }
    if (x->era != x->plugin->era)
        return err_set(err, ERR_CLOSED, E8021, "the plugin that ran the command was ended");
    if (!x->stream || x->stream->exited)
        return true;
    if (!epp_plugin_has(x->plugin, "process.manage")) {
        err_set(err, ERR_REMOTE, E8004, "provider %.*s cannot stop a command: it does not declare process.manage",
                STR_ARG(x->plugin->spec.id));
        return false;
    }
    return epp_exec__signal(x, SIGTERM, d, err) &&
           (epp_call_await_exit(&x->plugin->calls, x->stream, clock_sooner(d, clock_after(EPP_EXEC_TERM_MS))) ||
            epp_exec__signal(x, SIGKILL, d, err));
}

/* ---- its events ---- */

static Step epp_exec__bad(EppExec *x, const char *method, const char *what, Err *err)
{
    epp_call_bad(&x->plugin->calls, method, what, err);
    return STEP_ERR;
}

static Step epp_exec__note(EppExec *x, const Json *note, ExecEvent *ev, Err *err)
{
    const Json *params = json_get(note, "params"), *data = json_get(params, "data");
    Str         method = json_str(json_get(note, "method"));
    const char *what;

    if (str_eq(method, STR("exec.exit"))) {
        if (!epp_record_exit(json_get(params, "exit_code"), ev, &what))
            return epp_exec__bad(x, "exec.exit", what, err);
        ev->duration_ms = clock_mono_ms() - x->started;
        x->stream->exited = true;
        return STEP_DONE;
    }
    if (!str_eq(method, STR("exec.output")))
        return STEP_MORE;
    if (!data || data->type != JSON_STRING)
        return epp_exec__bad(x, "exec.output", "data is no text", err);
    if (data->text.n == 0)
        return STEP_MORE;
    ev->kind = str_eq(json_str(json_get(params, "stream")), STR("stderr")) ? EXEC_ERR : EXEC_OUT;
    /* It lies in the arena of the message, which another call may use. */
    buf_clear(&x->bytes);
    buf_add(&x->bytes, data->text);
    ev->bytes = buf_str(&x->bytes);
    return STEP_DONE;
}

static Step epp_exec__look_stream(EppExec *x, ExecEvent *ev, Err *err)
{
    const Json *note;
    Step        step;

    while ((step = epp_call_note(&x->plugin->calls, x->stream, &note, err)) == STEP_DONE)
        if ((step = epp_exec__note(x, note, ev, err)) != STEP_MORE)
            break;
    return step;
}

/* The answer of exec.run, as the events that it is. */
static Step epp_exec__replay(EppExec *x, ExecEvent *ev)
{
    while (x->given < 2) {
        Buf *part = &x->parts[x->given++];
        if (part->n == 0)
            continue;
        *ev = (ExecEvent){.kind = part == &x->parts[0] ? EXEC_OUT : EXEC_ERR, .bytes = buf_str(part)};
        return STEP_DONE;
    }
    *ev = x->end;
    return STEP_DONE;
}

static Step epp_exec__look_run(EppExec *x, ExecEvent *ev, Err *err)
{
    static const char *const keys[] = {"stdout", "stderr"};
    EppCalls   *c = &x->plugin->calls;
    const Json *result;
    const char *what;

    if (!x->running)
        return epp_exec__replay(x, ev);
    Step step = epp_call_poll(c, &x->wait, &result, err);
    if (step == STEP_MORE)
        return step;
    epp_call_forget(c, &x->wait, false);
    x->running = false;
    if (step == STEP_ERR)
        return step;
    for (int i = 0; i < 2; i++) {
        const Json *text = json_get(result, keys[i]);
        if (text && text->type != JSON_STRING && text->type != JSON_NULL)
            return epp_exec__bad(x, "exec.run", i ? "stderr is no text" : "stdout is no text", err);
        buf_add(&x->parts[i], json_str(text));
    }
    if (!epp_record_exit(json_get(result, "exit_code"), &x->end, &what))
        return epp_exec__bad(x, "exec.run", what, err);
    x->end.duration_ms = clock_mono_ms() - x->started;
    return epp_exec__replay(x, ev);
}

/* It ran past its timeout, and its end was not reported. */
static Step epp_exec__overdue(EppExec *x, Err *err)
{
    ABX_UNSET Err none;

    if (x->running) {
        err_set(err, ERR_TIMEOUT, E8022, "the plugin of provider %.*s did not answer exec.run within the command's timeout",
                STR_ARG(x->plugin->spec.id));
        epp_link_hint(&x->plugin->calls.link, err);
    } else {
        err_set(err, ERR_TIMEOUT, E3001, "the command ran past its timeout, and its end was not reported");
    }
    (void)epp_exec__kill((ExecCall *)x, clock_after(LIMIT_CLEANUP_MS), &none);
    return STEP_ERR;
}

static Step epp_exec__look(EppExec *x, ExecEvent *ev, Err *err)
{
    return x->stream ? epp_exec__look_stream(x, ev, err) : epp_exec__look_run(x, ev, err);
}

static Step epp_exec__next(ExecCall *call, ExecEvent *ev, Err *err)
{
    EppExec *x = epp_exec__of(call);
    Step     step;
    ABX_UNSET Err none;

    if (x->over)
        BUG("a command that has ended was asked again");
    *ev = (ExecEvent){0};
    if (x->era != x->plugin->era) {
        err_set(err, ERR_CLOSED, E8021, "the plugin that ran the command was ended: its result is unknown");
        x->over = true;
        return STEP_ERR;
    }
    step = epp_exec__look(x, ev, err);
    /* What can be read now is read once, so that the caller comes to wait,
     * where Ctrl-C is seen, however much there is. */
    if (step == STEP_MORE && !epp_link_turn(&x->plugin->calls.link, -1, 0, &none))
        step = epp_exec__look(x, ev, err);
    if (step == STEP_MORE && clock_passed(x->overdue))
        step = epp_exec__overdue(x, err);
    x->over = step == STEP_ERR || (step == STEP_DONE && ev->kind == EXEC_EXIT);
    return step;
}

static StreamWant epp_exec__want(const ExecCall *call)
{
    const EppExec *x = (const EppExec *)call;
    const EppLink *l = &x->plugin->calls.link;

    /* One that has ended still has things to say, and nothing to wait for. */
    bool over = x->era != x->plugin->era || l->failed || l->gone;
    return (StreamWant){over ? -1 : l->ready, POLLIN};
}

static Deadline epp_exec__deadline(const ExecCall *call)
{
    const EppExec *x = (const EppExec *)call;

    return clock_sooner(x->overdue, epp_link_deadline(&x->plugin->calls.link));
}

static Str epp_exec__pid(const ExecCall *call)
{
    return str_from(((const EppExec *)call)->process);
}

static void epp_exec__close(ExecCall *call)
{
    EppExec *x = epp_exec__of(call);

    if (!x)
        return;
    bool same = x->era == x->plugin->era;
    if (x->running && same)
        epp_call_forget(&x->plugin->calls, &x->wait, true);
    if (x->stream && same)
        epp_call_leave(&x->plugin->calls, x->stream);
    buf_free(&x->parts[0]);
    buf_free(&x->parts[1]);
    buf_free(&x->bytes);
    mem_free(x->sandbox);
    mem_free(x->process);
    mem_free(x);
}

static const ExecOps epp_exec__ops = {
    .next = epp_exec__next, .want = epp_exec__want, .deadline = epp_exec__deadline, .kill = epp_exec__kill,
    .pid = epp_exec__pid, .close = epp_exec__close,
};

/* ---- starting ---- */

static bool epp_exec__sayable(const ExecRequest *rq, Err *err)
{
    for (size_t i = 0; i < rq->argc; i++)
        if (!epp_plugin_utf8(rq->argv[i], "a word of the command", err))
            return false;
    for (size_t i = 0; i < rq->env_count; i++)
        if (!epp_plugin_utf8(rq->env[i].key, "a variable's name", err) ||
            !epp_plugin_utf8(rq->env[i].value, "a variable's value", err))
            return false;
    return epp_plugin_utf8(rq->cwd, "the working directory", err);
}

/* One word is a shell line, several arrive as they are. */
static void epp_exec__words(JsonOut *w, const ExecRequest *rq)
{
    bool line = rq->argc == 1;
    /* The shell takes a line that begins like an option for one. */
    bool option = line && rq->argv[0].n && (rq->argv[0].p[0] == '-' || rq->argv[0].p[0] == '+');

    json_key(w, "cmd");
    json_put_str(w, line ? STR("sh") : rq->argv[0]);
    json_key(w, "args");
    json_begin(w, '[');
    if (line)
        json_put_str(w, STR("-c"));
    if (option) {
        Buf b = buf_make(rq->argv[0].n + 1);
        buf_addc(&b, ' ');
        buf_add(&b, rq->argv[0]);
        json_put_str(w, buf_str(&b));
        buf_free(&b);
    }
    for (size_t i = line && !option ? 0 : 1; i < rq->argc; i++)
        json_put_str(w, rq->argv[i]);
    json_end(w, ']');
}

static void epp_exec__request(Epp *e, const char *method, Str id, const ExecRequest *rq)
{
    JsonOut *w = epp_plugin_begin(e, method, id);

    epp_exec__words(w, rq);
    json_key(w, "env");
    json_begin(w, '{');
    for (size_t i = 0; i < rq->env_count; i++) {
        json_key_str(w, rq->env[i].key);
        json_put_str(w, rq->env[i].value);
    }
    json_end(w, '}');
    json_key(w, "cwd");
    json_put_str(w, rq->cwd);
    json_key(w, "user");
    json_put_str(w, STR(""));
    json_key(w, "timeout");
    json_put_int(w, rq->timeout_ms > 0 ? rq->timeout_ms / 1000 + (rq->timeout_ms % 1000 != 0) : LIMIT_EPP_TIMEOUT_S);
    if (rq->open_stdin) {
        json_key(w, "stdin");
        json_put_bool(w, true);
    }
}

static bool epp_exec__start(EppExec *x, Deadline d, Err *err)
{
    EppCalls   *c = &x->plugin->calls;
    const Json *result;

    if (!epp_call_end(c, d, &result, err))
        return false;
    const Json *process = json_get(result, "process_id");
    Str         key = epp_call_key(process);
    if (!key.n)
        return epp_call_bad(c, "exec.start", "process_id is neither text nor a number", err);
    x->process = mem_str(key);
    x->process_is_number = process->type != JSON_STRING;
    x->fed = json_bool(json_get(result, "stdin"), false);
    x->stream = epp_call_stream(c, key);
    return true;
}

bool epp_exec_start(Provider *p, Str id, const ExecRequest *rq, ExecCall **out, Deadline d, Err *err)
{
    Epp *e = (Epp *)p;

    /* A terminal there may be. */
    if (!rq->tty && !provider_plain(rq, err))
        return false;
    if (!epp_exec__sayable(rq, err) || !epp_plugin_attach(e, EPP_GATE_EXEC, id, d, err))
        return false;
    if (rq->tty && epp_plugin_has(e, "pty"))
        return epp_pty_start(e, id, rq, out, d, err);
    if (!provider_plain(rq, err))
        return false;
    bool     stream = epp_plugin_has(e, "exec.stream"), ok;
    EppExec *x = mem_new(sizeof *x);
    *x = (EppExec){.base = {&epp_exec__ops}, .plugin = e, .sandbox = mem_str(id), .era = e->era, .overdue = DEADLINE_NONE};
    x->parts[0] = buf_make(LIMIT_EPP_LINE);
    x->parts[1] = buf_make(LIMIT_EPP_LINE);
    x->bytes = buf_make(LIMIT_EPP_LINE);
    int64_t patience = rq->timeout_ms > 0 ? rq->timeout_ms + LIMIT_EPP_MARGIN_MS : e->spec.call_ms;
    epp_exec__request(e, stream ? "exec.start" : "exec.run", id, rq);
    x->started = clock_mono_ms();
    if (stream)
        ok = epp_exec__start(x, clock_sooner(d, clock_after(patience)), err);
    else
        ok = x->running = epp_call_send(&e->calls, &x->wait, clock_sooner(d, clock_after(patience)), err);
    if (rq->timeout_ms > 0)
        x->overdue = clock_after(patience);
    if (!ok)
        epp_exec__close((ExecCall *)x);
    else
        *out = (ExecCall *)x;
    return ok;
}
