#include "agent/dirs.h"

#include "agent/answer.h"
#include "agent/owner.h"
#include "agent/query.h"
#include "agent/place.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "data/glob.h"
#include "data/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- list and search --- */

typedef struct DirsFrame {
    Buf          text;          /* the names, each with a NUL behind it */
    const char **names;         /* sorted */
    size_t       n, at;
    size_t       path;          /* how long the path of this folder is */
} DirsFrame;

typedef struct DirsWalk {
    Buf        path;
    DirsFrame *frames;          /* the folders on the way down */
    size_t     depth;
    size_t     deepest;         /* levels that are listed */
    char      *pattern;         /* search: what a name must match; NULL: list */
    Buf        out;             /* entries, before it is known whether they are all */
    bool       any;             /* an entry was written */
} DirsWalk;

static int dirs__by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool dirs__is_dot(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Go into the folder that w->path names; one that cannot be read is empty.
 * False: errno. */
static bool dirs__enter(DirsWalk *w)
{
    int            fd = open(w->path.p, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR           *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (!dir)
        return false;
    DirsFrame f = {.text = buf_make(LIMIT_AGENT_NAMES), .path = w->path.n - 1};
    while ((e = readdir(dir)))
        if (!dirs__is_dot(e->d_name)) {
            buf_add(&f.text, (Str){e->d_name, strlen(e->d_name) + 1});
            f.n++;
        }
    closedir(dir);
    if (f.text.over) {
        buf_free(&f.text);
        errno = ENOMEM;
        return false;
    }
    f.names = mem_grow(NULL, f.n, sizeof *f.names);
    const char *name = f.text.p;
    for (size_t i = 0; i < f.n; i++, name += strlen(name) + 1)
        f.names[i] = name;
    qsort(f.names, f.n, sizeof *f.names, dirs__by_name);
    w->frames = mem_grow(w->frames, w->depth + 1, sizeof *w->frames);
    w->frames[w->depth++] = f;
    return true;
}

static void dirs__leave(DirsWalk *w)
{
    DirsFrame *f = &w->frames[--w->depth];

    buf_free(&f->text);
    mem_free(f->names);
}

static void dirs__free(DirsWalk *w)
{
    while (w->depth)
        dirs__leave(w);
    mem_free(w->frames);
    mem_free(w->pattern);
    buf_free(&w->out);
    buf_free(&w->path);
    mem_free(w);
}

static void dirs__gone(HttpdCall *c, bool whole)
{
    (void)whole;
    dirs__free(c->ctx);
}

static void dirs__write_entry(DirsWalk *w, const struct stat *st)
{
    JsonOut out = json_out(&w->out, JSON_COMPACT);

    buf_addc(&w->out, w->any ? ',' : '[');
    w->any = true;
    owner_put_entry(&out, (Str){w->path.p, w->path.n - 1}, st);
}

/* The next name of the folder at hand. */
static void dirs__step(DirsWalk *w)
{
    DirsFrame  *f = &w->frames[w->depth - 1];
    ABX_UNSET struct stat st;

    if (f->at == f->n) {
        dirs__leave(w);
        return;
    }
    const char *name = f->names[f->at++];
    w->path.n = f->path;
    if (f->path == 0 || w->path.p[f->path - 1] != '/')
        buf_addc(&w->path, '/');
    buf_add(&w->path, (Str){name, strlen(name) + 1});
    /* What vanished since, or has a path too long for the kernel, is not there. */
    if (w->path.over || lstat(w->path.p, &st) != 0) {
        w->path.over = false;
        return;
    }
    bool folder = S_ISDIR(st.st_mode);
    if (w->pattern ? !folder && glob_match(str_from(w->pattern), str_from(name)) : true)
        dirs__write_entry(w, &st);
    if (folder && w->depth < w->deepest)
        dirs__enter(w);
}

/* A short list goes out with its length, as stock clients know it; a long one
 * in chunks, as far as there is room. */
static void dirs__room(HttpdCall *c)
{
    static const Header type = {{"Content-Type", 12}, {"application/json; charset=utf-8", 31}};
    DirsWalk *w = c->ctx;

    /* Others wait, too, where few names match. */
    for (int i = 0; i < 512 && w->depth && w->out.n < LIMIT_HTTPD_ROOM; i++)
        dirs__step(w);
    if (w->depth == 0)
        buf_add(&w->out, w->any ? STR("]") : STR("[]"));
    if (!httpd_started(c) && w->depth == 0) {
        httpd_start(c, 200, &type, 1, (int64_t)w->out.n);
    } else if (w->out.n < LIMIT_HTTPD_ROOM && w->depth) {
        httpd_again(c);
        return;
    } else if (!httpd_started(c)) {
        httpd_start(c, 200, &type, 1, -1);
    }
    if (w->depth && !httpd_room(c))
        return;
    httpd_write(c, buf_str(&w->out));
    buf_clear(&w->out);
    if (w->depth)
        httpd_again(c);
    else
        httpd_finish(c);
}

/* Begin a walk at `path`; `pattern` as in DirsWalk. */
static void dirs__walk(HttpdCall *c, const char *path, size_t deepest, Str pattern)
{
    static const HttpdHandler walk = {.room = dirs__room, .gone = dirs__gone};
    DirsWalk *w = mem_new(sizeof *w);

    *w = (DirsWalk){.deepest = deepest, .path = buf_make(2 * PATH_MAX), .out = buf_make(2 * LIMIT_HTTPD_ROOM)};
    buf_add(&w->path, (Str){path, strlen(path) + 1});
    if (pattern.p)
        w->pattern = mem_str(pattern);
    if (deepest && !dirs__enter(w)) {
        if (errno == ENOTDIR)
            answer_error(c, 400, "INVALID_REQUEST_BODY", "path is not a directory: %s", path);
        else
            answer_sys(c, errno, "open %s", path);
        dirs__free(w);
        return;
    }
    c->handler = &walk;
    c->ctx = w;
    httpd_again(c);
}

/* The folder that is asked for; NULL: refused. */
static const char *dirs__asked(HttpdCall *c)
{
    Str value;

    if (!query_get(c->head.target, "path", c->arena, &value)) {
        answer_error(c, 400, "MISSING_QUERY", "missing query parameter 'path'");
        return NULL;
    }
    const char *path = query_file(value, c->arena);
    if (!path)
        answer_error(c, 400, "INVALID_REQUEST_BODY", "the path is empty or has a NUL");
    return path;
}

static bool dirs__refuse_link(HttpdCall *c, const char *path)
{
    ABX_UNSET struct stat st;
    bool        is_link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);

    if (is_link)
        answer_error(c, 400, "INVALID_REQUEST_BODY", "path is a symbolic link, refusing to traverse: %s", path);
    return is_link;
}

void dirs_list(HttpdCall *c)
{
    const char *path = dirs__asked(c);
    int64_t     depth = 1;
    Str         text;
    ABX_UNSET struct stat st;

    if (!path)
        return;
    if (query_get(c->head.target, "depth", c->arena, &text) && (!num_i64(text, &depth) || depth < 0))
        answer_error(c, 400, "INVALID_REQUEST_BODY", "depth is not a number from 0 on");
    else if (lstat(path, &st) != 0)
        answer_sys(c, errno, "lstat %s", path);
    else if (!dirs__refuse_link(c, path))
        dirs__walk(c, path, depth > PATH_MAX ? PATH_MAX : (size_t)depth, (Str){0});
}

void dirs_search(HttpdCall *c)
{
    const char *path = dirs__asked(c);
    Str         pattern = STR("**");
    ABX_UNSET struct stat st;

    if (!path)
        return;
    query_get(c->head.target, "pattern", c->arena, &pattern);
    if (pattern.n == 0)
        pattern = STR("**");
    if (stat(path, &st) != 0)
        answer_sys(c, errno, "stat %s", path);
    else if (!dirs__refuse_link(c, path))
        dirs__walk(c, path, PATH_MAX, pattern);
}

/* --- make --- */

static void dirs__make_one(HttpdCall *c, const char *path, const Json *how, Arena *a)
{
    ABX_UNSET struct stat st;
    Owner       o;
    ABX_UNSET Err err;
    bool        is_new = stat(path, &st) != 0;

    if (!owner_from_json(how, &o, &err))
        answer_error(c, 500, "RUNTIME_ERROR", "error creating directory %s. %s", path, err.text);
    else if (!place_folders(arena_cstr(a, str_from(path)), 0755))
        answer_error(c, 500, "RUNTIME_ERROR", "error accessing file: mkdir %s: %s", path, strerror(errno));
    else if (is_new && !owner_apply(path, &o, &err))
        answer_error(c, 500, "RUNTIME_ERROR", "error creating directory %s. %s", path, err.text);
}

void dirs_make(HttpdCall *c, Str body)
{
    Arena       a = arena_make(LIMIT_AGENT_ARENA);
    const Json *all;
    ABX_UNSET Err err;

    if (!json_parse(body, &a, &all, &err) || all->type != JSON_OBJECT)
        answer_error(c, 400, "INVALID_REQUEST_BODY",
                     "error parsing request, MAYBE invalid body format. an object is wanted");
    else
        for (size_t i = 0; i < json_count(all) && !httpd_started(c); i++) {
            const char *path = query_file(all->keys[i], &a);
            if (path)
                dirs__make_one(c, path, &all->items[i], &a);
            else
                answer_error(c, 400, "INVALID_REQUEST_BODY", "the path is empty or has a NUL");
        }
    if (!httpd_started(c))
        answer_empty(c);
    arena_free(&a);
}

/* --- remove --- */

/* The way down, without a descriptor for each level: names, and which folder
 * each of them lies in, to see on the way up that nothing was moved. */
typedef struct DirsTrail {
    Buf    names;               /* each with a NUL behind it */
    struct { dev_t dev; ino_t ino; size_t name; } *at;
    size_t n;
} DirsTrail;

static bool dirs__down(DIR **dir, const char *name, DirsTrail *t)
{
    ABX_UNSET struct stat st;
    int         fd = openat(dirfd(*dir), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR        *child = fd < 0 ? NULL : fdopendir(fd);

    if (!child || fstat(dirfd(*dir), &st) != 0) {
        if (child)
            closedir(child);
        return false;
    }
    t->at = mem_grow(t->at, t->n + 1, sizeof *t->at);
    t->at[t->n].dev = st.st_dev;
    t->at[t->n].ino = st.st_ino;
    t->at[t->n++].name = t->names.n;
    buf_add(&t->names, (Str){name, strlen(name) + 1});
    closedir(*dir);
    *dir = child;
    errno = ENAMETOOLONG;
    return !t->names.over;
}

/* Back to the folder above, and remove the one that is empty now. */
static bool dirs__up(DIR **dir, DirsTrail *t)
{
    ABX_UNSET struct stat st;
    int         fd = openat(dirfd(*dir), "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return false;
    t->n--;
    const char *name = t->names.p + t->at[t->n].name;
    errno = EBUSY;
    bool ok = fstat(fd, &st) == 0 && st.st_dev == t->at[t->n].dev && st.st_ino == t->at[t->n].ino &&
              unlinkat(fd, name, AT_REMOVEDIR) == 0;
    DIR *up = ok ? fdopendir(fd) : NULL;
    if (!up) {
        int sys = errno;
        close(fd);
        errno = sys;
        return false;
    }
    t->names.n = t->at[t->n].name;
    closedir(*dir);
    *dir = up;
    return true;
}

/* Remove all that is in an open folder; links are removed, not followed. */
static bool dirs__empty(DIR **dir, DirsTrail *t)
{
    struct dirent *e;

    for (;;) {
        errno = 0;
        e = readdir(*dir);
        if (!e && errno)
            return false;
        if (!e && t->n == 0)
            return true;
        if (!e) {
            if (!dirs__up(dir, t))
                return false;
            continue;
        }
        if (dirs__is_dot(e->d_name) || unlinkat(dirfd(*dir), e->d_name, 0) == 0 || errno == ENOENT)
            continue;
        int sys = errno;
        if ((sys != EISDIR && sys != EPERM) || !dirs__down(dir, e->d_name, t)) {
            /* Some systems say EPERM for a folder; if it was none, that is the reason. */
            errno = sys == EPERM && errno == ENOTDIR ? EPERM : errno;
            return false;
        }
    }
}

static bool dirs__remove(const char *path)
{
    DirsTrail t = {.names = buf_make(LIMIT_AGENT_NAMES)};

    if (unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR)
        return true;
    if (errno != EISDIR && errno != EPERM)
        return false;
    int  why = errno;
    int  fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        errno = why == EPERM && errno == ENOTDIR ? EPERM : errno;
        return false;
    }
    bool ok = dirs__empty(&dir, &t);
    int  sys = errno;
    closedir(dir);
    buf_free(&t.names);
    mem_free(t.at);
    errno = sys;
    return ok && rmdir(path) == 0;
}

void dirs_remove(HttpdCall *c)
{
    Str   rest = query_text(c->head.target), key, value;
    Arena a = arena_make(LIMIT_HTTPD_ARENA);

    for (; !httpd_started(c) && query_next(&rest, &a, &key, &value); arena_reset(&a)) {
        if (!str_eq(key, STR("path")))
            continue;
        const char *path = query_file(value, &a);
        Str         base = query_base(path ? path : "/");
        if (str_eq(base, STR("/")) || str_eq(base, STR(".")) || str_eq(base, STR("..")))
            answer_error(c, 400, "INVALID_REQUEST_BODY", "this path is not removed");
        else if (!dirs__remove(path))
            answer_error(c, 500, "RUNTIME_ERROR", "error removing directory %s. %s", path, strerror(errno));
    }
    if (!httpd_started(c))
        answer_empty(c);
    arena_free(&a);
}
