/* Event streams, bare and standard: cut anywhere they give the same events. */
#include "net/events.h"

static void fuzz_events__read(Str first, Str second, Buf *out)
{
    Events e = events_make(256);
    Str    parts[2] = {first, second}, text;
    Err    err;

    for (int i = 0; i < 2; i++)
        while (events_next(&e, &parts[i], &text, &err) == STEP_DONE)
            buf_addf(out, "(%.*s)", STR_ARG(text));
    if (events_end(&e, &text) == STEP_DONE)
        buf_addf(out, "(%.*s)", STR_ARG(text));
    events_free(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    Str    all = {(const char *)data + 1, size - 1};
    size_t cut = data[0] % (all.n + 1);
    Buf    whole = buf_make((size_t)1 << 20), parts = buf_make((size_t)1 << 20);

    fuzz_events__read(all, (Str){0}, &whole);
    fuzz_events__read((Str){all.p, cut}, (Str){all.p + cut, all.n - cut}, &parts);
    if (!str_eq(buf_str(&whole), buf_str(&parts)))
        __builtin_trap();
    buf_free(&whole);
    buf_free(&parts);
    return 0;
}
