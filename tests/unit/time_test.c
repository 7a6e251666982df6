#include "base/time.h"

static void time_parse_test(void **state)
{
    static const struct { const char *in; int64_t ms; } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-11-30T03:05:54Z", 1796007954000},
        {"2026-11-30t03:05:54z", 1796007954000},
        {"2026-11-30 03:05:54Z", 1796007954000},
        {"2026-11-30T03:05:54.1Z", 1796007954100},
        {"2026-11-30T03:05:54.123456789Z", 1796007954123},
        {"2026-11-30T03:05:54.999999+00:00", 1796007954999},
        {"2026-11-30T11:05:54+08:00", 1796007954000},
        {"2026-11-29T22:35:54.5-04:30", 1796007954500},
        {"2026-11-30T03:05:54-00:00", 1796007954000},
        {"1985-04-12T23:20:50.52Z", 482196050520},         /* the examples of RFC 3339, 5.8 */
        {"1996-12-19T16:39:57-08:00", 851042397000},
        {"1990-12-31T23:59:60Z", 662688000000},
        {"1990-12-31T15:59:60-08:00", 662688000000},
        {"1937-01-01T12:00:27.87+00:20", -1041337172130},
        {"1969-12-31T23:59:59.999Z", -1},
        {"2024-02-29T00:00:00Z", 1709164800000},
        {"2000-02-29T00:00:00Z", 951782400000},
        {"0000-01-01T00:00:00Z", -62167219200000},
        {"9999-12-31T23:59:59.999Z", 253402300799999},
        {"9999-12-31T23:59:59-23:59", 253402387139000},
    };
    int64_t ms;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str in = str_from(cases[i].in);
        ms = 7;
        if (!time_parse(guard_copy(in), &ms) || ms != cases[i].ms)
            fail_msg("%s: %lld", cases[i].in, (long long)ms);
        for (size_t n = 0; n < in.n; n++)
            if (time_parse(guard_copy((Str){in.p, n}), &ms))
                fail_msg("%.*s is no time", (int)n, in.p);
    }
}

static void time_refuse_test(void **state)
{
    static const char *const bad[] = {
        "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-32T00:00:00Z",
        "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-04-31T00:00:00Z", "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z", "2026-01-01T00:00:61Z", "2026-01-01T00:00:60Z", "1990-12-31T23:59:60+01:00",
        "2026-01-01T00:00:00", "2026-01-01T00:00:00+1:00", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+00:60",
        "2026-01-01T00:00:00+0000", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00.1234567890Z", "2026-01-01T00:00:00,1Z",
        "2026-01-01T00:00:00ZZ", " 2026-01-01T00:00:00Z", "2026-1-01T00:00:00Z", "26-01-01T00:00:00Z",
        "+026-01-01T00:00:00Z", "2026-01-01_00:00:00Z", "2026-01-01T00:00:-1Z", "2026-01-01T00:00:00 Z", "",
    };
    int64_t ms = 7;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (time_parse(guard_copy(str_from(bad[i])), &ms) || ms != 7)
            fail_msg("%s was taken", bad[i]);
    assert_false(time_parse(STR("2026-01-01\00000:00:00Z"), &ms));
}

static void time_text_test(void **state)
{
    static const struct { int64_t ms; const char *plain, *with_ms; } cases[] = {
        {0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"},
        {1796007954123, "2026-11-30T03:05:54Z", "2026-11-30T03:05:54.123Z"},
        {-1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999Z"},
        {-1000, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000Z"},
        {951782400001, "2000-02-29T00:00:00Z", "2000-02-29T00:00:00.001Z"},
        {-62167219200000, "0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"},
        {253402300799999, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999Z"},
    };
    static const int64_t outside[] = {-62167219200001, 253402300800000, INT64_MIN, INT64_MAX};
    char    out[TIME_SIZE] = "untouched";
    int64_t back;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(outside); i++)
        assert_false(time_text(outside[i], true, out));
    assert_string_equal(out, "untouched");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_true(time_text(cases[i].ms, false, out));
        assert_string_equal(out, cases[i].plain);
        assert_true(time_text(cases[i].ms, true, out));
        assert_string_equal(out, cases[i].with_ms);
        assert_true(time_parse(str_from(out), &back) && back == cases[i].ms);
    }
}

static void time_http_test(void **state)
{
    static const char *const wrong[] = {
        "", "Mon, 30 Nov 2026 02:55:41 UTC", "Mon, 30 Nov 2026 02:55:41 GMT ", "Mon, 30 nov 2026 02:55:41 GMT",
        "Mon, 31 Nov 2026 02:55:41 GMT", "Mon, 30 Nov 2026 25:55:41 GMT", "Mon, 30-Nov-2026 02:55:41 GMT",
        "Monday, 30-Nov-26 02:55:41 GMT", "Mon Nov 30 02:55:41 2026", "Mon, 30 Nov 2026T02:55:41 GMT",
    };
    int64_t ms = 7;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        if (time_parse_http(guard_copy(str_from(wrong[i])), &ms) || ms != 7)
            fail_msg("%s", wrong[i]);
    assert_true(time_parse_http(guard_copy(STR("Mon, 30 Nov 2026 02:55:41 GMT")), &ms));
    assert_true(ms == 1796007341000);
    assert_true(time_parse_http(STR("Thu, 01 Jan 1970 00:00:00 GMT"), &ms) && ms == 0);

    static const struct { int64_t ms; const char *text; } written[] = {
        {0, "Thu, 01 Jan 1970 00:00:00 GMT"}, {1796007341999, "Mon, 30 Nov 2026 02:55:41 GMT"},
        {951827696000, "Tue, 29 Feb 2000 12:34:56 GMT"}, {253402300799000, "Fri, 31 Dec 9999 23:59:59 GMT"},
        {253402300800000, "Thu, 01 Jan 1970 00:00:00 GMT"},
    };
    for (size_t i = 0; i < COUNT_OF(written); i++) {
        char text[TIME_HTTP_SIZE];
        time_http(written[i].ms, text);
        assert_string_equal(text, written[i].text);
    }
}

static const struct CMUnitTest time_tests[] = {
    cmocka_unit_test(time_http_test),
    cmocka_unit_test(time_parse_test),
    cmocka_unit_test(time_refuse_test),
    cmocka_unit_test(time_text_test),
};
