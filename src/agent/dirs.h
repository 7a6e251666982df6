/* dirs.h - the calls about folders: list, search, make, remove.
 *
 * Lists are walked while they are sent: what is held is the names of the
 * folders on the way down. The entries of one folder come sorted, a folder's
 * content behind it.
 */
#ifndef ABX_DIRS_H
#define ABX_DIRS_H

#include "net/httpd.h"

ABX_FN void dirs_list(HttpdCall *c);                /* GET /directories/list?path=&depth= */
ABX_FN void dirs_search(HttpdCall *c);              /* GET /files/search?path=&pattern= */
ABX_FN void dirs_make(HttpdCall *c, Str body);      /* POST /directories */
ABX_FN void dirs_remove(HttpdCall *c);              /* DELETE /directories?path=&path= */

#endif
