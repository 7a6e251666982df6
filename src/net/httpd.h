/* httpd.h - an HTTP/1.1 server side (RFC 9110, 9112) on a poll loop.
 *
 * It owns connections and speaks HTTP on them with the codec of net/http: what
 * is ambiguous is refused (400, 431, 501, 505, 417), answered, and the
 * connection closed. Each request becomes an HttpdCall; the one `begin`
 * function given at birth sees its head and chooses a handler for the rest.
 * Requests on one connection are answered one after the other.
 *
 *     static void hello(void *ctx, HttpdCall *c)
 *     {
 *         httpd_answer(c, 200, "text/plain", STR("hello\n"));
 *     }
 *     Httpd *h = httpd_make(&loop, hello, NULL);
 *     if (!httpd_listen(h, "127.0.0.1", &port, err)) ...
 *     while (loop_turn(&loop, err)) ...
 *
 * To write a handler: fill a static HttpdHandler with what it needs, set
 * c->handler and c->ctx in `begin`, or call httpd_answer() at once. A body
 * that nobody takes is read and dropped. Two ways of back-pressure:
 *   in   body() takes every piece it is given; httpd_pause() keeps more from
 *        coming until httpd_resume(), or the answer is finished. A piece is
 *        at most LIMIT_HTTPD_READ.
 *   out  httpd_write() buffers; httpd_room() says how much more is welcome,
 *        and room() is called when there is room again.
 * gone() is the last call of a handler, and comes exactly once: when the
 * answer was sent whole, or the connection was lost. It is never called from
 * inside a call into this file, so a handler may free its state there.
 *
 * A client may close its sending side and still gets its answer. Slow ones
 * meet the deadlines of base/limits.h. SIGPIPE must be ignored (os/signal).
 *
 * Memory: httpd_free() closes everything. A connection at rest holds a few
 * hundred bytes; the text of a request lives in c->arena until gone().
 */
#ifndef ABX_HTTPD_H
#define ABX_HTTPD_H

#include "base/arena.h"
#include "net/http.h"
#include "os/loop.h"

typedef struct Httpd     Httpd;
typedef struct HttpdCall HttpdCall;

typedef struct HttpdHandler {
    void (*body)(HttpdCall *c, Str piece);      /* NULL: the body is dropped */
    void (*end)(HttpdCall *c);                  /* the body is complete */
    void (*room)(HttpdCall *c);
    void (*gone)(HttpdCall *c, bool whole);     /* whole: all of the answer was handed to the kernel */
} HttpdHandler;

struct HttpdCall {
    HttpHead            head;
    Arena              *arena;
    const HttpdHandler *handler;    /* never NULL; empty at first */
    void               *ctx;        /* the handler's own */
};

typedef void HttpdBegin(void *ctx, HttpdCall *c);

ABX_FN Httpd *httpd_make(Loop *loop, HttpdBegin *begin, void *ctx);
ABX_FN void   httpd_free(Httpd *h);

/* Accept connections, as listen_open() says (net/listen); once. */
ABX_FN bool httpd_listen(Httpd *h, const char *host, int *port, Err *err) ABX_CHECK;

/* Serve this connected stream socket, too; it is closed in the end. */
ABX_FN void httpd_adopt(Httpd *h, int fd);

/* --- answering -------------------------------------------------------------
 * Each call is answered once: by httpd_answer(), or by httpd_start(), any
 * number of writes, and httpd_finish() or httpd_file(). */

/* A whole answer. type may be NULL when body is empty. */
ABX_FN void httpd_answer(HttpdCall *c, int status, const char *type, Str body);

/* The head of an answer whose body follows; length -1 when that is not known.
 * Fields beside Date, Content-Length, Transfer-Encoding and Connection. One
 * that may not be sent (a control character in its value) is left out. */
ABX_FN void httpd_start(HttpdCall *c, int status, const Header *fields, size_t n, int64_t length);

ABX_FN bool   httpd_started(const HttpdCall *c);
ABX_FN size_t httpd_room(HttpdCall *c);             /* bytes that may be written now; 0: wait for room() */
ABX_FN void   httpd_write(HttpdCall *c, Str bytes); /* past LIMIT_HTTPD_OUT the connection is cut */
ABX_FN void   httpd_finish(HttpdCall *c);

/* n bytes of fd from offset on, as the rest of the body; fd is closed. A file
 * that turns out shorter cuts the connection: the client sees that it is. */
ABX_FN void httpd_file(HttpdCall *c, int fd, int64_t offset, int64_t n);

ABX_FN void httpd_again(HttpdCall *c);              /* room() in the next turn of the loop, whoever waits */
ABX_FN void httpd_abort(HttpdCall *c);              /* cut the connection: the answer cannot be made whole */

/* --- the request's body ---------------------------------------------------- */

/* Gather all of it, at most limit bytes (else 413), then call `then`, which
 * answers or sets a handler; the bytes are good until it is back. */
ABX_FN void httpd_collect(HttpdCall *c, size_t limit, void (*then)(HttpdCall *c, Str body));

ABX_FN void    httpd_pause(HttpdCall *c);
ABX_FN void    httpd_resume(HttpdCall *c);
ABX_FN int64_t httpd_length(const HttpdCall *c);    /* as announced; 0 without a body, -1 when chunked */

/* Answer 101 with these fields; from then on body() and httpd_write() move raw
 * bytes, end() is the client's end, httpd_finish() ours. */
ABX_FN void httpd_tunnel(HttpdCall *c, const Header *fields, size_t n);

/* The client's connection, for another process that answers in our place, and
 * httpd_abort() then leaves to it alone. -1: it would not see all that the
 * client said, or the client has something to hear of ours first. In `begin` only. */
ABX_FN int httpd_socket(const HttpdCall *c);

#endif
