#include "host/store.h"

#include "base/hex.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "host/treefs.h"
#include "os/folder.h"
#include "os/fs.h"
#include "os/random.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STORE_SWAP ".swap-"     /* in .trash: the old tree, where there is no exchange */
#define STORE_GONE ".gone-"     /* in .trash: to be deleted */

enum { STORE_HEX = 8 };

/* ---- looking ---- */

Store store_make(Str home, Arena *a)
{
    return (Store){.home = arena_str(a, home), .root = arena_fmt(a, "%.*s/providers", STR_ARG(home)), .a = a};
}

const char *store_path(const Store *s, Str id, const char *name)
{
    return arena_fmt(s->a, "%s/%.*s%s%s", s->root.p, STR_ARG(id), name ? "/" : "", name ? name : "").p;
}

/* A name under the root; for the functions that take a descriptor. */
static const char *store__name(const Store *s, const char *folder, Str id, const char *name)
{
    return arena_fmt(s->a, "%s%.*s%s%s", folder, STR_ARG(id), name ? "/" : "", name ? name : "").p;
}

static const char *store__fresh(const Store *s, const char *folder, Str id)
{
    ABX_UNSET char hex[STORE_HEX + 1];

    random_hex(hex, STORE_HEX);
    return arena_fmt(s->a, "%s%.*s%s%s", folder, STR_ARG(id), id.n ? "-" : "", hex).p;
}

/* The type bits of what is there, no link followed; 0 when nothing is. */
static mode_t store__type(int root, const char *name)
{
    ABX_UNSET struct stat st;

    return fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode & S_IFMT : 0;
}

static int store__root(const Store *s)
{
    return open(s->root.p, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Put back a plugin whose old tree a crash left in .trash (where there is no
 * exchange): whoever takes the lock does. p NULL: any plugin. */
static void store__heal(const Store *s, Str id)
{
    StoreLock  lock;
    ABX_UNSET Err err;
    const Str *names;
    bool       hurt = false;
    int        root = store__root(s), trash = root < 0 ? -1 : folder_open(root, ".trash");
    ptrdiff_t  n = trash < 0 ? 0 : folder_names(trash, LIMIT_STORE_IDS, s->a, &names);

    for (ptrdiff_t i = 0; i < n; i++)
        if (str_starts(names[i], STR(STORE_SWAP)))
            hurt = hurt || !id.p || str_eq(id, str_from_to(names[i], sizeof STORE_SWAP - 1, names[i].n));
    if (trash >= 0)
        close(trash);
    if (root >= 0)
        close(root);
    if (hurt && store_lock(s, -1, &lock, &err))
        store_unlock(&lock);
}

bool store_ids(const Store *s, const Str **ids, size_t *n, Err *err)
{
    const Str *names;
    Str       *v;
    int        root;
    ptrdiff_t  count;

    *n = 0;
    *ids = NULL;
    store__heal(s, (Str){0});
    root = store__root(s);
    if (root < 0 && errno == ENOENT)
        return true;
    count = root < 0 ? -1 : folder_names(root, LIMIT_STORE_IDS, s->a, &names);
    if (count < 0) {
        int sys = errno;
        if (root >= 0)
            close(root);
        return err_sys(err, sys, E8010, "cannot read %s", s->root.p);
    }
    v = arena_array(s->a, (size_t)count, sizeof *v);
    for (ptrdiff_t i = 0; i < count; i++) {
        mode_t type = manifest_is_id(names[i]) ? store__type(root, names[i].p) : 0;
        if ((S_ISDIR(type) || S_ISLNK(type)) &&
            faccessat(root, store__name(s, "", names[i], RECEIPT_FILE), F_OK, 0) == 0)
            v[(*n)++] = names[i];
    }
    close(root);
    *ids = v;
    return true;
}

bool store_has(const Store *s, Str id)
{
    ABX_UNSET struct stat st;

    return manifest_is_id(id) && lstat(store_path(s, id, NULL), &st) == 0;
}

bool store_receipt(const Store *s, Str id, Arena *a, Receipt *out)
{
    if (!manifest_is_id(id))
        return false;
    if (!receipt_read(store_path(s, id, NULL), a, out)) {
        store__heal(s, id);
        if (!receipt_read(store_path(s, id, NULL), a, out))
            return false;
    }
    out->id = arena_str(a, id);         /* what the file says may be anything, and paths are made of this */
    return true;
}

const char *store_files(const Store *s, const Receipt *r)
{
    return str_eq(r->trust, STR("link")) ? arena_cstr(s->a, r->source.path) : store_path(s, r->id, NULL);
}

bool store_data(const Store *s, Str id, const char **path, Err *err)
{
    const char *data = store_path(s, id, "data");
    ABX_UNSET struct stat st;

    if (lstat(data, &st) != 0)
        store__heal(s, id);
    if (mkdir(data, 0700) != 0 && errno != EEXIST)
        return err_sys(err, errno, E8010, "cannot make the folder %s", data);
    if (lstat(data, &st) == 0 && S_ISDIR(st.st_mode))   /* what a link leads to may not be ours: /tmp, say */
        (void)chmod(data, 0700);
    if (stat(data, &st) != 0 || !S_ISDIR(st.st_mode))
        return err_set(err, ERR_SYSTEM, E8010, "%s is not a folder", data);
    *path = data;
    if (data[0] != '/') {
        char *real = realpath(data, NULL);
        if (!real)
            return err_sys(err, errno, E8010, "cannot find %s", data);
        *path = arena_cstr(s->a, str_from(real));
        mem_free(real);
    }
    return true;
}

static bool store__changed(Str id, Err *err)
{
    err_set(err, ERR_INPUT, E8011, "the files of `%.*s` are not those that were installed", STR_ARG(id));
    return err_hint(err, "`abx provider verify %.*s` says more; install it again with --force, or update it.", STR_ARG(id));
}

static bool store__missing(Str id, Err *err)
{
    return err_set(err, ERR_NOT_FOUND, E8001, "no plugin `%.*s` is installed", STR_ARG(id));
}

bool store_check(const Store *s, Str id, Err *err)
{
    Receipt r;
    ABX_UNSET char hex[TREE_HEX];

    if (!store_receipt(s, id, s->a, &r))
        return store__missing(id, err);
    if (str_eq(r.trust, STR("link")))
        return true;
    if (!treefs_digest(store_path(s, id, NULL), NULL, NULL, hex, err)) {
        err_wrap(err, "the files of `%.*s` are not those that were installed", STR_ARG(id));
        return err_hint(err, "Install it again with --force, or update it.");
    }
    return str_eq(r.tree_sha256, str_from(hex)) || store__changed(id, err);
}

/* ---- the lock, and what is put right with it ---- */

/* Delete at once: it is out of sight in one step. */
static void store__delete(StoreLock *l, const char *name)
{
    const char *gone = store__fresh(l->store, ".trash/" STORE_GONE, (Str){0});

    if (folder_move(l->root, name, l->root, gone) == 0)
        folder_remove(l->root, gone);
}

/* A link that stands for the folder `data` while a change moves that: its text
 * is "../" and then where the folder is, under the root. */
static bool store__is_hop(int root, const char *link, char *to, size_t size)
{
    ssize_t n = readlinkat(root, link, to, size - 1);

    if (n <= 0)
        return false;
    to[n] = '\0';
    return treefs_hop((Str){to, (size_t)n});
}

/* The folder behind such a link comes to where the link is. */
static void store__settle(StoreLock *l, const char *data)
{
    ABX_UNSET char to[600];

    if (!store__is_hop(l->root, data, to, sizeof to))
        return;
    if (!S_ISDIR(store__type(l->root, to + 3))) {
        unlinkat(l->root, data, 0);         /* leads nowhere: the folder is not to be had */
        return;
    }
    if (folder_exchange(l->root, data, l->root, to + 3) == 0)
        unlinkat(l->root, to + 3, 0);
    else if (unlinkat(l->root, data, 0) == 0)
        (void)renameat(l->root, to + 3, l->root, data);
}

/* .trash/.swap-ID, where there is no exchange: the plugin is the old one if
 * nothing came in its place, else the new one. */
static void store__unswap(StoreLock *l, Str name)
{
    const Store *s = l->store;
    Str          id = str_from_to(name, sizeof STORE_SWAP - 1, name.n);
    const char  *old = store__name(s, ".trash/", name, NULL), *data = store__name(s, "", id, "data");

    if (!manifest_is_id(id))
        return;
    if (folder_move(l->root, old, l->root, store__name(s, "", id, NULL)) != EEXIST)
        return;
    store__settle(l, data);
    /* onto nothing, or an empty folder that somebody made meanwhile */
    (void)renameat(l->root, store__name(s, ".trash/", name, "data"), l->root, data);
    if (S_ISDIR(store__type(l->root, store__name(s, ".trash/", name, "data"))))
        (void)folder_move(l->root, old, l->root, store__fresh(s, ".trash/", id));   /* as store__rescue() keeps it */
    else
        store__delete(l, old);
}

/* "ID-xxxxxxxx" and "ID-data-xxxxxxxx": whose leftover it is. */
static bool store__owner(Str name, Str *id)
{
    if (name.n < STORE_HEX + 3 || name.p[name.n - STORE_HEX - 1] != '-')
        return false;
    *id = str_from_to(name, 0, name.n - STORE_HEX - 1);
    return true;
}

/* A leftover of a change that did not come to its end. Its data goes back to
 * the plugin if that has none. True: nothing is in it that could be missed. */
static bool store__rescue(StoreLock *l, const char *folder, Str name)
{
    const Store *s = l->store;
    const char  *left = store__name(s, folder, name, NULL), *data = store__name(s, folder, name, "data");
    Str          id;

    if (!store__owner(name, &id) || !S_ISDIR(store__type(l->root, left)))
        return true;
    if (!S_ISDIR(store__type(l->root, data))) {
        if (!str_ends(id, STR("-data")) || faccessat(l->root, store__name(s, folder, name, RECEIPT_FILE), F_OK, 0) == 0)
            return true;
        data = left;                        /* what an uninstall keeps, on its way back */
        id.n -= sizeof "-data" - 1;
    }
    if (!manifest_is_id(id))
        return true;
    if (mkdirat(l->root, store__name(s, "", id, NULL), 0777) != 0 && errno != EEXIST)
        return false;
    /* onto an empty folder, or none: whatever is in one already stays */
    return renameat(l->root, data, l->root, store__name(s, "", id, "data")) == 0;
}

static void store__sweep(StoreLock *l, const char *folder)
{
    const Str  *names;
    ABX_UNSET struct stat st;
    int         fd = folder_open(l->root, folder);
    ptrdiff_t   n = fd < 0 ? 0 : folder_names(fd, LIMIT_STORE_IDS, l->store->a, &names);
    const char *inside = arena_fmt(l->store->a, "%s/", folder).p;

    for (ptrdiff_t i = 0; i < n; i++) {
        bool old = fstatat(fd, names[i].p, &st, AT_SYMLINK_NOFOLLOW) == 0 && time(NULL) - st.st_mtime > LIMIT_STORE_OLD_S;
        if (str_starts(names[i], STR(STORE_GONE)))
            folder_remove(fd, names[i].p);
        else if (str_starts(names[i], STR(STORE_SWAP)))
            store__unswap(l, names[i]);
        else if (store__rescue(l, inside, names[i]) && old)
            folder_remove(fd, names[i].p);
    }
    if (fd >= 0)
        close(fd);
}

/* Lists of trees that are neither in place nor the previous one. */
static void store__forget(StoreLock *l, Str id)
{
    const Store *s = l->store;
    Receipt      now = {0}, before = {0};
    const Str   *names;
    int          fd = folder_open(l->root, ".files");
    ptrdiff_t    n = fd < 0 ? 0 : folder_names(fd, LIMIT_STORE_IDS, s->a, &names);

    (void)receipt_read(store_path(s, id, NULL), s->a, &now);
    (void)receipt_read(store_path(s, STR(".previous"), arena_cstr(s->a, id)), s->a, &before);
    for (ptrdiff_t i = 0; i < n; i++) {
        Str name = names[i], digest = str_from_to(name, name.n < TREE_HEX ? 0 : name.n - TREE_HEX + 1, name.n);
        if (name.n == id.n + TREE_HEX && str_starts(name, id) && !str_eq(digest, now.tree_sha256) &&
            !str_eq(digest, before.tree_sha256))
            unlinkat(fd, name.p, 0);
    }
    if (fd >= 0)
        close(fd);
}

/* Another host's uninstall leaves what it does not know. */
static void store__orphans(StoreLock *l)
{
    const Store *s = l->store;
    const Str   *names;
    int          fd = folder_open(l->root, ".previous");
    ptrdiff_t    n = fd < 0 ? 0 : folder_names(fd, LIMIT_STORE_IDS, s->a, &names);

    for (ptrdiff_t i = 0; i < n; i++) {
        if (faccessat(l->root, store__name(s, "", names[i], RECEIPT_FILE), F_OK, 0) == 0)
            continue;
        store__delete(l, store__name(s, ".previous/", names[i], NULL));
        store__forget(l, names[i]);
    }
    if (fd >= 0)
        close(fd);
}

static void store__repair(StoreLock *l)
{
    const Str *names;
    ptrdiff_t  n = folder_names(l->root, LIMIT_STORE_IDS, l->store->a, &names);

    for (ptrdiff_t i = 0; i < n; i++)
        if (manifest_is_id(names[i]))
            store__settle(l, store__name(l->store, "", names[i], "data"));
    store__sweep(l, ".trash");
    store__sweep(l, ".staging");
    store__orphans(l);
}

/* HOME and what is above it, as mkdir -p does. */
static void store__parents(const Store *s)
{
    char *path = arena_cstr(s->a, s->root);

    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        (void)mkdir(path, 0777);    /* what it could not make is missed below */
        *p = '/';
    }
}

static bool store__folder(const Store *s, int root, const char *name, mode_t mode, Err *err)
{
    if (mkdirat(root, name, mode) != 0 && errno != EEXIST)
        return err_sys(err, errno, E8010, "cannot make the folder %s/%s", s->root.p, name);
    if (!S_ISDIR(store__type(root, name)))      /* a link could lead anywhere, and things are deleted here */
        return err_set(err, ERR_SYSTEM, E8010, "%s/%s is not a folder", s->root.p, name);
    return true;
}

bool store_lock(const Store *s, int cancel_fd, StoreLock *out, Err *err)
{
    StoreLock l = {.store = s};

    store__parents(s);
    if (mkdir(s->root.p, 0700) != 0 && errno != EEXIST)
        return err_sys(err, errno, E8010, "cannot make the folder %s", s->root.p);
    l.root = store__root(s);
    if (l.root < 0)
        return err_sys(err, errno, E8010, "cannot open the folder %s", s->root.p);
    ABX_UNSET struct stat st;
    if (lstat(s->root.p, &st) == 0 && S_ISDIR(st.st_mode))      /* what a link leads to may not be ours */
        (void)fchmod(l.root, 0700);
    if (!lock_take(l.root, ".lock", s->root.p, cancel_fd, clock_after(LIMIT_STORE_LOCK_MS), &l.lock, err)) {
        close(l.root);
        return false;
    }
    if (!store__folder(s, l.root, ".staging", 0777, err) || !store__folder(s, l.root, ".trash", 0777, err) ||
        !store__folder(s, l.root, ".previous", 0700, err) || !store__folder(s, l.root, ".files", 0700, err)) {
        store_unlock(&l);
        return false;
    }
    store__repair(&l);
    *out = l;
    return true;
}

bool store_renew(StoreLock *l, int64_t ahead_ms, Err *err)
{
    return lock_renew(&l->lock, ahead_ms, err);
}

void store_unlock(StoreLock *l)
{
    lock_release(&l->lock);
    close(l->root);
    l->root = -1;
}

/* ---- changing places ---- */

static bool store__in_use(Str id, int sys, Err *err)
{
    return err_sys(err, sys, E8010, "cannot replace `%.*s`: its folder is in use or cannot be renamed", STR_ARG(id));
}

/* Where the file system has no exchange. What a crash leaves between the steps
 * is put right by store__unswap(). */
static int store__swap_slowly(StoreLock *l, const char *place, Str id, bool data)
{
    const Store *s = l->store;
    const char  *old = store__name(s, ".trash/" STORE_SWAP, id, NULL), *name = store__name(s, "", id, NULL);
    const char  *to = store__name(s, "", id, "data"), *from = store__name(s, ".trash/" STORE_SWAP, id, "data");
    const char  *hop = arena_fmt(s->a, "%s/data", place).p;
    int          sys;

    if (data && (unlinkat(l->root, hop, 0) != 0 || symlinkat(arena_fmt(s->a, "../%s", from).p, l->root, hop) != 0))
        return errno;
    if (renameat(l->root, name, l->root, old) != 0)
        return errno;
    if (renameat(l->root, place, l->root, name) != 0) {
        sys = errno;
        return renameat(l->root, old, l->root, name) == 0 ? sys : errno;
    }
    if (data && (unlinkat(l->root, to, 0) != 0 || renameat(l->root, from, l->root, to) != 0)) {
        sys = errno;
        (void)renameat(l->root, name, l->root, place);
        (void)renameat(l->root, old, l->root, name);
        return sys;
    }
    return renameat(l->root, old, l->root, place) == 0 ? 0 : errno;
}

/* The tree at `place` and the plugin's change places, and `data` stays with the
 * plugin (see the header). False: nothing has changed. */
static bool store__swap(StoreLock *l, const char *place, Str id, Err *err)
{
    const Store *s = l->store;
    const char  *name = store__name(s, "", id, NULL), *data = store__name(s, "", id, "data");
    const char  *hop = arena_fmt(s->a, "%s/data", place).p;
    mode_t       type = store__type(l->root, data);
    bool         moves = S_ISDIR(type) || S_ISLNK(type);
    int          sys;

    if (!lock_renew(&l->lock, 0, err))
        return false;
    if (moves) {
        (void)unlinkat(l->root, hop, 0);        /* what an earlier change left */
        if (symlinkat(arena_fmt(s->a, "../%s", hop).p, l->root, hop) != 0)
            return store__in_use(id, errno, err);
    }
    sys = folder_exchange(l->root, place, l->root, name);
    if (sys == EINVAL) {
        sys = store__swap_slowly(l, place, id, moves);
        return sys == 0 || store__in_use(id, sys, err);
    }
    if (sys != 0)
        return store__in_use(id, sys, err);
    if (!moves)
        return true;
    sys = folder_exchange(l->root, data, l->root, hop);
    if (sys != 0) {
        (void)folder_exchange(l->root, place, l->root, name);
        return store__in_use(id, sys, err);
    }
    (void)unlinkat(l->root, hop, 0);
    return true;
}

/* ---- putting ---- */

static bool store__write(int folder, const char *name, Str text, Err *err)
{
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int sys = fd < 0 || fchmod(fd, 0600) != 0 ? errno : 0;

    while (sys == 0 && text.n) {
        ssize_t n = write(fd, text.p, text.n);
        if (n > 0)
            str_skip(&text, (size_t)n);
        else if (n < 0 && errno != EINTR)
            sys = errno;
    }
    if (fd >= 0 && close(fd) != 0 && sys == 0 && errno != EINTR)
        sys = errno;
    return sys == 0 || err_sys(err, sys, E8010, "cannot write %s", name);
}

/* .files/ID-DIGEST. */
static bool store__list(StoreLock *l, Str id, const Tree *t, Err *err)
{
    Buf  text = buf_make(t->paths + t->n * 80 + 1);
    ABX_UNSET char hex[TREE_HEX];

    listing_write(t, &text);
    tree_digest(t, hex);
    bool ok = store__write(l->root, arena_fmt(l->store->a, ".files/%.*s-%s", STR_ARG(id), hex).p, buf_str(&text), err);
    buf_free(&text);
    return ok;
}

static bool store__stage(StoreLock *l, Str id, const Tree *t, Str receipt, const char *place, Err *err)
{
    int fd;

    if (mkdirat(l->root, place, 0700) != 0)
        return err_sys(err, errno, E8010, "cannot make the folder %s/%s", l->store->root.p, place);
    fd = folder_open(l->root, place);
    if (fd < 0)
        return err_sys(err, errno, E8010, "cannot open the folder %s/%s", l->store->root.p, place);
    bool ok = fchmod(fd, 0700) == 0 || err_sys(err, errno, E8010, "cannot set the mode of %s", place);
    ok = ok && (!t || (treefs_write(t, fd, err) && store__list(l, id, t, err))) &&
         store__write(fd, RECEIPT_FILE, receipt, err);
    int sys = ok ? folder_flush_all(fd) : 0;
    close(fd);
    return ok && (sys == 0 || err_sys(err, sys, E8010, "cannot write %s", l->store->root.p));
}

bool store_put(StoreLock *l, Str id, const Tree *t, Str receipt, StoreChange *out, Err *err)
{
    const Store *s = l->store;
    const char  *place = store__fresh(s, ".staging/", id), *name = store__name(s, "", id, NULL);
    StoreChange  c = {.id = name};
    bool         ok = store__stage(l, id, t, receipt, place, err) && lock_renew(&l->lock, 0, err);

    if (ok && store__type(l->root, name) != 0) {
        c.old = place;
        ok = store__swap(l, place, id, err);
        const char *trash = store__fresh(s, ".trash/", id);
        if (ok && folder_move(l->root, place, l->root, trash) == 0)
            c.old = trash;
    } else if (ok) {
        int sys = folder_move(l->root, place, l->root, name);
        ok = sys == 0 || store__in_use(id, sys, err);
    }
    if (!ok) {
        store__delete(l, place);
        return false;
    }
    int sys = folder_flush(l->root);
    if (sys != 0) {
        if (store_undo(l, &c, err))
            err_sys(err, sys, E8010, "cannot write %s", s->root.p);
        return false;
    }
    *out = c;
    return true;
}

bool store_rollback(StoreLock *l, Str id, StoreChange *out, Err *err)
{
    const Store *s = l->store;
    const char  *old = store__name(s, ".previous/", id, NULL);
    const char  *path = arena_fmt(s->a, "%s/%s", s->root.p, old).p;
    Receipt      r;
    ABX_UNSET char hex[TREE_HEX];

    if (!store_receipt(s, id, s->a, &r))
        return store__missing(id, err);
    if (!S_ISDIR(store__type(l->root, old)) || !receipt_read(path, s->a, &r))
        return err_set(err, ERR_NOT_FOUND, E8001, "there is no earlier version of `%.*s` to go back to", STR_ARG(id));
    if (!str_eq(r.trust, STR("link"))) {
        if (!treefs_digest(path, NULL, NULL, hex, err))
            return err_wrap(err, "the earlier version of `%.*s`", STR_ARG(id));
        if (!str_eq(r.tree_sha256, str_from(hex)))
            return err_set(err, ERR_INPUT, E8011, "the earlier version of `%.*s` is not what its receipt says",
                           STR_ARG(id));
    }
    if (!store__swap(l, old, id, err))
        return false;
    *out = (StoreChange){.id = store__name(s, "", id, NULL), .old = old, .rollback = true};
    (void)folder_flush(l->root);
    return true;
}

bool store_undo(StoreLock *l, StoreChange *c, Err *err)
{
    bool ok = !c->old || store__swap(l, c->old, str_from(c->id), err);

    if (!ok)
        return err_wrap(err, "the change could not be taken back; what was there before is in %s/%s",
                        l->store->root.p, c->old);
    if (!c->rollback) {
        store__delete(l, c->old ? c->old : c->id);
        store__forget(l, str_from(c->id));
    }
    (void)folder_flush(l->root);
    return true;
}

void store_keep(StoreLock *l, StoreChange *c)
{
    Str         id = str_from(c->id);
    const char *previous = store__name(l->store, ".previous/", id, NULL);

    if (c->rollback)
        return;
    /* A tree without a receipt is what an uninstall kept, and a link to a
     * folder is nobody's tree. */
    if (c->old && S_ISDIR(store__type(l->root, c->old)) &&
        faccessat(l->root, arena_fmt(l->store->a, "%s/%s", c->old, RECEIPT_FILE).p, F_OK, 0) == 0) {
        if (folder_move(l->root, c->old, l->root, previous) == EEXIST &&
            folder_exchange(l->root, c->old, l->root, previous) == EINVAL) {
            store__delete(l, previous);
            (void)folder_move(l->root, c->old, l->root, previous);
        }
    } else {
        store__delete(l, previous);
    }
    if (c->old)
        store__delete(l, c->old);
    store__forget(l, id);
    (void)folder_flush(l->root);
}

/* ---- removing, rewriting ---- */

bool store_remove(StoreLock *l, Str id, bool purge, Err *err)
{
    const Store *s = l->store;
    const char  *name = store__name(s, "", id, NULL);
    mode_t       data = store__type(l->root, store__name(s, "", id, "data"));
    bool         keep = !purge && (S_ISDIR(data) || S_ISLNK(data));
    /* With data that shall go it must not look like a leftover, whose data is put back. */
    const char  *place = store__fresh(s, keep ? ".staging/" : ".trash/" STORE_GONE, keep ? id : (Str){0});

    store__delete(l, store__name(s, ".previous/", id, NULL));
    if (!lock_renew(&l->lock, 0, err))
        return false;
    if (keep) {
        if (mkdirat(l->root, place, 0777) != 0)
            return err_sys(err, errno, E8010, "cannot make the folder %s/%s", s->root.p, place);
        if (!store__swap(l, place, id, err)) {
            store__delete(l, place);
            return false;
        }
    } else {
        int sys = folder_move(l->root, name, l->root, place);
        if (sys != 0 && sys != ENOENT)
            return err_sys(err, sys, E8010, "cannot remove `%.*s`: its folder is in use or cannot be renamed", STR_ARG(id));
    }
    (void)folder_flush(l->root);
    store__delete(l, place);
    store__forget(l, id);
    return true;
}

bool store_rewrite(StoreLock *l, Str id, Str old, Str receipt, Err *err)
{
    const Store *s = l->store;
    const char  *place = store__fresh(s, ".staging/", id), *name = store__name(s, "", id, RECEIPT_FILE);
    Receipt      now;

    if (!store_receipt(s, id, s->a, &now) || !str_eq(now.text, old))
        return true;
    if (!store__write(l->root, place, receipt, err)) {
        unlinkat(l->root, place, 0);
        return false;
    }
    int sys = folder_flush_all(l->root);
    if (sys == 0 && renameat(l->root, place, l->root, name) != 0)
        sys = errno;
    if (sys != 0) {
        unlinkat(l->root, place, 0);
        return err_sys(err, sys, E8010, "cannot write the receipt of `%.*s`", STR_ARG(id));
    }
    return true;
}

/* ---- what differs ---- */

/* The listing that was left of the tree with this digest. */
static bool store__listing(const Store *s, Str id, Str digest, Arena *a, Listing *out)
{
    Buf  text = buf_make(LIMIT_TREE_PATHS + (size_t)LIMIT_TREE_FILES * 80);
    Str  raw;
    ABX_UNSET Err err;
    /* The receipt says it: it must not lead elsewhere. */
    bool ok = digest.n == TREE_HEX - 1 && hex_decode(a, digest, &raw) &&
              fs_read(store_path(s, STR(".files"), arena_fmt(a, "%.*s-%.*s", STR_ARG(id), STR_ARG(digest)).p), &text, &err) &&
              listing_read(buf_str(&text), digest, a, out);

    buf_free(&text);
    return ok;
}

bool store_verify(const Store *s, Str id, Arena *a, StoreVerdict *out, Err *err)
{
    Receipt r;
    Listing was, is = listing_make(a);
    ABX_UNSET char hex[TREE_HEX];

    *out = (StoreVerdict){0};
    if (!store_receipt(s, id, a, &r))
        return store__missing(id, err);
    out->link = out->same = str_eq(r.trust, STR("link"));
    if (out->link)
        return true;
    if (!treefs_digest(store_path(s, id, NULL), listing_seen, &is, hex, err))
        return err_wrap(err, "the files of `%.*s` are not those that were installed", STR_ARG(id));
    out->same = str_eq(r.tree_sha256, str_from(hex));
    out->listed = out->same || store__listing(s, id, r.tree_sha256, a, &was);
    if (!out->same && out->listed)
        out->v = listing_compare(&was, &is, a, &out->n);
    return true;
}
