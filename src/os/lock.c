#include "os/lock.h"

#include "base/num.h"
#include "base/str.h"
#include "os/poll.h"
#include "os/random.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    LOCK_OLD_MS = 300000,       /* the other hosts' time */
    LOCK_AGAIN_MS = 50,
    LOCK_RENEW_MS = 10000,
    LOCK_AHEAD_MS = 120000,     /* shorter absences are well within LOCK_OLD_MS */
    LOCK_SLACK_MS = 2000,       /* of the clock that files have against that of processes */
    LOCK_KERNEL = 0x00200000,   /* PF_KTHREAD */
};

/* A small file whole, with a NUL; its length, or -1. */
static ssize_t lock__read(int folder, const char *name, char *text, size_t size)
{
    int     fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0)
        close(fd);
    text[n < 0 ? 0 : n] = '\0';
    return n;
}

static int64_t lock__ms(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- is there still somebody? ---- */

/* When a process began, as the clock of files has it, from the text of
 * /proc/PID/stat; false for a thread of the kernel. */
static bool lock__began(const char *stat, int64_t *ms)
{
    const char     *p = strrchr(stat, ')');    /* behind the name, which may hold anything */
    Str             rest = str_from(p), field;
    struct timespec up, now;
    int64_t         flags = 0, start = 0;

    /* proc_pid_stat(5): the name is field 2, flags is 9, starttime 22. */
    for (int i = 2; i <= 22; i++)
        if (!str_cut(&rest, ' ', &field) || (i == 9 && !num_i64(field, &flags)) || (i == 22 && !num_i64(field, &start)))
            return false;
    if (flags & LOCK_KERNEL)
        return false;
    clock_gettime(CLOCK_BOOTTIME, &up);
    clock_gettime(CLOCK_REALTIME, &now);
    *ms = lock__ms(now) - lock__ms(up) + start * 1000 / sysconf(_SC_CLK_TCK);
    return true;
}

/* Could the process be who made the lock? */
static bool lock__lives(const char *pid, const struct stat *lock)
{
    char        path[64], text[1024], mine[64] = "", its[64] = "";
    ABX_UNSET struct stat st;
    int64_t     began;

    snprintf(path, sizeof path, "/proc/%s", pid);
    if (stat(path, &st) != 0 || st.st_uid != lock->st_uid)
        return false;
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    if (lock__read(AT_FDCWD, path, text, sizeof text) <= 0 || !lock__began(text, &began))
        return false;
    snprintf(path, sizeof path, "/proc/%s/ns/pid", pid);
    if (readlink(path, its, sizeof its - 1) > 0 && readlink("/proc/self/ns/pid", mine, sizeof mine - 1) > 0 &&
        strcmp(mine, its) != 0)
        return false;
    return began <= lock__ms(lock->st_mtim) + LOCK_SLACK_MS;
}

/* Is the file nobody's? Asked with its flock in our hand, or where there is no
 * flock. An abx made it if it has a second name. */
static bool lock__stale(const struct stat *st, const char *pid, bool flocked)
{
    struct timespec now;

    if (flocked && st->st_nlink > 1)
        return true;
    clock_gettime(CLOCK_REALTIME, &now);
    return lock__ms(now) - lock__ms(st->st_mtim) > LOCK_OLD_MS && !(*pid && lock__lives(pid, st));
}

/* Look at the file that is there, and remove it when nobody holds it. True: it
 * is gone. `pid` is what it says, or empty. */
static bool lock__evict(const Lock *l, char pid[static 24])
{
    ABX_UNSET struct stat st, now;
    int  fd = openat(l->folder, l->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool flocked = false, stale = false;

    *pid = '\0';
    if (fd < 0 && errno == ENOENT)
        return true;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        stale = fstatat(l->folder, l->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && lock__stale(&st, "", false);
    } else {
        ssize_t n = read(fd, pid, 23);
        pid[n < 0 ? 0 : n] = '\0';
        if (pid[strspn(pid, "0123456789")] != '\0')
            *pid = '\0';
        flocked = flock(fd, LOCK_EX | LOCK_NB) == 0;
        stale = (flocked || errno != EWOULDBLOCK) && lock__stale(&st, pid, flocked);
    }
    /* Whoever else wants to remove it waits for the same flock, so what has its
     * name now is either this file or a lock that is new. */
    bool gone = stale && fstatat(l->folder, l->name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_ino == st.st_ino &&
                unlinkat(l->folder, l->name, 0) == 0;
    if (fd >= 0)
        close(fd);
    return gone;
}

/* ---- taking and giving back ---- */

/* A file with our pid in it, and our flock on it. */
static bool lock__file(Lock *l, const char *name)
{
    ABX_UNSET struct stat st;
    ABX_UNSET char pid[24];
    int  sys = 0;

    l->fd = openat(l->folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (l->fd < 0)
        return false;
    while (flock(l->fd, LOCK_EX) != 0 && errno == EINTR) {}
    snprintf(pid, sizeof pid, "%lld", (long long)getpid());
    /* A full disk locks, too, or nothing could be removed from it: the number is
     * only there to be told. */
    if ((write(l->fd, pid, strlen(pid)) < 0 && errno != ENOSPC && errno != EDQUOT) || fstat(l->fd, &st) != 0)
        sys = errno;
    if (sys) {
        unlinkat(l->folder, name, 0);
        close(l->fd);
        l->fd = -1;
        errno = sys;
        return false;
    }
    l->inode = st.st_ino;
    l->renewed = clock_mono_ms();
    return true;
}

/* One try. A file is made under a name of its own and then linked, so the lock
 * is there with its flock, its pid and its second name at one instant. */
static bool lock__try(Lock *l)
{
    ABX_UNSET char hex[9];

    for (int again = 0; again < 8; again++) {
        if (l->fd < 0) {
            random_hex(hex, 8);
            snprintf(l->mine, sizeof l->mine, "%s-abx-%s", l->name, hex);
            if (!lock__file(l, l->mine))
                return false;
        }
        if (linkat(l->folder, l->mine, l->folder, l->name, 0) == 0) {
            (void)futimens(l->fd, NULL);        /* it may have waited */
            return true;
        }
        if (errno == EEXIST)
            return false;
        int sys = errno;
        close(l->fd);
        l->fd = -1;
        if (sys == ENOENT)      /* somebody swept it before our flock was on it */
            continue;
        unlinkat(l->folder, l->mine, 0);
        l->mine[0] = '\0';
        /* No links here: as the other hosts do it. */
        return lock__file(l, l->name);
    }
    return false;
}

/* Files of an abx that died while it waited. */
static void lock__sweep(const Lock *l)
{
    struct dirent *e;
    int  own = openat(l->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = own < 0 ? NULL : fdopendir(own);
    ABX_UNSET char head[40];

    snprintf(head, sizeof head, "%s-abx-", l->name);
    while (d && (e = readdir(d)) != NULL) {
        if (strncmp(e->d_name, head, strlen(head)) != 0 || strcmp(e->d_name, l->mine) == 0)
            continue;
        int fd = openat(l->folder, e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            unlinkat(l->folder, e->d_name, 0);
        if (fd >= 0)
            close(fd);
    }
    if (d)
        closedir(d);
}

static void lock__give_up(Lock *l)
{
    if (l->fd < 0)
        return;
    unlinkat(l->folder, l->mine, 0);
    close(l->fd);
    l->fd = -1;
}

bool lock_take(int folder, const char *name, const char *shown, int cancel_fd, Deadline deadline, Lock *out, Err *err)
{
    Lock l = {.folder = folder, .fd = -1};
    ABX_UNSET char pid[24];

    snprintf(l.name, sizeof l.name, "%s", name);
    while (!lock__try(&l)) {
        if (errno != EEXIST)
            return err_sys(err, errno, E8010, "cannot lock %s", shown);
        if (lock__evict(&l, pid))
            continue;
        if (clock_passed(deadline)) {
            lock__give_up(&l);
            err_set(err, ERR_TIMEOUT, E8010, "another operation on %s is running%s%s%s", shown,
                    *pid ? " (process " : "", pid, *pid ? ")" : "");
            return err_hint(err, "If nothing is, remove %s/%s.", shown, name);
        }
        if (!poll_sleep(LOCK_AGAIN_MS, cancel_fd, err)) {
            lock__give_up(&l);
            return false;
        }
    }
    lock__sweep(&l);
    *out = l;
    return true;
}

static bool lock__ours(const Lock *l)
{
    ABX_UNSET struct stat st;

    return fstatat(l->folder, l->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == l->inode;
}

bool lock_renew(Lock *l, int64_t ahead_ms, Err *err)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};

    if (!lock__ours(l))
        return err_set(err, ERR_SYSTEM, E8010, "somebody took the lock %s over while this was working", l->name);
    if (ahead_ms > LOCK_AHEAD_MS) {         /* a time that is yet to come is as good to those who subtract it */
        clock_gettime(CLOCK_REALTIME, &times[1]);
        times[1].tv_sec += (time_t)(ahead_ms / 1000);
    } else if (clock_mono_ms() - l->renewed <= LOCK_RENEW_MS) {
        return true;
    }
    if (futimens(l->fd, times) == 0)
        l->renewed = clock_mono_ms();
    return true;
}

void lock_release(Lock *l)
{
    bool gone = !lock__ours(l) || unlinkat(l->folder, l->name, 0) == 0;

    /* Last: while it has two names, another abx knows whose it was. */
    if (gone && l->mine[0])
        unlinkat(l->folder, l->mine, 0);
    close(l->fd);
    l->fd = -1;
}
