/* kin.h - the processes of one session, found in /proc: jobs of a
 * shell on a terminal are groups of their own. Without /proc the leader's group
 * stands for all. */
#ifndef ABX_KIN_H
#define ABX_KIN_H

#include "base/base.h"
#include <sys/types.h>

ABX_FN void kin_signal(pid_t session, int number);
ABX_FN bool kin_alive(pid_t session);       /* zombies do not count */

#endif
