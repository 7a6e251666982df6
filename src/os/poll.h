/* poll.h - the only place that sleeps.
 *
 * Whoever waits says for which descriptors, until when, and which descriptor
 * means "stop waiting" (a signal's pipe, as a rule; -1 for none). That one is
 * only looked at, never read: once readable, every further wait with it ends
 * at once, so cancelling runs through all layers without a flag. Cleaning up
 * afterwards is done with -1 and a short deadline.
 */
#ifndef ABX_POLL_H
#define ABX_POLL_H

#include "base/err.h"
#include "os/clock.h"
#include <poll.h>

/* Wait until one of the n descriptors is ready. `fds` has room for n + 1: the
 * last place is used for cancel_fd. Entries with fd -1 are passed over; with
 * n 0 it is a sleep, and reaching the deadline is still ERR_TIMEOUT.
 *   true   at least one of fds[0..n) has revents
 *   false  ERR_TIMEOUT (E5000), ERR_CANCELLED (E0000), ERR_SYSTEM */
ABX_FN bool poll_wait(struct pollfd *fds, size_t n, int cancel_fd, Deadline deadline, Err *err) ABX_CHECK;

/* The same for one descriptor. */
ABX_FN bool poll_one(int fd, short events, int cancel_fd, Deadline deadline, Err *err) ABX_CHECK;

/* Let `ms` pass. False only when cancelled. */
ABX_FN bool poll_sleep(int64_t ms, int cancel_fd, Err *err) ABX_CHECK;

#endif
