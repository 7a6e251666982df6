/* routes.h - which request is answered by whom. */
#ifndef ABX_ROUTES_H
#define ABX_ROUTES_H

#include "net/httpd.h"

/* An HttpdBegin; ctx is the Daemon. Checks the access token first. */
ABX_FN void routes_begin(void *ctx, HttpdCall *c);

#endif
