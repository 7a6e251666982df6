#include "host/treefs.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/clean.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool treefs__failed(Err *err, int sys, const char *what, Str path)
{
    ABX_UNSET char room[TREE_SHOWN];
    Arena a = {.p = room, .size = sizeof room};
    Str   shown = clean_path(path, &a);

    return err_sys(err, sys, E8010, "cannot %s %.*s", what, STR_ARG(shown));
}

/* ---- reading ---- */

/* A folder that is read, or an installed one that is hashed. */
typedef struct TreefsWalk {
    bool      installed;
    Tree     *tree;             /* read: where the files go */
    TreeSeen *each;             /* installed */
    void     *ctx;
    Sha256    outer;
    int64_t   total;
    size_t    files, entries;
    int       depth;
    Buf       path;             /* of what is looked at */
    char     *block;            /* LIMIT_COPY_BLOCK bytes */
} TreefsWalk;

/* The next bytes of the file in hand; 0 at its end, -1 with an error. */
static ssize_t treefs__some(const TreefsWalk *w, int fd, char *to, size_t n, Err *err)
{
    ssize_t got;

    do
        got = read(fd, to, n);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        treefs__failed(err, errno, "read", buf_str(&w->path));
    return got;
}

/* A source's file, all of it. */
static bool treefs__load(TreefsWalk *w, int fd, const struct stat *st, Err *err)
{
    char   *to = NULL, one;
    int64_t left = st->st_size;

    if (st->st_nlink > 1)
        return tree_refuse(err, buf_str(&w->path), "a hard link");
    if (!tree_add(w->tree, buf_str(&w->path), st->st_mode & S_IXUSR, left, &to, err))
        return false;
    while (left > 0) {
        ssize_t n = treefs__some(w, fd, to, (size_t)left, err);
        if (n < 0)
            return false;
        if (n == 0)
            break;
        to += n;
        left -= n;
    }
    ssize_t more = treefs__some(w, fd, &one, 1, err);
    if (more < 0)
        return false;
    return (left == 0 && more == 0) || tree_refuse(err, buf_str(&w->path), "it changed while it was read");
}

/* An installed file. More than was ever installed need not be read: no digest
 * can match it. */
static bool treefs__hash(TreefsWalk *w, int fd, const struct stat *st, Err *err)
{
    unsigned char sum[SHA256_SIZE];
    Sha256        h = sha256_make();

    if (++w->files > LIMIT_TREE_FILES)
        return err_set(err, ERR_LIMIT, E8010, "more than %d files", LIMIT_TREE_FILES);
    for (;;) {
        ssize_t n = treefs__some(w, fd, w->block, LIMIT_COPY_BLOCK, err);
        if (n < 0)
            return false;
        if (n == 0)
            break;
        w->total += n;
        if (w->total > LIMIT_TREE_BYTES)
            return err_set(err, ERR_LIMIT, E8010, "more than 50 MiB in all files together");
        sha256_add(&h, (Str){w->block, (size_t)n});
    }
    sha256_end(&h, sum);
    tree_digest_file(&w->outer, buf_str(&w->path), st->st_mode & S_IXUSR, sum);
    if (w->each)
        w->each(w->ctx, buf_str(&w->path), st->st_mode & S_IXUSR, sum);
    return true;
}

static bool treefs__file(TreefsWalk *w, int folder, const char *name, Err *err)
{
    ABX_UNSET struct stat st;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0 && errno == ELOOP)
        return tree_refuse(err, buf_str(&w->path), "a symbolic link");
    if (fd < 0)
        return treefs__failed(err, errno, "read", buf_str(&w->path));
    bool ok = fstat(fd, &st) == 0 || treefs__failed(err, errno, "read", buf_str(&w->path));
    if (ok && !S_ISREG(st.st_mode))
        ok = tree_refuse(err, buf_str(&w->path), "no regular file");
    ok = ok && (w->installed ? treefs__hash(w, fd, &st, err) : treefs__load(w, fd, &st, err));
    close(fd);
    return ok;
}

typedef struct TreefsName { size_t at, n; } TreefsName;     /* in the text; a folder's ends in "/" */

typedef struct TreefsNames {
    Buf       text;
    TreefsName *v;
    size_t    n, cap;
} TreefsNames;

bool treefs_hop(Str text)
{
    static const Str folders[] = {STR("../.staging/"), STR("../.trash/"), STR("../.previous/")};

    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        Str rest = text, name;
        if (!str_starts(text, folders[i]))
            continue;
        str_skip(&rest, folders[i].n);
        return str_cut(&rest, '/', &name) && name.n && !str_eq(name, STR(".")) && !str_eq(name, STR("..")) &&
               str_eq(rest, STR("data"));
    }
    return false;
}

/* What an installed tree may hold beside what was installed. */
static bool treefs__apart(const TreefsWalk *w, int folder, const char *name, mode_t type)
{
    ABX_UNSET char to[300];
    ssize_t n;

    if (w->depth > 0)
        return false;
    if (strcmp(name, ".git") == 0 || strcmp(name, ".abx-install.json") == 0)
        return true;
    if (!w->installed || strcmp(name, "data") != 0)
        return false;
    if (S_ISDIR(type))
        return true;
    n = S_ISLNK(type) ? readlinkat(folder, name, to, sizeof to) : -1;
    return n > 0 && treefs_hop((Str){to, (size_t)n});
}

static mode_t treefs__type(int folder, const struct dirent *e)
{
    ABX_UNSET struct stat st;

    if (e->d_type == DT_REG)
        return S_IFREG;
    if (e->d_type == DT_DIR)
        return S_IFDIR;
    return fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode & S_IFMT : 0;
}

/* Only what is a file or a folder is opened at all: opening a device can be
 * enough to set it going. treefs__file() looks again at what it opened. */
static bool treefs__entry(TreefsWalk *w, int folder, const struct dirent *e, TreefsNames *names, Err *err)
{
    Str    name = str_from(e->d_name);
    mode_t type;

    if (str_eq(name, STR(".")) || str_eq(name, STR("..")))
        return true;
    type = treefs__type(folder, e);
    if (treefs__apart(w, folder, e->d_name, type))
        return true;
    if (!S_ISREG(type) && !S_ISDIR(type)) {
        buf_add(&w->path, name);
        return tree_refuse(err, buf_str(&w->path), S_ISLNK(type) ? "a symbolic link" : "no regular file");
    }
    if (++w->entries > LIMIT_TREE_ENTRIES)
        return err_set(err, ERR_LIMIT, E8010, "more than %d names in all folders", LIMIT_TREE_ENTRIES);
    if (names->n == names->cap) {
        names->cap = names->cap ? 2 * names->cap : 32;
        names->v = mem_grow(names->v, names->cap, sizeof *names->v);
    }
    names->v[names->n++] = (TreefsName){names->text.n, name.n + S_ISDIR(type)};
    buf_addf(&names->text, "%s%s", e->d_name, S_ISDIR(type) ? "/" : "");
    buf_addc(&names->text, '\0');
    return true;
}

static int treefs__by_name(const void *a, const void *b, void *text)
{
    const TreefsName *x = a, *y = b;

    return str_order((Str){(char *)text + x->at, x->n}, (Str){(char *)text + y->at, y->n});
}

static bool treefs__walk(TreefsWalk *w, int folder, Err *err);

static bool treefs__down(TreefsWalk *w, int folder, const char *name, Err *err)
{
    if (w->depth == LIMIT_TREE_DEPTH)
        return tree_refuse(err, buf_str(&w->path), "too many folders in one another");
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return treefs__failed(err, errno, "read the folder", buf_str(&w->path));
    w->depth++;
    bool ok = treefs__walk(w, fd, err);
    w->depth--;
    return ok;
}

/* Takes the descriptor. With "/" behind the names of folders, what is met in
 * the order of names is met in the order of whole paths. */
static bool treefs__walk(TreefsWalk *w, int folder, Err *err)
{
    TreefsNames names = {.text = buf_make((size_t)LIMIT_TREE_ENTRIES * 258)};
    DIR      *d = fdopendir(folder);
    struct dirent *e;
    bool      ok = d || treefs__failed(err, errno, "read the folder", buf_str(&w->path));
    size_t    at = w->path.n;

    if (!d)
        close(folder);
    while (ok && (errno = 0, e = readdir(d)) != NULL)
        ok = treefs__entry(w, dirfd(d), e, &names, err);
    if (ok && errno)
        ok = treefs__failed(err, errno, "read the folder", buf_str(&w->path));
    if (names.n)
        qsort_r(names.v, names.n, sizeof *names.v, treefs__by_name, names.text.p);
    for (size_t i = 0; ok && i < names.n; i++) {
        char *name = names.text.p + names.v[i].at;
        w->path.n = at;
        buf_add(&w->path, (Str){name, names.v[i].n});
        if (name[names.v[i].n - 1] != '/') {
            ok = treefs__file(w, dirfd(d), name, err);
            continue;
        }
        /* With its "/", a link that came in its place would be followed. */
        name[names.v[i].n - 1] = '\0';
        ok = treefs__down(w, dirfd(d), name, err);
    }
    if (d)
        closedir(d);
    buf_free(&names.text);
    mem_free(names.v);
    return ok;
}

static bool treefs__start(TreefsWalk *w, const char *folder, Err *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        int sys = errno;
        err_sys(err, sys, E8010, "cannot read the folder %s", folder);
        if (sys == ENOENT)
            err->kind = ERR_NOT_FOUND;
        return false;
    }
    w->path = buf_make((size_t)(LIMIT_TREE_DEPTH + 2) * 257);
    w->block = mem_new(LIMIT_COPY_BLOCK);
    bool ok = treefs__walk(w, fd, err);
    buf_free(&w->path);
    mem_free(w->block);
    return ok;
}

bool treefs_read(const char *folder, Tree *out, Err *err)
{
    Tree     t = tree_make();
    TreefsWalk w = {.tree = &t};

    if (!treefs__start(&w, folder, err) || !tree_seal(&t, err)) {
        tree_free(&t);
        return false;
    }
    *out = t;
    return true;
}

bool treefs_digest(const char *folder, TreeSeen *each, void *ctx, char hex[static TREE_HEX], Err *err)
{
    TreefsWalk w = {.installed = true, .each = each, .ctx = ctx, .outer = sha256_make()};

    if (!treefs__start(&w, folder, err)) {
        err->code = E8011;
        return false;
    }
    tree_digest_end(&w.outer, hex);
    return true;
}

/* ---- writing ---- */

/* The folders of a path that the one before it did not have: paths come in
 * byte order, so what is in one folder comes in one run. */
static bool treefs__folders(int folder, Str path, Str before, char *room, Err *err)
{
    for (size_t i = tree_shared(path, before); i < path.n; i++) {
        if (path.p[i] != '/')
            continue;
        memcpy(room, path.p, i);
        room[i] = '\0';
        /* chmod, since the umask may have taken something away */
        if (mkdirat(folder, room, 0700) != 0 || fchmodat(folder, room, 0700, 0) != 0)
            return treefs__failed(err, errno, "make the folder", str_from(room));
    }
    return true;
}

static bool treefs__put(int folder, const TreeFile *f, Err *err)
{
    mode_t mode = f->executable ? 0700 : 0600;
    Str    rest = f->bytes;
    int    sys = 0;
    int    fd = openat(folder, f->path.p, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

    if (fd < 0)
        return treefs__failed(err, errno, "create", f->path);
    if (fchmod(fd, mode) != 0)
        sys = errno;
    while (sys == 0 && rest.n) {
        ssize_t n = write(fd, rest.p, rest.n);
        if (n > 0)
            str_skip(&rest, (size_t)n);
        else if (n < 0 && errno != EINTR)
            sys = errno;
    }
    if (close(fd) != 0 && errno != EINTR && sys == 0)
        sys = errno;
    return sys == 0 || treefs__failed(err, sys, "write", f->path);
}

bool treefs_write(const Tree *t, int folder_fd, Err *err)
{
    char *room = mem_new(t->paths + 1);
    Str   before = {0};
    bool  ok = fchmod(folder_fd, 0700) == 0 || err_sys(err, errno, E8010, "cannot set the mode of a new folder");

    for (size_t i = 0; ok && i < t->n; i++) {
        ok = treefs__folders(folder_fd, t->v[i].path, before, room, err) && treefs__put(folder_fd, &t->v[i], err);
        before = t->v[i].path;
    }
    mem_free(room);
    return ok;
}
