/* script_stream.h - a server made of text, for tests of what speaks over a Stream.
 *
 * A Script says what the peer answers, when, in what pieces, and how it ends;
 * what was written to it is kept. It never lets anyone spin: where nothing
 * will come, its descriptor is one that never becomes readable.
 *
 *     ScriptAnswer a[] = {{"\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"}};
 *     Script s = {.answers = a, .count = 1};
 *     Stream *stream = script_open(&s);
 */
#ifndef ABX_TEST_SCRIPT_STREAM_H
#define ABX_TEST_SCRIPT_STREAM_H

#include "base/buf.h"
#include "net/client.h"
#include "net/stream.h"

typedef struct ScriptAnswer {
    const char *after;      /* goes out once this was written since the last answer; NULL: at once */
    const char *bytes;
    size_t      n;          /* of bytes; 0: up to the NUL */
} ScriptAnswer;

typedef enum ScriptEnd { SCRIPT_OPEN, SCRIPT_EOF, SCRIPT_RESET } ScriptEnd;

typedef struct Script {
    Stream              stream;
    const ScriptAnswer *answers;
    size_t              count;
    size_t              cut;        /* stop after so many bytes of all answers; 0: never */
    ScriptEnd           end;        /* what follows the last byte */
    size_t              piece;      /* at most so many bytes a read or write; 0: any */
    bool                hiccups;    /* every other call has nothing yet */
    size_t              takes;      /* bytes it takes; then writing is not possible. 0: all */
    ScriptEnd           full;       /* what a write meets then */

    /* What happened. */
    Buf                 written;
    bool                closed, released;
    size_t              answer, at, mark, looked, given, reads, writes;
} Script;

static Stream *script_open(Script *s);
static void    script_free(Script *s);

/* A ClientDial: ctx is a ScriptDial, whose scripts are handed out one by one;
 * when they are used up the dial fails as a refused connection does. */
typedef struct ScriptDial {
    Script *scripts;
    size_t  count, used;
} ScriptDial;

static bool script_dial(void *ctx, const Url *url, int cancel_fd, Deadline deadline, Stream **out, Err *err);

#endif
