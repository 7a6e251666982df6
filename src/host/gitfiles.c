#include "host/gitfiles.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/clean.h"
#include <stdlib.h>

/* --- objects of the pack ---------------------------------------------------------- */

/* The content of an object, to be freed: of this type, at most so large, and
 * with this id in truth. */
static bool gitfiles__object(const GitFiles *f, Pack *pack, const ObjectId *id, ObjectType type, size_t most, char **p, Str *out,
                             Err *err)
{
    const PackObject *o = pack_find(pack, id);
    ABX_UNSET char hex[OBJECT_HEX];
    ObjectId          is;

    object_id_hex(f->hash, id, hex);
    *p = NULL;
    if (!o)
        return err_set(err, ERR_INPUT, E8010, "the git server did not send %s %s", object_type_name(type), hex);
    if (o->type != type)
        return err_set(err, ERR_INPUT, E8010, "%s is no %s, but a %s", hex, object_type_name(type),
                       object_type_name((ObjectType)o->type));
    if (o->size > most)
        return err_set(err, ERR_LIMIT, E8010, "%s %s has more than %zu bytes", object_type_name(type), hex, most);
    *p = mem_new(o->size);
    *out = (Str){*p, o->size};
    if (!pack_read(pack, o, *p, err))
        return false;
    object_id_of(f->hash, type, *out, &is);
    return object_id_cmp(&is, id) == 0 || err_set(err, ERR_INPUT, E8010, "%s %s is damaged", object_type_name(type), hex);
}

/* --- trees ------------------------------------------------------------------------ */

typedef struct GitFolder GitFolder;
struct GitFolder {
    GitFolder *next;
    Str        path;        /* with a slash at its end, or empty */
    ObjectId   id;
};

static bool gitfiles__unsafe(Str path, const char *what, Err *err)
{
    Arena scratch = arena_make(8 << 10);

    err_set(err, ERR_DENIED, E8010, "unsafe entry %s: %s", clean_path(path, &scratch).p, what);
    arena_free(&scratch);
    return false;
}

static bool gitfiles__file(GitFiles *f, Str path, const ObjectEntry *e, Err *err)
{
    if (f->n == LIMIT_TREE_FILES)
        return err_set(err, ERR_LIMIT, E8010, "more than %d files", LIMIT_TREE_FILES);
    if (!tree_path(path, err))
        return false;
    f->v[f->n++] = (GitFile){.path = path, .executable = e->mode == OBJECT_MODE_PROGRAM, .id = e->id};
    return true;
}

/* An entry of a folder: a file for the list, or a folder to be read. */
static bool gitfiles__entry(GitFiles *f, const GitFolder *in, const ObjectEntry *e, GitFolder **todo, Arena *a, Err *err)
{
    Str path;

    if (in->path.n + e->name.n > LIMIT_GIT_PATH)
        return gitfiles__unsafe(in->path, "a path that is too long", err);
    path = arena_fmt(a, "%.*s%.*s%s", (int)in->path.n, in->path.p, (int)e->name.n, e->name.p,
                     e->mode == OBJECT_MODE_TREE ? "/" : "");
    switch (e->mode) {
    case OBJECT_MODE_FILE:
    case OBJECT_MODE_PROGRAM:
        return gitfiles__file(f, path, e, err);
    case OBJECT_MODE_TREE:
        if (++f->folders > LIMIT_GIT_FOLDERS)
            return err_set(err, ERR_LIMIT, E8010, "more than %d folders", LIMIT_GIT_FOLDERS);
        GitFolder *next = arena_new(a, GitFolder);
        *next = (GitFolder){*todo, path, e->id};
        *todo = next;
        return true;
    case 0120000:
        return gitfiles__unsafe(path, "a symbolic link", err);
    case 0160000:
        return gitfiles__unsafe(path, "a submodule", err);
    default:
        return gitfiles__unsafe(path, "neither a file nor a folder", err);
    }
}

static bool gitfiles__folder(GitFiles *f, Pack *pack, const GitFolder *in, GitFolder **todo, Arena *a, Err *err)
{
    ObjectEntry e;
    Arena       scratch;
    Step        step = STEP_ERR;
    char       *p;
    Str         text;
    bool        ok = gitfiles__object(f, pack, &in->id, OBJECT_TREE, LIMIT_GIT_TREE, &p, &text, err);

    if (ok) {
        ObjectTree t = object_tree(f->hash, text);
        while (ok && (step = object_tree_next(&t, &e, err)) == STEP_DONE)
            ok = gitfiles__entry(f, in, &e, todo, a, err);
    }
    mem_free(p);
    if (ok && step == STEP_ERR && in->path.n) {
        scratch = arena_make(8 << 10);
        err_wrap(err, "%s", clean_path(in->path, &scratch).p);
        arena_free(&scratch);
    }
    return ok && step == STEP_MORE;
}

/* The tree of a folder below another one. */
static bool gitfiles__enter(GitFiles *f, Pack *pack, Str name, ObjectId *id, Err *err)
{
    ObjectEntry e;
    Step        step = STEP_ERR;
    char       *p;
    Str         text;
    bool        found = false;

    if (gitfiles__object(f, pack, id, OBJECT_TREE, LIMIT_GIT_TREE, &p, &text, err)) {
        ObjectTree t = object_tree(f->hash, text);
        while (!found && (step = object_tree_next(&t, &e, err)) == STEP_DONE)
            found = str_eq(e.name, name) && e.mode == OBJECT_MODE_TREE;
    }
    mem_free(p);
    if (found)
        *id = e.id;
    else if (step == STEP_MORE) {
        Arena scratch = arena_make(8 << 10);
        err_set(err, ERR_NOT_FOUND, E8010, "the commit has no folder '%s'", clean_path(f->subdir, &scratch).p);
        arena_free(&scratch);
    }
    return found;
}

static int gitfiles__by_path(const void *a, const void *b)
{
    Str    x = ((const GitFile *)a)->path, y = ((const GitFile *)b)->path;
    size_t n = x.n < y.n ? x.n : y.n;
    int    c = memcmp(x.p, y.p, n);

    return c ? c : (x.n > y.n) - (x.n < y.n);
}

bool gitfiles_list(GitFiles *f, Pack *pack, const ObjectId *commit, Str subdir, Arena *a, Err *err)
{
    GitFolder *todo = arena_new(a, GitFolder);
    Str        text, part;
    char      *p;
    bool       ok;

    f->v = arena_array(a, LIMIT_TREE_FILES, sizeof *f->v);
    f->n = 0;
    f->folders = 1;
    f->subdir = subdir;
    ok = gitfiles__object(f, pack, commit, OBJECT_COMMIT, LIMIT_GIT_TREE, &p, &text, err) &&
         object_commit_tree(f->hash, text, &todo->id, err);
    mem_free(p);
    if (!subdir.n)
        subdir.p = NULL;
    while (ok && str_cut(&subdir, '/', &part))
        ok = gitfiles__enter(f, pack, part, &todo->id, err);
    while (ok && todo) {
        GitFolder *now = todo;
        todo = now->next;
        ok = gitfiles__folder(f, pack, now, &todo, a, err);
    }
    if (ok && f->n)
        qsort(f->v, f->n, sizeof *f->v, gitfiles__by_path);
    return ok;
}

size_t gitfiles_missing(const GitFiles *f, size_t i)
{
    while (i < f->n && f->v[i].there)
        i++;
    return i;
}

/* --- contents ---------------------------------------------------------------------- */

bool gitfiles_from_pack(GitFiles *f, Pack *pack, Tree *to, Err *err)
{
    for (size_t i = 0; (i = gitfiles_missing(f, i)) < f->n; i++) {
        GitFile          *file = &f->v[i];
        const PackObject *o = pack_find(pack, &file->id);
        ObjectId          is;
        char             *p = NULL;
        if (!o || o->type != OBJECT_BLOB)
            continue;
        if (!tree_add(to, file->path, file->executable, o->size, &p, err) || !pack_read(pack, o, p, err))
            return false;
        object_id_of(f->hash, OBJECT_BLOB, (Str){p, o->size}, &is);
        if (object_id_cmp(&is, &file->id) != 0)
            return err_set(err, ERR_INPUT, E8010, "a file of the git pack is damaged");
        file->there = true;
    }
    return true;
}

typedef struct GitArchive {
    GitFiles *files;
    Tree     *to;
    bool      any;
    size_t    differ;
} GitArchive;

/* A file of the archive, as a path in the plugin; NULL: it does not belong there. */
static GitFile *gitfiles__wanted(GitFiles *f, Str path)
{
    GitFile key = {.path = path};

    if (f->subdir.n) {
        if (!str_starts(path, f->subdir) || path.n <= f->subdir.n || path.p[f->subdir.n] != '/')
            return NULL;
        str_skip(&key.path, f->subdir.n + 1);
    }
    return f->n ? bsearch(&key, f->v, f->n, sizeof *f->v, gitfiles__by_path) : NULL;
}

static bool gitfiles__fill(Source *content, char *p, int64_t size, Err *err)
{
    while (size > 0) {
        size_t n;
        if (!content->read(content->ctx, p, (size_t)size, &n, err))
            return false;
        if (n == 0)
            return err_set(err, ERR_INPUT, E8010, "a file of the archive is cut off");
        p += n;
        size -= (int64_t)n;
    }
    return true;
}

static bool gitfiles__each(void *ctx, const ForgeFile *file, Source *content, Err *err)
{
    GitArchive *g = ctx;
    GitFile    *f = gitfiles__wanted(g->files, file->path);
    size_t      used = g->to->own.used;
    ObjectId    is;

    /* What does not fit is not the commit's, or is refused when that comes. */
    if (!f || f->there || file->size > LIMIT_TREE_FILE || file->size > LIMIT_TREE_BYTES - g->to->total)
        return true;
    char *p = arena_alloc(&g->to->own, (size_t)file->size);
    if (!gitfiles__fill(content, p, file->size, err))
        return false;
    object_id_of(g->files->hash, OBJECT_BLOB, (Str){p, (size_t)file->size}, &is);
    bool same = object_id_cmp(&is, &f->id) == 0;
    g->differ += !same;
    f->there = same || g->any;
    if (f->there)
        return tree_take(g->to, f->path, f->executable, (Str){p, (size_t)file->size}, err);
    g->to->own.used = used;
    return true;
}

bool gitfiles_from_archive(GitFiles *f, Str address, Str other, const SourceHost *host, bool any, Tree *to, size_t *differ,
                           Err *err)
{
    GitArchive g = {f, to, any, 0};
    bool       missing = false;
    bool       ok = forge_fetch(address, other, host, gitfiles__each, &g, &missing, err);

    *differ = g.differ;
    return ok;
}
