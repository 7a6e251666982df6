/* Manifests: what is accepted can be summed up in both orders, as JSON that reads
 * back. */
#include "base/buf.h"
#include "base/limits.h"
#include "host/consented.h"
#include "host/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Arena a = {0};       /* kept: making one this large takes longer than reading */
    const Json  *tree;
    Manifest     m;
    Err          err;

    if (!a.p)
        a = arena_make(ARENA_COMMAND);
    arena_reset(&a);
    if (!manifest_parse((Str){(const char *)data, size}, STR("F"), &a, &m, &err)) {
        if (err.code != E8014 && err.code != E8013)
            __builtin_trap();
        return 0;
    }
    for (int sorted = 0; sorted < 2; sorted++) {
        Buf     text = buf_make(LIMIT_RECEIPT);
        JsonOut w = json_out(&text, JSON_PRETTY);
        consented_put(&m, &w, sorted);
        if (text.over || !json_parse(buf_str(&text), &a, &tree, &err))
            __builtin_trap();
        buf_free(&text);
    }
    (void)!manifest_supported(&m, &err);
    return 0;
}
