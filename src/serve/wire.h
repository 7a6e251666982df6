/* wire.h - EPP/1 lines: requests read, answers and notifications written.
 *
 * The protocol is that of the provider host's specification, section 4: a JSON
 * object and LF each way. No I/O is done here.
 *
 * Reading: bytes cut anywhere go in, whole lines come out. A line over the
 * reader's limit is read to its end and comes out as `too_long`, with its
 * first bytes, so that it can be answered under its id and the next line is
 * the next line.
 *
 *     WireReader r = wire_reader(LIMIT_SERVE_REQUEST);
 *     while ((step = wire_next(&r, &in, &line)) == STEP_DONE) ...
 *
 * Writing: each function adds one line with its LF to a Buf. A line over
 * LIMIT_SERVE_LINE may not be sent: wire_end() takes it back and says so.
 *
 * Memory: a reader holds one line, freed by wire_free(); what comes out is good
 * until the next call on it.
 */
#ifndef ABX_WIRE_H
#define ABX_WIRE_H

#include "abx.h"
#include "base/buf.h"
#include "data/json.h"

typedef struct WireLine {
    Str  text;          /* without LF, and without a CR before it */
    bool too_long;      /* text is only its beginning */
} WireLine;

typedef struct WireReader {
    Buf  line;
    bool skipping;      /* the rest of a line that is too long */
    bool given;         /* `line` was handed out; drop it first */
} WireReader;

ABX_FN WireReader wire_reader(size_t limit);
ABX_FN void wire_free(WireReader *r);

/* Takes from *in, moving it. STEP_DONE: *out is a line that holds more than
 * blanks. STEP_MORE: *in is used up. */
ABX_FN Step wire_next(WireReader *r, Str *in, WireLine *out);

/* What came behind the last LF when the stream ended: a line, too. */
ABX_FN bool wire_last(WireReader *r, WireLine *out);

/* The `id` member of an object of which only the beginning is there, as it
 * stands in the text; empty when it is not found. Members before it may be
 * anything. */
ABX_FN Str wire_find_id(Str begin);

/* ---- writing ---- */

typedef struct WireOut {
    Buf    *to;
    size_t  from;       /* where the line began */
    JsonOut json;
} WireOut;

/* {"jsonrpc": "2.0", "id": ID, "result": … ; `id` is JSON text ("null" when it
 * is empty). The caller puts the value of result. */
ABX_FN WireOut wire_answer(Buf *to, Str id);
/* {"jsonrpc": "2.0", "method": METHOD, "params": … */
ABX_FN WireOut wire_notification(Buf *to, const char *method);
/* Ends the line. False: it is over LIMIT_SERVE_LINE, and is gone from the Buf. */
ABX_FN bool wire_end(WireOut *w) ABX_CHECK;

/* An error of EPP (4.9). data_feature: for -32003, or NULL. */
typedef struct WireError {
    int         code;
    const char *message;
    const char *sdk_code;       /* NULL: none; one of the set that hosts accept */
    const char *suggestion;     /* NULL or "": none */
    const char *feature;        /* NULL: none */
} WireError;

ABX_FN void wire_error(Buf *to, Str id, const WireError *e);

/* The EPP error of a failure of abx.h. */
ABX_FN WireError wire_from(const abx_error *e);

enum {
    WIRE_PARSE = -32700, WIRE_INVALID = -32600, WIRE_NO_METHOD = -32601, WIRE_PARAMS = -32602,
    WIRE_FAILED = -32000, WIRE_DENIED = -32001, WIRE_NOT_FOUND = -32002, WIRE_NO_FEATURE = -32003,
    WIRE_QUOTA = -32004, WIRE_UNREACHABLE = -32005, WIRE_CONFIG = -32006,
};

#endif
