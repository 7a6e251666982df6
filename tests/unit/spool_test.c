/* Bytes in memory, and over the edge of it in a file: the same either way. */
#include "host/spool.h"

static void spool_edge_test(void **state)
{
    char bytes[300], got[300];

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7);
    for (size_t piece = 1; piece <= sizeof bytes; piece += 13) {
        Spool s = spool_make(100, "/tmp");
        Err   err;
        for (size_t at = 0; at < sizeof bytes; at += piece) {
            size_t n = sizeof bytes - at < piece ? sizeof bytes - at : piece;
            assert_true(spool_add(&s, (Str){bytes + at, n}, &err));
            assert_int_equal(s.fd >= 0, at + n > 100);
            assert_int_equal(s.n, at + n);
            assert_true(spool_get(&s, 0, got, at + n, &err));
            assert_memory_equal(got, bytes, at + n);
            assert_true(spool_get(&s, (at + n) / 2, got, at + n - (at + n) / 2, &err));
            assert_memory_equal(got, bytes + (at + n) / 2, at + n - (at + n) / 2);
        }
        assert_true(spool_get(&s, s.n, got, 0, &err));
        spool_free(&s);
        spool_free(&s);
    }
}

static void spool_no_room_test(void **state)
{
    Spool s = spool_make(4, "/nonexistent/folder");
    Err   err = {0};

    (void)state;
    assert_true(spool_add(&s, STR("1234"), &err));
    assert_false(spool_add(&s, STR("5"), &err));
    assert_int_equal(err.code, E8010);
    assert_non_null(strstr(err.text, "/nonexistent/folder"));
    spool_free(&s);
    s = spool_make(0, "/proc");         /* a folder without files of ours */
    assert_false(spool_add(&s, STR("5"), &err));
    spool_free(&s);
}

static const struct CMUnitTest spool_tests[] = {
    cmocka_unit_test(spool_edge_test),
    cmocka_unit_test(spool_no_room_test),
};
