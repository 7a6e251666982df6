#include "host/forge.h"

#include "base/limits.h"
#include "base/str.h"
#include "host/fetch.h"
#include "host/unpack.h"
#include "net/url.h"

/* How an archive's address is made: the repository's URL, then `middle`, the
 * commit, and, where `named`, the repository's name and the commit once more. */
static const struct { Str host; Str middle; bool named, groups; Str other; } forge__rows[] = {
    {{"github.com", 10}, {"/archive/", 9}, false, false, {"codeload.github.com", 19}},
    {{"gitlab.com", 10}, {"/-/archive/", 11}, true, true, {"", 0}},
    {{"codeberg.org", 12}, {"/archive/", 9}, false, false, {"", 0}},
    {{"gitea.com", 9}, {"/archive/", 9}, false, false, {"", 0}},
    {{"bitbucket.org", 13}, {"/get/", 5}, false, false, {"", 0}},
};

/* "/owner/repo", as it is in the path; *name is its last part. n 0: it is none. */
static Str forge__repo(Str path, bool groups, Str *name)
{
    size_t parts = 0;

    while (path.n && path.p[path.n - 1] == '/')
        path.n--;
    if (str_ends(path, STR(".git")))
        path.n -= 4;
    Str rest = path, part;
    for (str_cut(&rest, '/', &part); str_cut(&rest, '/', &part); parts++) {
        if (part.n == 0 || str_eq(part, STR(".")) || str_eq(part, STR("..")))
            return (Str){0};
        *name = part;
    }
    return parts == 2 || (groups && parts > 2) ? path : (Str){0};
}

Str forge_archive(Str url, Str commit, Arena *a, Str *other)
{
    Url u;
    ABX_UNSET Err err;
    Str name = {0};

    if (!url_parse(url, a, &u, &err) || !u.tls || u.port != 443 || u.query.p || !str_eq(u.scheme, STR("https")))
        return (Str){0};
    for (size_t i = 0; i < COUNT_OF(forge__rows); i++) {
        if (!str_eq(u.host, forge__rows[i].host))
            continue;
        Str repo = forge__repo(u.path, forge__rows[i].groups, &name);
        if (repo.n == 0)
            break;
        *other = forge__rows[i].other;
        Str at = arena_fmt(a, "https://%.*s%.*s%s%.*s", STR_ARG(u.host), STR_ARG(repo), forge__rows[i].middle.p, STR_ARG(commit));
        return forge__rows[i].named ? arena_fmt(a, "%s/%.*s-%.*s.tar.gz", at.p, STR_ARG(name), STR_ARG(commit))
                                    : arena_fmt(a, "%s.tar.gz", at.p);
    }
    return (Str){0};
}

typedef struct ForgeTake { Unpack *from; ForgeEach *each; void *ctx; bool refused; } ForgeTake;

static bool forge__content(void *ctx, char *p, size_t cap, size_t *n, Err *err)
{
    return unpack_read(ctx, p, cap, n, err);
}

/* All regular files. False: the archive is damaged, or `refused`. */
static bool forge__files(ForgeTake *t, Err *err)
{
    ABX_UNSET TarEvent ev;
    Step     step;
    Str      top;

    while ((step = unpack_next(t->from, &ev, err)) == STEP_DONE) {
        Str name = ev.name;
        if (ev.type != TAR_FILE || !str_cut(&name, '/', &top) || name.n == 0)
            continue;
        ForgeFile f = {name, ev.mode & 0100, ev.size};
        Source    content = {forge__content, t->from, ev.size};
        if (!t->each(t->ctx, &f, &content, err)) {
            t->refused = true;
            return false;
        }
    }
    return step != STEP_ERR;
}

bool forge_fetch(Str address, Str other, const SourceHost *host, ForgeEach *each, void *ctx, bool *missing, Err *err)
{
    FetchAsk ask = {.url = address, .other = &other, .ms = LIMIT_CATALOG_MS, .all_ms = LIMIT_DOWNLOAD_MS,
                       .most = LIMIT_ARCHIVE, .too_many = E8010};
    ForgeTake   t = {.each = each, .ctx = ctx};
    Fetch   *d = NULL;
    ABX_UNSET Err why;

    *missing = false;
    bool ok = fetch_open(&ask, host, &d, &why) && fetch_status(d) == 200;
    if (ok) {
        t.from = unpack_open(fetch_source(d));
        ok = forge__files(&t, &why);
        unpack_close(t.from);
    } else if (d) {
        why.kind = ERR_NOT_FOUND;
    }
    fetch_close(d);
    if (!ok && (t.refused || why.kind == ERR_CANCELLED)) {
        *err = why;
        return false;
    }
    *missing = !ok;
    return true;
}
