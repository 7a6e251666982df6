#include "data/inflate.h"

/* "hello\n" 200 times, by gzip -n9. */
static const char inflate_test__member[] =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\xe7\xca\x18\x25\x47\xc9\x51\x72\x94\x1c\xf4\x24\x00"
    "\x0d\x28\x3f\x2c\xb0\x04\x00\x00";
/* The same, by Python's zlib.compress(..., 9). */
static const char inflate_test__zlib[] =
    "\x78\xda\xcb\x48\xcd\xc9\xc9\xe7\xca\x18\x25\x47\xc9\x51\x72\x94\x1c\xf4\x24\x00\x2d\x06\xa7\x80";
/* A member with every field of a header: extra, name, comment and its own check; "hi". */
static const char inflate_test__fields[] =
    "\x1f\x8b\x08\x1e\x00\x00\x00\x00\x00\x03\x04\x00" "abcd" "name\0" "comment\0" "\xe2\x48"
    "\xcb\xc8\x04\x00\xac\x2a\x93\xd8\x02\x00\x00\x00";

#define INFLATE_TEST_STR(s) ((Str){(s), sizeof(s) - 1})

static void inflate_test__hello(Str got, size_t times)
{
    assert_int_equal(got.n, 6 * times);
    for (size_t i = 0; i < got.n; i++)
        assert_int_equal(got.p[i], "hello\n"[i % 6]);
}

/* All of `in`, in two parts cut at `cut`, with room for `room` bytes at a time. */
static Step inflate_test__feed(Inflate *z, Str in, size_t cut, size_t room, Buf *out, Str *left, Err *err)
{
    Str    parts[2] = {{in.p, cut}, {in.p + cut, in.n - cut}};
    Step   step = STEP_MORE;
    size_t n;

    for (int i = 0; i < 2 && step == STEP_MORE; i++) {
        *left = guard_copy(parts[i]);
        do {
            step = inflate_next(z, left, buf_room(out, room), room, &n, err);
            buf_grew(out, n);
        } while (step == STEP_MORE && n == room);
        assert_true(step != STEP_MORE || left->n == 0);
        left->n += i == 0 ? parts[1].n : 0;
    }
    return step;
}

static void inflate_cuts_test(void **state)
{
    static const struct { InflateKind kind; Str in; Step step; } rows[] = {
        {INFLATE_GZIP,   {inflate_test__member, sizeof inflate_test__member - 1}, STEP_MORE},
        {INFLATE_MEMBER, {inflate_test__member, sizeof inflate_test__member - 1}, STEP_DONE},
        {INFLATE_ZLIB,   {inflate_test__zlib, sizeof inflate_test__zlib - 1}, STEP_DONE},
    };
    static const size_t rooms[] = {1, 7, 1199, 1200, 1201, 4096};
    Buf out = buf_make(8192);
    Err err;
    Str left;

    (void)state;
    for (size_t r = 0; r < COUNT_OF(rows); r++)
        for (size_t k = 0; k < COUNT_OF(rooms); k++) {
            Inflate *z = inflate_open(rows[r].kind);
            for (size_t cut = 0; cut <= rows[r].in.n; cut++) {
                buf_clear(&out);
                assert_int_equal(inflate_test__feed(z, rows[r].in, cut, rooms[k], &out, &left, &err), rows[r].step);
                inflate_test__hello(buf_str(&out), 200);
                assert_true(inflate_whole(z));
                assert_int_equal(left.n, 0);
                inflate_again(z);
                assert_false(inflate_whole(z));
            }
            inflate_close(z);
        }
    buf_free(&out);
}

static void inflate_short_test(void **state)
{
    static const struct { InflateKind kind; Str in; } rows[] = {
        {INFLATE_GZIP, {inflate_test__member, sizeof inflate_test__member - 1}},
        {INFLATE_GZIP, {inflate_test__fields, sizeof inflate_test__fields - 1}},
        {INFLATE_ZLIB, {inflate_test__zlib, sizeof inflate_test__zlib - 1}},
    };
    char   p[4096];
    size_t n;
    Err    err;

    (void)state;
    for (size_t r = 0; r < COUNT_OF(rows); r++)
        for (size_t size = 0; size < rows[r].in.n; size++) {
            Inflate *z = inflate_open(rows[r].kind);
            Str in = guard_copy((Str){rows[r].in.p, size});
            assert_int_equal(inflate_next(z, &in, p, sizeof p, &n, &err), STEP_MORE);
            assert_int_equal(in.n, 0);
            assert_false(inflate_whole(z));
            inflate_close(z);
        }
}

/* What follows a stream: another one, filling, or what does not belong there. */
static void inflate_behind_test(void **state)
{
    static const struct { Str tail; Step step; size_t out; } rows[] = {
        {{inflate_test__member, sizeof inflate_test__member - 1}, STEP_MORE, 2400},
        {{inflate_test__fields, sizeof inflate_test__fields - 1}, STEP_MORE, 1202},
        {{"\0", 1}, STEP_MORE, 1200},
        {{"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16}, STEP_MORE, 1200},
        {{"\0x", 2}, STEP_ERR, 1200},
        {{"\0\x1f\x8b", 3}, STEP_ERR, 1200},
        {{"x", 1}, STEP_MORE, 1200},            /* a byte does not make it bad yet, nor whole */
        {{"xy", 2}, STEP_ERR, 1200},
        {{"\x1f\x8b", 2}, STEP_MORE, 1200},
        {{"\x1f\x8b\x07\x00", 4}, STEP_ERR, 1200},
    };
    static const bool whole[] = {true, true, true, true, false, false, false, false, false, false};
    Buf out = buf_make(8192), in = buf_make(8192);
    Str left;
    Err err;

    (void)state;
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        buf_clear(&in);
        buf_add(&in, INFLATE_TEST_STR(inflate_test__member));
        buf_add(&in, rows[r].tail);
        for (size_t cut = 0; cut <= in.n; cut++) {
            Inflate *z = inflate_open(INFLATE_GZIP);
            buf_clear(&out);
            assert_int_equal(inflate_test__feed(z, buf_str(&in), cut, 100, &out, &left, &err), rows[r].step);
            assert_int_equal(out.n, rows[r].out);
            assert_int_equal(inflate_whole(z), whole[r]);
            if (rows[r].step == STEP_ERR) {
                size_t n;
                assert_int_equal(err.kind, ERR_INPUT);
                assert_int_equal(inflate_next(z, &left, out.p, 1, &n, &err), STEP_ERR);
            }
            inflate_close(z);
        }
    }
    /* A zlib stream leaves what is behind it to whoever reads on. */
    buf_clear(&in);
    buf_add(&in, INFLATE_TEST_STR(inflate_test__zlib));
    buf_add(&in, STR("next"));
    for (size_t cut = 0; cut <= in.n; cut++) {
        Inflate *z = inflate_open(INFLATE_ZLIB);
        buf_clear(&out);
        assert_int_equal(inflate_test__feed(z, buf_str(&in), cut, 100, &out, &left, &err), STEP_DONE);
        assert_int_equal(left.n, 4);
        inflate_close(z);
    }
    buf_free(&out);
    buf_free(&in);
}

/* A thousand times as much comes out as went in, and never more at once than there is room for. */
static void inflate_bomb_test(void **state)
{
    static const char head[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xed\xc1\x01\x0d\x00\x00\x00\xc2\xa0\xf7\x4f\x6d\x0e\x37\xa0",
                      tail[] = "\xbe\x0d\xc6\x4f\x72\x79\x00\x00\x30\x00";
    enum { PACKED = 3083, ZEROS = 3 << 20 };
    Inflate *z = inflate_open(INFLATE_GZIP);
    Buf      packed = buf_make(PACKED);
    size_t   total = 0, n;
    char     p[1000];
    Step     step;
    Err      err;

    (void)state;
    memset(buf_room(&packed, PACKED), 0, PACKED);
    memcpy(packed.p, head, sizeof head - 1);
    memcpy(packed.p + PACKED - (sizeof tail - 1), tail, sizeof tail - 1);
    buf_grew(&packed, PACKED);
    Str in = buf_str(&packed);
    do {
        step = inflate_next(z, &in, p, sizeof p, &n, &err);
        assert_int_equal(step, STEP_MORE);
        assert_true(n <= sizeof p);
        total += n;
        assert_false(inflate_whole(z) && total < ZEROS);
    } while (n == sizeof p);
    assert_int_equal(total, ZEROS);
    assert_true(inflate_whole(z));
    inflate_close(z);

    Buf out = buf_make(ZEROS - 1);
    assert_false(inflate_gzip(buf_str(&packed), &out, &err));
    assert_int_equal(err.kind, ERR_LIMIT);
    buf_free(&packed);
    buf_free(&out);
}

static void inflate_gzip_test(void **state)
{
    Str member = guard_copy(INFLATE_TEST_STR(inflate_test__member));
    Buf out = buf_make(1200), small = buf_make(1199);
    Err err;

    (void)state;
    assert_true(inflate_gzip(member, &out, &err));
    inflate_test__hello(buf_str(&out), 200);
    assert_false(inflate_gzip(member, &small, &err));
    assert_int_equal(err.kind, ERR_LIMIT);
    buf_free(&out);
    buf_free(&small);
}

static void inflate_damage_test(void **state)
{
    size_t size = sizeof inflate_test__member - 1;
    char   bytes[sizeof inflate_test__member];
    Buf    out = buf_make(4000);
    Err    err;

    (void)state;
    for (size_t n = 0; n < size; n++) {                 /* cut short at every byte */
        buf_clear(&out);
        assert_false(inflate_gzip(guard_copy((Str){inflate_test__member, n}), &out, &err));
        assert_int_equal(err.kind, ERR_INPUT);
        assert_string_equal(err.text, "the compressed data is cut short");
    }
    memcpy(bytes, inflate_test__member, size + 1);      /* one byte behind it */
    assert_false(inflate_gzip(guard_copy((Str){bytes, size + 1}), &out, &err));
    assert_string_equal(err.text, "something follows the compressed data");
    for (size_t i = 10; i < size; i++) {                /* a wrong byte behind the header */
        memcpy(bytes, inflate_test__member, size);
        bytes[i] ^= 0x55;
        buf_clear(&out);
        assert_false(inflate_gzip(guard_copy((Str){bytes, size}), &out, &err));
    }
    buf_free(&out);
}

static const struct CMUnitTest inflate_tests[] = {
    cmocka_unit_test(inflate_cuts_test),
    cmocka_unit_test(inflate_short_test),
    cmocka_unit_test(inflate_behind_test),
    cmocka_unit_test(inflate_bomb_test),
    cmocka_unit_test(inflate_gzip_test),
    cmocka_unit_test(inflate_damage_test),
};
