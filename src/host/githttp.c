#include "host/githttp.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/clean.h"
#include "host/fetch.h"
#include "net/dial.h"
#include "os/poll.h"

typedef struct GitHttp {
    GitLink   link;
    Arena     own;
    Url       url;          /* without the slash at its end */
    int       cancel_fd;
    Dialer   *dialer;
    Client   *client;
    Exchange *x;            /* the answer being read; NULL: there is none */
    Deadline  deadline;
    bool      any;          /* a byte of this answer came */
    char      in[LIMIT_COPY_BLOCK];
} GitHttp;

/* --- what is no answer of git's ------------------------------------------------- */

static bool githttp__redirect(const GitHttp *h, Err *err)
{
    Arena scratch = arena_make(256 << 10);
    Str   to = header_get(client_headers(h->x), "Location");

    err_set(err, ERR_DENIED, E8010, "%.*s: the server redirects elsewhere (HTTP %d)", STR_ARG(url_text(&h->url, &scratch)),
            client_status(h->x));
    /* The repository's URL is what a person would use. */
    to.n = str_find(to, '?');
    if (str_ends(to, STR("/info/refs")))
        to.n -= sizeof "/info/refs" - 1;
    if (to.n && to.n < 2048)
        err_hint(err, "Redirects are not followed. It names %s; if you trust that, use its URL.",
                 source_shown(to, &scratch).p);
    arena_free(&scratch);
    return false;
}

static bool githttp__status(const GitHttp *h, Err *err)
{
    Arena       scratch = arena_make(256 << 10);
    int         status = client_status(h->x);
    const char *what = status == 401   ? "the repository is private or does not exist: the server wants credentials, and abx sends none"
                       : status == 403 ? "the server does not allow it"
                       : status == 404 ? "there is no such repository"
                       : status == 429 ? "the server asks to come back later"
                                       : "the server failed";

    err_set(err, status == 404 ? ERR_NOT_FOUND : status < 500 ? ERR_DENIED : ERR_REMOTE, E8010, "%.*s: %s (HTTP %d)",
            STR_ARG(url_text(&h->url, &scratch)), what, status);
    if (status == 401)
        err_hint(err, "For a private repository use ssh: git@HOST:PATH.");
    err->status = status;
    arena_free(&scratch);
    return false;
}

/* "application/x-git-upload-pack-KIND", whatever parameters follow. */
static bool githttp__type(const GitHttp *h, const char *kind, Err *err)
{
    Arena scratch = arena_make(256 << 10);
    Str   type = header_get(client_headers(h->x), "Content-Type"), coding = header_get(client_headers(h->x), "Content-Encoding");
    Str   want = arena_fmt(&scratch, "application/x-git-upload-pack-%s", kind);
    bool  ok = str_eq_nocase(str_trim(str_from_to(type, 0, str_find(type, ';'))), want);

    type = clean_message(str_from_to(type, 0, type.n < 200 ? type.n : 200), NULL, 0, &scratch);
    if (!ok)
        err_set(err, ERR_INPUT, E8010, "%.*s: not a git server: it answers with %.*s", STR_ARG(url_text(&h->url, &scratch)),
                STR_ARG(type.n ? type : STR("no type")));
    else if (coding.n && !str_eq_nocase(coding, STR("identity")))
        ok = err_set(err, ERR_INPUT, E8010, "%.*s: the server compresses its answer, which was not asked for",
                     STR_ARG(url_text(&h->url, &scratch)));
    arena_free(&scratch);
    return ok;
}

/* --- requests ------------------------------------------------------------------- */

static bool githttp__ask(GitHttp *h, ClientRequest *r, const char *kind, Err *err)
{
    client_close(h->x);
    h->x = NULL;
    h->any = false;
    h->deadline = r->deadline = clock_after(LIMIT_GIT_MS);
    r->idle_ms = LIMIT_GIT_SILENCE_MS;
    if (!client_open(h->client, r, &h->x, err))
        return fetch_failed(h->url.tls, err);
    int status = client_status(h->x);
    if (status >= 300 && status < 400)
        return githttp__redirect(h, err);
    return status == 200 ? githttp__type(h, kind, err) : githttp__status(h, err);
}

/* A request's body; a kept connection that was closed makes the client send it again. */
typedef struct GitHttpBody { Str left, whole; } GitHttpBody;

static bool githttp__rewind(void *ctx, Err *err)
{
    GitHttpBody *b = ctx;       /* `left` comes first: this is the source's context, too */

    (void)err;
    b->left = b->whole;
    return true;
}

static bool githttp__send(GitLink *l, Str request, Err *err)
{
    static const Header fields[] = {
        {{"Content-Type", 12}, {"application/x-git-upload-pack-request", 37}},
        {{"Accept", 6}, {"application/x-git-upload-pack-result", 36}},
        {{"Git-Protocol", 12}, {"version=2", 9}},
    };
    GitHttp      *h = (GitHttp *)l;
    Arena         scratch = arena_make(256 << 10);
    GitHttpBody   text = {request, request};
    Source        body = flow_from_str(&text.left);
    ClientRequest r = {.method = "POST", .body = &body, .rewind = githttp__rewind, .idempotent = true, .headers = {fields, COUNT_OF(fields)},
                       .url = url_join(&h->url, STR("/git-upload-pack"), (Str){0}, &scratch)};

    bool ok = githttp__ask(h, &r, "result", err);
    arena_free(&scratch);
    return ok;
}

static bool githttp__advertisement(GitHttp *h, Err *err)
{
    static const Header fields[] = {{{"Git-Protocol", 12}, {"version=2", 9}}};
    Arena         scratch = arena_make(256 << 10);
    ClientRequest r = {.method = "GET", .idempotent = true, .headers = {fields, COUNT_OF(fields)},
                       .url = url_join(&h->url, STR("/info/refs"), STR("service=git-upload-pack"), &scratch)};

    bool ok = githttp__ask(h, &r, "advertisement", err);
    arena_free(&scratch);
    return ok;
}

/* --- the link ------------------------------------------------------------------- */

static bool githttp__read(GitLink *l, Str *piece, Err *err)
{
    GitHttp *h = (GitHttp *)l;
    size_t   n;

    if (!client_read(h->x, h->in, sizeof h->in, &n, h->deadline, err))
        return fetch_failed(h->url.tls, err);
    h->any = h->any || n > 0;
    *piece = (Str){h->in, n};
    return true;
}

static bool githttp__cut(GitLink *l, Err *err)
{
    GitHttp *h = (GitHttp *)l;

    if (h->any)
        return err_set(err, ERR_CLOSED, E8010, "%.*s: the git server's answer was cut off", STR_ARG(h->url.host));
    err_set(err, ERR_REMOTE, E8010, "%.*s: the git server gave an empty answer", STR_ARG(h->url.host));
    return err_hint(err, "It did not like the request; why is in its own log.");
}

static bool githttp__goes_on(GitLink *l, Err *err)
{
    GitHttp      *h = (GitHttp *)l;
    struct pollfd none[1];
    ABX_UNSET Err seen;

    if (!poll_wait(none, 0, h->cancel_fd, 0, &seen) && seen.kind == ERR_CANCELLED) {
        *err = seen;
        return false;
    }
    return !clock_passed(h->deadline) || err_set(err, ERR_TIMEOUT, E8010, "%.*s: it took more than %d s",
                                                 STR_ARG(h->url.host), LIMIT_GIT_MS / 1000);
}

static void githttp__close(GitLink *l)
{
    GitHttp *h = (GitHttp *)l;

    client_close(h->x);
    client_free(h->client);
    dial_free(h->dialer);
    arena_free(&h->own);
    mem_free(h);
}

static bool githttp__start(GitHttp *h, Str url, const SourceHost *host, Err *err)
{
    while (url.n && url.p[url.n - 1] == '/')
        url.n--;
    if (!url_parse(url, &h->own, &h->url, err))
        return fetch_failed(false, err);
    if (h->url.query.p)
        return err_set(err, ERR_USAGE, E8010, "a repository's URL with a query is not supported");
    h->dialer = dial_make(host->ca_file);
    h->client = client_make(&(ClientOptions){.dial = dial_stream, .dial_ctx = h->dialer, .cancel_fd = host->cancel_fd,
                                             .agent = STR("abx/" ABX_VERSION), .trace = host->trace,
                                             .trace_ctx = host->trace_ctx});
    return githttp__advertisement(h, err);
}

bool githttp_open(Str url, const SourceHost *host, GitLink **out, Err *err)
{
    static const GitLinkOps ops = {githttp__read, githttp__send, githttp__cut, githttp__goes_on, githttp__close};
    GitHttp *h = mem_new(sizeof *h);

    h->link = (GitLink){&ops, true};
    h->own = arena_make(256 << 10);
    h->cancel_fd = host->cancel_fd;
    if (!githttp__start(h, url, host, err)) {
        githttp__close(&h->link);
        return false;
    }
    *out = &h->link;
    return true;
}
