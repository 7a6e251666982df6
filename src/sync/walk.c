#include "sync/walk.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/glob.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    WALK_NAME = 1024,           /* FUSE has the longest */
    WALK_DENTS = 32768,
    WALK_PROC = 0x9fa0, WALK_SYS = 0x62656572,      /* *_MAGIC of <linux/magic.h> */
};

/* An open folder. Its names are the last ones of those that the walk holds. */
typedef struct WalkLevel {
    int    fd;
    dev_t  dev;
    size_t path;                /* how long its path is */
    size_t text, names, next;   /* where its names begin, and the one that is next */
} WalkLevel;

struct Walk {
    const WalkRoot *roots;
    size_t    count, root;      /* the root that is next */
    bool      unopened;
    int       file;             /* open; -1 */
    Buf       path, text;       /* of the entry in hand; of each name its d_type, itself, and a NUL */
    uint32_t *names;            /* where in the text they are */
    size_t    names_n, names_cap, depth;
    WalkLevel levels[LIMIT_SYNC_DEPTH];
    char      target[PATH_MAX + 1];
    _Alignas(8) char dents[WALK_DENTS];
};

/* What the kernel writes; the libraries' struct has room for 255 bytes alone. */
typedef struct WalkDent {
    uint64_t       ino;
    int64_t        off;
    unsigned short reclen;
    unsigned char  type;
    char           name[];
} WalkDent;

Walk *walk_open(const WalkRoot *roots, size_t n)
{
    Walk *w = mem_new(sizeof *w);

    w->roots = roots;
    w->count = n;
    w->file = -1;
    w->path = buf_make(LIMIT_SYNC_PATH);
    w->text = buf_make(LIMIT_SYNC_NAMES);
    return w;
}

void walk_unopened(Walk *w)
{
    w->unopened = true;
}

static void walk__leave(Walk *w)
{
    const WalkLevel *l = &w->levels[--w->depth];

    close(l->fd);
    w->text.n = l->text;
    w->names_n = l->names;
}

void walk_close(Walk *w)
{
    if (!w)
        return;
    while (w->depth)
        walk__leave(w);
    if (w->file >= 0)
        close(w->file);
    buf_free(&w->path);
    buf_free(&w->text);
    mem_free(w->names);
    mem_free(w);
}

void walk_skip(Walk *w)
{
    walk__leave(w);
}

/* --- the names in a folder ------------------------------------------------------- */

static int walk__order(const void *a, const void *b, void *text)
{
    return strcmp((const char *)text + *(const uint32_t *)a, (const char *)text + *(const uint32_t *)b);
}

/* False: errno. */
static bool walk__name(Walk *w, const WalkDent *d)
{
    Str name = str_from(d->name);

    if (str_eq(name, STR(".")) || str_eq(name, STR("..")))
        return true;
    if (name.n > WALK_NAME) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (w->names_n == w->names_cap) {
        w->names_cap = w->names_cap ? 2 * w->names_cap : 64;
        w->names = mem_grow(w->names, w->names_cap, sizeof *w->names);
    }
    buf_addc(&w->text, (char)d->type);
    w->names[w->names_n++] = (uint32_t)w->text.n;
    buf_add(&w->text, (Str){name.p, name.n + 1});
    if (w->text.over)
        errno = EFBIG;
    return !w->text.over;
}

/* What the kernel tells there has no end (/proc/kcore is 128 TiB), and is no part of a tree. */
static bool walk__is_kernel(const Walk *w, const WalkLevel *l)
{
    struct statfs fs;

    return w->depth && w->levels[w->depth - 1].dev != l->dev && fstatfs(l->fd, &fs) == 0 &&
           (fs.f_type == WALK_PROC || fs.f_type == WALK_SYS);
}

/* The folder becomes the last level, and its names are there; or errno. */
static bool walk__enter(Walk *w, int fd, dev_t dev)
{
    WalkLevel l = {.fd = fd, .dev = dev, .path = w->path.n, .text = w->text.n, .names = w->names_n, .next = w->names_n};
    long      n, at;
    int       sys = w->depth == LIMIT_SYNC_DEPTH ? ELOOP : w->path.n + 1 + WALK_NAME > LIMIT_SYNC_PATH ? ENAMETOOLONG :
                    walk__is_kernel(w, &l) ? EXDEV : 0;

    while (!sys && (n = syscall(SYS_getdents64, fd, w->dents, sizeof w->dents)) != 0) {
        for (at = 0; at < n && !sys; at += ((const WalkDent *)(const void *)(w->dents + at))->reclen)
            sys = walk__name(w, (const WalkDent *)(const void *)(w->dents + at)) ? 0 : errno;
        if (n < 0)
            sys = errno;
    }
    if (sys) {
        w->text.n = l.text;
        w->text.over = false;
        w->names_n = l.names;
        errno = sys;
        return false;
    }
    if (w->names_n - l.names > 1)
        qsort_r(w->names + l.names, w->names_n - l.names, sizeof *w->names, walk__order, w->text.p);
    w->levels[w->depth++] = l;
    return true;
}

/* --- entries ------------------------------------------------------------------------ */

static bool walk__failed(const Walk *w, WalkEntry *e, int sys)
{
    *e = (WalkEntry){.kind = WALK_FAILED, .path = buf_str(&w->path), .fd = -1, .sys = sys};
    return true;
}

static bool walk__link(Walk *w, int at, const char *name, WalkEntry *e)
{
    ssize_t n = readlinkat(at, name, w->target, sizeof w->target);

    if (n < 0 || n == (ssize_t)sizeof w->target)
        return walk__failed(w, e, n < 0 ? errno : ENAMETOOLONG);
    *e = (WalkEntry){.kind = WALK_LINK, .path = buf_str(&w->path), .fd = -1, .mode = 0777, .target = {w->target, (size_t)n}};
    return true;
}

int64_t walk_changed(const struct stat *st)
{
    return (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
}

/* What st says of a regular file or a folder; fd is the folder's, or the file's if it was opened. */
static bool walk__give(Walk *w, int fd, const struct stat *st, WalkEntry *e)
{
    *e = (WalkEntry){.kind = S_ISDIR(st->st_mode) ? WALK_FOLDER : WALK_FILE, .path = buf_str(&w->path), .fd = -1,
                     .mode = st->st_mode & 0777};
    if (e->kind == WALK_FOLDER) {
        if (walk__enter(w, fd, st->st_dev))
            return true;
        int sys = errno;
        close(fd);
        return walk__failed(w, e, sys);
    }
    e->fd = w->file = fd;
    e->size = st->st_size;
    e->changed = walk_changed(st);
    e->sparse = e->size - (int64_t)st->st_blocks * 512 >= 4096;
    return true;
}

/* `type` is of d_type; what is no file and no folder is not even opened. `flags`:
 * O_NOFOLLOW, but for a root. */
static bool walk__look(Walk *w, int at, const char *name, unsigned char type, int flags, WalkEntry *e)
{
    ABX_UNSET struct stat st;
    int         fd;

    if (type == DT_UNKNOWN || (w->unopened && type == DT_REG)) {
        if (fstatat(at, name, &st, flags ? AT_SYMLINK_NOFOLLOW : 0) != 0)
            return walk__failed(w, e, errno);
        type = (unsigned char)IFTODT(st.st_mode);
    }
    if (type == DT_LNK)
        return walk__link(w, at, name, e);
    if (type != DT_REG && type != DT_DIR)
        return walk__failed(w, e, EOPNOTSUPP);
    if (w->unopened && type == DT_REG)
        return walk__give(w, -1, &st, e);
    do
        fd = openat(at, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
    while (fd < 0 && errno == EINTR);
    if (fd < 0 && errno == ELOOP && flags)              /* it has become a link */
        return walk__link(w, at, name, e);
    if (fd < 0)
        return walk__failed(w, e, errno);
    int sys = fstat(fd, &st) != 0 ? errno : S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) ? 0 : EOPNOTSUPP;
    if (!sys)
        return walk__give(w, fd, &st, e);
    close(fd);
    return walk__failed(w, e, sys);
}

static bool walk__root(Walk *w, WalkEntry *e)
{
    const WalkRoot *r = &w->roots[w->root++];

    buf_clear(&w->path);
    buf_add(&w->path, r->name);
    return walk__look(w, AT_FDCWD, r->path, DT_UNKNOWN, 0, e);
}

bool walk_next(Walk *w, WalkEntry *e)
{
    if (w->file >= 0)
        close(w->file);
    w->file = -1;
    if (!w->depth)
        return w->root < w->count && walk__root(w, e);
    WalkLevel *l = &w->levels[w->depth - 1];
    w->path.n = l->path;
    if (l->next == w->names_n) {
        walk__leave(w);
        *e = (WalkEntry){.kind = WALK_LEAVE, .path = buf_str(&w->path), .fd = -1};
        return true;
    }
    const char *name = w->text.p + w->names[l->next++];
    buf_addc(&w->path, '/');
    buf_add(&w->path, str_from(name));
    return walk__look(w, l->fd, name, (unsigned char)name[-1], O_NOFOLLOW, e);
}

/* --- roots ------------------------------------------------------------------------ */

bool walk_name(Str path, Str *name, Err *err)
{
    Str rest = path;

    while (rest.n && rest.p[rest.n - 1] == '/')
        rest.n--;
    size_t at = rest.n;
    while (at && rest.p[at - 1] != '/')
        at--;
    *name = path.n && !rest.n ? STR(".") : str_from_to(rest, at, rest.n);
    return (name->n && !str_eq(*name, STR("..")))
        || err_set(err, ERR_USAGE, E8002, "'%.*s' has no name of its own: say DIR/. for what is in it", STR_ARG(path));
}

/* Paths that a part of the pattern made. */
typedef struct WalkPaths {
    const char **v;
    size_t       n, cap;
    Arena       *a;
    size_t       most;          /* of the arena */
} WalkPaths;

static bool walk__keep(WalkPaths *p, const char *path, Err *err)
{
    if (p->n == LIMIT_SYNC_ROOTS || p->a->used > p->most)
        return err_set(err, ERR_LIMIT, E4003, "too many files match, %zu are the most", LIMIT_SYNC_ROOTS);
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 16;
        p->v = mem_grow(p->v, p->cap, sizeof *p->v);
    }
    p->v[p->n++] = path;
    return true;
}

bool walk_is_pattern(Str s)
{
    return str_has(s, '*') || str_has(s, '?') || str_has(s, '[') || str_has(s, '\\');
}

/* `before` with each name in it that the part is a pattern for. */
static bool walk__matches(const char *before, Str part, WalkPaths *to, Err *err)
{
    DIR           *d = opendir(*before ? before : ".");
    bool           ok = true;
    struct dirent *e;

    while (ok && d && (e = readdir(d)) != NULL) {
        Str name = str_from(e->d_name);
        if (!str_eq(name, STR(".")) && !str_eq(name, STR("..")) && glob_name(part, name))
            ok = walk__keep(to, arena_fmt(to->a, "%s%s", before, name.p).p, err);
    }
    if (d)
        closedir(d);
    return ok;
}

/* One part of the pattern, and the slashes behind it. */
static bool walk__part(WalkPaths *from, Str part, Str slashes, WalkPaths *to, Err *err)
{
    bool signs = walk_is_pattern(part), ok = true;

    for (size_t i = 0; i < from->n && ok; i++) {
        size_t first = to->n;
        ok = signs ? walk__matches(from->v[i], part, to, err)
                   : walk__keep(to, arena_fmt(to->a, "%s%.*s", from->v[i], STR_ARG(part)).p, err);
        for (size_t k = first; k < to->n && slashes.n; k++)
            to->v[k] = arena_fmt(to->a, "%s%.*s", to->v[k], STR_ARG(slashes)).p;
    }
    return ok;
}

static int walk__by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool walk_expand(Str pattern, Arena *a, const char ***paths, size_t *n, Err *err)
{
    const char *whole = arena_cstr(a, pattern);
    WalkPaths   at = {.a = a, .most = a->used + LIMIT_SYNC_NAMES}, next;
    ABX_UNSET struct stat st;
    size_t      i = 0, name, end, last = 0;
    bool        ok = walk__keep(&at, "", err);

    if (!walk_is_pattern(pattern) || lstat(whole, &st) == 0) {
        at.v[0] = whole;
        i = pattern.n;
    }
    while (ok && i < pattern.n) {
        for (name = i; i < pattern.n && pattern.p[i] != '/'; i++)
            ;
        for (end = i; i < pattern.n && pattern.p[i] == '/'; i++)
            ;
        next = (WalkPaths){.a = a, .most = at.most};
        ok = walk__part(&at, str_from_to(pattern, name, end), str_from_to(pattern, end, i), &next, err);
        mem_free(at.v);
        at = next;
    }
    for (size_t k = 0; ok && k < at.n; k++)
        if (at.v[k] == whole || lstat(at.v[k], &st) == 0)
            at.v[last++] = at.v[k];
    if (ok && !last)
        ok = err_set(err, ERR_NOT_FOUND, E4001, "nothing matches '%s'", whole);
    if (ok) {
        qsort(at.v, last, sizeof *at.v, walk__by_bytes);
        *paths = arena_array(a, last, sizeof **paths);
        memcpy(*paths, at.v, last * sizeof **paths);
        *n = last;
    }
    mem_free(at.v);
    return ok;
}
