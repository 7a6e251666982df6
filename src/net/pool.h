/* pool.h - connections that an HTTP client keeps between its exchanges.
 *
 * A connection belongs to one exchange, or lies in the pool. pool_take() looks
 * at a kept one before it hands it out: one that was closed, that said
 * something unasked or that lay there for LIMIT_KEEP_MS is closed instead.
 *
 * Memory: a PoolConn is freed by pool_drop(), or by pool_free() when it lies in
 * the pool. At most POOL_KEPT lie there; the one longest in it goes first.
 */
#ifndef ABX_POOL_H
#define ABX_POOL_H

#include "net/http.h"
#include "net/stream.h"

enum { POOL_KEPT = 8, POOL_IN_SIZE = 64 << 10 };

typedef struct PoolConn {
    Stream          *stream;
    char            *origin;    /* scheme, host and port, as pool_take() was asked */
    bool             reused;    /* an exchange went over it before */
    char            *in;        /* POOL_IN_SIZE bytes; [at, n) are read and not used yet */
    size_t           at, n;
    HttpHeadReader   head;
    Arena            arena;     /* the head of the answer being read */
    Deadline         until;     /* how long it may lie in the pool */
    struct PoolConn *next;
} PoolConn;

typedef struct Pool {
    PoolConn *first;            /* the latest one comes first */
} Pool;

/* A connection just made; the stream is its own from now on. */
ABX_FN PoolConn *pool_conn(Stream *stream, const char *origin);
ABX_FN void      pool_drop(PoolConn *k);            /* closes it; NULL is fine */

ABX_FN PoolConn *pool_take(Pool *pool, const char *origin);     /* NULL: there is none */
ABX_FN void      pool_keep(Pool *pool, PoolConn *k);
ABX_FN void      pool_free(Pool *pool);

#endif
