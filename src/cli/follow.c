#include "cli/follow.h"

#include <poll.h>

#include "base/str.h"
#include "os/poll.h"
#include "os/signal.h"

typedef struct Follow {
    Run      *run;
    abx_exec *x;
    Shape    *shape;
    Input    *in;
    const FollowJob *job;
    uint64_t  seen;             /* of what the job has printed */
    bool      enough;           /* all of it that was asked for */
    abx_event exit;
    abx_error why;
    bool      ended;            /* `exit` is how */
    bool      failed;           /* `why` the result is not known */
    bool      held;             /* its output is held back, and events still come */
    bool      blind;            /* nothing more can be taken, not even events */
    bool      more;             /* events may be there at once */
    bool      killed;
    Deadline  kill_at, leave_at;
} Follow;

enum {
    FOLLOW_ON = -1,             /* no exit status yet */
    FOLLOW_FAILED = 125,
    FOLLOW_BLOCK = 256 << 10,   /* as much is taken before everything else is looked at */
    FOLLOW_EVENT = 64,          /* what an event counts for besides its bytes */
    FOLLOW_GRACE_MS = 2000,
};

/* Nothing more comes from the command. */
static bool follow__over(const Follow *f)
{
    return f->ended || f->failed || f->enough;
}

/* ---- ways out ---- */

static void follow__kill(Follow *f)
{
    ABX_UNSET abx_error e;

    f->killed = true;
    bool asked = abx_exec_kill(f->x, &e) == 0;
    f->leave_at = clock_after(FOLLOW_GRACE_MS);
    if (!asked && e.kind != ABX_CANCELLED)
        output_notice(&f->run->out, arena_fmt(f->run->a, "the command may still run: %s", e.message).p);
}

/* Something here went wrong: the remote command is stopped, too. */
static int follow__stop(Follow *f, const Err *err)
{
    if (!follow__over(f) && !f->killed && !f->job)
        follow__kill(f);
    return run_fail_own(f->run, err);
}

/* Its input cannot be sent after all. */
static int follow__refused(Follow *f)
{
    follow__kill(f);
    return run_fail(f->run, &f->why);
}

static int follow__leave(Follow *f)
{
    ABX_UNSET Err err;

    if (f->run->passes)
        return FOLLOW_FAILED;   /* the signal decides the status in the end */
    err_set(&err, ERR_CANCELLED, E0000, "interrupted");
    return run_fail_own(f->run, &err);
}

/* Something came to an input that the command could not be given. It would have
 * been refused, had it been there in time. */
static bool follow__lost_input(Follow *f, Err *err)
{
    ABX_UNSET Err unheard;

    if (!f->in || !f->in->unsent || (input_fd(f->in) >= 0 && !input_read(f->in, &unheard)) || !f->in->rest.n)
        return false;
    err_set(err, ERR_REMOTE, E8004, "the command got none of what came on standard input: the backend's own calls cannot "
            "send it");
    err_hint(err, "Put `</dev/null` behind the command if it needs none.");
    return true;
}

static int follow__finish(Follow *f)
{
    ABX_UNSET Err err;

    if (f->ended && follow__lost_input(f, &err))
        return run_fail_own(f->run, &err);
    if (f->ended)
        return f->shape->end(f->shape, &f->exit);
    if (f->enough)
        return 0;
    if (f->run->signal && f->run->passes)
        return FOLLOW_FAILED;
    return run_fail(f->run, &f->why);
}

/* ---- signals ---- */

static int follow__signals(Follow *f)
{
    ABX_UNSET abx_error e;
    bool      before = f->run->signal != 0;
    int       number = before ? signal_next() : run_signal(f->run);

    if (number && (before || f->job || follow__over(f)))
        return follow__leave(f);
    if (number)
        f->kill_at = abx_exec_signal(f->x, number, &e) == 0 ? clock_after(FOLLOW_GRACE_MS) : clock_mono_ms();
    if (f->leave_at != DEADLINE_NONE && clock_passed(f->leave_at)) {
        output_notice(&f->run->out, "the command may still run: nothing was heard of its end");
        return follow__leave(f);
    }
    if (f->kill_at != DEADLINE_NONE && !f->killed && !follow__over(f) && clock_passed(f->kill_at))
        follow__kill(f);
    return FOLLOW_ON;
}

/* ---- the command ---- */

static void follow__see(Follow *f, uint64_t bytes)
{
    f->seen += bytes;
    f->enough = f->job && f->seen >= f->job->until;
}

static bool follow__event(Follow *f, const abx_event *event, Err *err)
{
    switch (event->kind) {
    case ABX_STDOUT:
    case ABX_STDERR:
        if (!f->shape->take(f->shape, event->kind == ABX_STDOUT ? 1 : 2, (Str){event->bytes, event->size}, err))
            return false;
        follow__see(f, event->size);
        return true;
    case ABX_REPLAY:
        if (event->offset && f->job && !f->job->silent)
            output_notice(&f->run->out, arena_fmt(f->run->a, "what came before byte %llu is not kept any more",
                                                  (unsigned long long)event->offset).p);
        follow__see(f, event->offset);
        return true;
    case ABX_EXIT:
        f->ended = true;
        f->exit = *event;
        f->shape->last(f->shape, event);
        return true;
    case ABX_STARTED:
    case ABX_DETACHED:
        return true;
    }
    return true;
}

/* Whether events can be taken now. */
static bool follow__may_take(Follow *f)
{
    bool full = outbox_full(&f->shape->box);

    if (f->held != full)
        f->held = abx_exec_hold(f->x, full) && full;
    f->blind = full && !f->held;
    return !f->blind;
}

static bool follow__step(Follow *f, Err *err)
{
    abx_event event;

    f->more = true;
    for (size_t taken = 0; taken < FOLLOW_BLOCK && !follow__over(f) && follow__may_take(f); taken += event.size + FOLLOW_EVENT) {
        int got = abx_exec_next(f->x, 0, &event, &f->why);
        f->failed = got < 0 && f->why.kind != ABX_CANCELLED;
        f->more = got > 0;
        if (got <= 0)
            return true;
        if (!follow__event(f, &event, err))
            return false;
    }
    return true;
}

/* ---- waiting ---- */

static Deadline follow__until(const Follow *f, const abx_want *want, bool over)
{
    Deadline d = f->leave_at;

    if (over)
        return d;
    if (!f->killed)
        d = clock_sooner(d, f->kill_at);
    /* Room has come: nothing else would say so. */
    if ((f->blind || f->held) && !outbox_full(&f->shape->box))
        return clock_mono_ms();
    if (f->blind)
        return d;
    if (f->more || want->fd < 0)
        return clock_mono_ms();
    return want->wait_ms < 0 ? d : clock_sooner(d, clock_after(want->wait_ms));
}

static bool follow__wait(Follow *f, Err *err)
{
    bool     over = follow__over(f);
    /* Room that was just made is worth a word to the agent, which waits for one. */
    if (!over)
        follow__may_take(f);
    abx_want want = over || f->blind ? (abx_want){.fd = -1} : abx_exec_want(f->x);
    struct pollfd fds[] = {
        {.fd = want.fd, .events = want.events},
        {.fd = f->in && !over ? input_fd(f->in) : -1, .events = POLLIN},
        {.fd = outbox_fd(&f->shape->box), .events = POLLOUT},
        {.fd = f->run->out.cancel_fd, .events = POLLIN},
        {.fd = -1},             /* poll_wait()'s own */
    };

    if (!poll_wait(fds, COUNT_OF(fds) - 1, -1, follow__until(f, &want, over), err))
        return err->kind == ERR_TIMEOUT;
    return !fds[1].revents || input_read(f->in, err);
}

int follow_to_end(Run *r, abx_exec *x, Shape *s, Input *in, const FollowJob *job)
{
    Follow f = {.run = r, .x = x, .shape = s, .in = in, .job = job, .kill_at = DEADLINE_NONE, .leave_at = DEADLINE_NONE};
    ABX_UNSET Err err;

    for (;;) {
        int status = follow__signals(&f);
        if (status != FOLLOW_ON)
            return status;
        if ((!follow__over(&f) && !follow__step(&f, &err)) || !outbox_flush(&s->box, &err))
            return follow__stop(&f, &err);
        if (follow__over(&f) && outbox_empty(&s->box))
            return follow__finish(&f);
        if (in && !follow__over(&f) && input_give(in, x, &f.why) != 0)
            return follow__refused(&f);
        if (!follow__wait(&f, &err))
            return follow__stop(&f, &err);
    }
}
