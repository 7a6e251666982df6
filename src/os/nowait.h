/* nowait.h - reading and writing descriptors that others have, too, without
 * waiting.
 *
 * Standard input and output are shared with whoever started the program, so
 * O_NONBLOCK, which belongs to all of them, is not to be set. That poll() calls
 * a pipe ready is not enough: another process may take what was there. So each
 * call asks the kernel itself not to wait (preadv2, pwritev2, Linux 6.4 for
 * pipes), and where it cannot, moves as much as poll() promises: what is there,
 * PIPE_BUF bytes. Regular files are read and written as they are; a terminal may
 * wait where it was stopped in the middle of a write.
 *
 * Result: as of read(2) and write(2), -1 and errno EAGAIN where nothing can be
 * moved now. EINTR does not come.
 */
#ifndef ABX_NOWAIT_H
#define ABX_NOWAIT_H

#include "base/base.h"
#include <sys/types.h>

ABX_FN ssize_t nowait_read(int fd, void *p, size_t n);
ABX_FN ssize_t nowait_write(int fd, const void *p, size_t n);

#endif
