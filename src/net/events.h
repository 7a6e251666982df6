/* events.h - the event stream of an execd: one JSON text an event.
 *
 * What the daemon calls text/event-stream is not: each event is a line of bare
 * JSON and an empty line, with no `data:` in front. Some front ends send the
 * standard form. The first byte that is not white space tells which: `{` or `[`
 * is bare, anything else is standard (net/sse). Bare JSON is cut at line ends,
 * which cannot stand inside it; empty lines are passed over.
 *
 *     while ((step = events_next(&e, &in, &text, err)) == STEP_DONE) handle(text);
 *
 * Memory: the line that is not complete yet, at most `limit`; freed by
 * events_free(). A text is good until the next call: it may be a view into the
 * bytes that were handed in.
 */
#ifndef ABX_EVENTS_H
#define ABX_EVENTS_H

#include "net/sse.h"

typedef enum EventsForm { EVENTS_UNKNOWN, EVENTS_BARE, EVENTS_SSE } EventsForm;

typedef struct Events {
    EventsForm form;
    bool       given;       /* the last text was `line` itself: drop it first */
    Buf        line;
    Sse        sse;
} Events;

ABX_FN Events events_make(size_t limit);
ABX_FN void   events_free(Events *e);

/* STEP_DONE: *text is one event's JSON. STEP_MORE: *in is used up. STEP_ERR:
 * ERR_LIMIT, an event over `limit`; every later call says so again. */
ABX_FN Step events_next(Events *e, Str *in, Str *text, Err *err) ABX_CHECK;

/* The stream ended: what stands behind the last line end is an event too. */
ABX_FN Step events_end(Events *e, Str *text) ABX_CHECK;

#endif
