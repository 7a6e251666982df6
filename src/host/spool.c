#include "host/spool.h"

#include "base/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

Spool spool_make(size_t memory, const char *folder)
{
    return (Spool){.memory = buf_make(memory), .folder = folder, .fd = -1};
}

void spool_free(Spool *s)
{
    buf_free(&s->memory);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

int spool_open(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    Buf path;

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    path = buf_make(8192);
    buf_addf(&path, "%s/abx-XXXXXX", folder);
    buf_addc(&path, '\0');
    errno = ENAMETOOLONG;
    fd = path.over ? -1 : mkostemp(path.p, O_CLOEXEC);
    if (fd >= 0)
        unlink(path.p);
    buf_free(&path);
    return fd;
}

static bool spool__write(Spool *s, Str bytes, Err *err)
{
    while (bytes.n) {
        ssize_t n = write(s->fd, bytes.p, bytes.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, errno, E8010, "writing a temporary file in %s", s->folder);
        str_skip(&bytes, (size_t)n);
    }
    return true;
}

bool spool_add(Spool *s, Str bytes, Err *err)
{
    s->n += bytes.n;
    if (s->fd < 0 && bytes.n <= s->memory.limit - s->memory.n) {
        buf_add(&s->memory, bytes);
        return true;
    }
    if (s->fd < 0) {
        if ((s->fd = spool_open(s->folder)) < 0)
            return err_sys(err, errno, E8010, "opening a temporary file in %s", s->folder);
        if (!spool__write(s, buf_str(&s->memory), err))
            return false;
        buf_free(&s->memory);
    }
    return spool__write(s, bytes, err);
}

bool spool_get(Spool *s, uint64_t at, char *p, size_t n, Err *err)
{
    if (at > s->n || n > s->n - at)
        BUG("bytes that are not there");
    if (s->fd < 0) {
        if (n)
            memcpy(p, s->memory.p + at, n);
        return true;
    }
    while (n) {
        ssize_t got = pread(s->fd, p, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return err_sys(err, got < 0 ? errno : EIO, E8010, "reading a temporary file in %s", s->folder);
        p += got;
        n -= (size_t)got;
        at += (uint64_t)got;
    }
    return true;
}
