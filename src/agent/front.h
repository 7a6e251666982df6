/* front.h - what the sandbox's daemon sees of a carried helper that it started
 * with pipes: a process in the daemon's own group, which hands bytes on between
 * its standard input and output and the keeper. That it is gone is how the
 * keeper learns that the command was ended; SIGTERM (HUP, INT) it hands on. */
#ifndef ABX_FRONT_H
#define ABX_FRONT_H

#include "base/base.h"
#include <sys/types.h>

typedef struct FrontWish {
    int         link;           /* a socket to the keeper */
    pid_t       keeper;
    const char *tag;            /* lines of data/armor.h, both ways; NULL: bytes as they are */
    bool        reads;          /* standard input is the client's */
} FrontWish;

/* Until the keeper has no more to say, or nobody listens. */
ABX_FN void front_run(const FrontWish *wish);

#endif
