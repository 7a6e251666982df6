/* A connection from which the fuzzer's bytes come, in pieces of one size, and
 * that takes all that is written. */
#ifndef FUZZ_STREAM_H
#define FUZZ_STREAM_H

#include "base/mem.h"
#include "base/str.h"
#include "net/stream.h"

typedef struct FuzzStream {
    Stream stream;
    Str    left;
    size_t piece;
} FuzzStream;

static Step fuzz_stream__read(Stream *s, char *p, size_t cap, size_t *n, Err *err)
{
    FuzzStream *f = (FuzzStream *)s;

    (void)err;
    *n = f->left.n < cap ? f->left.n : cap;
    if (*n > f->piece)
        *n = f->piece;
    memcpy(p, f->left.p ? f->left.p : "", *n);
    str_skip(&f->left, *n);
    return STEP_DONE;
}

static Step fuzz_stream__write(Stream *s, const char *p, size_t len, size_t *n, Err *err)
{
    (void)s, (void)p, (void)err;
    *n = len;
    return STEP_DONE;
}

static StreamWant fuzz_stream__want(const Stream *s, StreamSide side)
{
    (void)s, (void)side;
    return (StreamWant){.fd = -1};
}

static void fuzz_stream__close(Stream *s)
{
    mem_free(s);
}

static inline Stream *fuzz_stream(Str bytes, size_t piece)
{
    static const StreamOps ops = {fuzz_stream__read, fuzz_stream__write, fuzz_stream__want, fuzz_stream__close};

    FuzzStream *f = mem_new(sizeof *f);
    *f = (FuzzStream){{&ops}, bytes, piece};
    return &f->stream;
}

#endif
