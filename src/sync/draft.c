#include "sync/draft.h"

#include "base/hex.h"
#include "base/limits.h"
#include "base/str.h"
#include "os/random.h"
#include "sync/have.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DRAFT_DIGITS = 16, DRAFT_TRIES = 8, DRAFT_FLUSH = 4 << 20 };

static const char draft__head[] = ".abx-", draft__tail[] = ".part";

void draft_temp_name(char to[static DRAFT_NAME])
{
    memcpy(to, draft__head, sizeof draft__head);
    random_hex(to + sizeof draft__head - 1, DRAFT_DIGITS);
}

void draft_part_name(Str name, char to[static DRAFT_NAME])
{
    unsigned char sum[SHA256_SIZE];
    Sha256        h = sha256_make();
    char         *p = to + sizeof draft__head - 1;

    sha256_add(&h, name);
    sha256_end(&h, sum);
    memcpy(to, draft__head, sizeof draft__head);
    hex_write((Str){(const char *)sum, DRAFT_DIGITS / 2}, p);
    memcpy(p + DRAFT_DIGITS, draft__tail, sizeof draft__tail);
}

bool draft_is_part(Str name)
{
    size_t head = sizeof draft__head - 1;

    return name.n == head + DRAFT_DIGITS + sizeof draft__tail - 1 && str_starts(name, str_from(draft__head)) &&
           str_ends(name, str_from(draft__tail)) &&
           strspn(str_from_to(name, head, name.n).p, "0123456789abcdef") == DRAFT_DIGITS;
}

int draft_mode(int fd, unsigned mode)
{
    return fchmod(fd, mode & 0777) == 0 || errno == EPERM ? 0 : errno;
}

static int draft__open_new(Draft *d)
{
    for (int i = 0; i < DRAFT_TRIES; i++) {
        draft_temp_name(d->name);
        d->fd = openat(d->folder, d->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (d->fd >= 0 || errno != EEXIST)
            break;
    }
    return d->fd >= 0 ? 0 : errno;
}

bool draft_is_ours(int fd)
{
    ABX_UNSET struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink <= 1 && st.st_uid == geteuid();
}

/* Whether what was opened can be ours, and is locked. -1: it cannot. */
static int draft__claim(const Draft *d, struct stat *st)
{
    if (!draft_is_ours(d->fd) || fstat(d->fd, st) != 0)
        return -1;
    if (flock(d->fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno == EWOULDBLOCK)
        return EBUSY;
    (void)unlinkat(d->folder, d->name, 0);      /* no locks here: nobody will find it again */
    return -1;
}

/* -1: there can be none under this name. */
static int draft__open_part(Draft *d, Str name)
{
    ABX_UNSET struct stat st, now;

    draft_part_name(name, d->name);
    for (int i = 0; i < DRAFT_TRIES; i++) {
        d->fd = openat(d->folder, d->name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
        if (d->fd < 0)
            return -1;
        int sys = draft__claim(d, &st);
        /* Whoever had it may have renamed it before our lock was on it. */
        if (sys == 0 && fstatat(d->folder, d->name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_ino == st.st_ino &&
            now.st_dev == st.st_dev) {
            d->partial = true;
            return 0;
        }
        close(d->fd);
        d->fd = -1;
        if (sys != 0)
            return sys;
    }
    return EBUSY;
}

/* Only what was there before goes on. */
static int draft__begin_at(Draft *d, int64_t from)
{
    int64_t got = 0;

    if (!have_sum(d->fd, from, &d->sum, &got))
        return errno;
    d->at = d->flushing = got;
    return got != from ? EIO : ftruncate(d->fd, from) == 0 ? 0 : errno;
}

int draft_open(Draft *d, int folder, Str name, bool resume, int64_t from)
{
    int sys = -1;

    *d = (Draft){.folder = folder, .fd = -1, .sum = sha256_make()};
    if (resume)
        sys = draft__open_part(d, name);
    if (sys == -1)
        sys = from ? EIO : draft__open_new(d);
    if (sys == 0 && d->partial)
        sys = draft__begin_at(d, from);
    if (sys && d->fd < 0)
        d->name[0] = '\0';          /* somebody else's */
    else if (sys)
        draft_drop(d, true);
    return sys;
}

/* All of it at its place in the file. */
static int draft__put(Draft *d, Str bytes, int64_t at)
{
    while (bytes.n) {
        ssize_t n = pwrite(d->fd, bytes.p, bytes.n, at);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0) {
            str_skip(&bytes, (size_t)n);
            at += n;
        }
    }
    return 0;
}

static bool draft__zero(Str s)
{
    return *s.p == 0 && memcmp(s.p, s.p + 1, s.n - 1) == 0;
}

/* The file is new, or was cut here: what is not written reads as zeros. */
static int draft__put_around_holes(Draft *d, Str bytes)
{
    size_t at = 0, held = 0;        /* [held, at) is to be written */
    int    sys = 0;

    while (at < bytes.n && !sys) {
        size_t n = DRAFT_HOLE - (size_t)((d->at + (int64_t)at) % DRAFT_HOLE);
        Str    block = str_from_to(bytes, at, n < bytes.n - at ? at + n : bytes.n);
        if (draft__zero(block)) {
            sys = draft__put(d, str_from_to(bytes, held, at), d->at + (int64_t)held);
            held = at + block.n;
        }
        at += block.n;
    }
    return sys ? sys : draft__put(d, str_from_to(bytes, held, at), d->at + (int64_t)held);
}

/* Have the disk begin while the rest is still coming. */
static void draft__flush(Draft *d)
{
    int64_t n = d->at - d->flushing;

    if (!d->lasting || n < DRAFT_FLUSH)
        return;
    (void)sync_file_range(d->fd, d->flushing, n, SYNC_FILE_RANGE_WRITE);
    d->flushing = d->at;
}

int draft_write(Draft *d, Str bytes)
{
    int sys = d->sparse ? draft__put_around_holes(d, bytes) : draft__put(d, bytes, d->at);

    if (sys)
        return sys;
    sha256_add(&d->sum, bytes);
    d->at += (int64_t)bytes.n;
    draft__flush(d);
    return 0;
}

/* A network's file system says here that the disk is full. Where a lock is to be
 * held until the file has its name, another descriptor is closed in its place. */
static int draft__close(Draft *d)
{
    int fd = d->partial ? fcntl(d->fd, F_DUPFD_CLOEXEC, 0) : d->fd;

    if (!d->partial)
        d->fd = -1;
    return fd >= 0 && (close(fd) == 0 || errno == EINTR) ? 0 : errno;
}

int draft_done(Draft *d, const char *name, unsigned mode)
{
    int sys = d->sparse && ftruncate(d->fd, d->at) != 0 ? errno : draft_mode(d->fd, mode);

    if (!sys && d->lasting && d->at >= d->lasting && fsync(d->fd) != 0)
        sys = errno;
    if (!sys)
        sys = draft__close(d);
    if (!sys && renameat(d->folder, d->name, d->folder, name) != 0)
        sys = errno;
    if (!sys)
        d->name[0] = '\0';
    return sys;
}

void draft_drop(Draft *d, bool keep)
{
    if (d->name[0] && !(keep && d->partial && d->at > 0))
        (void)unlinkat(d->folder, d->name, 0);
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
    d->name[0] = '\0';
}
