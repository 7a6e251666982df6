/* The first line is a pattern, the rest a name; a star matches it in any case. */
#include "data/glob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size && size < 4096 ? memchr(data, '\n', size) : NULL;

    if (!end)
        return 0;
    Str pattern = {(const char *)data, (size_t)(end - data)}, name = {(const char *)end + 1, size - pattern.n - 1};
    if (glob_match(pattern, name) && !glob_match(STR("*"), name))
        __builtin_trap();
    return 0;
}
