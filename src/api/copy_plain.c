#include "api/copy.h"

#include "api/hash.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/glob.h"
#include "host/spool.h"
#include "os/env.h"
#include "os/fs.h"
#include "sync/receiver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_PLAIN_FILE = 0644, COPY_PLAIN_FOLDER = 0755, COPY_PLAIN_ROOM = 16 << 20 };

/* What is kept of an entry of a list; its name follows. */
typedef struct CopyPlainEntry {
    FileType type;
    int      mode;
    int64_t  size;
    size_t   n;
} CopyPlainEntry;

typedef struct CopyPlain {
    Copy       *c;
    Receiver   *receiver;       /* NULL: the target is in a sandbox, */
    bool        inside;         /* and a folder, in which things lie by their names */
    Str         why;            /* what the receiver is told has failed so */
    Arena       answer;         /* of the last question */
    Buf         lists;          /* the folders that are open */
    int         modes[LIMIT_SYNC_DEPTH + 1];    /* what they get in the end; -1: they have it */
    size_t      depth;
    int         spool;          /* between sandboxes: the file that is on its way; -1 */
    CopyLocal   file;
    Sha256      hash;
    bool        broken;         /* it is this end that failed */
} CopyPlain;

/* One entry cannot be; the others may. E8000, E8005: a plugin has no other words for what a file is. */
static bool copy_plain__alone(const Err *err)
{
    bool lost = err->kind == ERR_CANCELLED || err->kind == ERR_TIMEOUT || err->kind == ERR_CLOSED || err->kind == ERR_UNSENT;

    return !lost && ((err->code >= E4000 && err->code <= E4003) || err->code == E8000 || err->code == E8002 || err->code == E8005 ||
                     err->code == E8020);
}

static bool copy_plain__look(CopyPlain *s, const abx_sandbox *b, Str path, FileInfo *info, bool *there, bool *folder, Err *err)
{
    arena_reset(&s->answer);
    return copy_look(b, path, &s->answer, info, there, folder, err);
}

/* ---- a target in a sandbox ---- */

static Str copy_plain__at(const CopyPlain *s, Str path, Arena *a)
{
    Str target = str_from(s->c->o->target), root;

    (void)str_cut(&path, '/', &root);
    if (s->inside && !str_eq(root, STR(".")))
        target = copy_join(a, target, root);
    return path.p ? copy_join(a, target, path) : target;
}

/* By the table of sync/receiver.h. */
static bool copy_plain__target(CopyPlain *s, bool folder, Err *err)
{
    Copy    *c = s->c;
    Str      target = str_from(c->o->target);
    ABX_UNSET FileInfo info;
    bool     there;

    if (!copy_plain__look(s, c->o->to, target, &info, &there, &s->inside, err))
        return false;
    if (there && !s->inside && (c->several || folder))
        return err_set(err, ERR_REMOTE, E4000, "%s is no folder in the sandbox", c->o->target);
    if (!there && c->several && !copy_ends_in_folder(target))
        return err_set(err, ERR_NOT_FOUND, E4001, "there is no folder %s in the sandbox", c->o->target);
    s->inside |= !there && copy_ends_in_folder(target);
    return true;
}

static bool copy_plain__make(CopyPlain *s, Str path, int mode, bool *made, Err *err)
{
    Copy     *c = s->c;
    Provider *p = c->o->to->session->provider;
    Arena     a = c->a;
    Str       at = copy_plain__at(s, path, &a);
    ABX_UNSET FileInfo info;
    bool      there = true, folder;

    s->modes[s->depth] = -1;
    /* One that is there stays with its mode. */
    if (p->kind->exec && mode >= 0 && mode != COPY_PLAIN_FOLDER && copy_plain__look(s, c->o->to, at, &info, &there, &folder, err) &&
        !there)
        s->modes[s->depth] = mode;
    *made = p->kind->folder_make(p, str_from(c->o->to->id), at, DEADLINE_NONE, err);
    if (*made)
        copy_done(c, ABX_COPY_DONE, path, -1, NULL);
    else if (copy_plain__alone(err))
        copy_failed(c, path, err->text);
    else
        return false;
    return true;
}

static bool copy_plain__left(CopyPlain *s, Str path, Err *err)
{
    Arena     a = s->c->a;
    ABX_UNSET char mode[16];
    ABX_UNSET abx_error e;

    if (s->modes[s->depth] < 0)
        return true;
    snprintf(mode, sizeof mode, "%04o", (unsigned)s->modes[s->depth]);
    if (abx_chmod(s->c->o->to, arena_cstr(&a, copy_plain__at(s, path, &a)), mode, 0, &e) == 0)
        return true;
    if (e.kind == ABX_CANCELLED)
        return err_set(err, ERR_CANCELLED, E0000, "%s", e.message);
    copy_failed(s->c, path, e.message);
    return true;
}

static bool copy_plain__put(CopyPlain *s, Str path, CopyLocal *f, Err *err)
{
    Copy     *c = s->c;
    Provider *p = c->o->to->session->provider;
    Arena     keep = c->a;
    Str       at = copy_plain__at(s, path, &c->a);      /* what is told meanwhile lies behind it */
    int64_t   size = 0;
    ABX_UNSET unsigned char sum[SHA256_SIZE];

    f->c = c;
    f->hash = sha256_make();
    bool ok = p->kind->file_write(p, str_from(c->o->to->id), at, f->mode, copy_source(f), &size, DEADLINE_NONE, err);
    sha256_end(&f->hash, sum);
    ok = ok && (!c->verify || hash_compare(c->o->to, at, sum, false, err));
    c->a = keep;
    if (ok)
        copy_done(c, ABX_COPY_DONE, path, size, sum);
    else if ((ok = copy_plain__alone(err)))
        copy_failed(c, path, err->text);
    return ok;
}

/* ---- from here ---- */

static bool copy_plain__up(CopyPlain *s, Walk *w, Err *err)
{
    WalkEntry e;
    CopyLocal f;
    bool      made = true;

    while (walk_next(w, &e)) {
        bool ok = true;
        switch (e.kind) {
        case WALK_FOLDER:
            ok = copy_plain__make(s, e.path, (int)e.mode, &made, err);
            if (made)
                s->depth++;
            else
                walk_skip(w);
            break;
        case WALK_FILE:
            f = (CopyLocal){.fd = e.fd, .name = "it", .mode = (int)e.mode, .size = e.size > 0 ? e.size : -1,
                            .changed = e.changed, .cancel_fd = s->c->o->to->session->provider->host.cancel_fd};
            ok = copy_plain__put(s, e.path, &f, err);
            break;
        case WALK_LINK:
            copy_failed(s->c, e.path, "without the agent links cannot be made");
            break;
        case WALK_FAILED:
            copy_failed(s->c, e.path, copy_reason(e.sys));
            break;
        case WALK_LEAVE:
            s->depth--;
            ok = copy_plain__left(s, e.path, err);
            break;
        }
        if (!ok)
            return false;
    }
    return true;
}

/* ---- from a sandbox ---- */

/* A name that cannot be said to the backend: it put something in place of bytes
 * that are not UTF-8. */
static bool copy_plain__unsaid(Str name)
{
    uint32_t c;

    while (name.n)
        if (!utf8_next(&name, &c) || c == 0xfffd)
            return true;
    return false;
}

/* In the order of a list: each name once, and nothing that leads elsewhere. */
static bool copy_plain__honest(Str name, Str before)
{
    return name.n && !str_has(name, '/') && !str_has(name, '\0') && !str_eq(name, STR(".")) && !str_eq(name, STR("..")) &&
           (copy_plain__unsaid(name) || !before.p || str_order(before, name) < 0);
}

/* The list of a folder, behind the others. False: *err; E8020 ends the copy. */
static bool copy_plain__list(CopyPlain *s, Str remote, Err *err)
{
    const abx_sandbox *b = s->c->o->from;
    Provider *p = b->session->provider;
    FileList  list = {0};
    Str       before = {0};

    arena_reset(&s->answer);
    bool ok = p->kind->file_list(p, str_from(b->id), remote, &s->answer, &list, DEADLINE_NONE, err);

    for (size_t i = 0; ok && i < list.count; i++) {
        const FileInfo *f = &list.items[i];
        CopyPlainEntry  e = {f->type, f->mode, f->size, f->name.n};
        s->broken = !copy_plain__honest(f->name, before);
        if (s->broken)
            ok = err_set(err, ERR_INPUT, E8020, "the sandbox is not to be trusted: what it lists in %.*s is no list of names",
                         STR_ARG(remote));
        if (!copy_plain__unsaid(f->name))
            before = f->name;
        buf_add(&s->lists, (Str){(const char *)&e, sizeof e});
        buf_add(&s->lists, f->name);
    }
    if (ok && s->lists.over) {
        s->lists.over = false;
        ok = err_set(err, ERR_LIMIT, E4003, "there are too many names in it");
    }
    return ok;
}

static bool copy_plain__take(void *ctx, Str bytes, Err *err)
{
    CopyPlain *s = ctx;

    if (s->c->verify)
        sha256_add(&s->hash, bytes);
    s->file.size += (int64_t)bytes.n;
    if (s->receiver)
        return receiver_bytes(s->receiver, bytes, err) || !(s->broken = true);
    while (bytes.n) {
        ssize_t n = write(s->spool, bytes.p, bytes.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            s->broken = true;
            return err_sys(err, errno, E4000, "cannot write what is on its way");
        }
        str_skip(&bytes, (size_t)n);
    }
    return true;
}

static bool copy_plain__read(CopyPlain *s, Str remote, Err *err)
{
    const abx_sandbox *b = s->c->o->from;
    Provider *p = b->session->provider;
    int64_t   size;
    ABX_UNSET unsigned char sum[SHA256_SIZE];

    s->hash = sha256_make();
    if (!p->kind->file_read(p, str_from(b->id), remote, (Sink){copy_plain__take, s}, &size, DEADLINE_NONE, err))
        return false;
    sha256_end(&s->hash, sum);
    return !s->receiver || s->c->o->verify <= 0 || hash_compare(b, remote, sum, false, err);
}

/* An entry of the sandbox's cannot be read. */
static bool copy_plain__lost(CopyPlain *s, Str path, Str why, Err *err)
{
    bool ok = true;

    s->why = why;
    if (s->receiver)
        ok = receiver_failed(s->receiver, path, EIO, err);
    else
        copy_failed(s->c, path, why.p);
    s->why = (Str){0};
    return ok;
}

static bool copy_plain__failed(CopyPlain *s, Str path, Err *err)
{
    return !s->broken && copy_plain__alone(err) && copy_plain__lost(s, path, str_from(err->text), err);
}

static bool copy_plain__file(CopyPlain *s, Str remote, Str path, const CopyPlainEntry *e, Err *err)
{
    int mode = e->mode >= 0 ? e->mode & 0777 : COPY_PLAIN_FILE;

    s->file = (CopyLocal){.fd = s->spool, .name = "it", .mode = mode,
                          .cancel_fd = s->c->o->from->session->provider->host.cancel_fd};
    if (s->receiver && !receiver_file(s->receiver, path, (unsigned)mode, e->size > 0 ? e->size : -1, err))
        return false;
    if (!s->receiver && (ftruncate(s->spool, 0) != 0 || lseek(s->spool, 0, SEEK_SET) != 0))
        return err_sys(err, errno, E4000, "cannot write what is on its way");
    if (!copy_plain__read(s, remote, err))
        return copy_plain__failed(s, path, err);
    if (e->size > 0 && s->file.size != e->size)
        return copy_plain__lost(s, path, STR("it has another size than the list says"), err);
    return s->receiver ? receiver_whole(s->receiver, NULL, err)
                       : lseek(s->spool, 0, SEEK_SET) == 0 && copy_plain__put(s, path, &s->file, err);
}

static bool copy_plain__folder(CopyPlain *s, Str remote, Str path, int mode, Err *err);

static bool copy_plain__entry(CopyPlain *s, Str remote, Str path, const CopyPlainEntry *e, Err *err)
{
    switch (e->type) {
    case FILE_REGULAR: return copy_plain__file(s, remote, path, e, err);
    case FILE_FOLDER:  return copy_plain__folder(s, remote, path, e->mode, err);
    case FILE_LINK:    return copy_plain__lost(s, path, STR("without the agent links cannot be read"), err);
    case FILE_OTHER:   break;
    }
    return copy_plain__lost(s, path, str_from(copy_reason(EOPNOTSUPP)), err);
}

static bool copy_plain__inside(CopyPlain *s, Str remote, Str path, Err *err)
{
    Copy  *c = s->c;
    size_t from = s->lists.n, to;
    bool   ok = true;

    if (s->depth == LIMIT_SYNC_DEPTH)
        return copy_plain__lost(s, path, str_from(copy_reason(ELOOP)), err);
    if (!copy_plain__list(s, remote, err)) {
        s->lists.n = from;
        return copy_plain__failed(s, path, err);
    }
    to = s->lists.n;
    s->depth++;
    for (size_t at = from; ok && at < to;) {
        CopyPlainEntry e;
        Arena          keep = c->a;
        memcpy(&e, s->lists.p + at, sizeof e);
        Str name = arena_str(&c->a, (Str){s->lists.p + at + sizeof e, e.n}), below = copy_join(&c->a, path, name);
        at += sizeof e + e.n;
        if (copy_plain__unsaid(name))
            copy_failed(c, below, "its name is not UTF-8, and the backend's own calls can say no other");
        else if (below.n > LIMIT_SYNC_PATH)
            copy_failed(c, below, strerror(ENAMETOOLONG));
        else
            ok = copy_plain__entry(s, copy_join(&c->a, remote, name), below, &e, err);
        c->a = keep;
    }
    s->depth--;
    s->lists.n = from;
    return ok;
}

static bool copy_plain__folder(CopyPlain *s, Str remote, Str path, int mode, Err *err)
{
    bool made = true;

    if (s->receiver)
        return receiver_folder(s->receiver, path, mode >= 0 ? (unsigned)mode & 0777 : COPY_PLAIN_FOLDER, err) &&
               copy_plain__inside(s, remote, path, err);
    if (!copy_plain__make(s, path, mode >= 0 ? mode & 0777 : -1, &made, err))
        return false;
    return !made || (copy_plain__inside(s, remote, path, err) && copy_plain__left(s, path, err));
}

/* ---- its sources ---- */

typedef struct CopyPlainRoots { Str *v; size_t n, cap; } CopyPlainRoots;

static bool copy_plain__add(CopyPlain *s, CopyPlainRoots *r, Str path, Err *err)
{
    if (r->n == LIMIT_SYNC_ROOTS || s->c->a.size - s->c->a.used < COPY_PLAIN_ROOM)
        return err_set(err, ERR_LIMIT, E4003, "the pattern matches more than %zu paths", r->n);
    if (r->n == r->cap)
        r->v = mem_grow(r->v, r->cap = r->cap ? 2 * r->cap : 16, sizeof *r->v);
    r->v[r->n++] = arena_str(&s->c->a, path);
    return true;
}

static bool copy_plain__match(CopyPlain *s, CopyPlainRoots *r, Str base, Str rest, Err *err);

/* The names in `base` that `part` matches, and `rest` below them. */
static bool copy_plain__glob(CopyPlain *s, CopyPlainRoots *r, Str base, Str part, Str rest, Err *err)
{
    size_t from = s->lists.n, to;
    bool   ok = true;

    if (!copy_plain__list(s, base.n ? base : STR("/"), err)) {
        s->lists.n = from;
        return !s->broken && copy_plain__alone(err);        /* no folder: no match */
    }
    to = s->lists.n;
    for (size_t at = from; ok && at < to;) {
        CopyPlainEntry e;
        memcpy(&e, s->lists.p + at, sizeof e);
        Arena a = arena_make(2 * LIMIT_SYNC_PATH + e.n);
        Str   name = {s->lists.p + at + sizeof e, e.n};
        if (glob_name(part, name) && base.n + name.n < LIMIT_SYNC_PATH)
            ok = copy_plain__match(s, r, copy_join(&a, base, name), rest, err);
        arena_free(&a);
        at += sizeof e + e.n;
    }
    s->lists.n = from;
    return ok;
}

static bool copy_plain__match(CopyPlain *s, CopyPlainRoots *r, Str base, Str rest, Err *err)
{
    Str      part = {0};
    ABX_UNSET FileInfo info;
    bool     sign = false, there, folder, ok = true;

    if (base.n + rest.n > LIMIT_SYNC_PATH)
        return true;            /* no path is so long */
    Arena a = arena_make(COPY_PLAIN_ROOM);
    while (!sign && str_cut(&rest, '/', &part)) {
        sign = walk_is_pattern(part);
        if (part.n && !sign)
            base = copy_join(&a, base, part);
    }
    if (sign)
        ok = copy_plain__glob(s, r, base, part, rest, err);
    else
        ok = copy_plain__look(s, s->c->o->from, base, &info, &there, &folder, err) && (!there || copy_plain__add(s, r, base, err));
    arena_free(&a);
    return ok;
}

/* The paths that are meant; in several patterns one may come twice. */
static bool copy_plain__sources(CopyPlain *s, CopyPlainRoots *r, Err *err)
{
    const Copy *c = s->c;
    ABX_UNSET FileInfo info;
    bool        there = true, folder;

    for (size_t i = 0; i < c->o->path_count; i++) {
        Str    path = str_from(c->o->paths[i]);
        size_t before = r->n;
        bool   pattern = c->several && walk_is_pattern(path);
        if (pattern && !copy_plain__look(s, c->o->from, path, &info, &there, &folder, err))
            return false;
        if (!(pattern && !there ? copy_plain__match(s, r, (Str){0}, path, err) : copy_plain__add(s, r, path, err)))
            return false;
        if (r->n == before)
            return err_set(err, ERR_NOT_FOUND, E4001, "nothing in the sandbox matches %.*s", STR_ARG(path));
    }
    return true;
}

/* One source, whatever it is; `first`: the target is to be looked at, too. */
static bool copy_plain__source(CopyPlain *s, Str path, Str name, bool only, bool first, Err *err)
{
    Copy    *c = s->c;
    FileInfo info = {0};
    bool     there, folder;

    if (!copy_plain__look(s, c->o->from, path, &info, &there, &folder, err))
        return false;
    if (!there && only)
        return err_set(err, ERR_NOT_FOUND, E4001, "there is nothing at %.*s in the sandbox", STR_ARG(path));
    if (first && c->o->to && !copy_plain__target(s, folder, err))
        return false;
    CopyPlainEntry e = {info.type, -1, -1, 0};
    if (there && info.type != FILE_LINK) {
        e.mode = info.mode;
        e.size = info.size;
    } else {
        e.type = folder ? FILE_FOLDER : FILE_REGULAR;       /* a link that was named is followed */
    }
    return there ? copy_plain__entry(s, path, name, &e, err) : copy_plain__lost(s, name, STR("there is no such file"), err);
}

static bool copy_plain__down(CopyPlain *s, CopyPlainRoots *r, Err *err)
{
    bool ok = copy_plain__sources(s, r, err);
    Str *names = arena_array(&s->c->a, 2 * r->n, sizeof *names);

    for (size_t i = 0; ok && i < r->n; i++) {
        ok = walk_name(r->v[i], &names[i], err);
        names[r->n + i] = names[i];
    }
    ok = ok && copy_differ(names + r->n, r->n, err);
    for (size_t i = 0; ok && i < r->n; i++)
        ok = copy_plain__source(s, r->v[i], names[i], r->n == 1, i == 0, err);
    return ok && (!s->receiver || receiver_end(s->receiver, err));
}

/* ---- all of it ---- */

static void copy_plain__here(void *ctx, const Item *i)
{
    CopyPlain *s = ctx;

    copy_item(s->c, i, s->why);
}

static void copy_plain__moved(void *ctx, int64_t bytes)
{
    copy_moved(((CopyPlain *)ctx)->c, bytes);
}

static bool copy_plain__spool(CopyPlain *s, Err *err)
{
    Str   folder = env_get("TMPDIR");
    Arena a = s->c->a;

    s->spool = spool_open(folder.n ? arena_cstr(&a, folder) : "/tmp");
    return s->spool >= 0 || err_sys(err, errno, E4000, "cannot write to a temporary file");
}

static bool copy_plain__run(CopyPlain *s, CopyPlainRoots *r, Err *err)
{
    Copy *c = s->c;
    const abx_copy_options *o = c->o;
    const Provider *from = o->from ? o->from->session->provider : NULL, *to = o->to ? o->to->session->provider : NULL;

    if ((to && !session_can(to, to->kind->folder_make != NULL, "files.write", err)) ||
        (from && !(session_can(from, from->kind->file_list != NULL, "files.list", err) &&
                   session_can(from, from->kind->file_stat != NULL, "files.stat", err))))
        return false;
    if (!to)
        s->receiver = receiver_open(&(ReceiverRequest){.target = o->target, .several = c->several, .item = copy_plain__here,
                                                       .moved = copy_plain__moved, .ctx = s});
    if (from)
        return (!to || copy_plain__spool(s, err)) && copy_plain__down(s, r, err);
    if (!copy_plain__target(s, !c->several && fs_type(o->paths[0]) == FS_FOLDER, err))
        return false;
    Walk *w = walk_open(c->roots, o->path_count);
    bool  ok = copy_plain__up(s, w, err);
    walk_close(w);
    return ok;
}

bool copy_plain_all(Copy *c, Err *err)
{
    CopyPlain     *s = mem_new(sizeof *s);
    CopyPlainRoots r = {0};

    s->c = c;
    s->spool = -1;
    s->answer = arena_make(ARENA_COMMAND);
    s->lists = buf_make(LIMIT_SYNC_NAMES);
    bool ok = copy_plain__run(s, &r, err);
    if (s->spool >= 0)
        close(s->spool);
    receiver_close(s->receiver);
    arena_free(&s->answer);
    buf_free(&s->lists);
    mem_free(r.v);
    mem_free(s);
    return ok;
}
