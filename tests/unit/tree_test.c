#include "base/limits.h"
#include "host/treefs.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static bool tree_put(Tree *t, const char *path, bool executable, const char *text, Err *err)
{
    char *to;

    if (!tree_add(t, guard_copy(str_from(path)), executable, (int64_t)strlen(text), &to, err))
        return false;
    memcpy(to, text, strlen(text));
    return true;
}

/* ---- the other hosts' answers ---- */

static void tree_vectors_test(void **state)
{
    (void)state;
    vectors_whole("paths", 85);
    vectors_whole("sets", 45);
    vectors_whole("tree_digest", 20);
}

/* ---- building ---- */

static void tree_seal_test(void **state)
{
    static const struct { const char *v[4]; const char *want; } cases[] = {
        {{"a", "b"}, NULL},
        {{"a", "a/b"}, "unsafe entry a: it is a file and a folder"},
        {{"a/b", "a-b", "a"}, "unsafe entry a: it is a file and a folder"},     /* a-b sorts between the two */
        {{"a/b/c", "a/b.c", "a/b"}, "unsafe entry a/b: it is a file and a folder"},
        {{"a", "ab/c"}, NULL},
        {{"a/b", "a-b", "a.b", "a0"}, NULL},
        {{"x", "y", "x"}, "unsafe entry x: it is there twice"},
        {{"x/Y", "z", "X/y"}, NULL},                                            /* see below */
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Tree t = tree_make();
        Err  err = {0};
        for (size_t k = 0; k < 4 && cases[i].v[k]; k++)
            assert_true(tree_put(&t, cases[i].v[k], false, "", &err));
        bool ok = tree_seal(&t, &err);
        if (i == COUNT_OF(cases) - 1)
            assert_true(!ok && strstr(err.text, "differs from it in case alone"));
        else if (cases[i].want)
            assert_true(!ok && strcmp(err.text, cases[i].want) == 0);
        else
            assert_true(ok);
        tree_free(&t);
    }
    Tree none = {0};
    tree_free(&none);
}

/* As many files as there may be, with names as alike as names can be: sorting
 * is what decides, not each with each. */
static void tree_alike_test(void **state)
{
    Tree  t = tree_make();
    Err   err;
    char  name[4003], *to;

    (void)state;
    memset(name, 'A', sizeof name);
    for (int i = 0; i < LIMIT_TREE_FILES; i++) {
        snprintf(name + 3990, 12, "%05d", i);
        assert_true(tree_add(&t, str_from(name), false, 1, &to, &err));
    }
    assert_true(!tree_add(&t, STR("one more"), false, 1, &to, &err) && err.kind == ERR_LIMIT);
    assert_true(tree_seal(&t, &err));
    assert_non_null(tree_find(&t, str_from(name)));
    assert_null(tree_find(&t, STR("A")));
    tree_free(&t);

    t = tree_make();
    for (size_t left = LIMIT_TREE_PATHS; left; left -= 4096) {
        char path[4096];
        memset(path, 'x', sizeof path);
        if (left > 4096)
            assert_true(tree_add(&t, (Str){path, sizeof path}, false, 0, &to, &err) || t.n == LIMIT_TREE_FILES);
        if (t.n == LIMIT_TREE_FILES)
            break;
    }
    assert_int_equal(t.n, LIMIT_TREE_FILES);    /* so the limit of all paths is that of the longest of Linux */
    tree_free(&t);
    t = tree_make();
    char *all = mem_new(LIMIT_TREE_PATHS + 1);
    memset(all, 'x', LIMIT_TREE_PATHS + 1);
    assert_true(!tree_add(&t, (Str){all, LIMIT_TREE_PATHS + 1}, false, 0, &to, &err) && err.kind == ERR_LIMIT);
    assert_true(tree_add(&t, (Str){all, LIMIT_TREE_PATHS}, false, 0, &to, &err));
    assert_true(!tree_add(&t, STR("y"), false, 0, &to, &err) && err.kind == ERR_LIMIT);
    mem_free(all);
    tree_free(&t);
}

static void tree_add_test(void **state)
{
    Tree  t = tree_make();
    Err   err;
    char *to;

    (void)state;
    assert_false(tree_put(&t, "a\x1b[31mb\n/..", false, "", &err));
    assert_string_equal(err.text, "unsafe entry ab /..: an empty part, `.` or `..` in the path");
    assert_false(tree_put(&t, "\xff", false, "", &err));
    assert_string_equal(err.text, "unsafe entry \xef\xbf\xbd: the name is not UTF-8");
    assert_true(!tree_put(&t, "data/x", false, "", &err) && !tree_put(&t, ".git", false, "", &err));
    assert_true(tree_put(&t, "x/.git/y", false, "", &err) && tree_put(&t, "x/.abx-install.json", false, "", &err));
    assert_true(!tree_add(&t, STR("big"), false, LIMIT_TREE_FILE + 1, &to, &err) && err.code == E8010);
    assert_true(!tree_add(&t, STR("big"), false, INT64_MAX, &to, &err) && !tree_add(&t, STR("big"), false, -1, &to, &err));
    assert_int_equal(t.n, 2);
    tree_free(&t);
}

/* ---- folders ---- */

static void tree_make_file(const char *name, const char *text, mode_t mode)
{
    fs_put(name, text);
    assert_true(chmod(name, mode) == 0);
}

static int tree_leave(void **state)
{
    char *dir = getcwd(NULL, 0), command[4200];

    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    bool ok = chdir(*state) == 0 && system(command) == 0;
    free(dir);
    free(*state);
    return ok ? 0 : -1;
}

static void tree_read_test(void **state)
{
    Tree t;
    Err  err;
    char hex[TREE_HEX], again[TREE_HEX];

    (void)state;
    assert_true(mkdir("s", 0755) == 0 && mkdir("s/.git", 0755) == 0 && mkdir("s/b", 0755) == 0 &&
                mkdir("s/b/.git", 0755) == 0 && mkdir("s/data", 0755) == 0 && mkdir("s/empty", 0755) == 0);
    tree_make_file("s/.git/config", "x", 0644);
    tree_make_file("s/.abx-install.json", "{}", 0644);
    tree_make_file("s/b/.git/config", "y", 0644);
    tree_make_file("s/b/run", "#!/bin/sh\n", 0755);
    tree_make_file("s/b-1", "1", 0611);
    tree_make_file("s/.env", "", 0640);
    assert_true(treefs_read("s", &t, &err));
    static const char *const want[] = {".env", "b-1", "b/.git/config", "b/run"};
    assert_int_equal(t.n, COUNT_OF(want));
    for (size_t i = 0; i < t.n; i++)
        assert_true(str_eq(t.v[i].path, str_from(want[i])) && t.v[i].executable == (i == 3));
    assert_true(str_eq(t.v[3].bytes, STR("#!/bin/sh\n")));
    tree_digest(&t, hex);

    /* written, the modes are ours whatever the umask says, and the digest is the same */
    assert_true(mkdir("w", 0777) == 0);
    mode_t mask = umask(0577);
    int    fd = open("w", O_RDONLY | O_DIRECTORY);
    assert_true(treefs_write(&t, fd, &err));
    umask(mask);
    assert_true(fs_mode("w") == 0700 && fs_mode("w/b") == 0700 && fs_mode("w/b/run") == 0700 && fs_mode("w/b-1") == 0600);
    assert_true(fs_holds("w/b/run", "#!/bin/sh\n") && fs_holds("w/.env", ""));
    assert_true(!treefs_write(&t, fd, &err) && strstr(err.text, "File exists"));
    close(fd);
    assert_true(treefs_digest("w", NULL, NULL, again, &err));
    assert_string_equal(hex, again);
    tree_free(&t);

    assert_true(!treefs_read("none", &t, &err) && err.code == E8010 && err.kind == ERR_NOT_FOUND);
    assert_true(!treefs_read("s/b-1", &t, &err) && err.code == E8010);
    tree_make_file("s/data/x", "", 0600);
    assert_true(!treefs_read("s", &t, &err) && strstr(err.text, "data/x"));
}

static void tree_unsafe_test(void **state)
{
    static const struct { const char *name, *why; } cases[] = {
        {"link", "a symbolic link"}, {"dangling", "a symbolic link"}, {"dirlink", "a symbolic link"},
        {"fifo", "no regular file"}, {"socket", "no regular file"}, {"device", "no regular file"},
        {"hard", "a hard link"}, {"A", "in case alone"}, {"bad\xff", "not UTF-8"}, {"dot.", "ends in a dot"},
    };
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "socket"};
    char hex[TREE_HEX];
    Tree t;
    Err  err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_true(mkdir("s", 0700) == 0 && mkdir("s/sub", 0700) == 0 && chdir("s/sub") == 0);
        tree_make_file("a", "text", 0600);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        int made = i == 0 ? symlink("a", "link") : i == 1 ? symlink("nowhere", "dangling") : i == 2 ? symlink("..", "dirlink") :
                   i == 3 ? mkfifo("fifo", 0600) : i == 4 ? bind(fd, (struct sockaddr *)&at, sizeof at) :
                   i == 5 ? mknod("device", S_IFCHR | 0600, 0x103) : i == 6 ? link("a", "hard") : 0;
        if (i >= 7)
            tree_make_file(cases[i].name, "x", 0600);
        close(fd);
        assert_true(chdir("../..") == 0);
        if (made == 0) {
            bool ok = treefs_read("s", &t, &err);
            if (ok || !strstr(err.text, cases[i].why) || !strstr(err.text, "sub/") || err.code != E8010)
                fail_msg("%s: %s", cases[i].name, ok ? "accepted" : err.text);
            if (i < 6)
                assert_true(!treefs_digest("s", NULL, NULL, hex, &err) && err.code == E8011);
        } else {
            assert_int_equal(i, 5);     /* who is not root makes no devices */
        }
        assert_int_equal(system("rm -r s"), 0);
    }
}

static void tree_too_much_test(void **state)
{
    char hex[TREE_HEX], name[40];
    Tree t;
    Err  err;

    (void)state;
    assert_true(mkdir("s", 0700) == 0);
    tree_make_file("s/big", "", 0600);
    assert_true(truncate("s/big", LIMIT_TREE_FILE + 1) == 0);
    assert_true(!treefs_read("s", &t, &err) && strstr(err.text, "big: larger than 10 MiB"));
    assert_true(truncate("s/big", LIMIT_TREE_BYTES + 1) == 0);
    assert_true(!treefs_digest("s", NULL, NULL, hex, &err) && err.code == E8011);
    assert_true(truncate("s/big", 0) == 0);
    for (int i = 0; i < LIMIT_TREE_FILES; i++) {
        snprintf(name, sizeof name, "s/%d", i);
        tree_make_file(name, "", 0600);
    }
    assert_true(!treefs_read("s", &t, &err) && err.kind == ERR_LIMIT);
    assert_true(!treefs_digest("s", NULL, NULL, hex, &err) && err.code == E8011);
    assert_true(unlink("s/big") == 0);
    assert_true(treefs_read("s", &t, &err) && treefs_digest("s", NULL, NULL, hex, &err));
    tree_free(&t);

    /* folders in folders */
    assert_int_equal(system("rm -r s"), 0);
    assert_true(mkdir("s", 0700) == 0);
    int fd = open("s", O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < LIMIT_TREE_DEPTH + 1; i++) {
        if (i == LIMIT_TREE_DEPTH)
            assert_true(treefs_read("s", &t, &err)), tree_free(&t);
        assert_true(mkdirat(fd, "d", 0700) == 0);
        int next = openat(fd, "d", O_RDONLY | O_DIRECTORY);
        close(fd);
        fd = next;
    }
    close(fd);
    assert_true(!treefs_read("s", &t, &err) && strstr(err.text, "too many folders"));
}

/* What is taken can be walked through again: no archive or commit is deeper, or
 * has more folders, than a folder may. */
static void tree_walkable_test(void **state)
{
    char path[2 * LIMIT_TREE_DEPTH + 32];
    Tree t = tree_make();
    Err  err;

    for (int i = 0; i <= LIMIT_TREE_DEPTH; i++)
        memcpy(path + 2 * i, "d/", 3);
    assert_true(!tree_take(&t, str_from(arena_fmt(&t.own, "%sx", path).p), false, STR(""), &err));
    assert_true(err.code == E8010 && strstr(err.text, "too many folders"));
    assert_true(tree_take(&t, str_from(arena_fmt(&t.own, "%sx", path + 2).p), false, STR(""), &err));
    assert_true(tree_seal(&t, &err));
    int each = LIMIT_TREE_DEPTH, many = (LIMIT_TREE_ENTRIES - each - 1) / (each + 1);
    for (int i = 0; i < many; i++)
        assert_true(tree_take(&t, str_from(arena_fmt(&t.own, "%d/%sx", i, path + 4).p), false, STR(""), &err));
    for (int left = (LIMIT_TREE_ENTRIES - each - 1) % (each + 1), i = 0; i < left; i++)
        assert_true(tree_take(&t, str_from(arena_fmt(&t.own, "f%d", i).p), false, STR(""), &err));
    assert_true(tree_seal(&t, &err));
    assert_true(tree_take(&t, STR("z"), false, STR(""), &err) && !tree_seal(&t, &err));
    assert_true(err.code == E8010 && err.kind == ERR_LIMIT);
    tree_free(&t);
    (void)state;
}

/* What an installed tree may hold beside what was installed. */
static void tree_installed_test(void **state)
{
    static const struct { const char *name; const char *to; bool same; } links[] = {
        {"data", "../.staging/demo-01234567/data", true}, {"data", "../.trash/demo-01234567/data", true},
        {"data", "/etc", false}, {"data", "../other/data", false}, {".git", "/etc", true}, {"x", "../.trash/x/data", false},
    };
    char hex[TREE_HEX], again[TREE_HEX];
    Err  err;

    (void)state;
    assert_true(mkdir("s", 0700) == 0 && mkdir("s/data", 0700) == 0 && mkdir("s/sub", 0700) == 0);
    tree_make_file("s/a", "1", 0700);
    assert_true(treefs_digest("s", NULL, NULL, hex, &err));
    tree_make_file("s/data/x", "1", 0700);
    tree_make_file("s/.abx-install.json", "1", 0600);
    assert_true(treefs_digest("s", NULL, NULL, again, &err) && strcmp(hex, again) == 0);
    tree_make_file("s/sub/new", "1", 0600);
    assert_true(treefs_digest("s", NULL, NULL, again, &err) && strcmp(hex, again) != 0);
    assert_int_equal(system("rm -r s/sub/new s/data"), 0);
    tree_make_file("s/data", "", 0600);         /* a file, so it counts */
    assert_true(treefs_digest("s", NULL, NULL, again, &err) && strcmp(hex, again) != 0);
    assert_true(unlink("s/data") == 0);
    for (size_t i = 0; i < COUNT_OF(links); i++) {
        char name[40];
        snprintf(name, sizeof name, "s/%s", links[i].name);
        assert_true(symlink(links[i].to, name) == 0);
        if (links[i].same)
            assert_true(treefs_digest("s", NULL, NULL, again, &err) && strcmp(hex, again) == 0);
        else
            assert_true(!treefs_digest("s", NULL, NULL, again, &err) && err.code == E8011);
        assert_true(unlink(name) == 0);
    }
    assert_true(chmod("s/a", 0600) == 0);
    assert_true(treefs_digest("s", NULL, NULL, again, &err) && strcmp(hex, again) != 0);
    assert_true(!treefs_digest("none", NULL, NULL, again, &err) && err.code == E8011 && err.kind == ERR_NOT_FOUND);
}

static const struct CMUnitTest tree_tests[] = {
    cmocka_unit_test(tree_vectors_test),
    cmocka_unit_test(tree_seal_test),
    cmocka_unit_test(tree_alike_test),
    cmocka_unit_test(tree_add_test),
    cmocka_unit_test_setup_teardown(tree_read_test, fs_enter, tree_leave),
    cmocka_unit_test_setup_teardown(tree_unsafe_test, fs_enter, tree_leave),
    cmocka_unit_test_setup_teardown(tree_too_much_test, fs_enter, tree_leave),
    cmocka_unit_test(tree_walkable_test),
    cmocka_unit_test_setup_teardown(tree_installed_test, fs_enter, tree_leave),
};
