/* run.h - one run of abx: what every command is given, and how it ends.
 *
 * A command (cmd_*.c) does its work through abx.h and returns the exit status
 * through one of the functions here, which print what there is to print.
 */
#ifndef ABX_RUN_H
#define ABX_RUN_H

#include "abx.h"
#include "base/arena.h"
#include "base/buf.h"
#include "cli/args.h"
#include "cli/output.h"

typedef struct Run {
    const Args  *args;
    Arena       *a;
    Output       out;
    abx_session *session;       /* NULL before run_open() */
    abx_host    *host;          /* NULL before run_host() */
    bool         passes;        /* the exit status is the remote command's; failures of abx are 125 */
    int          signal;        /* the first that came, once run_signal() has looked */
} Run;

/* Ctrl-C, SIGTERM, SIGHUP and SIGQUIT make r->out.cancel_fd readable from now on; what
 * was ignored at the start (nohup, a shell's background job) stays ignored. */
ABX_FN bool run_watch(Run *r, Err *err) ABX_CHECK;

/* The first signal that came, or 0. Asking takes it out of cancel_fd, so ask
 * only where nothing is waited for any more, or run_release() comes next. */
ABX_FN int run_signal(Run *r);

/* For cleaning up after a signal or a failure: waits no longer end because of
 * it, and a second signal ends abx at once. */
ABX_FN void run_release(Run *r);

/* Sets r->passes: the status is the command's, and running out of memory is none of its. */
ABX_FN void run_pass(Run *r, bool passes);

/* What the global options say, for the functions that take no session. */
ABX_FN bool run_options(Run *r, abx_options *o, Err *err) ABX_CHECK;

/* r->session, anew; closed at the end of the run. `ref` may name the provider,
 * or be NULL. False: *e. */
ABX_FN bool run_open(Run *r, const char *ref, abx_error *e) ABX_CHECK;

/* r->host, for managing providers; closed at the end of the run. NULL: *e. */
ABX_FN abx_host *run_host(Run *r, abx_error *e);

/* A handle on the sandbox that the first argument names. NULL: *e. */
ABX_FN abx_sandbox *run_attach(Run *r, abx_error *e);

/* Each prints, and returns the exit status. */
ABX_FN int run_fail(const Run *r, const abx_error *e);
ABX_FN int run_stopped(const Run *r, const abx_error *e);  /* of what goes on until Ctrl-C: in words that is not told */
ABX_FN int run_fail_own(const Run *r, const Err *err);     /* silent where the reader of stdout has gone */
ABX_FN int run_fail_told(const Run *r, const Err *err);    /* never silent */
/* One of several things failed: *status is the first one's. True: it lay with
 * that one alone (a file, a path), and the others can be tried. */
ABX_FN bool run_fail_one(const Run *r, const abx_error *e, int *status);
ABX_FN int run_result(const Run *r, Str text);
ABX_FN int run_end(const Run *r, Buf *text);               /* the same, and frees it */

/* The exit status of a command whose own is passed on; prints where no status says it. */
ABX_FN int run_ended(const Run *r, const abx_event *exit);

/* For verbs with a result: a standard output that cannot take it is found out
 * before anything is done. False: *e. */
ABX_FN bool run_can_print(abx_error *e) ABX_CHECK;

#endif
