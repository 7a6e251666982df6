/* Deltas: a base and instructions; what is made has the size that was said. */
#include "base/mem.h"
#include "data/delta.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || data[0] > size - 1)
        return 0;
    Str      base = {(const char *)data + 1, data[0]}, delta = {(const char *)data + 1 + data[0], size - 1 - data[0]};
    uint64_t from, to;
    Err      err;

    if (!delta_sizes(&delta, &from, &to, &err) || to > 1 << 20)
        return 0;
    char *out = mem_grow(NULL, to ? (size_t)to : 1, 1);
    memset(out, 0, (size_t)to);
    if (delta_apply(base, delta, out, (size_t)to, &err) && base.n == 0 && to > delta.n)
        __builtin_trap();       /* out of nothing comes no more than is told */
    mem_free(out);
    return 0;
}
