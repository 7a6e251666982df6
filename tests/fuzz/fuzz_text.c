/* UTF-8, base64, hex and times: what is taken comes out the same. */
#include "base/base64.h"
#include "base/hex.h"
#include "base/time.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena   a = arena_make(size * 16 + 4096);
    Str     in = {(const char *)data, size}, out;
    char    text[TIME_SIZE];
    int64_t ms, again;

    Str clean = utf8_clean(&a, in);
    if (!utf8_valid(clean) || utf8_valid(in) != str_eq(in, clean) || utf8_trim(clean).n > clean.n)
        __builtin_trap();
    if (base64_decode(&a, in, &out) && !str_eq(base64_encode(&a, out), in))
        __builtin_trap();
    if (hex_decode(&a, in, &out) && hex_encode(&a, out).n != in.n)
        __builtin_trap();
    if (time_parse(in, &ms) && time_text(ms, true, text) &&
        (!time_parse((Str){text, sizeof text - 1}, &again) || again != ms))
        __builtin_trap();
    arena_free(&a);
    return 0;
}
