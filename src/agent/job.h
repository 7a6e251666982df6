/* job.h - a command that can be come back to: a Unix socket `j-ID` in the
 * helper's own folder, which nobody else can enter.
 *
 * Whoever connects speaks as any client (data/frame.h), but hears neither a
 * preamble nor a HELLO: a later helper, which has said both to its client, then
 * hands on bytes both ways. A socket that nobody listens at is a keeper's that
 * was killed; it is removed when it is met.
 */
#ifndef ABX_JOB_H
#define ABX_JOB_H

#include "base/buf.h"
#include "base/limits.h"
#include "data/frame.h"
#include "os/loop.h"

enum { JOB_ID = 16 };

typedef struct Job {
    char      id[JOB_ID + 1];   /* empty: it is none */
    bool      asked;            /* START said that it is one */
    bool      stays;            /* until it is forgotten; else as long as it is held */
    LoopWatch listen;
    Loop     *loop;
    int64_t   started, ended;   /* seconds */
    char      command[LIMIT_CARRY_COMMAND + 1];
} Job;

typedef struct Keeper Keeper;

/* How a command is shown. */
ABX_FN void job_name(Job *j, const FrameStart *s, Arena scratch);

/* Listen at its socket. 0, or an errno. */
ABX_FN int  job_open(Job *j, Keeper *k);
ABX_FN void job_close(Job *j);

/* Its line in the list. */
ABX_FN void job_line(const Keeper *k, Buf *to);

/* A connection to a job's keeper; -1 and errno: ENOENT, there is no such job. */
ABX_FN int job_connect(Str id);

/* The lines of all jobs that answer. False: there may be more. */
ABX_FN bool job_list(Buf *to);

#endif
