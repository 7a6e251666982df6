/* execd_carrier.h - the carried agent's way through an OpenSandbox daemon
 * (provider/carry.h): commands by /command, without input; files by
 * /files/upload; its forwarder /proxy/N to what listens on the sandbox's
 * loopback; a pipe by /pty, where the image has bash.
 *
 * State and address are asked for once, when it is opened.
 */
#ifndef ABX_EXECD_CARRIER_H
#define ABX_EXECD_CARRIER_H

#include "provider/carry.h"
#include "provider/lifecycle.h"

/* For CarrierOps.open of a backend that has a Lifecycle; `ops` is its table,
 * with the functions below. */
ABX_FN bool execd_carrier_open(Lifecycle *l, Str id, const CarrierOps *ops, Carrier **out, Deadline d, Err *err);
ABX_FN void execd_carrier_close(Carrier *c);
ABX_FN bool execd_carrier_line(Carrier *c, Str line, const Pair *env, size_t n, bool input, ExecCall **out, Deadline d, Err *err);
ABX_FN bool execd_carrier_put(Carrier *c, Str path, Source src, Deadline d, Err *err);
ABX_FN bool execd_carrier_dial(Carrier *c, int port, Str path, Stream **out, Deadline d, Err *err);
ABX_FN bool execd_carrier_pipe(Carrier *c, Str line, Stream **out, Deadline d, Err *err);

#endif
