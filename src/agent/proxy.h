/* proxy.h - /proxy/PORT/...: a request handed on to 127.0.0.1:PORT.
 *
 * Both messages are read by our own codec and written anew, so what reaches
 * the other side is framed without doubt, whatever came in: a body has its
 * length or is chunked, never both, and fields that belong to one connection
 * (RFC 9110, 7.6.1) stay on theirs. Bodies flow both ways, as fast as the
 * slower side. An upgrade that the service agrees to becomes a tunnel for
 * bytes, each direction ending by itself.
 */
#ifndef ABX_PROXY_H
#define ABX_PROXY_H

#include "net/httpd.h"

/* c->ctx is the Daemon. Answers 502 "Bad Gateway" when nothing listens there,
 * or what answers is not HTTP. */
ABX_FN void proxy_begin(HttpdCall *c, int port, Str target);

#endif
