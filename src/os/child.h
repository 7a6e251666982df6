/* child.h - a program at the other end of three pipes.
 *
 *     Child c;
 *     if (!child_start(&spec, &c, err)) ...
 *     poll c.out, c.err for POLLIN, c.in for POLLOUT, c.watch for POLLIN
 *     if (child_ended(&c)) ... c.status
 *     child_signal(&c, SIGKILL); child_close(&c);
 *
 * The program leads a session and a process group of its own. That it has ended
 * is learned from the process, not from its pipes, which a child of it may hold
 * open; it is reaped in child_close() alone, so that its number, and the number
 * of its group, are nobody else's as long as signals are sent to them. A
 * process that it puts into another session is out of reach on purpose: that is
 * how a program leaves something running.
 *
 * Memory: none. child_close() gives back the descriptors.
 */
#ifndef ABX_CHILD_H
#define ABX_CHILD_H

#include "base/err.h"
#include "os/proc.h"

typedef struct Child {
    pid_t pid;          /* 0: none, or it was reaped */
    int   in;           /* its standard input, for writing; the three do not block, -1: closed */
    int   out, err;     /* what it prints, for reading */
    int   watch;        /* readable once it has ended; -1: this kernel cannot say, ask now and then */
    bool  ended;        /* child_ended() has seen it */
    int   status;       /* then: its exit status, or minus the number of the signal that ended it */
} Child;

/* spec->fd and spec->session are set here. False: what proc_start() says. */
ABX_FN bool child_start(const ProcSpec *spec, Child *out, Err *err) ABX_CHECK;

/* It has ended; c->status is known then. Does not wait and does not reap. */
ABX_FN bool child_ended(Child *c);

/* As read(2) and write(2), but that EINTR is not seen and a write to a closed
 * pipe raises no SIGPIPE, whatever this process does about that signal. */
ABX_FN ssize_t child_read(int fd, char *p, size_t cap);
ABX_FN ssize_t child_write(int fd, const char *p, size_t n);

ABX_FN void child_signal(const Child *c, int number);   /* to its whole group */

/* Close the descriptors; reap it if it has ended. */
ABX_FN void child_close(Child *c);

#endif
