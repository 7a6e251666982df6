#include "base/num.h"
#include "base/str.h"

static void num_duration_test(void **state)
{
    static const struct { const char *in; int64_t ms; } cases[] = {
        {"90", 90000}, {"30s", 30000}, {"5m", 300000}, {"1h30m", 5400000}, {"250ms", 250}, {"1d", 86400000},
        {"0", 0}, {"1m0s", 60000}, {"1s500ms", 1500},
        {"", -1}, {"s", -1}, {"1h30", -1}, {"30s1h", -1}, {"1s1s", -1}, {"-1", -1}, {"1 s", -1}, {"1.5s", -1},
        {"1w", -1}, {"9223372036854775807", -1}, {"9223372036854775808", -1}, {"99999999999999999d", -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t ms = -1;
        bool    ok = num_duration(guard_copy(str_from(cases[i].in)), &ms);
        if (ok != (cases[i].ms >= 0) || ms != cases[i].ms)
            fail_msg("%s: %d %lld", cases[i].in, ok, (long long)ms);
    }
}

static void num_integer_test(void **state)
{
    static const struct { const char *in; bool ok; int64_t v; } cases[] = {
        {"0", true, 0}, {"007", true, 7}, {"-1", true, -1}, {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN}, {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0}, {"", false, 0}, {"-", false, 0}, {"--1", false, 0}, {"+1", false, 0},
        {"1 ", false, 0}, {"0x1", false, 0}, {"99999999999999999999", false, 0},
    };
    uint64_t u = 0;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t v = 0;
        bool    ok = num_i64(guard_copy(str_from(cases[i].in)), &v);
        if (ok != cases[i].ok || v != cases[i].v)
            fail_msg("%s: %d %lld", cases[i].in, ok, (long long)v);
    }
    assert_true(num_u64(STR("18446744073709551615"), &u) && u == UINT64_MAX);
    assert_false(num_u64(STR("18446744073709551616"), &u));
    assert_true(num_hex(STR("fFfFfFfFfFfFfFfF"), &u) && u == UINT64_MAX);
    assert_false(num_hex(STR("10000000000000000"), &u) || num_hex(STR("g"), &u) || num_hex(STR(""), &u));
}

static const struct CMUnitTest num_tests[] = {
    cmocka_unit_test(num_duration_test),
    cmocka_unit_test(num_integer_test),
};
