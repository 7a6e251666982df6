#include "os/lock.h"
#include <sys/file.h>
#include <sys/wait.h>

enum { LOCK_SOON = 150 };

static int lock_folder(void)
{
    return open(".", O_RDONLY | O_DIRECTORY);
}

/* As another host leaves one. */
static void lock_put(const char *text, int age)
{
    struct timespec times[2] = {{0, UTIME_NOW}, {time(NULL) - age, 0}};

    unlink(".lock");
    fs_put(".lock", text);
    assert_true(utimensat(AT_FDCWD, ".lock", times, AT_SYMLINK_NOFOLLOW) == 0);
}

static void lock_take_test(void **state)
{
    int    folder = lock_folder();
    Lock   l, other;
    Err    err;
    char   pid[24];
    struct stat st;

    (void)state;
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    assert_true(lock_take(folder, ".lock", "/x", -1, clock_after(LOCK_SOON), &l, &err));
    assert_true(fs_holds(".lock", pid) && fs_mode(".lock") == 0600 && fs_entries() == 2);

    /* held: by an abx, even this one, however old the file is */
    assert_true(utimensat(folder, ".lock", (struct timespec[2]){{1, 0}, {1, 0}}, 0) == 0);
    int64_t start = clock_mono_ms();
    assert_false(lock_take(folder, ".lock", "/x", -1, clock_after(LOCK_SOON), &other, &err));
    assert_true(err.code == E8010 && clock_mono_ms() - start >= LOCK_SOON);
    assert_true(strstr(err.text, pid) && strstr(err.hint, "/x/.lock") && fs_entries() == 2);

    /* its time is renewed, but not at each call */
    assert_true(lock_renew(&l, 0, &err) && stat(".lock", &st) == 0 && st.st_mtime == 1);
    assert_true(lock_renew(&l, LOCK_AHEAD_MS, &err) && stat(".lock", &st) == 0 && st.st_mtime == 1);
    l.renewed -= LOCK_RENEW_MS + 1;
    assert_true(lock_renew(&l, 0, &err) && stat(".lock", &st) == 0 && time(NULL) - st.st_mtime < 10);
    assert_true(lock_renew(&l, 3600000, &err) && stat(".lock", &st) == 0 && st.st_mtime - time(NULL) > 3500);

    /* taken over by another host: we notice, and leave it alone */
    lock_put("1", 0);
    assert_true(!lock_renew(&l, 0, &err) && err.code == E8010);
    lock_release(&l);
    assert_true(fs_holds(".lock", "1") && fs_entries() == 1);
    unlink(".lock");
    assert_true(lock_take(folder, ".lock", "/x", -1, clock_after(LOCK_SOON), &l, &err));
    lock_release(&l);
    assert_int_equal(fs_entries(), 0);
    close(folder);
}

/* Was pid 1, which is root's, there before a lock that is so many seconds old? */
static bool lock_init_lives(int age)
{
    struct timespec up;

    clock_gettime(CLOCK_BOOTTIME, &up);
    return geteuid() == 0 && up.tv_sec > age + 5;
}

static void lock_others_test(void **state)
{
    struct { const char *text; int age; bool taken; } cases[] = {
        {"", 0, false}, {"999999999", 0, false}, {"999999999", 298, false}, {"999999999", 302, true},
        {"", 302, true}, {"abc", 302, true}, {"-1", 302, true}, {"../self", 302, true}, {"0", 302, true},
        {"1", 302, !lock_init_lives(302)},
        {"self", 302, true},
        {"mine", 4000000, true},        /* older than this process: another had the number */
        {"999999999", -1000, false},    /* from the future */
    };
    int folder = lock_folder();

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[24];
        Lock l;
        Err  err;
        snprintf(text, sizeof text, "%d", (int)getpid());
        lock_put(strcmp(cases[i].text, "mine") == 0 ? text : cases[i].text, cases[i].age);
        bool ok = lock_take(folder, ".lock", "/x", -1, clock_after(LOCK_SOON), &l, &err);
        if (ok != cases[i].taken)
            fail_msg("`%s`, %d s: %s", cases[i].text, cases[i].age, ok ? "taken" : err.text);
        if (ok)
            lock_release(&l);
    }
    unlink(".lock");

    /* what is no file */
    Lock l;
    Err  err;
    assert_true(mkdir(".lock", 0700) == 0);
    assert_true(!lock_take(folder, ".lock", "/x", -1, clock_after(LOCK_SOON), &l, &err) && err.code == E8010);
    assert_true(rmdir(".lock") == 0 && symlink("nowhere", ".lock") == 0);
    assert_true(!lock_take(folder, ".lock", "/x", -1, clock_after(LOCK_SOON), &l, &err) && access("nowhere", F_OK) != 0);
    assert_true(utimensat(folder, ".lock", (struct timespec[2]){{1, 0}, {1, 0}}, AT_SYMLINK_NOFOLLOW) == 0);
    assert_true(lock_take(folder, ".lock", "/x", -1, clock_after(LOCK_SOON), &l, &err));
    lock_release(&l);
    assert_true(access("nowhere", F_OK) != 0 && fs_entries() == 0);
    assert_true(mkfifo(".lock", 0600) == 0);
    assert_false(lock_take(folder, ".lock", "/x", -1, clock_after(LOCK_SOON), &l, &err));
    unlink(".lock");
    close(folder);
    assert_true(!lock_take(-1, ".lock", "/x", -1, clock_after(LOCK_SOON), &l, &err) && err.sys == EBADF);
}

/* A process with the lock, which ends without a word when told to. */
static pid_t lock_child(int folder, bool release, int *go)
{
    int   ready[2], end[2];
    char  c;

    assert_true(pipe(ready) == 0 && pipe(end) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        Lock l;
        Err  err;
        close(end[1]);
        if (!lock_take(folder, ".lock", "/x", -1, clock_after(LOCK_SOON), &l, &err) || write(ready[1], "", 1) != 1)
            _exit(1);
        ssize_t n = read(end[0], &c, 1);
        if (release) {
            poll(NULL, 0, 300);
            lock_release(&l);
        }
        _exit(n == 0 ? 0 : 1);
    }
    close(ready[1]);
    close(end[0]);
    assert_true(pid > 0 && read(ready[0], &c, 1) == 1);
    close(ready[0]);
    *go = end[1];
    return pid;
}

static void lock_processes_test(void **state)
{
    int  folder = lock_folder(), go, status, cancel[2];
    Lock l;
    Err  err;

    (void)state;
    /* dead: at once, and its second name goes, too */
    pid_t pid = lock_child(folder, false, &go);
    assert_false(lock_take(folder, ".lock", "/x", -1, clock_after(LOCK_SOON), &l, &err));
    close(go);
    assert_true(waitpid(pid, &status, 0) == pid && status == 0 && fs_entries() == 2);
    int64_t start = clock_mono_ms();
    assert_true(lock_take(folder, ".lock", "/x", -1, clock_after(10000), &l, &err));
    assert_true(clock_mono_ms() - start < 5000 && fs_entries() == 2);
    lock_release(&l);
    assert_int_equal(fs_entries(), 0);

    /* busy for a while */
    pid = lock_child(folder, true, &go);
    close(go);
    assert_true(lock_take(folder, ".lock", "/x", -1, clock_after(30000), &l, &err));
    assert_true(waitpid(pid, &status, 0) == pid && status == 0);

    /* Ctrl-C while waiting */
    Lock second;
    assert_true(pipe(cancel) == 0 && write(cancel[1], "", 1) == 1);
    assert_true(!lock_take(folder, ".lock", "/x", cancel[0], clock_after(30000), &second, &err) && err.kind == ERR_CANCELLED);
    assert_int_equal(fs_entries(), 2);
    lock_release(&l);
    assert_int_equal(fs_entries(), 0);
    close(cancel[0]);
    close(cancel[1]);
    close(folder);
}

static const struct CMUnitTest lock_tests[] = {
    cmocka_unit_test_setup_teardown(lock_take_test, fs_enter, fs_leave),
    cmocka_unit_test_setup_teardown(lock_others_test, fs_enter, fs_leave),
    cmocka_unit_test_setup_teardown(lock_processes_test, fs_enter, fs_leave),
};
