#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void base_bug(const char *file, int line, const char *what)
{
    fprintf(stderr, "abx: internal error at %s:%d: %s\n", file, line, what);
    abort();
}

static void (*base__last)(void);
static int base__status = 1;

void base_at_no_memory(void (*f)(void))
{
    base__last = f;
}

void base_fail_with(int status)
{
    base__status = status;
}

void base_no_memory(void)
{
    static const char line[] = "abx: out of memory\n";

    if (base__last)
        base__last();
    if (write(2, line, sizeof line - 1) < 0)
        _exit(base__status);    /* nothing left to say it with */
    _exit(base__status);
}
