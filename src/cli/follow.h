/* follow.h - a running command and this terminal, until the command ends.
 *
 * One loop over the command's events, standard input, standard output and
 * error, and signals; none of them keeps another from being seen. A reader that
 * takes nothing holds the output back, and the connection stays alive.
 *
 * The first SIGINT, SIGTERM, SIGHUP or SIGQUIT goes to the remote process group;
 * what is not gone after FOLLOW_GRACE_MS is killed, and left to itself after as
 * long again. A second one leaves at once. What is printed meanwhile comes out.
 */
#ifndef ABX_FOLLOW_H
#define ABX_FOLLOW_H

#include "cli/input.h"
#include "cli/shape.h"

/* A job that is looked at: signals end that, and not the job. */
typedef struct FollowJob {
    uint64_t until;             /* until so many bytes were seen; UINT64_MAX: until its end */
    bool     silent;            /* what is missing at the beginning is not told */
} FollowJob;

/* Until the command has ended, or is left. `in` NULL: nothing is sent; `job`
 * NULL: it is no job. The exit status; what was to be printed is printed. */
ABX_FN int follow_to_end(Run *r, abx_exec *x, Shape *s, Input *in, const FollowJob *job);

#endif
