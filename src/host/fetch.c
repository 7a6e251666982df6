#include "host/fetch.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/dial.h"

struct Fetch {
    FetchAsk ask;
    Arena     own;
    Url       url;
    Dialer   *dialer;
    Client   *client;
    Exchange *x;
    Deadline  deadline;
    int64_t   total;
};

bool fetch_failed(bool tls, Err *err)
{
    bool no_tls = false;

#ifdef ABX_TLS_NONE
    no_tls = tls && err->code == E5001;
#else
    (void)tls;
#endif
    if (err->kind != ERR_CANCELLED && !no_tls)
        err->code = E8010;
    return false;
}

static bool fetch__named(const Fetch *d, Err *err)
{
    ABX_UNSET char room[2 * LIMIT_ERROR_URL];
    Arena a = {.p = room, .size = sizeof room};
    Str   host = str_from_to(d->url.host, 0, d->url.host.n < 300 ? d->url.host.n : 300);

    return err_wrap(err, "%.*s", STR_ARG(d->url.path.n < LIMIT_ERROR_URL / 2 ? url_text(&d->url, &a) : host));
}

static bool fetch__get(Fetch *d, Err *err)
{
    Header        accept = {STR("Accept"), str_from(d->ask.accept)};
    ClientRequest r = {.method = "GET", .url = d->url, .headers = {&accept, d->ask.accept != NULL}, .idempotent = true,
                       .deadline = clock_sooner(d->deadline, clock_after(d->ask.ms)), .idle_ms = d->ask.ms};

    client_close(d->x);
    d->x = NULL;
    return client_open(d->client, &r, &d->x, err) || fetch_failed(d->url.tls, err);
}

static bool fetch__is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Where the answer leads. *follow is false for an answer that stands as it is. */
static bool fetch__next(Fetch *d, bool *follow, Err *err)
{
    Str to = header_get(client_headers(d->x), "Location");
    Url next;

    *follow = false;
    if (!fetch__is_redirect(client_status(d->x)))
        return true;
    bool usable = url_resolve(&d->url, str_from_to(to, 0, str_find(to, '#')), &d->own, &next, err);
    if (d->ask.other) {
        *follow = usable && next.tls && next.port == 443 && str_eq(next.host, *d->ask.other) && !str_eq(d->url.host, next.host);
        d->url = *follow ? next : d->url;
        return true;
    }
    if (!usable) {
        err_wrap(err, "the server redirects elsewhere");
        return fetch_failed(d->url.tls, err);
    }
    if (d->url.tls && !next.tls)
        return err_set(err, ERR_DENIED, E8010, "the server redirects from https to http");
    d->url = next;
    *follow = true;
    return true;
}

static bool fetch__begin(Fetch *d, Err *err)
{
    bool follow;

    for (int i = 0; i <= LIMIT_REDIRECTS; i++) {
        if (!fetch__get(d, err) || !fetch__next(d, &follow, err))
            return false;
        if (!follow)
            return true;
    }
    return err_set(err, ERR_LIMIT, E8010, "the server redirects more than %d times", LIMIT_REDIRECTS);
}

bool fetch_open(const FetchAsk *ask, const SourceHost *host, Fetch **out, Err *err)
{
    Fetch *d = mem_new(sizeof *d);

    *out = NULL;
    d->ask = *ask;
    d->own = arena_make(16 * LIMIT_URL);
    d->deadline = clock_after(ask->all_ms);
    d->dialer = dial_make(host->ca_file);
    d->client = client_make(&(ClientOptions){
        .dial = dial_stream, .dial_ctx = d->dialer, .cancel_fd = host->cancel_fd, .agent = STR("abx/" ABX_VERSION),
        .trace = host->trace, .trace_ctx = host->trace_ctx,
    });
    if (!url_parse(ask->url, &d->own, &d->url, err)) {
        fetch_failed(false, err);
    } else if (fetch__begin(d, err)) {
        *out = d;
        return true;
    } else {
        fetch__named(d, err);
    }
    fetch_close(d);
    return false;
}

int fetch_status(const Fetch *d)
{
    return client_status(d->x);
}

static bool fetch__read(void *ctx, char *p, size_t cap, size_t *n, Err *err)
{
    Fetch *d = ctx;

    if (!client_read(d->x, p, cap, n, d->deadline, err)) {
        fetch_failed(d->url.tls, err);
        return fetch__named(d, err);
    }
    d->total += (int64_t)*n;
    if (d->total <= d->ask.most)
        return true;
    err_set(err, ERR_LIMIT, d->ask.too_many, "more than %lld bytes", (long long)d->ask.most);
    return fetch__named(d, err);
}

Source fetch_source(Fetch *d)
{
    return (Source){fetch__read, d, -1};
}

void fetch_close(Fetch *d)
{
    if (!d)
        return;
    client_close(d->x);
    client_free(d->client);
    dial_free(d->dialer);
    arena_free(&d->own);
    mem_free(d);
}
