#include "provider/carry_lines.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/poll.h"

typedef struct CarryLines {
    Stream    base;
    Carrier  *carrier;
    ExecCall *call;
    uint32_t  pid;          /* who is fed; 0: nobody */
    Armor     in, out;
    Str       rest;         /* of the event at hand */
    Str       piece;        /* bytes that a line carried */
    Buf       text, said;
    bool      carries;      /* a line carried bytes */
    bool      ended;
    ExecEvent end;
    Buf       queue;        /* lines on their way to the command */
} CarryLines;

static CarryLines *carry_lines__of(Stream *s)
{
    return (CarryLines *)s;
}

enum { CARRY_LINES_TURNS = 256 };      /* pieces that are looked at in one call */

static void carry_lines__keep(Buf *to, Str bytes)
{
    size_t room = to->limit - to->n;

    buf_add(to, (Str){bytes.p, bytes.n < room ? bytes.n : room});
}

/* STEP_DONE: there is a piece, or it has ended. */
static Step carry_lines__event(CarryLines *s, Err *err)
{
    ExecEvent ev;
    Step      step = s->call->ops->next(s->call, &ev, err);

    if (step != STEP_DONE)
        return step;
    if (ev.kind == EXEC_ERR) {
        carry_lines__keep(&s->said, ev.bytes);
    } else if (ev.kind == EXEC_EXIT) {
        s->ended = true;
        s->end = ev;
    } else {
        s->rest = ev.bytes;
        if (!s->carries)
            carry_lines__keep(&s->text, ev.bytes);
    }
    return STEP_DONE;
}

/* One piece is in the queue at most, so that what is fed is fed in order. */
static Step carry_lines__flush(CarryLines *s, Err *err)
{
    if (s->queue.n == 0)
        return STEP_DONE;
    Step step = s->carrier->ops->feed(s->carrier, s->call, s->pid, buf_str(&s->queue), err);
    if (step == STEP_DONE)
        buf_clear(&s->queue);
    return step;
}

static Step carry_lines__read(Stream *stream, char *p, size_t cap, size_t *n, Err *err)
{
    CarryLines *s = carry_lines__of(stream);
    Step        step;

    *n = 0;
    if (!s->ended && carry_lines__flush(s, err) == STEP_ERR)
        return STEP_ERR;
    /* Other text may never end: whoever reads looks at other things in between. */
    for (int turn = 0; turn < CARRY_LINES_TURNS; turn++) {
        if (s->piece.n) {
            *n = s->piece.n < cap ? s->piece.n : cap;
            memcpy(p, s->piece.p, *n);
            str_skip(&s->piece, *n);
            return STEP_DONE;
        }
        step = armor_next(&s->in, &s->rest, &s->piece, err);
        if (step == STEP_ERR)
            return step;
        if (step == STEP_DONE) {
            s->carries = true;
            continue;
        }
        if (!s->carries && s->text.n == s->text.limit) {
            err_set(err, ERR_LIMIT, E8020, "the sandbox prints more than %zu bytes before the agent", s->text.limit);
            return STEP_ERR;
        }
        if (s->ended)
            return STEP_DONE;
        step = carry_lines__event(s, err);
        if (step != STEP_DONE)
            return step;
    }
    return STEP_MORE;
}

static Step carry_lines__write(Stream *stream, const char *p, size_t len, size_t *n, Err *err)
{
    CarryLines *s = carry_lines__of(stream);
    size_t      most = s->carrier->ops->feed_bytes / 4 * 3 - ARMOR_TAG - 32;      /* base64, and a line around it */

    *n = 0;
    if (!s->pid || s->ended) {
        err_set(err, ERR_CLOSED, E5000, "the command in the sandbox reads no more");
        return STEP_ERR;
    }
    Step step = carry_lines__flush(s, err);
    if (step != STEP_DONE)
        return step;
    *n = len < most ? len : most;
    armor_put(&s->out, &s->queue, (Str){p, *n}, *n);
    return carry_lines__flush(s, err) == STEP_ERR ? STEP_ERR : STEP_DONE;
}

static StreamWant carry_lines__want(const Stream *stream, StreamSide side)
{
    const CarryLines *s = (const CarryLines *)stream;

    if (side == STREAM_READ ? s->piece.n || s->rest.n || s->ended : s->queue.n == 0)
        return (StreamWant){.fd = -1};
    return s->call->ops->want(s->call);
}

static void carry_lines__close(Stream *stream)
{
    CarryLines *s = carry_lines__of(stream);

    s->call->ops->close(s->call);
    armor_free(&s->in);
    armor_free(&s->out);
    buf_free(&s->text);
    buf_free(&s->said);
    buf_free(&s->queue);
    mem_free(s);
}

Stream *carry_lines_make(Carrier *carrier, ExecCall *call, const char tag[static ARMOR_TAG + 1])
{
    static const StreamOps ops = {carry_lines__read, carry_lines__write, carry_lines__want, carry_lines__close};
    CarryLines *s = mem_new(sizeof *s);

    *s = (CarryLines){.base = {&ops}, .carrier = carrier, .call = call, .in = armor_make(tag), .out = armor_make(tag),
                      .text = buf_make(CARRY_LINES_TEXT), .said = buf_make(CARRY_LINES_SAID),
                      .queue = buf_make(carrier->ops->feed_bytes + 1)};
    return &s->base;
}

void carry_lines_feed(Stream *s, uint32_t pid)
{
    carry_lines__of(s)->pid = pid;
}

bool carry_lines_settle(Stream *stream, int cancel_fd, Deadline d, Err *err)
{
    CarryLines *s = carry_lines__of(stream);
    Step        step;

    for (;;) {
        step = carry_lines__flush(s, err);
        if (step == STEP_DONE)
            step = s->carrier->ops->feed(s->carrier, s->call, s->pid, (Str){0}, err);
        if (step != STEP_MORE)
            return step == STEP_DONE;
        StreamWant w = s->call->ops->want(s->call);
        if (w.fd >= 0 && !poll_one(w.fd, w.events, cancel_fd, d, err))
            return false;
        if (clock_passed(d))
            return err_set(err, ERR_TIMEOUT, E5000, "what was fed to it was not answered");
    }
}

void carry_lines_kill(Stream *s)
{
    ExecCall *call = carry_lines__of(s)->call;
    ABX_UNSET Err none;

    if (call->ops->kill)
        (void)call->ops->kill(call, clock_after(LIMIT_CLEANUP_MS), &none);
}

Str carry_lines_text(const Stream *s)
{
    return buf_str(&((const CarryLines *)s)->text);
}

Str carry_lines_said(const Stream *s)
{
    return str_trim(buf_str(&((const CarryLines *)s)->said));
}

const ExecEvent *carry_lines_end(const Stream *s)
{
    return ((const CarryLines *)s)->ended ? &((const CarryLines *)s)->end : NULL;
}

Deadline carry_lines_deadline(const Stream *s)
{
    const CarryLines *l = (const CarryLines *)s;

    return l->ended ? DEADLINE_NONE : l->call->ops->deadline(l->call);
}
