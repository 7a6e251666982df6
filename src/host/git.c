#include "host/git.h"

#include "base/limits.h"
#include "base/str.h"
#include "data/clean.h"
#include "host/forge.h"
#include "host/gitfiles.h"
#include "host/gitlink.h"
#include "host/gittalk.h"
#include "host/spool.h"

enum { GIT_REF_MOST = 512 };

typedef struct Git {
    const SourceRef  *ref;
    const SourceHost *host;
    GitTalk   talk;
    bool      talking;
    Arena     a;
    Spool     spool;            /* the latest pack's */
    Pack     *pack;
    ObjectId  want, commit;
    bool      by_id;            /* the ref is an id */
    bool      proved;
    Str       subdir;
    GitFiles  files;
} Git;

/* --- the ref -------------------------------------------------------------------------- */

/* What could be taken for an option, or would end a packet's line. What else no
 * ref may be is refused where the source is read. */
static bool git__ref(Str ref, Err *err)
{
    Arena scratch;
    bool  bad = ref.n > GIT_REF_MOST || str_has_control(ref) || str_has(ref, ' ') || (ref.n && ref.p[0] == '-');

    if (!bad)
        return true;
    scratch = arena_make(8 << 10);
    ref.n = ref.n < GIT_REF_MOST ? ref.n : GIT_REF_MOST;
    err_set(err, ERR_USAGE, E8010, "'%s' is no name of a branch, tag or commit",
            clean_message(ref, NULL, 0, &scratch).p);
    arena_free(&scratch);
    return false;
}

/* The rule for --subdir (3.3), without the slashes at its ends. */
static bool git__subdir(Str *subdir, Err *err)
{
    Str rest, part;

    while (subdir->n && subdir->p[0] == '/')
        str_skip(subdir, 1);
    while (subdir->n && subdir->p[subdir->n - 1] == '/')
        subdir->n--;
    bool bad = str_has(*subdir, '\\') || str_has(*subdir, '\0') || (subdir->n && subdir->p[0] == '-');
    rest = subdir->n ? *subdir : (Str){0};
    while (str_cut(&rest, '/', &part))
        bad = bad || part.n == 0 || str_eq(part, STR("..")) || str_eq(part, STR("."));
    return !bad || err_set(err, ERR_USAGE, E8010, "--subdir is no folder's path");
}

/* A pin is written as ids are: in lower case. */
static bool git__is_pin(Str ref)
{
    for (size_t i = 0; i < ref.n; i++)
        if (ref.p[i] >= 'A' && ref.p[i] <= 'F')
            return false;
    return true;
}

/* Connect, and find what the ref points to: an id is wanted as it is, and asked for by nobody. */
static bool git__begin(Git *g, Err *err)
{
    GitLink *link;
    GitTip   tip = {0};
    Str      name = g->ref->ref.n ? g->ref->ref : STR("HEAD");

    g->subdir = g->ref->subdir;
    if (!git__ref(name, err) || !git__subdir(&g->subdir, err) || !gitlink_open(g->ref->location, g->host, &link, err) ||
        !gittalk_begin(&g->talk, link, name, err))
        return false;
    g->talking = true;
    g->by_id = object_id_read(g->talk.hash, name, &g->want);
    g->commit = g->want;
    if (g->by_id)
        return true;
    if (!gittalk_find(&g->talk, &tip, err))
        return false;
    g->commit = tip.peeled ? tip.commit : tip.id;
    /* Before version 2, only what a ref points to may be wanted: the tag itself. */
    g->want = g->talk.version == 2 ? g->commit : tip.id;
    return true;
}

static void git__end(Git *g)
{
    if (g->talking)
        gittalk_end(&g->talk);
    pack_free(g->pack);
    spool_free(&g->spool);
    arena_free(&g->a);
}

/* --- packs ---------------------------------------------------------------------------- */

static bool git__spool_write(void *ctx, Str bytes, Err *err)
{
    return spool_add(ctx, bytes, err);
}

static bool git__spool_get(void *ctx, uint64_t at, char *p, size_t n, Err *err)
{
    return spool_get(ctx, at, p, n, err);
}

static const char *git__temp(const SourceHost *host)
{
    for (const char *const *e = host->environ; e && *e; e++)
        if (strncmp(*e, "TMPDIR=/", 8) == 0)
            return *e + 7;
    return "/tmp";
}

static bool git__fetch(Git *g, const GitWant *want, uint64_t bytes, uint64_t inflated, Err *err)
{
    pack_free(g->pack);
    spool_free(&g->spool);
    g->spool = spool_make(LIMIT_GIT_SPOOL, git__temp(g->host));
    g->pack = pack_open(g->talk.hash, &(PackStore){{git__spool_write, &g->spool}, git__spool_get}, bytes, inflated);
    return gittalk_fetch(&g->talk, want, g->pack, err);
}

/* --- the commit ------------------------------------------------------------------------ */

/* The commit is in the pack, and is one. A tag's name may lead to it by way of tags. */
static bool git__commit(Git *g, Err *err)
{
    ABX_UNSET char hex[OBJECT_HEX];

    for (int depth = 0; depth < LIMIT_GIT_TAGS; depth++) {
        const PackObject *o = pack_find(g->pack, &g->commit);
        ObjectType        type;
        ObjectId          target;
        object_id_hex(g->talk.hash, &g->commit, hex);
        if (!o)
            return err_set(err, ERR_INPUT, E8010, "the git server sent another commit than %s", hex);
        if (o->type == OBJECT_COMMIT)
            return true;
        if (o->type != OBJECT_TAG || g->by_id || o->size > LIMIT_PACK_OBJECT) {
            err_set(err, ERR_USAGE, E8010, "%s is no commit, but a %s", hex, object_type_name((ObjectType)o->type));
            return o->type == OBJECT_TAG ? err_hint(err, "Pin the commit that the tag points to.") : false;
        }
        Arena scratch = arena_make(o->size + 64);
        char *text = arena_alloc(&scratch, o->size);
        bool  ok = pack_read(g->pack, o, text, err) &&
                  object_tag_target(g->talk.hash, (Str){text, o->size}, &target, &type, err);
        arena_free(&scratch);
        if (!ok)
            return false;
        g->commit = target;
    }
    return err_set(err, ERR_LIMIT, E8010, "more than %d tags of tags", LIMIT_GIT_TAGS);
}

/* --- contents --------------------------------------------------------------------------- */

/* The forge's archive is worth it where most of the repository is wanted; for a
 * small folder of a large one its files are asked for by themselves. */
static bool git__wants_archive(const Git *g)
{
    return g->subdir.n == 0 || 2 * g->files.folders >= pack_count(g->pack);
}

static bool git__archive(Git *g, bool any, Tree *to, size_t *differ, Err *err)
{
    ABX_UNSET char hex[OBJECT_HEX];
    Str  address, other = {0};

    *differ = 0;
    object_id_hex(g->talk.hash, &g->commit, hex);
    address = forge_archive(g->ref->location, str_from(hex), &g->a, &other);
    return !address.n || gitfiles_from_archive(&g->files, address, other, g->host, any, to, differ, err);
}

/* All that is not there yet, by its id. */
static bool git__missing(Git *g, Tree *to, Err *err)
{
    ObjectId *ids = arena_array(&g->a, g->files.n, sizeof *ids);
    size_t    n = 0;

    for (size_t i = 0; (i = gitfiles_missing(&g->files, i)) < g->files.n; i++)
        ids[n++] = g->files.v[i].id;
    return git__fetch(g, &(GitWant){.ids = ids, .n = n}, LIMIT_GIT_BLOBS, LIMIT_GIT_SMALL, err) &&
           gitfiles_from_pack(&g->files, g->pack, to, err);
}

static bool git__lacks(const Git *g, Err *err)
{
    size_t i = gitfiles_missing(&g->files, 0);
    Arena  scratch;

    if (i == g->files.n)
        return true;
    scratch = arena_make(8 << 10);
    Str path = g->files.v[i].path;
    path.n = path.n < 500 ? path.n : 500;
    err_set(err, ERR_INPUT, E8010, "the git server did not send the file %s", clean_message(path, NULL, 0, &scratch).p);
    arena_free(&scratch);
    return false;
}

/* The commit and its trees came alone: most files from the forge's archive,
 * which is believed in nothing, the others by their ids. */
static bool git__by_parts(Git *g, Tree *to, Err *err)
{
    size_t differ = 0;
    ABX_UNSET Err why;

    /* An archive that fails proves nothing, and costs nothing but time. */
    if (git__wants_archive(g) && !git__archive(g, false, to, &differ, &why) && why.kind == ERR_CANCELLED) {
        *err = why;
        return false;
    }
    if (gitfiles_missing(&g->files, 0) == g->files.n || (git__missing(g, to, err) && git__lacks(g, err)))
        return true;
    if (!differ || err->kind == ERR_CANCELLED)
        return false;
    /* The server does not give what the archive has otherwise. */
    why = *err;
    if (!g->ref->allow_unverified) {
        err_set(err, ERR_DENIED, E8012, "%zu of the files in the archive are not as in the commit, and the server does not give "
                "those: %s", differ, why.text);
        return err_hint(err, "--allow-unverified takes them as they come; then the plugin is not pinned.");
    }
    g->proved = false;
    if (!git__archive(g, true, to, &differ, err))
        return false;
    if (!git__lacks(g, &why) && g->host->notice)
        g->host->notice(g->host->notice_ctx, STR("the archive lacks files of the commit; the plugin is installed without them"));
    return true;
}

static bool git__tree(Git *g, Tree *to, Err *err)
{
    GitWant want = {.ids = &g->want, .n = 1, .history = true, .no_blobs = g->talk.version == 2 && g->talk.filter};

    if (!git__fetch(g, &want, want.no_blobs ? LIMIT_GIT_TREES : LIMIT_GIT_FULL,
                    want.no_blobs ? LIMIT_GIT_SMALL : LIMIT_GIT_INFLATED, err))
        return false;
    g->files.hash = g->talk.hash;
    if (!git__commit(g, err) || !gitfiles_list(&g->files, g->pack, &g->commit, g->subdir, &g->a, err))
        return false;
    if (want.no_blobs)
        return git__by_parts(g, to, err);
    return gitfiles_from_pack(&g->files, g->pack, to, err) && git__lacks(g, err);
}

bool git_fetch(const SourceRef *ref, const SourceHost *host, Arena *a, GitGot *out, Err *err)
{
    Git  g = {.ref = ref, .host = host, .a = arena_make(LIMIT_GIT_ARENA), .spool = spool_make(0, "/"), .proved = true};
    Tree tree = tree_make();
    ABX_UNSET char hex[OBJECT_HEX];
    bool ok = git__begin(&g, err) && git__tree(&g, &tree, err) && tree_seal(&tree, err);

    if (ok) {
        object_id_hex(g.talk.hash, &g.commit, hex);
        *out = (GitGot){.tree = tree, .commit = arena_str(a, str_from(hex)), .proved = g.proved,
                        .pinned = g.by_id && git__is_pin(ref->ref)};
    } else {
        tree_free(&tree);
    }
    git__end(&g);
    return ok;
}
