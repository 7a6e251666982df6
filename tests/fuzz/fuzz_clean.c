/* Foreign text: what comes out drives no terminal and holds no secret. */
#include "base/utf8.h"
#include "data/clean.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena a = arena_make(size * 32 + 4096);
    Str   secret = STR("abab"), out = clean_message((Str){(const char *)data, size}, &secret, 1, &a);

    if (!utf8_valid(out))
        __builtin_trap();
    for (size_t i = 0; i < out.n; i++)
        if ((unsigned char)out.p[i] < 0x20 || out.p[i] == 0x7f || (i + 4 <= out.n && memcmp(out.p + i, "abab", 4) == 0))
            __builtin_trap();
    arena_free(&a);
    return 0;
}
