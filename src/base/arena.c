#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ARENA_ALIGN = 16 };

Arena arena_make(size_t size)
{
    Arena a = {.p = malloc(size), .size = size};

    if (!a.p)
        base_no_memory();
    return a;
}

void arena_free(Arena *a)
{
    free(a->p);
    *a = (Arena){0};
}

void arena_reset(Arena *a)
{
    a->used = 0;
}

void *arena_alloc(Arena *a, size_t n)
{
    size_t at = (a->used + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);

    if (at > a->size || n > a->size - at)
        base_no_memory();
    a->used = at + n;
    return memset(a->p + at, 0, n);
}

void *arena_array(Arena *a, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes))
        base_no_memory();
    return arena_alloc(a, bytes);
}

char *arena_cstr(Arena *a, Str s)
{
    char *p = arena_alloc(a, s.n + 1);

    if (s.n)
        memcpy(p, s.p, s.n);
    return p;
}

Str arena_str(Arena *a, Str s)
{
    return (Str){arena_cstr(a, s), s.n};
}

Str arena_fmt(Arena *a, const char *fmt, ...)
{
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        BUG("format");
    char *p = arena_alloc(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return (Str){p, (size_t)n};
}
