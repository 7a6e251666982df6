/* call.h - one call of EPP under way: its parameters and its answer. What
 * calls.c and running.c share.
 *
 * A call runs in a process of its own (serve/serve.h). Each function that
 * answers adds whole lines to `lines`; call_send() is what writes them.
 */
#ifndef ABX_CALL_H
#define ABX_CALL_H

#include "abx.h"
#include "serve/wire.h"

typedef struct Call {
    Str         method;
    Str         id;             /* as JSON text; empty: null */
    const Json *params;         /* an object */
    const char *process_id;     /* exec.start, pty.open: what the command is called from now on */
    int         asks;           /* the same: requests about it come here, as lines; never blocks */
} Call;

typedef struct CallRun {
    const Call  *call;
    int          out;
    int          cancel_fd;
    Arena        a;
    Buf          lines;         /* to be sent */
    abx_session *session;
    abx_sandbox *box;           /* that params.sandbox_id names; NULL for methods without */
    abx_error    failed;
    bool         refused;       /* the reason is `refusal`, not `failed` */
    bool         made;          /* the sandbox is ours until the host knows of it */
    WireError    refusal;
    char         text[512];     /* of the refusal */
} CallRun;

/* Write all lines, however long that takes; the process ends when nobody reads
 * them any more. call_flush() writes what can be written at once. */
ABX_FN void call_send(CallRun *c);
ABX_FN void call_flush(CallRun *c);

/* Take away the sandbox that was made. */
ABX_FN void call_unmake(CallRun *c);

/* Say why it cannot be done. Returns false. */
ABX_FN bool call_refuse(CallRun *c, int code, const char *fmt, ...) ABX_PRINTF(3, 4);
ABX_FN bool call_unable(CallRun *c, const char *feature, const char *what);
ABX_FN void call_failed(CallRun *c);                /* the error's line, from either reason */

ABX_FN bool call_answered(CallRun *c, WireOut *w);  /* the answer's line is complete; false: it is too long */
ABX_FN bool call_empty(CallRun *c);                 /* {} */

/* ---- parameters ---- */

/* A member, or NULL where it is missing or null. */
ABX_FN const Json *call_param(const CallRun *c, const char *key);

/* *out stays as it is when the member is not there and need not be. */
ABX_FN bool call_text(CallRun *c, const char *key, bool needed, const char **out);
ABX_FN bool call_number(CallRun *c, const char *key, bool needed, int64_t *out);
ABX_FN bool call_bytes(CallRun *c, const char *key, Str *out);     /* base64, in the arena */
ABX_FN bool call_pairs(CallRun *c, const char *key, const abx_pair **out, size_t *n);  /* an object of strings */
ABX_FN bool call_pid(CallRun *c, const char **out);     /* of process.*: a number, or text */

/* ---- results ---- */

ABX_FN void call_member(JsonOut *w, const char *key, const char *value);    /* NULL: it is left out */

#endif
