/* A server that answers anything, in pieces of any size: two exchanges on what
 * may be the same connection, each read to its end or its failure. */
#include "fuzz_stream.h"
#include "net/client.h"

static bool fuzz_client__dial(void *ctx, const Url *url, int cancel_fd, Deadline deadline, Stream **out, Err *err)
{
    Str    data = *(Str *)ctx;
    size_t piece = data.n ? (unsigned char)data.p[0] % 64 + 1 : 1;

    (void)url, (void)cancel_fd, (void)deadline, (void)err;
    str_skip(&data, data.n ? 1 : 0);
    *out = fuzz_stream(data, piece);
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
