/* execd.h - the daemon inside an OpenSandbox sandbox: where it is, and calls.
 *
 * Its address is asked from the server each time (but execd_near()), since it changes with a
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

/* The same for what only looks: nothing is asked again within LIMIT_NEAR_MS, so
 * that a listing of many folders costs a request for each. Nothing else may be
 * found while *out is used. */
ABX_FN bool execd_near(Lifecycle *l, Str id, Execd *out, Deadline d, Err *err);

/* The daemon answers. False: not now, with the reason. */
ABX_FN bool execd_ping(Execd *x, Arena scratch, Deadline d, Err *err);

typedef struct ExecdCall {
    const char   *method;
    const char   *path;         /* "/files/info" */
    Str           query;        /* p NULL: none */
    const Source *body;
    Str           type;         /* the body's media type */
    bool          idempotent;
    bool          websocket;    /* only a change to WebSocket will do */
    size_t        most;         /* an answer of more bytes is none; 0: LIMIT_ANSWER */
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

#endif
