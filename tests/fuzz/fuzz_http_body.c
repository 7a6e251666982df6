/* Chunked bodies: cut at any byte they give the same bytes and the same verdict. */
#include "base/buf.h"
#include "net/http.h"

static int fuzz_http_body__read(Str first, Str second, Buf *out)
{
    HttpBody b = {.state = HTTP_BODY_SIZE, .length = -1};
    Str      piece;
    Err      err;
    Step     step;

    while ((step = http_body_next(&b, &first, &piece, &err)) == STEP_DONE && piece.n)
        buf_add(out, piece);
    if (step != STEP_MORE)
        return step;
    while ((step = http_body_next(&b, &second, &piece, &err)) == STEP_DONE && piece.n)
        buf_add(out, piece);
    return step == STEP_MORE ? http_body_ended(&b, &err) : step;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    Str    all = {(const char *)data + 1, size - 1};
    size_t cut = data[0] % (all.n + 1);
    Buf    whole = buf_make((size_t)1 << 20), cut_in_two = buf_make((size_t)1 << 20);

    if (fuzz_http_body__read(all, (Str){0}, &whole) !=
            fuzz_http_body__read((Str){all.p, cut}, (Str){all.p + cut, all.n - cut}, &cut_in_two) ||
        !str_eq(buf_str(&whole), buf_str(&cut_in_two)))
        __builtin_trap();
    buf_free(&whole);
    buf_free(&cut_in_two);
    return 0;
}
