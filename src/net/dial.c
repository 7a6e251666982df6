#include "net/dial.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/tcp.h"
#include "net/tls.h"
#include "os/lookup.h"

struct Dialer {
    char *ca_file;
    Tls  *tls;          /* NULL before the first https URL */
};

Dialer *dial_make(Str ca_file)
{
    Dialer *d = mem_new(sizeof *d);

    d->ca_file = mem_str(ca_file);
    return d;
}

void dial_free(Dialer *d)
{
    if (!d)
        return;
    tls_free(d->tls);
    mem_free(d->ca_file);
    mem_free(d);
}

/* One address after the other. A share of the time for each, so that one that
 * does not answer leaves some to the next. */
static bool dial__tcp(const LookupAddress *to, size_t n, int cancel_fd, Deadline deadline, Stream **out, Err *err)
{
    Err first = {0};

    for (size_t i = 0; i < n; i++) {
        int64_t left = deadline - clock_mono_ms();
        ABX_UNSET Err now;
        if (tcp_connect(&to[i], cancel_fd, clock_after(left / (int64_t)(n - i)), out, &now))
            return true;
        if (now.kind == ERR_CANCELLED) {
            *err = now;
            return false;
        }
        if (i == 0)
            first = now;
    }
    *err = first;
    return false;
}

bool dial_stream(void *ctx, const Url *url, int cancel_fd, Deadline deadline, Stream **out, Err *err)
{
    Dialer       *d = ctx;
    LookupAddress addresses[LOOKUP_MAX];
    size_t        n = 0;
    Stream       *plain;

    /* First, because it costs no packet to find out. */
    if (url->tls && !d->tls && !tls_make(str_from(d->ca_file), &d->tls, err))
        return false;
    bool     found = lookup_host(url->host, url->port, cancel_fd, deadline, addresses, &n, err);
    Deadline until = clock_sooner(deadline, clock_after(LIMIT_CONNECT_MS));
    if (!found || !dial__tcp(addresses, n, cancel_fd, until, &plain, err) ||
        (url->tls && !tls_connect(d->tls, plain, url->host, cancel_fd, until, &plain, err)))
        return err->kind == ERR_CANCELLED ? false : err_wrap(err, "cannot connect to %s%.*s%s:%d", url->ipv6 ? "[" : "",
                                                                  STR_ARG(url->host), url->ipv6 ? "]" : "", url->port);
    *out = plain;
    return true;
}
