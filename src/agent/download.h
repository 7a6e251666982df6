/* download.h - GET /files/download?path=: a file, or a range of it.
 *
 * One range of bytes (RFC 9110, 14; of several the first), or, by offset= and
 * limit=, a range of lines. A file that grows meanwhile is sent as long as it
 * was, one that shrinks cuts the connection.
 */
#ifndef ABX_DOWNLOAD_H
#define ABX_DOWNLOAD_H

#include "net/httpd.h"

ABX_FN void download_begin(HttpdCall *c);

#endif
