/* Whatever a server answers, its message is one line, and there is one. */
#include "base/str.h"
#include "provider/refusal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena   a = arena_make(size * 64 + 65536);
    Header  type = {STR("content-type"), STR("text/plain")};
    Refusal r = refusal_read(500, (Headers){&type, 1}, (Str){(const char *)data, size}, STR("secret"), &a);

    if (r.message.n == 0 || str_has_control(r.message))
        __builtin_trap();
    arena_free(&a);
    return 0;
}
