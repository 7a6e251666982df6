/* Versions: two of them, and a list of comparators, cut at line feeds; their
 * order is one, seen from both sides. */
#include "base/str.h"
#include "data/pep440.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Arena arena = {0};
    Str          rest = {(const char *)data, size}, one, two, bad;
    Version      a, b;
    bool         yes;

    if (!arena.p)
        arena = arena_make((size_t)64 << 20);
    if (!str_cut(&rest, '\n', &one) || !str_cut(&rest, '\n', &two) || !pep440_parse(one, &a))
        return 0;
    if (pep440_compare(&a, &a) != 0)
        __builtin_trap();
    if (pep440_parse(two, &b) && (pep440_compare(&a, &b) > 0) != (pep440_compare(&b, &a) < 0))
        __builtin_trap();
    (void)!pep440_list(rest, &a, arena, &yes, &bad);
    return 0;
}
