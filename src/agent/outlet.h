/* outlet.h - how the agent's own programs (data/frame.h, FRAME_TAR_IN and the
 * next three) take their words, and say what they have to say: lines on standard
 * output, gathered; one on standard error, why the whole failed.
 *
 *     Outlet o = outlet_make();
 *     outlet_item(&o, &item);
 *     if (!outlet_flush(&o, &err)) return outlet_fail(&err);
 *
 * Who reads slowly is waited for. Memory: 64 KiB and a line; outlet_free().
 */
#ifndef ABX_OUTLET_H
#define ABX_OUTLET_H

#include "sync/item.h"

typedef struct Outlet {
    Buf lines;
    int stop_fd;                /* readable: nothing is waited for any more; -1 */
} Outlet;

ABX_FN Outlet outlet_make(void);
ABX_FN void   outlet_free(Outlet *o);

/* The first of the words is options: "-" and some of `letters`. False: E8002,
 * also when there are not `least` … `most` words. */
ABX_FN bool outlet_words(int argc, char **argv, const char *letters, int least, int most, Err *err) ABX_CHECK;

/* `ctx` is the Outlet. Lines that cannot go out are dropped, and the next outlet_flush() fails. */
ABX_FN void outlet_item(void *ctx, const Item *i);
ABX_FN bool outlet_flush(Outlet *o, Err *err) ABX_CHECK;

/* Lines that are made already: for a Sink. */
ABX_FN bool outlet_lines(void *ctx, Str lines, Err *err) ABX_CHECK;

/* At once. False: ERR_CANCELLED, or ERR_SYSTEM: nobody reads. */
ABX_FN bool outlet_write(const Outlet *o, Str bytes, Err *err) ABX_CHECK;

/* Says it; the exit status. */
ABX_FN int outlet_fail(const Err *err);

#endif
