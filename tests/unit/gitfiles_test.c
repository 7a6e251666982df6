/* The files of a commit, by trees that are made here: what is listed, in which
 * order, and what is refused however the trees are linked. Needs pack_test.c. */
#include "host/gitfiles.h"

static void gitfiles_test__entry(Buf *tree, const char *mode, Str name, const ObjectId *id)
{
    buf_addf(tree, "%s ", mode);
    buf_add(tree, name);
    buf_addc(tree, 0);
    buf_add(tree, (Str){(const char *)id->b, SHA1_SIZE});
}

/* A tree of one or two entries, put into the pack; its id. */
static ObjectId gitfiles_test__tree(Buf *pack, Buf *tree)
{
    ObjectId id = pack_test__id(OBJECT_TREE, buf_str(tree));

    pack_test__put(pack, OBJECT_TREE, buf_str(tree));
    buf_clear(tree);
    return id;
}

static ObjectId gitfiles_test__commit(Buf *pack, const ObjectId *tree)
{
    char     text[100], hex[OBJECT_HEX];
    ObjectId id;

    object_id_hex(OBJECT_SHA1, tree, hex);
    snprintf(text, sizeof text, "tree %s\nauthor A <a@x> 1 +0000\n\nm\n", hex);
    id = pack_test__id(OBJECT_COMMIT, str_from(text));
    pack_test__put(pack, OBJECT_COMMIT, str_from(text));
    return id;
}

/* "path mode, ..." of what is listed, or the error. */
static const char *gitfiles_test__list(Buf *pack, unsigned count, const ObjectId *commit, const char *subdir, GitFiles *f)
{
    static char said[4096];
    PackTest   *t = pack_test__open((uint64_t)16 << 20, (uint64_t)64 << 20);
    Arena       a = arena_make(LIMIT_GIT_ARENA);
    size_t      n = 0;

    for (int i = 0; i < 4; i++)
        pack->p[8 + i] = (char)(count >> (24 - 8 * i));
    assert_int_equal(pack_test__all(t, pack_test__end(pack)), STEP_DONE);
    *f = (GitFiles){.hash = OBJECT_SHA1};
    said[0] = '\0';
    if (!gitfiles_list(f, t->p, commit, str_from(subdir), &a, &t->err)) {
        assert_int_equal(t->err.code, E8010);
        snprintf(said, sizeof said, "%s", t->err.text);
    } else {
        for (size_t i = 0; i < f->n && n < sizeof said - 100; i++)
            n += (size_t)snprintf(said + n, sizeof said - n, "%.*s%s,", STR_ARG(f->v[i].path), f->v[i].executable ? "*" : "");
    }
    f->v = NULL;
    arena_free(&a);
    pack_test__close(t);
    return said;
}

static void gitfiles_list_test(void **state)
{
    static const struct { const char *subdir, *want; } cases[] = {
        {"", "a.b,a/x*,a/y,a0,"}, {"a", "x*,y,"}, {"b", "the commit has no folder 'b'"}, {"a/x", "the commit has no folder 'a/x'"},
        {"a.b", "the commit has no folder 'a.b'"}, {"a/../a", "the commit has no folder 'a/../a'"},
    };
    ObjectId blob = pack_test__id(OBJECT_BLOB, STR("x"));

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Buf      pack, tree = buf_make(1 << 20);
        GitFiles f;
        pack_test__begin(&pack, 0);
        gitfiles_test__entry(&tree, "100755", STR("x"), &blob);
        gitfiles_test__entry(&tree, "100644", STR("y"), &blob);
        ObjectId inner = gitfiles_test__tree(&pack, &tree);
        gitfiles_test__entry(&tree, "100644", STR("a.b"), &blob);
        gitfiles_test__entry(&tree, "40000", STR("a"), &inner);
        gitfiles_test__entry(&tree, "100644", STR("a0"), &blob);
        ObjectId root = gitfiles_test__tree(&pack, &tree);
        ObjectId commit = gitfiles_test__commit(&pack, &root);
        assert_string_equal(gitfiles_test__list(&pack, 3, &commit, cases[i].subdir, &f), cases[i].want);
        buf_free(&pack);
        buf_free(&tree);
    }
}

/* What the pack lacks, and what is of another type than it was called. */
static void gitfiles_lacks_test(void **state)
{
    ObjectId blob = pack_test__id(OBJECT_BLOB, STR("x")), none = {{7}};

    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        Buf      pack, tree = buf_make(1 << 20);
        GitFiles f;
        pack_test__begin(&pack, 0);
        pack_test__put(&pack, OBJECT_BLOB, STR("x"));
        gitfiles_test__entry(&tree, "40000", STR("a"), kind == 0 ? &none : &blob);
        ObjectId root = gitfiles_test__tree(&pack, &tree);
        ObjectId commit = gitfiles_test__commit(&pack, kind == 2 ? &blob : &root);
        const char *said = gitfiles_test__list(&pack, 3, kind == 3 ? &none : &commit, "", &f);
        assert_non_null(strstr(said, kind == 0 ? "did not send tree 07" : kind == 3 ? "did not send commit 07" : "is no tree, but a blob"));
        buf_free(&pack);
        buf_free(&tree);
    }
}

/* Two folders that are the same one, and so on: 2^40 paths in 41 trees. */
static void gitfiles_bomb_test(void **state)
{
    ObjectId blob = pack_test__id(OBJECT_BLOB, STR("x"));

    (void)state;
    for (int files = 0; files < 2; files++) {
        Buf      pack, tree = buf_make(1 << 20);
        GitFiles f;
        pack_test__begin(&pack, 0);
        if (files)
            gitfiles_test__entry(&tree, "100644", STR("f"), &blob);
        ObjectId id = gitfiles_test__tree(&pack, &tree);
        for (int i = 0; i < 40; i++) {
            gitfiles_test__entry(&tree, "40000", STR("a"), &id);
            gitfiles_test__entry(&tree, "40000", STR("b"), &id);
            id = gitfiles_test__tree(&pack, &tree);
        }
        ObjectId commit = gitfiles_test__commit(&pack, &id);
        assert_string_equal(gitfiles_test__list(&pack, 42, &commit, "", &f), files ? "more than 2000 files" : "more than 8192 folders");
        buf_free(&pack);
        buf_free(&tree);
    }
}

/* Paths as long as may be, and longer: folders of 255 bytes each. */
static void gitfiles_path_test(void **state)
{
    char     name[OBJECT_NAME_MAX];
    ObjectId blob = pack_test__id(OBJECT_BLOB, STR("x"));

    (void)state;
    memset(name, 'n', sizeof name);
    assert_int_equal(LIMIT_GIT_PATH, 16 * (OBJECT_NAME_MAX + 1));
    for (size_t over = 0; over < 2; over++) {
        Buf      pack, tree = buf_make(1 << 20);
        GitFiles f;
        pack_test__begin(&pack, 0);
        gitfiles_test__entry(&tree, "100644", (Str){name, over}, &blob);
        if (!over)
            buf_clear(&tree);
        ObjectId id = gitfiles_test__tree(&pack, &tree);
        for (int i = 0; i < 16; i++) {
            gitfiles_test__entry(&tree, "40000", (Str){name, sizeof name}, &id);
            id = gitfiles_test__tree(&pack, &tree);
        }
        ObjectId    commit = gitfiles_test__commit(&pack, &id);
        const char *said = gitfiles_test__list(&pack, 18, &commit, "", &f);
        assert_int_equal(f.folders, 17);
        if (over)
            assert_non_null(strstr(said, "a path that is too long"));
        else
            assert_string_equal(said, "");
        buf_free(&pack);
        buf_free(&tree);
    }
}

/* A folder of as many bytes as may be, and of more. */
static void gitfiles_wide_test(void **state)
{
    ObjectId blob = {{1}};

    (void)state;
    for (int over = 0; over < 2; over++) {
        Buf      pack, tree = buf_make((size_t)8 << 20);
        GitFiles f;
        pack_test__begin(&pack, 0);
        for (unsigned i = 0; tree.n + 34 * (size_t)!over <= LIMIT_GIT_TREE; i++) {
            char entry[8];
            snprintf(entry, sizeof entry, "%06u", i);
            gitfiles_test__entry(&tree, "100644", str_from(entry), &blob);
        }
        ObjectId    id = gitfiles_test__tree(&pack, &tree);
        ObjectId    commit = gitfiles_test__commit(&pack, &id);
        const char *said = gitfiles_test__list(&pack, 2, &commit, "", &f);
        assert_non_null(strstr(said, over ? "has more than" : "more than 2000 files"));
        buf_free(&pack);
        buf_free(&tree);
    }
}

static const struct CMUnitTest gitfiles_tests[] = {
    cmocka_unit_test(gitfiles_list_test),
    cmocka_unit_test(gitfiles_lacks_test),
    cmocka_unit_test(gitfiles_bomb_test),
    cmocka_unit_test(gitfiles_path_test),
    cmocka_unit_test(gitfiles_wide_test),
};
