/* epp_link.h - the process of a plugin, and lines to and from it.
 *
 *     if (!epp_link_start(&l, &spec, "demo", err)) ...
 *     epp_link_put(&l, line);
 *     while (!epp_link_line(&l, &line))
 *         if (!epp_link_turn(&l, cancel_fd, deadline, err)) return false;
 *
 * EPP/1 (specification, 4.1 to 4.4 and 4.7) without the meaning of the lines. A
 * failure is final: the plugin and its process group are killed, and the same
 * error is given again from then on.
 *   E8020  a line of more than LIMIT_EPP_LINE bytes, or what epp_link_break() says
 *   E8021  it ended, or reads or answers no more
 *   E8022  a line could not be written before the deadline
 * Their hint is the end of what it printed to stderr, cleaned.
 *
 * A process that the plugin put into a session of its own is left alone, as the
 * other hosts do: that is how a plugin keeps a local sandbox alive, and a tree
 * of processes that escaped cannot be told from it. Whatever stayed in the
 * plugin's group is killed.
 *
 * Memory: buffers with limits; epp_link_end() gives all back.
 */
#ifndef ABX_EPP_LINK_H
#define ABX_EPP_LINK_H

#include "base/buf.h"
#include "net/stream.h"
#include "os/child.h"
#include "provider/epp_voice.h"

typedef struct EppLink {
    Child       child;
    const EppVoice *voice;
    int         ready;          /* readable when there is something to do */
    Buf         in;             /* what it printed: */
    size_t      taken;          /* the lines before here were given out, */
    size_t      looked;         /* and from there on there is no line feed */
    Buf         out;            /* what it is to read, */
    size_t      sent;           /* from here on */
    Buf         said;           /* the end of its stderr, */
    bool        said_cut;       /* without its beginning */
    bool        in_over;        /* nothing more will come */
    bool        gone;           /* its process has ended, */
    int         drained;        /* and so many blocks were read since */
    Deadline    doom;           /* by then it must have ended, */
    const char *why;            /* because of this */
    bool        failed;
    Err         failure;
} EppLink;

/* `voice` must outlive it. */
ABX_FN bool epp_link_start(EppLink *l, const ProcSpec *spec, const EppVoice *voice, Err *err) ABX_CHECK;

/* To be written by the next turns; secret bytes are wiped once they are. */
ABX_FN void epp_link_put(EppLink *l, Str bytes);
ABX_FN bool epp_link_idle(const EppLink *l);        /* all of it was written */

/* The next whole line, without its end; blank ones are passed over. Good until
 * the next turn, and may be changed in place. False: none is there now. */
ABX_FN bool epp_link_line(EppLink *l, Str *line);

/* Wait for something to happen, and do what can be done. False: ERR_TIMEOUT or
 * ERR_CANCELLED, which are the caller's to judge once it has looked at the lines
 * that are there, or the failure. With deadline 0 it does what can be done now,
 * and says ERR_TIMEOUT. */
ABX_FN bool epp_link_turn(EppLink *l, int cancel_fd, Deadline d, Err *err) ABX_CHECK;

/* For callers that wait elsewhere: until when, at most. */
ABX_FN Deadline epp_link_deadline(const EppLink *l);

/* It broke the rules: kill it. Returns false, with *err. */
ABX_FN bool epp_link_break(EppLink *l, Code code, const char *what, Err *err);

/* Put the end of its stderr into the hint of *err. Returns false. */
ABX_FN bool epp_link_hint(EppLink *l, Err *err);

/* Close its input, wait, ask it to end, end it; then everything is given back. */
ABX_FN void epp_link_end(EppLink *l);

#endif
