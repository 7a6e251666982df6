/* time.h - points in time as text (RFC 3339) and as milliseconds since 1970.
 *
 * Read are the years 0000 to 9999 with any offset, `T` or `t` or one blank
 * between date and time, `Z` or `z`, and a fraction of one to nine digits, of
 * which what is below a millisecond is cut off. A leap second (23:59:60 UTC)
 * is the second after it, for Unix time has none; :60 at any other time is
 * refused. "-00:00" (offset unknown) is UTC.
 */
#ifndef ABX_TIME_H
#define ABX_TIME_H

#include "base/base.h"

ABX_FN bool time_parse(Str s, int64_t *unix_ms) ABX_CHECK;

/* The Date of an HTTP message in its one current form (RFC 9110, 5.6.7):
 * "Mon, 30 Nov 2026 03:05:54 GMT". The day's name is not looked at. */
ABX_FN bool time_parse_http(Str s, int64_t *unix_ms) ABX_CHECK;

/* The same form, written. A time outside the years 0000 to 9999 becomes 1970. */
enum { TIME_HTTP_SIZE = sizeof "Mon, 30 Nov 2026 03:05:54 GMT" };
ABX_FN void time_http(int64_t unix_ms, char out[static TIME_HTTP_SIZE]);

enum { TIME_SIZE = sizeof "2026-11-30T03:05:54.123Z" };

/* UTC, "2026-11-30T03:05:54Z", or with milliseconds. False: outside the years
 * 0000 to 9999; *out is untouched then. */
ABX_FN bool time_text(int64_t unix_ms, bool with_ms, char out[static TIME_SIZE]) ABX_CHECK;

#endif
