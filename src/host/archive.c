#include "host/archive.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "data/clean.h"
#include "host/manifest.h"
#include "host/receipt.h"
#include "host/unpack.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A tree's files twice, since some may turn out not to be the plugin's, each with a name of its own and one in the tree. */
enum { ARCHIVE__ROOM = 2 * (LIMIT_TREE_BYTES + LIMIT_TREE_FILES * (PATH_MAX + 64)) + LIMIT_TREE_PATHS + LIMIT_TREE_FILES * 64 };

/* --- what is in it --------------------------------------------------------------- */

typedef struct ArchiveEntry {
    Str  name;
    bool executable;
    bool link;
    bool aside;                 /* of a folder X/.git, where X may be the plugin */
    Str  bytes;
} ArchiveEntry;

typedef struct Archive {
    const ArchiveAsk *ask;
    Unpack       *from;
    Tree         *tree;         /* its arena holds names and contents */
    ArchiveEntry *v;
    size_t        n, cap;
    size_t        names;        /* entries of all kinds */
    size_t        files, aside_files;
    int64_t       total, aside_total;
    Str           aside_over;   /* the first of those that was not held */
    bool          manifest;     /* on top */
    Str           top;          /* the first folder on top */
    bool          several;
    Buf           name;         /* of the entry in hand */
} Archive;

static bool archive__refuse(Err *err, Str name, const char *why)
{
    ABX_UNSET char room[4096];
    Arena a = {.p = room, .size = sizeof room};
    Str   shown = clean_message(str_from_to(name, 0, name.n < 500 ? name.n : 500), NULL, 0, &a);

    return err_set(err, ERR_INPUT, E8010, "unsafe entry %.*s: %s", STR_ARG(shown), why);
}

/* Without what says nothing: "/./a//b/" is "a/b". */
static bool archive__name(Archive *x, Str raw, Err *err)
{
    Str rest = raw, part;

    buf_clear(&x->name);
    while (str_cut(&rest, '/', &part)) {
        if (str_eq(part, STR("..")))
            return archive__refuse(err, raw, "`..` in the path");
        if (part.n == 0 || str_eq(part, STR(".")))
            continue;
        if (x->name.n)
            buf_addc(&x->name, '/');
        buf_add(&x->name, part);
    }
    return !x->name.over || archive__refuse(err, raw, "the path is too long");
}

static Str archive__part(Str *rest)
{
    Str part = {0};

    if (!str_cut(rest, '/', &part))
        part.n = 0;
    return part;
}

/* *name lies in `folder`: take that off its front. */
static bool archive__in(Str *name, Str folder)
{
    if (folder.n == 0)
        return true;
    if (!str_starts(*name, folder) || name->n == folder.n || name->p[folder.n] != '/')
        return false;
    str_skip(name, folder.n + 1);
    return true;
}

/* In --subdir of the archive, or of a folder on its top. */
static bool archive__wanted(Str name, Str subdir)
{
    Str whole = name;

    archive__part(&name);
    return archive__in(&whole, subdir) || archive__in(&name, subdir);
}

static void archive__see_top(Archive *x, Str name, bool folder)
{
    size_t n = str_find(name, '/');
    Str    top = {name.p, n};

    if (n == name.n && !folder) {
        x->manifest |= str_eq(name, STR(MANIFEST_FILE));
    } else if (!x->top.p) {
        x->top = arena_str(&x->tree->own, top);
    } else if (!str_eq(x->top, top)) {
        x->several = true;
    }
}

/* Refuse what is too much. *hold: there is room for its content; only aside there may be none. */
static bool archive__fits(Archive *x, Str name, bool aside, int64_t size, bool *hold, Err *err)
{
    size_t  *files = aside ? &x->aside_files : &x->files;
    int64_t *total = aside ? &x->aside_total : &x->total;

    *hold = *files < LIMIT_TREE_FILES && size <= LIMIT_TREE_FILE && size <= LIMIT_TREE_BYTES - *total;
    if (*hold) {
        ++*files;
        *total += size;
    } else if (aside) {
        if (!x->aside_over.p)
            x->aside_over = arena_str(&x->tree->own, name);
    } else if (size > LIMIT_TREE_FILE) {
        return archive__refuse(err, name, "larger than 10 MiB");
    } else if (*files == LIMIT_TREE_FILES) {
        return err_set(err, ERR_LIMIT, E8010, "more than %d files", LIMIT_TREE_FILES);
    } else {
        return err_set(err, ERR_LIMIT, E8010, "more than 50 MiB in all files together");
    }
    return true;
}

static ArchiveEntry *archive__new(Archive *x, Str name)
{
    if (x->n == x->cap) {
        x->cap = x->cap ? 2 * x->cap : 64;
        x->v = mem_grow(x->v, x->cap, sizeof *x->v);
    }
    x->v[x->n] = (ArchiveEntry){.name = arena_str(&x->tree->own, name)};
    return &x->v[x->n++];
}

static bool archive__content(Archive *x, ArchiveEntry *e, int64_t size, Err *err)
{
    char  *to = arena_alloc(&x->tree->own, (size_t)size);
    size_t n;

    e->bytes = (Str){to, (size_t)size};
    for (int64_t left = size; left > 0; left -= (int64_t)n, to += n)
        if (!unpack_read(x->from, to, (size_t)left, &n, err))
            return false;
    return true;
}

static bool archive__entry(Archive *x, const TarEvent *ev, Err *err)
{
    bool link = ev->type == TAR_SYMLINK || ev->type == TAR_HARDLINK, hold = true;

    if (++x->names > LIMIT_ARCHIVE_NAMES)
        return err_set(err, ERR_LIMIT, E8010, "more than %d entries", LIMIT_ARCHIVE_NAMES);
    if (!archive__name(x, ev->name, err))
        return false;
    if (ev->type == TAR_SPECIAL)
        return archive__refuse(err, ev->name, "a device or a FIFO");
    Str name = buf_str(&x->name), rest = name, first = archive__part(&rest), second = archive__part(&rest);
    if (name.n == 0)
        return ev->type == TAR_FOLDER || archive__refuse(err, ev->name, "a file without a name");
    archive__see_top(x, name, ev->type == TAR_FOLDER);
    if (ev->type == TAR_FOLDER || str_eq(first, STR(".git")) || !archive__wanted(name, x->ask->subdir))
        return true;
    bool aside = str_eq(second, STR(".git"));
    if (!archive__fits(x, name, aside, ev->size, &hold, err))
        return false;
    if (!hold)
        return true;
    ArchiveEntry *e = archive__new(x, name);
    e->aside = aside;
    e->link = link;
    e->executable = ev->mode & 0100;
    return archive__content(x, e, ev->size, err);
}

/* --- what of it is the plugin ------------------------------------------------------ */

/* Does `name` belong to it? Then *name is what it is called there. */
static bool archive__mine(const Archive *x, Str root, Str *name, bool *found)
{
    Str rest;

    if (!archive__in(name, root) || !archive__in(name, x->ask->subdir))
        return false;
    *found = true;
    rest = *name;
    Str top = archive__part(&rest);
    return !str_eq(top, STR(".git")) && !str_eq(top, STR(RECEIPT_FILE));
}

static bool archive__take(Archive *x, Err *err)
{
    Str  root = x->manifest || x->several ? (Str){0} : x->top, over = x->aside_over;
    bool found = x->ask->subdir.n == 0;

    if (over.n && archive__mine(x, root, &over, &found))
        return err_set(err, ERR_LIMIT, E8010, "more than 50 MiB, or %d files, in its folders .git", LIMIT_TREE_FILES);
    for (size_t i = 0; i < x->n; i++) {
        const ArchiveEntry *e = &x->v[i];
        Str name = e->name;
        if (!archive__mine(x, root, &name, &found))
            continue;
        if (e->link)
            return archive__refuse(err, name, "a link");
        if (!tree_take(x->tree, name, e->executable, e->bytes, err))
            return false;
    }
    return found || archive__refuse(err, x->ask->subdir, "there is no such folder in the archive");
}

static bool archive__all(Archive *x, Err *err)
{
    ABX_UNSET TarEvent ev;
    Step     step;

    while ((step = unpack_next(x->from, &ev, err)) == STEP_DONE)
        if (!archive__entry(x, &ev, err))
            return false;
    return step != STEP_ERR && archive__take(x, err) && tree_seal(x->tree, err);
}

/* --- the bytes --------------------------------------------------------------------- */

typedef struct ArchiveHash { Source from; Sha256 sum; int64_t total; bool failed; } ArchiveHash;

static bool archive__hashed(void *ctx, char *p, size_t cap, size_t *n, Err *err)
{
    ArchiveHash *h = ctx;

    if (!h->from.read(h->from.ctx, p, cap, n, err)) {
        h->failed = true;
        return false;
    }
    sha256_add(&h->sum, (Str){p, *n});
    h->total += (int64_t)*n;
    return true;
}

/* Read what is left of the bytes: were they the right ones? What was wrong with
 * them is of no interest where they were not. */
static bool archive__digest(ArchiveHash *h, const ArchiveAsk *ask, char *block, Err *err)
{
    unsigned char sum[SHA256_SIZE];
    ABX_UNSET char hex[2 * SHA256_SIZE + 1];
    size_t        n = 1;

    while (n && h->total <= LIMIT_ARCHIVE_BYTES)
        if (!archive__hashed(h, block, LIMIT_COPY_BLOCK, &n, err))
            return false;
    sha256_end(&h->sum, sum);
    for (size_t i = 0; i < SHA256_SIZE; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    return str_eq(str_from(hex), ask->sha256) ||
           err_set(err, ERR_INPUT, ask->mismatch, "the archive has the SHA-256 %s, not %.*s", hex, STR_ARG(ask->sha256));
}

bool archive_read(Source bytes, const ArchiveAsk *ask, Tree *out, Err *err)
{
    ArchiveHash h = {.from = bytes, .sum = sha256_make()};
    Archive     x = {.ask = ask, .tree = out, .name = buf_make(PATH_MAX - 1)};
    Source      in = ask->sha256.n ? (Source){archive__hashed, &h, -1} : bytes;

    *out = (Tree){.own = arena_make(ARCHIVE__ROOM)};
    x.from = unpack_open(in);
    bool ok = archive__all(&x, err);
    unpack_close(x.from);
    if (ask->sha256.n && !h.failed) {
        char *block = mem_new(LIMIT_COPY_BLOCK);
        ok = archive__digest(&h, ask, block, err) && ok;
        mem_free(block);
    }
    mem_free(x.v);
    buf_free(&x.name);
    if (!ok)
        tree_free(out);
    return ok;
}

static bool archive__file_read(void *ctx, char *p, size_t cap, size_t *n, Err *err)
{
    const int *fd = ctx;
    ssize_t    got;

    do
        got = read(*fd, p, cap);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return err_sys(err, errno, E8010, "cannot read it");
    *n = (size_t)got;
    return true;
}

bool archive_file(const char *path, const ArchiveAsk *ask, Tree *out, Err *err)
{
    ABX_UNSET struct stat st;
    /* O_NONBLOCK so that a FIFO without a writer does not hold us up. */
    int  fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool ok;

    if (fd < 0 || fstat(fd, &st) != 0)
        ok = err_sys(err, errno, E8010, "cannot open it");
    else if (!S_ISREG(st.st_mode))
        ok = err_set(err, ERR_INPUT, E8010, "it is no regular file");
    else
        ok = archive_read((Source){archive__file_read, &fd, -1}, ask, out, err);
    if (fd >= 0)
        close(fd);
    return ok || err_wrap(err, "%s", path);
}
