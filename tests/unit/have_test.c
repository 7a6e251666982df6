#include "sync/have.h"
#include "sync/draft.h"

/* ---- the set ---- */

static Item have_item(ItemKind kind, Str path, int64_t size)
{
    Item i = {.kind = kind, .path = path, .size = size, .hashed = size % 2};

    memset(i.sha256, (int)size & 0xff, sizeof i.sha256);
    return i;
}

static Str have_named(uint32_t n, char path[static 32])
{
    return (Str){path, (size_t)snprintf(path, 32, "d%u/f%u", n % 7, n)};
}

static void have_set_test(void **state)
{
    Have    *h = have_make();
    char     path[32], part[64];
    uint32_t n = 5000;
    Item     i;
    Err      err;

    (void)state;
    assert_false(have_find(h, ITEM_HAVE, STR("a"), &i));
    for (uint32_t k = 0; k < n; k++) {
        i = have_item(ITEM_HAVE, have_named(k, path), k);
        assert_true(have_add(h, &i, &err));
    }
    /* A partial one is found by the name of its file. */
    strcpy(part, "d0/");
    draft_part_name(STR("f0"), part + 3);
    i = have_item(ITEM_PART, str_from(part), 77);
    assert_true(have_add(h, &i, &err));
    for (uint32_t k = 0; k < n + 100; k++) {
        Str  name = have_named(k, path);
        bool there = have_find(h, ITEM_HAVE, name, &i);
        assert_int_equal(there, k < n);
        if (there) {
            Item was = have_item(ITEM_HAVE, name, k);
            assert_true(i.kind == ITEM_HAVE && i.size == k && i.hashed == was.hashed && str_eq(i.path, name) &&
                        memcmp(i.sha256, was.sha256, SHA256_SIZE) == 0);
        }
        assert_int_equal(have_find(h, ITEM_PART, name, &i), k == 0);
    }
    assert_true(have_find(h, ITEM_PART, STR("d0/f0"), &i) && i.size == 77 && i.kind == ITEM_PART && str_eq(i.path, STR("d0/f0")));
    assert_false(have_find(h, ITEM_PART, STR("f0"), &i));
    assert_false(have_find(h, ITEM_HAVE, str_from(part), &i));
    i = have_item(ITEM_HAVE, STR("d0/f0"), 9);
    assert_true(have_add(h, &i, &err) && have_find(h, ITEM_HAVE, STR("d0/f0"), &i) && i.size == 9);     /* the later one */
    have_free(h);
    have_free(NULL);
}

static void have_limit_test(void **state)
{
    Have *h = have_make();
    char  path[32];
    Item  i;
    Err   err;

    (void)state;
    for (uint32_t k = 0; k < LIMIT_SYNC_HAVE; k++) {
        i = have_item(ITEM_HAVE, have_named(k, path), k);
        assert_true(have_add(h, &i, &err));
    }
    i = have_item(ITEM_HAVE, STR("one more"), 1);
    assert_true(!have_add(h, &i, &err) && err.code == E4003 && err.kind == ERR_LIMIT);
    assert_true(have_find(h, ITEM_HAVE, have_named(LIMIT_SYNC_HAVE - 1, path), &i) && i.size == LIMIT_SYNC_HAVE - 1);
    have_free(h);
}

static void have_long_test(void **state)
{
    Have *h = have_make();
    char  path[LIMIT_SYNC_PATH + 1];
    Item  i;
    Err   err;

    (void)state;
    memset(path, 'x', sizeof path);
    i = have_item(ITEM_HAVE, (Str){path, LIMIT_SYNC_PATH}, 1);
    assert_true(have_add(h, &i, &err) && have_find(h, ITEM_HAVE, (Str){path, LIMIT_SYNC_PATH}, &i));
    assert_false(have_find(h, ITEM_PART, (Str){path, LIMIT_SYNC_PATH}, &i));
    path[LIMIT_SYNC_PATH - 1] = '/';
    assert_false(have_find(h, ITEM_PART, (Str){path, LIMIT_SYNC_PATH}, &i));
    assert_false(have_find(h, ITEM_PART, (Str){path, LIMIT_SYNC_PATH + 1}, &i));
    have_free(h);
}

/* ---- what is there ---- */

typedef struct HaveSeen {
    ItemReader r;
    Have      *set;
    size_t     n;
    char       log[2000];
    int        fail_at;
} HaveSeen;

static bool have_see(void *ctx, Str bytes, Err *err)
{
    HaveSeen *s = ctx;
    Item      i;
    Step      step;

    if (s->fail_at && (int)++s->n == s->fail_at)
        return err_set(err, ERR_CLOSED, E5001, "gone");
    while ((step = item_next(&s->r, &bytes, &i, err)) == STEP_DONE) {
        size_t at = strlen(s->log);
        snprintf(s->log + at, sizeof s->log - at, "%s %lld %.*s\n", i.kind == ITEM_HAVE ? "have" : i.kind == ITEM_PART ? "part" : "end",
                 (long long)i.size, STR_ARG(i.path));
        assert_int_equal(i.hashed, i.kind != ITEM_END);
        assert_true(i.kind == ITEM_END || have_add(s->set, &i, err));
    }
    return step == STEP_MORE;
}

static void have_listed(HaveSeen *s, const char *target, const char *name, bool partials)
{
    Err err;

    *s = (HaveSeen){.r = item_reader(), .set = have_make()};
    assert_true(have_list(target, str_from(name), partials, (Sink){have_see, s}, &err));
    item_reader_free(&s->r);
}

static void have_list_test(void **state)
{
    /* %s is the name of the partial file of "a"; $P, too, and $Q that of "T" */
    static const struct { const char *before, *target, *name; bool partials; const char *log; const char *part_of; } cases[] = {
        {NULL, "T", "a", true, "end 0 \n", NULL},
        {NULL, "T/", "a", true, "end 0 \n", NULL},
        {NULL, "", "a", true, "end 0 \n", NULL},
        {NULL, "n/T", "a", true, "end 0 \n", NULL},
        {"printf abc > T", "T", "a", true, "have 3 a\nend 0 \n", NULL},
        {"printf abc > T", "T/", "a", true, "end 0 \n", NULL},
        {"printf abc > t; ln -s t T", "T", "a", true, "have 3 a\nend 0 \n", NULL},
        {"ln -s t T", "T", "a", true, "end 0 \n", NULL},
        {"mkfifo T", "T", "a", true, "end 0 \n", NULL},
        /* an interrupted copy of a folder left T: it goes on there, and several do not */
        {"mkdir -p T/a; printf abc > T/x; printf d > T/a/x; chmod 1700 T", "T", "a", true, "have 1 a/a/x\nhave 3 a/x\nend 0 \n", NULL},
        {"mkdir -p T/a; printf abc > T/x; printf d > T/a/x; chmod 1700 T", "T/", "a", true, "have 1 a/x\nend 0 \n", NULL},
        {"mkdir -p T/a; printf abc > T/x; printf d > T/a/x; chmod 1770 T", "T", "a", true, "have 1 a/x\nend 0 \n", NULL},
        {"mkdir T; printf abc > T/a; printf b > T/b", "T", "a", true, "have 3 a\nend 0 \n", NULL},
        {"mkdir T; printf abc > T/a; printf b > T/b", "T/", "b", true, "have 1 b\nend 0 \n", NULL},
        {"mkdir -p T/a/b; printf abc > T/a/x; printf d > T/a/b/y; ln -s x T/a/l; mkfifo T/a/f; : > T/a/z", "T", "a", true,
         "have 1 a/b/y\nhave 3 a/x\nhave 0 a/z\nend 0 \n", NULL},
        {"mkdir -p T/a/b; printf abc > T/a/x", "T", ".", true, "have 3 ./a/x\nend 0 \n", NULL},
        {"mkdir -p t/a; ln -s t T; printf abc > T/a/x", "T", "a", true, "have 3 a/x\nend 0 \n", NULL},
        {"mkdir -p T out; printf abc > out/x; ln -s ../out T/a", "T", "a", true, "end 0 \n", NULL},
        {"mkdir -p T out; printf abc > out/x; ln -s ../out/x T/a", "T", "a", true, "end 0 \n", NULL},
        /* partial ones */
        {"printf ab > $Q", "T", "a", true, "part 2 %s\nend 0 \n", "a"},
        {"printf ab > $Q", "T", "a", false, "end 0 \n", NULL},
        {"printf ab > $Q; printf old > T", "T", "a", true, "part 2 %s\nhave 3 a\nend 0 \n", "a"},
        {"mkdir t; printf ab > t/$Q; printf old > t/T; ln -s t/T L", "L", "a", true, "part 2 %s\nhave 3 a\nend 0 \n", "a"},
        {"mkdir T; printf ab > T/$P", "T", "a", true, "part 2 %s\nend 0 \n", "a"},
        {"mkdir T; printf ab > T/$P; printf old > T/a", "T", "a", true, "part 2 %s\nhave 3 a\nend 0 \n", "a"},
        {"mkdir T; printf ab > x; ln -s ../x T/$P", "T", "a", true, "end 0 \n", NULL},
        {"mkdir -p T/$P", "T", "a", true, "end 0 \n", NULL},
        {"mkdir T; mkfifo T/$P", "T", "a", true, "end 0 \n", NULL},
        {"mkdir -p T/d; printf ab > T/d/$P", "T", "d", true, "part 2 d/%s\nend 0 \n", "d/a"},
        {"mkdir -p T/d; printf ab > T/d/$P", "T", "d", false, "have 2 d/%s\nend 0 \n", NULL},
        {"mkdir -p T; printf ab > T/$P", "T", ".", true, "part 2 ./%s\nend 0 \n", "./a"},
        /* a pattern, of which the names are not known */
        {"mkdir -p T/a1 T/b; printf ab > T/$P; printf c > T/a1/x; printf d > T/a2; ln -s a2 T/a3; : > T/b/a; : > T/.a", "T/", "?[0-9]", true,
         "part 2 %s\nhave 1 a1/x\nhave 1 a2\nend 0 \n", "a"},
        {"mkdir T; printf a > 'T/[x]'; printf bc > T/x; : > T/y", "T/", "[x]", true, "have 1 [x]\nhave 2 x\nend 0 \n", NULL},
        {"mkdir T; printf a > T/a; printf bc > T/$P", "T/", "?", false, "have 1 a\nend 0 \n", NULL},
        {"printf a > T", "T/", "?", true, "end 0 \n", NULL},
        /* nobody would go on with one of these */
        {"printf ab > $Q; ln $Q two", "T", "a", true, "end 0 \n", NULL},
        {"mkdir -p T/d; printf ab > T/d/$P; ln T/d/$P T/d/two", "T", "d", true, "have 2 d/%s\nhave 2 d/two\nend 0 \n", NULL},
        {"mkdir -p T/d; printf ab > T/d/.abx-0123456789ABCDEF.part; printf x > T/d/.abx-0123456789abcdef", "T", "d", true,
         "have 2 d/.abx-0123456789ABCDEF.part\nhave 1 d/.abx-0123456789abcdef\nend 0 \n", NULL},
    };
    char part[DRAFT_NAME], beside[DRAFT_NAME], want[500];
    HaveSeen *s = mem_new(sizeof *s);
    Item i;

    (void)state;
    draft_part_name(STR("a"), part);
    draft_part_name(STR("T"), beside);
    assert_true(setenv("P", part, 1) == 0 && setenv("Q", beside, 1) == 0);
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        assert_true(mkdir("w", 0755) == 0 && chdir("w") == 0);
        receiver_setup(cases[k].before);
        have_listed(s, cases[k].target, cases[k].name, cases[k].partials);
        const char *at = strstr(cases[k].log, "%s");
        snprintf(want, sizeof want, "%.*s%s%s", (int)(at ? at - cases[k].log : 0), cases[k].log, at ? part : "", at ? at + 2 : cases[k].log);
        if (strcmp(s->log, want) != 0)
            fail_msg("%zu: %s", k, s->log);
        if (cases[k].part_of)
            assert_true(have_find(s->set, ITEM_PART, str_from(cases[k].part_of), &i) && i.size == 2);
        have_free(s->set);
        assert_int_equal(chdir(".."), 0);
        folder_remove(AT_FDCWD, "w");
    }
    mem_free(s);
}

static void have_list_fails_test(void **state)
{
    HaveSeen s = {.fail_at = 1};
    Err      err;

    (void)state;
    receiver_setup("mkdir -p T/a; echo > T/a/x; echo > T/a/y");
    for (; s.fail_at < 4; s.fail_at++, s.n = 0, s.log[0] = '\0') {
        s.r = item_reader();
        s.set = have_make();
        assert_true(!have_list("T", STR("a"), true, (Sink){have_see, &s}, &err) && err.kind == ERR_CLOSED);
        item_reader_free(&s.r);
        have_free(s.set);
    }
    char *name = mem_new(70000);        /* no path has room for it */
    memset(name, 'x', 69999);
    have_listed(&s, "T", name, true);
    assert_string_equal(s.log, "end 0 \n");
    have_free(s.set);
    have_listed(&s, "n", name, true);
    assert_string_equal(s.log, "end 0 \n");
    have_free(s.set);
    mem_free(name);
}

static void have_hash_test(void **state)
{
    static const int64_t sizes[] = {-1, 0, 1, 65535, 65536, 65537, 199999, 200000, 200001};
    unsigned char want[SHA256_SIZE], got[SHA256_SIZE];
    char         *text = mem_new(200000);
    int           fd = open("f", O_RDWR | O_CREAT, 0600);
    int64_t       n;

    (void)state;
    for (size_t i = 0; i < 200000; i++)
        text[i] = (char)(i * i >> 3);
    assert_true(pwrite(fd, text, 200000, 0) == 200000 && lseek(fd, 777, SEEK_SET) == 777);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        Sha256 h = sha256_make();
        size_t all = sizes[i] < 0 || sizes[i] > 200000 ? 200000 : (size_t)sizes[i];
        sha256_add(&h, (Str){text, all});
        sha256_end(&h, want);
        assert_true(have_hash(fd, sizes[i], &n, got) && n == (int64_t)all && memcmp(got, want, SHA256_SIZE) == 0);
    }
    close(fd);
    assert_true(!have_hash(fd, -1, &n, got) && errno == EBADF);
    mem_free(text);
}

static const struct CMUnitTest have_tests[] = {
    cmocka_unit_test(have_set_test), cmocka_unit_test(have_limit_test), cmocka_unit_test(have_long_test),
    RECEIVER_TEST(have_list_test), RECEIVER_TEST(have_list_fails_test), RECEIVER_TEST(have_hash_test),
};
