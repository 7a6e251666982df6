/* TOML: whatever is read stands in the text where it says, and each key is found
 * again. */
#include "base/limits.h"
#include "data/toml.h"

static void fuzz_toml__look(const Toml *v, size_t size)
{
    if (v->key_at > v->at || v->at > v->end || v->end > size)
        __builtin_trap();
    if (v->type != TOML_TABLE && v->type != TOML_ARRAY)
        return;
    for (uint32_t i = 0; i < v->count; i++) {
        if (v->type == TOML_TABLE && toml_get_str(v, v->keys[i]) != &v->items[i])
            __builtin_trap();
        fuzz_toml__look(&v->items[i], size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Arena a = {0};       /* kept: making one this large takes longer than reading */
    const Toml  *doc;
    Err          err;

    if (!a.p)
        a = arena_make(ARENA_COMMAND);
    arena_reset(&a);
    if (toml_parse((Str){(const char *)data, size}, &a, &doc, &err))
        fuzz_toml__look(doc, size);
    return 0;
}
