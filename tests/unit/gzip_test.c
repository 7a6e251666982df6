#include "data/gzip.h"

/* "hello\n" 200 times, by gzip -n9. */
static const char gzip_test__member[] =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\xe7\xca\x18\x25\x47\xc9\x51\x72\x94\x1c\xf4\x24\x00"
    "\x0d\x28\x3f\x2c\xb0\x04\x00\x00";

static void gzip_whole_test(void **state)
{
    Str member = guard_copy((Str){gzip_test__member, sizeof gzip_test__member - 1});
    Buf out = buf_make(1200), small = buf_make(1199);
    Err err;

    (void)state;
    assert_true(gzip_inflate(member, &out, &err));
    assert_int_equal(out.n, 1200);
    for (size_t i = 0; i < out.n; i++)
        assert_int_equal(out.p[i], "hello\n"[i % 6]);
    assert_false(gzip_inflate(member, &small, &err));
    assert_int_equal(err.kind, ERR_LIMIT);
    buf_free(&out);
    buf_free(&small);
}

static void gzip_damage_test(void **state)
{
    size_t size = sizeof gzip_test__member - 1;
    char   bytes[sizeof gzip_test__member];
    Buf    out = buf_make(4000);
    Err    err;

    (void)state;
    for (size_t n = 0; n < size; n++) {                 /* cut short at every byte */
        buf_clear(&out);
        assert_false(gzip_inflate(guard_copy((Str){gzip_test__member, n}), &out, &err));
        assert_int_equal(err.kind, ERR_INPUT);
    }
    memcpy(bytes, gzip_test__member, size + 1);         /* one byte behind it */
    assert_false(gzip_inflate(guard_copy((Str){bytes, size + 1}), &out, &err));
    assert_string_equal(err.text, "something follows the gzip data");
    for (size_t i = 10; i < size; i++) {                /* a wrong byte behind the header */
        memcpy(bytes, gzip_test__member, size);
        bytes[i] ^= 0x55;
        buf_clear(&out);
        assert_false(gzip_inflate(guard_copy((Str){bytes, size}), &out, &err));
    }
    buf_free(&out);
}

static const struct CMUnitTest gzip_tests[] = {
    cmocka_unit_test(gzip_whole_test),
    cmocka_unit_test(gzip_damage_test),
};
