#include "os/env.h"
#include "os/fs.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>
#include <unistd.h>

/* Each test has a folder of its own, and is in it. */
static int fs_enter(void **state)
{
    char dir[] = "/tmp/abx-fs-XXXXXX";

    *state = getcwd(NULL, 0);
    return *state && mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int fs_leave(void **state)
{
    char          *dir = getcwd(NULL, 0);
    DIR           *d = opendir(".");
    struct dirent *e;

    while (d && (e = readdir(d)) != NULL)
        if (unlink(e->d_name) != 0)
            rmdir(e->d_name);
    closedir(d);
    bool ok = dir && chdir(*state) == 0 && rmdir(dir) == 0;
    free(dir);
    free(*state);
    return ok ? 0 : -1;
}

static void fs_put(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");

    assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static bool fs_holds(const char *name, const char *text)
{
    Buf  b = buf_make(1 << 20);
    Err  err;
    bool same = fs_read(name, &b, &err) && str_eq(buf_str(&b), str_from(text));

    buf_free(&b);
    return same;
}

static size_t fs_entries(void)
{
    DIR   *d = opendir(".");
    size_t n = 0;

    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void fs_read_test(void **state)
{
    Buf b = buf_make(5);
    Err err;

    (void)state;
    fs_put("five", "12345");
    fs_put("six", "123456");
    fs_put("empty", "");
    assert_true(symlink("five", "link") == 0 && symlink("nowhere", "dangling") == 0 && mkfifo("fifo", 0600) == 0 &&
                mkdir("dir", 0700) == 0);
    assert_true(fs_read("five", &b, &err) && str_eq(buf_str(&b), STR("12345")));
    assert_true(!fs_read("five", &b, &err) && err.kind == ERR_LIMIT);      /* it is added to what is there */
    buf_clear(&b);
    assert_true(fs_read("empty", &b, &err) && b.n == 0);
    assert_true(fs_read("link", &b, &err) && b.n == 5);
    buf_clear(&b);
    assert_false(fs_read("six", &b, &err));
    assert_string_equal(err.text, "six: more than 5 bytes");
    assert_true(!fs_read("none", &b, &err) && err.kind == ERR_NOT_FOUND && err.sys == ENOENT);
    assert_string_equal(err.text, "cannot open none: No such file or directory");
    assert_true(!fs_read("dangling", &b, &err) && err.kind == ERR_NOT_FOUND);
    assert_true(!fs_read("five/x", &b, &err) && err.kind == ERR_NOT_FOUND);
    assert_true(!fs_read("fifo", &b, &err) && err.kind == ERR_INPUT);
    assert_true(!fs_read("dir", &b, &err) && err.kind == ERR_INPUT);
    assert_string_equal(err.text, "dir is not a regular file");
    assert_true(!fs_read("/dev/zero", &b, &err) && err.kind == ERR_INPUT);
    buf_free(&b);
}

static void fs_dir_test(void **state)
{
    struct stat st;
    Err         err;

    (void)state;
    fs_put("file", "");
    assert_true(fs_make_dir("new", &err) && stat("new", &st) == 0 && (st.st_mode & 07777) == 0700);
    assert_true(fs_make_dir("new", &err));
    assert_false(fs_make_dir("file", &err));
    assert_string_equal(err.text, "cannot make the folder file: File exists");
    assert_false(fs_make_dir("no/where", &err));
}

static mode_t fs_mode(const char *name)
{
    struct stat st;

    return lstat(name, &st) == 0 ? st.st_mode & 07777 : 0;
}

static void fs_temp_test(void **state)
{
    FsTemp t;
    Err    err;
    mode_t mask = umask(022);
    Sink   to;

    (void)state;
    /* a new file; seen under its name when it is whole */
    assert_true(fs_temp_open("new", -1, &t, &err));
    to = fs_temp_sink(&t);
    assert_true(fs_temp_write(&t, STR("one "), &err) && to.write(to.ctx, STR("two"), &err));
    assert_true(access("new", F_OK) != 0 && fs_entries() == 1);
    assert_true(strncmp(strrchr(t.temp, '/') ? strrchr(t.temp, '/') + 1 : t.temp, ".abx-", 5) == 0);
    assert_true(fs_temp_commit(&t, true, &err) && fs_holds("new", "one two") && fs_mode("new") == 0644);
    fs_temp_abort(&t);
    assert_int_equal(fs_entries(), 1);

    /* in place of another, whose mode it keeps, and given up */
    assert_true(chmod("new", 0600) == 0);
    assert_true(fs_temp_open("new", -1, &t, &err) && fs_temp_write(&t, STR("x"), &err));
    fs_temp_abort(&t);
    assert_true(fs_holds("new", "one two") && fs_entries() == 1);
    assert_true(fs_temp_open("new", -1, &t, &err) && fs_temp_write(&t, STR("x"), &err));
    assert_true(fs_temp_commit(&t, false, &err) && fs_holds("new", "x") && fs_mode("new") == 0600);
    assert_true(fs_temp_open("new", 0751, &t, &err) && fs_temp_commit(&t, false, &err) && fs_mode("new") == 0751);

    /* through a link, which stays one */
    assert_true(symlink("new", "link") == 0);
    assert_true(fs_temp_open("link", -1, &t, &err) && fs_temp_write(&t, STR("y"), &err));
    assert_true(fs_temp_commit(&t, false, &err) && fs_holds("new", "y") && (fs_mode("link") & 0777) == 0777);

    /* a device is written, never replaced */
    assert_true(fs_temp_open("/dev/null", -1, &t, &err) && !t.temp && fs_temp_write(&t, STR("z"), &err));
    assert_true(fs_temp_commit(&t, true, &err) && access("/dev/null", W_OK) == 0);
    umask(mask);
}

static void fs_temp_refuse_test(void **state)
{
    FsTemp t = {0};
    Err    err;

    (void)state;
    fs_temp_abort(&t);
    assert_true(mkdir("dir", 0700) == 0);
    assert_false(fs_temp_open("dir", -1, &t, &err));
    assert_string_equal(strrchr(err.text, ':'), ": Is a directory");
    assert_true(!fs_temp_open("no/where", -1, &t, &err) && err.kind == ERR_NOT_FOUND);
    assert_string_equal(err.text, "cannot create no/where: No such file or directory");
    assert_true(!fs_temp_open("", -1, &t, &err) && err.kind == ERR_NOT_FOUND);
    assert_true(!fs_temp_open("new/", -1, &t, &err) && err.sys == EISDIR);

    /* the folder goes away before the end: nothing is left behind */
    assert_true(fs_temp_open("dir/file", -1, &t, &err));
    assert_true(unlink(t.temp) == 0 && rmdir("dir") == 0);
    assert_false(fs_temp_commit(&t, false, &err));
    assert_int_equal(fs_entries(), 0);

    /* a full disk, as a file size limit: the first part of the write is taken */
    struct rlimit old, small = {10, RLIM_INFINITY};
    assert_true(getrlimit(RLIMIT_FSIZE, &old) == 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_true(fs_temp_open("file", -1, &t, &err) && setrlimit(RLIMIT_FSIZE, &small) == 0);
    bool ok = fs_temp_write(&t, STR("0123456789abcdef"), &err);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_DFL);
    assert_true(!ok && err.sys == EFBIG);
    fs_temp_abort(&t);
    assert_int_equal(fs_entries(), 0);
}

static void fs_home_test(void **state)
{
    Arena a = arena_make(1 << 20);
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL, *mine = getenv("ABX_HOME") ? strdup(getenv("ABX_HOME")) : NULL;

    (void)state;
    setenv("ABX_HOME", "/x/y", 1);
    setenv("HOME", "/home/z", 1);
    assert_string_equal(env_abx_home(&a).p, "/x/y");
    setenv("ABX_HOME", "", 1);
    assert_string_equal(env_abx_home(&a).p, "/home/z/.abx");
    assert_true(env_get("ABX_HOME").p && env_get("ABX_HOME").n == 0);
    unsetenv("ABX_HOME");
    unsetenv("HOME");
    assert_null(env_get("ABX_HOME").p);
    Str system = env_abx_home(&a);
    assert_true(!system.p || strcmp(system.p + system.n - 5, "/.abx") == 0);
    if (home)
        setenv("HOME", home, 1);
    if (mine)
        setenv("ABX_HOME", mine, 1);
    free(home);
    free(mine);
    arena_free(&a);
}

static const struct CMUnitTest fs_tests[] = {
    cmocka_unit_test_setup_teardown(fs_read_test, fs_enter, fs_leave),
    cmocka_unit_test_setup_teardown(fs_dir_test, fs_enter, fs_leave),
    cmocka_unit_test_setup_teardown(fs_temp_test, fs_enter, fs_leave),
    cmocka_unit_test_setup_teardown(fs_temp_refuse_test, fs_enter, fs_leave),
    cmocka_unit_test(fs_home_test),
};
