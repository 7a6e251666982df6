/* talk.h - the client's side of a conversation with the carried agent.
 *
 * One Talk is one connection: a command on channel 0, or forwarded connections
 * on the channels from 1 on. Windows, pings, totals and states are kept here;
 * what comes from the sandbox is hostile: a frame out of its state, more than
 * the window, a credit that goes down or over what was sent, a second EXIT end
 * the conversation with E8020.
 *
 *     CarryResult r = talk_open(p, id, &start, input, &t, d, err);
 *     while ((step = talk_next(t, &ev, err)) != STEP_ERR) ...
 *     talk_close(t);
 *
 * What the caller owes: talk_next() whenever talk_want() wakes, and at
 * talk_deadline(), also while it has no use for output, for pings, credits and
 * the last ACK go out there and nowhere else. A caller that has no room keeps
 * what it was given and leaves out talk_taken(): then no more than the window
 * comes. One that stays away for 20 s is taken for gone by the agent.
 *
 * Memory: about half a MiB, and what waits to go out, at most 5 MiB; talk_close().
 * Bytes and texts in an event are good until the next call, and are the
 * sandbox's own words: who shows them cleans them first.
 */
#ifndef ABX_TALK_H
#define ABX_TALK_H

#include "provider/carry.h"

typedef struct Talk Talk;

typedef struct TalkEvent {
    FrameType    type;          /* FRAME_STARTED, OUT, ERR, AGENT_EOF, EXIT, FAIL, REPLAY; DETACH: it was let go */
    uint16_t     channel;
    Str          bytes;         /* OUT, ERR */
    FrameStarted started;       /* its job is a name of at most 64 letters, digits, `-` and `_` */
    FrameExit    exit;
    FrameFail    fail;
    uint64_t     offset;        /* REPLAY: of the first byte that follows */
} TalkEvent;

/* `start` is for channel 0; NULL: forwards will be started. On CARRY_DONE the
 * agent's HELLO has not come yet: talk_next() is what waits for it. `input`: a
 * way on which nothing can be sent will not do. E8002: more than fits a START. */
ABX_FN CarryResult talk_open(Provider *p, Str id, const FrameStart *start, bool input, Talk **out, Deadline d, Err *err);
/* The same over a way that was found; `run` and a START of this kind, FRAME_FORWARD
 * for none, were said there. Takes what the Carried holds. */
ABX_FN Talk *talk_over(Provider *p, const Carried *link, const unsigned char run[static FRAME_RUN], FrameKind kind);
ABX_FN void talk_close(Talk *t);

/* Frames out, and the next one in. STEP_MORE: wait as talk_want() says, until
 * talk_deadline(), and call again. STEP_ERR: ERR_CLOSED E5000 where the link
 * was cut or fell silent, or output was lost: the result is unknown. EXIT, and
 * FAIL on channel 0, are given when the ACK has gone out, or after 2 s; nothing
 * follows them, nor DETACH. */
ABX_FN Step talk_next(Talk *t, TalkEvent *ev, Err *err);
ABX_FN StreamWant talk_want(const Talk *t);
ABX_FN Deadline talk_deadline(const Talk *t);

/* None of these waits; what they say goes out with the next talk_next(). On a
 * way on which nothing can be sent, or when all is over, they do nothing. A
 * channel may be started again once FAIL, or the end of both sides, was seen. */
ABX_FN bool   talk_start(Talk *t, uint16_t channel, const FrameStart *s, Err *err);
/* How many were taken: none before STARTED. Room comes in talk_next(), silently:
 * who has more to write tries between that and waiting. */
ABX_FN size_t talk_write(Talk *t, uint16_t channel, Str bytes);
ABX_FN void   talk_end(Talk *t, uint16_t channel);                 /* EOF, behind what was written */
ABX_FN void   talk_taken(Talk *t, uint16_t channel, size_t n);     /* so much of OUT and ERR was used: CREDIT */
ABX_FN void   talk_signal(Talk *t, int number, FrameTarget to);
ABX_FN void   talk_resize(Talk *t, int cols, int rows);
ABX_FN void   talk_detach(Talk *t);
ABX_FN void   talk_kill(Talk *t);
ABX_FN void   talk_reset(Talk *t, uint16_t channel);               /* a forwarded one: KILL on its channel; nothing more comes of it */

ABX_FN bool talk_deaf(const Talk *t);                              /* nothing can be sent */
ABX_FN const FrameHello *talk_hello(const Talk *t);                /* NULL: it has not come yet */

#endif
