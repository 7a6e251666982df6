/* multipart.h - multipart/form-data (RFC 7578 over RFC 2046, 5.1), both ways.
 *
 * Writing: an upload of one file with its metadata, as a Source whose size is
 * known before the first byte is read.
 *
 *     MultipartUpload u;
 *     Source body = multipart_upload(&u, a, boundary, metadata_json, file);
 *     request.headers: Content-Type = multipart_type(a, boundary)
 *
 * Reading: hand it bytes as they arrive, cut anywhere; take events out.
 *
 *     Multipart m = multipart_make(boundary);
 *     while ((step = multipart_next(&m, &in, &ev, err)) == STEP_DONE)
 *         switch (ev.kind) ...
 *
 * Strict where two readers could differ: lines end in CR LF, a line that
 * begins with the delimiter and goes on with anything but blanks or the closing
 * "--" is refused, every part needs a Content-Disposition with a name. What
 * stands before the first delimiter and behind the last is passed over.
 *
 * Memory: a Multipart holds at most LIMIT_PART_HEAD, freed by multipart_free().
 */
#ifndef ABX_MULTIPART_H
#define ABX_MULTIPART_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/flow.h"

/* Writing. The boundary must not occur in what is sent: 32 random hex digits
 * do. Private fields; the struct must outlive the Source. */
typedef struct MultipartUpload {
    Str    head, tail;      /* what is left to send of them */
    Source file;
} MultipartUpload;

/* The parts `metadata` (application/json; a file part, as execd wants it) and
 * `file`. The size is known when the file's is. */
ABX_FN Source multipart_upload(MultipartUpload *u, Arena *a, Str boundary, Str metadata, Source file);
ABX_FN Str    multipart_type(Arena *a, Str boundary);

/* Reading */
enum { MULTIPART_BOUNDARY = 70 };   /* the longest boundary there is, RFC 2046, 5.1.1 */

typedef enum MultipartKind {
    MULTIPART_PART,         /* a part begins: name and filename */
    MULTIPART_DATA,         /* the next of its bytes */
    MULTIPART_PART_END,     /* that was all of it */
    MULTIPART_END,          /* the last delimiter; what follows is passed over */
} MultipartKind;

typedef struct MultipartEvent {
    MultipartKind kind;
    Str  name;              /* MULTIPART_PART: good until the part's end */
    Str  filename;
    bool has_filename;      /* it is a file part, its name may be empty */
    Str  data;              /* MULTIPART_DATA: good until the next call */
} MultipartEvent;

typedef enum MultipartState {
    MULTIPART_PREAMBLE,     /* looks for the first delimiter */
    MULTIPART_LINE,         /* behind a delimiter, before the end of its line */
    MULTIPART_LINE_DASH,    /* behind one closing dash of two */
    MULTIPART_LINE_LF,      /* behind the CR of that line */
    MULTIPART_HEAD,         /* in the fields of a part */
    MULTIPART_BODY,         /* in its bytes, looks for the next delimiter */
    MULTIPART_EPILOGUE,     /* all is over */
} MultipartState;

/* Private to multipart.c; here so that callers can hold one by value. */
typedef struct Multipart {
    MultipartState state;
    char   delimiter[4 + MULTIPART_BOUNDARY];   /* CR LF "--" boundary */
    size_t length;          /* of it */
    size_t matched;         /* how much of it the last bytes were */
    bool   padded;          /* blanks came behind a delimiter */
    size_t line;            /* where the field being read begins in head */
    int    parts;
    Buf    head;
} Multipart;

/* The boundary of a Content-Type field; false: ERR_INPUT, E0000, the type is
 * another one, or its boundary is missing or malformed. */
ABX_FN bool multipart_boundary(Str content_type, char out[static MULTIPART_BOUNDARY], size_t *n, Err *err) ABX_CHECK;

ABX_FN Multipart multipart_make(Str boundary);      /* at most MULTIPART_BOUNDARY bytes */
ABX_FN void      multipart_free(Multipart *m);

/* STEP_DONE: *ev is the next event. STEP_MORE: *in is used up. STEP_ERR:
 * ERR_INPUT, or ERR_LIMIT past LIMIT_PART_HEAD or LIMIT_PARTS; E0000. */
ABX_FN Step multipart_next(Multipart *m, Str *in, MultipartEvent *ev, Err *err) ABX_CHECK;

/* The body ended here. False (ERR_CLOSED): before its last delimiter. */
ABX_SET bool multipart_ended(const Multipart *m, Err *err) ABX_CHECK;

#endif
