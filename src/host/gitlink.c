#include "host/gitlink.h"

#include "base/str.h"
#include "host/githttp.h"
#include "host/gitpipe.h"

/* "scheme" of "scheme://...", in whatever case. */
static bool gitlink__is(Str url, Str scheme)
{
    return url.n > scheme.n + 3 && str_eq_nocase(str_from_to(url, 0, scheme.n), scheme) &&
           memcmp(url.p + scheme.n, "://", 3) == 0;
}

bool gitlink_open(Str url, const SourceHost *host, GitLink **out, Err *err)
{
    Arena a = arena_make(64 << 10);
    bool  ok;

    if (gitlink__is(url, STR("https")) || gitlink__is(url, STR("http")))
        ok = githttp_open(url, host, out, err);
    else if (gitlink__is(url, STR("ssh")))
        ok = gitpipe_ssh(str_from_to(url, 6, url.n), host, out, err);
    else if (gitlink__is(url, STR("file")))
        ok = gitpipe_local(str_from_to(url, 7, url.n), host, out, err);
    else if (!memmem(url.p, url.n, "://", 3) && str_has(url, ':'))
        ok = gitpipe_scp(url, host, out, err);
    else {
        err_set(err, ERR_USAGE, E8010, "%s: abx does not speak this kind of git", source_shown(url, &a).p);
        ok = err_hint(err, "Use https or ssh.");
    }
    arena_free(&a);
    return ok;
}

void gitlink_close(GitLink *l)
{
    if (l)
        l->ops->close(l);
}

bool gitlink_read(GitLink *l, Str *piece, Err *err)
{
    return l->ops->read(l, piece, err);
}

bool gitlink_send(GitLink *l, Str request, Err *err)
{
    return l->ops->send(l, request, err);
}

bool gitlink_cut(GitLink *l, Err *err)
{
    return l->ops->cut(l, err);
}

bool gitlink_goes_on(GitLink *l, Err *err)
{
    return l->ops->goes_on(l, err);
}
