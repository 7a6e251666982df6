#include "host/tree.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/casefold.h"
#include "data/clean.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A path as it may be shown. */
typedef struct TreeShown { char room[4096]; Str s; } TreeShown;

static Str tree__shown(Str path, TreeShown *to)
{
    Arena a = {.p = to->room, .size = sizeof to->room};

    return clean_message(str_from_to(path, 0, path.n < 500 ? path.n : 500), NULL, 0, &a);
}

static bool tree__refuse(Err *err, Str path, const char *why)
{
    TreeShown to;

    return err_set(err, ERR_INPUT, E8010, "unsafe entry %.*s: %s", STR_ARG(tree__shown(path, &to)), why);
}

static bool tree__failed(Err *err, int sys, const char *what, Str path)
{
    TreeShown to;

    return err_sys(err, sys, E8010, "cannot %s %.*s", what, STR_ARG(tree__shown(path, &to)));
}

/* ---- paths ---- */

/* A device of old systems, alone or before a dot. What the other hosts' pattern
 * makes of line feeds is kept: one at the very end is passed over, and behind
 * the dot it hides the name (specification, S1). */
static bool tree__device(Str part)
{
    static const char *const names[] = {"con", "prn", "aux", "nul"};
    Str  name = part, rest = {0};
    bool named = false;

    if (str_ends(part, STR("\n")))
        part.n--;
    name.n = str_find(part, '.');
    rest = str_from_to(part, name.n, part.n);
    if (str_has(rest, '\n'))
        return false;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        named = named || str_eq_nocase(name, str_from(names[i]));
    if (name.n == 4 && name.p[3] >= '1' && name.p[3] <= '9') {
        name.n = 3;
        named = str_eq_nocase(name, STR("com")) || str_eq_nocase(name, STR("lpt"));
    }
    return named;
}

bool tree_path(Str path, Err *err)
{
    Str rest = path, part;

    if (path.n == 0)
        return err_set(err, ERR_INPUT, E8010, "unsafe entry: a file without a name");
    if (!utf8_valid(path))
        return tree__refuse(err, path, "the name is not UTF-8");
    if (str_has(path, '\0') || str_has(path, '\\'))
        return tree__refuse(err, path, "a NUL or a backslash in the name");
    if (path.p[0] == '/')
        return tree__refuse(err, path, "an absolute path");
    if (path.n > 1 && path.p[1] == ':' && ((path.p[0] | 0x20) >= 'a' && (path.p[0] | 0x20) <= 'z'))
        return tree__refuse(err, path, "a drive letter in front");
    while (str_cut(&rest, '/', &part)) {
        if (part.n == 0 || str_eq(part, STR(".")) || str_eq(part, STR("..")))
            return tree__refuse(err, path, "an empty part, `.` or `..` in the path");
        if (part.p[part.n - 1] == '.' || part.p[part.n - 1] == ' ')
            return tree__refuse(err, path, "a part of the path ends in a dot or a blank");
        if (tree__device(part))
            return tree__refuse(err, path, "the name of a device");
    }
    return true;
}

/* ---- building ---- */

Tree tree_make(void)
{
    /* Each allocation is rounded up to 16 bytes, and a path has a NUL. */
    return (Tree){.own = arena_make((size_t)LIMIT_TREE_BYTES + LIMIT_TREE_PATHS + (size_t)LIMIT_TREE_FILES * 48)};
}

void tree_free(Tree *t)
{
    mem_free(t->v);
    arena_free(&t->own);
    *t = (Tree){0};
}

static bool tree__reserved(Str path, Err *err)
{
    Str top = str_from_to(path, 0, str_find(path, '/'));

    if (str_eq(top, STR("data")))
        return tree__refuse(err, path, "`data` is for what the plugin writes itself");
    if (str_eq(top, STR(".git")) || str_eq(top, STR(".abx-install.json")))
        return tree__refuse(err, path, "the name is reserved: an installed tree could not be verified");
    return true;
}

static bool tree__fits(const Tree *t, Str path, int64_t size, Err *err)
{
    if (t->n == LIMIT_TREE_FILES)
        return err_set(err, ERR_LIMIT, E8010, "more than %d files", LIMIT_TREE_FILES);
    if (!tree_path(path, err) || !tree__reserved(path, err))
        return false;
    if (size < 0 || size > LIMIT_TREE_FILE)
        return tree__refuse(err, path, "larger than 10 MiB");
    if (size > LIMIT_TREE_BYTES - t->total)
        return err_set(err, ERR_LIMIT, E8010, "more than 50 MiB in all files together");
    return path.n <= LIMIT_TREE_PATHS - t->paths ||
           err_set(err, ERR_LIMIT, E8010, "more than %zu bytes in all paths together", LIMIT_TREE_PATHS);
}

bool tree_take(Tree *t, Str path, bool executable, Str bytes, Err *err)
{
    if (!tree__fits(t, path, (int64_t)bytes.n, err))
        return false;
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 64;
        t->v = mem_grow(t->v, t->cap, sizeof *t->v);
    }
    t->v[t->n++] = (TreeFile){.path = arena_str(&t->own, path), .executable = executable, .bytes = bytes};
    t->total += (int64_t)bytes.n;
    t->paths += path.n;
    return true;
}

bool tree_add(Tree *t, Str path, bool executable, int64_t size, char **bytes, Err *err)
{
    if (!tree__fits(t, path, size, err))
        return false;
    *bytes = arena_alloc(&t->own, (size_t)size);
    return tree_take(t, path, executable, (Str){*bytes, (size_t)size}, err);
}

const TreeFile *tree_find(const Tree *t, Str path)
{
    for (size_t i = 0; i < t->n; i++)
        if (str_eq(t->v[i].path, path))
            return &t->v[i];
    return NULL;
}

/* ---- what may not stand side by side ---- */

static int tree__order(Str a, Str b)
{
    int c = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

    return c ? c : (a.n > b.n) - (a.n < b.n);
}

static int tree__by_path(const void *a, const void *b)
{
    return tree__order(((const TreeFile *)a)->path, ((const TreeFile *)b)->path);
}

typedef struct TreeKey { Str key, path; } TreeKey;

static int tree__by_key(const void *a, const void *b)
{
    return tree__order(((const TreeKey *)a)->key, ((const TreeKey *)b)->key);
}

/* The keys lie one behind the other in the Buf, which moves no more. */
static void tree__place(TreeKey *keys, size_t n, const Buf *room)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        keys[i].key.p = room->p + at;
        at += keys[i].key.n;
    }
}

/* Refuse two paths that are one when case does not count. Sorted by their
 * folded forms, they are neighbours. */
static bool tree__distinct(const Tree *t, TreeKey *keys, Buf *room, Err *err)
{
    size_t at = 0;

    for (size_t i = 0; i < t->n; i++) {
        casefold_add(room, t->v[i].path);
        keys[i] = (TreeKey){{NULL, room->n - at}, t->v[i].path};
        at = room->n;
    }
    tree__place(keys, t->n, room);
    qsort(keys, t->n, sizeof *keys, tree__by_key);
    for (size_t i = 1; i < t->n; i++)
        if (str_eq(keys[i - 1].key, keys[i].key))
            return tree__refuse(err, keys[i].path, str_eq(keys[i - 1].path, keys[i].path) ?
                                "it is there twice" : "another name differs from it in case alone");
    return true;
}

/* Refuse a file that is also a folder. With "/" as the lowest of all bytes
 * (a path holds no NUL), what is in the folder `a` comes right behind `a`. */
static bool tree__no_folder(const Tree *t, TreeKey *keys, Buf *room, Err *err)
{
    size_t at = 0;

    for (size_t i = 0; i < t->n; i++) {
        buf_add(room, t->v[i].path);
        for (size_t k = at; k < room->n; k++)
            if (room->p[k] == '/')
                room->p[k] = '\0';
        keys[i] = (TreeKey){{NULL, room->n - at}, t->v[i].path};
        at = room->n;
    }
    tree__place(keys, t->n, room);
    qsort(keys, t->n, sizeof *keys, tree__by_key);
    for (size_t i = 1; i < t->n; i++)
        if (str_starts(keys[i].path, keys[i - 1].path) && keys[i].path.p[keys[i - 1].path.n] == '/')
            return tree__refuse(err, keys[i - 1].path, "it is a file and a folder");
    return true;
}

bool tree_seal(Tree *t, Err *err)
{
    TreeKey *keys = mem_new((t->n + 1) * sizeof *keys);
    Buf      room = buf_make(CASEFOLD_MOST * t->paths + 1);

    bool ok = tree__distinct(t, keys, &room, err);
    buf_clear(&room);
    ok = ok && tree__no_folder(t, keys, &room, err);
    buf_free(&room);
    mem_free(keys);
    if (!ok)
        return false;
    if (t->n)
        qsort(t->v, t->n, sizeof *t->v, tree__by_path);
    for (size_t i = 0; i < t->n; i++) {
        Sha256 h = sha256_make();
        sha256_add(&h, t->v[i].bytes);
        sha256_end(&h, t->v[i].sha256);
    }
    return true;
}

/* ---- the digest ---- */

static void tree__hex(const unsigned char sha256[static SHA256_SIZE], char hex[static TREE_HEX])
{
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        hex[2 * i] = "0123456789abcdef"[sha256[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[sha256[i] & 15];
    }
    hex[TREE_HEX - 1] = '\0';
}

void tree_digest_file(Sha256 *outer, Str path, bool executable, const unsigned char sha256[static SHA256_SIZE])
{
    char hex[TREE_HEX];

    tree__hex(sha256, hex);
    hex[TREE_HEX - 1] = '\n';
    sha256_add(outer, path);
    sha256_add(outer, executable ? (Str){"\0x", 3} : (Str){"\0-", 3});
    sha256_add(outer, (Str){hex, sizeof hex});
}

void tree_digest_end(Sha256 *outer, char hex[static TREE_HEX])
{
    unsigned char out[SHA256_SIZE];

    sha256_end(outer, out);
    tree__hex(out, hex);
}

void tree_digest(const Tree *t, char hex[static TREE_HEX])
{
    Sha256 outer = sha256_make();

    for (size_t i = 0; i < t->n; i++)
        tree_digest_file(&outer, t->v[i].path, t->v[i].executable, t->v[i].sha256);
    tree_digest_end(&outer, hex);
}

/* ---- folders ---- */

/* A folder that is read, or an installed one that is hashed. */
typedef struct TreeWalk {
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
} TreeWalk;

/* The next bytes of the file in hand; 0 at its end, -1 with an error. */
static ssize_t tree__some(const TreeWalk *w, int fd, char *to, size_t n, Err *err)
{
    ssize_t got;

    do
        got = read(fd, to, n);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        tree__failed(err, errno, "read", buf_str(&w->path));
    return got;
}

/* A source's file, all of it. */
static bool tree__load(TreeWalk *w, int fd, const struct stat *st, Err *err)
{
    char   *to = NULL, one;
    int64_t left = st->st_size;

    if (st->st_nlink > 1)
        return tree__refuse(err, buf_str(&w->path), "a hard link");
    if (!tree_add(w->tree, buf_str(&w->path), st->st_mode & S_IXUSR, left, &to, err))
        return false;
    while (left > 0) {
        ssize_t n = tree__some(w, fd, to, (size_t)left, err);
        if (n < 0)
            return false;
        if (n == 0)
            break;
        to += n;
        left -= n;
    }
    ssize_t more = tree__some(w, fd, &one, 1, err);
    if (more < 0)
        return false;
    return (left == 0 && more == 0) || tree__refuse(err, buf_str(&w->path), "it changed while it was read");
}

/* An installed file. More than was ever installed need not be read: no digest
 * can match it. */
static bool tree__hash(TreeWalk *w, int fd, const struct stat *st, Err *err)
{
    unsigned char sum[SHA256_SIZE];
    Sha256        h = sha256_make();

    if (++w->files > LIMIT_TREE_FILES)
        return err_set(err, ERR_LIMIT, E8010, "more than %d files", LIMIT_TREE_FILES);
    for (;;) {
        ssize_t n = tree__some(w, fd, w->block, LIMIT_COPY_BLOCK, err);
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

static bool tree__file(TreeWalk *w, int folder, const char *name, Err *err)
{
    struct stat st;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0 && errno == ELOOP)
        return tree__refuse(err, buf_str(&w->path), "a symbolic link");
    if (fd < 0)
        return tree__failed(err, errno, "read", buf_str(&w->path));
    bool ok = fstat(fd, &st) == 0 || tree__failed(err, errno, "read", buf_str(&w->path));
    if (ok && !S_ISREG(st.st_mode))
        ok = tree__refuse(err, buf_str(&w->path), "no regular file");
    ok = ok && (w->installed ? tree__hash(w, fd, &st, err) : tree__load(w, fd, &st, err));
    close(fd);
    return ok;
}

typedef struct TreeName { size_t at, n; } TreeName;     /* in the text; a folder's ends in "/" */

typedef struct TreeNames {
    Buf       text;
    TreeName *v;
    size_t    n, cap;
} TreeNames;

bool tree_hop(Str text)
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
static bool tree__apart(const TreeWalk *w, int folder, const char *name, mode_t type)
{
    char    to[300];
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
    return n > 0 && tree_hop((Str){to, (size_t)n});
}

static mode_t tree__type(int folder, const struct dirent *e)
{
    struct stat st;

    if (e->d_type == DT_REG)
        return S_IFREG;
    if (e->d_type == DT_DIR)
        return S_IFDIR;
    return fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode & S_IFMT : 0;
}

/* Only what is a file or a folder is opened at all: opening a device can be
 * enough to set it going. tree__file() looks again at what it opened. */
static bool tree__entry(TreeWalk *w, int folder, const struct dirent *e, TreeNames *names, Err *err)
{
    Str    name = str_from(e->d_name);
    mode_t type;

    if (str_eq(name, STR(".")) || str_eq(name, STR("..")))
        return true;
    type = tree__type(folder, e);
    if (tree__apart(w, folder, e->d_name, type))
        return true;
    if (!S_ISREG(type) && !S_ISDIR(type)) {
        buf_add(&w->path, name);
        return tree__refuse(err, buf_str(&w->path), S_ISLNK(type) ? "a symbolic link" : "no regular file");
    }
    if (++w->entries > LIMIT_TREE_ENTRIES)
        return err_set(err, ERR_LIMIT, E8010, "more than %d names in all folders", LIMIT_TREE_ENTRIES);
    if (names->n == names->cap) {
        names->cap = names->cap ? 2 * names->cap : 32;
        names->v = mem_grow(names->v, names->cap, sizeof *names->v);
    }
    names->v[names->n++] = (TreeName){names->text.n, name.n + S_ISDIR(type)};
    buf_addf(&names->text, "%s%s", e->d_name, S_ISDIR(type) ? "/" : "");
    buf_addc(&names->text, '\0');
    return true;
}

static int tree__by_name(const void *a, const void *b, void *text)
{
    const TreeName *x = a, *y = b;

    return tree__order((Str){(char *)text + x->at, x->n}, (Str){(char *)text + y->at, y->n});
}

static bool tree__walk(TreeWalk *w, int folder, Err *err);

static bool tree__down(TreeWalk *w, int folder, const char *name, Err *err)
{
    if (w->depth == LIMIT_TREE_DEPTH)
        return tree__refuse(err, buf_str(&w->path), "too many folders in one another");
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return tree__failed(err, errno, "read the folder", buf_str(&w->path));
    w->depth++;
    bool ok = tree__walk(w, fd, err);
    w->depth--;
    return ok;
}

/* Takes the descriptor. With "/" behind the names of folders, what is met in
 * the order of names is met in the order of whole paths. */
static bool tree__walk(TreeWalk *w, int folder, Err *err)
{
    TreeNames names = {.text = buf_make((size_t)LIMIT_TREE_ENTRIES * 258)};
    DIR      *d = fdopendir(folder);
    struct dirent *e;
    bool      ok = d || tree__failed(err, errno, "read the folder", buf_str(&w->path));
    size_t    at = w->path.n;

    if (!d)
        close(folder);
    while (ok && (errno = 0, e = readdir(d)) != NULL)
        ok = tree__entry(w, dirfd(d), e, &names, err);
    if (ok && errno)
        ok = tree__failed(err, errno, "read the folder", buf_str(&w->path));
    if (names.n)
        qsort_r(names.v, names.n, sizeof *names.v, tree__by_name, names.text.p);
    for (size_t i = 0; ok && i < names.n; i++) {
        char *name = names.text.p + names.v[i].at;
        w->path.n = at;
        buf_add(&w->path, (Str){name, names.v[i].n});
        if (name[names.v[i].n - 1] != '/') {
            ok = tree__file(w, dirfd(d), name, err);
            continue;
        }
        /* With its "/", a link that came in its place would be followed. */
        name[names.v[i].n - 1] = '\0';
        ok = tree__down(w, dirfd(d), name, err);
    }
    if (d)
        closedir(d);
    buf_free(&names.text);
    mem_free(names.v);
    return ok;
}

static bool tree__start(TreeWalk *w, const char *folder, Err *err)
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
    bool ok = tree__walk(w, fd, err);
    buf_free(&w->path);
    mem_free(w->block);
    return ok;
}

bool tree_read(const char *folder, Tree *out, Err *err)
{
    Tree     t = tree_make();
    TreeWalk w = {.tree = &t};

    if (!tree__start(&w, folder, err) || !tree_seal(&t, err)) {
        tree_free(&t);
        return false;
    }
    *out = t;
    return true;
}

bool tree_digest_of(const char *folder, TreeSeen *each, void *ctx, char hex[static TREE_HEX], Err *err)
{
    TreeWalk w = {.installed = true, .each = each, .ctx = ctx, .outer = sha256_make()};

    if (!tree__start(&w, folder, err)) {
        err->code = E8011;
        return false;
    }
    tree_digest_end(&w.outer, hex);
    return true;
}

/* ---- writing ---- */

/* The folders of a path that the one before it did not have: paths come in
 * byte order, so what is in one folder comes in one run. */
static bool tree__folders(int folder, Str path, Str before, char *room, Err *err)
{
    size_t same = 0, from = 0;

    while (same < path.n && same < before.n && path.p[same] == before.p[same])
        if (path.p[same++] == '/')
            from = same;
    for (size_t i = from; i < path.n; i++) {
        if (path.p[i] != '/')
            continue;
        memcpy(room, path.p, i);
        room[i] = '\0';
        /* chmod, since the umask may have taken something away */
        if (mkdirat(folder, room, 0700) != 0 || fchmodat(folder, room, 0700, 0) != 0)
            return tree__failed(err, errno, "make the folder", str_from(room));
    }
    return true;
}

static bool tree__put(int folder, const TreeFile *f, Err *err)
{
    mode_t mode = f->executable ? 0700 : 0600;
    Str    rest = f->bytes;
    int    sys = 0;
    int    fd = openat(folder, f->path.p, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

    if (fd < 0)
        return tree__failed(err, errno, "create", f->path);
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
    return sys == 0 || tree__failed(err, sys, "write", f->path);
}

bool tree_write(const Tree *t, int folder_fd, Err *err)
{
    char *room = mem_new(t->paths + 1);
    Str   before = {0};
    bool  ok = fchmod(folder_fd, 0700) == 0 || err_sys(err, errno, E8010, "cannot set the mode of a new folder");

    for (size_t i = 0; ok && i < t->n; i++) {
        ok = tree__folders(folder_fd, t->v[i].path, before, room, err) && tree__put(folder_fd, &t->v[i], err);
        before = t->v[i].path;
    }
    mem_free(room);
    return ok;
}
