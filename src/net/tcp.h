/* tcp.h - TCP connections as Streams. No name is looked up here; see net/dial.
 *
 * Sockets do not block, are closed on exec, send small pieces at once
 * (TCP_NODELAY) and never raise SIGPIPE.
 */
#ifndef ABX_TCP_H
#define ABX_TCP_H

#include "net/stream.h"
#include "os/lookup.h"

/* False: ERR_UNSENT (E5001) with the reason alone ("connection refused"): the
 * caller knows what the host is called; ERR_TIMEOUT, ERR_CANCELLED. */
ABX_FN bool tcp_connect(const LookupAddress *to, int cancel_fd, Deadline deadline, Stream **out, Err *err) ABX_CHECK;

#endif
