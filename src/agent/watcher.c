#include "agent/watcher.h"

#include "agent/outlet.h"
#include "base/arena.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/fs.h"
#include "os/poll.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WATCHER_GATHER_MS = 50,             /* a write is several events, and a burst of writes thousands */
    WATCHER_CHANGES = 512,              /* told at once */
    WATCHER_PATHS = WATCHER_CHANGES * (PATH_MAX + NAME_MAX),
    WATCHER_COMES = IN_CREATE | IN_MOVED_TO,
    WATCHER_GOES = IN_DELETE | IN_MOVED_FROM,
    WATCHER_MASK = WATCHER_COMES | WATCHER_GOES | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_ONLYDIR | IN_EXCL_UNLINK,
    WATCHER_SELF = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT,
};

typedef struct WatcherFolder {
    int   wd;
    char *path;                         /* NULL: it is gone */
} WatcherFolder;

typedef struct WatcherChange { ItemKind kind; size_t at, n; } WatcherChange;

typedef struct Watcher {
    int            fd;
    const char    *path;                /* as it was named, without slashes at its end: "" for the root */
    const char    *folder;              /* the first one that is watched: it, or where it lies */
    const char    *only;                /* the one name there that counts; NULL: all */
    bool           deep;
    bool           over;                /* there is nothing to watch any more */
    int            first;               /* the first folder's wd */
    WatcherFolder *folders;             /* by wd, which grows */
    size_t         n, cap, gone;
    WatcherChange  changes[WATCHER_CHANGES];    /* not told yet */
    size_t         n_changes;
    Buf            paths;               /* theirs */
    Outlet         out;
} Watcher;

/* --- what is told --- */

static void watcher__item(Watcher *w, ItemKind kind, Str path, size_t number)
{
    if (!path.n)
        path = STR("/");
    outlet_item(&w->out, &(Item){.kind = kind, .number = (uint32_t)number, .path = path});
}

static void watcher__say(Watcher *w)
{
    for (size_t i = 0; i < w->n_changes; i++)
        watcher__item(w, w->changes[i].kind, (Str){w->paths.p + w->changes[i].at, w->changes[i].n}, 0);
    w->n_changes = 0;
    buf_clear(&w->paths);
}

/* What is new about a path is told once, and of one that came not that it changed, too. */
static void watcher__tell(Watcher *w, ItemKind kind, Str path)
{
    for (size_t i = w->n_changes; i-- > 0;) {
        const WatcherChange *c = &w->changes[i];
        if (!str_eq((Str){w->paths.p + c->at, c->n}, path))
            continue;
        if (c->kind == kind || (c->kind == ITEM_CREATED && kind == ITEM_CHANGED))
            return;
        break;
    }
    if (w->n_changes == WATCHER_CHANGES)
        watcher__say(w);
    w->changes[w->n_changes++] = (WatcherChange){kind, w->paths.n, path.n};
    buf_add(&w->paths, path);
}

/* --- the folders --- */

static WatcherFolder *watcher__find(const Watcher *w, int wd)
{
    size_t from = 0, to = w->n;

    while (from < to) {
        size_t half = from + (to - from) / 2;
        if (w->folders[half].wd < wd)
            from = half + 1;
        else
            to = half;
    }
    return from < w->n && w->folders[from].wd == wd ? &w->folders[from] : NULL;
}

static bool watcher__full(Err *err)
{
    return err_set(err, ERR_LIMIT, E4003, "more folders than can be watched (fs.inotify.max_user_watches, and %d)",
                   LIMIT_WATCH_FOLDERS);
}

/* One that may not be watched, or is not there any more, is left out, unless it is the first. */
static bool watcher__add(Watcher *w, const char *path, Err *err)
{
    bool first = !w->n;
    int  wd = inotify_add_watch(w->fd, path, first ? WATCHER_MASK | WATCHER_SELF : WATCHER_MASK | IN_DONT_FOLLOW);

    if (wd < 0 && errno == ENOSPC)
        return watcher__full(err);
    if (wd < 0)
        return !first || err_sys(err, errno, errno == EACCES ? E4002 : E4001, "%s", path);
    /* A mount may show a folder in a second place. */
    if (watcher__find(w, wd))
        return true;
    if (w->n == LIMIT_WATCH_FOLDERS || (w->n && wd < w->folders[w->n - 1].wd))
        return watcher__full(err);
    if (w->n == w->cap) {
        w->cap = w->cap ? 2 * w->cap : 64;
        w->folders = mem_grow(w->folders, w->cap, sizeof *w->folders);
    }
    w->folders[w->n++] = (WatcherFolder){wd, mem_str(str_from(path))};
    return true;
}

static bool watcher__is_folder(int at, const struct dirent *e)
{
    ABX_UNSET struct stat st;

    if (e->d_type != DT_UNKNOWN)
        return e->d_type == DT_DIR;
    return fstatat(at, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static bool watcher__entry(Watcher *w, DIR *d, size_t folder, const struct dirent *e, bool tell, Err *err)
{
    Buf  b = buf_make(2 * PATH_MAX);
    bool ok = true;

    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
        return true;
    buf_addf(&b, "%s/%s", w->folders[folder].path, e->d_name);
    if (tell)
        watcher__tell(w, ITEM_CREATED, buf_str(&b));
    buf_addc(&b, '\0');
    if (watcher__is_folder(dirfd(d), e))
        ok = watcher__add(w, b.p, err);
    buf_free(&b);
    return ok;
}

/* What lies in the folders from `at` on, and in those that this adds. Each was
 * watched before it is looked into, so that nothing comes unseen. */
static bool watcher__look(Watcher *w, size_t at, bool tell, Err *err)
{
    const struct dirent *e;
    bool                 ok = true;

    for (; at < w->n && ok; at++) {
        const char *path = w->folders[at].path;
        int         fd = open(*path ? path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC | (at ? O_NOFOLLOW : 0));
        DIR        *d = fd < 0 ? NULL : fdopendir(fd);
        while (d && ok && (e = readdir(d)))
            ok = watcher__entry(w, d, at, e, tell, err);
        if (d)
            closedir(d);
    }
    return ok;
}

static bool watcher__below(const char *path, Str folder)
{
    return strncmp(path, folder.p, folder.n) == 0 && (path[folder.n] == '\0' || path[folder.n] == '/');
}

/* Forget those that are gone, and what lies at or below `folder`; NULL: none. The first stays. */
static void watcher__forget(Watcher *w, const Str *folder)
{
    size_t n = 1;

    for (size_t i = 1; i < w->n; i++) {
        WatcherFolder *f = &w->folders[i];
        if (f->path && !(folder && watcher__below(f->path, *folder))) {
            w->folders[n++] = *f;
            continue;
        }
        if (f->path)
            inotify_rm_watch(w->fd, f->wd);
        mem_free(f->path);
    }
    w->n = n;
    w->gone = 0;
}

/* --- what happens --- */

static void watcher__end(Watcher *w)
{
    if (!w->over)
        watcher__tell(w, ITEM_REMOVED, str_from(w->path));
    w->over = true;
}

/* Folders may have come unseen: all is looked at again. */
static bool watcher__lost(Watcher *w, Err *err)
{
    Str  all = str_from(w->folders[0].path);
    bool ok = true;

    watcher__say(w);
    if (inotify_add_watch(w->fd, w->folder, WATCHER_MASK | WATCHER_SELF) != w->first)
        watcher__end(w);
    watcher__forget(w, &all);
    if (w->deep && !w->over)
        ok = watcher__look(w, 0, false, err);
    if (!w->over)
        watcher__item(w, ITEM_LOST, str_from(w->path), 0);
    return ok;
}

static void watcher__self(Watcher *w, WatcherFolder *f, uint32_t mask)
{
    bool first = f->wd == w->first;

    if (first && (mask & (WATCHER_SELF | IN_IGNORED)))
        watcher__end(w);
    else if (first && (mask & IN_ATTRIB) && !w->only)
        watcher__tell(w, ITEM_CHANGED, str_from(w->path));
    else if (!first && (mask & IN_IGNORED)) {
        mem_free(f->path);
        f->path = NULL;
        if (++w->gone > 64 + w->n / 2)
            watcher__forget(w, NULL);
    }
}

static bool watcher__named(Watcher *w, const WatcherFolder *f, const struct inotify_event *e, Err *err)
{
    ItemKind kind = e->mask & WATCHER_COMES ? ITEM_CREATED : e->mask & WATCHER_GOES ? ITEM_REMOVED : ITEM_CHANGED;
    Buf      b = buf_make(2 * PATH_MAX);
    size_t   at = w->n;
    bool     ok = true;

    if (w->only)
        buf_add(&b, strcmp(e->name, w->only) == 0 ? str_from(w->path) : (Str){0});
    else
        buf_addf(&b, "%s/%s", f->path, e->name);
    Str path = buf_str(&b);
    if (path.n)
        watcher__tell(w, kind, path);
    if (w->deep && (e->mask & IN_ISDIR) && (e->mask & WATCHER_COMES)) {
        buf_addc(&b, '\0');
        ok = watcher__add(w, b.p, err) && watcher__look(w, at, true, err);
    } else if (w->deep && (e->mask & IN_ISDIR) && (e->mask & IN_MOVED_FROM)) {
        watcher__forget(w, &path);
    }
    buf_free(&b);
    return ok;
}

static bool watcher__read(Watcher *w, Err *err)
{
    char    bytes[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = read(w->fd, bytes, sizeof bytes);
    bool    ok = n > 0 || errno == EAGAIN || errno == EINTR || err_sys(err, errno, E0000, "inotify");

    for (ssize_t at = 0; at < n && ok && !w->over;) {
        const struct inotify_event *e = (const void *)(bytes + at);
        WatcherFolder              *f = watcher__find(w, e->wd);
        if (e->mask & IN_Q_OVERFLOW)
            ok = watcher__lost(w, err);
        else if (f && f->path && e->len)
            ok = watcher__named(w, f, e, err);
        else if (f && f->path)
            watcher__self(w, f, e->mask);
        at += (ssize_t)(sizeof *e + e->len);
    }
    return ok;
}

/* Until it is ended, or there is nothing more to watch. */
static bool watcher__run(Watcher *w, Err *err)
{
    Deadline due = DEADLINE_NONE;
    ABX_UNSET Err other;

    while (!w->over) {
        struct pollfd fds[3] = {{.fd = w->fd, .events = POLLIN}, {.fd = STDOUT_FILENO}};
        bool came = poll_wait(fds, 2, -1, due, err);
        if (came && fds[1].revents)
            return err_set(err, ERR_CLOSED, E0000, "nobody reads");
        bool ok = came ? watcher__read(w, err) : err->kind == ERR_TIMEOUT;
        if (due == DEADLINE_NONE)
            due = clock_after(WATCHER_GATHER_MS);
        if (ok && !w->over && !clock_passed(due))
            continue;
        watcher__say(w);
        due = DEADLINE_NONE;
        if (!outlet_flush(&w->out, ok ? err : &other) || !ok)
            return false;
    }
    return true;
}

/* --- the beginning --- */

static bool watcher__begin(Watcher *w, char *path, Arena *a, Err *err)
{
    size_t n = strlen(path);
    FsType type = fs_type(path);
    Str    real;

    while (n && path[n - 1] == '/')
        path[--n] = '\0';
    w->path = path;
    w->folder = n ? path : "/";
    if (type != FS_FOLDER) {
        /* A file may be replaced by another one of its name, as editors do: its folder knows. */
        if (!fs_real(path, a, &real, err)) {
            err->code = err->kind == ERR_DENIED ? E4002 : E4001;
            return false;
        }
        char *slash = strrchr(real.p, '/');
        *slash = '\0';
        w->only = slash + 1;
        w->folder = slash == real.p ? "/" : real.p;
        w->deep = false;
    }
    w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w->fd < 0)
        return err_sys(err, errno, errno == EMFILE ? E4003 : E8004, "inotify");
    if (!watcher__add(w, w->folder, err))
        return false;
    w->first = w->folders[0].wd;
    if (!w->only && !n)
        w->folders[0].path[0] = '\0';   /* "/": a slash follows */
    return !w->deep || watcher__look(w, 0, false, err);
}

int watcher_main(int argc, char **argv)
{
    static Watcher w = {0};
    Arena a = arena_make(4 * PATH_MAX);
    ABX_UNSET Err err;

    w.out = outlet_make();
    w.paths = buf_make(WATCHER_PATHS);
    bool ok = outlet_words(argc, argv, "d", 2, 2, &err);
    if (ok) {
        w.deep = argv[0][1] == 'd';
        ok = watcher__begin(&w, argv[1], &a, &err);
    }
    if (ok) {
        watcher__item(&w, ITEM_READY, str_from(w.path), w.n);
        ok = outlet_flush(&w.out, &err) && watcher__run(&w, &err);
    }
    outlet_free(&w.out);
    buf_free(&w.paths);
    arena_free(&a);
    return ok ? 0 : outlet_fail(&err);
}
