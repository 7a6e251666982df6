/* execd_command.h - commands by the daemon's own /command: lines of output as
 * events, no standard input (provider.h says what a call can do).
 */
#ifndef ABX_EXECD_COMMAND_H
#define ABX_EXECD_COMMAND_H

#include "provider/execd.h"

/* Start a command: `line` is for the daemon's shell. The call is independent of
 * the Execd and its arena. */
ABX_FN bool execd_command_start(Execd *x, Str line, const ExecRequest *rq, ExecCall **out, Deadline d, Err *err);
/* A command of ours, run to its end. */
typedef struct ExecdRun {
    Str     line;           /* for the daemon's shell */
    int64_t timeout_ms;     /* 0: none */
    int     exit_code;      /* its result from here on: -1 for a signal */
    bool    timed_out;
    Str     out;            /* what it printed, as the daemon's lines allow */
    Str     said;           /* its complaint, cleaned, at most 8 KiB of it */
} ExecdRun;

/* False: the result is unknown. ERR_LIMIT: it printed more than LIMIT_ANSWER. */
ABX_FN bool execd_command_run(Execd *x, ExecdRun *run, Arena *a, Deadline d, Err *err);

#endif
