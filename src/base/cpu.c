#include "base/cpu.h"

#ifdef __x86_64__
#include <cpuid.h>

static bool cpu__ask(void)
{
    unsigned a, b, c, d, most, sse;

    __cpuid(0, most, b, c, d);
    if (most < 7)
        return false;
    __cpuid(1, a, b, sse, d);
    __cpuid_count(7, 0, a, b, c, d);
    return (b & bit_SHA) && (sse & bit_SSE4_1);
}
#else
static bool cpu__ask(void)
{
    return false;
}
#endif

bool cpu_has_sha(void)
{
    /* Asked once: in a virtual machine cpuid costs as much as hashing 50 KiB.
     * Threads would find the same answer. */
    static signed char has = -1;

    if (has < 0)
        has = cpu__ask();
    return has;
}
