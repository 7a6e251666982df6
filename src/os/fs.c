#include "os/fs.h"

#include "base/mem.h"
#include "base/str.h"
#include "os/poll.h"
#include "os/random.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FS_FLUSH = 4 << 20 };

static bool fs__failed(Err *err, int sys, const char *what, const char *path)
{
    err_sys(err, sys, E0000, "cannot %s %s", what, path);
    if (sys == ENOENT || sys == ENOTDIR)
        err->kind = ERR_NOT_FOUND;
    else if (sys == EACCES || sys == EPERM || sys == EROFS)
        err->kind = ERR_DENIED;
    return false;
}

/* Read fd to its end, or to one byte more than the Buf holds. */
static bool fs__read_all(int fd, const char *path, Buf *to, Err *err)
{
    for (;;) {
        size_t left = to->limit - to->n, want = left < 65536 ? left : 65536;
        char   one, *room = want ? buf_room(to, want) : &one;
        ssize_t n = read(fd, room, want ? want : 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fs__failed(err, errno, "read", path);
        if (n == 0)
            return true;
        if (want == 0)
            return err_set(err, ERR_LIMIT, E0000, "%s: more than %zu bytes", path, to->limit);
        buf_grew(to, (size_t)n);
    }
}

bool fs_read(const char *path, Buf *to, Err *err)
{
    ABX_UNSET struct stat st;
    /* O_NONBLOCK so that a FIFO without a writer does not hold us up. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return fs__failed(err, errno, "open", path);
    bool ok = fstat(fd, &st) == 0 || fs__failed(err, errno, "read", path);
    if (ok && !S_ISREG(st.st_mode))
        ok = err_set(err, ERR_INPUT, E0000, "%s is not a regular file", path);
    ok = ok && fs__read_all(fd, path, to, err);
    close(fd);
    return ok;
}

bool fs_make_dir(const char *path, Err *err)
{
    ABX_UNSET struct stat st;

    if (mkdir(path, 0700) == 0 || (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
        return true;
    return fs__failed(err, errno, "make the folder", path);
}

FsType fs_type(const char *path)
{
    ABX_UNSET struct stat st;

    if (stat(path, &st) != 0)
        return FS_NOTHING;
    return S_ISDIR(st.st_mode) ? FS_FOLDER : S_ISREG(st.st_mode) ? FS_FILE : FS_OTHER;
}

bool fs_real(const char *path, Arena *a, Str *out, Err *err)
{
    ABX_UNSET char real[PATH_MAX];

    if (!realpath(path, real))
        return fs__failed(err, errno, "find", path);
    *out = arena_str(a, str_from(real));
    return true;
}

/* "DIR/.abx-" and 32 digits, beside the file. */
static char *fs__temp_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t      dir = slash ? (size_t)(slash - path) + 1 : 0;
    char       *name = mem_new(dir + sizeof ".abx-" + 32);

    memcpy(name, path, dir);
    memcpy(name + dir, ".abx-", 5);
    random_hex(name + dir + 5, 32);
    return name;
}

static bool fs__temp_failed(FsTemp *t, int sys, const char *what, Err *err)
{
    fs__failed(err, sys, what, t->path);
    fs_temp_abort(t);
    return false;
}

/* Open t->temp, new, with the mode of the file that is there (-1: none). */
static bool fs__temp_make(FsTemp *t, int mode, int there, Err *err)
{
    t->temp = fs__temp_name(t->path);
    t->fd = open(t->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode < 0 ? 0666 : 0600);
    int sys = errno;
    if (t->fd < 0) {
        mem_free(t->temp);      /* there is nothing to remove */
        t->temp = NULL;
        return fs__temp_failed(t, sys, "create", err);
    }
    if (mode >= 0 && fchmod(t->fd, (mode_t)mode) != 0)
        return fs__temp_failed(t, errno, "set the mode of", err);
    /* A file system without modes refuses, and gives both files the same. */
    if (mode < 0 && there >= 0 && fchmod(t->fd, (mode_t)there) != 0 && errno != EPERM)
        return fs__temp_failed(t, errno, "set the mode of", err);
    return true;
}

bool fs_temp_open(const char *path, int mode, FsTemp *out, Err *err)
{
    char       *real = realpath(path, NULL);
    ABX_UNSET struct stat st;
    FsTemp      t = {.fd = -1, .cancel_fd = -1, .path = mem_str(str_from(real ? real : path))};
    bool        there = stat(t.path, &st) == 0;

    mem_free(real);
    if (!*path)
        return fs__temp_failed(&t, ENOENT, "write", err);
    if ((there && S_ISDIR(st.st_mode)) || str_ends(str_from(path), STR("/")))
        return fs__temp_failed(&t, EISDIR, "write", err);
    if (!there && lstat(t.path, &st) == 0)      /* a link that leads nowhere: it would be replaced */
        return fs__temp_failed(&t, ENOENT, "follow the link", err);
    if (there && !S_ISREG(st.st_mode)) {
        /* O_NONBLOCK: waiting for a reader is done where a signal is seen. */
        t.fd = open(t.path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (t.fd < 0)
            return fs__temp_failed(&t, errno, "open", err);
    } else if (!fs__temp_make(&t, mode, there ? (int)(st.st_mode & 0777) : -1, err)) {
        return false;
    }
    *out = t;
    return true;
}

/* Have the disk begin while the rest is still coming, so that the wait for it
 * at the end is short. A file system that cannot is waited for as ever. */
static void fs__temp_flush(FsTemp *t)
{
    int64_t n = t->written - t->flushing;

    if (!t->temp || n < FS_FLUSH)
        return;
    (void)sync_file_range(t->fd, t->flushing, n, SYNC_FILE_RANGE_WRITE);
    t->flushing = t->written;
}

bool fs_temp_write(FsTemp *t, Str bytes, Err *err)
{
    t->written += (int64_t)bytes.n;
    while (bytes.n) {
        ssize_t n = write(t->fd, bytes.p, bytes.n);
        if (n < 0 && errno == EAGAIN) {
            if (!poll_one(t->fd, POLLOUT, t->cancel_fd, DEADLINE_NONE, err))
                return false;
        } else if (n < 0 && errno != EINTR)
            return fs__failed(err, errno, "write", t->path);
        if (n > 0)
            str_skip(&bytes, (size_t)n);
    }
    fs__temp_flush(t);
    return true;
}

static bool fs__temp_sink(void *ctx, Str bytes, Err *err)
{
    return fs_temp_write(ctx, bytes, err);
}

Sink fs_temp_sink(FsTemp *t)
{
    return (Sink){.write = fs__temp_sink, .ctx = t};
}

bool fs_temp_commit(FsTemp *t, bool lasting, Err *err)
{
    if (lasting && t->temp && fsync(t->fd) != 0)
        return fs__temp_failed(t, errno, "write", err);
    int fd = t->fd;
    t->fd = -1;
    if (close(fd) != 0 && errno != EINTR)       /* a network's file system says here that the disk is full */
        return fs__temp_failed(t, errno, "write", err);
    if (t->temp && rename(t->temp, t->path) != 0)
        return fs__temp_failed(t, errno, "write", err);
    mem_free(t->temp);
    t->temp = NULL;
    fs_temp_abort(t);
    return true;
}

void fs_temp_abort(FsTemp *t)
{
    if (t->path && t->fd >= 0)
        close(t->fd);
    if (t->temp)
        unlink(t->temp);
    mem_free(t->temp);
    mem_free(t->path);
    *t = (FsTemp){.fd = -1};
}
