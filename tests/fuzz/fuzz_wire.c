/* Lines of a host, cut anywhere, and the id of one that is too long. */
#include "base/str.h"
#include "serve/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t     piece = size ? data[0] % 16 + 1u : 1;
    WireReader r = wire_reader(64);
    WireLine   line;
    Str        rest = {(const char *)data, size};

    wire_find_id(rest);
    while (rest.n) {
        Str part = {rest.p, rest.n < piece ? rest.n : piece};
        str_skip(&rest, part.n);
        while (wire_next(&r, &part, &line) == STEP_DONE)
            wire_find_id(line.text);
    }
    if (wire_last(&r, &line))
        wire_find_id(line.text);
    wire_free(&r);
    return 0;
}
