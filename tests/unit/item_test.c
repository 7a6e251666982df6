#include "sync/item.h"

#define ITEM_TEST_HASH "00010203040506070809aabbccddeeff00010203040506070809aabbccddeeff"

static void item_test__hash(Item *i)
{
    static const unsigned char half[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};

    i->hashed = true;
    memcpy(i->sha256, half, 16);
    memcpy(i->sha256 + 16, half, 16);
}

static void item_words_test(void **state)
{
    static const struct { Item is; const char *words; } rows[] = {
        {{ITEM_TOTAL, false, 3, 70, {0}, {NULL, 0}}, "total 3 70 -"},
        {{ITEM_FROM, true, 0, 1LL << 40, {0}, {NULL, 0}}, "from 0 1099511627776 " ITEM_TEST_HASH},
        {{ITEM_SPARSE, false, 0, 0, {0}, {NULL, 0}}, "sparse 0 0 -"},
        {{ITEM_HASH, true, 0, 5, {0}, {NULL, 0}}, "hash 0 5 " ITEM_TEST_HASH},
        {{ITEM_FAILED, false, 13, 0, {0}, {NULL, 0}}, "failed 13 0 -"},
        {{ITEM_KEPT, false, 0, 0, {0}, {NULL, 0}}, "kept 0 0 -"},
        {{ITEM_END, false, UINT32_MAX, INT64_MAX, {0}, {NULL, 0}}, "end 4294967295 9223372036854775807 -"},
        {{ITEM_HAVE, true, 0, 1, {0}, {NULL, 0}}, "have 0 1 " ITEM_TEST_HASH},
        {{ITEM_PART, true, 0, 1, {0}, {NULL, 0}}, "part 0 1 " ITEM_TEST_HASH},
        {{ITEM_DONE, false, 0, 0, {0}, {NULL, 0}}, "done 0 0 -"},
        {{ITEM_CREATED, true, UINT32_MAX, INT64_MAX, {0}, {NULL, 0}}, "created 4294967295 9223372036854775807 " ITEM_TEST_HASH},
        {{ITEM_CHANGED, false, 0, 0, {0}, {NULL, 0}}, "changed 0 0 -"},
        {{ITEM_REMOVED, false, 0, 0, {0}, {NULL, 0}}, "removed 0 0 -"},
        {{ITEM_LOST, false, 0, 0, {0}, {NULL, 0}}, "lost 0 0 -"},
        {{ITEM_READY, false, 12, 0, {0}, {NULL, 0}}, "ready 12 0 -"},
    };
    char words[ITEM_WORDS];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        Item is = rows[i].is, got = {.path = STR("kept")};
        if (is.hashed)
            item_test__hash(&is);
        assert_true(str_eq(item_words(&is, words), str_from(rows[i].words)));
        assert_true(item_parse(guard_copy(str_from(rows[i].words)), &got));
        assert_true(got.kind == is.kind && got.hashed == is.hashed && got.number == is.number && got.size == is.size);
        assert_memory_equal(got.sha256, is.sha256, SHA256_SIZE);
        assert_true(str_eq(got.path, STR("kept")));
        for (size_t n = 0; n < strlen(rows[i].words); n++)      /* cut at every byte */
            if (item_parse(guard_copy((Str){rows[i].words, n}), &got))
                fail_msg("'%.*s' is taken", (int)n, rows[i].words);
    }
    static const char *const bad[] = {
        "", " ", "   ", "done", "done 0 0", "done 0 0 ", "done  0 -", "done 0  -", "done 0 0 - ", "done 0 0 -x", "Done 0 0 -",
        "doner 0 0 -", " done 0 0 -", "done 00 0 -", "done 0 01 -", "done -1 0 -", "done 0 -1 -", "done +1 0 -",
        "done 4294967296 0 -", "done 0 9223372036854775808 -", "done 0 18446744073709551616 -", "done 0x1 0 -",
        "done 0 0 00", "done 0 0 " ITEM_TEST_HASH "0", "done 0 0 00010203040506070809AABBCCDDEEFF00010203040506070809aabbccddeeff",
        "done 0 0 g0010203040506070809aabbccddeeff00010203040506070809aabbccddeeff", "done\t0 0 -", "hello 0 0 -",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        Item got = {.kind = ITEM_READY, .number = 77};
        if (item_parse(guard_copy(str_from(bad[i])), &got))
            fail_msg("'%s' is taken", bad[i]);
        assert_true(got.kind == ITEM_READY && got.number == 77);
    }
}

/* Lines as text, one after the other: what `in` holds, in pieces cut at two places. */
static Step item_test__feed(ItemReader *r, Str in, Buf *out, Err *err)
{
    Item i;
    Step step;

    while ((step = item_next(r, &in, &i, err)) == STEP_DONE)
        item_put(out, &i);
    assert_true(step == STEP_ERR || in.n == 0);
    return step;
}

static void item_lines_test(void **state)
{
    Buf  b = buf_make(1 << 20), out = buf_make(1 << 20);
    Err  err;
    Item i = {.kind = ITEM_DONE, .path = STR("a b\n\xff/c")}, longest = {.kind = ITEM_CREATED, .number = UINT32_MAX, .size = INT64_MAX};
    char *name = test_malloc(LIMIT_SYNC_PATH + 1);

    (void)state;
    item_put(&b, &i);
    i.kind = ITEM_LOST;
    i.path.n = 0;
    item_put(&b, &i);
    i.path = STR(" - ");
    item_test__hash(&i);
    item_put(&b, &i);
    for (size_t cut = 0; cut <= b.n; cut++)
        for (size_t two = cut; two <= b.n; two++) {
            ItemReader r = item_reader();
            buf_clear(&out);
            assert_int_equal(item_test__feed(&r, guard_copy((Str){b.p, cut}), &out, &err), STEP_MORE);
            assert_int_equal(item_test__feed(&r, guard_copy((Str){b.p + cut, two - cut}), &out, &err), STEP_MORE);
            assert_int_equal(item_test__feed(&r, guard_copy((Str){b.p + two, b.n - two}), &out, &err), STEP_MORE);
            assert_true(str_eq(buf_str(&b), buf_str(&out)));
            item_reader_free(&r);
        }
    /* The longest line, and one byte more, whole and cut. */
    memset(name, 'n', LIMIT_SYNC_PATH + 1);
    item_test__hash(&longest);
    for (size_t more = 0; more < 2; more++)
        for (size_t cut = 0; cut < 200; cut++) {
            ItemReader r = item_reader();
            buf_clear(&b);
            buf_clear(&out);
            longest.path = (Str){name, LIMIT_SYNC_PATH + more};
            item_put(&b, &longest);
            size_t at = cut % 2 ? cut / 2 : b.n - cut / 2;
            Step step = item_test__feed(&r, guard_copy((Str){b.p, at}), &out, &err);
            if (step == STEP_MORE)
                step = item_test__feed(&r, guard_copy((Str){b.p + at, b.n - at}), &out, &err);
            assert_int_equal(step, more ? STEP_ERR : STEP_MORE);
            assert_int_equal(out.n, more ? 0 : b.n);
            item_reader_free(&r);
        }
    test_free(name);
    buf_free(&b);
    buf_free(&out);
}

/* What is no line ends it, and every later call says the same. */
static void item_refused_test(void **state)
{
    static const Str rows[] = {STR("\0"), STR("done 0 0 -\0"), STR("done 0 0\0 "), STR("done 0 0 - a\0nonsense 0 0 - \0"), STR("done 0 0  -\0")};

    (void)state;
    for (size_t k = 0; k < COUNT_OF(rows); k++)
        for (size_t cut = 0; cut <= rows[k].n; cut++) {
            ItemReader r = item_reader();
            Buf        out = buf_make(4096);
            Err        err = {0};
            Step       step = item_test__feed(&r, guard_copy((Str){rows[k].p, cut}), &out, &err);
            if (step == STEP_MORE)
                step = item_test__feed(&r, guard_copy((Str){rows[k].p + cut, rows[k].n - cut}), &out, &err);
            assert_int_equal(step, STEP_ERR);
            assert_true(err.kind == ERR_INPUT && err.code == E8020);
            assert_int_equal(item_test__feed(&r, guard_copy(STR("done 0 0 - a\0")), &out, &err), STEP_ERR);
            item_reader_free(&r);
            buf_free(&out);
        }
}

static const struct CMUnitTest item_tests[] = {
    cmocka_unit_test(item_words_test),
    cmocka_unit_test(item_lines_test),
    cmocka_unit_test(item_refused_test),
};
