/* door.h - one WebSocket for whoever knows the token, on a port of 127.0.0.1
 * that everybody in the sandbox can reach.
 *
 * What asks for another path, or is no upgrade, is refused and does not use the
 * door up; nor does one who says nothing: the oldest of LIMIT_CARRY_KNOCKS makes
 * room. After the first good one the port is closed.
 *
 * A daemon of ours need not stand between the two: beside the port there is a
 * socket, abstract and by its name the port's, which takes connections.
 */
#ifndef ABX_DOOR_H
#define ABX_DOOR_H

#include "base/buf.h"
#include "base/err.h"

typedef struct Door {
    int port;
    int port_fd;
    int hand_fd;        /* a socket for door_hand(); -1: there is none */
} Door;

/* At a port of 127.0.0.1. */
ABX_FN bool door_open(Door *d, Err *err) ABX_CHECK;

/* Wait for the one who asks for /TOKEN, and answer 101. Its connection, with
 * what was read behind the head in *rest (writable); -1: nobody came within
 * LIMIT_CARRY_WAIT_MS. Closes the door. */
ABX_FN int door_wait(const Door *d, Str token, Buf *rest);

/* Give a client's connection, and the head that it sent, to the door at this
 * port, whose answer goes to the client without a detour. False: there is no
 * such door of this user's, or `client` is -1, and nothing happened. */
ABX_FN bool door_hand(int port, int client, Str head);

#endif
