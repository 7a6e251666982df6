/* Compressed data: cut anywhere, what comes out is the same. */
#include "data/inflate.h"
#include "base/sha256.h"

static Step fuzz_inflate__all(InflateKind kind, Str in, size_t piece, size_t room, unsigned char digest[SHA256_SIZE])
{
    Inflate *z = inflate_open(kind);
    Sha256   sum = sha256_make();
    size_t   total = 0, n;
    char     out[4096];
    Step     step = STEP_MORE;
    Err      err;

    while (in.n && step == STEP_MORE && total < 1 << 20) {
        Str part = {in.p, piece < in.n ? piece : in.n};
        size_t had = part.n;
        do {
            step = inflate_next(z, &part, out, room, &n, &err);
            sha256_add(&sum, (Str){out, n});
            total += n;
        } while (step == STEP_MORE && n == room && total < 1 << 20);
        if (step == STEP_MORE && part.n && n < room)
            __builtin_trap();
        str_skip(&in, had - part.n);
    }
    if (step == STEP_DONE && !inflate_whole(z))
        __builtin_trap();
    sha256_end(&sum, digest);
    inflate_close(z);
    return total < 1 << 20 ? step : STEP_DONE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char one[SHA256_SIZE], two[SHA256_SIZE];

    if (size < 3)
        return 0;
    InflateKind kind = data[0] % 3;
    Str in = {(const char *)data + 2, size - 2};
    Step whole = fuzz_inflate__all(kind, in, in.n, 4096, one);
    if (fuzz_inflate__all(kind, in, 1 + data[1], 4096, two) != whole || (whole != STEP_ERR && memcmp(one, two, sizeof one) != 0))
        __builtin_trap();
    return 0;
}
