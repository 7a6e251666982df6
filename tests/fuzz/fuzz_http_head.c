/* HTTP heads of both sides, in two pieces; the first byte says which and where. */
#include "net/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena a = arena_make((size_t)1 << 16);
    Str   all = {(const char *)data + 1, size ? size - 1 : 0};
    Str   in = {all.p, size ? data[0] / 2 % (all.n + 1) : 0};

    if (size) {
        HttpHeadReader r = http_head_reader(data[0] % 2 ? HTTP_REQUEST : HTTP_ANSWER);
        HttpHead       head;
        Err            err;
        Step           step = http_head_next(&r, &in, &a, &head, &err);
        if (step == STEP_MORE) {
            in.n = (size_t)(all.p + all.n - in.p);
            step = http_head_next(&r, &in, &a, &head, &err);
        }
        for (size_t i = 0; step == STEP_DONE && i < head.headers.n; i++)
            if (!header_name_ok(head.headers.v[i].name) || !header_value_ok(head.headers.v[i].value))
                __builtin_trap();
        http_head_free(&r);
    }
    arena_free(&a);
    return 0;
}
