#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

Buf buf_make(size_t limit)
{
    return (Buf){.limit = limit};
}

void buf_free(Buf *b)
{
    free(b->p);
    *b = (Buf){.limit = b->limit};
}

void buf_clear(Buf *b)
{
    b->n = 0;
    b->over = false;
}

char *buf_room(Buf *b, size_t n)
{
    if (b->over || n > b->limit - b->n) {
        b->over = true;
        return NULL;
    }
    if (n > b->cap - b->n) {
        size_t cap = b->cap ? b->cap : 64;
        while (cap < b->n + n)
            cap *= 2;
        b->p = realloc(b->p, cap);
        if (!b->p)
            base_no_memory();
        b->cap = cap;
    }
    return b->p + b->n;
}

void buf_grew(Buf *b, size_t n)
{
    b->n += n;
}

void buf_add(Buf *b, Str s)
{
    if (s.n == 0)
        return;
    char *to = buf_room(b, s.n);
    if (!to)
        return;
    memcpy(to, s.p, s.n);
    b->n += s.n;
}

void buf_addc(Buf *b, char c)
{
    buf_add(b, (Str){&c, 1});
}

void buf_addf(Buf *b, const char *fmt, ...)
{
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        BUG("format");
    if (n == 0) {
        va_end(ap);
        return;
    }
    /* vsnprintf wants room for its NUL, which is not ours to keep. */
    char *to = b->limit - b->n < (size_t)n ? NULL : buf_room(b, (size_t)n);
    if (to && (size_t)n == b->cap - b->n) {
        b->p = realloc(b->p, b->cap + 1);
        if (!b->p)
            base_no_memory();
        b->cap++;
        to = b->p + b->n;
    }
    if (to) {
        vsnprintf(to, (size_t)n + 1, fmt, ap);
        b->n += (size_t)n;
    } else {
        b->over = true;
    }
    va_end(ap);
}

void buf_drop(Buf *b, size_t n)
{
    if (n == 0)
        return;
    if (n < b->n)
        memmove(b->p, b->p + n, b->n - n);
    b->n -= n;
}

Str buf_str(const Buf *b)
{
    return (Str){b->p, b->n};
}
