/* vendor/system.c and vendor/users.c under other names, held to what this libc does. */
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* In place of /etc/passwd and /etc/group, where there is one. */
static Str system_test_file;

static int system_test_open(const char *path, int flags)
{
    if (!system_test_file.p)
        return open(path, flags);
    int fd = memfd_create("users", MFD_CLOEXEC);
    assert_true(fd >= 0 && write(fd, system_test_file.p, system_test_file.n) == (ssize_t)system_test_file.n);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

#define setgid       system_test_setgid
#define setuid       system_test_setuid
#define setgroups    system_test_setgroups
#define faccessat    system_test_faccessat
#define sysconf      system_test_sysconf
#define strstr       system_test_strstr
#define timegm       system_test_timegm
#define gmtime_r     system_test_gmtime_r
#define getpwnam     system_test_getpwnam
#define getpwuid     system_test_getpwuid
#define getpwuid_r   system_test_getpwuid_r
#define getgrnam     system_test_getgrnam
#define getgrgid     system_test_getgrgid
#define getgrouplist system_test_getgrouplist
#define open         system_test_open
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
struct tm *system_test_gmtime_r(const time_t *when, struct tm *to);
time_t     system_test_timegm(struct tm *t);

#include "../../vendor/system.c"
#include "../../vendor/users.c"
#pragma GCC diagnostic pop
#undef setgid
#undef setuid
#undef setgroups
#undef faccessat
#undef sysconf
#undef strstr
#undef timegm
#undef gmtime_r
#undef getpwnam
#undef getpwuid
#undef getpwuid_r
#undef getgrnam
#undef getgrgid
#undef getgrouplist
#undef open

static void system_test_dates(void **state)
{
    (void)state;
    for (int64_t i = -60000; i < 60000; i++) {
        struct tm a, b;
        time_t    when = i < 0 ? i * 5000011 : i * 86399 * 53 + i;
        assert_non_null(gmtime_r(&when, &a));
        assert_non_null(system_test_gmtime_r(&when, &b));
        assert_true(a.tm_sec == b.tm_sec && a.tm_min == b.tm_min && a.tm_hour == b.tm_hour && a.tm_mday == b.tm_mday &&
                    a.tm_mon == b.tm_mon && a.tm_year == b.tm_year && a.tm_wday == b.tm_wday && a.tm_yday == b.tm_yday);
        assert_int_equal(system_test_timegm(&b), when);
    }
    for (time_t far = INT64_MAX; far > 100000000000000000; far /= 3) {
        struct tm b;
        assert_null(system_test_gmtime_r(&far, &b));
    }
}

static void system_test_words(void **state)
{
    static const char *const texts[] = {"", "a", "ab", "aab", "abab", "aaab", "b"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts) * COUNT_OF(texts); i++) {
        const char *text = texts[i / COUNT_OF(texts)], *wanted = texts[i % COUNT_OF(texts)];
        assert_ptr_equal(system_test_strstr(text, wanted), strstr(text, wanted));
    }
    assert_int_equal(system_test_sysconf(_SC_CLK_TCK), sysconf(_SC_CLK_TCK));
    assert_int_equal(system_test_sysconf(_SC_PAGESIZE), sysconf(_SC_PAGESIZE));
    assert_int_equal(system_test_sysconf(_SC_OPEN_MAX), sysconf(_SC_OPEN_MAX));
    assert_true(system_test_sysconf(_SC_NPROCESSORS_ONLN) >= 1);
    assert_int_equal(system_test_sysconf(-1), -1);
    assert_int_equal(system_test_faccessat(AT_FDCWD, "/", R_OK, 0), 0);
    assert_int_equal(system_test_faccessat(AT_FDCWD, "/no such", F_OK, 0), -1);
}

static void system_test_user(const struct passwd *want, const struct passwd *got)
{
    assert_non_null(got);
    assert_string_equal(got->pw_name, want->pw_name);
    assert_string_equal(got->pw_dir, want->pw_dir);
    assert_string_equal(got->pw_shell, want->pw_shell);
    assert_string_equal(got->pw_gecos, want->pw_gecos);
    assert_true(got->pw_uid == want->pw_uid && got->pw_gid == want->pw_gid);
}

static void system_test_end(void)
{
    free(users__file.text);
    free(users__members);
    users__file = (Users){0};
    users__members = NULL;
    system_test_file = (Str){0};
}

/* Of everybody in /etc/passwd and /etc/group. */
static void system_test_users(void **state)
{
    struct passwd *p, again, *found;
    struct group  *g;
    char           room[1024];
    int            count = 0;

    (void)state;
    for (setpwent(); (p = getpwent()); count++) {
        gid_t want[64], got[64];
        int   n = 64, m = 64;
        system_test_user(p, system_test_getpwnam(p->pw_name));
        assert_int_equal(getgrouplist(p->pw_name, p->pw_gid, want, &n), system_test_getgrouplist(p->pw_name, p->pw_gid, got, &m));
        assert_int_equal(m, n);
        assert_memory_equal(got, want, (size_t)n * sizeof *got);
        m = 0;
        assert_int_equal(system_test_getgrouplist(p->pw_name, p->pw_gid, NULL, &m), -1);
        assert_int_equal(m, n);
    }
    endpwent();
    assert_true(count > 3);
    system_test_user(getpwuid(1), system_test_getpwuid(1));
    assert_int_equal(system_test_getpwuid_r(1, &again, room, sizeof room, &found), 0);
    system_test_user(getpwuid(1), found);
    assert_int_equal(system_test_getpwuid_r(1, &again, room, 5, &found), ERANGE);
    assert_null(found);
    assert_null(system_test_getpwuid(3999999999));
    assert_null(system_test_getpwnam("no such user"));
    assert_null(system_test_getpwnam(""));
    for (setgrent(); (g = getgrent());) {
        struct group *got = system_test_getgrnam(g->gr_name);
        assert_true(got && got->gr_gid == g->gr_gid);
        for (char **a = g->gr_mem, **b = got->gr_mem; *a || *b; a++, b++)
            assert_string_equal(*a, *b);
        assert_string_equal(system_test_getgrgid(g->gr_gid)->gr_name, g->gr_name);
    }
    endgrent();
    assert_null(system_test_getgrnam("no such group"));
    system_test_end();
}

/* Lines that are none are passed over, and the first of two is the one. */
static void system_test_lines(void **state)
{
    static const char *const none[] = {"short", "minus", "letters", "large", "empty", "group", "no such user", "behind"};
    struct passwd *p;
    gid_t          groups[8];
    int            n = 8;

    (void)state;
    system_test_file = STR("short:x:1:1:a:/\nminus:x:-1:0:::\nletters:x:1x:0:::\nlarge:x:4294967296:0:::\nempty:x::0:::\n\n"
                           "group:x:1:y:::\n:x:5:5:::\ntwice:x:7:8:g:/h:/s:with:colons\ntwice:x:9:9:::\nlast:x:4294967294:6:g:/h:/s"
                           "\n\0behind:x:3:3:::\n");
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_null(system_test_getpwnam(none[i]));
    assert_null(system_test_getpwuid(0));
    assert_null(system_test_getpwuid(1));
    assert_string_equal(system_test_getpwuid(5)->pw_name, "");
    p = system_test_getpwnam("twice");
    assert_true(p && p->pw_uid == 7 && p->pw_gid == 8 && strcmp(p->pw_shell, "/s:with:colons") == 0);
    assert_string_equal(system_test_getpwuid(9)->pw_name, "twice");
    p = system_test_getpwuid(4294967294);
    assert_true(p && strcmp(p->pw_name, "last") == 0 && strcmp(p->pw_shell, "/s") == 0);

    system_test_file = STR("a:x:1\nb:x:2:\nc:x:3:me,you,,me\nd:x:x:me\ne:x:5:met,m\nf:x:4294967295:you:me\ng:x:7:me");
    assert_null(system_test_getgrnam("a"));
    assert_null(system_test_getgrnam("d"));
    assert_null(system_test_getgrgid(2)->gr_mem[0]);
    assert_int_equal(system_test_getgrouplist("me", 2, groups, &n), 3);
    assert_true(groups[0] == 2 && groups[1] == 3 && groups[2] == 7 && n == 3);
    n = 2;
    assert_int_equal(system_test_getgrouplist("me", 7, groups, &n), 2);
    assert_true(groups[0] == 7 && groups[1] == 3);
    system_test_file = STR("");
    assert_null(system_test_getgrgid(0));
    assert_null(system_test_getpwuid(0));
    n = 1;
    assert_int_equal(system_test_getgrouplist("me", 2, groups, &n), 1);
    system_test_end();
}

/* A last line that ends with the room for the file, and around that; a line of 1 MB; a file that is refused. */
static void system_test_large(void **state)
{
    static const size_t sizes[] = {65535, 65536, 65537, 131072, 1 << 20, (8 << 20) - 1, 8 << 20};
    char *text = test_malloc(8 << 20);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t n = sizes[i];
        memset(text, 'x', n);
        memcpy(text, "first:x:1:1:", 12);
        memcpy(text + n - 22, ":/:\nlast:x:2:2::/:/sh", 22);
        system_test_file = (Str){text, n};
        struct passwd *p = system_test_getpwnam("last");
        assert_int_equal(p != NULL, n < (8 << 20));
        assert_true(!p || strcmp(p->pw_shell, "/sh") == 0);
        p = system_test_getpwuid(1);
        assert_true(n == (8 << 20) ? !p : strlen(p->pw_gecos) == n - 12 - 22);

        memset(text, ',', n);
        memcpy(text, "many:x:1:", 9);
        memcpy(text + n - 3, ",me", 3);
        gid_t groups[2];
        int   room = 2;
        assert_int_equal(system_test_getgrouplist("me", 5, groups, &room), n < (8 << 20) ? 2 : 1);
    }
    test_free(text);
    system_test_end();
}

static const struct CMUnitTest system_tests[] = {
    cmocka_unit_test(system_test_dates),
    cmocka_unit_test(system_test_words),
    cmocka_unit_test(system_test_users),
    cmocka_unit_test(system_test_lines),
    cmocka_unit_test(system_test_large),
};
