/* client.h - an HTTP/1.1 client (RFC 9110, 9112) over Streams.
 *
 * A Client keeps connections and knows how to make them; an Exchange is one
 * request with its answer. Bodies flow in pieces, both ways, in constant memory.
 *
 *     Exchange *x;
 *     if (!client_open(c, &request, &x, err)) return false;
 *     while (client_read(x, p, cap, &n, err) && n) ...
 *     client_close(x);
 *
 * client_open() sends the request with its whole body and returns when the
 * head of the final answer is there: 1xx answers are passed over (LIMIT_INTERIM),
 * an answer that comes while the body is still being sent ends the sending
 * (the connection is not kept then). Every status is a success here: what a
 * 404 means is the caller's to say.
 *
 * Framing is refused where it is ambiguous (ERR_INPUT, E5000): two different
 * lengths, a length beside chunked, an unknown transfer coding, bad chunk
 * sizes, folded fields, a bare CR, NUL. A body shorter than its length is
 * ERR_CLOSED. HEAD, 204 and 304 have no body; an answer with neither length
 * nor chunked lasts until the connection ends.
 *
 * A kept connection that turns out to be closed before the first byte of an
 * answer is replaced by a new one and the request sent again, once, if it is
 * `idempotent` or provably not a byte of it was sent, and if its body can be
 * read again (no body, or `rewind`). Nothing else is ever repeated.
 *
 * Redirects are not followed; the caller sees the 3xx.
 *
 * With `websocket` the request asks to change to WebSocket (RFC 6455, 4.1). A
 * server that does answers 101, and then there is client_take() for what
 * follows; every other status is an answer like any other: a refusal.
 *
 * Memory: client_free() closes everything. The head of an answer lives in the
 * Exchange until client_close().
 */
#ifndef ABX_CLIENT_H
#define ABX_CLIENT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/flow.h"
#include "net/header.h"
#include "net/stream.h"
#include "net/url.h"

typedef struct Client   Client;
typedef struct Exchange Exchange;

/* How a connection is made: dial_stream() in the product, a script in tests. */
typedef bool ClientDial(void *ctx, const Url *url, int cancel_fd, Deadline deadline, Stream **out, Err *err);

typedef struct ClientOptions {
    ClientDial *dial;
    void       *dial_ctx;
    int         cancel_fd;      /* -1: none */
    Str         agent;          /* User-Agent, "abx/0.1.0" */
    /* One line about each step of an exchange ("> GET /x", "< 200"), without
     * header values that are secret; NULL when nobody listens. */
    void      (*trace)(void *ctx, const char *line);
    void       *trace_ctx;
} ClientOptions;

typedef struct ClientRequest {
    const char *method;
    Url         url;
    /* Beside Host, User-Agent, Accept-Encoding, Content-Length, Transfer-Encoding and what changes the
     * protocol: those are set here, and refused (E8002) when they are given, as are TE, Trailer and Expect. */
    Headers     headers;
    const Source *body;         /* NULL: none (POST and PUT say Content-Length: 0). Size -1 goes out chunked */
    bool      (*rewind)(void *ctx, Err *err);   /* NULL: the body can be read once only */
    bool        idempotent;
    bool        websocket;      /* of a GET */
    Deadline    deadline;       /* until the head of the answer is there, connecting included */
    int64_t     idle_ms;        /* the longest pause in which not a byte moves, both ways, and behind a body the time
                                   to store it (LIMIT_STORE_SPEED); 0: no such limit */
} ClientRequest;

ABX_FN Client *client_make(const ClientOptions *options);
ABX_FN void    client_free(Client *c);                          /* NULL is fine; open exchanges are closed first by the caller */

/* From now on wait with this cancel fd: -1 while cleaning up. Ends a grace. */
ABX_FN void    client_cancel_fd(Client *c, int cancel_fd);

/* From now on cancelling ends a wait only `ms` after it was first seen: where
 * it is worth a while to hear what became of what was sent. */
ABX_FN void    client_cancel_grace(Client *c, int64_t ms);

/* False: *out is NULL. ERR_UNSENT (E5001): no connection could be made, or it
 * was lost before a byte was sent. ERR_TIMEOUT, ERR_CANCELLED. ERR_CLOSED
 * (E5000): lost after that, so whether the request was handled is unknown. */
ABX_FN bool    client_open(Client *c, const ClientRequest *request, Exchange **out, Err *err) ABX_CHECK;

ABX_FN int     client_status(const Exchange *x);                /* 200 … 599, or the 101 that was asked for */
ABX_FN Headers client_headers(const Exchange *x);

/* How long the body is: -1 when the answer does not say. */
ABX_SET int64_t client_length(const Exchange *x);

/* The end of the body is marked, by its length or by a last chunk. Where it is
 * not, a body cut short cannot be told from a whole one. */
ABX_FN bool    client_framed(const Exchange *x);

/* The next piece of the body: *n bytes, 0 at its end. Waits until `deadline`,
 * and no longer than the request's idle_ms for one piece. Reading can go on
 * after ERR_TIMEOUT and ERR_CANCELLED, after nothing else. */
ABX_FN bool    client_read(Exchange *x, char *p, size_t cap, size_t *n, Deadline deadline, Err *err) ABX_CHECK;

/* The same without waiting: STEP_MORE when nothing is there yet; then
 * client_want() says what to wait for. */
ABX_FN Step       client_try(Exchange *x, char *p, size_t cap, size_t *n, Err *err) ABX_CHECK;
ABX_FN StreamWant client_want(const Exchange *x);

/* After a 101: the connection itself, which is the caller's now. What was read
 * of it already goes behind what is in *rest, at most POOL_IN_SIZE bytes. Ends
 * the exchange. */
ABX_FN Stream *client_take(Exchange *x, Buf *rest);

/* The whole body, NUL-terminated, in the arena. More than `limit`: ERR_LIMIT. */
ABX_FN bool    client_text(Exchange *x, size_t limit, Arena *a, Str *body, Deadline deadline, Err *err) ABX_CHECK;

/* Done with it, read to the end or not; NULL is fine. The connection is kept
 * when the answer was read to its end and both sides want it. */
ABX_FN void    client_close(Exchange *x);

#endif
