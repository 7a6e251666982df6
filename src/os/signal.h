/* signal.h - signals as bytes in a pipe, so that whoever polls sees them.
 *
 *     if (!signal_catch((int[]){SIGINT, SIGTERM}, 2, &fd, err)) return false;
 *     ... poll fd for POLLIN, or hand it down as a cancel fd ...
 *     while ((signo = signal_next()) != 0) ...
 *
 * A cancel fd is only looked at: it stays readable until signal_next() has
 * taken the last one, so one Ctrl-C ends every wait there is.
 *
 * One pipe per process. Handlers restart system calls. Children get their
 * signals reset by os/proc.
 */
#ifndef ABX_SIGNAL_H
#define ABX_SIGNAL_H

#include "base/err.h"
#include <signal.h>

/* From now on these arrive in the pipe; may be called again for more. */
ABX_FN bool signal_catch(const int *signals, size_t n, int *fd, Err *err) ABX_CHECK;

/* The first signal that comes from now on is the last one that is caught: the
 * next does what it does by default. */
ABX_FN void signal_once(void);

/* The next one that came, 0 when there is none. */
ABX_FN int signal_next(void);

/* Not to be killed by a peer that reads no more: writes fail with EPIPE, and
 * past RLIMIT_FSIZE with EFBIG. */
ABX_FN void signal_ignore_writes(void);

#endif
