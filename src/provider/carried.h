/* carried.h - commands and jobs by the carried agent: an ExecCall over a Talk.
 *
 * A command is exact here: words, bytes, input and its end, signals, a timeout
 * to the millisecond. What the agent finds wrong before it starts anything
 * comes as the failure of `next`, or of the call that waits for it:
 *   E3005  the program: ERR_NOT_FOUND there is none, ERR_REMOTE it cannot be
 *          run; sys is the sandbox's errno in both
 *   E4001, E4002  the folder; E8002, E8004  the user
 *   E8003, E8005  a job that somebody has or that runs; that is not there
 * Calls whose Talk is cut or falls silent end with ERR_CLOSED E5000.
 */
#ifndef ABX_CARRIED_H
#define ABX_CARRIED_H

#include "provider/talk.h"

/* Starts a command; CARRY_CANNOT: nothing was run, and *err says why it cannot
 * be carried. The provider must outlive the call. */
ABX_FN CarryResult carried_exec(Provider *p, Str id, const ExecRequest *rq, ExecCall **out, Deadline d, Err *err);

typedef struct CarriedAttach {
    Str      job;
    uint64_t offset;
    bool     take, watch;       /* FRAME_START_TAKE, FRAME_START_WATCH */
    int      cols, rows;
} CarriedAttach;

/* EXEC_STARTED and EXEC_REPLAY come first. */
ABX_FN CarryResult carried_attach(Provider *p, Str id, const CarriedAttach *at, ExecCall **out, Deadline d, Err *err);

/* A question to the agent, FRAME_JOBS or FRAME_CONTROL, to its end; what it
 * prints goes to *text, its exit status to *code. CARRY_FAILED, too, for what the agent refuses. */
ABX_FN CarryResult carried_ask(Provider *p, Str id, const FrameStart *start, Buf *text, int *code, Deadline d, Err *err);

/* One of the agent's own programs, FRAME_TAR_IN and the next three, with these
 * words (data/frame.h), from the folder `/`. It takes input where `input` says so. */
ABX_FN CarryResult carried_files(Provider *p, Str id, FrameKind kind, Strs argv, Str user, bool input, ExecCall **out,
                                  Deadline d, Err *err);

/* Any call, to its end: what it prints to its stdout. False: its result is not known. */
ABX_FN bool carried_gather(ExecCall *x, Buf *text, ExecEvent *end, int cancel_fd, Deadline d, Err *err);

#endif
