#include "os/clock.h"

#include <time.h>

static int64_t clock__read(clockid_t id)
{
    struct timespec t;

    if (clock_gettime(id, &t) != 0)
        BUG("clock_gettime");
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t clock_mono_ms(void)
{
    return clock__read(CLOCK_MONOTONIC);
}

int64_t clock_unix_ms(void)
{
    return clock__read(CLOCK_REALTIME);
}

Deadline clock_after(int64_t ms)
{
    int64_t now = clock_mono_ms();

    if (ms < 0)
        ms = 0;
    return ms > DEADLINE_NONE - now ? DEADLINE_NONE : now + ms;
}

Deadline clock_sooner(Deadline a, Deadline b)
{
    return a < b ? a : b;
}

bool clock_passed(Deadline d)
{
    return d != DEADLINE_NONE && clock_mono_ms() >= d;
}
