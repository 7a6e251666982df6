/* carry.h - putting this program into a sandbox, and starting it there.
 *
 * A backend that can run a line of shell and take a file can be given a helper
 * that does exactly what was asked (data/frame.h): `abx agent`, this very
 * program. It goes into a folder that nobody else can write to, and runs only
 * if that folder is what it should be, checked in the same line of shell.
 *
 * Ways, the best first: LISTEN, the helper listens on 127.0.0.1 in the sandbox
 * and is reached by WebSocket through the backend; PIPE, standard input and
 * output of a command as one stream, where LISTEN brought the helper there but
 * not the connection; LINES, lines of text in a command's output (data/armor.h),
 * and in its input where the backend has one.
 *
 * A way is given up for the next one only as long as the client's START was not
 * sent: nothing is ever run twice. So preamble and HELLO go first, and the rest
 * of what `first` gives once the agent has answered; with LINES all of it goes
 * along, and a helper that said HELLO is not started again.
 *
 * Memory: a Carried is closed by carry_close().
 */
#ifndef ABX_CARRY_H
#define ABX_CARRY_H

#include "data/frame.h"
#include "provider/provider.h"

typedef struct Carrier Carrier;     /* the way into one sandbox; the backend's own struct begins with it */

/* What a backend brings. None of these is told a secret of the person. */
typedef struct CarrierOps {
    /* Find the way: a sandbox that is not running is refused as by `exec`. */
    bool (*open)(Provider *p, Str id, Carrier **out, Deadline d, Err *err);
    void (*close)(Carrier *c);
    /* Start `line` in the sandbox's shell, with these variables. `input`: `feed` will be used. */
    bool (*line)(Carrier *c, Str line, const Pair *env, size_t n, bool input, ExecCall **out, Deadline d, Err *err);
    /* A file of mode 0755 at this very path, in one request. */
    bool (*put)(Carrier *c, Str path, Source src, Deadline d, Err *err);
    /* A WebSocket to 127.0.0.1:port, `path` in the sandbox, as a stream of bytes. NULL: it cannot. */
    bool (*dial)(Carrier *c, int port, Str path, Stream **out, Deadline d, Err *err);
    /* `line` with its standard input and output as one stream of bytes, which
     * ends with the command; closing it ends the command. NULL: it cannot. */
    bool (*pipe)(Carrier *c, Str line, Stream **out, Deadline d, Err *err);
    /* To the standard input of what `line` became; pid is what that says of itself. STEP_DONE: taken.
     * STEP_MORE: what was given before is still on its way. Nothing: was that taken? NULL: it cannot. */
    Step (*feed)(Carrier *c, ExecCall *x, uint32_t pid, Str bytes, Err *err);
    size_t feed_bytes;              /* the most that `feed` should be given at once */
    /* Will `feed` work here? `wanted`: it is worth trying, before anything is run. NULL: it will. */
    bool (*feeds)(const Carrier *c, bool wanted);
} CarrierOps;

struct Carrier { const CarrierOps *ops; };

typedef enum CarryWay { CARRY_LISTEN, CARRY_PIPE, CARRY_LINES } CarryWay;

typedef struct Carried {
    Carrier *carrier;
    CarryWay way;
    Stream  *stream;            /* the agent's bytes, the client's bytes */
    bool     deaf;              /* nothing can be sent but what `first` gave */
    bool     noisy;             /* other text may stand before the agent's preamble */
} Carried;

typedef struct CarryRequest {
    bool input;                 /* what the client sends later must arrive: a deaf way will not do */
    /* The client's first bytes on this way, preamble, HELLO and, but for forwards,
     * START; called once or more. What does not fit in a variable goes as a file. */
    bool (*first)(void *ctx, CarryWay way, bool deaf, Buf *to, Err *err);
    void *ctx;
} CarryRequest;

typedef enum CarryResult {
    CARRY_DONE,
    CARRY_CANNOT,               /* it cannot be carried there, and nothing was run: *err says why (E8004) */
    CARRY_FAILED,               /* *err: no sandbox, no connection, cancelled */
} CarryResult;

/* The binary is p->host.agent_path; empty: CARRY_CANNOT. On CARRY_DONE the
 * agent's HELLO has come, and is what the stream gives first. Each way that was
 * tried and given up is named by a notice, at most one a call. A folder that is
 * not safe to use is answered with one of this call's own, in which LISTEN
 * leaves no program behind and the others leave theirs. */
ABX_FN CarryResult carry_open(Provider *p, Str id, const CarryRequest *rq, Carried *out, Deadline d, Err *err);
ABX_FN void carry_close(Carried *c);

#endif
