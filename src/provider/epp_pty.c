#include "provider/epp_pty.h"

#include <poll.h>
#include <signal.h>

#include "base/base64.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/shell.h"
#include "provider/epp_record.h"

enum { EPP_PTY_PIECE = 64 << 10 };      /* of input in one request */

typedef struct EppPty {
    ExecCall   base;
    Epp       *plugin;
    char      *sandbox;
    EppStream *stream;
    unsigned   era;             /* of the plugin's processes: another one knows nothing of it */
    char      *process;         /* its process_id, */
    bool       is_number;
    EppWait    wait;            /* of the pty.write */
    bool       waiting;         /* that was not answered yet */
    Buf        bytes;           /* of the last event */
    int64_t    started;
    bool       over;
} EppPty;

static EppPty *epp_pty__of(ExecCall *x)
{
    return (EppPty *)x;
}

static bool epp_pty__lives(const EppPty *x)
{
    return x->era == x->plugin->era && !x->plugin->calls.link.failed;
}

/* ---- requests ---- */

static JsonOut *epp_pty__begin(EppPty *x, const char *method)
{
    JsonOut *w = epp_plugin_begin(x->plugin, method, str_from(x->sandbox));
    Json     id = {.type = x->is_number ? JSON_REAL : JSON_STRING, .text = str_from(x->process)};

    json_key(w, "process_id");
    json_put(w, &id);
    return w;
}

static Deadline epp_pty__patience(const EppPty *x)
{
    return clock_after(x->plugin->spec.call_ms);
}

/* Said, and the answer is not waited for. */
static bool epp_pty__say(EppPty *x, Err *err)
{
    EppWait w;

    if (!epp_call_send(&x->plugin->calls, &w, epp_pty__patience(x), err))
        return false;
    epp_call_forget(&x->plugin->calls, &w, false);
    return true;
}

static bool epp_pty__ended(EppPty *x, Err *err)
{
    if (!epp_pty__lives(x))
        return !err_set(err, ERR_CLOSED, E8021, "the plugin that has the terminal was ended");
    return false;
}

/* One request at a time: answers, and what they stand for, may change places. */
static bool epp_pty__write(ExecCall *call, Str bytes, size_t *n, Err *err)
{
    EppPty     *x = epp_pty__of(call);
    EppCalls   *c = &x->plugin->calls;
    const Json *result;

    *n = 0;
    if (epp_pty__ended(x, err))
        return false;
    if (x->waiting) {
        Step step = epp_call_poll(c, &x->wait, &result, err);
        if (step == STEP_MORE)
            return true;
        epp_call_forget(c, &x->wait, false);
        x->waiting = false;
        if (step == STEP_ERR)
            return false;
    }
    if (!bytes.n)
        return true;
    bytes.n = bytes.n < EPP_PTY_PIECE ? bytes.n : EPP_PTY_PIECE;
    Arena    a = arena_make(2 * EPP_PTY_PIECE);
    JsonOut *w = epp_pty__begin(x, "pty.write");
    json_key(w, "data_b64");
    json_put_str(w, base64_encode(&a, bytes));
    arena_free(&a);
    x->waiting = epp_call_send(c, &x->wait, epp_pty__patience(x), err);
    *n = x->waiting ? bytes.n : 0;
    return x->waiting;
}

/* A byte that the terminal makes something of. */
static bool epp_pty__type(ExecCall *call, char key, Err *err)
{
    size_t n;

    return epp_pty__write(call, (Str){&key, 1}, &n, err) &&
           (n == 1 || err_set(err, ERR_LIMIT, E8000, "the terminal has not taken what was typed before"));
}

static bool epp_pty__end_input(ExecCall *call, Err *err)
{
    return epp_pty__type(call, 4, err);
}

static bool epp_pty__kill(ExecCall *call, Deadline d, Err *err)
{
    EppPty *x = epp_pty__of(call);

    (void)d;
    if (epp_pty__ended(x, err))
        return false;
    epp_pty__begin(x, "pty.close");
    return epp_pty__say(x, err);
}

static bool epp_pty__signal(ExecCall *call, int number, Err *err)
{
    if (number == SIGINT || number == SIGQUIT)
        return epp_pty__type(call, number == SIGINT ? 3 : 28, err);
    return epp_pty__kill(call, DEADLINE_NONE, err);
}

static bool epp_pty__resize(ExecCall *call, int cols, int rows, Err *err)
{
    EppPty *x = epp_pty__of(call);

    if (epp_pty__ended(x, err))
        return false;
    JsonOut *w = epp_pty__begin(x, "pty.resize");
    json_key(w, "cols");
    json_put_int(w, cols);
    json_key(w, "rows");
    json_put_int(w, rows);
    return epp_pty__say(x, err);
}

/* ---- its events ---- */

static Step epp_pty__bad(EppPty *x, const char *method, const char *what, Err *err)
{
    epp_call_bad(&x->plugin->calls, method, what, err);
    return STEP_ERR;
}

static Step epp_pty__exit(EppPty *x, const Json *code, ExecEvent *ev, Err *err)
{
    const char *what;

    x->stream->exited = true;
    if (!code || code->type == JSON_NULL) {
        err_set(err, ERR_CLOSED, E5000, "the terminal was closed: how its command ended is unknown, for provider %.*s does not tell",
                STR_ARG(x->plugin->spec.id));
        return STEP_ERR;
    }
    if (!epp_record_exit(code, ev, &what))
        return epp_pty__bad(x, "pty.exit", what, err);
    ev->duration_ms = clock_mono_ms() - x->started;
    return STEP_DONE;
}

static Step epp_pty__note(EppPty *x, const Json *note, ExecEvent *ev, Err *err)
{
    const Json *params = json_get(note, "params");
    Str         method = json_str(json_get(note, "method")), data = json_str(json_get(params, "data_b64"));
    size_t      n;

    if (str_eq(method, STR("pty.exit")))
        return epp_pty__exit(x, json_get(params, "exit_code"), ev, err);
    if (!str_eq(method, STR("pty.output")))
        return STEP_MORE;
    buf_clear(&x->bytes);
    char *to = buf_room(&x->bytes, data.n / 4 * 3 + 1);
    if (!data.p || !to || !base64_decode_to(to, data, &n))
        return epp_pty__bad(x, "pty.output", "data_b64 is no base64", err);
    buf_grew(&x->bytes, n);
    *ev = (ExecEvent){.kind = EXEC_OUT, .bytes = buf_str(&x->bytes)};
    return n ? STEP_DONE : STEP_MORE;
}

static Step epp_pty__look(EppPty *x, ExecEvent *ev, Err *err)
{
    const Json *note;
    Step        step;

    while ((step = epp_call_note(&x->plugin->calls, x->stream, &note, err)) == STEP_DONE)
        if ((step = epp_pty__note(x, note, ev, err)) != STEP_MORE)
            break;
    return step;
}

static Step epp_pty__next(ExecCall *call, ExecEvent *ev, Err *err)
{
    EppPty *x = epp_pty__of(call);
    ABX_UNSET Err none;

    if (x->over)
        BUG("a terminal that was closed was asked again");
    *ev = (ExecEvent){.kind = EXEC_EXIT};
    Step step = epp_pty__ended(x, err) ? STEP_ERR : epp_pty__look(x, ev, err);
    if (step == STEP_MORE && !epp_link_turn(&x->plugin->calls.link, -1, 0, &none))
        step = epp_pty__look(x, ev, err);
    x->over = step == STEP_ERR || (step == STEP_DONE && ev->kind == EXEC_EXIT);
    return step;
}

static StreamWant epp_pty__want(const ExecCall *call)
{
    const EppPty  *x = (const EppPty *)call;
    const EppLink *l = &x->plugin->calls.link;

    return (StreamWant){!epp_pty__lives(x) || l->gone ? -1 : l->ready, POLLIN};
}

static Deadline epp_pty__deadline(const ExecCall *call)
{
    return epp_link_deadline(&((const EppPty *)call)->plugin->calls.link);
}

static void epp_pty__close(ExecCall *call)
{
    EppPty *x = epp_pty__of(call);
    ABX_UNSET Err none;

    if (x->era == x->plugin->era) {
        if (x->waiting)
            epp_call_forget(&x->plugin->calls, &x->wait, false);
        if (x->stream && !x->stream->exited && !x->plugin->calls.link.failed)
            (void)epp_pty__kill(call, DEADLINE_NONE, &none);
        if (x->stream)
            epp_call_leave(&x->plugin->calls, x->stream);
    }
    buf_free(&x->bytes);
    mem_free(x->sandbox);
    mem_free(x->process);
    mem_free(x);
}

static const ExecOps epp_pty__ops = {
    .next = epp_pty__next, .want = epp_pty__want, .deadline = epp_pty__deadline, .kill = epp_pty__kill,
    .close = epp_pty__close, .write = epp_pty__write, .end_input = epp_pty__end_input, .signal = epp_pty__signal,
    .resize = epp_pty__resize,
};

/* ---- starting ---- */

/* What is typed. False: E8004, it cannot be said in this way. */
static bool epp_pty__typed(const ExecRequest *rq, Buf *to, Err *err)
{
    const char *what = rq->user.n ? "a user" : rq->job ? "a name as a job" : NULL;

    buf_addc(to, ' ');      /* shells keep it out of their history then */
    if (rq->cwd.n) {
        buf_add(to, STR("cd "));
        shell_quote(to, rq->cwd);
        buf_add(to, STR(" && "));
    }
    for (size_t i = 0; i < rq->env_count; i++) {
        if (!str_eq(rq->env[i].key, STR("TERM"))) {
            what = "an environment";
            continue;
        }
        buf_add(to, STR("TERM="));
        shell_quote(to, rq->env[i].value);
        buf_addc(to, ' ');
    }
    buf_add(to, rq->argc == 1 ? STR("exec sh -c") : STR("exec"));
    for (size_t i = 0; i < rq->argc; i++) {
        buf_addc(to, ' ');
        shell_quote(to, rq->argv[i]);
        if (str_has_control(rq->argv[i]))
            what = "a command with line feeds";
    }
    buf_addc(to, '\n');
    if (to->over)
        what = "so long a command";
    return !what || err_set(err, ERR_USAGE, E8004, "a plugin's own terminal cannot be given %s", what);
}

static bool epp_pty__open(EppPty *x, const ExecRequest *rq, Deadline d, Err *err)
{
    EppCalls   *c = &x->plugin->calls;
    JsonOut    *w = epp_plugin_begin(x->plugin, "pty.open", str_from(x->sandbox));
    const Json *result;

    json_key(w, "cols");
    json_put_int(w, rq->cols > 0 ? rq->cols : 80);
    json_key(w, "rows");
    json_put_int(w, rq->rows > 0 ? rq->rows : 24);
    if (!epp_plugin_call(x->plugin, d, &result, err))
        return false;
    const Json *process = json_get(result, "process_id");
    Str         key = epp_call_key(process);
    if (!key.n)
        return epp_call_bad(c, "pty.open", "process_id is neither text nor a number", err);
    x->process = mem_str(key);
    x->is_number = process->type != JSON_STRING;
    x->stream = epp_call_stream(c, key);
    return true;
}

bool epp_pty_start(Epp *e, Str id, const ExecRequest *rq, ExecCall **out, Deadline d, Err *err)
{
    Buf     typed = buf_make(EPP_PTY_TYPED);
    EppPty *x = mem_new(sizeof *x);
    size_t  n;

    *x = (EppPty){.base = {&epp_pty__ops}, .plugin = e, .sandbox = mem_str(id), .era = e->era, .bytes = buf_make(LIMIT_EPP_LINE),
                  .started = clock_mono_ms()};
    bool ok = epp_pty__typed(rq, &typed, err) && epp_pty__open(x, rq, d, err) &&
              epp_pty__write(&x->base, buf_str(&typed), &n, err);
    buf_free(&typed);
    if (ok)
        *out = &x->base;
    else
        epp_pty__close(&x->base);
    return ok;
}
