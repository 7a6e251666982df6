/* stream.h - a connection that bytes flow through, whatever it is made of.
 *
 * TCP, TLS, a child's pipes and the scripted streams of tests are Streams;
 * HTTP never knows which. No call blocks: STEP_MORE says "not now", and
 * stream_want() says which descriptor to wait for. stream_wait() is that wait.
 *
 *     while ((step = stream_read(s, p, cap, &n, err)) == STEP_MORE)
 *         if (!stream_wait(s, STREAM_READ, cancel_fd, deadline, err)) return false;
 *
 * Memory: stream_close() ends the connection and frees the Stream.
 */
#ifndef ABX_STREAM_H
#define ABX_STREAM_H

#include "base/err.h"
#include "os/clock.h"

typedef struct Stream Stream;

typedef enum StreamSide { STREAM_READ, STREAM_WRITE } StreamSide;

typedef struct StreamWant {
    int   fd;           /* -1: ready at once (a scripted stream) */
    short events;       /* POLLIN, POLLOUT; TLS may want the other one */
} StreamWant;

typedef struct StreamOps {
    Step       (*read)(Stream *s, char *p, size_t cap, size_t *n, Err *err);
    Step       (*write)(Stream *s, const char *p, size_t len, size_t *n, Err *err);
    StreamWant (*want)(const Stream *s, StreamSide side);
    void       (*close)(Stream *s);
} StreamOps;

/* First member of each kind of stream. */
struct Stream { const StreamOps *ops; };

/* STEP_DONE: *n bytes came; 0 is the end of the stream, for TLS only after the
 * peer's close_notify. STEP_MORE: nothing there. STEP_ERR: ERR_CLOSED when the
 * peer reset or cut the connection, ERR_SYSTEM otherwise (E5000). */
ABX_FN Step stream_read(Stream *s, char *p, size_t cap, size_t *n, Err *err) ABX_CHECK;

/* STEP_DONE: *n of the bytes were taken, at least one. STEP_MORE: none now.
 * STEP_ERR: as above; a peer that reads no more is ERR_CLOSED, never SIGPIPE. */
ABX_FN Step stream_write(Stream *s, const char *p, size_t len, size_t *n, Err *err) ABX_CHECK;

ABX_FN StreamWant stream_want(const Stream *s, StreamSide side);
ABX_FN bool stream_wait(const Stream *s, StreamSide side, int cancel_fd, Deadline deadline, Err *err) ABX_CHECK;
ABX_FN void stream_close(Stream *s);            /* NULL is fine */

#endif
