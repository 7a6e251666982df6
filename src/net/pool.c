#include "net/pool.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

PoolConn *pool_conn(Stream *stream, const char *origin)
{
    PoolConn *k = mem_new(sizeof *k);

    k->stream = stream;
    k->origin = mem_str(str_from(origin));
    k->in = mem_new(POOL_IN_SIZE);
    k->head = http_head_reader(HTTP_ANSWER);
    /* The text of a head and its fields, each of four bytes at least. */
    k->arena = arena_make(LIMIT_HEAD + LIMIT_HEADERS * sizeof(Header) + 256);
    return k;
}

void pool_drop(PoolConn *k)
{
    if (!k)
        return;
    stream_close(k->stream);
    http_head_free(&k->head);
    arena_free(&k->arena);
    mem_free(k->in);
    mem_free(k->origin);
    mem_free(k);
}

/* Nothing may come on a connection that waits for a request: a byte belongs to
 * no answer, the end or an error means that it is gone. */
static bool pool__alive(PoolConn *k)
{
    char   byte;
    size_t n;
    ABX_UNSET Err err;

    return !clock_passed(k->until) && stream_read(k->stream, &byte, 1, &n, &err) == STEP_MORE;
}

PoolConn *pool_take(Pool *pool, const char *origin)
{
    PoolConn **at = &pool->first;

    while (*at) {
        PoolConn *k = *at;
        if (strcmp(k->origin, origin) != 0) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        k->next = NULL;
        if (pool__alive(k)) {
            k->reused = true;
            return k;
        }
        pool_drop(k);
    }
    return NULL;
}

void pool_keep(Pool *pool, PoolConn *k)
{
    PoolConn **at = &pool->first;

    arena_reset(&k->arena);
    k->until = clock_after(LIMIT_KEEP_MS);
    k->next = pool->first;
    pool->first = k;
    for (int i = 0; i < POOL_KEPT && *at; i++)
        at = &(*at)->next;
    while (*at) {
        PoolConn *oldest = *at;
        *at = oldest->next;
        pool_drop(oldest);
    }
}

void pool_free(Pool *pool)
{
    while (pool->first) {
        PoolConn *k = pool->first;
        pool->first = k->next;
        pool_drop(k);
    }
}
