/* answer.h - what the daemon says, in the shapes that execd's clients know.
 *
 * Statuses and codes are the stock daemon's; sentences are ours where no
 * client looks at them.
 */
#ifndef ABX_ANSWER_H
#define ABX_ANSWER_H

#include "base/buf.h"
#include "net/httpd.h"
#include <time.h>

ABX_FN void answer_empty(HttpdCall *c);                         /* 200 without a body */
ABX_FN void answer_json(HttpdCall *c, int status, const Buf *body);

/* A line of text/plain, as the stock daemon's library refuses things. */
ABX_FN void answer_plain(HttpdCall *c, int status, const char *line);

/* {"code":CODE,"message":...} */
ABX_FN void answer_error(HttpdCall *c, int status, const char *code, const char *fmt, ...) ABX_PRINTF(4, 5);

/* A failed system call: 404 FILE_NOT_FOUND for what is not there, otherwise
 * 500 RUNTIME_ERROR. */
ABX_FN void answer_sys(HttpdCall *c, int sys, const char *fmt, ...) ABX_PRINTF(3, 4);

/* RFC 3339 with nanoseconds, without zeros at their end: "2026-11-30T03:05:54.12Z". */
enum { ANSWER_TIME = 40 };
ABX_FN void answer_time(struct timespec t, char out[static ANSWER_TIME]);

#endif
