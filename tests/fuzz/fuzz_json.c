/* JSON: what is read and written again reads the same, and writes the same. */
#include "data/json.h"

static void fuzz_json__write(const Json *v, JsonStyle style, Buf *out)
{
    JsonOut w = json_out(out, style);

    json_put(&w, v);
    if (out->over)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena       a = arena_make(size * 128 + 65536);
    Buf         one = buf_make(size * 200 + 4096), two = buf_make(size * 200 + 4096);
    const Json *v, *again;
    Err         err;

    if (json_parse((Str){(const char *)data, size}, &a, &v, &err)) {
        fuzz_json__write(v, JSON_COMPACT, &one);
        fuzz_json__write(v, JSON_PRETTY, &two);
        json_int(v, 0);
        json_real(json_at(v, 0), 0);
        if (!json_parse(buf_str(&two), &(Arena){.p = a.p + a.size / 2, .size = a.size / 2}, &again, &err))
            __builtin_trap();
        buf_clear(&two);
        fuzz_json__write(again, JSON_COMPACT, &two);
        if (!str_eq(buf_str(&one), buf_str(&two)))
            __builtin_trap();
    }
    buf_free(&one);
    buf_free(&two);
    arena_free(&a);
    return 0;
}
