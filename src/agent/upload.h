/* upload.h - POST /files/upload: pairs of parts `metadata` and `file`.
 *
 * Each file goes to disk as it arrives (agent/place); when the whole request
 * was good all of them are put into their places, and until then nothing has
 * changed. The n-th metadata goes with the n-th file and must come before it.
 */
#ifndef ABX_UPLOAD_H
#define ABX_UPLOAD_H

#include "net/httpd.h"

ABX_FN void upload_begin(HttpdCall *c);

#endif
