/* gzip.h - inflates gzip (RFC 1952), by zlib. The one file that sees zlib; a
 * build without TLS has neither. */
#ifndef ABX_GZIP_H
#define ABX_GZIP_H

#include "base/buf.h"
#include "base/err.h"

/* The contents of one whole gzip member to the end of *out. False: ERR_INPUT
 * (damaged, cut short, or bytes behind it), ERR_LIMIT (more than the Buf
 * holds); E0000: the caller knows what it was. */
#ifndef ABX_TLS_NONE
ABX_FN bool gzip_inflate(Str member, Buf *out, Err *err) ABX_CHECK;
#endif

#endif
