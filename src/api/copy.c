#include "api/copy.h"

#include "abx.h"
#include "api/error.h"
#include "api/hash.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/clean.h"
#include "os/fs.h"
#include "os/poll.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_TELL_MS = 100 };

/* ---- the caller's functions as a Source and a Sink ---- */

typedef struct CopyReader { abx_reader *read; void *ctx; } CopyReader;
typedef struct CopyWriter { abx_writer *write; void *ctx; } CopyWriter;

static bool copy__read(void *ctx, char *p, size_t cap, size_t *n, Err *err)
{
    CopyReader *r = ctx;
    ptrdiff_t   got = r->read(r->ctx, p, cap);

    if (got < 0)
        return err_sys(err, errno, E4000, "cannot read what is to be sent");
    *n = (size_t)got;
    return true;
}

static bool copy__write(void *ctx, Str bytes, Err *err)
{
    CopyWriter *w = ctx;

    return w->write(w->ctx, bytes.p, bytes.n) == 0 || err_sys(err, errno, E4000, "cannot write what was received");
}

static bool copy__get(const abx_sandbox *b, Str path, Sink to, int64_t *size, Err *err)
{
    Provider *p = b->session->provider;

    return p->kind->file_read(p, str_from(b->id), path, to, size, DEADLINE_NONE, err);
}

int64_t abx_write_file(abx_sandbox *b, const char *path, int mode, int64_t size, abx_reader *reader, void *ctx,
                       abx_error *e)
{
    Provider  *p = b->session->provider;
    CopyReader r = {reader, ctx};
    int64_t    there;
    ABX_UNSET Err err;

    return p->kind->file_write(p, str_from(b->id), str_from(path), mode, (Source){copy__read, &r, size < 0 ? -1 : size}, &there,
                               DEADLINE_NONE, &err) ? there : error_give(e, &err);
}

int64_t abx_read_file(abx_sandbox *b, const char *path, abx_writer *writer, void *ctx, abx_error *e)
{
    CopyWriter w = {writer, ctx};
    int64_t    size;
    ABX_UNSET Err err;

    return copy__get(b, str_from(path), (Sink){copy__write, &w}, &size, &err) ? size : error_give(e, &err);
}

/* ---- what is told ---- */

static void copy__tell(const Copy *c, abx_copy_kind kind, Str path, const char *reason)
{
    Arena a = c->a;

    if (c->o->event)
        c->o->event(c->o->ctx, &(abx_copy_event){
            .kind = kind, .path = arena_str(&a, path).p, .reason = clean_message(str_from(reason), NULL, 0, &a).p,
            .sha256 = kind == ABX_COPY_PROGRESS || kind == ABX_COPY_FAILED || !*c->out->sha256 ? NULL : c->out->sha256,
            .bytes = c->moved, .total = c->total, .files = c->out->files, .total_files = c->total_files,
        });
}

void copy_moved(Copy *c, int64_t bytes)
{
    c->moved += bytes;
    if (!c->o->event || !clock_passed(c->told))
        return;
    c->told = clock_after(COPY_TELL_MS);
    copy__tell(c, ABX_COPY_PROGRESS, (Str){0}, NULL);
}

void copy_done(Copy *c, abx_copy_kind kind, Str path, int64_t size, const unsigned char *sha256)
{
    c->out->sha256[0] = '\0';
    if (sha256 && c->verify) {
        hex_write((Str){(const char *)sha256, SHA256_SIZE}, c->out->sha256);
        c->out->sha256[2 * SHA256_SIZE] = '\0';
    }
    if (kind == ABX_COPY_SAME)
        c->moved += size;
    if (size >= 0) {
        c->out->files++;
        c->out->bytes += size;
    }
    if (size < 0 || str_has(path, '/'))
        c->out->tree = 1;
    else
        copy_lies(c, path);
    copy__tell(c, kind, path, NULL);
}

void copy_failed(Copy *c, Str path, const char *reason)
{
    c->out->failed++;
    copy__tell(c, ABX_COPY_FAILED, path, reason);
}

const char *copy_reason(int sys)
{
    return sys == ESTALE ? "it was changed while it was read"
           : sys == EXDEV ? "the kernel makes it up, it is in no file system"
           : sys == ELOOP ? "a link is in its place, or folders go too deep"
           : sys == EBUSY ? "another copy is writing it"
           : sys == EOPNOTSUPP ? "it is neither a file, nor a folder, nor a link" : strerror(sys);
}

void copy_item(Copy *c, const Item *i, Str why)
{
    bool file = i->hashed || i->kind == ITEM_KEPT;

    if (i->kind == ITEM_FAILED)
        copy_failed(c, i->path, why.n ? why.p : copy_reason((int)i->number));
    else if (i->kind == ITEM_DONE || i->kind == ITEM_KEPT)
        copy_done(c, i->kind == ITEM_DONE ? ABX_COPY_DONE : ABX_COPY_SAME, i->path, file ? i->size : -1,
                  i->hashed ? i->sha256 : NULL);
}

/* ---- paths ---- */

bool copy_ends_in_folder(Str path)
{
    return str_ends(path, STR("/")) || str_ends(path, STR("/.")) || str_eq(path, STR("."));
}

Str copy_join(Arena *a, Str folder, Str name)
{
    return arena_fmt(a, "%.*s%s%.*s", STR_ARG(folder), str_ends(folder, STR("/")) ? "" : "/", STR_ARG(name));
}

void copy_lies(Copy *c, Str path)
{
    snprintf(c->out->path, sizeof c->out->path, "%.*s", STR_ARG(path));
}

bool copy_look(const abx_sandbox *b, Str path, Arena *a, FileInfo *info, bool *there, bool *folder, Err *err)
{
    Provider *p = b->session->provider;
    FileList  list;
    ABX_UNSET Err no;

    *folder = false;
    *there = session_can(p, p->kind->file_stat != NULL, "files.stat", &no) &&
             p->kind->file_stat(p, str_from(b->id), path, a, info, DEADLINE_NONE, &no);
    if (!*there) {
        if (no.code != E4001)
            *err = no;
        return no.code == E4001;
    }
    /* Only a listing follows a link. */
    *folder = info->type == FILE_FOLDER || (info->type == FILE_LINK && p->kind->file_list &&
                                           p->kind->file_list(p, str_from(b->id), path, a, &list, DEADLINE_NONE, &no));
    return true;
}

/* ---- one local file, sent ---- */

/* Not by growing: what was read is what it was. */
static bool copy__changed(const CopyLocal *f)
{
    struct stat st;

    return f->changed && (fstat(f->fd, &st) != 0 || (st.st_size <= f->size && walk_changed(&st) != f->changed));
}

static bool copy__local_read(void *ctx, char *p, size_t cap, size_t *n, Err *err)
{
    CopyLocal *f = ctx;
    int64_t    left = f->size - f->n;
    ssize_t    got;

    /* What the file has grown by since is not part of this copy. */
    if (f->size >= 0 && (int64_t)cap > left)
        cap = (size_t)left;
    do {
        if (f->size < 0 && !poll_one(f->fd, POLLIN, f->cancel_fd, DEADLINE_NONE, err))
            return false;
        got = cap ? read(f->fd, p, cap) : 0;
    } while (got < 0 && (errno == EINTR || errno == EAGAIN));
    if (got < 0)
        return err_sys(err, errno, E4000, "cannot read %s", f->name);
    if (f->size >= 0 && left > 0 && got == 0)
        return err_set(err, ERR_INPUT, E4000, "%s became shorter while it was read", f->name);
    if (got > 0 && got == left && copy__changed(f))
        return err_set(err, ERR_INPUT, E4000, "%s was changed while it was read", f->name);
    f->n += got;
    if (f->c && f->c->verify)
        sha256_add(&f->hash, (Str){p, (size_t)got});
    if (f->c)
        copy_moved(f->c, got);
    *n = (size_t)got;
    return true;
}

Source copy_source(CopyLocal *f)
{
    return (Source){copy__local_read, f, f->size};
}

/* What failed here has the codes of what fails in a sandbox. */
static bool copy__local_failure(Err *err)
{
    if (err->code != E0000 || err->kind == ERR_CANCELLED)
        return false;
    err->code = E4000;
    if (err->sys == ENOENT) {
        err->code = E4001;
        err->kind = ERR_NOT_FOUND;
    } else if (err->sys == EACCES || err->sys == EPERM || err->sys == EROFS) {
        err->code = E4002;
        err->kind = ERR_DENIED;
    }
    return false;
}

static bool copy__local_open(const char *local, const abx_sandbox *b, CopyLocal *f, Err *err)
{
    ABX_UNSET struct stat st;

    /* O_NONBLOCK: waiting for the writer of a FIFO is done where a signal is seen. */
    *f = (CopyLocal){.fd = open(local, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), .name = local, .mode = -1, .size = -1,
                     .cancel_fd = b->session->provider->host.cancel_fd, .hash = sha256_make()};
    if (f->fd < 0 || fstat(f->fd, &st) != 0)
        return err_sys(err, errno, E0000, "cannot open %s", local) || copy__local_failure(err);
    f->folder = S_ISDIR(st.st_mode);
    if (S_ISREG(st.st_mode)) {
        f->mode = (int)(st.st_mode & 0777);
        f->changed = walk_changed(&st);
        /* Files of /proc say that they are empty: only reading tells. */
        f->size = st.st_size > 0 ? st.st_size : -1;
    }
    return true;
}

static bool copy__send(const abx_sandbox *b, CopyLocal *f, Str path, int64_t *size, Err *err)
{
    Provider *p = b->session->provider;

    return p->kind->file_write(p, str_from(b->id), path, f->mode, copy_source(f), size, DEADLINE_NONE, err);
}

int64_t abx_upload(abx_sandbox *b, const char *local, const char *path, abx_error *e)
{
    CopyLocal f;
    int64_t   size = -1;
    ABX_UNSET Err err;
    bool      ok = copy__local_open(local, b, &f, &err);

    if (ok && f.folder)
        ok = err_set(&err, ERR_USAGE, E4000, "%s is a folder; abx_copy() copies those", local);
    ok = ok && copy__send(b, &f, str_from(path), &size, &err);
    if (f.fd >= 0)
        close(f.fd);
    return ok ? size : error_give(e, &err);
}

/* Nothing was taken of it yet, or it can be read again. */
static bool copy__again(CopyLocal *f)
{
    if (f->n && lseek(f->fd, 0, SEEK_SET) != 0)
        return false;
    f->c->moved -= f->n;
    f->n = 0;
    f->hash = sha256_make();
    return true;
}

/* Whether the target is a folder is known once a file could not be written
 * there: so one that is none costs no question. */
static bool copy__up_file(Copy *c, CopyLocal *f, Err *err)
{
    Str     target = str_from(c->o->target), name = c->roots[0].name, path = target;
    bool    inside = copy_ends_in_folder(target);
    int64_t size;
    ABX_UNSET unsigned char sum[SHA256_SIZE];

    f->c = c;
    c->total = f->size;
    c->total_files = 1;
    if (inside)
        path = copy_join(&c->a, target, name);
    bool ok = copy__send(c->o->to, f, path, &size, err);
    if (!ok && !inside && err->kind == ERR_REMOTE && err->sys == EISDIR && copy__again(f)) {
        path = copy_join(&c->a, target, name);
        ok = copy__send(c->o->to, f, path, &size, err);
    }
    sha256_end(&f->hash, sum);
    if (!ok || (c->verify && !hash_compare(c->o->to, path, sum, true, err)))
        return false;
    copy_done(c, ABX_COPY_DONE, name, size, sum);
    copy_lies(c, path);
    return true;
}

/* ---- one file, received ---- */

int64_t abx_download(abx_sandbox *b, const char *path, const char *local, abx_error *e)
{
    FsTemp  temp;
    int64_t size = -1;
    ABX_UNSET Err err;
    bool    ok = fs_temp_open(local, -1, &temp, &err);

    if (ok) {
        temp.cancel_fd = b->session->provider->host.cancel_fd;
        ok = copy__get(b, str_from(path), fs_temp_sink(&temp), &size, &err);
        if (!ok)
            fs_temp_abort(&temp);
        ok = ok && fs_temp_commit(&temp, true, &err);
    }
    if (ok)
        return size;
    copy__local_failure(&err);
    return error_give(e, &err);
}

typedef struct CopyInto {
    Copy       *c;
    const char *path;
    FsTemp      temp;
    bool        open;
    Sha256      hash;
} CopyInto;

/* The folders above a path. */
static void copy__make_folders(const char *path, Arena a)
{
    char *p = arena_cstr(&a, str_from(path));

    for (char *slash = p + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(p, 0777);
    }
}

static bool copy__into_open(CopyInto *t, bool make, Err *err)
{
    if (t->open)
        return true;
    if (make)
        copy__make_folders(t->path, t->c->a);
    t->open = fs_temp_open(t->path, -1, &t->temp, err);
    t->temp.cancel_fd = t->c->o->from->session->provider->host.cancel_fd;
    return t->open || copy__local_failure(err);
}

static bool copy__into_write(void *ctx, Str bytes, Err *err)
{
    CopyInto *t = ctx;

    if (!copy__into_open(t, true, err) || !fs_temp_write(&t->temp, bytes, err))
        return copy__local_failure(err);
    if (t->c->verify)
        sha256_add(&t->hash, bytes);
    copy_moved(t->c, (int64_t)bytes.n);
    return true;
}

/* As its source has it; a link does not say what its file has. What is here keeps its own. */
static void copy__into_mode(const CopyInto *t, const abx_sandbox *b, Str path)
{
    Arena    a = t->c->a;
    ABX_UNSET FileInfo info;
    bool     there, folder;
    ABX_UNSET Err none;

    if (fs_type(t->path) == FS_NOTHING && copy_look(b, path, &a, &info, &there, &folder, &none) && there &&
        info.type == FILE_REGULAR && info.mode >= 0)
        (void)fchmod(t->temp.fd, (mode_t)info.mode & 0777);
}

/* Where the folder of the target is missing it is made when something came. */
static bool copy__down_file(Copy *c, Err *err)
{
    const abx_sandbox *b = c->o->from;
    Str      target = str_from(c->o->target), name = c->roots[0].name, path = str_from(c->roots[0].path);
    bool     inside = copy_ends_in_folder(target) || fs_type(target.p) == FS_FOLDER;
    CopyInto t = {.c = c, .path = inside ? copy_join(&c->a, target, name).p : target.p, .hash = sha256_make()};
    int64_t  size;
    ABX_UNSET unsigned char sum[SHA256_SIZE];

    c->total_files = 1;
    if (!copy__into_open(&t, false, err) && err->kind != ERR_NOT_FOUND)
        return false;
    bool ok = copy__get(b, path, (Sink){copy__into_write, &t}, &size, err) &&
              copy__into_open(&t, true, err) &&
              (!c->verify || (sha256_end(&t.hash, sum), hash_compare(b, path, sum, true, err)));
    if (ok)
        copy__into_mode(&t, b, path);
    else if (t.open)
        fs_temp_abort(&t.temp);
    if (!ok || !fs_temp_commit(&t.temp, true, err))
        return copy__local_failure(err);
    copy_done(c, ABX_COPY_DONE, name, size, sum);
    copy_lies(c, str_from(t.path));
    return true;
}

/* ---- which way ---- */

/* Of one file it is known by now how it is called there. */
static void copy__where(Copy *c)
{
    Str  target = str_from(c->o->target), name = arena_str(&c->a, str_from(c->out->path));
    ABX_UNSET FileInfo info;
    bool there, folder = !c->o->to && fs_type(target.p) == FS_FOLDER;
    ABX_UNSET Err none;

    if (c->out->files != 1 || c->out->tree)
        name = (Str){0};
    else if (!c->o->to || copy_look(c->o->to, target, &c->a, &info, &there, &folder, &none))
        name = folder ? copy_join(&c->a, target, name) : target;
    copy_lies(c, name);
}

/* By the agent; without it as it goes. `f`: the one file that it is about. */
static bool copy__many(Copy *c, CopyLocal *f, Err *err)
{
    const abx_copy_options *o = c->o;
    const Provider *p = (o->to ? o->to : o->from)->session->provider;
    FileInfo info;
    bool     there, folder;
    ABX_UNSET Err why;

    c->verify = o->verify != 0;
    /* What is there by that very name is no pattern. */
    if (c->several && o->path_count == 1)
        c->several = !copy_look(o->from, str_from(o->paths[0]), &c->a, &info, &there, &folder, &why) || !there;
    CarryResult r = copy_stream_all(c, &why);
    if (r == CARRY_FAILED || (r == CARRY_CANNOT && (o->resume || o->user)))
        *err = why;
    if (r == CARRY_DONE)
        copy__where(c);
    if (r != CARRY_CANNOT)
        return r == CARRY_DONE;
    if (o->resume || o->user)
        return err_wrap(err, "%s", o->user ? "files of another user" : "going on with a copy");
    if (p->kind->carrier && p->host.agent_path.n) {
        Arena a = c->a;
        p->host.notice(p->host.notice_ctx, arena_fmt(&a, "%s. The backend's own calls copy file by file", why.text));
    }
    if (f)
        return copy__up_file(c, f, err);
    bool ok = copy_plain_all(c, err);
    if (ok)
        copy__where(c);
    return ok;
}

static bool copy__up(Copy *c, Err *err)
{
    const abx_copy_options *o = c->o;
    const ProviderKind     *kind = o->to->session->provider->kind;
    CopyLocal f;

    if (o->path_count > 1)
        return copy__many(c, NULL, err);
    bool ok = copy__local_open(o->paths[0], o->to, &f, err);
    if (ok && (f.folder || o->resume || o->user || !utf8_valid(c->roots[0].name) || (kind->file_max && f.size > kind->file_max)))
        ok = copy__many(c, f.folder ? NULL : &f, err);
    else if (ok)
        ok = copy__up_file(c, &f, err);
    if (f.fd >= 0)
        close(f.fd);
    return ok;
}

static bool copy__down(Copy *c, Err *err)
{
    const abx_copy_options *o = c->o;
    Str path = str_from(o->paths[0]);

    if (o->path_count == 1 && !o->resume && !o->user && !copy_ends_in_folder(path)) {
        if (copy__down_file(c, err))
            return true;
        const Provider *from = o->from->session->provider;
        bool large = err->code == E4003 && from->kind->carrier && from->host.agent_path.n;     /* nothing was read yet */
        bool folder = err->sys == EISDIR && err->kind == ERR_REMOTE;
        /* A folder of its name that is here already may be for what is a folder there, too. */
        if (err->sys != EISDIR && !large && (err->code != E4001 || !c->several))
            return false;
        /* There is one by that very name: it is no pattern. */
        c->several &= !folder && !large;
        c->total_files = -1;
    }
    return copy__many(c, NULL, err);
}

bool copy_differ(Str *names, size_t n, Err *err)
{
    if (n)
        qsort(names, n, sizeof *names, str_by_bytes);
    for (size_t i = 1; i < n; i++)
        if (str_eq(names[i], names[i - 1]))
            return err_set(err, ERR_USAGE, E8002, "two of the sources are called '%.*s'", STR_ARG(names[i]));
    return true;
}

static bool copy__names(Copy *c, Err *err)
{
    const abx_copy_options *o = c->o;
    WalkRoot *roots = arena_array(&c->a, o->path_count, sizeof *roots);
    Str      *names = arena_array(&c->a, o->path_count, sizeof *names);
    size_t    n = 0;

    c->several = o->path_count > 1;
    for (size_t i = 0; i < o->path_count; i++) {
        Str path = str_from(o->paths[i]);
        roots[i].path = o->paths[i];
        if (!walk_name(path, &roots[i].name, err))
            return false;
        if (o->from && walk_is_pattern(path))
            c->several = true;
        else
            names[n++] = roots[i].name;
    }
    c->roots = roots;
    return copy_differ(names, n, err);
}

/* As it is written: without "//", "." and "..", and without a slash at its end. */
static Str copy__plain(Arena *a, Str path)
{
    char  *to = arena_alloc(a, path.n + 1);
    size_t n = 0;
    Str    part;

    while (str_cut(&path, '/', &part)) {
        if (str_eq(part, STR("..")))
            while (n && to[--n] != '/')
                ;
        else if (part.n && !str_eq(part, STR("."))) {
            to[n++] = '/';
            memcpy(to + n, part.p, part.n);
            n += part.n;
        }
    }
    return (Str){to, n};
}

/* It would be in its own way, and a folder have no end. Links are not seen here:
 * the depth of folders ends it then. */
static bool copy__itself(const Copy *c, Err *err)
{
    const abx_copy_options *o = c->o;
    Arena a = c->a;

    if (!o->from || !o->to || strcmp(o->from->id, o->to->id) != 0 ||
        strcmp(abx_session_provider(o->from->session), abx_session_provider(o->to->session)) != 0)
        return false;
    Str to = copy__plain(&a, str_from(o->target));
    for (size_t i = 0; i < o->path_count; i++) {
        Str path = copy__plain(&a, str_from(o->paths[i])), name = c->roots[i].name;
        bool beside = !str_eq(name, STR(".")) && path.n == to.n + 1 + name.n && str_starts(path, to);
        if (beside || (str_starts(to, path) && (to.n == path.n || to.p[path.n] == '/')))
            return !err_set(err, ERR_USAGE, E4000, "%s cannot be copied to where it is", o->paths[i]);
    }
    return false;
}

static bool copy__run(Copy *c, Err *err)
{
    const abx_copy_options *o = c->o;

    if (o->size != sizeof *o || (!o->from && !o->to) || !o->path_count || !o->target || !o->target[0])
        return err_set(err, ERR_USAGE, E8002, "a copy needs a sandbox, a source and a target");
    if (!copy__names(c, err) || copy__itself(c, err))
        return false;
    return !o->from ? copy__up(c, err) : !o->to ? copy__down(c, err) : copy__many(c, NULL, err);
}

int abx_copy(const abx_copy_options *options, abx_copied *out, abx_error *e)
{
    abx_copied none;
    ABX_UNSET Err err;
    Copy       c = {.o = options, .out = out ? out : &none, .a = arena_make(ARENA_COMMAND), .verify = options->verify > 0,
                    .total = -1, .total_files = -1};

    *c.out = (abx_copied){0};
    bool ok = copy__run(&c, &err);
    copy__tell(&c, ABX_COPY_PROGRESS, (Str){0}, NULL);
    arena_free(&c.a);
    if (c.out->tree || c.out->files != 1)
        c.out->sha256[0] = '\0';
    return ok ? 0 : error_give(e, &err);
}
