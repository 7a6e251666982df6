/* kin.h - the processes of one session or group, found in /proc: jobs of a shell
 * on a terminal are groups of their own, and zombies, which nobody may reap in a
 * sandbox, are told from the living. Without /proc the leader's group stands for
 * all, zombies too. */
#ifndef ABX_KIN_H
#define ABX_KIN_H

#include "base/base.h"
#include <sys/types.h>

ABX_FN void kin_signal(pid_t session, int number);
ABX_FN bool kin_alive(pid_t leader, bool session);      /* its session, else its group */

#endif
