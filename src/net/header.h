/* header.h - HTTP header fields (RFC 9110, 5): a list, looked up and checked.
 *
 * Names and values are checked where a message is written, whoever gave them:
 * a name is a token, a value has no control character but TAB, no bare CR or
 * LF, and no blanks at its ends. Bytes above 0x7f are allowed in values.
 *
 * Memory: a Header points into somebody else's bytes; see where it came from.
 */
#ifndef ABX_HEADER_H
#define ABX_HEADER_H

#include "base/err.h"

typedef struct Header { Str name, value; } Header;

typedef struct Headers { const Header *v; size_t n; } Headers;

/* The first field of that name, compared without case. NULL p: there is none. */
ABX_FN Str header_get(Headers h, const char *name);

/* How many fields have that name. */
ABX_FN size_t header_count(Headers h, const char *name);

/* The comma-separated list in all fields of that name has `token` (no case). */
ABX_FN bool header_has_token(Headers h, const char *name, const char *token);

ABX_FN bool header_name_ok(Str name);
ABX_FN bool header_value_ok(Str value);

#endif
