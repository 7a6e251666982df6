/* lifecycle.h - the server plane of OpenSandbox 1.1.1: sandboxes come and go.
 *
 * JSON over HTTP under BASE/v1, authenticated by the OPEN-SANDBOX-API-KEY
 * header, which goes to that server and nowhere else. Each function is one
 * operation of provider.h, with its codes; what a refusal says is taken from
 * the server's own words, cleaned.
 *
 * Memory: results live in the arena that is handed in.
 */
#ifndef ABX_LIFECYCLE_H
#define ABX_LIFECYCLE_H

#include "data/json.h"
#include "net/client.h"
#include "provider/provider.h"

/* How the daemon, or a port, of a sandbox is reached. */
typedef struct Endpoint {
    Url     url;
    Headers headers; /* to be sent with every request to it; the key among them only when it is our server's proxy */
} Endpoint;

typedef struct Lifecycle {
    const ProviderHost *host;
    Client *http;
    Arena   own;            /* what the settings became: lives as long as the provider */
    Url     base;           /* with /v1 */
    Str     key;            /* empty: the server takes everybody */
    bool    use_proxy;      /* reach daemons and ports through the server */
    Str     image;          /* what template "base" stands for */
    const Str *entrypoint;  /* configured; NULL: automatic */
    size_t  entrypoint_count;
    Str     cpu, memory;    /* empty: the server's own limits */
    int64_t ready_ms;
    int64_t call_ms;
    struct {
        Arena    own;
        Str      id;
        Endpoint at;
        Deadline until;     /* passed: it is not known */
    } near;                 /* the sandbox that was looked into last (provider/execd.h) */
} Lifecycle;

/* POST /sandboxes. The sandbox is not ready yet when this is back; *out holds
 * what the answer says. When it fails after the request was sent, whatever was
 * made is found again by a label and removed, or the message says that it
 * could not be. */
ABX_FN bool lifecycle_create(Lifecycle *l, const CreateRequest *rq, Arena *a, SandboxInfo *out, Deadline d, Err *err);

ABX_FN bool lifecycle_get(Lifecycle *l, Str id, Arena *a, SandboxInfo *out, Deadline d, Err *err);
ABX_FN bool lifecycle_list(Lifecycle *l, const Pair *metadata, size_t metadata_count, int page, Arena *a,
                           ListPage *out, Deadline d, Err *err);
ABX_FN bool lifecycle_kill(Lifecycle *l, Str id, bool *killed, Deadline d, Err *err);
ABX_FN bool lifecycle_set_timeout(Lifecycle *l, Str id, int64_t seconds, Arena *a, SandboxInfo *out, Deadline d,
                                  Err *err);

/* verb is "pause" or "resume"; waits until the state says that it is done. */
ABX_FN bool lifecycle_switch(Lifecycle *l, Str id, const char *verb, SandboxState goal, Arena *a, SandboxInfo *out,
                             Deadline d, Err *err);

/* `path` is joined to the endpoint's own by whoever uses it. */
ABX_FN bool lifecycle_endpoint(Lifecycle *l, Str id, int port, Arena *a, Endpoint *out, Deadline d, Err *err);

/* What the container's entrypoint printed, its last bytes; empty when that
 * cannot be had. */
ABX_FN Str lifecycle_last_words(Lifecycle *l, Str id, Arena *a, Deadline d);

#endif
