#include "agent/ring.h"

#include "base/mem.h"

#define RING_ERR 0x80000000u

Ring ring_make(void)
{
    return (Ring){.data = mem_new(RING_BYTES), .runs = mem_new(RING_RUNS * sizeof(uint32_t))};
}

void ring_free(Ring *r)
{
    mem_free(r->data);
    mem_free(r->runs);
    *r = (Ring){0};
}

static uint32_t *ring__run(const Ring *r, uint64_t i)
{
    return &r->runs[i % RING_RUNS];
}

static uint32_t ring__length(const Ring *r, uint64_t i)
{
    return *ring__run(r, i) & ~RING_ERR;
}

size_t ring_space(Ring *r, uint64_t keep, char **p)
{
    uint64_t kept = keep < r->base ? r->end - r->base : keep < r->end ? r->end - keep : 0;
    size_t   n = RING_BYTES - (size_t)kept, straight = RING_BYTES - r->at;

    /* Another run may be needed, and then the oldest one goes. */
    if (r->last - r->first == RING_RUNS && r->base + ring__length(r, r->first) > keep)
        return 0;
    *p = r->data + r->at;
    return n < straight ? n : straight;
}

/* Let the oldest n bytes go. */
static void ring__drop(Ring *r, uint64_t n)
{
    r->base += n;
    while (n) {
        uint32_t length = ring__length(r, r->first);
        if (length > n) {
            *ring__run(r, r->first) -= (uint32_t)n;
            return;
        }
        n -= length;
        r->first++;
    }
}

void ring_grew(Ring *r, bool is_err, size_t n)
{
    uint32_t kind = is_err ? RING_ERR : 0;

    if (!n)
        return;
    if (r->end + n - r->base > RING_BYTES)
        ring__drop(r, r->end + n - r->base - RING_BYTES);
    uint32_t *run = ring__run(r, r->last - 1);
    if (r->last > r->first && (*run & RING_ERR) == kind) {
        *run += (uint32_t)n;
    } else {
        if (r->last - r->first == RING_RUNS)
            ring__drop(r, ring__length(r, r->first));
        *ring__run(r, r->last++) = kind | (uint32_t)n;
    }
    r->at = (r->at + n) % RING_BYTES;
    r->end += n;
    r->total[is_err] += n;
}

void ring_rewind(Ring *r)
{
    r->base = r->end;
    r->first = r->last;
    r->at = 0;
}

RingPlace ring_place(const Ring *r, uint64_t offset)
{
    RingPlace at = {.offset = r->base, .run = r->first};

    /* At the end it is in the last run, which may grow. */
    for (; at.run + 1 < r->last && offset >= at.offset + ring__length(r, at.run); at.run++)
        at.offset += ring__length(r, at.run);
    if (offset > at.offset && at.run < r->last) {
        at.in = (uint32_t)(offset - at.offset);
        at.offset = offset;
    }
    return at;
}

Str ring_piece(const Ring *r, RingPlace *at, size_t most, bool *is_err)
{
    /* The beginning of a run may be gone, and `in` counts from there. */
    if (at->offset < r->base || at->run <= r->first)
        *at = ring_place(r, at->offset);
    if (at->run + 1 < r->last && at->in == ring__length(r, at->run)) {
        at->run++;
        at->in = 0;
    }
    if (at->run >= r->last)
        return (Str){0};
    size_t n = ring__length(r, at->run) - at->in;
    size_t from = (r->at + RING_BYTES - (size_t)(r->end - at->offset)) % RING_BYTES;
    if (n > RING_BYTES - from)
        n = RING_BYTES - from;
    *is_err = (*ring__run(r, at->run) & RING_ERR) != 0;
    return (Str){r->data + from, n < most ? n : most};
}

void ring_pass(RingPlace *at, size_t n)
{
    at->offset += n;
    at->in += (uint32_t)n;
}
