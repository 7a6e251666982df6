/* session.h - what the functions of abx.h share: a session and its provider. */
#ifndef ABX_SESSION_H
#define ABX_SESSION_H

#include "abx.h"
#include "host/config.h"
#include "host/store.h"
#include "provider/provider.h"

enum { SESSION_TIMEOUT_S = 300 };   /* a sandbox lives so long when nobody said how long */

/* Whom notices go to; without a function they go to stderr. */
typedef struct SessionNotice {
    void (*say)(void *ctx, const char *line);
    void  *ctx;
} SessionNotice;

struct abx_session {
    Arena        own;           /* configuration and names, until the session is closed */
    const Store *store;         /* NULL: none */
    Provider    *provider;
    const char  *id;            /* the provider's */
    Str          default_template;
    SessionNotice notice;
    const char  *no_agent;      /* why nothing is carried into its sandboxes; "" */
};

struct abx_sandbox {
    abx_session *session;
    Arena        result;        /* of the last call on this handle */
    char        *id;
    abx_info     info;
    bool         known;         /* info holds something */
    bool         gone;          /* it was killed through this handle */
    abx_url      url;
};

/* Hand a line on; ctx is a SessionNotice. */
ABX_FN void session_notice(void *ctx, Str line);

/* The configuration that these options lead to, in the arena. NULL: *err. */
ABX_FN Config *session_config(const abx_options *o, SessionNotice *notice, Arena *a, Err *err);

/* The folder that these options mean; p NULL: there is none. The store in it, in
 * the arena; NULL: there is none. */
ABX_FN Str session_home(const abx_options *o, Arena *a);
ABX_FN const Store *session_store(const abx_options *o, Arena *a);

/* Pairs as the layers below take them; views into the caller's strings. False:
 * E8002, a pair without a key or without a value. */
ABX_FN bool session_pairs(const abx_pair *pairs, size_t n, const char *what, Arena *a, const Pair **out, Err *err);

/* What calls on the handle gave out before is no longer good: where their next
 * result goes. */
ABX_FN Arena *session_result(abx_sandbox *b);

/* False, E8004: the provider does not have this operation. */
ABX_FN bool session_can(const Provider *p, bool can, const char *what, Err *err);

#endif
