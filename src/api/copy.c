#include "abx.h"

#include "api/error.h"
#include "api/session.h"
#include "base/limits.h"
#include "base/str.h"
#include "os/fs.h"
#include "os/poll.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

static int64_t copy__put(abx_sandbox *b, const char *path, int mode, Source from, abx_error *e)
{
    Provider *p = b->session->provider;
    int64_t   size;
    Err       err;

    if (!p->kind->file_write(p, str_from(b->id), str_from(path), mode, from, &size, DEADLINE_NONE, &err))
        return error_give(e, &err);
    return size;
}

static int64_t copy__get(abx_sandbox *b, const char *path, Sink to, abx_error *e)
{
    Provider *p = b->session->provider;
    int64_t   size;
    Err       err;

    if (!p->kind->file_read(p, str_from(b->id), str_from(path), to, &size, DEADLINE_NONE, &err))
        return error_give(e, &err);
    return size;
}

int64_t abx_write_file(abx_sandbox *b, const char *path, int mode, int64_t size, abx_reader *reader, void *ctx,
                       abx_error *e)
{
    CopyReader r = {reader, ctx};

    return copy__put(b, path, mode, (Source){copy__read, &r, size < 0 ? -1 : size}, e);
}

int64_t abx_read_file(abx_sandbox *b, const char *path, abx_writer *writer, void *ctx, abx_error *e)
{
    CopyWriter w = {writer, ctx};

    return copy__get(b, path, (Sink){copy__write, &w}, e);
}

/* ---- local files ---- */

typedef struct CopyLocal {
    int         fd;
    const char *name;
    int64_t     left;       /* of the size it had when it was opened; -1: it did not say */
    int         cancel_fd;
} CopyLocal;

static bool copy__local_read(void *ctx, char *p, size_t cap, size_t *n, Err *err)
{
    CopyLocal *f = ctx;
    ssize_t    got;

    /* What the file has grown by since is not part of this copy. */
    if (f->left >= 0 && (int64_t)cap > f->left)
        cap = (size_t)f->left;
    do {
        if (f->left < 0 && !poll_one(f->fd, POLLIN, f->cancel_fd, DEADLINE_NONE, err))
            return false;
        got = cap ? read(f->fd, p, cap) : 0;
    } while (got < 0 && (errno == EINTR || errno == EAGAIN));
    if (got < 0)
        return err_sys(err, errno, E4000, "cannot read %s", f->name);
    if (f->left > 0 && got == 0)
        return err_set(err, ERR_INPUT, E4000, "%s became shorter while it was read", f->name);
    if (f->left > 0)
        f->left -= got;
    *n = (size_t)got;
    return true;
}

int64_t abx_upload(abx_sandbox *b, const char *local, const char *path, abx_error *e)
{
    /* O_NONBLOCK: waiting for the writer of a FIFO is done where a signal is seen. */
    CopyLocal   f = {.fd = open(local, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), .name = local, .left = -1,
                     .cancel_fd = b->session->provider->host.cancel_fd};
    struct stat st;
    int64_t     size = -1;
    Err         err;

    if (f.fd < 0 || fstat(f.fd, &st) != 0) {
        err_sys(&err, errno, E4000, "cannot open %s", local);
        error_give(e, &err);
    } else if (S_ISDIR(st.st_mode)) {
        err_set(&err, ERR_USAGE, E4000, "%s is a folder; one file is uploaded at a time", local);
        error_give(e, &err);
    } else {
        /* Files of /proc say that they are empty: only reading tells. */
        if (S_ISREG(st.st_mode) && st.st_size > 0)
            f.left = st.st_size;
        size = copy__put(b, path, S_ISREG(st.st_mode) ? (int)(st.st_mode & 07777) : -1,
                         (Source){copy__local_read, &f, f.left}, e);
    }
    if (f.fd >= 0)
        close(f.fd);
    return size;
}

/* The file layer does not know what its failure means to us. */
static int64_t copy__local_failure(Err *err, abx_error *e)
{
    if (err->code == E0000 && err->kind != ERR_CANCELLED)
        err->code = E4000;
    return error_give(e, err);
}

int64_t abx_download(abx_sandbox *b, const char *path, const char *local, abx_error *e)
{
    FsTemp  temp;
    int64_t size;
    Err     err;

    if (!fs_temp_open(local, -1, &temp, &err))
        return copy__local_failure(&err, e);
    temp.cancel_fd = b->session->provider->host.cancel_fd;
    size = copy__get(b, path, fs_temp_sink(&temp), e);
    if (size < 0)
        fs_temp_abort(&temp);
    else if (!fs_temp_commit(&temp, true, &err))
        return copy__local_failure(&err, e);
    return size;
}
