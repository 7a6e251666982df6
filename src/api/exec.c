#include "api/exec.h"

#include "api/error.h"
#include "api/session.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/poll.h"
#include "provider/carried.h"

#include <errno.h>
#include <stdio.h>

enum { EXEC_SCRATCH = 2 * ERR_TEXT_SIZE };

struct abx_exec {
    Provider *provider;
    ExecCall *call;
    bool      over;         /* the last event, or a failure, was given */
};

abx_exec *exec_over(Provider *p, ExecCall *call)
{
    abx_exec *x = mem_new(sizeof *x);

    *x = (abx_exec){.provider = p, .call = call};
    return x;
}

/* The program could not be run: the status that a shell has for that. */
static int exec__give(abx_error *e, const Err *err)
{
    error_give(e, err);
    if (err->code == E3005 && err->kind != ERR_SYSTEM)
        e->command_status = err->sys == ENOENT ? 127 : 126;
    return -1;
}

/* ---- starting ---- */

/* By the backend's own calls. `why` the agent cannot do it is said to whoever
 * asks for what they lack. */
static bool exec__plain(abx_sandbox *b, const ExecRequest *rq, const char *why, ExecCall **call, Err *err)
{
    Provider *p = b->session->provider;
    bool      asks = rq->user.n || rq->input || rq->tty || rq->job;

    if (p->kind->exec(p, str_from(b->id), rq, call, clock_after(LIMIT_CALL_MS), err))
        return true;
    return asks && err->code == E8004 && why[0] ? err_hint(err, "The agent would do it, but %s.", why) : false;
}

/* By the agent where it can be carried. */
static bool exec__begin(abx_sandbox *b, const ExecRequest *rq, ExecCall **call, Err *err)
{
    Provider *p = b->session->provider;
    ABX_UNSET Err why;

    if (!p->kind->carrier || !p->host.agent_path.n)
        return exec__plain(b, rq, p->kind->carrier ? b->session->no_agent : "", call, err);
    CarryResult r = carried_exec(p, str_from(b->id), rq, call, clock_after(LIMIT_CARRY_MS), &why);
    if (r != CARRY_CANNOT) {
        if (r == CARRY_FAILED)
            *err = why;
        return r == CARRY_DONE;
    }
    if (!exec__plain(b, rq, why.text, call, err))
        return false;
    Arena a = arena_make(EXEC_SCRATCH);
    p->host.notice(p->host.notice_ctx,
                   arena_fmt(&a, "%s. The backend's own calls run this command: they may lose a last line end and bytes "
                             "that are not text, and know no signal but the one that ends it", why.text));
    arena_free(&a);
    return true;
}

static bool exec__request(const abx_exec_options *o, Arena *a, ExecRequest *rq, Err *err)
{
    Str *argv = arena_array(a, o->argc, sizeof *argv);

    *rq = (ExecRequest){.argv = argv, .argc = o->argc, .env_count = o->env_count, .cwd = str_from(o->cwd),
                        .timeout_ms = o->timeout_ms, .tell_pid = o->tell_pid != 0, .open_stdin = o->open_stdin != 0,
                        .user = str_from(o->user), .input = o->input != 0, .tty = o->tty != 0, .cols = o->cols,
                        .rows = o->rows, .job = o->job != 0, .hold_s = o->hold_s, .tell_start = o->tell_start != 0};
    for (size_t i = 0; i < o->argc; i++)
        argv[i] = str_from(o->argv[i]);
    if (o->argc == 0 || argv[0].n == 0)
        return err_set(err, ERR_USAGE, E8002, "there is no command to run");
    if (o->timeout_ms < 0)
        return err_set(err, ERR_USAGE, E8002, "a timeout of %lld ms makes no sense", (long long)o->timeout_ms);
    return session_pairs(o->env, o->env_count, "environment variable", a, &rq->env, err);
}

abx_exec *abx_exec_start(abx_sandbox *b, const abx_exec_options *o, abx_error *e)
{
    Arena       a = arena_make(ARENA_COMMAND);
    ExecRequest rq;
    ExecCall   *call = NULL;
    ABX_UNSET Err err;
    bool        ok = exec__request(o, &a, &rq, &err) && exec__begin(b, &rq, &call, &err);

    arena_free(&a);
    if (ok)
        return exec_over(b->session->provider, call);
    exec__give(e, &err);
    return NULL;
}

/* ---- events ---- */

static const abx_event_kind exec__kinds[] = {
    [EXEC_OUT] = ABX_STDOUT, [EXEC_ERR] = ABX_STDERR, [EXEC_EXIT] = ABX_EXIT, [EXEC_STARTED] = ABX_STARTED,
    [EXEC_REPLAY] = ABX_REPLAY, [EXEC_DETACHED] = ABX_DETACHED,
};

int abx_exec_next(abx_exec *x, int wait, abx_event *event, abx_error *e)
{
    ExecEvent ev;
    ABX_UNSET Err err;
    Step      step;

    if (x->over) {
        err_set(&err, ERR_USAGE, E8002, "the command has ended: nothing follows");
        return error_give(e, &err);
    }
    while ((step = x->call->ops->next(x->call, &ev, &err)) == STEP_MORE) {
        StreamWant w = x->call->ops->want(x->call);
        if (!wait)
            return 0;
        /* Reaching the deadline is the backend's to judge, at the next turn. */
        if (w.fd >= 0 && !poll_one(w.fd, w.events, x->provider->host.cancel_fd, x->call->ops->deadline(x->call), &err) &&
            err.kind != ERR_TIMEOUT)
            return error_give(e, &err);
    }
    x->over = step == STEP_ERR || ev.kind == EXEC_EXIT || ev.kind == EXEC_DETACHED;
    if (step == STEP_ERR)
        return exec__give(e, &err);
    *event = (abx_event){
        .kind = exec__kinds[ev.kind], .bytes = ev.bytes.p, .size = ev.bytes.n, .exit_code = ev.exit_code,
        .signal = ev.signal, .timed_out = ev.timed_out, .duration_ms = ev.duration_ms, .offset = ev.offset,
    };
    return 1;
}

abx_want abx_exec_want(const abx_exec *x)
{
    StreamWant w = x->call->ops->want(x->call);
    Deadline   d = x->call->ops->deadline(x->call);
    int64_t    left = d == DEADLINE_NONE ? -1 : d - clock_mono_ms();

    return (abx_want){.fd = w.fd, .events = w.events, .wait_ms = d != DEADLINE_NONE && left < 0 ? 0 : left};
}

const char *abx_exec_pid(const abx_exec *x)
{
    const ExecOps *ops = x->call->ops;
    Str            pid = ops->pid ? ops->pid(x->call) : (Str){0};

    return pid.n ? pid.p : NULL;
}

/* The way in which the command runs can do this. */
static bool exec__can(bool can, const char *what, Err *err)
{
    if (can)
        return true;
    err_set(err, ERR_REMOTE, E8004, "cannot %s: the command runs by the backend's own calls, or is only looked at", what);
    return false;
}

static int exec__said(bool ok, const Err *err, abx_error *e)
{
    return ok ? 0 : error_give(e, err);
}

int abx_exec_kill(abx_exec *x, abx_error *e)
{
    const ExecOps *ops = x->call->ops;
    ABX_UNSET Err err;

    return exec__said(exec__can(ops->kill != NULL, "end it", &err) &&
                      ops->kill(x->call, clock_after(LIMIT_CLEANUP_MS), &err), &err, e);
}

ptrdiff_t abx_exec_write(abx_exec *x, const void *p, size_t size, abx_error *e)
{
    const ExecOps *ops = x->call->ops;
    size_t n = 0;
    ABX_UNSET Err err;

    if (!exec__can(ops->write != NULL, "feed its standard input", &err) || !ops->write(x->call, (Str){p, size}, &n, &err))
        return error_give(e, &err);
    return (ptrdiff_t)n;
}

int abx_exec_end_input(abx_exec *x, abx_error *e)
{
    const ExecOps *ops = x->call->ops;
    ABX_UNSET Err err;

    return exec__said(exec__can(ops->end_input != NULL, "end its standard input", &err) && ops->end_input(x->call, &err),
                      &err, e);
}

int abx_exec_signal(abx_exec *x, int number, abx_error *e)
{
    const ExecOps *ops = x->call->ops;
    ABX_UNSET Err err;

    return exec__said(exec__can(ops->signal != NULL, "send it a signal", &err) && ops->signal(x->call, number, &err),
                      &err, e);
}

int abx_exec_resize(abx_exec *x, int cols, int rows, abx_error *e)
{
    const ExecOps *ops = x->call->ops;
    ABX_UNSET Err err;

    return exec__said(exec__can(ops->resize != NULL, "resize its terminal", &err) &&
                      ops->resize(x->call, cols, rows, &err), &err, e);
}

int abx_exec_hold(abx_exec *x, int on)
{
    const ExecOps *ops = x->call->ops;

    if (ops->hold)
        ops->hold(x->call, on != 0);
    return ops->hold != NULL;
}

int abx_exec_detach(abx_exec *x, abx_error *e)
{
    const ExecOps *ops = x->call->ops;
    ABX_UNSET Err err;

    return exec__said(exec__can(ops->detach != NULL, "leave it running", &err) && ops->detach(x->call, &err), &err, e);
}

const char *abx_exec_job(const abx_exec *x)
{
    const ExecOps *ops = x->call->ops;
    Str            job = ops->job ? ops->job(x->call) : (Str){0};

    return job.n ? job.p : NULL;
}

void abx_exec_free(abx_exec *x)
{
    if (!x)
        return;
    x->call->ops->close(x->call);
    mem_free(x);
}
