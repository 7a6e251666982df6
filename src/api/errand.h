/* errand.h - one of the carried agent's own programs (data/frame.h, FRAME_TAR_IN
 * and the next three), run in a sandbox for a call of abx.h.
 *
 *     r = errand_start(b, FRAME_HASH, words, n, user, false, &run, err);
 *     while ((step = errand_next(&run, &bytes, err)) != STEP_ERR && !run.over) ...
 *     errand_close(&run);
 *
 * What it prints is the sandbox's: hostile. Its failure, a line on its stderr,
 * becomes an error that names the sandbox.
 *
 * Memory: a Talk; errand_close().
 */
#ifndef ABX_ERRAND_H
#define ABX_ERRAND_H

#include "api/session.h"
#include "provider/carried.h"

typedef struct Errand {
    const abx_sandbox *box;
    ExecCall *x;                /* NULL: there is none */
    Buf       said;             /* the beginning of its stderr */
    bool      over;             /* nothing follows: it ended, or was lost */
} Errand;

/* CARRY_CANNOT: nothing was run, *err (E8004) says why: there is no agent to
 * carry, or it cannot be carried there. */
ABX_FN CarryResult errand_start(const abx_sandbox *b, FrameKind kind, const Str *words, size_t n, Str user, bool input,
                                Errand *out, Err *err);

/* STEP_DONE: *bytes of its stdout, good until the next call. STEP_MORE: none
 * now; if not `over`, wait. STEP_ERR: it failed, or what became of it is not known. */
ABX_FN Step errand_next(Errand *e, Str *bytes, Err *err);

/* Until one of the n (at most two) has something to say; `busy`: only look
 * whether all is to be cancelled. */
ABX_FN bool errand_wait(Errand *const *v, size_t n, bool busy, Err *err);

/* One that still runs is ended, and waited for a little. */
ABX_FN void errand_close(Errand *e);

#endif
