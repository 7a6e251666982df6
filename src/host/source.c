#include "host/source.h"

#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/clean.h"
#include "host/archive.h"
#include "host/catalog.h"
#include "host/git.h"
#include "host/treefs.h"
#include "os/env.h"
#include "os/fs.h"

/* --- what may be shown --------------------------------------------------------- */

static bool source__in(char c, const char *set)
{
    return c && strchr(set, c);
}

/* Where the authority of "scheme://authority/..." stands; n 0: there is none. */
static Str source__authority(Str url)
{
    const char *at = memmem(url.p, url.n, "://", 3);

    if (!at)
        return (Str){0};
    str_skip(&url, (size_t)(at - url.p) + 3);
    size_t n = 0;
    while (n < url.n && !source__in(url.p[n], "/?#"))
        n++;
    return (Str){url.p, n};
}

static size_t source__last(Str s, char c)
{
    const char *at = s.n ? memrchr(s.p, c, s.n) : NULL;

    return at ? (size_t)(at - s.p) : s.n;
}

static bool source__is_scheme(Str url, Str scheme)
{
    return url.n > scheme.n && url.p[scheme.n] == ':' && str_eq_nocase((Str){url.p, scheme.n}, scheme);
}

/* A password with a slash in it ends the authority too early: what then stands
 * behind its colon is no port, and what is before the last "@" belongs to it. */
static Str source__user(Str url, Str authority)
{
    size_t colon = source__last(authority, ':'), at = source__last(authority, '@');

    if (at < authority.n)
        return (Str){authority.p, at};
    for (size_t i = colon + 1; i < authority.n; i++)
        if ((authority.p[i] < '0' || authority.p[i] > '9') && authority.p[0] != '[') {
            Str rest = {authority.p, (size_t)(url.p + url.n - authority.p)};
            at = source__last(rest, '@');
            return at < rest.n ? (Str){rest.p, at} : (Str){0};
        }
    return (Str){0};
}

Str source_shown(Str source, Arena *a)
{
    Str authority, user;

    source = clean_message(source, NULL, 0, a);
    authority = source__authority(source);
    if (authority.p) {
        user = source__user(source, authority);
        if (!user.n || (source__is_scheme(source, STR("ssh")) && !str_has(user, ':')))
            return source;
    } else {
        /* No URL, but the words of one: `user:password@host`. `user@host:path` is none of that. */
        size_t colon = str_find(source, ':'), at = source__last(source, '@');
        if (at == source.n || colon > at)
            return source;
        user = (Str){source.p, at};
    }
    return arena_fmt(a, "%.*s%.*s", (int)(user.p - source.p), source.p,
                     (int)(source.p + source.n - user.p - user.n - 1), user.p + user.n + 1);
}

/* --- short forms ---------------------------------------------------------------- */

static bool source__alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool source__word(Str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!source__alnum(s.p[i]) && !source__in(s.p[i], "_.-"))
            return false;
    return s.n > 0;
}

static Str source__slashes_off(Str s)
{
    while (s.n && s.p[0] == '/')
        str_skip(&s, 1);
    while (s.n && s.p[s.n - 1] == '/')
        s.n--;
    return s;
}

/* owner/repo[//subdir][@ref]. A word that is "." or ".." is a path's (row 17). */
static bool source__short(Str s, Arena *a, SourceRef *out)
{
    size_t at = source__last(s, '@');
    Str    ref = at < s.n ? str_from_to(s, at + 1, s.n) : (Str){0}, subdir = {0}, owner;

    s.n = at;
    const char *two = memmem(s.p, s.n, "//", 2);
    if (two) {
        subdir = source__slashes_off((Str){two, (size_t)(s.p + s.n - two)});
        s.n = (size_t)(two - s.p);
    }
    if (!str_cut(&s, '/', &owner) || !source__word(owner) || !source__word(s))
        return false;
    if (str_eq(owner, STR("..")) || str_eq(owner, STR(".")) || str_eq(s, STR("..")) || str_eq(s, STR(".")))
        return false;
    if (str_ends(s, STR(".git")))
        s.n -= 4;
    out->location = arena_fmt(a, "https://github.com/%.*s/%.*s.git", STR_ARG(owner), STR_ARG(s));
    out->ref = arena_str(a, ref);
    out->subdir = arena_str(a, subdir);
    return true;
}

static bool source__may_be_short(Str s)
{
    return s.n && !memmem(s.p, s.n, "://", 3) && !str_starts(s, STR("git@")) && !str_starts(s, STR("./")) &&
           s.p[0] != '/' && s.p[0] != '~' && !(s.n >= 3 && s.p[1] == ':');
}

/* What the short form says and what the options say must not differ. */
static bool source__merge(const SourceAsk *ask, Arena *a, SourceRef *out, Err *err)
{
    Str subdir = source__slashes_off(ask->subdir);

    if (ask->subdir.n && out->subdir.n && !str_eq(subdir, out->subdir))
        return err_set(err, ERR_USAGE, E8010, "The source names the folder '%s', and --subdir another",
                       clean_message(out->subdir, NULL, 0, a).p);
    if (ask->ref.n && out->ref.n && !str_eq(ask->ref, out->ref))
        return err_set(err, ERR_USAGE, E8010, "The source names the ref '%s', and --ref another",
                       clean_message(out->ref, NULL, 0, a).p);
    if (subdir.n)
        out->subdir = arena_str(a, subdir);
    if (ask->ref.n)
        out->ref = arena_str(a, ask->ref);
    return true;
}

/* --- refs ------------------------------------------------------------------------ */

static bool source__ref_part(Str part)
{
    return part.n && part.p[0] != '.' && !str_ends(part, STR(".lock"));
}

/* A name as git-check-ref-format has it, with one word or more. */
static bool source__ref_ok(Str ref)
{
    Str rest = ref, part;

    if (!utf8_valid(ref) || str_has_control(ref) || ref.p[0] == '-' || ref.p[ref.n - 1] == '.' || str_eq(ref, STR("@")))
        return false;
    for (size_t i = 0; i < ref.n; i++)
        if (source__in(ref.p[i], " ~^:?*[\\"))
            return false;
    if (memmem(ref.p, ref.n, "..", 2) || memmem(ref.p, ref.n, "@{", 2))
        return false;
    while (str_cut(&rest, '/', &part))
        if (!source__ref_part(part))
            return false;
    return true;
}

/* --- what it is ------------------------------------------------------------------ */

static bool source__refuse(Err *err, Code code, Str source, Arena *a, const char *why)
{
    return err_set(err, code == E8012 ? ERR_DENIED : ERR_USAGE, code, "'%s' %s", source_shown(source, a).p, why);
}

/* The scheme in front of a colon (RFC 3986, 3.1); n 0: there is none. */
static Str source__scheme(Str url)
{
    size_t n = str_find(url, ':');

    if (n == url.n || n == 0 || source__alnum(url.p[0]) == false || (url.p[0] >= '0' && url.p[0] <= '9'))
        return (Str){0};
    for (size_t i = 0; i < n; i++)
        if (!source__alnum(url.p[i]) && !source__in(url.p[i], "+-."))
            return (Str){0};
    return (Str){url.p, n};
}

/* user@host:path, and not a URL. */
static bool source__scp(Str s, Str *user, Str *host, Str *path)
{
    *path = s;
    return str_cut(path, '@', user) && source__word(*user) && str_cut(path, ':', host) && source__word(*host) && path->p &&
           path->n && !str_starts(*path, STR("//"));
}

static bool source__git_url(Str url, Str scheme, bool allow_insecure, Arena *a, Err *err)
{
    static const Str safe[] = {{"https", 5}, {"ssh", 3}}, insecure[] = {{"http", 4}, {"git", 3}, {"file", 4}};
    Str  authority = source__authority(url), user = source__user(url, authority);
    bool known = false, plain = false;

    for (size_t i = 0; i < COUNT_OF(safe); i++)
        known |= str_eq_nocase(scheme, safe[i]);
    for (size_t i = 0; i < COUNT_OF(insecure); i++)
        plain |= str_eq_nocase(scheme, insecure[i]);
    if (!known && !plain)
        return source__refuse(err, E8012, url, a, "is of a kind that plugins are not fetched from");
    if (plain && !allow_insecure) {
        source__refuse(err, E8012, url, a, "comes by a way on which it could be changed");
        return err_hint(err, "Use https or ssh, or allow it with --allow-insecure-transport.");
    }
    if (user.n || str_has(authority, '@')) {
        bool ssh = str_eq_nocase(scheme, STR("ssh"));
        if (!str_eq_nocase(scheme, STR("file")) && (!ssh || str_has(user, ':')))
            return source__refuse(err, E8012, url, a, "was given with credentials in it, which would be stored");
        str_skip(&authority, user.n + 1 < authority.n ? user.n + 1 : authority.n);
    }
    if ((user.n && user.p[0] == '-') || (authority.n && authority.p[0] == '-') || str_starts(url, STR("file:-")))
        return source__refuse(err, E8012, url, a, "has a part that a program could take for an option");
    return true;
}

/* Step C, where no such path exists. */
static bool source__classify(Str s, bool allow_insecure, Arena *a, SourceRef *out, Err *err)
{
    Str user, host, path, scheme;

    if (str_starts(s, STR("git+")))
        str_skip(&s, 4);
    if (s.n && s.p[0] == '-')
        return source__refuse(err, E8012, s, a, "begins with '-': a program could take it for an option");
    out->kind = SOURCE_GIT;
    out->location = arena_str(a, s);
    if (source__scp(s, &user, &host, &path)) {
        if (user.p[0] == '-' || host.p[0] == '-' || path.p[0] == '-')
            return source__refuse(err, E8012, s, a, "has a part that a program could take for an option");
    } else {
        scheme = source__scheme(s);
        if (!scheme.n) {
            source__refuse(err, E8010, s, a, "is no path that exists, and no source of another kind");
            return err_hint(err, "A source is a folder, a .tar or .tar.gz file, OWNER/REPO, a git URL or registry:ID.");
        }
        if (!source__git_url(s, scheme, allow_insecure, a, err))
            return false;
    }
    if (str_has_control(s) || !utf8_valid(s))
        return source__refuse(err, E8012, s, a, "has characters that do not belong there");
    return true;
}

/* --- paths ------------------------------------------------------------------------ */

/* "~" and "~/x" as the shell has it. */
static const char *source__expand(Str path, Arena *a)
{
    Str home;

    if (!path.n || memchr(path.p, 0, path.n))
        return "";
    if (path.p[0] == '~' && (path.n == 1 || path.p[1] == '/') && (home = env_home(a)).n)
        return arena_fmt(a, "%s%.*s", home.p, (int)path.n - 1, path.p + 1).p;
    return arena_cstr(a, path);
}

static bool source__local(const char *path, Arena *a, SourceRef *out, Err *err)
{
    Str shown = clean_message(str_from(path), NULL, 0, a);

    if (!fs_real(path, a, &out->location, err)) {
        err->code = E8010;
        return false;
    }
    out->kind = fs_type(path) == FS_FILE ? SOURCE_ARCHIVE : SOURCE_FOLDER;
    if (!utf8_valid(out->location))
        return err_set(err, ERR_USAGE, E8010, "'%.*s': the path is not UTF-8", STR_ARG(shown));
    if (out->ref.n) {
        err_set(err, ERR_USAGE, E8010, "'%.*s' is no git repository's URL, so it has no ref", STR_ARG(shown));
        return err_hint(err, "A commit of a local clone is installed with `file://%s --ref COMMIT --allow-insecure-transport`.",
                        clean_message(out->location, NULL, 0, a).p);
    }
    return true;
}

/* The path that a source names, or NULL: as it was given, else without the blanks around it. */
static const char *source__path(Str source, Str trimmed, Arena *a)
{
    const char *path = source__expand(source, a);

    if (fs_type(path) == FS_NOTHING)
        path = source__expand(trimmed, a);
    return fs_type(path) == FS_NOTHING ? NULL : path;
}

/* Steps B and C: everything but catalogs. */
static bool source__grammar(const SourceAsk *ask, Arena *a, SourceRef *out, Err *err)
{
    Str         s = utf8_trim(ask->source);
    const char *path = source__path(ask->source, s, a);
    bool        is_short = !path && source__may_be_short(s) && source__short(s, a, out);

    if (!source__merge(ask, a, out, err))
        return false;
    if (path)
        return source__local(path, a, out, err);
    if (s.n && s.p[0] == '-')
        return source__refuse(err, E8012, s, a, "begins with '-': a program could take it for an option");
    if (is_short)
        out->kind = SOURCE_GIT;
    else if (!source__classify(s, ask->allow_insecure, a, out, err))
        return false;
    if (out->ref.n && !source__ref_ok(out->ref))
        return err_set(err, ERR_USAGE, E8010, "'%s' is no name of a branch, tag or commit",
                       clean_message(out->ref, NULL, 0, a).p);
    return true;
}

static bool source__hex64(Str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!source__in(s.p[i], "0123456789abcdefABCDEF"))
            return false;
    return s.n == 64;
}

bool source_parse(const SourceAsk *ask, Arena *a, SourceRef *out, Err *err)
{
    static const Str prefix = {"registry:", 9};

    *out = (SourceRef){.allow_insecure = ask->allow_insecure, .allow_unverified = ask->allow_unverified};
    if (ask->source.n > LIMIT_SOURCE || ask->ref.n > LIMIT_SOURCE || ask->subdir.n > LIMIT_SOURCE)
        return err_set(err, ERR_LIMIT, E8010, "The source, its ref or its folder has more than %d bytes", LIMIT_SOURCE);
    if (ask->archive_sha256.p) {
        if (!source__hex64(ask->archive_sha256))
            return err_set(err, ERR_USAGE, E8002, "--archive-sha256 takes the 64 hexadecimal digits of a SHA-256");
        char *digits = arena_cstr(a, ask->archive_sha256);
        for (size_t i = 0; i < 64; i++)
            digits[i] |= 0x20;          /* the digits have it already */
        out->archive_sha256 = (Str){digits, 64};
    }
    if (str_starts(ask->source, prefix)) {
        out->kind = SOURCE_CATALOG;
        out->location = arena_str(a, utf8_trim(str_from_to(ask->source, prefix.n, ask->source.n)));
        if (!source__merge(ask, a, out, err))
            return false;
        return !out->ref.n || err_set(err, ERR_USAGE, E8010, "What comes from a catalog has no ref");
    }
    if (!source__grammar(ask, a, out, err))
        return false;
    if (out->archive_sha256.n && out->kind != SOURCE_ARCHIVE)
        return err_set(err, ERR_USAGE, E8010, "'%s' is no archive, which --archive-sha256 is for",
                       source_shown(ask->source, a).p);
    return true;
}

/* --- fetching ---------------------------------------------------------------------- */

static bool source__subdir_ok(Str subdir, Err *err)
{
    ABX_UNSET char room[LIMIT_SOURCE + 100];
    Arena a = {.p = room, .size = sizeof room};
    Str   rest = subdir, part;
    bool  ok = !str_has(subdir, '\\') && !str_has(subdir, '\0') && !str_starts(subdir, STR("-")) && utf8_valid(subdir);

    while (str_cut(&rest, '/', &part))
        ok = ok && !str_eq(part, STR(".."));
    return ok || err_set(err, ERR_USAGE, E8010, "'%s' is no path of a folder in a source",
                         clean_message(subdir, NULL, 0, &a).p);
}

static bool source__folder(const SourceRef *ref, Arena *a, SourceGot *out, Err *err)
{
    Str at = ref->location;

    if (ref->subdir.n)
        at = arena_fmt(a, "%.*s/%.*s", (int)at.n, at.p, (int)ref->subdir.n, ref->subdir.p);
    out->source = (ReceiptSource){.type = RECEIPT_LOCAL, .path = at};
    return treefs_read(at.p, &out->tree, err);
}

static bool source__archive(const SourceRef *ref, SourceGot *out, Err *err)
{
    ArchiveAsk ask = {.subdir = ref->subdir, .sha256 = ref->archive_sha256, .mismatch = E8011};

    out->source = (ReceiptSource){.type = RECEIPT_LOCAL, .path = ref->location};
    return archive_file(ref->location.p, &ask, &out->tree, err);
}

static bool source__git(const SourceRef *ref, const SourceHost *host, Arena *a, SourceGot *out, Err *err)
{
    GitGot got;

    if (!git_fetch(ref, host, a, &got, err))
        return false;
    out->tree = got.tree;
    out->pinned = got.pinned && got.proved;
    out->source = (ReceiptSource){.type = RECEIPT_GIT, .url = source_shown(ref->location, a),
                                  .ref = ref->ref.n ? ref->ref : STR("HEAD"), .commit = got.commit, .subdir = ref->subdir};
    return true;
}

bool source_fetch(const SourceRef *ref, const SourceHost *host, Arena *a, SourceGot *out, Err *err)
{
    *out = (SourceGot){0};
    if (!source__subdir_ok(ref->subdir, err))
        return false;
    switch (ref->kind) {
    case SOURCE_FOLDER:
        return source__folder(ref, a, out, err);
    case SOURCE_ARCHIVE:
        return source__archive(ref, out, err);
    case SOURCE_GIT:
        return source__git(ref, host, a, out, err);
    case SOURCE_CATALOG:
        return catalog_fetch(ref, host, a, out, err);
    }
    BUG("a source of no kind");
}
