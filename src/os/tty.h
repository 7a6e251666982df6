/* tty.h - what kind of stream this is. */
#ifndef ABX_TTY_H
#define ABX_TTY_H

#include "base/base.h"

ABX_FN bool tty_is(int fd);

/* Makes sure that descriptors 0, 1 and 2 are taken, so that no socket or file
 * opened later is mistaken for them. One that was closed is put on /dev/null
 * the wrong way round: reading 0, writing 1 and 2 fail with EBADF, as before. */
ABX_FN void tty_fill_standard(void);

/* A descriptor that can be written to. */
ABX_FN bool tty_writable(int fd);

#endif
