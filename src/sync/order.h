/* order.h - whether the names in a copy come as an honest sender gives them
 * (sync/item.h): each root once, folders before what is in them, the names of a
 * folder one after the other in byte order. So no name comes twice, nothing is
 * below what came as a file or a link, and all of it is known from the name
 * that came last. Does no I/O.
 *
 *     if (!order_next(&o, path, &depth, err)) ...
 *     order_took(&o, path, is_a_folder);
 *
 * Memory: LIMIT_SYNC_PATH bytes, and the names of the roots; order_free().
 */
#ifndef ABX_ORDER_H
#define ABX_ORDER_H

#include "base/buf.h"
#include "sync/have.h"

typedef struct Order {
    Buf   last;                 /* the name that came last */
    bool  folder;               /* it may have something in it */
    bool  several;              /* more than one root may come */
    Have *roots;                /* several: which came */
} Order;

ABX_FN Order order_make(bool several);
ABX_FN void  order_free(Order *o);

/* Whether `path` may come now. *depth: how many parts it has. False: ERR_INPUT E8020. */
ABX_FN bool order_next(Order *o, Str path, size_t *depth, Err *err) ABX_CHECK;

/* It did, after order_next() said yes. */
ABX_FN void order_took(Order *o, Str path, bool folder);

/* Is it the folder that came last, or one around what came last? */
ABX_FN bool order_inside(const Order *o, Str path) ABX_CHECK;

/* ERR_INPUT E8020: a path of the copy, and what is wrong with it. Returns false. */
ABX_FN bool order_refuse(Err *err, Str path, const char *what);

/* The last part of a path. */
ABX_FN Str order_name(Str path);

#endif
