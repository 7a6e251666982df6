/* progress.h - how a copy goes, told on standard error while it does.
 *
 *     if (!progress_open(&p, r, piped, &err)) return run_fail_own(r, &err);
 *     progress_event(&p, ev)      for each event of abx_copy()
 *     progress_close(&p, &copied) at its end; NULL where it failed
 *
 * --progress bar: one line, drawn anew at most ten times a second as wide as the
 * terminal is then, never waited for, and wiped before anything else is printed
 * (Output.bar) and at the end. --progress json: lines {"event": "progress",
 * "bytes", "total", "files", "total_files"}, {"event": "failed", "path",
 * "reason"} and {"event": "done", "bytes", "files", "failed"}; what is not known
 * is left out. Entries that failed are told in every form, each in its line.
 */
#ifndef ABX_PROGRESS_H
#define ABX_PROGRESS_H

#include "abx.h"
#include "cli/run.h"
#include "os/clock.h"

typedef enum ProgressForm { PROGRESS_NONE, PROGRESS_BAR, PROGRESS_JSON } ProgressForm;

typedef struct ProgressMark { int64_t at, bytes; } ProgressMark;

typedef struct Progress {
    Run         *run;
    ProgressForm form;
    bool         drawn;         /* the bar stands on the screen */
    Deadline     next;          /* nothing is drawn before this */
    ProgressMark marks[2];      /* the rate is that since the older one */
} Progress;

/* Looks at --progress. `piped`: the content goes to standard output, and a bar
 * does not belong between it where that is a terminal. False: E8002. */
ABX_FN bool progress_open(Progress *p, Run *r, bool piped, Err *err) ABX_CHECK;
ABX_FN void progress_event(Progress *p, const abx_copy_event *ev);
ABX_FN void progress_close(Progress *p, const abx_copied *done);

#endif
