/* output.h - what abx prints: the result on stdout, everything else on stderr.
 *
 * Text for a terminal passes the screen filter (cli/screen.h); bytes that are
 * themselves the result (exec, shell-stream, download to `-`) do not. Writing
 * waits in os/poll, so a reader that has stopped does not keep Ctrl-C from
 * being seen.
 */
#ifndef ABX_OUTPUT_H
#define ABX_OUTPUT_H

#include "abx.h"
#include "base/arena.h"
#include "base/err.h"

typedef struct Output {
    bool json;              /* errors and results as JSON */
    bool quiet;             /* no notices */
    bool verbose;
    bool out_terminal;
    bool err_terminal;
    int  cancel_fd;
    bool *bar;              /* a progress bar stands on stderr, where no line may be mixed with it; NULL: never */
} Output;

/* Writes all of the bytes as they are. False: ERR_CANCELLED, or ERR_SYSTEM
 * with sys EPIPE where the reader has gone, ENOSPC, EBADF, … */
ABX_FN bool output_bytes(const Output *o, int fd, Str bytes, Err *err) ABX_CHECK;

/* The result of a verb to stdout: a document, a table, lines. */
ABX_FN bool output_result(const Output *o, Str text, Err *err) ABX_CHECK;

/* Takes the bar from the screen. All that prints to stderr does it first. */
ABX_FN void output_wipe(const Output *o);

/* Lines for the person to stderr: what somebody is asked, a note that stands alone. */
ABX_FN void output_say(const Output *o, Str text);

/* One line to stderr, "abx: LINE"; nothing with --quiet. `ctx` is the Output. */
ABX_FN void output_notice(void *ctx, const char *line);

/* The same for a line of the trace, which --quiet does not silence. */
ABX_FN void output_trace(void *ctx, const char *line);

/* A failure to stderr: one line of JSON, or "[CODE] message" and its suggestion. */
ABX_FN void output_error(const Output *o, const abx_error *e);

/* abx's own mistakes and refusals in the form that abx_* functions use. */
ABX_FN void output_own(abx_error *e, const Err *err);

#endif
