/* pipe.h - standard input and output as the flows that functions of abx.h take.
 *
 *     Pipe pipe = {.out = &r->out};
 *     if (abx_read_file(box, path, pipe_write, &pipe, &e) < 0)
 *         status = pipe_fail(r, &pipe, &e);
 */
#ifndef ABX_PIPE_H
#define ABX_PIPE_H

#include "base/err.h"
#include "cli/run.h"

typedef struct Pipe {
    const Output *out;
    bool          failed;       /* it was ours that failed, and not the call, */
    Err           err;          /* and how */
} Pipe;

ABX_FN ptrdiff_t pipe_read(void *pipe, void *p, size_t size);           /* an abx_reader of standard input */
ABX_FN int       pipe_write(void *pipe, const void *p, size_t size);    /* an abx_writer to standard output */

/* A flow of ours that failed knows the reason better than the call it failed.
 * The exit status. */
ABX_FN int pipe_fail(const Run *r, const Pipe *pipe, const abx_error *e);

#endif
