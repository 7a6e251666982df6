/* files.h - the calls about single files: info, delete, mv, permissions. */
#ifndef ABX_FILES_H
#define ABX_FILES_H

#include "net/httpd.h"

ABX_FN void files_info(HttpdCall *c);                       /* GET /files/info?path=&path= */
ABX_FN void files_delete(HttpdCall *c);                     /* DELETE /files?path=&path= */
ABX_FN void files_move(HttpdCall *c, Str body);             /* POST /files/mv */
ABX_FN void files_permissions(HttpdCall *c, Str body);      /* POST /files/permissions */

#endif
