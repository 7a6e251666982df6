/* execd.h - the daemon inside an OpenSandbox sandbox: calls and commands.
 *
 * Its address is asked from the server each time, since it changes with a
 * resume or a restart. The sandbox behind it is not trusted: it never sees the
 * API key, and what it says is checked and cleaned like any hostile input.
 */
#ifndef ABX_EXECD_H
#define ABX_EXECD_H

#include "provider/lifecycle.h"

typedef struct Execd {
    Lifecycle *server;
    Str        id;
    Endpoint   at;
} Execd;

typedef struct ExecdReply {
    int     status;         /* 200 ... 299 */
    Str     body;
    const Json *json;       /* NULL when the body is empty or was not asked to be JSON */
} ExecdReply;

/* Ask the server for the sandbox's state and for the way in. One that is not
 * running is refused with `code`, for what is sent to a paused one would hang
 * and be carried out after the resume. */
ABX_FN bool execd_find(Lifecycle *l, Str id, Code code, Arena *a, Execd *out, Deadline d, Err *err);

/* The daemon answers. False: not now, with the reason. */
ABX_FN bool execd_ping(Execd *x, Arena scratch, Deadline d, Err *err);

typedef struct ExecdCall {
    const char   *method;
    const char   *path;         /* "/files/info" */
    Str           query;        /* p NULL: none */
    const Source *body;
    Str           type;         /* the body's media type */
    bool          idempotent;
    bool          brief;        /* an answer of more than LIMIT_ERROR_BODY is none */
    const char   *what;         /* in words: "upload", for errors */
    Code          code;         /* for refusals that mean nothing more special */
    Deadline      deadline;
    int64_t       idle_ms;
} ExecdCall;

/* One exchange whose answer's head is there and good; the caller reads the
 * body and closes it. A missing file is E4001. */
ABX_FN bool execd_open(Execd *x, const ExecdCall *call, Arena *a, Exchange **out, Err *err);

/* The same with the whole (JSON) answer. */
ABX_FN bool execd_ask(Execd *x, const ExecdCall *call, Arena *a, ExecdReply *out, Err *err);

/* Start a command: `line` is for the daemon's shell. See provider.h for what
 * the call can do; it is independent of the Execd and its arena. */
ABX_FN bool execd_start(Execd *x, Str line, const ExecRequest *rq, ExecCall **out, Deadline d, Err *err);
ABX_FN Step execd_next(ExecCall *c, ExecEvent *ev, Err *err);
ABX_FN StreamWant execd_want(const ExecCall *c);
ABX_FN Deadline execd_deadline(const ExecCall *c);
ABX_FN bool execd_kill(ExecCall *c, Deadline d, Err *err);
ABX_FN Str  execd_pid(const ExecCall *c);
ABX_FN void execd_close(ExecCall *c);

/* A command of ours, run to its end. */
typedef struct ExecdRun {
    Str     line;           /* for the daemon's shell */
    int64_t timeout_ms;     /* 0: none */
    int     exit_code;      /* its result from here on: -1 for a signal */
    bool    timed_out;
    Str     out;            /* what it printed, as the daemon's lines allow */
    Str     said;           /* its complaint, cleaned, at most 8 KiB of it */
} ExecdRun;

/* False: the result is unknown. ERR_LIMIT: it printed more than LIMIT_ANSWER. */
ABX_FN bool execd_run(Execd *x, ExecdRun *run, Arena *a, Deadline d, Err *err);

#endif
