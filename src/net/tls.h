/* tls.h - TLS 1.2 and 1.3 (RFC 5246, RFC 8446) over a Stream, by Mbed TLS.
 *
 * Certificates are always verified: the chain against the roots, the dates
 * against this machine's clock, the name (or address) against the server's
 * alternative names. There is no way to turn that off.
 *
 * A Tls is what connections share: the roots and the random generator. Without
 * TLS in the build every tls_make() fails: `this abx was built without TLS`.
 *
 * Memory: a Tls outlives its connections; tls_free() gives all back.
 */
#ifndef ABX_TLS_H
#define ABX_TLS_H

#include "net/stream.h"

typedef struct Tls Tls;

/* The roots come from `ca_file` if it is not empty, else from where net/roots.h
 * says. False, ERR_UNSENT E5001: there are none, or a file that was named
 * cannot be used; the text says what was tried. */
ABX_FN bool tls_make(Str ca_file, Tls **out, Err *err) ABX_CHECK;
ABX_FN void tls_free(Tls *t);               /* NULL is fine */

/* Shake hands over `under`, which belongs to the new Stream, and is closed when
 * this fails. `host` is a name or an address literal. False: ERR_UNSENT, E5001:
 * the certificate's fault, or the handshake's, in words; ERR_TIMEOUT,
 * ERR_CANCELLED. */
ABX_FN bool tls_connect(Tls *t, Stream *under, Str host, int cancel_fd, Deadline deadline, Stream **out, Err *err) ABX_CHECK;

#endif
