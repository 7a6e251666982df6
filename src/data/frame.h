/* frame.h - the carried agent's conversation: frames, as bytes and as values.
 *
 * Two programs talk, the client (abx here) and the agent (abx in a sandbox),
 * over anything that carries bytes both ways; what carries them may cut and
 * join them anywhere. Each side begins with a preamble of 24 bytes: `ABX1`,
 * version, three zeros, the 16 bytes of the run that both belong to. Frames
 * follow: type u8, flags u8, channel u16, length u32, big-endian, and so many
 * bytes. A conversation is about one command, on channel 0, or about many
 * forwarded connections, each on a channel of its own.
 *
 *     client                               agent
 *     HELLO                        ->
 *                                  <-      HELLO
 *     START (one or several)       ->
 *                                  <-      STARTED, or FAIL
 *     DATA, EOF, SIGNAL, RESIZE    ->
 *                                  <-      OUT, ERR, EOF
 *     CREDIT                      <->      CREDIT
 *     PING                         ->
 *                                  <-      PONG, also unasked, every 5 s
 *                                  <-      EXIT, or FAIL
 *     ACK                          ->
 *
 * Neither side sends more payload than the other gave it room for: each HELLO
 * names a window, CREDIT says how many bytes in all were taken since, and sent
 * less taken is never more than the window. OUT and ERR share one. On a
 * forwarded channel both windows are FRAME_FORWARD_WINDOW.
 *
 * EXIT carries the totals of OUT and ERR: a client that has not that many lost
 * some. Nothing follows EXIT or FAIL on its channel. A type that is not known
 * is an error, but for one with FRAME_SKIP in its flags: the reader passes
 * over it.
 *
 * Memory: a reader holds one frame at most, with `pieces` a DATA's head alone; frame_reader_free(). Payloads are
 * views, good until the next call.
 */
#ifndef ABX_FRAME_H
#define ABX_FRAME_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum {
    FRAME_VERSION = 1,
    FRAME_PREAMBLE = 24,
    FRAME_RUN = 16,
    FRAME_HEAD = 8,
    FRAME_PAYLOAD = 65536,              /* the longest */
    FRAME_START_BYTES = 4 << 20,        /* all STARTs of a channel together */
    FRAME_FAIL_TEXT = 1024,
    FRAME_NOISE = 65536,                /* what may stand before the agent's preamble: shells greet */
    FRAME_FORWARD_WINDOW = 256 << 10,
    FRAME_PING_MS = 5000,
    FRAME_SILENCE_MS = 20000,           /* a side that has heard nothing for so long, while it was awake, gives up */
    FRAME_ACK_MS = 10000,               /* the agent waits for an ACK no longer */
};

typedef enum FrameType {
    FRAME_HELLO = 0x01, FRAME_START, FRAME_DATA, FRAME_EOF, FRAME_SIGNAL, FRAME_RESIZE, FRAME_CREDIT, FRAME_ACK,
    FRAME_PING, FRAME_DETACH, FRAME_KILL,
    FRAME_AGENT_HELLO = 0x81, FRAME_STARTED, FRAME_OUT, FRAME_ERR, FRAME_AGENT_EOF, FRAME_EXIT, FRAME_FAIL,
    FRAME_AGENT_CREDIT, FRAME_PONG, FRAME_REPLAY, FRAME_NOTE,
} FrameType;

enum { FRAME_MORE = 0x01, FRAME_SKIP = 0x80 };      /* flags: of START, another one follows; of any, may be passed over */

typedef struct Frame {
    uint8_t  type, flags;
    uint16_t channel;
    Str      payload;
} Frame;

/* ---- reading ---- */

typedef struct FrameReader {
    Buf           held;                 /* the beginning of what is not whole yet */
    size_t        given;                /* so much of it was handed out by the last call */
    unsigned char run[FRAME_RUN];       /* the agent: known once `began` */
    bool          began;                /* the preamble was read */
    bool          expects;              /* the client: the run must be this one */
    bool          noisy;                /* the client: other text may stand before the preamble */
    size_t        noise;
    bool          pieces;               /* the caller's to set: DATA is given as it comes, one frame as several */
    Frame         part;                 /* of which so much */
    size_t        left;                 /* is still to come */
} FrameReader;

/* The agent's reader takes any run, the client's only its own. */
ABX_FN FrameReader frame_reader_agent(void);
ABX_FN FrameReader frame_reader_client(const unsigned char run[static FRAME_RUN], bool noisy);
ABX_FN void frame_reader_free(FrameReader *r);

/* STEP_DONE: *f is the next frame. STEP_MORE: *in is used up. STEP_ERR:
 * ERR_INPUT E8020: no preamble, another version or run, a frame that is too long. */
ABX_FN Step frame_next(FrameReader *r, Str *in, Frame *f, Err *err) ABX_CHECK;

/* ---- writing: each adds whole frames to `to` ---- */

ABX_FN void frame_put_preamble(Buf *to, const unsigned char run[static FRAME_RUN]);
ABX_FN void frame_put(Buf *to, FrameType type, uint16_t channel, Str payload);      /* at most FRAME_PAYLOAD */
ABX_FN void frame_put_u64(Buf *to, FrameType type, uint16_t channel, uint64_t v);   /* CREDIT, PING, PONG, REPLAY */
ABX_FN void frame_head(char head[static FRAME_HEAD], FrameType type, uint16_t channel, size_t length);

ABX_FN bool frame_u64(const Frame *f, uint64_t *v) ABX_CHECK;       /* false, here and below: of another form */

typedef struct FrameHello {
    uint32_t features;          /* none are defined */
    uint32_t window;            /* what its sender takes without CREDIT: of OUT and ERR, of DATA */
    uint32_t pid, uid;          /* of the agent, in the sandbox */
    Str      text;              /* of the agent: "linux x86_64 abx 0.1.0" */
} FrameHello;

ABX_FN void frame_put_hello(Buf *to, const FrameHello *h);          /* the client's */
ABX_FN void frame_put_agent_hello(Buf *to, const FrameHello *h);
ABX_FN bool frame_hello(const Frame *f, FrameHello *h) ABX_CHECK;   /* either one */

typedef struct FrameStarted {
    uint32_t pid;               /* leads the process group; 0 for what is no process */
    Str      job;               /* by this name it can be attached to again; empty: it cannot */
} FrameStarted;

ABX_FN void frame_put_started(Buf *to, uint16_t channel, const FrameStarted *s);
ABX_FN bool frame_started(const Frame *f, FrameStarted *s) ABX_CHECK;

typedef enum FrameTarget { FRAME_TO_GROUP, FRAME_TO_LEADER, FRAME_TO_SESSION } FrameTarget;

ABX_FN void frame_put_signal(Buf *to, int number, FrameTarget target);
ABX_FN bool frame_signal(const Frame *f, int *number, FrameTarget *target) ABX_CHECK;

ABX_FN void frame_put_resize(Buf *to, uint16_t cols, uint16_t rows);
ABX_FN bool frame_resize(const Frame *f, uint16_t *cols, uint16_t *rows) ABX_CHECK;

typedef enum FrameEnd { FRAME_ENDED_CODE, FRAME_ENDED_SIGNAL, FRAME_ENDED_TIMEOUT } FrameEnd;

typedef struct FrameExit {
    FrameEnd how;
    uint32_t number;            /* the exit code, or the signal's number; for a timeout the signal that ended it */
    uint64_t out, err;          /* how many bytes of each were sent, a replay's missing ones included */
} FrameExit;

ABX_FN void frame_put_exit(Buf *to, const FrameExit *x);
ABX_FN bool frame_exit(const Frame *f, FrameExit *x) ABX_CHECK;

typedef enum FrameStage {
    FRAME_AT_START,             /* what START asks for is wrong, or of a kind that this agent does not have */
    FRAME_AT_USER, FRAME_AT_CWD, FRAME_AT_TTY, FRAME_AT_EXEC,
    FRAME_AT_CONNECT,           /* a forwarded channel: refused, or reset later */
    FRAME_AT_ATTACH,            /* there is no such job, or its keeper is gone */
} FrameStage;

typedef struct FrameFail {
    FrameStage stage;
    uint32_t   sys;             /* Linux's errno, 0: none */
    Str        text;            /* cut at FRAME_FAIL_TEXT */
} FrameFail;

ABX_FN void frame_put_fail(Buf *to, uint16_t channel, const FrameFail *x);
ABX_FN bool frame_fail(const Frame *f, FrameFail *x) ABX_CHECK;

/* ---- what to do ---- */

typedef enum FrameKind {
    FRAME_EXEC = 1,             /* a program with three pipes */
    FRAME_PTY,                  /* a program with a terminal: what it prints is OUT */
    FRAME_FORWARD,              /* a connection to 127.0.0.1:port; the channel is not 0 */
    FRAME_ATTACH,               /* go on with `job`: REPLAY and OUT from `offset` on, as far as its ring goes back */
    FRAME_JOBS,                 /* OUT: a line of JSON for each job (below); EXIT 0; 1: there may be more */
    FRAME_CONTROL,              /* to `job`: argv[0] is "signal" with a number, or "forget"; EXIT 0, or FAIL */
    FRAME_TAR_IN,               /* these and the next three are programs of the agent's own (below), as exec */
    FRAME_TAR_OUT,
    FRAME_HASH,
    FRAME_WATCH,
    FRAME_KINDS,                /* how many there are, and one */
} FrameKind;

enum {
    FRAME_START_INPUT = 1,      /* stdin is a pipe that DATA fills and EOF closes; else /dev/null */
    FRAME_START_JOB = 2,        /* it goes on without a client, and keeps its result until it is forgotten */
    FRAME_START_NO_ACK = 4,     /* the client cannot send: no CREDIT is waited for, no ACK, no PING */
    FRAME_START_TAKE = 8,       /* attach: the present client is sent away */
    FRAME_START_WATCH = 16,     /* attach: beside the present client, who alone may send more than CREDIT, ACK and PING */
};

/* Each kind is answered with STARTED (pid 0 for what is no process), or FAIL.
 * attach: STARTED, REPLAY, and then as exec. A line of FRAME_JOBS:
 *
 *     {"id":"...","pid":7,"command":"make -j2","tty":false,"state":"running","attached":false,
 *      "started":1790000000,"printed":120,"from":0}
 *
 * state: running, ended, lost. An ended one has "ended" (seconds as in
 * "started"), "exit_code" or "signal", and "timed_out" where it did. "command"
 * is at most 200 bytes of UTF-8. errno of FAIL at FRAME_AT_ATTACH: ENOENT no
 * such job, ESRCH it has ended, EBUSY somebody has it or it still runs. */

/* Four programs that the agent has, run as exec runs one: with user, folder and timeout, pipes, signals and
 * totals, an exit code. What they say is sync/item.h's; on stderr stands one line why the whole failed, with
 * its E-code in front ("E4001 there is no ..."), and the exit code is 1 then. argv[0] is options, "-" and
 * letters:
 *
 *     tar-in   -[s][r] TARGET        s: several roots, r: resume. The stream of a copy on stdin; on stdout
 *                                    ITEM_DONE, FAILED, KEPT, END
 *     tar-out  -[t][h] PATTERN...    t: with ITEM_TOTAL. The stream on stdout. h: ITEM_HAVE and PART, to ITEM_END,
 *                                    come on stdin first
 *     hash     -[p] NAME PATH        ITEM_HAVE (p: and PART) of what a copy of NAME to PATH would find, ITEM_END;
 *                                    NAME ".": of what is at PATH
 *     watch    -[d] PATH             d: and all that is below. ITEM_READY, then what happens, until it is ended */

typedef struct FrameStart {
    FrameKind kind;
    uint32_t  flags;
    Strs      argv;             /* one word: a line for `sh -c`; several: exactly these. Any bytes but NUL */
    Strs      env;              /* "NAME=VALUE", over the agent's own environment */
    Str       cwd;              /* empty: where the agent was started */
    Str       user;             /* a name or a number; empty: the agent's own */
    uint16_t  cols, rows;       /* pty */
    uint64_t  timeout_ms;       /* 0: none; at its end the group is killed */
    uint32_t  hold_s;           /* lives on so long without a client; 0: it ends with the link. Not for jobs, which stay */
    uint16_t  port;
    Str       job;              /* attach, control */
    uint64_t  offset;           /* attach: how much of OUT and ERR together the client has */
} FrameStart;

/* All START frames that it takes. False: E8002, more than FRAME_START_BYTES. */
ABX_FN bool frame_put_start(Buf *to, uint16_t channel, const FrameStart *s, Err *err) ABX_CHECK;

/* From the payloads of all of them, joined; lists are in the arena, text is a
 * view into `all`. False: ERR_INPUT, E8020. */
ABX_FN bool frame_start(Str all, Arena *a, FrameStart *s, Err *err) ABX_CHECK;

#endif
