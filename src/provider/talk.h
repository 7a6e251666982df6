/* talk.h - the client's side of a conversation with the carried agent.
 *
 * One Talk is one connection: a command on channel 0, or forwarded connections
 * on the channels from 1 on. Windows, pings, totals and states are kept here;
 * what comes from the sandbox is hostile: a frame out of its state, a total
 * that does not fit, a second EXIT end the conversation with E8020.
 *
 *     CarryResult r = talk_open(p, id, &start, &t, d, err);
 *     while ((step = talk_next(t, &ev, err)) != STEP_ERR) ...
 *     talk_close(t);
 *
 * Memory: talk_close(). Bytes in an event are good until the next call.
 */
#ifndef ABX_TALK_H
#define ABX_TALK_H

#include "provider/carry.h"

typedef struct Talk Talk;

typedef struct TalkEvent {
    FrameType    type;          /* FRAME_STARTED, OUT, ERR, AGENT_EOF, EXIT, FAIL, REPLAY */
    uint16_t     channel;
    Str          bytes;         /* OUT, ERR */
    FrameStarted started;
    FrameExit    exit;
    FrameFail    fail;
    uint64_t     offset;        /* REPLAY: of the first byte that follows */
} TalkEvent;

/* `start` is for channel 0; NULL: forwards will be started. On CARRY_DONE the
 * agent's HELLO has not come yet: talk_next() is what waits for it. `input`: a
 * way on which nothing can be sent will not do. */
ABX_FN CarryResult talk_open(Provider *p, Str id, const FrameStart *start, bool input, Talk **out, Deadline d, Err *err);
ABX_FN void talk_close(Talk *t);

/* Frames out, and the next one in. STEP_MORE: wait as talk_want() says, until
 * talk_deadline(), and call again. STEP_ERR: ERR_CLOSED E5000 where the link
 * was cut or fell silent: the result is unknown. After EXIT, or FAIL on channel
 * 0, the ACK goes out and nothing follows. */
ABX_FN Step talk_next(Talk *t, TalkEvent *ev, Err *err);
ABX_FN StreamWant talk_want(const Talk *t);
ABX_FN Deadline talk_deadline(const Talk *t);

/* None of these waits; what they say goes out with the next talk_next(). */
ABX_FN bool   talk_start(Talk *t, uint16_t channel, const FrameStart *s, Err *err);
ABX_FN size_t talk_write(Talk *t, uint16_t channel, Str bytes);    /* how many were taken: window and room */
ABX_FN void   talk_end(Talk *t, uint16_t channel);                 /* EOF, behind what was written */
ABX_FN void   talk_taken(Talk *t, uint16_t channel, size_t n);     /* so much of OUT and ERR was used: CREDIT */
ABX_FN void   talk_signal(Talk *t, int number, FrameTarget to);
ABX_FN void   talk_resize(Talk *t, int cols, int rows);
ABX_FN void   talk_detach(Talk *t);
ABX_FN void   talk_kill(Talk *t);
ABX_FN void   talk_reset(Talk *t, uint16_t channel);               /* a forwarded one: KILL on its channel */

ABX_FN CarryWay talk_way(const Talk *t);
ABX_FN const FrameHello *talk_hello(const Talk *t);                /* NULL: it has not come yet */

#endif
