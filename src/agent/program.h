/* program.h - the command that a conversation is about: a program with pipes or
 * a terminal, in a session of its own, from its start to the end of its group.
 *
 *     if (!program_start(&p, &loop, &start, home, scratch, &fail)) ...
 *     each turn of the loop: program_step(&p, now), then program_done(&p)
 *
 * That it has ended is learned from SIGCHLD; what its pipes hold then still
 * belongs to it, what children that stay behind print later does not. Its group
 * is left alone after an ordinary end, and is ended with it where a client's
 * signal ended it. `now` is time in which this process was awake.
 *
 * Memory: its input, twice LIMIT_CARRY_INPUT where a second client came, and the ring; program_free().
 */
#ifndef ABX_PROGRAM_H
#define ABX_PROGRAM_H

#include "agent/ring.h"
#include "base/arena.h"
#include "base/buf.h"
#include "data/frame.h"
#include "os/loop.h"
#include <sys/types.h>

typedef struct Program {
    Loop     *loop;
    pid_t     pid;              /* 0: none was started */
    bool      tty;
    bool      ended;            /* and reaped; its group may live */
    bool      timed_out;
    int       status;           /* as wait(2) gives it */
    LoopWatch in, out[2];       /* fd -1: closed, or resting. With a terminal in and out[0] are the same */
    int       in_fd, out_fd[2];
    Buf       queue;            /* of its input, from queue_at on */
    size_t    queue_at;
    uint64_t  taken;            /* of its input, so far */
    bool      in_end;           /* the input ends behind the queue */
    bool      wide[2], in_wide; /* the pipe was made larger */
    size_t    left[2];          /* once it ended: what is still read */
    Ring      ring;
    uint64_t  keep;             /* of the ring: the owner's to set */
    bool      hold;             /* the owner has no use for more now */
    bool      forgotten;        /* what is printed is read and dropped */
    int64_t   timeout_at, signalled_at, kill_at, give_up_at;    /* 0: none */
    int64_t   now;              /* at the last step */
} Program;

/* `cwd` is where a start without one begins, and what a relative one is
 * relative to; it is / where that cannot be entered. */
ABX_FN bool program_start(Program *p, Loop *loop, const FrameStart *s, Str cwd, Arena scratch, FrameFail *fail) ABX_CHECK;
ABX_FN void program_free(Program *p);

/* Instead: as if a program had printed this (at most RING_BYTES), and ended with `code`. */
ABX_FN void program_said(Program *p, Str text, int code);

ABX_FN void program_write(Program *p, Str bytes);
ABX_FN void program_end_input(Program *p);
ABX_FN void program_resize(Program *p, uint16_t cols, uint16_t rows);
ABX_FN void program_signal(Program *p, int number, FrameTarget to);     /* a client's */
ABX_FN void program_kill(Program *p);                   /* HUP, and KILL in LIMIT_CARRY_KILL_MS */
ABX_FN void program_reaped(Program *p, pid_t pid, int status);

/* What is due, and what to wait for. The result: when to come again, DEADLINE_NONE: never. */
ABX_FN int64_t program_step(Program *p, int64_t now);

/* It and what belongs to it has ended, and all that it printed is in the ring. */
ABX_FN bool program_done(const Program *p);
ABX_FN void program_exit(const Program *p, FrameExit *x);

/* From now on what is printed goes nowhere: children that were left would die
 * of a closed pipe. False: nobody holds one. */
ABX_FN bool program_forget(Program *p);

#endif
