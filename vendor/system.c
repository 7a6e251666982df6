/* system.c - a few functions in place of musl's, 5 KB smaller: ids of a process that
 * has one thread, what abx and its tests ask of sysconf() (tools/check-calls names what
 * is not answered here), dates, strstr() of short texts. timegm() takes its fields as they
 * are, and leaves them so. tests/unit/system_test.c holds it to another libc.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* musl stops all threads first, for each has ids of its own. */
int setgid(gid_t gid)
{
    return (int)syscall(SYS_setgid, gid);
}

int setuid(uid_t uid)
{
    return (int)syscall(SYS_setuid, uid);
}

int setgroups(size_t n, const gid_t *groups)
{
    return (int)syscall(SYS_setgroups, n, groups);
}

/* Without flags, as the kernel has it. */
int faccessat(int fd, const char *path, int mode, int flags)
{
    if (flags) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_faccessat, fd, path, mode);
}

long sysconf(int name)
{
    unsigned long cpus[128] = {0};
    struct rlimit files;
    long          n = 0;

    switch (name) {
    case _SC_CLK_TCK:
        return 100;
    case _SC_PAGESIZE:
        return (long)getauxval(AT_PAGESZ);
    case _SC_OPEN_MAX:
        return getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur <= INT64_MAX ? (long)files.rlim_cur : -1;
    case _SC_NPROCESSORS_ONLN:
        syscall(SYS_sched_getaffinity, 0, sizeof cpus, cpus);
        for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++)
            for (unsigned long bits = cpus[i]; bits; bits &= bits - 1)
                n++;
        return n ? n : 1;
    default:
        errno = EINVAL;
        return -1;
    }
}

char *strstr(const char *text, const char *wanted)
{
    size_t n = strlen(wanted);

    for (; strncmp(text, wanted, n) != 0; text++)
        if (!*text)
            return NULL;
    return (char *)text;
}

/* Days since 1970 of a day in a year that begins in March: then a leap day is its last. */
static int64_t system__days(int64_t year, int64_t month, int64_t day)
{
    int64_t months = year * 12 + month - 3, y, m;

    y = months >= 0 ? months / 12 : (months - 11) / 12;
    m = months - y * 12;
    int64_t era = y >= 0 ? y / 400 : (y - 399) / 400, of = y - era * 400;
    return era * 146097 + of * 365 + of / 4 - of / 100 + (153 * m + 2) / 5 + day - 1 - 719468;
}

time_t timegm(struct tm *t)
{
    int64_t days = system__days(t->tm_year + (int64_t)1900, t->tm_mon + (int64_t)1, t->tm_mday);

    return ((days * 24 + t->tm_hour) * 60 + t->tm_min) * 60 + t->tm_sec;
}

struct tm *gmtime_r(const time_t *when, struct tm *to)
{
    int64_t days = *when / 86400, rest = *when % 86400, year;
    int     month = 12;

    if (rest < 0) {
        rest += 86400;
        days--;
    }
    year = 1970 + days * 400 / 146097;      /* or the one before or behind it */
    while (system__days(year, 1, 1) > days)
        year--;
    while (system__days(year + 1, 1, 1) <= days)
        year++;
    if (year - 1900 > INT32_MAX || year - 1900 < INT32_MIN) {
        errno = EOVERFLOW;
        return NULL;
    }
    while (system__days(year, month, 1) > days)
        month--;
    *to = (struct tm){
        .tm_sec = (int)(rest % 60), .tm_min = (int)(rest / 60 % 60), .tm_hour = (int)(rest / 3600),
        .tm_mday = (int)(days - system__days(year, month, 1)) + 1, .tm_mon = month - 1, .tm_year = (int)(year - 1900),
        .tm_wday = (int)((days % 7 + 11) % 7), .tm_yday = (int)(days - system__days(year, 1, 1)), .tm_zone = "UTC",
    };
    return to;
}
