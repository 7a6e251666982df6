/* url.h - http, https, ws and wss URLs (RFC 3986), taken apart and put together.
 *
 * Strict on what would let one reader see another host than the next: no
 * control characters, no blanks, no backslash, no user information (E8002: a
 * key does not belong into a URL), no empty host, port 1 to 65535, IPv6 in
 * brackets (a zone after %25 or % is kept). The scheme and the host come out
 * in lower case; the path is kept as it was written, "/" when there is none.
 *
 * Memory: all of a Url lives in the arena it was parsed into.
 */
#ifndef ABX_URL_H
#define ABX_URL_H

#include "base/arena.h"
#include "base/err.h"

typedef struct Url {
    Str  scheme;        /* "http", "https", "ws", "wss" */
    bool tls;
    Str  host;          /* without brackets */
    bool ipv6;
    int  port;          /* the scheme's own when none was given */
    Str  path;          /* begins with "/", percent-encoded as given, no query */
    Str  query;         /* without "?"; p NULL when there is none */
} Url;

/* False: ERR_USAGE, E8002, with the reason. A fragment is refused. */
ABX_FN bool url_parse(Str text, Arena *a, Url *out, Err *err) ABX_CHECK;

/* "host" or "host:port" as the Host field wants it: brackets around IPv6, the
 * port only when it is not the scheme's own. */
ABX_FN Str url_authority(const Url *u, Arena *a);

/* The URL as text again, without the query. */
ABX_FN Str url_text(const Url *u, Arena *a);

/* `base` with `path` ("/x/y", already encoded) behind its path, one slash
 * between them, and `query` (without "?", or p NULL). */
ABX_FN Url url_join(const Url *base, Str path, Str query, Arena *a);

/* What `ref` means where `base` was read (RFC 3986, 5.2): a whole URL, or one
 * relative to it. False: as url_parse(). */
ABX_FN bool url_resolve(const Url *base, Str ref, Arena *a, Url *out, Err *err) ABX_CHECK;

/* Percent-encode everything but unreserved characters: fit for a path segment
 * and for a query value. */
ABX_FN Str url_encode(Str raw, Arena *a);

/* The host is an address literal (IPv6 without brackets, a zone is passed over):
 * its bytes in network order, 4 or 16 of them; 0 when it is a name. */
ABX_FN size_t url_address(Str host, unsigned char out[static 16]);

/* The host is a loopback name or address: localhost, *.localhost, 127.0.0.0/8, ::1. */
ABX_FN bool url_is_loopback(const Url *u);

#endif
