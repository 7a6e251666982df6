#include "agent/keeper.h"

#include "base/limits.h"
#include "base/mem.h"
#include "os/proc.h"
#include "os/signal.h"

#include <signal.h>

static void keeper__signals(LoopWatch *w, short revents)
{
    Keeper *k = w->owner;
    int     signo, status;
    pid_t   pid;

    (void)revents;
    while ((signo = signal_next()) != 0)
        if (signo == SIGTERM)
            k->ending = true;
    while (proc_reap(&pid, &status))
        program_reaped(&k->program, pid, status);
}

static void keeper__tick(LoopWatch *w, short revents)
{
    (void)w;
    (void)revents;
}

static void keeper__age(Keeper *k)
{
    int64_t now = clock_mono_ms(), step = now - k->last;

    k->awake += step < LIMIT_CARRY_STEP_MS ? step : LIMIT_CARRY_STEP_MS;
    k->last = now;
}

/* Those who are gone; the client's going may be the command's end. */
static void keeper__sweep(Keeper *k)
{
    for (Visitor **at = &k->visitors; *at;) {
        Visitor *v = *at;
        bool     was_client = k->client == v;
        if (was_client && (v->left || v->state >= VISITOR_TOLD))
            k->client = NULL;               /* it has all that it wants */
        if (v->state != VISITOR_GONE) {
            at = &v->next;
            continue;
        }
        if (was_client)
            k->client = NULL;
        *at = v->next;
        visitor_free(v);
    }
    if (k->client || !k->program.pid)
        k->alone_since = 0;
    else if (!k->alone_since)
        k->alone_since = k->awake;
    if (k->alone_since && !k->job.stays && k->awake - k->alone_since >= k->hold_ms)
        program_kill(&k->program);
}

/* Let everything go as far as it goes; when to come again. */
static int64_t keeper__turn(Keeper *k)
{
    Program *p = &k->program;
    int64_t  next;
    uint64_t printed;
    bool     done;

    if (k->ending)
        program_kill(p);
    do {
        printed = p->ring.end;
        done = program_done(p);
        for (Visitor *v = k->visitors; v; v = v->next)
            visitor_step(v);
        keeper__sweep(k);
        bool live = k->client && k->client->state == VISITOR_ON;
        p->keep = live ? k->client->at.offset : p->ring.end;
        p->hold = live && p->ring.end - p->keep >= 2 * LIMIT_COPY_BLOCK;
        if (live && p->pid && !k->job.id[0] && p->keep == p->ring.end)
            ring_rewind(&p->ring);
        next = program_step(p, k->awake);
    } while (p->ring.end != printed || program_done(p) != done);
    if (done && !k->job.ended) {
        k->job.ended = clock_unix_ms() / 1000;
        k->ended_at = k->awake;
    }
    return next;
}

/* For one without a terminal nobody comes back who is not there soon. */
static bool keeper__held(const Keeper *k)
{
    int64_t from = k->ended_at > k->alone_since ? k->ended_at : k->alone_since;

    return k->awake - k->alone_since < k->hold_ms && (k->program.tty || k->awake - from < LIMIT_CARRY_ENDED_MS);
}

/* Somebody is here, or may come. */
static bool keeper__goes_on(const Keeper *k)
{
    const Program *p = &k->program;

    if (k->visitors || (p->pid && !program_done(p)))
        return true;
    if (!p->pid || k->ending || !k->job.id[0])
        return false;
    return k->job.stays || keeper__held(k);
}

static bool keeper__wait(Keeper *k, int64_t next)
{
    int64_t left = next == DEADLINE_NONE ? next : next - k->awake;
    bool    timed = k->visitors || (k->alone_since && !k->job.stays);
    ABX_UNSET Err err;

    if (timed || next != DEADLINE_NONE)
        left = left < LIMIT_CARRY_STEP_MS ? left : LIMIT_CARRY_STEP_MS;
    k->tick.deadline = left == DEADLINE_NONE ? DEADLINE_NONE : clock_after(left);
    bool ok = loop_turn(&k->loop, &err);
    keeper__age(k);
    return ok;
}

/* Children that were left may print as long as they like. */
static void keeper__linger(Keeper *k)
{
    ABX_UNSET Err err;

    k->tick.deadline = DEADLINE_NONE;
    ring_free(&k->program.ring);
    while (!k->ending && program_forget(&k->program) && loop_turn(&k->loop, &err))
        continue;
}

void keeper_run(const KeeperWish *wish)
{
    static const int signals[] = {SIGCHLD, SIGTERM};
    Keeper *k = mem_new(sizeof *k);
    ABX_UNSET Err err;

    *k = (Keeper){.last = clock_mono_ms(), .awake = 1, .cwd = wish->cwd, .pid = wish->pid};
    k->signals = (LoopWatch){.events = POLLIN, .deadline = DEADLINE_NONE, .wake = keeper__signals, .owner = k};
    k->tick = (LoopWatch){.fd = -1, .deadline = DEADLINE_NONE, .wake = keeper__tick, .owner = k};
    signal_ignore_writes();
    if (signal_catch(signals, COUNT_OF(signals), &k->signals.fd, &err)) {
        loop_add(&k->loop, &k->signals);
        loop_add(&k->loop, &k->tick);
        visitor_make(k, wish->fd, wish->web, false, wish->first, wish->rest);
        for (int64_t next = keeper__turn(k); keeper__goes_on(k) && keeper__wait(k, next); next = keeper__turn(k))
            continue;
        job_close(&k->job);
        keeper__linger(k);
    }
    program_free(&k->program);
    loop_free(&k->loop);
    mem_free(k);
}
