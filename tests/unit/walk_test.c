#include "sync/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* --- a folder of one's own --------------------------------------------------------- */

static char walk_test__root[64];
static int  walk_test__here = -1;

static int walk_test__begin(void **state)
{
    (void)state;
    strcpy(walk_test__root, "/tmp/abx-walk-XXXXXX");
    walk_test__here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return mkdtemp(walk_test__root) && walk_test__here >= 0 && chdir(walk_test__root) == 0 ? 0 : -1;
}

static int walk_test__end(void **state)
{
    (void)state;
    int back = fchdir(walk_test__here);
    close(walk_test__here);
    folder_remove(AT_FDCWD, walk_test__root);
    return back;
}

static void walk_test__file(const char *name, Str content)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, content.p, content.n), content.n);
    close(fd);
}

enum { WALK_TEST_KINDS = 256 };         /* what the file system says of kinds is left */

/* The walk as lines: a kind, a path, and what belongs to the kind. The file system
 * says of all that they are `type`. */
static void walk_test__lines(const WalkRoot *roots, size_t n, const char *skip, bool opened, int type, Buf *out)
{
    Walk     *w = walk_open(roots, n);
    WalkEntry e;
    char      some[8];

    if (!opened)
        walk_unopened(w);
    while (walk_next(w, &e)) {
        buf_addf(out, "%c %.*s", "dflx<"[e.kind], STR_ARG(e.path));
        if (e.kind == WALK_FILE) {
            buf_addf(out, " %o %lld", e.mode, (long long)e.size);
            assert_int_equal(e.fd >= 0, opened);
            assert_true(!opened || read(e.fd, some, sizeof some) == (e.size < 8 ? e.size : 8));
        } else {
            assert_int_equal(e.fd, -1);
        }
        if (e.kind == WALK_FOLDER)
            buf_addf(out, " %o", e.mode);
        for (size_t i = w->depth ? w->levels[w->depth - 1].names : 0; i < w->names_n && type != WALK_TEST_KINDS; i++)
            w->text.p[w->names[i] - 1] = (char)type;
        if (e.kind == WALK_LINK)
            buf_addf(out, ">%.*s", STR_ARG(e.target));
        if (e.kind == WALK_FAILED)
            buf_addf(out, " %d", e.sys);
        buf_addc(out, '\n');
        if (skip && str_eq(e.path, str_from(skip)))
            walk_skip(w);
    }
    assert_true(w->text.n == 0 && w->names_n == 0);         /* nothing is kept of folders that were left */
    walk_close(w);
    buf_addc(out, 0);
}

static void walk_test__is(const WalkRoot *roots, size_t n, const char *skip, const char *want)
{
    Buf out = buf_make(1 << 20);

    for (int i = 0; i < 4; i++) {
        buf_clear(&out);
        walk_test__lines(roots, n, skip, i / 2, i % 2 ? DT_UNKNOWN : WALK_TEST_KINDS, &out);
        if (strcmp(out.p, want) != 0)
            fail_msg("%s\nfor\n%s", out.p, want);
    }
    buf_free(&out);
}

static void walk_kinds_test(void **state)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "t/s"};
    int                s = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)state;
    assert_int_equal(mkdir("t", 0750), 0);
    assert_int_equal(mkdir("t/b", 0700), 0);
    assert_int_equal(mkdir("t/b/empty", 0711), 0);
    walk_test__file("t/b/1", STR("one"));
    walk_test__file("t/b.x", STR("0123456789"));            /* '.' comes before '/', and the folder all the same first */
    walk_test__file("t/\xff\xfe bad", STR(""));
    walk_test__file("t/a\nb", STR(""));
    walk_test__file("t/-", STR("x"));
    assert_int_equal(chmod("t/-", 06755), 0);
    assert_int_equal(symlink("../b/1", "t/link"), 0);
    assert_int_equal(symlink("b", "t/to folder"), 0);
    assert_int_equal(symlink("nowhere", "t/dangling"), 0);
    assert_int_equal(mkfifo("t/fifo", 0600), 0);
    assert_int_equal(bind(s, (struct sockaddr *)&at, sizeof at), 0);
    WalkRoot root[] = {{"t", STR("t")}, {"t/b/.", STR(".")}, {"t/link", STR("link")}, {"t/to folder", STR("other")},
                       {"t/fifo", STR("p")}, {"none", STR("none")}, {"t/dangling", STR("d")}, {"/dev/null", STR("null")},
                       {"t/b.x/", STR("b.x")}};
    walk_test__is(root, 1, NULL, "d t 750\nf t/- 755 1\nf t/a\nb 644 0\nd t/b 700\nf t/b/1 644 3\nd t/b/empty 711\n< t/b/empty\n"
                                 "< t/b\nf t/b.x 644 10\nl t/dangling>nowhere\nx t/fifo 95\nl t/link>../b/1\nx t/s 95\n"
                                 "l t/to folder>b\nf t/\xff\xfe bad 644 0\n< t\n");
    walk_test__is(root + 1, 8, NULL, "d . 700\nf ./1 644 3\nd ./empty 711\n< ./empty\n< .\nx link 2\n"
                                     "d other 700\nf other/1 644 3\nd other/empty 711\n< other/empty\n< other\n"
                                     "x p 95\nx none 2\nx d 2\nx null 95\nx b.x 20\n");
    walk_test__is(root + 1, 1, ".", "d . 700\n");
    walk_test__is(root + 3, 1, "other/empty", "d other 700\nf other/1 644 3\nd other/empty 711\n< other\n");
    walk_test__is(root, 0, NULL, "");
    /* What was a file when the folder was read. */
    Buf out = buf_make(4096);
    walk_test__lines(root, 1, NULL, true, DT_REG, &out);
    assert_string_equal(out.p, "d t 750\nf t/- 755 1\nf t/a\nb 644 0\nd t/b 700\nf t/b/1 644 3\nd t/b/empty 711\n< t/b/empty\n"
                               "< t/b\nf t/b.x 644 10\nl t/dangling>nowhere\nx t/fifo 95\nl t/link>../b/1\nx t/s 6\n"
                               "l t/to folder>b\nf t/\xff\xfe bad 644 0\n< t\n");
    buf_free(&out);
    close(s);
}

/* What cannot be read is said, and the rest goes on. Root can read all. */
static void walk_unreadable_test(void **state)
{
    WalkRoot root = {"u", STR("u")};

    (void)state;
    assert_int_equal(mkdir("u", 0755), 0);
    assert_int_equal(mkdir("u/no", 0755), 0);
    walk_test__file("u/no/in", STR(""));
    walk_test__file("u/secret", STR("x"));
    walk_test__file("u/z", STR("z"));
    assert_int_equal(chmod("u/no", 0), 0);
    assert_int_equal(chmod("u/secret", 0), 0);
    assert_int_equal(chmod(walk_test__root, 0755), 0);
    if (geteuid() == 0)
        assert_int_equal(seteuid(65534), 0);
    Buf out = buf_make(4096);
    walk_test__lines(&root, 1, NULL, true, WALK_TEST_KINDS, &out);
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
    assert_string_equal(out.p, "d u 755\nx u/no 13\nx u/secret 13\nf u/z 644 1\n< u\n");
    buf_free(&out);
}

/* As deep as it goes, and a folder further; paths as long as they go. */
static void walk_limits_test(void **state)
{
    static char name[256];
    WalkRoot    root = {"deep", STR("deep")}, wide = {"long", STR("long")};
    WalkEntry   e;
    size_t      folders = 0, failed = 0;
    int         at = AT_FDCWD, next;

    (void)state;
    assert_int_equal(mkdir("deep", 0755), 0);
    at = folder_open(AT_FDCWD, "deep");
    for (int i = 1; i < LIMIT_SYNC_DEPTH + 2; i++, at = next) {
        assert_int_equal(mkdirat(at, "d", 0755), 0);
        next = folder_open(at, "d");
        close(at);
    }
    close(at);
    Walk *w = walk_open(&root, 1);
    while (walk_next(w, &e)) {
        folders += e.kind == WALK_FOLDER;
        failed += e.kind == WALK_FAILED;
        assert_true(e.kind != WALK_FAILED || (e.sys == ELOOP && e.path.n == 4 + 2 * LIMIT_SYNC_DEPTH));
    }
    walk_close(w);
    assert_int_equal(folders, LIMIT_SYNC_DEPTH);
    assert_int_equal(failed, 1);

    memset(name, 'n', 255);
    folders = failed = 0;
    assert_int_equal(mkdir("long", 0755), 0);
    at = folder_open(AT_FDCWD, "long");
    for (int i = 0; i < 32; i++, at = next) {
        assert_int_equal(mkdirat(at, name, 0755), 0);
        next = folder_open(at, name);
        close(at);
    }
    close(at);
    w = walk_open(&wide, 1);
    while (walk_next(w, &e)) {
        folders += e.kind == WALK_FOLDER;
        failed += e.kind == WALK_FAILED;
        assert_true(e.path.n <= LIMIT_SYNC_PATH);
        assert_true(e.kind != WALK_FAILED || (e.sys == ENAMETOOLONG && e.path.n == 4 + 256 * 28));
    }
    walk_close(w);
    assert_int_equal(folders, 28);          /* with the root: 4 + 27 * 256 + 1 + 1024 is less than 8192 */
    assert_int_equal(failed, 1);
}

/* Many names, in order; a folder that goes away below the walk. */
static void walk_many_test(void **state)
{
    WalkRoot  root = {"many", STR("many")};
    WalkEntry e;
    char      name[300], last[300] = "";
    size_t    n = 0;

    (void)state;
    assert_int_equal(mkdir("many", 0755), 0);
    int at = folder_open(AT_FDCWD, "many");
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "%d-%0*d", i * 7919 % 5000, i % 200, i);
        assert_int_equal(symlinkat("x", at, name), 0);
    }
    assert_int_equal(mkdirat(at, "zz", 0755), 0);
    Walk *w = walk_open(&root, 1);
    while (walk_next(w, &e) && e.kind != WALK_LEAVE) {
        snprintf(name, sizeof name, "%.*s", STR_ARG(e.path));
        assert_true(strcmp(last, name) < 0);
        strcpy(last, name);
        n++;
    }
    assert_int_equal(n, 5002);
    walk_close(w);
    close(at);
    w = walk_open(&root, 1);
    assert_true(walk_next(w, &e) && e.kind == WALK_FOLDER);
    folder_remove(AT_FDCWD, "many");
    for (n = 0; walk_next(w, &e) && e.kind == WALK_FAILED; n++)
        assert_int_equal(e.sys, ENOENT);
    assert_int_equal(n, 5001);
    assert_int_equal(e.kind, WALK_LEAVE);
    assert_false(walk_next(w, &e));
    walk_close(w);
}

/* /proc is walked only by who asks for it. */
static void walk_kernel_test(void **state)
{
    WalkRoot  roots[] = {{"/", STR(".")}, {"/proc/self/fd", STR("fd")}};
    WalkEntry e;
    Walk     *w = walk_open(roots, 1);
    size_t    n = 0;

    (void)state;
    assert_true(walk_next(w, &e) && e.kind == WALK_FOLDER);
    while (walk_next(w, &e) && e.kind != WALK_LEAVE) {
        if (str_eq(e.path, STR("./proc"))) {
            assert_true(e.kind == WALK_FAILED && e.sys == EXDEV);
            n++;
        } else if (e.kind == WALK_FOLDER) {
            walk_skip(w);
        }
    }
    assert_int_equal(n, 1);
    walk_close(w);
    w = walk_open(roots + 1, 1);
    assert_true(walk_next(w, &e) && e.kind == WALK_FOLDER);
    assert_true(walk_next(w, &e) && e.kind == WALK_LINK);
    walk_close(w);
}

static void walk_name_test(void **state)
{
    static const struct { const char *path, *name; } rows[] = {
        {"a", "a"}, {"a/b", "b"}, {"a/b/", "b"}, {"a/b//", "b"}, {"/a", "a"}, {"/", "."}, {"//", "."}, {".", "."}, {"./", "."},
        {"a/.", "."}, {"a/./", "."}, {"..a", "..a"}, {"a/...", "..."}, {" ", " "}, {"a\\b", "a\\b"}, {"../a", "a"},
        {"", NULL}, {"..", NULL}, {"../", NULL}, {"a/..", NULL}, {"/..", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        Err err = {0};
        Str name;
        bool ok = walk_name(guard_copy(str_from(rows[i].path)), &name, &err);
        if (ok != (rows[i].name != NULL) || (ok && !str_eq(name, str_from(rows[i].name))))
            fail_msg("'%s': '%.*s'", rows[i].path, STR_ARG(name));
        assert_true(ok || err.code == E8002);
    }
}

static void walk_expand_test(void **state)
{
    static const struct { const char *pattern, *paths; } rows[] = {
        {"g/*", "g/a g/a-b g/b[1]"}, {"g/.*", "g/.h"}, {"g/\\.h*", "g/.h"}, {"g/*/*", "g/a-b/x g/a/x g/a/y"}, {"g/*/x", "g/a-b/x g/a/x"},
        {"g/a*/[!x]", "g/a/y"}, {"*/a/?", "g/a/x g/a/y"}, {"./g//a*/x", "./g//a-b/x ./g//a/x"}, {"g/*/", "g/a-b/ g/a/"},
        {"g/b[1]", "g/b[1]"}, {"g/b\\[1]", "g/b[1]"}, {"g/b\\[*", "g/b[1]"}, {"g/none", "g/none"}, {"", ""}, {"no*", NULL},
        {"g/a/x/*", NULL}, {"g/*/none", NULL}, {"g/none*/x", NULL}, {"none/*", NULL}, {"g/b[1]/", NULL},
    };
    Arena a = arena_make(ARENA_COMMAND);
    Buf   out = buf_make(4096);

    (void)state;
    assert_int_equal(mkdir("g", 0755), 0);
    assert_int_equal(mkdir("g/a", 0755), 0);
    assert_int_equal(mkdir("g/a-b", 0755), 0);
    walk_test__file("g/a/x", STR(""));
    walk_test__file("g/a/y", STR(""));
    walk_test__file("g/a-b/x", STR(""));
    walk_test__file("g/b[1]", STR(""));
    walk_test__file("g/.h", STR(""));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char **paths;
        size_t       n;
        Err          err = {0};
        buf_clear(&out);
        bool ok = walk_expand(str_from(rows[i].pattern), &a, &paths, &n, &err);
        for (size_t k = 0; ok && k < n; k++)
            buf_addf(&out, "%s%s", k ? " " : "", paths[k]);
        buf_addc(&out, 0);
        if (ok != (rows[i].paths != NULL) || (ok && strcmp(out.p, rows[i].paths) != 0))
            fail_msg("'%s': %d '%s'", rows[i].pattern, ok, out.p);
        assert_true(ok || (err.code == E4001 && strstr(err.text, rows[i].pattern)));
    }
    buf_free(&out);
    arena_free(&a);
}

static const struct CMUnitTest walk_tests[] = {
    cmocka_unit_test_setup_teardown(walk_kinds_test, walk_test__begin, walk_test__end),
    cmocka_unit_test_setup_teardown(walk_unreadable_test, walk_test__begin, walk_test__end),
    cmocka_unit_test_setup_teardown(walk_limits_test, walk_test__begin, walk_test__end),
    cmocka_unit_test_setup_teardown(walk_many_test, walk_test__begin, walk_test__end),
    cmocka_unit_test(walk_kernel_test),
    cmocka_unit_test(walk_name_test),
    cmocka_unit_test_setup_teardown(walk_expand_test, walk_test__begin, walk_test__end),
};
