/* refusal.h - what a server meant when it said no.
 *
 * OpenSandbox has four shapes of refusal (its wire document, 14): {"code",
 * "message"}, {"detail": [...]} from request validation, {"detail": text} for
 * unknown routes, {"error": text} from the daemon's token check; and proxies in
 * between answer with text or HTML. All of it is somebody else's text: control
 * characters go, and the secret with them, before it reaches an Err.
 */
#ifndef ABX_REFUSAL_H
#define ABX_REFUSAL_H

#include "base/arena.h"
#include "base/err.h"
#include "net/header.h"

typedef struct Refusal {
    int  status;
    Str  code;          /* without its BACKEND:: prefix; empty when there is none */
    Str  message;       /* one line, cleaned; never empty */
    bool json;          /* it had one of the known shapes, so it is the server's own */
} Refusal;

/* Reads the answer's body. `secret` (may be empty) is cut out of the message. */
ABX_FN Refusal refusal_read(int status, Headers headers, Str body, Str secret, Arena *a);

/* Fill in *err from it: code and kind by the status, as far as that is the
 * same for every call; `what` is the call in words ("create a sandbox").
 * Returns false. 401 and 403: E1001. 404: E8005. 409: E8000. 400 and 422:
 * E8002. 429: E9005. 502, 503, 504: E9003. Other 5xx: E8000. 3xx: E5001. */
ABX_FN bool refusal_err(const Refusal *r, Headers headers, const char *what, Err *err);

#endif
