#include "provider/carried.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/clean.h"
#include "os/poll.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

enum {
    CARRIED_SCRATCH = 64 << 10,         /* to clean what the sandbox says */
    CARRIED_NAME = 512,                 /* of a word that a message names */
};

typedef struct CarriedCall {
    ExecCall  base;
    Provider *p;
    Talk     *talk;
    char     *id;               /* the sandbox's */
    FrameKind kind;
    bool      input;            /* it can be written to */
    bool      lasting;          /* it lives on without this call */
    bool      watches;          /* a job that it may only look at */
    bool      tell_start;
    bool      timed;            /* it has a timeout; a job's is not known here */
    bool      started;
    bool      hold;             /* what is used is not said: no more is to come */
    size_t    used;             /* and not said */
    size_t    given;            /* in the last event */
    char      what[3][CARRIED_NAME];    /* for messages: the program, the folder, the user or job */
    char      pid[12];          /* "" until it is known */
    char      job[LIMIT_TALK_NAME + 1];
    int64_t   began;
    Deadline  overdue;
} CarriedCall;

enum { CARRIED_PROGRAM, CARRIED_CWD, CARRIED_WHO };

static CarriedCall *carried__of(ExecCall *x)
{
    return (CarriedCall *)x;
}

static void carried__name(CarriedCall *c, int which, Str name)
{
    Arena a = arena_make(CARRIED_SCRATCH);

    snprintf(c->what[which], CARRIED_NAME, "%.*s", STR_ARG(clean_path(name, &a)));
    arena_free(&a);
}

/* ---- what goes wrong ---- */

/* The agent's own words, where ours have no better. */
static void carried__says(const FrameFail *f, const char *what, Err *err)
{
    Arena a = arena_make(CARRIED_SCRATCH);
    Str   text = clean_message(f->text, NULL, 0, &a);

    err_set(err, ERR_REMOTE, E3000, "%s: %.*s", what, STR_ARG(text.n ? text : str_from(strerror((int)f->sys))));
    arena_free(&a);
}

static void carried__no_program(const CarriedCall *c, int sys, Err *err)
{
    const char *program = c->what[CARRIED_PROGRAM];

    if (sys == ENOENT)
        err_set(err, ERR_NOT_FOUND, E3005, "the sandbox has no program %s", program);
    else
        err_set(err, ERR_REMOTE, E3005, "the sandbox cannot run %s: %s", program, strerror(sys));
    err->sys = sys;
}

static void carried__no_folder(const CarriedCall *c, int sys, Err *err)
{
    bool none = sys == ENOENT || sys == ENOTDIR, denied = sys == EACCES || sys == EPERM;

    err_set(err, none ? ERR_NOT_FOUND : denied ? ERR_DENIED : ERR_REMOTE, none ? E4001 : denied ? E4002 : E3000,
            "cannot run a command in %s: %s", c->what[CARRIED_CWD], strerror(sys));
}

static void carried__no_user(const CarriedCall *c, int sys, Err *err)
{
    const FrameHello *agent = talk_hello(c->talk);

    if (sys == EPERM)
        err_set(err, ERR_REMOTE, E8004, "the agent in the sandbox runs as user %u, which may not become user %s",
                agent ? (unsigned)agent->uid : 0, c->what[CARRIED_WHO]);
    else
        err_set(err, ERR_USAGE, E8002, "the sandbox has no user %s", c->what[CARRIED_WHO]);
}

static void carried__no_job(const CarriedCall *c, int sys, const FrameFail *f, Err *err)
{
    const char *job = c->job[0] ? c->job : c->what[CARRIED_WHO];

    if (sys == ENOENT)
        err_set(err, ERR_NOT_FOUND, E8005, "there is no job %s in the sandbox", job);
    else if (sys == ESRCH)
        err_set(err, ERR_NOT_FOUND, E8005, "job %s has ended", job);
    else if (sys == EBUSY && c->kind == FRAME_CONTROL)
        err_set(err, ERR_REMOTE, E8003, "job %s is still running", job);
    else if (sys == EBUSY && c->watches)
        err_set(err, ERR_REMOTE, E8003, "too many look on at job %s already", job);
    else if (sys == EBUSY)
        err_set(err, ERR_REMOTE, E8003, c->started ? "somebody else took job %s" : "somebody has job %s", job);
    else
        carried__says(f, "the job cannot be reached", err);
}

/* Nothing was run, or somebody else has it now. */
static void carried__failed(const CarriedCall *c, const FrameFail *f, Err *err)
{
    int sys = f->sys <= INT32_MAX ? (int)f->sys : 0;

    switch (f->stage) {
    case FRAME_AT_EXEC: carried__no_program(c, sys, err); break;
    case FRAME_AT_CWD: carried__no_folder(c, sys, err); break;
    case FRAME_AT_USER: carried__no_user(c, sys, err); break;
    case FRAME_AT_ATTACH: carried__no_job(c, sys, f, err); break;
    case FRAME_AT_TTY: carried__says(f, "the sandbox has no terminal for the command", err); break;
    case FRAME_AT_START:
    case FRAME_AT_CONNECT: carried__says(f, "the agent in the sandbox could not start the command", err); break;
    }
}

/* The link is lost: what becomes of the command. */
static Step carried__lost(const CarriedCall *c, Err *err)
{
    if (err->kind != ERR_CLOSED || err->hint[0])
        return STEP_ERR;
    if (c->lasting && c->job[0])
        err_hint(err, "It lives on in the sandbox, as job %s: `abx job list` shows what there is.", c->job);
    else if (c->started)
        err_hint(err, "The agent in the sandbox, while it lives, ends what it can no longer report: the whole process group.");
    return STEP_ERR;
}

/* ---- events ---- */

static void carried__use(CarriedCall *c)
{
    c->used += c->given;
    c->given = 0;
    if (c->hold || !c->used)
        return;
    talk_taken(c->talk, 0, c->used);
    c->used = 0;
}

static Step carried__started(CarriedCall *c, const FrameStarted *s, ExecEvent *ev)
{
    c->started = true;
    if (s->pid)
        snprintf(c->pid, sizeof c->pid, "%u", (unsigned)s->pid);
    memcpy(c->job, s->job.p, s->job.n);
    *ev = (ExecEvent){.kind = EXEC_STARTED};
    return c->tell_start ? STEP_DONE : STEP_MORE;
}

static Step carried__exit(CarriedCall *c, const FrameExit *x, ExecEvent *ev, Err *err)
{
    bool code = x->how == FRAME_ENDED_CODE;

    if (x->how == FRAME_ENDED_TIMEOUT && !c->timed) {
        err_set(err, ERR_INPUT, E8020, "the agent reports a timeout that was not asked for: the command's result is unknown");
        return STEP_ERR;
    }
    *ev = (ExecEvent){.kind = EXEC_EXIT, .exit_code = code ? (int)x->number : -1, .signal = code ? 0 : (int)x->number,
                      .timed_out = x->how == FRAME_ENDED_TIMEOUT, .duration_ms = clock_mono_ms() - c->began};
    return STEP_DONE;
}

/* STEP_MORE: nothing for the caller in it. */
static Step carried__event(CarriedCall *c, const TalkEvent *t, ExecEvent *ev, Err *err)
{
    if (t->type == FRAME_STARTED)
        return carried__started(c, &t->started, ev);
    if (t->type == FRAME_EXIT)
        return carried__exit(c, &t->exit, ev, err);
    if (t->type == FRAME_FAIL) {
        carried__failed(c, &t->fail, err);
        return STEP_ERR;
    }
    if (t->type == FRAME_AGENT_EOF)
        return STEP_MORE;
    *ev = (ExecEvent){.kind = t->type == FRAME_OUT ? EXEC_OUT : t->type == FRAME_ERR ? EXEC_ERR
                              : t->type == FRAME_REPLAY ? EXEC_REPLAY : EXEC_DETACHED,
                      .bytes = t->bytes, .offset = t->offset};
    c->given = t->bytes.n;
    return STEP_DONE;
}

static Step carried__next(ExecCall *x, ExecEvent *ev, Err *err)
{
    CarriedCall *c = carried__of(x);
    TalkEvent    t;

    carried__use(c);
    for (;;) {
        Step step = talk_next(c->talk, &t, err);
        if (step == STEP_ERR)
            return carried__lost(c, err);
        if (step == STEP_MORE)
            break;
        if ((step = carried__event(c, &t, ev, err)) != STEP_MORE)
            return step;
    }
    if (!clock_passed(c->overdue))
        return STEP_MORE;
    talk_kill(c->talk);
    err_set(err, ERR_TIMEOUT, E3001, "the command ran past its timeout, and its end was not reported");
    return STEP_ERR;
}

static StreamWant carried__want(const ExecCall *x)
{
    return talk_want(((const CarriedCall *)x)->talk);
}

static Deadline carried__deadline(const ExecCall *x)
{
    const CarriedCall *c = (const CarriedCall *)x;

    return clock_sooner(talk_deadline(c->talk), c->overdue);
}

static Str carried__pid(const ExecCall *x)
{
    return str_from(((const CarriedCall *)x)->pid);
}

static Str carried__job(const ExecCall *x)
{
    return str_from(((const CarriedCall *)x)->job);
}

static void carried__close(ExecCall *x)
{
    CarriedCall *c = carried__of(x);

    talk_close(c->talk);
    mem_free(c->id);
    mem_free(c);
}

/* ---- what can be said to it ---- */

/* Nothing can be said there but by the backend's own call. */
static bool carried__signal_deaf(CarriedCall *c, int number, Deadline d, Err *err)
{
    ABX_UNSET char group[sizeof c->pid + 1];

    if (!c->pid[0] || !c->p->kind->process_signal)
        return err_set(err, ERR_REMOTE, E8004, "the command cannot be sent a signal: %s",
                       c->pid[0] ? "the way to its agent carries none" : "it has not started yet");
    snprintf(group, sizeof group, "-%s", c->pid);
    return c->p->kind->process_signal(c->p, str_from(c->id), str_from(group), number, d, err);
}

/* The agent itself is told: it ends the whole group, and what is left of it. */
static bool carried__kill_deaf(CarriedCall *c, Deadline d, Err *err)
{
    const FrameHello *hello = talk_hello(c->talk);
    ABX_UNSET char agent[16];

    if (!hello || !c->p->kind->process_signal)
        return carried__signal_deaf(c, SIGKILL, d, err);
    snprintf(agent, sizeof agent, "%u", hello->pid);
    return c->p->kind->process_signal(c->p, str_from(c->id), str_from(agent), SIGTERM, d, err);
}

static bool carried__kill(ExecCall *x, Deadline d, Err *err)
{
    CarriedCall *c = carried__of(x);

    if (talk_deaf(c->talk))
        return carried__kill_deaf(c, d, err);
    talk_kill(c->talk);
    return true;
}

static bool carried__signal(ExecCall *x, int number, Err *err)
{
    CarriedCall *c = carried__of(x);

    if (number < 1 || number > 64)
        return err_set(err, ERR_USAGE, E8002, "%d is no signal: 1 to 64 are", number);
    if (talk_deaf(c->talk))
        return carried__signal_deaf(c, number, clock_after(LIMIT_CLEANUP_MS), err);
    talk_signal(c->talk, number, FRAME_TO_GROUP);
    return true;
}

static bool carried__fed(const CarriedCall *c, Err *err)
{
    return c->input || err_set(err, ERR_USAGE, E8002, "the command was started without standard input");
}

static bool carried__write(ExecCall *x, Str bytes, size_t *n, Err *err)
{
    CarriedCall *c = carried__of(x);

    if (!carried__fed(c, err))
        return false;
    *n = talk_write(c->talk, 0, bytes);
    return true;
}

static bool carried__end_input(ExecCall *x, Err *err)
{
    CarriedCall *c = carried__of(x);

    if (!carried__fed(c, err))
        return false;
    talk_end(c->talk, 0);
    return true;
}

static bool carried__size(int cols, int rows, Err *err)
{
    return (cols >= 0 && cols <= UINT16_MAX && rows >= 0 && rows <= UINT16_MAX) ||
           err_set(err, ERR_USAGE, E8002, "a terminal of %d columns and %d rows makes no sense", cols, rows);
}

static bool carried__resize(ExecCall *x, int cols, int rows, Err *err)
{
    if (!carried__size(cols, rows, err))
        return false;
    talk_resize(carried__of(x)->talk, cols, rows);
    return true;
}

static bool carried__detach(ExecCall *x, Err *err)
{
    CarriedCall *c = carried__of(x);

    if (!c->job[0] || talk_deaf(c->talk))
        return err_set(err, ERR_USAGE, E8004, "the command cannot be left: %s",
                       c->job[0] ? "the way to its agent carries nothing" : "it is no job");
    c->lasting = true;
    talk_detach(c->talk);
    return true;
}

static void carried__hold(ExecCall *x, bool on)
{
    CarriedCall *c = carried__of(x);

    c->hold = on;
    if (on || !c->used)
        return;
    /* What is said wakes the caller's wait. */
    talk_taken(c->talk, 0, c->used);
    c->used = 0;
}

static const ExecOps carried__ops = {
    .next = carried__next, .want = carried__want, .deadline = carried__deadline, .kill = carried__kill,
    .pid = carried__pid, .close = carried__close, .write = carried__write, .end_input = carried__end_input,
    .signal = carried__signal, .resize = carried__resize, .hold = carried__hold, .detach = carried__detach,
    .job = carried__job,
};

/* Of one that is only looked at. */
static const ExecOps carried__watched = {
    .next = carried__next, .want = carried__want, .deadline = carried__deadline, .pid = carried__pid,
    .close = carried__close, .hold = carried__hold, .job = carried__job,
};

/* ---- starting ---- */

static CarryResult carried__open(Provider *p, Str id, const FrameStart *s, bool input, CarriedCall *c, Deadline d, Err *err)
{
    CarryResult r = talk_open(p, id, s, input, &c->talk, d, err);

    if (r != CARRY_DONE)
        return r;
    c->p = p;
    c->id = mem_str(id);
    c->kind = s->kind;
    c->timed = s->timeout_ms || s->kind == FRAME_ATTACH;
    c->began = clock_mono_ms();
    c->overdue = s->timeout_ms && s->timeout_ms < INT64_MAX / 2
                     ? clock_after((int64_t)s->timeout_ms + LIMIT_SILENCE_MS) : DEADLINE_NONE;
    return r;
}

/* "NAME=VALUE", as a program gets them. */
static bool carried__env(const ExecRequest *rq, Arena *a, Strs *out, Err *err)
{
    Str *env = arena_array(a, rq->env_count, sizeof *env);

    for (size_t i = 0; i < rq->env_count; i++) {
        Str   key = rq->env[i].key, value = rq->env[i].value;
        char *p = arena_alloc(a, key.n + value.n + 1);
        if (str_has(key, '='))
            return err_set(err, ERR_USAGE, E8002, "environment variable %zu has a `=` in its name", i + 1);
        memcpy(p, key.p, key.n);
        p[key.n] = '=';
        if (value.n)
            memcpy(p + key.n + 1, value.p, value.n);
        env[i] = (Str){p, key.n + value.n + 1};
    }
    *out = (Strs){env, rq->env_count};
    return true;
}

static FrameStart carried__start(const ExecRequest *rq, Strs env)
{
    bool input = rq->input || rq->tty || rq->open_stdin;

    return (FrameStart){
        .kind = rq->tty ? FRAME_PTY : FRAME_EXEC,
        .flags = (input ? FRAME_START_INPUT : 0) | (rq->job ? FRAME_START_JOB : 0),
        .argv = {rq->argv, rq->argc}, .env = env, .cwd = rq->cwd, .user = rq->user,
        .cols = (uint16_t)rq->cols, .rows = (uint16_t)rq->rows, .timeout_ms = (uint64_t)rq->timeout_ms,
        .hold_s = rq->hold_s < 0 ? 0 : rq->hold_s > UINT32_MAX ? UINT32_MAX : (uint32_t)rq->hold_s,
    };
}

CarryResult carried_exec(Provider *p, Str id, const ExecRequest *rq, ExecCall **out, Deadline d, Err *err)
{
    Arena        a = arena_make(ARENA_COMMAND);
    CarriedCall *c = mem_new(sizeof *c);
    CarryResult  r = CARRY_FAILED;
    Strs         env = {0};

    *c = (CarriedCall){.base = {&carried__ops}, .input = rq->input || rq->tty, .lasting = rq->job || rq->hold_s > 0,
                       .tell_start = rq->tell_start};
    if (carried__size(rq->cols, rq->rows, err) && carried__env(rq, &a, &env, err)) {
        FrameStart s = carried__start(rq, env);
        carried__name(c, CARRIED_PROGRAM, rq->argc > 1 ? rq->argv[0] : STR("sh, which a line of shell needs"));
        carried__name(c, CARRIED_CWD, rq->cwd);
        carried__name(c, CARRIED_WHO, rq->user);
        r = carried__open(p, id, &s, c->input, c, d, err);
    }
    arena_free(&a);
    if (r == CARRY_DONE)
        *out = &c->base;
    else
        mem_free(c);
    return r;
}

CarryResult carried_files(Provider *p, Str id, FrameKind kind, Strs argv, Str user, bool input, ExecCall **out,
                          Deadline d, Err *err)
{
    CarriedCall *c = mem_new(sizeof *c);
    FrameStart   s = {.kind = kind, .flags = input ? FRAME_START_INPUT : 0, .argv = argv, .cwd = STR("/"), .user = user};

    *c = (CarriedCall){.base = {&carried__ops}, .input = input};
    carried__name(c, CARRIED_PROGRAM, STR("the agent"));
    carried__name(c, CARRIED_CWD, s.cwd);
    carried__name(c, CARRIED_WHO, user);
    CarryResult r = carried__open(p, id, &s, input, c, d, err);
    if (r == CARRY_DONE)
        *out = &c->base;
    else
        mem_free(c);
    return r;
}

CarryResult carried_attach(Provider *p, Str id, const CarriedAttach *at, ExecCall **out, Deadline d, Err *err)
{
    CarriedCall *c = mem_new(sizeof *c);
    FrameStart   s = {.kind = FRAME_ATTACH, .job = at->job, .offset = at->offset,
                      .flags = (at->take ? FRAME_START_TAKE : 0) | (at->watch ? FRAME_START_WATCH : 0)};
    CarryResult  r = CARRY_FAILED;

    *c = (CarriedCall){.base = {at->watch ? &carried__watched : &carried__ops}, .input = !at->watch, .watches = at->watch,
                       .lasting = true, .tell_start = true};
    carried__name(c, CARRIED_WHO, at->job);
    if (carried__size(at->cols, at->rows, err)) {
        s.cols = (uint16_t)at->cols;
        s.rows = (uint16_t)at->rows;
        r = carried__open(p, id, &s, c->input, c, d, err);
    }
    if (r == CARRY_DONE)
        *out = &c->base;
    else
        mem_free(c);
    return r;
}

bool carried_gather(ExecCall *x, Buf *text, ExecEvent *end, int cancel_fd, Deadline d, Err *err)
{
    Step step;

    while ((step = x->ops->next(x, end, err)) != STEP_ERR) {
        StreamWant w = x->ops->want(x);
        if (step == STEP_DONE && end->kind == EXEC_EXIT)
            return true;
        if (step == STEP_DONE && end->kind == EXEC_OUT)
            buf_add(text, end->bytes);
        if (step == STEP_DONE || w.fd < 0)
            continue;
        /* The call's own deadlines are its to judge. */
        if (!poll_one(w.fd, w.events, cancel_fd, clock_sooner(d, x->ops->deadline(x)), err) &&
            (err->kind != ERR_TIMEOUT || clock_passed(d)))
            return false;
    }
    return false;
}

CarryResult carried_ask(Provider *p, Str id, const FrameStart *start, Buf *text, int *code, Deadline d, Err *err)
{
    CarriedCall *c = mem_new(sizeof *c);
    ExecEvent    end;

    *c = (CarriedCall){.base = {&carried__watched}};
    carried__name(c, CARRIED_WHO, start->job);
    CarryResult r = carried__open(p, id, start, false, c, d, err);
    if (r != CARRY_DONE) {
        mem_free(c);
        return r;
    }
    bool ok = carried_gather(&c->base, text, &end, p->host.cancel_fd, d, err);
    if (ok)
        *code = end.exit_code;
    carried__close(&c->base);
    return ok ? CARRY_DONE : CARRY_FAILED;
}
