/* Archives: cut anywhere, the same entries and the same bytes come out. */
#include "data/tar.h"
#include "base/sha256.h"

static Step fuzz_tar__all(Str in, size_t piece, unsigned char digest[SHA256_SIZE])
{
    TarReader *r = tar_open();
    Sha256     sum = sha256_make();
    Step       step = STEP_MORE;
    int64_t    owed = 0;
    TarEvent   ev;
    Err        err;

    while (in.n && step == STEP_MORE) {
        Str part = {in.p, piece < in.n ? piece : in.n};
        str_skip(&in, part.n);
        while ((step = tar_next(r, &part, &ev, &err)) == STEP_DONE) {
            if ((ev.kind == TAR_BYTES) != (owed > 0) || (ev.kind == TAR_BYTES && (int64_t)ev.bytes.n > owed))
                __builtin_trap();
            if (ev.kind == TAR_ENTRY) {
                owed = ev.size;
                sha256_add(&sum, ev.name);
                sha256_add(&sum, ev.target);
                sha256_add(&sum, (Str){(const char *)&ev.size, sizeof ev.size});
            } else if (ev.kind == TAR_BYTES) {
                owed -= (int64_t)ev.bytes.n;
                sha256_add(&sum, ev.bytes);
            }
        }
        if (step == STEP_MORE && part.n)
            __builtin_trap();
    }
    if (tar_ended(r, &err) && (owed || step == STEP_ERR))
        __builtin_trap();
    sha256_end(&sum, digest);
    tar_close(r);
    return step;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char one[SHA256_SIZE], two[SHA256_SIZE];
    Buf           fixed = buf_make(1 << 20);

    if (size < 2 || size > 1 << 19) {
        buf_free(&fixed);
        return 0;
    }
    buf_add(&fixed, (Str){(const char *)data + 1, size - 1});
    /* Checksums are put right, or nothing behind them would ever be reached. */
    for (size_t at = 0; data[0] & 1 && at + 512 <= fixed.n; at += 512) {
        unsigned char *p = (unsigned char *)fixed.p + at;
        unsigned sum = 8 * ' ';
        for (int i = 0; i < 512; i++)
            sum += i >= 148 && i < 156 ? 0 : p[i];
        for (int i = 0; sum != 8 * ' ' && i < 6; i++)
            p[148 + i] = (unsigned char)('0' + (sum >> (3 * (5 - i)) & 7));
        if (sum != 8 * ' ')
            p[154] = p[155] = 0;
    }
    Step whole = fuzz_tar__all(buf_str(&fixed), fixed.n, one);
    if (fuzz_tar__all(buf_str(&fixed), 1 + data[0] / 2, two) != whole || memcmp(one, two, sizeof one) != 0)
        __builtin_trap();
    buf_free(&fixed);
    return 0;
}
