/* http.h - HTTP/1.1 messages as bytes (RFC 9112): heads and bodies, no I/O.
 *
 * Both sides stand on it: net/client reads answers, net/httpd reads requests.
 * Readers take bytes cut anywhere, as they arrive, and move *in past what they
 * used; what is left in *in belongs to the next part of the connection.
 *
 * One grammar for both sides, and no leniency that two readers could take
 * differently: lines end in CR LF (a bare LF is refused too), no obs-fold, no
 * blank before a field's colon, no control characters but TAB in values, no
 * NUL, HTTP/1.0 and 1.1 only; a request target is origin-form or "*".
 * Empty lines before a request line are passed over, at most two. err->status
 * is set where a server has a better answer to a bad request than 400: 505 for
 * another version, 501 for another transfer coding.
 */
#ifndef ABX_HTTP_H
#define ABX_HTTP_H

#include "base/arena.h"
#include "base/buf.h"
#include "net/header.h"

typedef enum HttpSide { HTTP_REQUEST, HTTP_ANSWER } HttpSide;

typedef struct HttpHead {
    int     minor;          /* 1 for HTTP/1.1, 0 for HTTP/1.0 */
    Str     method;         /* requests */
    Str     target;
    int     status;         /* answers: 100 ... 599 */
    Str     reason;
    Headers headers;
} HttpHead;

/* Gathers one head. Private to http.c; here so that it can be held by value. */
typedef struct HttpHeadReader {
    HttpSide side;
    Buf      bytes;
    size_t   line;          /* where the line being read begins */
    size_t   lines;         /* whole lines before it */
    int      blank;         /* empty lines passed over before a request */
} HttpHeadReader;

ABX_FN HttpHeadReader http_head_reader(HttpSide side);
ABX_FN void http_head_free(HttpHeadReader *r);

/* STEP_DONE: *out is the head, its text in the arena; the reader is ready for
 * the next one. STEP_MORE: all of *in was used. STEP_ERR: ERR_INPUT, or
 * ERR_LIMIT past LIMIT_HEAD or LIMIT_HEADERS; E5000. */
ABX_FN Step http_head_next(HttpHeadReader *r, Str *in, Arena *a, HttpHead *out, Err *err) ABX_CHECK;

/* No byte of a head has come yet: an end of the stream here is a clean one. */
ABX_FN bool http_head_idle(const HttpHeadReader *r);

typedef enum HttpBodyState {
    HTTP_BODY_LENGTH,       /* `left` bytes are still to come */
    HTTP_BODY_UNTIL_END,    /* until the connection ends */
    HTTP_BODY_SIZE,         /* chunked: inside a size line */
    HTTP_BODY_CHUNK,        /* chunked: `left` bytes of this chunk are still to come */
    HTTP_BODY_CHUNK_END,    /* chunked: the CR LF behind a chunk */
    HTTP_BODY_TRAILER,      /* chunked: the fields behind the last chunk; read and dropped */
    HTTP_BODY_DONE,
} HttpBodyState;

/* Where a body ends. Holds no memory of its own. */
typedef struct HttpBody {
    HttpBodyState state;
    int64_t       left;
    int64_t       length;   /* as announced, -1 when it was not */
    uint64_t      size;     /* the chunk size read so far */
    int           digits;
    int           part;     /* private: where in a line the reader stands */
    size_t        line;     /* bytes of this size line or of the trailers so far */
} HttpBody;

/* What body follows `head`. For an answer, `method` is the request's. False:
 * ERR_INPUT, E5000: two different lengths, a length beside chunked, an
 * unknown coding, chunked in HTTP/1.0. A request without either has none. */
ABX_FN bool http_body_of(HttpSide side, Str method, const HttpHead *head, HttpBody *out, Err *err) ABX_CHECK;

/* STEP_DONE: *piece is the next part of the body, a view into *in's bytes, or
 * empty when the body is over (state HTTP_BODY_DONE). STEP_MORE: *in is used up.
 * STEP_ERR: bad chunk framing. */
ABX_FN Step http_body_next(HttpBody *b, Str *in, Str *piece, Err *err) ABX_CHECK;

/* The stream ended here. False (ERR_CLOSED): in the middle of the body. */
ABX_FN bool http_body_ended(const HttpBody *b, Err *err) ABX_CHECK;

/* The connection can carry another message after this head, as far as its
 * version and its Connection field say. */
ABX_FN bool http_keeps(const HttpHead *head);

/* Writing. A name or value that is not fit to be sent is ERR_USAGE, E8002, and
 * names the field, never its value. */
ABX_FN bool http_put_request_line(Buf *b, Str method, Str target, Err *err) ABX_CHECK;
ABX_FN bool http_put_field(Buf *b, Str name, Str value, Err *err) ABX_CHECK;

/* A chunk's size line for n bytes into `line`; its length. Behind the bytes
 * comes "\r\n", and "0\r\n\r\n" ends the body. */
enum { HTTP_CHUNK_LINE = 20 };
ABX_FN size_t http_chunk_line(char line[static HTTP_CHUNK_LINE], size_t n);

/* "OK" for 200, and so on; "Status" for what has no name here. */
ABX_FN const char *http_reason(int status);

#endif
