#include "agent/place.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/random.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

static bool place__is_folder(const char *path)
{
    ABX_UNSET struct stat st;

    if (stat(path, &st) != 0)
        return false;
    errno = ENOTDIR;
    return S_ISDIR(st.st_mode);
}

bool place_folders(char *path, mode_t mode)
{
    for (char *p = path + 1; *path && *p; p++) {
        if (*p != '/' || p[-1] == '/')
            continue;
        *p = '\0';
        bool there = mkdir(path, mode) == 0 || place__is_folder(path);
        *p = '/';
        if (!there)
            return false;
    }
    return mkdir(path, mode) == 0 || place__is_folder(path);
}

size_t place_folder(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Follow links at the end of a path, also to what is not there. NULL: errno. */
static char *place__resolve(const char *path)
{
    char *at = mem_str(str_from(path));
    ABX_UNSET char link[PATH_MAX];

    for (int i = 0; i < 40; i++) {
        ssize_t n = readlink(at, link, sizeof link);
        if (n < 0)
            return at;
        Buf next = buf_make(2 * PATH_MAX);
        if (n > 0 && link[0] != '/')
            buf_add(&next, (Str){at, place_folder(at)});
        buf_add(&next, (Str){link, (size_t)n});
        mem_free(at);
        at = mem_str(buf_str(&next));
        buf_free(&next);
    }
    mem_free(at);
    errno = ELOOP;
    return NULL;
}

static bool place__folders_of(const char *target)
{
    size_t n = place_folder(target);
    ABX_UNSET char path[PATH_MAX];

    if (n <= 1)
        return true;
    if (n > sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(path, target, n);
    path[n - 1] = '\0';
    return place_folders(path, 0755);
}

static void place__keep(Place *p, const struct stat *st)
{
    if (p->owner.mode < 0)
        p->owner.mode = (int)(st->st_mode & 07777);
    if (geteuid() != 0)
        return;
    if (p->owner.uid == (uid_t)-1 && st->st_uid != 0)
        p->owner.uid = st->st_uid;
    if (p->owner.gid == (gid_t)-1 && st->st_gid != getegid())
        p->owner.gid = st->st_gid;
}

/* A new file beside the target, else, when there is one, the target itself. */
static bool place__create(Place *p, bool exists)
{
    char name[24], path[PATH_MAX];

    random_hex(name, 16);
    int n = snprintf(path, sizeof path, "%.*s.abx-%s", (int)place_folder(p->target), p->target, name);
    if (n < 0 || (size_t)n >= sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    /* Nobody else looks in before it has the mode that it is to have. */
    p->fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, p->owner.mode < 0 ? 0755 : 0600);
    if (p->fd >= 0)
        p->temp = mem_str(str_from(path));
    else if (exists && (errno == EACCES || errno == EPERM || errno == EROFS))
        p->fd = open(p->target, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    p->old = p->fd >= 0 && !p->temp;
    return p->fd >= 0;
}

static bool place__open_target(Place *p)
{
    ABX_UNSET struct stat st;

    if (!place__folders_of(p->target))
        return false;
    bool exists = lstat(p->target, &st) == 0;
    if (exists && !S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : ENOTSUP;
        return false;
    }
    if (!exists && p->target[place_folder(p->target)] == '\0') {
        errno = EISDIR;                         /* it ends in a slash */
        return false;
    }
    if (exists)
        place__keep(p, &st);
    return place__create(p, exists);
}

bool place_open(Place *p, const char *path, const Owner *owner, Err *err)
{
    *p = (Place){.fd = -1, .owner = *owner, .target = place__resolve(path)};
    if (p->target && place__open_target(p))
        return true;
    int sys = errno;
    place_free(p);
    err_sys(err, sys, E4000, "open %s", path);
    if (sys == EISDIR)                          /* the stock daemon's words */
        err_set(err, ERR_SYSTEM, E4000, "open %s: is a directory", path);
    return false;
}

/* The old content of a file that is written in place: it stays until there is new. */
static bool place__drop_old(Place *p, Err *err)
{
    if (p->old && ftruncate(p->fd, 0) != 0)
        return err_sys(err, errno, E4000, "truncate");
    p->old = false;
    return true;
}

bool place_write(Place *p, Str data, Err *err)
{
    if (data.n && !place__drop_old(p, err))
        return false;
    while (data.n) {
        ssize_t n = write(p->fd, data.p, data.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_sys(err, n < 0 ? errno : ENOSPC, E4000, "write");
        str_skip(&data, (size_t)n);
    }
    return true;
}

bool place_close(Place *p, Err *err)
{
    int fd = p->fd;

    if (!place__drop_old(p, err) || !owner_apply_fd(fd, &p->owner, err))
        return false;
    p->fd = -1;
    return close(fd) == 0 || err_sys(err, errno, E4000, "close");
}

/* The target cannot be renamed over: something is mounted there, or it is
 * another's in a folder with the sticky bit. */
static bool place__copy(const Place *from, Err *err)
{
    ABX_UNSET char block[16384];
    int     in = open(from->temp, O_RDONLY | O_CLOEXEC);
    Place   to = {.fd = in < 0 ? -1 : open(from->target, O_WRONLY | O_TRUNC | O_CLOEXEC), .owner = from->owner};
    ssize_t n = -1;
    bool    ok = true;

    while (to.fd >= 0 && ok && (n = read(in, block, sizeof block)) > 0)
        ok = place_write(&to, (Str){block, (size_t)n}, err);
    if (n < 0)
        ok = err_sys(err, errno, E4000, "copy to %s", from->target);
    ok = ok && place_close(&to, err);
    if (in >= 0)
        close(in);
    if (to.fd >= 0)
        close(to.fd);
    return ok;
}

bool place_commit(Place *p, Err *err)
{
    if (!p->temp)
        return true;
    if (rename(p->temp, p->target) != 0) {
        if (errno != EBUSY && errno != EPERM && errno != EACCES)
            return err_sys(err, errno, E4000, "rename to %s", p->target);
        if (!place__copy(p, err))
            return false;
        unlink(p->temp);
    }
    mem_free(p->temp);
    p->temp = NULL;
    return true;
}

void place_free(Place *p)
{
    if (p->fd >= 0)
        close(p->fd);
    if (p->temp)
        unlink(p->temp);
    mem_free(p->temp);
    mem_free(p->target);
    *p = (Place){.fd = -1};
}
