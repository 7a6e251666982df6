/* dial.h - from a URL to a Stream: names, addresses, TCP, TLS.
 *
 * Literals and localhost are never looked up; other names by getaddrinfo in a
 * forked child (os/lookup), so that deadline and Ctrl-C hold. The addresses
 * are tried one after the other. TCP_NODELAY is set.
 */
#ifndef ABX_DIAL_H
#define ABX_DIAL_H

#include "net/stream.h"
#include "net/url.h"

typedef struct Dialer Dialer;

/* Without TLS in this build, or until the first https URL, it holds nothing.
 * `ca_file` (may be empty) wins over the environment's ABX_CA_FILE,
 * SSL_CERT_FILE, SSL_CERT_DIR, the system's bundles and the embedded roots. */
ABX_FN Dialer *dial_make(Str ca_file);
ABX_FN void    dial_free(Dialer *d);        /* NULL is fine */

/* A ClientDial; ctx is the Dialer. False: ERR_UNSENT, E5001: names the host
 * and port and what went wrong (refused, unreachable, no such name, the
 * certificate's fault in its own words); ERR_TIMEOUT, E5001; ERR_CANCELLED. */
ABX_FN bool dial_stream(void *ctx, const Url *url, int cancel_fd, Deadline deadline, Stream **out, Err *err) ABX_CHECK;

#endif
