#include "abx.h"

#include "api/error.h"
#include "api/session.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/poll.h"


struct abx_exec {
    Provider *provider;
    ExecCall *call;
    bool      over;         /* the last event, or a failure, was given */
};

abx_exec *abx_exec_start(abx_sandbox *b, const abx_exec_options *o, abx_error *e)
{
    Provider   *p = b->session->provider;
    Arena       a = arena_make(ARENA_COMMAND);
    ExecRequest rq = {.argc = o->argc, .env_count = o->env_count, .cwd = str_from(o->cwd), .timeout_ms = o->timeout_ms,
                      .tell_pid = o->tell_pid != 0, .open_stdin = o->open_stdin != 0};
    ExecCall   *call = NULL;
    Str        *argv = arena_array(&a, o->argc, sizeof *argv);
    Err         err;
    bool        ok = true;

    for (size_t i = 0; i < o->argc; i++)
        argv[i] = str_from(o->argv[i]);
    rq.argv = argv;
    if (o->argc == 0 || argv[0].n == 0)
        ok = err_set(&err, ERR_USAGE, E8002, "there is no command to run");
    else if (o->timeout_ms < 0)
        ok = err_set(&err, ERR_USAGE, E8002, "a timeout of %lld ms makes no sense", (long long)o->timeout_ms);
    ok = ok && session_pairs(o->env, o->env_count, "environment variable", &a, &rq.env, &err) &&
         p->kind->exec(p, str_from(b->id), &rq, &call, clock_after(LIMIT_CALL_MS), &err);
    arena_free(&a);
    if (!ok) {
        error_give(e, &err);
        return NULL;
    }
    abx_exec *x = mem_new(sizeof *x);
    *x = (abx_exec){.provider = p, .call = call};
    return x;
}

int abx_exec_next(abx_exec *x, int wait, abx_event *event, abx_error *e)
{
    const ProviderKind *kind = x->provider->kind;
    ExecEvent           ev;
    Err                 err;
    Step                step;

    if (x->over) {
        err_set(&err, ERR_USAGE, E8002, "the command has ended: nothing follows");
        return error_give(e, &err);
    }
    while ((step = kind->exec_next(x->call, &ev, &err)) == STEP_MORE) {
        StreamWant w = kind->exec_want(x->call);
        if (!wait)
            return 0;
        /* Reaching the deadline is the backend's to judge, at the next turn. */
        if (w.fd >= 0 && !poll_one(w.fd, w.events, x->provider->host.cancel_fd, kind->exec_deadline(x->call), &err) &&
            err.kind != ERR_TIMEOUT)
            return error_give(e, &err);
    }
    x->over = step == STEP_ERR || ev.kind == EXEC_EXIT;
    if (step == STEP_ERR)
        return error_give(e, &err);
    *event = (abx_event){
        .kind = ev.kind == EXEC_OUT ? ABX_STDOUT : ev.kind == EXEC_ERR ? ABX_STDERR : ABX_EXIT,
        .bytes = ev.bytes.p, .size = ev.bytes.n, .exit_code = ev.exit_code,
        .signal = ev.signal,
        .timed_out = ev.timed_out, .duration_ms = ev.duration_ms,
    };
    return 1;
}

abx_want abx_exec_want(const abx_exec *x)
{
    const ProviderKind *kind = x->provider->kind;
    StreamWant          w = kind->exec_want(x->call);
    Deadline            d = kind->exec_deadline(x->call);
    int64_t             left = d == DEADLINE_NONE ? -1 : d - clock_mono_ms();

    return (abx_want){.fd = w.fd, .events = w.events, .wait_ms = d != DEADLINE_NONE && left < 0 ? 0 : left};
}

int abx_exec_kill(abx_exec *x, abx_error *e)
{
    Err err;

    return x->provider->kind->exec_kill(x->call, clock_after(LIMIT_CLEANUP_MS), &err) ? 0 : error_give(e, &err);
}

const char *abx_exec_pid(const abx_exec *x)
{
    const ProviderKind *kind = x->provider->kind;
    Str                 pid = kind->exec_pid ? kind->exec_pid(x->call) : (Str){0};

    return pid.n ? pid.p : NULL;
}

void abx_exec_free(abx_exec *x)
{
    if (!x)
        return;
    x->provider->kind->exec_close(x->call);
    mem_free(x);
}
