/* flow.h - where bytes come from and where they go, one piece at a time.
 *
 * Whoever moves a file, a body or an output takes one of these instead of a
 * buffer, so that memory does not grow with the data. The context pointer is
 * the maker's; it must outlive the flow.
 */
#ifndef ABX_FLOW_H
#define ABX_FLOW_H

#include "base/base.h"
#include "base/err.h"

typedef struct Source {
    /* Up to cap bytes into p; *n says how many, 0 at the end. False: *err. */
    bool  (*read)(void *ctx, char *p, size_t cap, size_t *n, Err *err);
    void   *ctx;
    int64_t size;       /* bytes it will give, -1 when that is not known. One that
                         * knows its size and gives more or less is in error. */
} Source;

typedef struct Sink {
    /* All of the bytes, or false and *err. */
    bool (*write)(void *ctx, Str bytes, Err *err);
    void  *ctx;
} Sink;

/* A Source over bytes in memory; *view is moved along as they are read. */
ABX_FN Source flow_from_str(Str *view);

#endif
