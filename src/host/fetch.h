/* fetch.h - a file from an http or https server, as a Source.
 *
 *     Fetch *d;
 *     if (!fetch_open(&ask, host, &d, err)) ...
 *     if (fetch_status(d) == 200) ... fetch_source(d) ...
 *     fetch_close(d);
 *
 * Nothing secret is sent. Redirects are followed LIMIT_REDIRECTS times, from
 * https to https alone; where `other` names a host, to that one and no further,
 * and any other redirect is an answer like a 404.
 *
 * Errors name the URL without its query; E8010, but E5001 where this program
 * has no TLS, and what ERR_CANCELLED has.
 *
 * Memory: 300 KiB and a connection, until fetch_close().
 */
#ifndef ABX_FETCH_H
#define ABX_FETCH_H

#include "base/flow.h"
#include "host/source.h"

typedef struct Fetch Fetch;

typedef struct FetchAsk {
    Str         url;
    const char *accept;         /* NULL: anything */
    const Str  *other;          /* NULL: any host */
    int64_t     ms;             /* until the answer's head is there, and the longest silence in its body */
    int64_t     all_ms;         /* until its end is there */
    int64_t     most;           /* bytes of the body; one more is ERR_LIMIT with */
    Code        too_many;       /* this code */
} FetchAsk;

/* Makes an error of a connection, `tls` or not, the failure of a source, E8010;
 * but that this program has no TLS stays what it is (E5001), and so does an
 * interruption. Returns false. */
ABX_FN bool fetch_failed(bool tls, Err *err);

ABX_FN bool fetch_open(const FetchAsk *ask, const SourceHost *host, Fetch **out, Err *err) ABX_CHECK;
ABX_FN int  fetch_status(const Fetch *d);
ABX_FN Source fetch_source(Fetch *d);
ABX_FN void fetch_close(Fetch *d);        /* NULL is fine */

#endif
