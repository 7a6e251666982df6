#include "provider/transfer.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/shell.h"
#include "net/multipart.h"
#include "os/random.h"

#include <stdio.h>

enum {
    TRANSFER_MODE = 0644,           /* of a new file, when nobody said */
    TRANSFER_BLOCK = 256 << 10,
};

static int transfer__digits_from_mode(int mode)
{
    return (mode >> 9 & 7) * 1000 + (mode >> 6 & 7) * 100 + (mode >> 3 & 7) * 10 + (mode & 7);
}

/* The daemon puts U+FFFD where a name's bytes are not UTF-8: it is another name then. */
static bool transfer__is_damaged(Str name)
{
    uint32_t c;

    while (name.n)
        if (!utf8_next(&name, &c) || c == 0xfffd)
            return true;
    return false;
}

/* Look at the target, and behind a link at what it names. */
static bool transfer__target(Execd *x, Str *path, Entry *out, Arena *a, Deadline d, Err *err)
{
    Str real;

    if (!entry_look(x, *path, out, a, d, err))
        return false;
    if (out->there && out->type == FILE_LINK) {
        if (!entry_run(x, arena_fmt(a, "readlink -f -- %s", entry_quoted(*path, a).p), "follow the link", *path,
                           &real, a, d, err))
            return false;
        if (real.n && real.p[real.n - 1] == '\n')
            real.n--;
        if (real.n == 0 || real.n >= ENTRY_PATH || real.p[0] != '/' || str_has(real, '\n') || transfer__is_damaged(real))
            return err_set(err, ERR_REMOTE, E4000, "cannot follow the link %.*s: name the file behind it",
                           STR_ARG(*path));
        *path = real;
        if (!entry_look(x, *path, out, a, d, err))
            return false;
    }
    if (out->there && out->type == FILE_FOLDER)
        return entry_is_folder(*path, err);
    if (out->there && out->type != FILE_REGULAR)
        return err_set(err, ERR_REMOTE, E4000, "%.*s is no ordinary file in the sandbox", STR_ARG(*path));
    return true;
}

/* ---- writing ---- */

static Str transfer__temporary(Str folder, Arena *a)
{
    ABX_UNSET char name[33];

    random_hex(name, 32);
    return arena_fmt(a, "%.*s%s.abx-%s", STR_ARG(folder), str_ends(folder, STR("/")) ? "" : "/", name);
}

/* What is left of a transfer that failed, or of a link made for one. */
static void transfer__remove(Execd *x, Str path, Arena scratch)
{
    ExecdCall call = {.method = "DELETE",
                      .path = "/files",
                      .query = arena_fmt(&scratch, "path=%s", url_encode(path, &scratch).p),
                      .idempotent = true,
                      .what = "remove a temporary file",
                      .code = E4000,
                      .deadline = clock_after(LIMIT_CLEANUP_MS)};
    ABX_UNSET ExecdReply reply;
    ABX_UNSET Err none;

    client_cancel_fd(x->server->http, -1);
    if (!execd_ask(x, &call, &scratch, &reply, &none) && x->server->host->notice)
        x->server->host->notice(
            x->server->host->notice_ctx,
            arena_fmt(&scratch, "a temporary file may be left in the sandbox: %.*s", STR_ARG(path)));
    client_cancel_fd(x->server->http, x->server->host->cancel_fd);
}

typedef struct TransferCount {
    Source  inner;
    int64_t n;
    bool    ended;
} TransferCount;

static bool transfer__count(void *ctx, char *p, size_t cap, size_t *n, Err *err)
{
    TransferCount *c = ctx;

    if (!c->inner.read(c->inner.ctx, p, cap, n, err))
        return false;
    c->n += (int64_t)*n;
    c->ended = *n == 0;
    if (c->inner.size >= 0 && (c->n > c->inner.size || (c->ended && c->n < c->inner.size)))
        return err_set(err, ERR_INPUT, E4000, "what is sent was to have a size of %lld, and %s", (long long)c->inner.size,
                       c->ended ? "ended before" : "has more");
    return true;
}

/* A daemon may say yes before it has read everything. */
static bool transfer__all_given(const TransferCount *c)
{
    return c->inner.size < 0 ? c->ended : c->n == c->inner.size;
}

typedef struct TransferBody {
    Source  inner;
    int64_t sent;
    Client *http;
} TransferBody;

/* Once the whole body is on its way the daemon will store it, whatever becomes
 * of this connection, and only its answer tells when the file can be removed.
 * So cancelling waits a while between the end of the body and the answer. */
static bool transfer__body(void *ctx, char *p, size_t cap, size_t *n, Err *err)
{
    TransferBody *b = ctx;

    if (!b->inner.read(b->inner.ctx, p, cap, n, err))
        return false;
    b->sent += (int64_t)*n;
    if (*n == 0 || b->sent == b->inner.size)
        client_cancel_grace(b->http, LIMIT_CLEANUP_MS);
    return true;
}

static bool transfer__send(Execd *x, Str temporary, int mode, TransferCount *count, Arena *a, Deadline d, Err *err)
{
    MultipartUpload upload;
    ABX_UNSET ExecdReply reply;
    ABX_UNSET char boundary[33];
    Buf             meta = buf_make(LIMIT_URL * 4);
    JsonOut         w = json_out(&meta, JSON_COMPACT);

    json_begin(&w, '{');
    json_key(&w, "path");
    json_put_str(&w, temporary);
    json_key(&w, "mode");
    json_put_int(&w, transfer__digits_from_mode(mode));
    json_end(&w, '}');
    Str  metadata = arena_str(a, buf_str(&meta));
    bool over = meta.over;
    buf_free(&meta);
    if (over)
        return err_set(err, ERR_LIMIT, E8002, "the path in the sandbox is too long");
    random_hex(boundary, 32);
    TransferBody whole = {
        .inner = multipart_upload(&upload, a, str_from(boundary), metadata,
                                  (Source){transfer__count, count, count->inner.size}),
        .http = x->server->http,
    };
    Source    body = {transfer__body, &whole, whole.inner.size};
    ExecdCall call = {.method = "POST",
                      .path = "/files/upload",
                      .body = &body,
                      .type = multipart_type(a, str_from(boundary)),
                      .what = "upload",
                      .code = E4000,
                      .deadline = d,
                      .idle_ms = LIMIT_IDLE_MS};
    bool ok = execd_ask(x, &call, a, &reply, err);
    client_cancel_fd(x->server->http, x->server->host->cancel_fd);
    return ok;
}

/* The new content lies whole at `temporary`, as `is` tells: put it under its name. Each program in the line
 * costs the sandbox a millisecond, so those that would change nothing are left out. */
static bool transfer__rename(Execd *x, Str temporary, const Entry *is, Str path, int mode, Str owner, Arena *a, Deadline d,
                             Err *err)
{
    Str  from = entry_quoted(temporary, a), to = entry_quoted(path, a), folder = entry_folder(path), none;
    Str  line = arena_fmt(a, "if [ -d %s ]; then exit %d; fi; ", to.p, ENTRY_IS_FOLDER);

    bool given = owner.n && !str_eq(owner, is->owner);
    if (given)          /* best effort: only root may give files away */
        line = arena_fmt(a, "%schown %s %s 2>/dev/null; ", line.p, entry_quoted(owner, a).p, from.p);
    if (given || !is->mode || is->mode != mode)     /* a change of owner takes bits away; of 0 some daemons mean none */
        line = arena_fmt(a, "%schmod %04o %s && ", line.p, (unsigned)mode, from.p);
    if (entry_is_hard(folder)) {
        /* It could not be uploaded beside its target, and /tmp may be another
         * file system: go there first, then rename. */
        Str q = entry_quoted(transfer__temporary(folder, a), a);
        line = arena_fmt(a, "%smkdir -p -- %s && { mv -f -- %s %s || { rm -f -- %s; false; }; } && ", line.p,
                         entry_quoted(folder, a).p, from.p, q.p, q.p);
        from = q;
        return entry_run(
            x, arena_fmt(a, "%s{ mv -f -- %s %s || { rm -f -- %s; false; }; }", line.p, from.p, to.p, from.p), "write",
            path, &none, a, d, err);
    }
    return entry_run(x, arena_fmt(a, "%smv -f -- %s %s", line.p, from.p, to.p), "write", path, &none, a, d, err);
}

bool transfer_put(Execd *x, Str path, int mode, Source src, int64_t *sent, Arena *a, Deadline d, Err *err)
{
    TransferCount count = {.inner = src};

    if (!transfer__send(x, path, mode, &count, a, d, err))
        return false;
    *sent = count.n;
    return transfer__all_given(&count) ||
           err_set(err, ERR_REMOTE, E4000, "the sandbox said yes to an upload of which it had taken %lld bytes",
                   (long long)count.n);
}

static bool transfer__put(Execd *x, Str path, Str temporary, int mode, const Entry *old, Source src,
                          int64_t *size, Arena *a, Deadline d, Err *err)
{
    int64_t sent;
    ABX_UNSET Entry there;

    if (old->there && old->mode >= 0)
        mode = old->mode;
    else if (mode < 0)
        mode = TRANSFER_MODE;
    /* The daemon takes mode 0 for "none given" and knows no bits above 0777;
     * chmod sets the real one before the rename. */
    if (!transfer_put(x, temporary, (mode & 0777) ? mode & 0777 : 0600, src, &sent, a, d, err))
        return false;
    if (!entry_look(x, temporary, &there, a, d, err))
        return false;
    if (!there.there || there.type != FILE_REGULAR || there.size != sent)
        return err_set(err, ERR_REMOTE, E4000, "bytes that were sent to the sandbox: %lld, that are there: %lld",
                       (long long)sent, (long long)(there.there ? there.size : 0));
    *size = there.size;
    if (transfer__rename(x, temporary, &there, path, mode, old->owner, a, d, err))
        return true;
    if (err->kind == ERR_TIMEOUT || err->kind == ERR_CLOSED || err->kind == ERR_CANCELLED)
        err_hint(err, "The file may have been written all the same, whole: look before you send it again.");
    return false;
}

bool transfer_write(Lifecycle *l, Str id, Str path, int mode, Source src, int64_t *size, Deadline d, Err *err)
{
    Arena        a = arena_make(ARENA_COMMAND);
    Execd        x;
    ABX_UNSET Entry old;
    bool         ok = entry_path(path, false, &a, &path, err) && execd_find(l, id, E4000, &a, &x, d, err) &&
              transfer__target(&x, &path, &old, &a, d, err);

    if (ok) {
        Str folder = entry_folder(path);
        Str temporary = transfer__temporary(entry_is_hard(folder) ? STR("/tmp") : folder, &a);
        ok = transfer__put(&x, path, temporary, mode, &old, src, size, &a, d, err);
        if (!ok)
            transfer__remove(&x, temporary, a);
    }
    arena_free(&a);
    return ok;
}

/* ---- reading ---- */

/* Only what is certain to be the whole file, as it is. */
static bool transfer__is_whole(const Exchange *in, Err *err)
{
    Str coding = header_get(client_headers(in), "content-encoding");

    if (client_status(in) != 200)
        return err_set(err, ERR_INPUT, E8020, "the daemon answers with status %d, which is not the whole file",
                       client_status(in));
    if (coding.n && !str_eq_nocase(coding, STR("identity")))
        return err_set(err, ERR_INPUT, E8020, "the file comes in an encoding that was not asked for");
    return client_framed(in) ||
           err_set(err, ERR_INPUT, E8020, "the daemon's answer does not say where the file ends: it may be cut short");
}

static bool transfer__get(Execd *x, Str at, Str path, Sink to, int64_t *size, Arena *a, Deadline d, Err *err)
{
    ExecdCall call = {.method = "GET",
                      .path = "/files/download",
                      .query = arena_fmt(a, "path=%s", url_encode(at, a).p),
                      .idempotent = true,
                      .what = "download",
                      .code = E4000,
                      .deadline = clock_sooner(d, clock_after(x->server->call_ms)),
                      .idle_ms = LIMIT_IDLE_MS};
    Exchange *in;
    size_t    n = 0;

    if (!execd_open(x, &call, a, &in, err)) {
        if (err->code == E4001)
            return err_set(err, ERR_NOT_FOUND, E4001, "there is no file %.*s in the sandbox", STR_ARG(path));
        if (err->status == 500 && (strstr(err->text, "seeker can't seek") || strstr(err->text, "is a directory")))
            return entry_is_folder(path, err);
        return err_wrap(err, "%.*s", STR_ARG(path));
    }
    char *block = mem_new(TRANSFER_BLOCK);
    bool  ok = transfer__is_whole(in, err) || err_wrap(err, "cannot download %.*s", STR_ARG(path));
    *size = 0;
    while (ok && (ok = client_read(in, block, TRANSFER_BLOCK, &n, d, err)) && n > 0) {
        *size += (int64_t)n;
        if (!(ok = to.write(to.ctx, (Str){block, n}, err)))
            break;
    }
    mem_free(block);
    client_close(in);
    return ok;
}

bool transfer_read(Lifecycle *l, Str id, Str path, Sink to, int64_t *size, Deadline d, Err *err)
{
    Arena a = arena_make(ARENA_COMMAND);
    Execd x;
    Str   link, none;
    bool  ok = entry_path(path, false, &a, &path, err) && execd_find(l, id, E4000, &a, &x, d, err);

    if (ok && entry_is_hard(path)) {
        /* Reach it by a link whose name the daemon leaves alone. */
        link = transfer__temporary(STR("/tmp"), &a);
        ok = entry_run(&x, arena_fmt(&a, "ln -s -- %s %s", entry_quoted(path, &a).p, link.p), "reach", path,
                           &none, &a, d, err);
        if (ok) {
            ok = transfer__get(&x, link, path, to, size, &a, d, err);
            transfer__remove(&x, link, a);
        }
    } else if (ok) {
        ok = transfer__get(&x, path, path, to, size, &a, d, err);
    }
    arena_free(&a);
    return ok;
}
