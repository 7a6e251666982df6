/* Archives: cut anywhere, the same entries and the same bytes come out; and what
 * an entry says is written and read as the same. */
#include "data/tar.h"
#include "base/sha256.h"
#include "base/str.h"

static void fuzz_tar__again(const TarEvent *ev)
{
    TarHead    h = {ev->type, ev->name, ev->target, ev->mode, ev->size};
    Buf        b = buf_make(1 << 20);
    TarReader *r;
    TarEvent   is;
    Err        err;

    /* A file's name that ends in a slash is a folder's. */
    if (ev->type == TAR_HARDLINK || ev->type == TAR_SPECIAL || str_ends(ev->name, STR("/")) ||
        str_has(ev->name, 0) || str_has(ev->target, 0) || !tar_put(&b, &h, &err)) {
        buf_free(&b);
        return;
    }
    Str in = buf_str(&b);
    r = tar_open_copy();
    if (tar_next(r, &in, &is, &err) != STEP_DONE || in.n || is.type != h.type || is.mode != h.mode || is.size != h.size ||
        !str_eq(is.name, h.name) || !str_eq(is.target, h.target))
        __builtin_trap();
    tar_close(r);
    buf_free(&b);
}

static Step fuzz_tar__all(Str in, size_t piece, bool copy, unsigned char digest[SHA256_SIZE])
{
    TarReader *r = copy ? tar_open_copy() : tar_open();
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
                fuzz_tar__again(&ev);
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
    Step whole = fuzz_tar__all(buf_str(&fixed), fixed.n, data[0] & 2, one);
    if (fuzz_tar__all(buf_str(&fixed), 1 + data[0] / 2, data[0] & 2, two) != whole || memcmp(one, two, sizeof one) != 0)
        __builtin_trap();
    buf_free(&fixed);
    return 0;
}
