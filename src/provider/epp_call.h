/* epp_call.h - the conversation with a plugin: requests and answers, and what
 * it tells of running commands (EPP/1; specification, 4.1, 4.2, 4.6, 4.8).
 *
 *     JsonOut *w = epp_call_begin(c, "sandbox.get");
 *     json_key(w, "sandbox_id"); json_put_str(w, id);
 *     if (!epp_call_end(c, deadline, &result, err)) ...
 *
 * Answers may come in any order and are told apart by their number; one that
 * nobody waits for is dropped. Notifications go to the stream that their
 * process_id names. One for a command that is not known yet (a plugin may print
 * before it answers exec.start) is kept for it, up to LIMIT_EPP_HELD bytes and
 * LIMIT_EPP_STREAMS commands in all; a plugin that sends more is ended (E8020).
 *
 * Failures of a call:
 *   what the plugin answers (epp_error.h)
 *   E8022  no answer before the deadline: `$/cancel` is sent, and the answer
 *          dropped when it comes; a request that is still not written then ends
 *          the plugin
 *   E4003  the request would be longer than LIMIT_EPP_LINE; nothing was sent
 *   E0000  ERR_CANCELLED: `$/cancel` is sent, too
 *   those of epp_link.h
 *
 * Memory: a result is good until the next call of anything here.
 */
#ifndef ABX_EPP_CALL_H
#define ABX_EPP_CALL_H

#include "data/json.h"
#include "provider/epp_link.h"
#include "provider/provider.h"

/* A request whose answer is outstanding. */
typedef struct EppWait EppWait;
struct EppWait {
    EppWait    *next;
    int64_t     number;
    int64_t     started;
    bool        there;          /* the answer came: */
    const Json *answer;         /* read already, good until the next line is; or NULL, and */
    Buf         line;           /* kept as it came */
};

typedef enum EppStreamState { EPP_EARLY, EPP_OPEN, EPP_DROPPED } EppStreamState;

/* What is told of one command. */
typedef struct EppStream EppStream;
struct EppStream {
    EppStream     *next;
    EppStreamState state;
    char          *key;         /* its process_id, as text */
    size_t         key_n;
    Buf            held;        /* lines that were not taken yet, from `at` on */
    size_t         at;
    bool           exited;      /* the last of them was seen */
};

typedef struct EppCalls {
    EppLink     link;
    const EppVoice *voice;
    const ProviderHost *host;   /* for its cancel fd and its trace */
    int64_t     number;         /* of the last request */
    EppWait    *waits;
    EppStream  *streams;
    size_t      held;           /* bytes in all streams */
    Arena       message;        /* the line that was read last */
    Buf         text;           /* the request being written */
    JsonOut     writer;
    const char *method;
    bool        no_method;      /* the last error said that the plugin has no such method */
    bool        late;           /* a call was not answered in time: what comes next may not be, either */
} EppCalls;

ABX_FN bool epp_call_start(EppCalls *c, const ProcSpec *spec, const EppVoice *voice, const ProviderHost *host,
                           Err *err) ABX_CHECK;
ABX_FN void epp_call_stop(EppCalls *c);     /* `shutdown`, then: */
ABX_FN void epp_call_drop(EppCalls *c);     /* epp_link_end(), and all memory goes */

/* A request: its parameters are written in between. `secret` is how many bytes
 * of them are keys, at most; they are wiped. */
ABX_FN JsonOut *epp_call_begin(EppCalls *c, const char *method);
ABX_FN void     epp_call_secret(EppCalls *c, size_t bytes);
ABX_FN bool     epp_call_end(EppCalls *c, Deadline d, const Json **result, Err *err) ABX_CHECK;

/* The same in two steps: the answer is waited for later. */
ABX_FN bool epp_call_send(EppCalls *c, EppWait *w, Deadline d, Err *err) ABX_CHECK;
/* STEP_DONE: *result. STEP_MORE: not yet. STEP_ERR: the error that came, or the link's. */
ABX_FN Step epp_call_poll(EppCalls *c, EppWait *w, const Json **result, Err *err) ABX_CHECK;
ABX_FN bool epp_call_wait(EppCalls *c, EppWait *w, const char *method, Deadline d, const Json **result, Err *err) ABX_CHECK;
ABX_FN void epp_call_cancel(EppCalls *c, const EppWait *w);             /* only says so */
ABX_FN void epp_call_forget(EppCalls *c, EppWait *w, bool cancel);

/* The stream of a command that was started; what came early is in it. */
ABX_FN EppStream *epp_call_stream(EppCalls *c, Str key);
/* STEP_DONE: *note is its next notification, a JSON object. STEP_MORE: none
 * yet. STEP_ERR: the link's failure. */
ABX_FN Step epp_call_note(EppCalls *c, EppStream *s, const Json **note, Err *err) ABX_CHECK;
ABX_FN void epp_call_leave(EppCalls *c, EppStream *s);
/* Wait until its end was told, which stays to be taken. */
ABX_FN bool epp_call_await_exit(EppCalls *c, EppStream *s, Deadline d);

/* The answer has another shape than it must have: the plugin is ended. Returns
 * false, with *err: E8020, naming method and key. */
ABX_FN bool epp_call_bad(EppCalls *c, const char *method, const char *what, Err *err);

/* A process_id as text; p NULL when it can be none. */
ABX_FN Str epp_call_key(const Json *process_id);

#endif
