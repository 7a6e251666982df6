/* console.h - the terminal here and a command with a terminal in a sandbox, as one.
 *
 *     Console c = {.run = r, .box = box, .input = true};
 *     if (!console_options(&c, &o, NULL, &err)) return run_fail_own(r, &err);
 *     c.x = abx_exec_start(box, &o, &e);
 *     return c.x ? console_run(&c) : run_fail(r, &e);
 *
 * Keys go there as they are, Ctrl-C and Ctrl-Z too; what comes back is printed
 * unfiltered. The size follows this terminal's. SIGINT, SIGTERM and SIGHUP (from
 * outside, or because this terminal is gone) are handed on, and what has not
 * ended after 2 s is ended; SIGTSTP stops abx, with the terminal as it was. A
 * lost connection is made anew for a minute, byte for byte where the output is
 * still kept there; after that, or by the detach keys, the command goes on
 * alone, and it is said how to come back.
 */
#ifndef ABX_CONSOLE_H
#define ABX_CONSOLE_H

#include "cli/detach.h"
#include "cli/run.h"
#include "os/clock.h"
#include "os/tty.h"

typedef struct Console {
    Run         *run;
    abx_sandbox *box;
    abx_exec    *x;
    bool         input;         /* standard input is a terminal, whose keys go to the command */
    bool         attaches;      /* to a job that is there */
    /* The rest is private. */
    Detach       keys;
    TtySize      size;
    Buf          typed;         /* not taken by the connection yet */
    Buf          out;           /* not printed yet: from `printed` on */
    size_t       printed;
    int          out_fd;
    int          own_fd;        /* the same terminal once more, or -1 */
    uint64_t     got;           /* how many bytes the command printed */
    bool         doubtful;      /* something was sent since then */
    bool         on;            /* connected: what is typed is the command's */
    bool         leaving;       /* the detach keys were typed */
    int          second;        /* signal, behind run->signal */
    bool         held;          /* abx_exec_hold() keeps more output from coming */
    const char  *job;           /* NULL: it cannot be attached to again */
    Deadline     until;         /* connecting again is tried */
    int64_t      pause_ms;      /* before the next try */
    abx_error    error;
    abx_event    exit;
} Console;

/* Looks at the terminal, and fills what a command with one needs: size, TERM,
 * input, hold_s. `keys`: what --detach-keys says; NULL: Ctrl-P Ctrl-Q. False:
 * E8002; c->input without a terminal on standard input, --json. */
ABX_FN bool console_options(Console *c, abx_exec_options *o, const char *keys, Err *err) ABX_CHECK;

/* Until its end here: the exit status. Frees c->x. */
ABX_FN int console_run(Console *c);

#endif
