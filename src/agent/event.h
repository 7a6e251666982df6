/* event.h - the objects in a command's stream, each followed by two LF.
 *
 * They are written one behind the other into a Buf. The longest is an output
 * event of LIMIT_AGENT_LINE bytes, each six in JSON, and in base64 once more.
 *
 * What the stock daemon leaves out when it is empty or zero is left out here,
 * too. Beside its fields stand ours, which its clients pass over: `b64` with
 * the exact bytes of an output event, `signal` and `timed_out` in an error.
 */
#ifndef ABX_EVENT_H
#define ABX_EVENT_H

#include "agent/lines.h"
#include "base/arena.h"

ABX_FN void event_text(Buf *to, const char *type, Str text);    /* init, ping */
ABX_FN void event_complete(Buf *to, int64_t ms);

/* `stamp` is a time as event_stamp() writes it: one for many. */
enum { EVENT_STAMP = 24 };
ABX_FN void event_stamp(char stamp[static EVENT_STAMP]);
ABX_FN void event_output(Buf *to, const char *type, const LinesPiece *piece, const char *stamp, Arena scratch);

/* A result other than 0: `value` is the code in decimal, -1 for a signal, or a
 * sentence when nothing could be started. signo 0: none. */
ABX_FN void event_error(Buf *to, const char *value, const char *trace, int signo, bool timed_out);

/* "exit status 3", "signal: killed", as the stock daemon words a wait status;
 * *code is the number, -1 for a signal. */
enum { EVENT_RESULT = 80 };
ABX_FN void event_result(int status, int *code, char text[static EVENT_RESULT]);

#endif
