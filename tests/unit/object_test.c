/* Ids, commits, tags and trees of git; the bytes are those of real objects. */
#include "data/object.h"

static const char *object_test__hex(ObjectHash hash, const ObjectId *id)
{
    static char hex[OBJECT_HEX];

    object_id_hex(hash, id, hex);
    return hex;
}

static void object_id_test(void **state)
{
    static const struct { ObjectHash hash; ObjectType type; const char *text, *id; } cases[] = {
        {OBJECT_SHA1, OBJECT_TREE, "", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"},
        {OBJECT_SHA1, OBJECT_BLOB, "", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"},
        {OBJECT_SHA1, OBJECT_BLOB, "what is up, doc?", "bd9dbf5aae1a3862dd1526723246b20206e5fc37"},
        {OBJECT_SHA256, OBJECT_BLOB, "", "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ObjectId id, read;
        object_id_of(cases[i].hash, cases[i].type, guard_copy(str_from(cases[i].text)), &id);
        assert_string_equal(object_test__hex(cases[i].hash, &id), cases[i].id);
        assert_true(object_id_read(cases[i].hash, str_from(cases[i].id), &read));
        assert_int_equal(object_id_cmp(&id, &read), 0);
    }
    ObjectId id;
    assert_false(object_id_read(OBJECT_SHA1, STR("4b825dc642cb6eb9a060e54bf8d69288fbee490"), &id));
    assert_false(object_id_read(OBJECT_SHA1, STR("4b825dc642cb6eb9a060e54bf8d69288fbee490g"), &id));
    assert_false(object_id_read(OBJECT_SHA256, STR("4b825dc642cb6eb9a060e54bf8d69288fbee4904"), &id));
    assert_true(object_id_read(OBJECT_SHA1, STR("4B825DC642CB6EB9A060E54BF8D69288FBEE4904"), &id));
    assert_string_equal(object_test__hex(OBJECT_SHA1, &id), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
}

#define OBJECT_ID_A "3335f541a44a741892b84cff1291d2d81022c5d8"

static void object_commit_test(void **state)
{
    static const char *const bad[] = {
        "", "tree", "tree ", "tree " OBJECT_ID_A, "tree  " OBJECT_ID_A "\n", "tree " OBJECT_ID_A "0\n",
        "parent " OBJECT_ID_A "\ntree " OBJECT_ID_A "\n", "Tree " OBJECT_ID_A "\n", "tree\t" OBJECT_ID_A "\n",
    };
    ObjectId   id;
    ObjectType type;
    Err        err = {0};

    (void)state;
    assert_true(object_commit_tree(OBJECT_SHA1, guard_copy(STR("tree " OBJECT_ID_A "\nauthor A <a@x> 1 +0000\n\nm\n")), &id, &err));
    assert_string_equal(object_test__hex(OBJECT_SHA1, &id), OBJECT_ID_A);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(object_commit_tree(OBJECT_SHA1, guard_copy(str_from(bad[i])), &id, &err));
        assert_int_equal(err.code, E8010);
    }
    assert_false(object_commit_tree(OBJECT_SHA256, STR("tree " OBJECT_ID_A "\n"), &id, &err));

    Str tag = STR("object " OBJECT_ID_A "\ntype tree\ntag v1\ntagger A <a@x> 1 +0000\n\nm\n");
    assert_true(object_tag_target(OBJECT_SHA1, tag, &id, &type, &err));
    assert_int_equal(type, OBJECT_TREE);
    for (size_t n = 0; n < sizeof "object " OBJECT_ID_A "\ntype tree\n" - 1; n++)
        assert_false(object_tag_target(OBJECT_SHA1, guard_copy((Str){tag.p, n}), &id, &type, &err));
    assert_false(object_tag_target(OBJECT_SHA1, STR("object " OBJECT_ID_A "\ntype wood\n"), &id, &type, &err));
}

/* An entry with an id of 20 times the same byte. */
#define OBJECT_E(text, byte) text "\0" byte byte byte byte byte byte byte byte byte byte \
                             byte byte byte byte byte byte byte byte byte byte
#define OBJECT_T(lit) {lit, sizeof lit - 1}

static const struct { Str in; const char *want; } object_trees[] = {
    {OBJECT_T(""), ""},
    {OBJECT_T(OBJECT_E("100644 .gitattributes", "a") OBJECT_E("40000 plug", "b")), "100644 .gitattributes 61, 40000 plug 62, "},
    {OBJECT_T(OBJECT_E("100755 a", "a") OBJECT_E("120000 b", "b") OBJECT_E("160000 c", "c") OBJECT_E("100664 d", "d")),
     "100755 a 61, 120000 b 62, 160000 c 63, 100664 d 64, "},
    /* the order of folders */
    {OBJECT_T(OBJECT_E("100644 a.b", "a") OBJECT_E("40000 a", "b") OBJECT_E("100644 a0", "c")), "100644 a.b 61, 40000 a 62, 100644 a0 63, "},
    {OBJECT_T(OBJECT_E("40000 a", "b") OBJECT_E("100644 a.b", "a")), "40000 a 62, !"},
    {OBJECT_T(OBJECT_E("100644 b", "a") OBJECT_E("100644 a", "b")), "100644 b 61, !"},
    {OBJECT_T(OBJECT_E("100644 \xc3\xa4", "a") OBJECT_E("100644 z", "b")), "100644 \xc3\xa4 61, !"},
    /* twice: side by side, as file and folder, with others between them */
    {OBJECT_T(OBJECT_E("100644 a", "a") OBJECT_E("100644 a", "b")), "100644 a 61, !"},
    {OBJECT_T(OBJECT_E("40000 a", "a") OBJECT_E("40000 a", "b")), "40000 a 61, !"},
    {OBJECT_T(OBJECT_E("100644 a", "a") OBJECT_E("40000 a", "b")), "100644 a 61, !"},
    {OBJECT_T(OBJECT_E("100644 a", "a") OBJECT_E("100644 a-", "b") OBJECT_E("100644 a.", "c") OBJECT_E("40000 a", "d")),
     "100644 a 61, 100644 a- 62, 100644 a. 63, !"},
    {OBJECT_T(OBJECT_E("100644 a", "a") OBJECT_E("100644 a.", "b") OBJECT_E("40000 a.", "c")), "100644 a 61, 100644 a. 62, !"},
    {OBJECT_T(OBJECT_E("100644 a", "a") OBJECT_E("100644 b", "b") OBJECT_E("40000 bb", "c")), "100644 a 61, 100644 b 62, 40000 bb 63, "},
    /* names */
    {OBJECT_T(OBJECT_E("100644 ", "a")), "!"},
    {OBJECT_T(OBJECT_E("100644 .", "a")), "!"},
    {OBJECT_T(OBJECT_E("40000 ..", "a")), "!"},
    {OBJECT_T(OBJECT_E("40000 .git", "a")), "!"},
    {OBJECT_T(OBJECT_E("40000 .GiT", "a")), "!"},
    {OBJECT_T(OBJECT_E("100644 a/b", "a")), "!"},
    {OBJECT_T(OBJECT_E("100644 .gitignore", "a")), "100644 .gitignore 61, "},
    /* modes */
    {OBJECT_T(OBJECT_E("040000 a", "a")), "!"},
    {OBJECT_T(OBJECT_E("100648 a", "a")), "!"},
    {OBJECT_T(OBJECT_E(" a", "a")), "!"},
    {OBJECT_T(OBJECT_E("1006440 a", "a")), "!"},
    {OBJECT_T(OBJECT_E("-100644 a", "a")), "!"},
    /* cut */
    {OBJECT_T("100644"), "!"},
    {OBJECT_T("100644 a"), "!"},
    {OBJECT_T("100644 a\0" "0123456789012345678"), "!"},
    {OBJECT_T(OBJECT_E("100644 a", "a") "4"), "100644 a 61, !"},
};

static void object_tree_test(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(object_trees); i++) {
        ObjectTree  t = object_tree(OBJECT_SHA1, guard_copy(object_trees[i].in));
        ObjectEntry e;
        Err         err = {0};
        Step        step;
        Buf         got = buf_make(1024);
        while ((step = object_tree_next(&t, &e, &err)) == STEP_DONE)
            buf_addf(&got, "%o %.*s %02x, ", e.mode, STR_ARG(e.name), e.id.b[19]);
        if (step == STEP_ERR)
            buf_addc(&got, '!');
        if (!str_eq(buf_str(&got), str_from(object_trees[i].want)))
            fail_msg("tree %zu: %.*s", i, STR_ARG(buf_str(&got)));
        assert_int_equal(err.code, step == STEP_ERR ? E8010 : E0000);
        buf_free(&got);
    }
}

/* A name as long as one may be, and one longer. */
static void object_name_test(void **state)
{
    (void)state;
    for (size_t n = OBJECT_NAME_MAX; n <= OBJECT_NAME_MAX + 1; n++) {
        char        text[7 + OBJECT_NAME_MAX + 1 + 1 + 20] = "100644 ";
        ObjectEntry e;
        Err         err;
        memset(text + 7, 'x', n);
        ObjectTree t = object_tree(OBJECT_SHA1, (Str){text, 7 + n + 1 + 20});
        assert_int_equal(object_tree_next(&t, &e, &err), n > OBJECT_NAME_MAX ? STEP_ERR : STEP_DONE);
    }
}

static const struct CMUnitTest object_tests[] = {
    cmocka_unit_test(object_id_test),
    cmocka_unit_test(object_commit_test),
    cmocka_unit_test(object_tree_test),
    cmocka_unit_test(object_name_test),
};
