/* ws: cut at any byte a reader gives the same events and the same verdict. */
#include "net/ws.h"

static Step fuzz_ws__feed(WsReader *r, Str in, Buf *out)
{
    WsEvent ev;
    Err     err;
    Step    step;

    while ((step = ws_next(r, &in, &ev, &err)) == STEP_DONE) {
        if (ev.first)
            buf_addf(out, "[%d %d ", ev.op, ev.code);
        buf_add(out, ev.bytes);
        if (ev.last)
            buf_addc(out, ']');
    }
    return step;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    WsReader a = ws_reader(data[0] & 1, 1000), b = a;
    size_t   n = size - 2, cut = data[1] % (n + 1);
    Buf      in = buf_make(2 * size), whole = buf_make((size_t)1 << 24), two = buf_make((size_t)1 << 24);

    buf_add(&in, (Str){(const char *)data + 2, n});
    buf_add(&in, (Str){(const char *)data + 2, n});     /* unmasked in place, so one copy for each */
    Step first = fuzz_ws__feed(&a, (Str){in.p, n}, &whole);
    Step second = fuzz_ws__feed(&b, (Str){in.p + n, cut}, &two);
    if (second == STEP_MORE)
        second = fuzz_ws__feed(&b, (Str){in.p + n + cut, n - cut}, &two);
    /* Of text that turns bad more or less was given before. */
    if (first != second || a.blame != b.blame || (a.blame != WS_BAD_TEXT && !str_eq(buf_str(&whole), buf_str(&two))))
        __builtin_trap();
    buf_free(&in);
    buf_free(&whole);
    buf_free(&two);
    return 0;
}
