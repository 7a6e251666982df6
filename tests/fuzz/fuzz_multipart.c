/* multipart: cut at any byte it gives the same events and the same verdict. */
#include "net/multipart.h"

static Step fuzz_multipart__feed(Multipart *m, Str in, Buf *out)
{
    MultipartEvent ev;
    Err            err;
    Step           step;

    while ((step = multipart_next(m, &in, &ev, &err)) == STEP_DONE) {
        buf_add(out, ev.kind == MULTIPART_PART ? ev.name : ev.data);
        if (ev.kind != MULTIPART_DATA)
            buf_addc(out, (char)ev.kind);
    }
    return step;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    Str       all = {(const char *)data + 1, size - 1};
    size_t    cut = data[0] % (all.n + 1);
    Multipart a = multipart_make(STR("B")), b = multipart_make(STR("B"));
    Buf       whole = buf_make((size_t)1 << 22), two = buf_make((size_t)1 << 22);
    Step      first = fuzz_multipart__feed(&a, all, &whole);
    Step      second = fuzz_multipart__feed(&b, (Str){all.p, cut}, &two);
    char      boundary[MULTIPART_BOUNDARY];
    size_t    n = 0;
    Err       err;

    if (second == STEP_MORE)
        second = fuzz_multipart__feed(&b, (Str){all.p + cut, all.n - cut}, &two);
    if (first != second || !str_eq(buf_str(&whole), buf_str(&two)))
        __builtin_trap();
    if (multipart_boundary(all, boundary, &n, &err) && (n == 0 || n > sizeof boundary))
        __builtin_trap();
    multipart_free(&a);
    multipart_free(&b);
    buf_free(&whole);
    buf_free(&two);
    return 0;
}
