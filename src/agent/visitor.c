#include "agent/visitor.h"

#include "agent/keeper.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { VISITOR_PIECE = FRAME_PAYLOAD - FRAME_HEAD };    /* with its head a message of 64 KiB */

static void visitor__state(Visitor *v, VisitorState state)
{
    v->state = state;
    v->since = v->keeper->awake;
}

static void visitor__put(Visitor *v, Buf *frames)
{
    link_put(&v->link, buf_str(frames));
    v->spoke = v->keeper->awake;
    buf_free(frames);
}

static void visitor__put_u64(Visitor *v, FrameType type, uint64_t value)
{
    Buf b = buf_make(64);

    frame_put_u64(&b, type, 0, value);
    visitor__put(v, &b);
}

/* Nothing more is said, and nothing is listened to. */
static void visitor__bye(Visitor *v)
{
    link_bye(&v->link);
    visitor__state(v, VISITOR_BYE);
}

static void visitor__told(Visitor *v)
{
    visitor__state(v, VISITOR_TOLD);
    if (v->deaf)
        visitor__bye(v);
}

void visitor_fail(Visitor *v, FrameStage stage, int sys, Str text)
{
    FrameFail fail = {stage, (uint32_t)sys, text};
    Buf       b = buf_make(2 * FRAME_FAIL_TEXT);

    frame_put_fail(&b, 0, &fail);
    visitor__put(v, &b);
    visitor__told(v);
}

static void visitor__started(Visitor *v, uint32_t pid)
{
    FrameStarted s = {pid, str_from(v->keeper->job.id)};
    Buf          b = buf_make(64);

    if (!pid)
        s.job = (Str){0};
    frame_put_started(&b, 0, &s);
    visitor__put(v, &b);
}

static void visitor__exit(Visitor *v, const FrameExit *x)
{
    Buf b = buf_make(64);

    frame_put_exit(&b, x);
    visitor__put(v, &b);
    visitor__told(v);
}

static void visitor__hello(Visitor *v)
{
    struct utsname u;
    ABX_UNSET char text[128];
    Buf            b = buf_make(512);
    FrameHello     h = {.window = LIMIT_CARRY_INPUT, .pid = v->keeper->pid, .uid = (uint32_t)geteuid()};

    if (uname(&u) != 0)
        u.machine[0] = '\0';
    h.text = (Str){text, (size_t)snprintf(text, sizeof text, "linux %.64s abx " ABX_VERSION, u.machine)};
    frame_put_preamble(&b, v->reader.run);
    frame_put_agent_hello(&b, &h);
    visitor__put(v, &b);
}

/* ---- START ---- */

/* The program is this visitor's now; what comes from `offset` on goes to it. */
static void visitor__join(Visitor *v, uint64_t offset)
{
    Program *p = &v->keeper->program;

    v->at = ring_place(&p->ring, offset);
    v->data_from = (int64_t)(p->taken + (p->queue.n - p->queue_at));
    if (!v->looks_on) {
        v->owner = true;
        v->keeper->job.stays = v->keeper->job.asked;    /* what was left has somebody again */
        v->keeper->client = v;
        v->keeper->alone_since = 0;
    }
    visitor__state(v, VISITOR_ON);
}

static void visitor__run(Visitor *v, const FrameStart *s, Arena scratch)
{
    Keeper   *k = v->keeper;
    FrameFail fail;
    int       sys;

    if (v->local) {
        visitor_fail(v, FRAME_AT_START, EINVAL, STR("here is a job already"));
        return;
    }
    k->job.asked = k->job.stays = (s->flags & FRAME_START_JOB) != 0;
    k->hold_ms = (int64_t)s->hold_s * 1000;
    bool named = k->job.stays || s->kind == FRAME_PTY || k->hold_ms;
    job_name(&k->job, s, scratch);
    if (named && (sys = job_open(&k->job, k)) != 0 && (k->job.stays || k->hold_ms)) {
        visitor_fail(v, FRAME_AT_START, sys, STR("no socket for a job in the agent's folder"));
        return;
    }
    if (!program_start(&k->program, &k->loop, s, k->cwd, scratch, &fail)) {
        job_close(&k->job);
        visitor_fail(v, fail.stage, (int)fail.sys, fail.text);
        return;
    }
    visitor__started(v, (uint32_t)k->program.pid);
    visitor__join(v, 0);
}

/* A later client of the job here. */
static void visitor__attach(Visitor *v, const FrameStart *s)
{
    Keeper *k = v->keeper;
    size_t  watchers = 0;

    v->looks_on = (s->flags & FRAME_START_WATCH) != 0;
    for (Visitor *o = k->visitors; o; o = o->next)
        watchers += o != v && o->looks_on;
    if (v->looks_on && watchers >= LIMIT_CARRY_WATCHERS) {
        visitor_fail(v, FRAME_AT_ATTACH, EBUSY, STR("too many look on already"));
        return;
    }
    if (s->offset > k->program.ring.end) {
        visitor_fail(v, FRAME_AT_ATTACH, EINVAL, STR("it has not printed so much"));
        return;
    }
    if (!v->looks_on && k->client) {
        if (!(s->flags & FRAME_START_TAKE)) {
            visitor_fail(v, FRAME_AT_ATTACH, EBUSY, STR("somebody has it"));
            return;
        }
        visitor_fail(k->client, FRAME_AT_ATTACH, EBUSY, STR("another client took it"));
    }
    visitor__started(v, (uint32_t)k->program.pid);
    visitor__join(v, s->offset);
    visitor__put_u64(v, FRAME_REPLAY, v->at.offset);
    if (!v->looks_on)
        program_resize(&k->program, s->cols, s->rows);
}

static void visitor__control(Visitor *v, const FrameStart *s)
{
    static const FrameExit done = {.how = FRAME_ENDED_CODE};
    Keeper  *k = v->keeper;
    bool     over = program_done(&k->program);
    uint64_t number;

    if (s->argv.n == 1 && str_eq(s->argv.v[0], STR("forget"))) {
        if (!over) {
            visitor_fail(v, FRAME_AT_ATTACH, EBUSY, STR("it still runs"));
            return;
        }
        k->job.stays = false;
        k->hold_ms = 0;
    } else if (s->argv.n == 2 && str_eq(s->argv.v[0], STR("signal")) && num_u64(s->argv.v[1], &number) && number >= 1 &&
               number <= 64) {
        if (k->program.ended) {
            visitor_fail(v, FRAME_AT_ATTACH, ESRCH, STR("it has ended"));
            return;
        }
        program_signal(&k->program, (int)number, k->program.tty ? FRAME_TO_SESSION : FRAME_TO_GROUP);
    } else {
        visitor_fail(v, FRAME_AT_START, EINVAL, STR("signal N, or forget"));
        return;
    }
    visitor__started(v, 0);
    visitor__exit(v, &done);
}

static void visitor__jobs(Visitor *v)
{
    Keeper *k = v->keeper;
    Buf     lines = buf_make(RING_BYTES), frames = buf_make(LIMIT_COPY_BLOCK);

    visitor__started(v, 0);
    if (v->local) {
        job_line(k, &lines);
        frame_put(&frames, FRAME_OUT, 0, buf_str(&lines));
        visitor__put(v, &frames);
        visitor__exit(v, &(FrameExit){.out = lines.n});
    } else {
        bool whole = job_list(&lines);
        program_said(&k->program, buf_str(&lines), whole ? 0 : 1);
        visitor__join(v, 0);
    }
    buf_free(&lines);
}

/* ---- a relay ---- */

static void visitor__far_bytes(void *ctx, Str bytes)
{
    Visitor *v = ctx;

    link_put(&v->link, bytes);
    link_flush(&v->link);
}

static void visitor__far_ended(void *ctx)
{
    Visitor *v = ctx;

    if (v->state == VISITOR_FAR)
        visitor__bye(v);
}

/* Hand this conversation on to the keeper of `job`, from its beginning. */
static void visitor__go_far(Visitor *v, Str job, Str rest)
{
    static const LinkOwner owner = {.bytes = visitor__far_bytes, .ended = visitor__far_ended};
    int        fd = job_connect(job);
    Buf        b = buf_make(2 * FRAME_PAYLOAD);
    FrameHello hello = {.window = v->window};

    if (fd < 0 || v->start.n > FRAME_PAYLOAD) {
        visitor_fail(v, FRAME_AT_ATTACH, fd < 0 ? errno : EINVAL, STR("there is no such job"));
        if (fd >= 0)
            close(fd);
        return;
    }
    frame_put_preamble(&b, v->reader.run);
    frame_put_hello(&b, &hello);
    frame_put(&b, FRAME_START, 0, buf_str(&v->start));
    buf_add(&b, rest);
    link_open(&v->far, &v->keeper->loop, fd, false, &owner, v);
    visitor__state(v, VISITOR_FAR);
    link_put(&v->far, buf_str(&b));
    link_flush(&v->far);
    buf_free(&b);
}

/* All of START is there; `rest` is what came behind it. */
static void visitor__start(Visitor *v, Str *rest)
{
    Keeper    *k = v->keeper;
    Arena      a = arena_make(LIMIT_CARRY_START);
    FrameStart s;
    ABX_UNSET Err err;

    visitor__state(v, VISITOR_ON);
    if (!frame_start(buf_str(&v->start), &a, &s, &err)) {
        visitor_fail(v, FRAME_AT_START, EINVAL, str_from(err.text));
        arena_free(&a);
        return;
    }
    v->deaf = (s.flags & FRAME_START_NO_ACK) != 0;
    bool here = v->local && k->job.id[0];
    if (s.kind == FRAME_EXEC || s.kind == FRAME_PTY || s.kind >= FRAME_TAR_IN) {
        visitor__run(v, &s, a);
    } else if (s.kind == FRAME_JOBS) {
        visitor__jobs(v);
    } else if (s.kind == FRAME_ATTACH || s.kind == FRAME_CONTROL) {
        if (!here) {
            visitor__go_far(v, s.job, *rest);
            *rest = (Str){0};
        } else if (s.kind == FRAME_ATTACH) {
            visitor__attach(v, &s);
        } else {
            visitor__control(v, &s);
        }
    } else {
        visitor_fail(v, FRAME_AT_START, EINVAL, STR("not on this channel"));
    }
    buf_free(&v->start);
    arena_free(&a);
}

/* ---- frames ---- */

static bool visitor__data(Visitor *v, const Frame *f)
{
    Program *p = &v->keeper->program;
    int64_t  taken = (int64_t)p->taken - v->data_from;

    /* Below 0: what the client before sent is still waiting, and one who comes
     * after two who filled their windows is too many. */
    v->data += f->payload.n;
    if (v->state == VISITOR_ON && ((int64_t)v->data - (taken > 0 ? taken : 0) > (int64_t)LIMIT_CARRY_INPUT ||
                                   p->queue.n - p->queue_at + f->payload.n > 2 * LIMIT_CARRY_INPUT))
        return false;
    if (v->state == VISITOR_ON)
        program_write(p, f->payload);
    return true;
}

static bool visitor__detach(Visitor *v)
{
    Keeper *k = v->keeper;

    if (v->state != VISITOR_ON || !k->program.pid)
        return v->state == VISITOR_TOLD;
    if (!v->looks_on && !k->job.id[0] && job_open(&k->job, k) != 0)
        return false;
    k->job.stays = k->job.stays || !v->looks_on;
    v->left = true;
    visitor__bye(v);
    return true;
}

/* A frame on channel 0 while something runs, or has just ended. False: no
 * honest client sends it. */
static bool visitor__frame(Visitor *v, const Frame *f)
{
    Program    *p = &v->keeper->program;
    bool        on = v->state == VISITOR_ON;
    int         number;
    FrameTarget to;
    uint16_t    cols, rows;
    uint64_t    value;

    if (v->looks_on && f->type != FRAME_CREDIT && f->type != FRAME_ACK && f->type != FRAME_DETACH)
        return false;
    switch ((FrameType)f->type) {
    case FRAME_DATA: return visitor__data(v, f);
    case FRAME_EOF:
        if (on)
            program_end_input(p);
        return f->payload.n == 0;
    case FRAME_SIGNAL:
        if (!frame_signal(f, &number, &to))
            return false;
        if (on)
            program_signal(p, number, to);
        return true;
    case FRAME_RESIZE:
        if (!frame_resize(f, &cols, &rows))
            return false;
        if (on)
            program_resize(p, cols, rows);
        return true;
    case FRAME_CREDIT:
        if (!frame_u64(f, &value) || value > v->sent || value < v->credited)
            return false;
        v->credited = value;
        return true;
    case FRAME_ACK:
        /* The client knows the end: nobody else will come for it. */
        if (v->owner && !v->keeper->job.stays && !v->keeper->client && program_done(p))
            v->keeper->hold_ms = 0;
        if (!on)
            visitor__bye(v);
        return !on;
    case FRAME_DETACH: return visitor__detach(v);
    case FRAME_KILL:
        if (on)
            program_kill(p);
        return true;
    case FRAME_HELLO: case FRAME_START: case FRAME_PING: case FRAME_AGENT_HELLO: case FRAME_STARTED: case FRAME_OUT:
    case FRAME_ERR: case FRAME_AGENT_EOF: case FRAME_EXIT: case FRAME_FAIL: case FRAME_AGENT_CREDIT: case FRAME_PONG:
    case FRAME_REPLAY: case FRAME_NOTE: return false;
    }
    return false;
}

/* ---- forwarded connections ---- */

static size_t visitor__room(void *ctx)
{
    const Visitor *v = ctx;

    return link_room(&v->link);
}

static void visitor__say(void *ctx, Str frames)
{
    Visitor *v = ctx;

    link_put(&v->link, frames);
    v->spoke = v->keeper->awake;
}

static bool visitor__channel(Visitor *v, const Frame *f)
{
    ABX_UNSET Err err;

    if (v->state == VISITOR_START) {
        v->channels = channels_make(&(ChannelsLink){visitor__room, visitor__say, v, &v->keeper->loop});
        visitor__state(v, VISITOR_FORWARD);
    }
    return v->state == VISITOR_FORWARD && !(f->flags & FRAME_MORE) && channels_frame(v->channels, f, &err);
}

/* The next frame, whatever the state. */
static bool visitor__take(Visitor *v, const Frame *f, Str *rest)
{
    FrameHello hello;
    uint64_t   value;

    if (f->type == FRAME_PING) {
        if (!frame_u64(f, &value))
            return false;
        visitor__put_u64(v, FRAME_PONG, value);
        if (v->state == VISITOR_START)
            v->since = v->keeper->awake;        /* it waits for somebody whose connection is to be forwarded */
        return true;
    }
    if (v->state == VISITOR_HELLO) {
        if (f->type != FRAME_HELLO || !frame_hello(f, &hello))
            return false;
        v->window = hello.window;
        if (!v->local)
            visitor__hello(v);
        visitor__state(v, VISITOR_START);
        return true;
    }
    if (f->channel != 0)
        return visitor__channel(v, f);
    if (v->state == VISITOR_FORWARD)
        return false;
    if (v->state != VISITOR_START)
        return visitor__frame(v, f);
    if (f->type != FRAME_START || v->start.n + f->payload.n > FRAME_START_BYTES)
        return false;
    buf_add(&v->start, f->payload);
    if (!(f->flags & FRAME_MORE))
        visitor__start(v, rest);
    return true;
}

static void visitor__bytes(void *ctx, Str in)
{
    Visitor *v = ctx;
    Frame    f;
    ABX_UNSET Err err;
    Step     step;

    v->heard = v->keeper->awake;
    while (v->state < VISITOR_FAR && (step = frame_next(&v->reader, &in, &f, &err)) != STEP_MORE)
        if (step == STEP_ERR || !visitor__take(v, &f, &in))
            visitor__state(v, VISITOR_GONE);
    if (v->state == VISITOR_FAR && in.n) {
        link_put(&v->far, in);
        link_flush(&v->far);
    }
}

/* ---- each turn ---- */

/* The next frames for one message, each in two parts; how many parts. */
static int visitor__pieces(Visitor *v, char heads[][FRAME_HEAD], Str parts[static LINK_PARTS])
{
    Ring  *r = &v->keeper->program.ring;
    int    n = 0;
    bool   is_err;

    for (size_t room = link_room(&v->link); n < LINK_PARTS && room > VISITOR_PIECE; n += 2) {
        uint64_t window = v->deaf ? VISITOR_PIECE : v->window - (v->sent - v->credited);
        if (!window)
            break;
        if (v->at.offset < r->base) {
            v->at = ring_place(r, r->base);
            visitor__put_u64(v, FRAME_REPLAY, r->base);
        }
        Str piece = ring_piece(r, &v->at, window < VISITOR_PIECE ? (size_t)window : VISITOR_PIECE, &is_err);
        if (!piece.n)
            break;
        frame_head(heads[n / 2], is_err ? FRAME_ERR : FRAME_OUT, 0, piece.n);
        parts[n] = (Str){heads[n / 2], FRAME_HEAD};
        parts[n + 1] = piece;
        room -= FRAME_HEAD + piece.n;
        ring_pass(&v->at, piece.n);
        v->sent += piece.n;
        v->spoke = v->keeper->awake;
    }
    return n;
}

/* What is in the ring, as far as the window and the link have room. */
static void visitor__output(Visitor *v)
{
    char heads[LINK_PARTS / 2][FRAME_HEAD];
    Str  parts[LINK_PARTS];
    int  n;

    while ((n = visitor__pieces(v, heads, parts)) > 0)
        link_push(&v->link, parts, n);
}

static void visitor__on(Visitor *v)
{
    Program  *p = &v->keeper->program;
    FrameExit x;

    visitor__output(v);
    int64_t taken = (int64_t)p->taken - v->data_from;
    if (!v->deaf && taken - v->data_told >= (int64_t)LIMIT_CARRY_INPUT / 2) {
        visitor__put_u64(v, FRAME_AGENT_CREDIT, (uint64_t)taken);
        v->data_told = taken;
    }
    if (program_done(p) && v->at.offset == p->ring.end) {
        program_exit(p, &x);
        visitor__exit(v, &x);
    }
}

/* Bytes wait at one end for the other one to take some. */
static void visitor__far_step(Visitor *v)
{
    link_pause(&v->far, link_room(&v->link) == 0);
    link_pause(&v->link, link_room(&v->far) == 0);
}

void visitor_step(Visitor *v)
{
    int64_t now = v->keeper->awake;

    if (v->state == VISITOR_ON)
        visitor__on(v);
    if (v->state == VISITOR_FAR)
        visitor__far_step(v);
    if (v->state < VISITOR_FAR && v->state != VISITOR_HELLO && now - v->spoke >= FRAME_PING_MS)
        visitor__put_u64(v, FRAME_PONG, 0);
    if (v->state == VISITOR_FORWARD)
        channels_room(v->channels);
    link_flush(&v->link);
    bool waits = v->state == VISITOR_HELLO || v->state == VISITOR_START || v->state == VISITOR_BYE;
    if ((waits && now - v->since > LIMIT_CARRY_WAIT_MS) || (v->state == VISITOR_BYE && link_idle(&v->link)) ||
        (v->state < VISITOR_FAR && !v->deaf && now - v->heard > FRAME_SILENCE_MS) || v->link.broken)
        visitor__state(v, VISITOR_GONE);
    if (v->state == VISITOR_TOLD && now - v->since > FRAME_ACK_MS)
        visitor__bye(v);
}

/* ---- life ---- */

static void visitor__ended(void *ctx)
{
    Visitor *v = ctx;

    /* One who never had a voice may have closed its side. */
    if (v->deaf && !v->link.broken)
        return;
    visitor__state(v, VISITOR_GONE);
}

Visitor *visitor_make(Keeper *k, int fd, bool web, bool local, Str first, Str rest)
{
    static const LinkOwner owner = {.bytes = visitor__bytes, .ended = visitor__ended};
    Visitor *v = mem_new(sizeof *v);

    *v = (Visitor){.next = k->visitors, .keeper = k, .reader = frame_reader_agent(), .local = local,
                   .start = buf_make(FRAME_START_BYTES), .since = k->awake, .heard = k->awake, .spoke = k->awake};
    v->reader.pieces = true;
    k->visitors = v;
    link_open(&v->link, &k->loop, fd, web, &owner, v);
    if (first.n)
        visitor__bytes(v, first);
    link_feed(&v->link, rest);
    return v;
}

void visitor_free(Visitor *v)
{
    channels_free(v->channels);
    link_close(&v->link);
    if (v->far.loop)
        link_close(&v->far);
    frame_reader_free(&v->reader);
    buf_free(&v->start);
    mem_free(v);
}
