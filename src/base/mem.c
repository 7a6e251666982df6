#include "base/mem.h"

#include <stdlib.h>

void *mem_new(size_t size)
{
    void *p = calloc(1, size ? size : 1);

    if (!p)
        base_no_memory();
    return p;
}

void *mem_grow(void *p, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes))
        base_no_memory();
    p = realloc(p, bytes ? bytes : 1);
    if (!p)
        base_no_memory();
    return p;
}

char *mem_str(Str s)
{
    char *p = mem_new(s.n + 1);

    if (s.n)
        memcpy(p, s.p, s.n);
    return p;
}

void mem_free(void *p)
{
    free(p);
}

void mem_wipe(void *p, size_t n)
{
    if (n == 0)
        return;
    memset(p, 0, n);
    __asm__ __volatile__("" : : "r"(p) : "memory");
}
