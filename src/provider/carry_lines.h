/* carry_lines.h - a command's output and input as a Stream: lines of text that
 * carry bytes (data/armor.h), both ways.
 *
 * What the command prints before its first line of that kind is kept for the
 * caller: a shell's markers, or why the program did not start.
 *
 * Both sides wait for one descriptor, the command's own: what was fed goes out,
 * and is answered, while its output is read. After a write that gave STEP_MORE
 * wait for STREAM_READ, read, and write again.
 *
 * Memory: stream_close() closes the command's call, too.
 */
#ifndef ABX_CARRY_LINES_H
#define ABX_CARRY_LINES_H

#include "data/armor.h"
#include "provider/carry.h"

enum {
    CARRY_LINES_SAID = 512,
    CARRY_LINES_TEXT = FRAME_NOISE + ARMOR_BYTES / 3 * 4 + ARMOR_TAG + 32,      /* noise, and most of a first line */
};

/* Takes the call. The carrier must outlive the stream. */
ABX_FN Stream *carry_lines_make(Carrier *carrier, ExecCall *call, const char tag[static ARMOR_TAG + 1]);

/* Its standard input is that of this process: without it nothing can be written. */
ABX_FN void carry_lines_feed(Stream *s, uint32_t pid);

/* Until what was written has been answered. False: it was refused (E8004), or not answered by d. */
ABX_FN bool carry_lines_settle(Stream *s, int cancel_fd, Deadline d, Err *err) ABX_CHECK;

/* End the command, if that can be done. */
ABX_FN void carry_lines_kill(Stream *s);

ABX_FN Str carry_lines_text(const Stream *s);           /* what it printed so far, until the first line that carried bytes */
ABX_FN Str carry_lines_said(const Stream *s);           /* the beginning of its standard error */
ABX_FN const ExecEvent *carry_lines_end(const Stream *s);       /* how it ended; NULL: it runs */
ABX_FN Deadline carry_lines_deadline(const Stream *s);  /* then it must be read again, for a silence to be noticed */

#endif
