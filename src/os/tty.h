/* tty.h - terminals: what kind of stream this is, its size, and raw mode.
 *
 *     if (!tty_raw(STDIN_FILENO, err)) return false;
 *     ...
 *     tty_restore();
 *
 * From tty_raw() on the terminal gets its mode back in whatever way this
 * process ends: exit(), abort(), every signal that is at its default and ends a
 * process, no memory. SIGKILL alone leaves it raw. Children leave it alone.
 */
#ifndef ABX_TTY_H
#define ABX_TTY_H

#include "base/err.h"

ABX_FN bool tty_is(int fd);

/* Makes sure that descriptors 0, 1 and 2 are taken, so that no socket or file
 * opened later is mistaken for them. One that was closed is put on /dev/null
 * the wrong way round: reading 0, writing 1 and 2 fail with EBADF, as before. */
ABX_FN void tty_fill_standard(void);

/* A descriptor that can be written to. */
ABX_FN bool tty_writable(int fd);

typedef struct TtySize { int cols, rows; } TtySize;

/* Of the first of descriptors 0, 1, 2 and /dev/tty that knows one, else 80x24:
 * never 0. */
ABX_FN TtySize tty_size(void);

/* Bytes pass both ways as they are, Ctrl-C too; again after tty_restore(), or
 * after somebody else changed the mode. One terminal at a time: `fd` stays open
 * until tty_restore(). A process in the background is stopped here until it is
 * in the foreground. False: ERR_SYSTEM, and nothing changed. */
ABX_FN bool tty_raw(int fd, Err *err) ABX_CHECK;

/* The mode from before the first tty_raw(); nothing where it is not raw. Safe in a signal handler. */
ABX_FN void tty_restore(void);

/* Stops this process as the terminal's own stop key does, with the mode
 * restored; comes back when it is continued, in the old mode still. */
ABX_FN void tty_stop(void);

/* The same terminal for writing, by a descriptor that does not block and is
 * nobody else's: O_NONBLOCK on `fd` itself would be the shell's, too. -1: `fd`
 * is none, or it may not be opened. The caller closes it. */
ABX_FN int tty_patient(int fd);

#endif
