/* shape.h - the forms in which a command's output is given: as it comes, as
 * lines of JSON, as one document.
 *
 *     Shape s = shape_plain(r);               or shape_lines(), shape_document()
 *     s.take(&s, fd, bytes, err)              each piece of output
 *     outbox_flush(&s.box, err)               whenever there is time
 *     status = s.end(&s, &exit)               the box is empty: the result
 *     shape_free(&s);
 */
#ifndef ABX_SHAPE_H
#define ABX_SHAPE_H

#include "cli/outbox.h"
#include "cli/run.h"

typedef struct Shape Shape;

struct Shape {
    const Run *run;
    /* Output of the command, on 1 or 2. False: it cannot be held. */
    bool (*take)(Shape *s, int fd, Str bytes, Err *err);
    /* The result is known: what belongs behind the output, for the box. */
    void (*last)(Shape *s, const abx_event *exit);
    /* The exit status; prints what is left to be printed. */
    int  (*end)(Shape *s, const abx_event *exit);
    Outbox     box;             /* what goes out as it comes */
    Buf        held[3];         /* 1 and 2: what is kept of each stream */
};

ABX_FN Shape shape_plain(const Run *r);
ABX_FN Shape shape_lines(const Run *r);
ABX_FN Shape shape_document(const Run *r);
ABX_FN Shape shape_logs(const Run *r);      /* plain or lines; the status is 0 */
ABX_FN Shape shape_result(const Run *r);    /* no output at all: only how it ended */
ABX_FN void  shape_free(Shape *s);

#endif
