/* A URL that was parsed and written again is the same URL. */
#include "net/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena a = arena_make((size_t)1 << 17);
    Url   one, two;
    Err   err;

    if (url_parse((Str){(const char *)data, size}, &a, &one, &err)) {
        url_is_loopback(&one);
        if (!url_parse(url_text(&one, &a), &a, &two, &err) || one.port != two.port || one.tls != two.tls ||
            (!str_eq(one.host, two.host) && !one.ipv6) || !str_eq(one.path, two.path))
            __builtin_trap();
    }
    arena_free(&a);
    return 0;
}
