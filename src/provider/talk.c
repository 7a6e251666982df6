#include "provider/talk.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/clean.h"
#include "os/random.h"

#include <poll.h>
#include <stdio.h>

enum {
    TALK_BLOCK = 4 * FRAME_PAYLOAD,     /* read at once: most frames are whole in it, and are not copied */
    TALK_SCRATCH = 64 << 10,            /* to clean a text of the sandbox's for the trace */
};

typedef enum TalkState {
    TALK_UNUSED,
    TALK_STARTING,      /* START was said: STARTED or FAIL comes next */
    TALK_RUNNING,
    TALK_RESET,         /* ours: what still comes is passed over */
    TALK_ENDED,         /* EXIT, FAIL, or a forward's two EOFs */
} TalkState;

typedef struct TalkChannel {
    TalkState state;
    bool      used;             /* before this start: late frames of its former life may come */
    bool      closed;           /* our EOF was said */
    bool      heard_eof;        /* theirs came */
    uint32_t  window;           /* of OUT and ERR, ours; */
    uint32_t  room;             /* of DATA, theirs */
    uint64_t  sent, credited;   /* DATA */
    uint64_t  got[2];           /* OUT, ERR */
    uint64_t  taken, told;      /* of both: used, and said so by CREDIT */
} TalkChannel;

struct Talk {
    Carried       link;
    Provider     *p;
    char         *id;           /* the sandbox's; NULL: it cannot be asked for */
    bool          paused;       /* it was when it was asked last */
    FrameReader   reader;
    char         *block;
    Str           rest;         /* of block: not looked at yet */
    Buf           out;
    size_t        sent;         /* of out */
    bool          mute;         /* the link takes no more: there may be an EXIT to read all the same */
    bool          over;         /* the last event, or a failure, was given */
    bool          ending;       /* `last` is to be given when the ACK has gone out */
    bool          let_go;       /* DETACH is said, */
    bool          told;         /* and has gone out */
    TalkEvent     last;
    Deadline      end_by;       /* for the ACK, or the agent's leaving */
    FrameKind     kind;         /* FRAME_FORWARD: nothing on channel 0 */
    uint64_t      replayed;     /* how much of its output is not in this conversation */
    bool          replay_due;
    TalkChannel  *channels;
    size_t        count;
    bool          greeted;
    FrameHello    hello;
    char          agent[LIMIT_TALK_HELLO + 1];
    Deadline      ping, silent;
};

/* ---- opening ---- */

/* Room for the channel, and the channel. */
static TalkChannel *talk__channel(Talk *t, uint16_t channel)
{
    if (channel >= t->count) {
        size_t n = (size_t)channel + 1 + t->count / 2;
        t->channels = mem_grow(t->channels, n, sizeof *t->channels);
        memset(t->channels + t->count, 0, (n - t->count) * sizeof *t->channels);
        t->count = n;
    }
    return &t->channels[channel];
}

static void talk__begin(TalkChannel *c, uint32_t window, uint32_t room)
{
    *c = (TalkChannel){.state = TALK_STARTING, .used = c->state != TALK_UNUSED, .window = window, .room = room};
}

/* What the agent may send before it hears of us again. */
static uint32_t talk__window(CarryWay way)
{
    return way == CARRY_LISTEN ? LIMIT_TALK_WINDOW : way == CARRY_PIPE ? LIMIT_TALK_WINDOW_PIPE : LIMIT_TALK_WINDOW_LINES;
}

typedef struct TalkFirst {
    const FrameStart    *start;
    const unsigned char *run;
} TalkFirst;

static bool talk__first(void *ctx, CarryWay way, bool deaf, Buf *to, Err *err)
{
    const TalkFirst *first = ctx;
    FrameStart       start = first->start ? *first->start : (FrameStart){0};

    if (deaf)
        start.flags |= FRAME_START_NO_ACK;
    frame_put_preamble(to, first->run);
    frame_put_hello(to, &(FrameHello){.window = talk__window(way)});
    return !first->start || frame_put_start(to, 0, &start, err);
}

CarryResult talk_open(Provider *p, Str id, const FrameStart *start, bool input, Talk **out, Deadline d, Err *err)
{
    unsigned char run[FRAME_RUN];
    TalkFirst     first = {start, run};
    CarryRequest  rq = {.input = input, .first = talk__first, .ctx = &first};
    Carried       link = {0};

    random_bytes(run, sizeof run);
    CarryResult r = carry_open(p, id, &rq, &link, d, err);
    if (r == CARRY_DONE)
        *out = talk_over(p, &link, run, start ? start->kind : FRAME_FORWARD);
    if (r == CARRY_DONE)
        (*out)->id = mem_str(id);
    return r;
}

Talk *talk_over(Provider *p, const Carried *link, const unsigned char run[static FRAME_RUN], FrameKind kind)
{
    Talk *t = mem_new(sizeof *t);

    *t = (Talk){.p = p, .link = *link, .kind = kind, .reader = frame_reader_client(run, link->noisy),
                .block = mem_new(TALK_BLOCK), .out = buf_make(FRAME_START_BYTES + LIMIT_TALK_OUT),
                .ping = DEADLINE_NONE, .end_by = DEADLINE_NONE, .silent = clock_after(FRAME_SILENCE_MS),
                .replay_due = kind == FRAME_ATTACH};
    if (kind != FRAME_FORWARD)
        talk__begin(talk__channel(t, 0), talk__window(link->way), 0);
    return t;
}

void talk_close(Talk *t)
{
    if (!t)
        return;
    carry_close(&t->link);
    frame_reader_free(&t->reader);
    buf_free(&t->out);
    mem_free(t->channels);
    mem_free(t->block);
    mem_free(t->id);
    mem_free(t);
}

/* ---- out ---- */

static bool talk__can_send(const Talk *t)
{
    return !t->link.deaf && !t->mute && !t->over && !t->ending;
}

static size_t talk__waiting(const Talk *t)
{
    return t->out.n - t->sent;
}

static void talk__flush(Talk *t)
{
    ABX_UNSET Err none;
    size_t n;

    while (talk__waiting(t) && !t->mute) {
        Step step = stream_write(t->link.stream, t->out.p + t->sent, talk__waiting(t), &n, &none);
        if (step == STEP_MORE)
            break;
        if (step == STEP_ERR)
            t->mute = true;     /* what the agent said before it left can still be read */
        else
            t->sent += n;
    }
    if (t->let_go && !t->mute && !talk__waiting(t))
        t->told = true;
    if (t->mute || t->sent == t->out.n) {
        buf_clear(&t->out);
        t->sent = 0;
    } else if (t->sent >= LIMIT_TALK_ROOM) {
        buf_drop(&t->out, t->sent);
        t->sent = 0;
    }
}

/* The channel where something can be said; NULL: it cannot. */
static TalkChannel *talk__open(Talk *t, uint16_t channel)
{
    TalkChannel *c = channel < t->count ? &t->channels[channel] : NULL;

    return c && talk__can_send(t) && (c->state == TALK_STARTING || c->state == TALK_RUNNING) ? c : NULL;
}

bool talk_start(Talk *t, uint16_t channel, const FrameStart *s, Err *err)
{
    TalkChannel *c = talk__channel(t, channel);

    if (t->kind != FRAME_FORWARD || !channel || c->state == TALK_STARTING || c->state == TALK_RUNNING)
        BUG("a channel that cannot be started");
    if (!talk__can_send(t))
        return true;            /* talk_next() says why */
    if (!frame_put_start(&t->out, channel, s, err))
        return false;
    talk__begin(c, FRAME_FORWARD_WINDOW, FRAME_FORWARD_WINDOW);
    return true;
}

size_t talk_write(Talk *t, uint16_t channel, Str bytes)
{
    TalkChannel *c = talk__open(t, channel);
    size_t       all = 0;

    if (!c || c->state != TALK_RUNNING || c->closed)
        return 0;
    while (bytes.n && talk__waiting(t) < LIMIT_TALK_ROOM) {
        uint64_t left = c->room - (c->sent - c->credited);
        size_t   n = bytes.n < FRAME_PAYLOAD ? bytes.n : FRAME_PAYLOAD;
        if (n > left)
            n = (size_t)left;
        if (!n)
            break;
        frame_put(&t->out, FRAME_DATA, channel, (Str){bytes.p, n});
        c->sent += n;
        all += n;
        str_skip(&bytes, n);
    }
    return all;
}

void talk_end(Talk *t, uint16_t channel)
{
    TalkChannel *c = talk__open(t, channel);

    if (!c || c->closed)
        return;
    c->closed = true;
    frame_put(&t->out, FRAME_EOF, channel, (Str){0});
    if (channel && c->heard_eof)
        c->state = TALK_ENDED;
}

void talk_taken(Talk *t, uint16_t channel, size_t n)
{
    TalkChannel *c = talk__channel(t, channel);

    if (c->taken + n > c->got[0] + c->got[1])
        BUG("more was taken than came");
    c->taken += n;
    if (!talk__open(t, channel) || c->taken - c->told < c->window / 4)
        return;
    c->told = c->taken;
    frame_put_u64(&t->out, FRAME_CREDIT, channel, c->told);
}

void talk_signal(Talk *t, int number, FrameTarget to)
{
    if (talk__open(t, 0))
        frame_put_signal(&t->out, number, to);
}

void talk_resize(Talk *t, int cols, int rows)
{
    if (talk__open(t, 0))
        frame_put_resize(&t->out, (uint16_t)cols, (uint16_t)rows);
}

void talk_kill(Talk *t)
{
    if (talk__open(t, 0))
        frame_put(&t->out, FRAME_KILL, 0, (Str){0});
}

void talk_detach(Talk *t)
{
    if (!talk__open(t, 0) || t->let_go)
        return;
    frame_put(&t->out, FRAME_DETACH, 0, (Str){0});
    t->let_go = true;
    t->end_by = clock_after(LIMIT_TALK_BYE_MS);
}

void talk_reset(Talk *t, uint16_t channel)
{
    TalkChannel *c = channel ? talk__open(t, channel) : NULL;

    if (!c)
        return;
    frame_put(&t->out, FRAME_KILL, channel, (Str){0});
    c->state = TALK_RESET;
}

/* ---- in ---- */

static const char *talk__loss(const Talk *t)
{
    return t->kind == FRAME_FORWARD ? "the forwarded connections are cut"
                       : "the command's result is unknown, and output may be missing";
}

static Step talk__over(Talk *t)
{
    t->over = true;
    return STEP_ERR;
}

static Step talk__hostile(Talk *t, const char *what, Err *err)
{
    err_set(err, ERR_INPUT, E8020, "the agent's conversation: %s: %s", what, talk__loss(t));
    return talk__over(t);
}

static Step talk__cut(Talk *t, const char *how, Err *err)
{
    err_set(err, ERR_CLOSED, E5000, "%s: %s", how, talk__loss(t));
    return talk__over(t);
}

static void talk__trace(const Talk *t, const char *what, Str text)
{
    const ProviderHost *host = &t->p->host;
    ABX_UNSET char line[ERR_TEXT_SIZE];

    if (!host->trace)
        return;
    Arena a = arena_make(TALK_SCRATCH);
    snprintf(line, sizeof line, "%s: %.*s", what, STR_ARG(clean_message(text, NULL, 0, &a)));
    host->trace(host->trace_ctx, line);
    arena_free(&a);
}

static Step talk__hello(Talk *t, const Frame *f, Err *err)
{
    if (t->greeted)
        return talk__hostile(t, "a second hello", err);
    if (!frame_hello(f, &t->hello) || t->hello.text.n >= sizeof t->agent)
        return talk__hostile(t, "a hello of another form", err);
    memcpy(t->agent, t->hello.text.p ? t->hello.text.p : "", t->hello.text.n);
    t->hello.text.p = t->agent;
    t->greeted = true;
    if (t->kind != FRAME_FORWARD)
        talk__channel(t, 0)->room = t->hello.window;
    if (!t->link.deaf)
        t->ping = clock_after(FRAME_PING_MS);
    talk__trace(t, "the agent says hello", t->hello.text);
    return STEP_MORE;
}

static bool talk__is_name(Str s)
{
    if (s.n > LIMIT_TALK_NAME)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_'))
            return false;
    }
    return true;
}

/* The last event of the conversation: it is acknowledged first. */
static Step talk__last(Talk *t, const TalkEvent *ev)
{
    if (talk__can_send(t))
        frame_put(&t->out, FRAME_ACK, 0, (Str){0});
    t->channels[0].state = TALK_ENDED;
    t->last = *ev;
    t->ending = true;
    t->end_by = clock_after(LIMIT_TALK_BYE_MS);
    return STEP_MORE;
}

static Step talk__exit(Talk *t, TalkChannel *c, const Frame *f, TalkEvent *ev, Err *err)
{
    uint64_t got = c->got[0] + c->got[1];

    if (!frame_exit(f, &ev->exit))
        return talk__hostile(t, "an exit of another form", err);
    bool same = t->kind == FRAME_ATTACH
                    ? ev->exit.out <= UINT64_MAX - ev->exit.err && ev->exit.out + ev->exit.err == t->replayed + got
                    : ev->exit.out == c->got[0] && ev->exit.err == c->got[1];
    if (!same) {
        err_set(err, ERR_CLOSED, E5000,
                "output was lost: bytes that the command printed: %llu, that arrived: %llu (it ended with %s %u)",
                (unsigned long long)(ev->exit.out + ev->exit.err), (unsigned long long)(t->replayed + got),
                ev->exit.how == FRAME_ENDED_CODE ? "status" : "signal", (unsigned)ev->exit.number);
        return talk__over(t);
    }
    return talk__last(t, ev);
}

static Step talk__fail(Talk *t, TalkChannel *c, const Frame *f, TalkEvent *ev, Err *err)
{
    if (!frame_fail(f, &ev->fail))
        return talk__hostile(t, "a failure of another form", err);
    if (!f->channel)
        return talk__last(t, ev);
    if (talk__open(t, f->channel))
        frame_put(&t->out, FRAME_ACK, f->channel, (Str){0});
    c->state = TALK_ENDED;
    return STEP_DONE;
}

static Step talk__output(Talk *t, TalkChannel *c, const Frame *f, TalkEvent *ev, Err *err)
{
    c->got[f->type == FRAME_ERR] += f->payload.n;
    if (c->heard_eof || t->replay_due)
        return talk__hostile(t, "output out of its place", err);
    if (!t->link.deaf && c->got[0] + c->got[1] - c->told > c->window)
        return talk__hostile(t, "more output than it was given room for", err);
    ev->bytes = f->payload;
    return f->payload.n ? STEP_DONE : STEP_MORE;
}

static Step talk__eof(Talk *t, TalkChannel *c, const Frame *f, Err *err)
{
    if (c->heard_eof || f->payload.n)
        return talk__hostile(t, "an end that is none", err);
    c->heard_eof = true;
    if (f->channel && c->closed)
        c->state = TALK_ENDED;
    return STEP_DONE;
}

static Step talk__credit(Talk *t, TalkChannel *c, const Frame *f, Err *err)
{
    uint64_t v;

    if (!frame_u64(f, &v) || v < c->credited || v > c->sent)
        return talk__hostile(t, "a credit that does not fit what was sent", err);
    c->credited = v;
    return STEP_MORE;
}

/* Where what follows begins: at first, and for one who looks on and was slow
 * again, behind what is no longer there. */
static Step talk__replay(Talk *t, const TalkChannel *c, const Frame *f, TalkEvent *ev, Err *err)
{
    uint64_t got = c->got[0] + c->got[1];

    if (t->kind != FRAME_ATTACH || !frame_u64(f, &ev->offset) || ev->offset < t->replayed + got)
        return talk__hostile(t, "a replay out of its place", err);
    t->replay_due = false;
    t->replayed = ev->offset - got;
    return STEP_DONE;
}

/* A frame about a command or a connection that runs. */
static Step talk__running(Talk *t, TalkChannel *c, const Frame *f, TalkEvent *ev, Err *err)
{
    if (f->type == FRAME_OUT || (f->type == FRAME_ERR && !f->channel))
        return talk__output(t, c, f, ev, err);
    if (f->type == FRAME_AGENT_EOF)
        return talk__eof(t, c, f, err);
    if (f->type == FRAME_AGENT_CREDIT)
        return talk__credit(t, c, f, err);
    if (f->type == FRAME_REPLAY && !f->channel)
        return talk__replay(t, c, f, ev, err);
    if (f->type == FRAME_EXIT && !f->channel && !t->replay_due)
        return talk__exit(t, c, f, ev, err);
    return talk__hostile(t, "a frame out of its place", err);
}

static Step talk__started(Talk *t, TalkChannel *c, const Frame *f, TalkEvent *ev, Err *err)
{
    if (!frame_started(f, &ev->started) || !talk__is_name(ev->started.job))
        return talk__hostile(t, "a start of another form", err);
    c->state = TALK_RUNNING;
    return STEP_DONE;
}

/* A frame about one channel, by its state. */
static Step talk__about(Talk *t, const Frame *f, TalkEvent *ev, Err *err)
{
    TalkChannel *c = f->channel < t->count ? &t->channels[f->channel] : NULL;
    bool         late = c && f->channel && (c->state == TALK_ENDED || c->state == TALK_RESET ||
                                            (c->state == TALK_STARTING && c->used));

    if (!c || c->state == TALK_UNUSED || !t->greeted)
        return talk__hostile(t, "a frame out of its place", err);
    if (f->type == FRAME_STARTED && c->state == TALK_STARTING)
        return talk__started(t, c, f, ev, err);
    if (f->type == FRAME_FAIL && (c->state == TALK_STARTING || c->state == TALK_RUNNING))
        return talk__fail(t, c, f, ev, err);
    if (c->state == TALK_RUNNING)
        return talk__running(t, c, f, ev, err);
    /* Two ends cross, and a reset meets what was under way. */
    return late || (t->ending && f->type == FRAME_AGENT_CREDIT) ? STEP_MORE : talk__hostile(t, "a frame out of its place", err);
}

static Step talk__frame(Talk *t, const Frame *f, TalkEvent *ev, Err *err)
{
    uint64_t v;

    *ev = (TalkEvent){.type = (FrameType)f->type, .channel = f->channel};
    if (f->type < FRAME_AGENT_HELLO)
        return talk__hostile(t, "a frame that only a client sends", err);
    if (f->type == FRAME_AGENT_HELLO && !f->channel)
        return talk__hello(t, f, err);
    if (f->type == FRAME_PONG && !f->channel && t->greeted && frame_u64(f, &v))
        return STEP_MORE;
    if (f->type == FRAME_NOTE && !f->channel && t->greeted && f->payload.n <= FRAME_FAIL_TEXT) {
        talk__trace(t, "the agent", f->payload);
        return STEP_MORE;
    }
    if (f->type == FRAME_AGENT_HELLO || f->type == FRAME_PONG || f->type == FRAME_NOTE)
        return talk__hostile(t, "a frame out of its place", err);
    return talk__about(t, f, ev, err);
}

/* Go through what was read, until there is something to give. */
static Step talk__look(Talk *t, TalkEvent *ev, Err *err)
{
    Frame f;

    for (;;) {
        Step step = frame_next(&t->reader, &t->rest, &f, err);
        if (step == STEP_ERR) {
            err_wrap(err, "%s", talk__loss(t));
            return talk__over(t);
        }
        if (step == STEP_MORE || (step = talk__frame(t, &f, ev, err)) != STEP_MORE)
            return step;
    }
}

/* EXIT or FAIL came, or the agent is to let go. STEP_MORE: wait on. */
static Step talk__leave(Talk *t, bool gone, TalkEvent *ev)
{
    bool done = t->ending ? !talk__waiting(t) || clock_passed(t->end_by)
                          : t->told && (gone || clock_passed(t->end_by));

    if (!done)
        return STEP_MORE;
    *ev = t->ending ? t->last : (TalkEvent){.type = FRAME_DETACH};
    t->over = true;
    return STEP_DONE;
}

static void talk__due(Talk *t)
{
    if (!talk__can_send(t) || !clock_passed(t->ping))
        return;
    frame_put_u64(&t->out, FRAME_PING, 0, (uint64_t)clock_mono_ms());
    t->ping = clock_after(FRAME_PING_MS);
}

/* Nothing is heard: a sandbox that is paused is waited for, and once more when it goes on. */
static bool talk__rests(Talk *t)
{
    Arena       a = arena_make(ARENA_COMMAND);
    ABX_UNSET SandboxInfo info;
    ABX_UNSET Err none;
    bool        was = t->paused;

    t->paused = t->id && t->p->kind->get(t->p, str_from(t->id), &a, &info, clock_after(LIMIT_CLEANUP_MS), &none) &&
                (info.state == SANDBOX_PAUSED || info.state == SANDBOX_PAUSING || info.state == SANDBOX_RESUMING);
    if (t->paused && !was && t->p->host.notice)
        t->p->host.notice(t->p->host.notice_ctx, STR("the sandbox is paused: waiting for it"));
    arena_free(&a);
    t->silent = clock_after(FRAME_SILENCE_MS);
    return was || t->paused;
}

/* One read. STEP_DONE: there is something to look at. */
static Step talk__read(Talk *t, TalkEvent *ev, Err *err)
{
    size_t n = 0;
    Step   step = stream_read(t->link.stream, t->block, TALK_BLOCK, &n, err);

    if (step == STEP_DONE && n) {
        t->rest = (Str){t->block, n};
        t->silent = clock_after(FRAME_SILENCE_MS);
        t->paused = false;
        return STEP_DONE;
    }
    if (step == STEP_MORE)
        return clock_passed(t->silent) && !talk__rests(t) ? talk__cut(t, "the sandbox has fallen silent", err) : STEP_MORE;
    if (t->let_go && talk__leave(t, true, ev) == STEP_DONE)
        return STEP_DONE;
    if (step == STEP_ERR && err->kind != ERR_CLOSED) {
        err_wrap(err, "%s", talk__loss(t));
        return talk__over(t);
    }
    if (step == STEP_ERR)
        talk__trace(t, "the way to the agent", str_from(err->text));
    return talk__cut(t, t->greeted ? "the connection to the sandbox was lost"
                                   : "the agent in the sandbox ended before it said anything", err);
}

Step talk_next(Talk *t, TalkEvent *ev, Err *err)
{
    if (t->over)
        BUG("a conversation that is over was asked again");
    talk__due(t);
    talk__flush(t);
    if (t->out.over)
        return talk__cut(t, "the sandbox takes nothing more", err);
    /* Somebody who talks and talks and says nothing must not keep the caller
     * from its other work. */
    for (int i = 0; i < LIMIT_TALK_READS; i++) {
        Step step = talk__look(t, ev, err);
        if (step == STEP_MORE && t->ending) {
            talk__flush(t);
            return talk__leave(t, false, ev);
        }
        if (step == STEP_MORE)
            step = talk__read(t, ev, err);
        else
            return step;
        if (step == STEP_ERR || t->over)
            return step;
        if (step == STEP_MORE)
            break;
    }
    return t->let_go && !t->rest.n ? talk__leave(t, false, ev) : STEP_MORE;
}

StreamWant talk_want(const Talk *t)
{
    StreamWant in = stream_want(t->link.stream, STREAM_READ), out;

    if (t->rest.n && !t->ending)
        return (StreamWant){.fd = -1, .events = POLLIN};
    if (!talk__waiting(t))
        return in;
    out = stream_want(t->link.stream, STREAM_WRITE);
    if (t->ending || in.fd != out.fd)
        return t->ending || out.fd < 0 ? out : in;
    in.events |= out.events;
    return in;
}

Deadline talk_deadline(const Talk *t)
{
    Deadline d = clock_sooner(clock_sooner(t->ping, t->silent), t->end_by);
    bool     two = talk__waiting(t) && stream_want(t->link.stream, STREAM_READ).fd != stream_want(t->link.stream, STREAM_WRITE).fd;

    return two ? clock_sooner(d, clock_after(LIMIT_TALK_TWO_MS)) : d;
}

bool talk_deaf(const Talk *t)
{
    return t->link.deaf;
}

const FrameHello *talk_hello(const Talk *t)
{
    return t->greeted ? &t->hello : NULL;
}
