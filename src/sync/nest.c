#include "sync/nest.h"

#include "os/folder.h"
#include "sync/draft.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NEST_MAKING = 01700 };

bool nest_left(int at, const char *name)
{
    ABX_UNSET struct stat st;

    return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 07777) == NEST_MAKING &&
           st.st_uid == geteuid();
}

/* One that is there: it must be a folder. */
static int nest__there(NestFolder *f, int at, const char *name, bool writes)
{
    ABX_UNSET struct stat st;

    f->fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (f->fd < 0) {
        int sys = errno;
        return sys == ENOTDIR && fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) ? ELOOP : sys;
    }
    f->fresh = nest_left(f->fd, ".");
    return writes && faccessat(f->fd, ".", W_OK, 0) != 0 ? errno : 0;
}

int nest_enter(Nest *n, int at, const char *name, unsigned mode, bool writes)
{
    NestFolder f = {.fd = -1, .mode = mode, .fresh = true};
    int        sys = 0;

    if (n->n == LIMIT_SYNC_DEPTH)
        return ELOOP;
    if (mkdirat(at, name, NEST_MAKING) != 0)
        sys = errno == EEXIST ? nest__there(&f, at, name, writes) : errno;
    /* A mode can be set only with a descriptor that reads. */
    int fd = !sys && f.fresh ? folder_open(f.fd < 0 ? at : f.fd, f.fd < 0 ? name : ".") : f.fd;
    if (!sys && fd < 0)
        sys = errno;
    if (f.fd >= 0 && (sys || fd != f.fd))
        close(f.fd);
    f.fd = fd;
    if (!sys)
        n->v[n->n++] = f;
    return sys;
}

int nest_leave(Nest *n)
{
    NestFolder f = n->v[--n->n];
    int        sys = f.fresh ? draft_mode(f.fd, f.mode) : 0;

    close(f.fd);
    return sys;
}

void nest_abandon(Nest *n, bool goes_on)
{
    while (n->n) {
        NestFolder *f = &n->v[n->n - 1];
        f->fresh &= !goes_on;
        f->mode |= 0700;
        (void)nest_leave(n);
    }
}
