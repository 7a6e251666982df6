/* door.h - one WebSocket for whoever knows the token, on a port of 127.0.0.1
 * that everybody in the sandbox can reach.
 *
 * What asks for another path, or is no upgrade, is refused and does not use the
 * door up; nor does one who says nothing: the oldest of LIMIT_CARRY_KNOCKS makes
 * room. After the first good one the port is closed.
 */
#ifndef ABX_DOOR_H
#define ABX_DOOR_H

#include "base/buf.h"
#include "base/err.h"

/* A port of 127.0.0.1; -1: *err. */
ABX_FN int door_open(int *port, Err *err);

/* Wait for the one who asks for /TOKEN, and answer 101. Its connection, with
 * what was read behind the head in *rest (writable); -1: nobody came within
 * LIMIT_CARRY_WAIT_MS. Closes `port_fd`. */
ABX_FN int door_wait(int port_fd, Str token, Buf *rest);

#endif
