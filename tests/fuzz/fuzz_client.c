/* A server that answers anything, in pieces of any size: two exchanges on what
 * may be the same connection, each read to its end or its failure. */
#include "base/mem.h"
#include "net/client.h"

typedef struct FuzzStream {
    Stream stream;
    Str    left;
    size_t piece;
} FuzzStream;

static Step fuzz_client__read(Stream *s, char *p, size_t cap, size_t *n, Err *err)
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

static Step fuzz_client__write(Stream *s, const char *p, size_t len, size_t *n, Err *err)
{
    (void)s, (void)p, (void)err;
    *n = len;
    return STEP_DONE;
}

static StreamWant fuzz_client__want(const Stream *s, StreamSide side)
{
    (void)s, (void)side;
    return (StreamWant){.fd = -1};
}

static void fuzz_client__close(Stream *s)
{
    mem_free(s);
}

static bool fuzz_client__dial(void *ctx, const Url *url, int cancel_fd, Deadline deadline, Stream **out, Err *err)
{
    static const StreamOps ops = {fuzz_client__read, fuzz_client__write, fuzz_client__want, fuzz_client__close};
    Str        *data = ctx;
    FuzzStream *f = mem_new(sizeof *f);

    (void)url, (void)cancel_fd, (void)deadline, (void)err;
    *f = (FuzzStream){{&ops}, *data, data->n ? (unsigned char)data->p[0] % 64 + 1 : 1};
    if (data->n)
        str_skip(&f->left, 1);
    *out = &f->stream;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Str           in = {(const char *)data, size};
    Client       *c = client_make(&(ClientOptions){.dial = fuzz_client__dial, .dial_ctx = &in, .cancel_fd = -1});
    ClientRequest r = {.method = size % 8 == 7 ? "HEAD" : "GET", .deadline = DEADLINE_NONE, .idempotent = true,
                       .url = {.scheme = {"http", 4}, .host = {"h", 1}, .port = 80, .path = {"/", 1}}};
    char          p[100];
    size_t        n;
    Err           err;

    for (int i = 0; i < 2; i++) {
        Exchange *x;
        int64_t   total = 0;
        bool      ok = client_open(c, &r, &x, &err);
        while (ok && (ok = client_read(x, p, sizeof p, &n, DEADLINE_NONE, &err)) && n)
            total += (int64_t)n;
        if (x && ok && client_length(x) >= 0 && r.method[0] == 'G' && total != client_length(x))
            __builtin_trap();       /* a body of another length than was announced */
        client_close(x);
    }
    client_free(c);
    return 0;
}
