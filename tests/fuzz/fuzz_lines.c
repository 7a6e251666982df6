/* A command's output, cut into events anywhere: each event is JSON, and the
 * rule of docs/agent.md makes the very bytes of them again. */
#include "agent/event.h"
#include "base/base64.h"
#include "base/str.h"
#include "data/json.h"

static void fuzz_lines__client(Str event, Arena a, Buf *bytes)
{
    const Json *doc, *b64;
    Str         raw;
    Err         err;

    if (!str_ends(event, STR("}\n\n")) || !json_parse(event, &a, &doc, &err))
        __builtin_trap();
    Str text = json_str(json_get(doc, "text"));
    if ((b64 = json_get(doc, "b64"))) {
        if (!base64_decode(&a, json_str(b64), &raw))
            __builtin_trap();
        buf_add(bytes, raw);
    } else if (str_eq(text, STR("\n"))) {
        buf_addc(bytes, '\n');
    } else {
        if (text.n == 0)
            __builtin_trap();
        buf_add(bytes, text);
        buf_addc(bytes, '\n');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3 || size > 16384)
        return 0;
    Str        all = {(const char *)data + 3, size - 3};
    size_t     step = (size_t)(data[0] << 8 | data[1]) + 1;
    Lines      l = lines_make(data[2] & 1);
    Buf        event = buf_make((size_t)256 << 10), bytes = buf_make(size);
    Arena      a = arena_make((size_t)256 << 10);
    LinesPiece piece;

    for (size_t at = 0;; at += step) {
        bool last = at >= all.n;
        Str  in = last ? (Str){0} : str_from_to(all, at, at + step < all.n ? at + step : all.n);
        while (lines_next(&l, &in, last, &piece) == STEP_DONE) {
            buf_clear(&event);
            event_output(&event, "stdout", &piece, "1", a);
            fuzz_lines__client(buf_str(&event), a, &bytes);
        }
        if (in.n)
            __builtin_trap();
        if (last)
            break;
    }
    if (!str_eq(buf_str(&bytes), all))
        __builtin_trap();
    lines_free(&l);
    buf_free(&event);
    buf_free(&bytes);
    arena_free(&a);
    return 0;
}
