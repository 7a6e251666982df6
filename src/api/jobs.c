#include "abx.h"

#include "api/error.h"
#include "api/exec.h"
#include "api/session.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/time.h"
#include "data/clean.h"
#include "data/json.h"
#include "os/poll.h"
#include "provider/carried.h"

#include <stdio.h>

enum { JOBS_TRIES = 20, JOBS_SLEEP_MS = 100 };      /* a job that was killed is seen to have ended */

/* Jobs are the agent's: where it cannot be carried they cannot be asked for. */
static bool jobs__can(abx_sandbox *b, Err *err)
{
    Provider *p = b->session->provider;

    if (!session_can(p, p->kind->carrier != NULL, "the carried agent", err))
        return false;
    return p->host.agent_path.n ||
           err_set(err, ERR_USAGE, E8004, "jobs are the agent's, and %s", b->session->no_agent);
}

/* E8004 for what cannot be carried. */
static bool jobs__carried(CarryResult r, Err *err)
{
    if (r == CARRY_CANNOT) {
        err->code = E8004;
        err_wrap(err, "jobs are the agent's");
    }
    return r == CARRY_DONE;
}

static bool jobs__ask(abx_sandbox *b, const FrameStart *start, Buf *text, int *code, Err *err)
{
    return jobs__can(b, err) &&
           jobs__carried(carried_ask(b->session->provider, str_from(b->id), start, text, code,
                                     clock_after(LIMIT_CARRY_MS), err), err);
}

static bool jobs__name(Str id, Err *err)
{
    for (size_t i = 0; i < id.n; i++)
        if (!str_has(STR("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"), id.p[i]))
            id.n = 0;
    return (id.n && id.n <= LIMIT_TALK_NAME) || err_set(err, ERR_USAGE, E8002, "no job can be called that");
}

/* ---- listing ---- */

static const char *jobs__text(const Json *row, const char *key, Arena *a)
{
    return clean_message(json_str(json_get(row, key)), NULL, 0, a).p;
}

/* Seconds since 1970 as text; NULL: not known. */
static const char *jobs__time(const Json *row, const char *key, Arena *a)
{
    int64_t s = json_int(json_get(row, key), 0);
    ABX_UNSET char text[TIME_SIZE];

    return s > 0 && s < INT64_MAX / 1000 && time_text(s * 1000, false, text) ? arena_cstr(a, str_from(text)) : NULL;
}

static uint64_t jobs__count(const Json *row, const char *key)
{
    int64_t n = json_int(json_get(row, key), 0);

    return n < 0 ? 0 : (uint64_t)n;
}

/* One line of the agent's. False: it is no job. */
static bool jobs__read(const Json *row, Arena *a, abx_job *j)
{
    Str     state = json_str(json_get(row, "state"));
    bool    ended = str_eq(state, STR("ended")), running = str_eq(state, STR("running"));
    int64_t pid = json_int(json_get(row, "pid"), 0), code = json_int(json_get(row, "exit_code"), -1),
            signal = json_int(json_get(row, "signal"), 0);
    ABX_UNSET Err none;

    *j = (abx_job){
        .id = jobs__text(row, "id", a), .state = running ? "running" : ended ? "ended" : "lost",
        .command = jobs__text(row, "command", a), .started_at = jobs__time(row, "started", a),
        .ended_at = jobs__time(row, "ended", a), .tty = json_bool(json_get(row, "tty"), false),
        .attached = json_bool(json_get(row, "attached"), false), .timed_out = json_bool(json_get(row, "timed_out"), false),
        .exit_code = ended && code >= 0 && code <= 255 ? (int)code : -1,
        .signal = ended && signal >= 1 && signal <= 64 ? (int)signal : 0,
        .printed = jobs__count(row, "printed"), .kept_from = jobs__count(row, "from"),
    };
    if (running && pid > 0 && pid <= INT32_MAX)
        j->pid = arena_fmt(a, "%lld", (long long)pid).p;
    /* An end that nobody can tell is none. */
    if (ended && j->exit_code < 0 && !j->signal)
        j->state = "lost";
    return jobs__name(json_str(json_get(row, "id")), &none);
}

static bool jobs__each(Str text, int (*each)(void *ctx, const abx_job *j), void *ctx, Arena *a, Err *err)
{
    const Json *row;
    abx_job     job;
    Str         line;

    while (str_cut(&text, '\n', &line)) {
        Arena one = *a;
        if (!line.n)
            continue;
        if (!json_parse(line, &one, &row, err) || !jobs__read(row, &one, &job))
            return err_set(err, ERR_INPUT, E8020, "the sandbox's list of jobs is not one");
        if (each(ctx, &job) != 0)
            break;
    }
    return true;
}

int abx_jobs(abx_sandbox *b, int (*each)(void *ctx, const abx_job *j), void *ctx, abx_error *e)
{
    Arena a = arena_make(ARENA_COMMAND);
    Buf   text = buf_make(LIMIT_TALK_JOBS);
    int   code = 0;
    ABX_UNSET Err err;
    bool  ok = jobs__ask(b, &(FrameStart){.kind = FRAME_JOBS}, &text, &code, &err);

    if (ok && text.over)
        ok = err_set(&err, ERR_LIMIT, E8020, "the sandbox's list of jobs is longer than %zu bytes", text.limit);
    if (ok && code)
        session_notice(&b->session->notice, STR("there may be more jobs: the agent could not ask all of them"));
    ok = ok && jobs__each(buf_str(&text), each, ctx, &a, &err);
    buf_free(&text);
    arena_free(&a);
    return ok ? 0 : error_give(e, &err);
}

/* ---- one of them ---- */

abx_exec *abx_job_attach(abx_sandbox *b, const char *id, const abx_attach_options *o, abx_error *e)
{
    Provider     *p = b->session->provider;
    CarriedAttach at = {str_from(id), o->offset, o->take != 0, o->watch != 0, o->cols, o->rows};
    ExecCall     *call;
    ABX_UNSET Err err;

    if (jobs__name(str_from(id), &err) && jobs__can(b, &err) &&
        jobs__carried(carried_attach(p, str_from(b->id), &at, &call, clock_after(LIMIT_CARRY_MS), &err), &err))
        return exec_over(p, call);
    error_give(e, &err);
    return NULL;
}

static int jobs__control(abx_sandbox *b, const char *id, const Str *words, size_t n, abx_error *e)
{
    Buf        none = {0};
    FrameStart s = {.kind = FRAME_CONTROL, .argv = {words, n}, .job = str_from(id)};
    int        code;
    ABX_UNSET Err err;

    return jobs__name(str_from(id), &err) && jobs__ask(b, &s, &none, &code, &err) ? 0 : error_give(e, &err);
}

int abx_job_signal(abx_sandbox *b, const char *id, int number, abx_error *e)
{
    ABX_UNSET char text[12];
    ABX_UNSET Err err;

    if (number < 1 || number > 64) {
        err_set(&err, ERR_USAGE, E8002, "%d is no signal: 1 to 64 are", number);
        return error_give(e, &err);
    }
    snprintf(text, sizeof text, "%d", number);
    return jobs__control(b, id, (Str[]){STR("signal"), str_from(text)}, 2, e);
}

int abx_job_forget(abx_sandbox *b, const char *id, abx_error *e)
{
    return jobs__control(b, id, (Str[]){STR("forget")}, 1, e);
}

/* ---- taking the agent away ---- */

/* The folders that provider/carry may have made, entered before they are looked
 * at, as there: a real one, of this user, with mode 0700. `j-*` are jobs. One of
 * 0755 in which nothing but uploads lies was made by one that came when the
 * folder had just been taken away: while it is there none is used again. */
static const char jobs__remover[] =
    "u=${EUID:-$(id -u)}; h=[0-9a-f][0-9a-f][0-9a-f][0-9a-f]; for b in /tmp /var/tmp \"$HOME\" /run; do "
    "for d in \"$b/.abx-$u\" \"$b\"/.abx-$h$h$h$h; do ( [ ! -L \"$d\" ] && cd -P \"$d\" 2>/dev/null && [ -O . ] && "
    "case $(ls -ldn .) in drwx------*) :;; drwxr-xr-x*) for f in * .[!.]*; do case $f in $h$h$h$h|'*'|'.[!.]*') :;; "
    "*) exit 0;; esac; done;; *) false;; esac || exit 0; "
    "for j in ./j-*; do if [ -S \"$j\" ]; then echo \"ABX1 busy $d\"; exit 9; fi; done; rm -f ./* ./.[!.]*; "
    "cd / && rmdir \"$d\" && echo \"ABX1 gone $d\"; exit 0 ) || exit 0; done; done";

static bool jobs__remove(abx_sandbox *b, int *removed, Err *err)
{
    Provider   *p = b->session->provider;
    Str         line = str_from(jobs__remover), said;
    ExecRequest rq = {.argv = &line, .argc = 1};
    ExecCall   *call;
    ExecEvent   end;
    Buf         text = buf_make(LIMIT_ERROR_BODY);
    bool        busy = false;

    if (!p->kind->exec(p, str_from(b->id), &rq, &call, clock_after(LIMIT_CALL_MS), err))
        return false;
    bool ok = carried_gather(call, &text, &end, p->host.cancel_fd, clock_after(LIMIT_CALL_MS), err);
    call->ops->close(call);
    for (Str all = buf_str(&text); ok && str_cut(&all, '\n', &said);) {
        *removed += str_starts(said, STR("ABX1 gone "));
        busy |= str_starts(said, STR("ABX1 busy "));
    }
    buf_free(&text);
    if (ok && busy) {
        ok = err_set(err, ERR_REMOTE, E8003, "a job lives in the sandbox by the agent");
        err_hint(err, "`abx job list` shows it; forget it first, or take it away, too, with --force.");
    }
    return ok;
}

/* Ends one job; it is forgotten as soon as it has ended. */
static int jobs__end(void *ctx, const abx_job *j)
{
    abx_sandbox *b = ctx;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    if (strcmp(j->state, "running") == 0)
        abx_job_signal(b, j->id, 9, &e);
    for (int i = 0; abx_job_forget(b, j->id, &e) != 0 && strcmp(e.code, "E8003") == 0 && i < JOBS_TRIES; i++)
        if (!poll_sleep(JOBS_SLEEP_MS, b->session->provider->host.cancel_fd, &err))
            return 1;
    return 0;
}

int abx_remove_agent(abx_sandbox *b, int force, int *removed, abx_error *e)
{
    int  n = 0;
    ABX_UNSET Err err;
    bool ok = jobs__remove(b, &n, &err);

    /* Asking for jobs carries the agent there: only where there are some. */
    if (!ok && err.code == E8003 && force) {
        if (abx_jobs(b, jobs__end, b, e) != 0)
            return -1;
        /* What has just ended takes its socket away a moment later. */
        for (int i = 0; !(ok = jobs__remove(b, &n, &err)) && err.code == E8003 && i < JOBS_TRIES; i++)
            if (!poll_sleep(JOBS_SLEEP_MS, b->session->provider->host.cancel_fd, &err))
                break;
    }
    if (removed)
        *removed = n;
    return ok ? 0 : error_give(e, &err);
}
