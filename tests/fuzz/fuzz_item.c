/* Lines of a copy: cut anywhere they are the same items, and each is written as
 * it was read. */
#include "base/str.h"
#include "sync/item.h"

static bool fuzz_item__read(Str all, size_t piece, Buf *to)
{
    ItemReader r = item_reader();
    Step       step = STEP_MORE;
    Item       i;
    Err        err;

    for (size_t at = 0; at < all.n && step != STEP_ERR; at += piece) {
        Str in = str_from_to(all, at, at + piece < all.n ? at + piece : all.n);
        while ((step = item_next(&r, &in, &i, &err)) == STEP_DONE)
            item_put(to, &i);
        if (step == STEP_MORE && in.n)
            __builtin_trap();
    }
    item_reader_free(&r);
    return step != STEP_ERR;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Buf one = buf_make(1 << 20), two = buf_make(1 << 20);
    Str all = {(const char *)data, size};

    if (size && size < 1 << 19) {
        bool ok = fuzz_item__read(all, size, &one);
        if (fuzz_item__read(all, 1 + data[0] % 32, &two) != ok || !str_eq(buf_str(&one), buf_str(&two)))
            __builtin_trap();
        if (one.n > all.n || memcmp(one.p ? one.p : "", data, one.n) != 0)
            __builtin_trap();
    }
    buf_free(&one);
    buf_free(&two);
    return 0;
}
