/* detach.h - finds the keys that mean "detach" in what somebody types.
 *
 * A key sequence is written as Docker writes it: keys with commas between,
 * each one character or `ctrl-` and one of a-z @ [ \ ] ^ _. What looks like the
 * beginning of it is held back until the next key shows what it is; nothing
 * else is changed or delayed.
 */
#ifndef ABX_DETACH_H
#define ABX_DETACH_H

#include "base/buf.h"
#include "base/err.h"

enum { DETACH_MOST = 16 };        /* in a sequence; nobody types a longer one */

typedef struct Detach {
    unsigned char seq[DETACH_MOST];
    size_t        n;            /* 0: there are none to look for */
    size_t        held;         /* so many of them were typed, and are not passed on yet */
} Detach;

/* "ctrl-p,ctrl-q", or "none". False: ERR_USAGE, E8002. */
ABX_FN bool detach_parse(const char *text, Detach *k, Err *err) ABX_CHECK;

/* What was typed, onto `to`. True: the sequence is in it; neither that nor
 * what was typed behind it is passed on. */
ABX_FN bool detach_scan(Detach *k, Str typed, Buf *to);

#endif
