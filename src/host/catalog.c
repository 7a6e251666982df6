#include "host/catalog.h"

#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/clean.h"
#include "data/json.h"
#include "host/archive.h"
#include "host/fetch.h"
#include "host/treefs.h"
#include "net/url.h"
#include "os/fs.h"

static const Str catalog__public = {"https://registry.agent-sandbox.cn/providers/index.json", 54};

typedef struct Catalog {
    Str         location;       /* as the receipt holds it */
    Str         folder;         /* where a local index lies, without a slash at its end; p NULL: it is not local */
    const Json *index;
} Catalog;

typedef struct CatalogRow { Str id, version, url, sha256; } CatalogRow;

/* A download over http comes as anyone between wanted it. */
static void catalog__warn(Str url, const SourceHost *host, Arena *a)
{
    Url u;
    ABX_UNSET Err err;

    if (host->notice && url_parse(url, a, &u, &err) && !u.tls && !url_is_loopback(&u))
        host->notice(host->notice_ctx, STR("the catalog comes over plain http: anyone on the way can change what it says"));
}

/* --- the index -------------------------------------------------------------------- */

static bool catalog__path(Str location, Arena *a, Str *path)
{
    if (str_starts(location, STR("file:"))) {
        *path = str_from_to(location, 5, location.n);
        return true;
    }
    *path = location;
    return !memchr(location.p, 0, location.n) && fs_type(arena_cstr(a, location)) != FS_NOTHING;
}

static bool catalog__get(Str url, const SourceHost *host, Buf *text, Err *err)
{
    FetchAsk ask = {.url = url, .accept = "application/json", .ms = LIMIT_INDEX_MS, .all_ms = LIMIT_INDEX_ALL_MS,
                       .most = LIMIT_CATALOG, .too_many = E8010};
    Fetch   *d;
    Source      from;
    size_t      n = 1;

    if (!fetch_open(&ask, host, &d, err))
        return false;
    bool ok = fetch_status(d) == 200 || err_set(err, ERR_REMOTE, E8010, "the server answers with HTTP %d", fetch_status(d));
    for (from = fetch_source(d); ok && n; buf_grew(text, n)) {
        char *to = buf_room(text, LIMIT_COPY_BLOCK);
        n = 0;
        ok = to ? from.read(from.ctx, to, LIMIT_COPY_BLOCK, &n, err) : err_set(err, ERR_LIMIT, E8010, "more than 8 MiB");
    }
    fetch_close(d);
    return ok;
}

static bool catalog__read(Catalog *c, const SourceHost *host, Arena *a, Buf *text, Err *err)
{
    Str path;

    if (!catalog__path(c->location, a, &path)) {
        catalog__warn(c->location, host, a);
        return catalog__get(c->location, host, text, err);
    }
    Str real;
    if (!fs_real(arena_cstr(a, path), a, &real, err) || !fs_read(real.p, text, err)) {
        err->code = E8010;
        return false;
    }
    if (!str_starts(c->location, STR("file:")) && c->location.p[0] != '/')
        c->location = real;
    const char *slash = memrchr(real.p, '/', real.n);
    c->folder = (Str){real.p, (size_t)(slash - real.p)};
    return true;
}

static bool catalog__open(Catalog *c, const SourceHost *host, Arena *a, Err *err)
{
    Buf text = buf_make(LIMIT_CATALOG + LIMIT_COPY_BLOCK);
    Str configured = utf8_trim(host->registry);

    c->location = configured.n ? arena_str(a, configured) : catalog__public;
    bool ok = catalog__read(c, host, a, &text, err);
    if (ok && !json_parse(buf_str(&text), a, &c->index, err)) {
        err->code = E8010;
        ok = false;
    }
    if (ok && c->index->type != JSON_OBJECT)
        ok = err_set(err, ERR_INPUT, E8010, "it is no JSON object");
    buf_free(&text);
    return ok || err_wrap(err, "the catalog %s", source_shown(c->location, a).p);
}

static bool catalog__find(const Catalog *c, Str id, Arena *a, CatalogRow *out, Err *err)
{
    const Json *rows = json_get(c->index, "providers");

    for (size_t i = 0; rows && rows->type == JSON_ARRAY && i < json_count(rows); i++) {
        const Json *row = json_at(rows, i);
        if (!str_eq(json_str(json_get(row, "id")), id) || json_str(json_get(row, "id")).p == NULL)
            continue;
        *out = (CatalogRow){id, json_str(json_get(row, "version")), json_str(json_get(row, "url")), json_str(json_get(row, "sha256"))};
        return true;
    }
    err_set(err, ERR_NOT_FOUND, E8001, "The catalog has no provider '%s'", clean_message(id, NULL, 0, a).p);
    return err_hint(err, "The catalog is %s.", source_shown(c->location, a).p);
}

/* --- what a row names ---------------------------------------------------------------- */

static bool catalog__is_url(Str s)
{
    return str_starts(s, STR("https://")) || str_starts(s, STR("http://"));
}

/* *at: a path on this machine, or (*local is false) a URL. */
static bool catalog__where(const Catalog *c, Str url, Arena *a, Str *at, bool *local, Err *err)
{
    Url base, whole;

    *local = !catalog__is_url(url) && (c->folder.p || str_starts(url, STR("file:")));
    *at = url;
    if (*local && !c->folder.p)
        return err_set(err, ERR_DENIED, E8002, "a catalog from the network cannot name a folder of this machine");
    if (*local && str_starts(url, STR("file:")))
        *at = str_from_to(url, 5, url.n);
    if (*local && at->n && at->p[0] != '/')
        *at = arena_fmt(a, "%.*s/%.*s", (int)c->folder.n, c->folder.p, STR_ARG(*at));
    if (*local || catalog__is_url(url))
        return true;
    if (!url_parse(c->location, a, &base, err) || !url_resolve(&base, url, a, &whole, err)) {
        err->code = E8002;
        return false;
    }
    *at = arena_fmt(a, "%.*s%s%.*s", STR_ARG(url_text(&whole, a)), whole.query.p ? "?" : "", STR_ARG(whole.query));
    return true;
}

static bool catalog__folder(Str at, const SourceRef *ref, Arena *a, SourceGot *out, Err *err)
{
    Str  path;
    bool there = !memchr(at.p, 0, at.n) && fs_type(arena_cstr(a, at)) == FS_FOLDER;

    if (!there)
        return err_set(err, ERR_INPUT, E8002, "%s is no folder; archives come over https",
                       clean_message(at, NULL, 0, a).p);
    if (ref->archive_sha256.n)
        return err_set(err, ERR_USAGE, E8010, "the catalog names a folder, and --archive-sha256 is for archives");
    if (!fs_real(arena_cstr(a, at), a, &path, err)) {
        err->code = E8010;
        return false;
    }
    if (ref->subdir.n)
        path = arena_fmt(a, "%s/%.*s", path.p, STR_ARG(ref->subdir));
    return treefs_read(path.p, &out->tree, err);
}

static bool catalog__archive(Str at, const CatalogRow *row, const SourceRef *ref, const SourceHost *host, SourceGot *out, Err *err)
{
    ArchiveAsk  ask = {.subdir = ref->subdir, .sha256 = row->sha256, .mismatch = E8002};
    FetchAsk get = {.url = at, .ms = LIMIT_CATALOG_MS, .all_ms = LIMIT_DOWNLOAD_MS, .most = LIMIT_ARCHIVE, .too_many = E8002};
    Fetch   *d;

    if (!str_starts(at, STR("https://")))
        return err_set(err, ERR_DENIED, E8002, "its archive does not come over https");
    if (row->sha256.n == 0)
        return err_set(err, ERR_INPUT, E8002, "the catalog has no `sha256` for its archive");
    if (ref->archive_sha256.n && !str_eq(ref->archive_sha256, row->sha256))
        return err_set(err, ERR_INPUT, E8011, "the catalog's archive is another than --archive-sha256 says");
    if (!fetch_open(&get, host, &d, err))
        return false;
    bool ok = fetch_status(d) == 200 || err_set(err, ERR_REMOTE, E8010, "the server of the archive answers with HTTP %d",
                                                   fetch_status(d));
    ok = ok && archive_read(fetch_source(d), &ask, &out->tree, err);
    fetch_close(d);
    return ok;
}

static bool catalog__materialise(const Catalog *c, const CatalogRow *row, const SourceRef *ref, const SourceHost *host, Arena *a,
                                 SourceGot *out, Err *err)
{
    Str  at;
    bool local;

    if (row->url.n == 0)
        return err_set(err, ERR_INPUT, E8002, "the catalog does not say where it is (`url`)");
    if (!catalog__where(c, row->url, a, &at, &local, err))
        return false;
    return local ? catalog__folder(at, ref, a, out, err) : catalog__archive(at, row, ref, host, out, err);
}

bool catalog_fetch(const SourceRef *ref, const SourceHost *host, Arena *a, SourceGot *out, Err *err)
{
    Catalog    c = {0};
    CatalogRow row = {0};

    if (!catalog__open(&c, host, a, err) || !catalog__find(&c, ref->location, a, &row, err))
        return false;
    if (!catalog__materialise(&c, &row, ref, host, a, out, err))
        return err_wrap(err, "registry:%s", clean_message(ref->location, NULL, 0, a).p);
    out->source = (ReceiptSource){.type = RECEIPT_CATALOG, .id = row.id, .registry = c.location, .archive_sha256 = row.sha256};
    out->catalog_id = row.id;
    out->row_version = row.version;
    return true;
}
