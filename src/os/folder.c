#include "os/folder.h"

#include "base/mem.h"
#include "base/str.h"
#include "os/random.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    FOLDER_NOREPLACE = 1, FOLDER_EXCHANGE = 2,  /* RENAME_* of <linux/fs.h>, which musl's headers do not have */
    FOLDER_DEEP = 64,                           /* open descriptors while a folder is removed */
};

int folder_open(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int folder__rename(int a, const char *x, int b, const char *y, unsigned flags)
{
    int sys = syscall(SYS_renameat2, a, x, b, y, flags) == 0 ? 0 : errno;

    return sys == ENOSYS || sys == EOPNOTSUPP ? EINVAL : sys;
}

int folder_exchange(int a, const char *x, int b, const char *y)
{
    return folder__rename(a, x, b, y, FOLDER_EXCHANGE);
}

int folder_move(int a, const char *x, int b, const char *y)
{
    ABX_UNSET struct stat st;
    int sys = folder__rename(a, x, b, y, FOLDER_NOREPLACE);

    if (sys != EINVAL)
        return sys;
    if (fstatat(b, y, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return EEXIST;
    return renameat(a, x, b, y) == 0 ? 0 : errno;
}

/* An open folder whose entries are to go. */
typedef struct FolderClear { DIR *top; bool moved; } FolderClear;

static void folder__clear(FolderClear *c, DIR *d, int deep);

static void folder__drop(FolderClear *c, int at, const char *name, int deep)
{
    ABX_UNSET struct stat st;
    ABX_UNSET char hex[33];

    if (unlinkat(at, name, 0) == 0 || fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode))
        return;
    if (deep == FOLDER_DEEP) {      /* to the top with it, for another round */
        random_hex(hex, 32);
        c->moved |= renameat(at, name, dirfd(c->top), hex) == 0;
        return;
    }
    int fd = folder_open(at, name);
    if (fd < 0 && errno == EACCES && fchmodat(at, name, 0700, 0) == 0)
        fd = folder_open(at, name);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d) {
        (void)fchmod(fd, 0700);     /* without w and x nothing in it can be removed */
        folder__clear(c, d, deep + 1);
        closedir(d);
    } else if (fd >= 0) {
        close(fd);
    }
    (void)unlinkat(at, name, AT_REMOVEDIR);
}

static void folder__clear(FolderClear *c, DIR *d, int deep)
{
    struct dirent *e;

    while ((e = readdir(d)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            folder__drop(c, dirfd(d), e->d_name, deep);
}

void folder_remove(int at, const char *name)
{
    ABX_UNSET struct stat st;

    if (unlinkat(at, name, 0) == 0 || fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode))
        return;
    (void)fchmodat(at, name, 0700, 0);
    int         fd = folder_open(at, name);
    FolderClear c = {.top = fd < 0 ? NULL : fdopendir(fd)};
    if (!c.top) {
        if (fd >= 0)
            close(fd);
        return;
    }
    do {
        c.moved = false;
        rewinddir(c.top);
        folder__clear(&c, c.top, 0);
    } while (c.moved);
    closedir(c.top);
    (void)unlinkat(at, name, AT_REMOVEDIR);
}

ptrdiff_t folder_names(int folder, size_t most, Arena *a, const Str **names)
{
    int    fd = folder_open(folder, ".");
    DIR   *d = fd < 0 ? NULL : fdopendir(fd);
    Str   *v = NULL;
    size_t n = 0, cap = 0;
    struct dirent *e;

    if (!d) {
        int sys = errno;
        if (fd >= 0)
            close(fd);
        errno = sys;
        return -1;
    }
    while (n < most && (e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (n == cap) {
            cap = cap ? 2 * cap : 64;
            v = mem_grow(v, cap, sizeof *v);
        }
        v[n++] = arena_str(a, str_from(e->d_name));
    }
    closedir(d);
    Str *sorted = arena_array(a, n, sizeof *sorted);
    if (n) {
        memcpy(sorted, v, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, str_by_bytes);
    }
    mem_free(v);
    *names = sorted;
    return (ptrdiff_t)n;
}

int folder_flush_all(int folder)
{
    return syncfs(folder) == 0 ? 0 : errno;
}

int folder_flush(int folder)
{
    return fsync(folder) == 0 ? 0 : errno;
}
