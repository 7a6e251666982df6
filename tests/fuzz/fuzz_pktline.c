/* Packets: cut at any byte they are the same packets, and the same verdict. */
#include "data/pktline.h"

static Step fuzz_pktline__read(PktReader *r, Str in, Buf *out)
{
    Pkt  pkt;
    Err  err;
    Step step;

    while ((step = pktline_next(r, &in, &pkt, &err)) == STEP_DONE) {
        buf_addc(out, (char)pkt.kind);
        buf_add(out, pktline_text(pkt.bytes));
        buf_addc(out, 0);
    }
    return step;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    Str       all = {(const char *)data + 1, size - 1};
    size_t    cut = data[0] % (all.n + 1);
    PktReader one = pktline_reader(), two = pktline_reader();
    Buf       whole = buf_make((size_t)1 << 20), cut_in_two = buf_make((size_t)1 << 20);

    Step a = fuzz_pktline__read(&one, all, &whole);
    Step b = fuzz_pktline__read(&two, (Str){all.p, cut}, &cut_in_two);
    if (b == STEP_MORE)
        b = fuzz_pktline__read(&two, (Str){all.p + cut, all.n - cut}, &cut_in_two);
    if (a != b || !str_eq(buf_str(&whole), buf_str(&cut_in_two)))
        __builtin_trap();
    buf_free(&whole);
    buf_free(&cut_in_two);
    pktline_free(&one);
    pktline_free(&two);
    return 0;
}
