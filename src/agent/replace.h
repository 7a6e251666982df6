/* replace.h - POST /files/replace: one text for another, in whole files.
 *
 * Files are read and written in pieces, of any size, and put into their place
 * when they are complete; one in which nothing is to be replaced is left alone,
 * and one whose folder may not be written to is refused.
 */
#ifndef ABX_REPLACE_H
#define ABX_REPLACE_H

#include "net/httpd.h"

ABX_FN void replace_begin(HttpdCall *c, Str body);

#endif
