/* vendor/format.c and vendor/sort.c under other names, held to what this libc does. */
#include <math.h>

#define vsnprintf format_test_vsnprintf
#define snprintf  format_test_snprintf
#define vfprintf  format_test_vfprintf
#define fprintf   format_test_fprintf
#define printf    format_test_printf
#define strtod    format_test_strtod
#define strtol    format_test_strtol
#define strtoul   format_test_strtoul
#define strtoull  format_test_strtoull
#define qsort     format_test_qsort
#define qsort_r   format_test_qsort_r
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wredundant-decls"
int   format_test_vsnprintf(char *to, size_t size, const char *fmt, va_list ap);
void  format_test_qsort_r(void *base, size_t count, size_t width, int (*order)(const void *, const void *, void *), void *with);
#include "../../vendor/format.c"
#include "../../vendor/sort.c"
#pragma GCC diagnostic pop
#undef vsnprintf
#undef snprintf
#undef vfprintf
#undef fprintf
#undef printf
#undef strtod
#undef strtol
#undef strtoul
#undef strtoull
#undef qsort
#undef qsort_r

static uint64_t format_test_random(void)
{
    static uint64_t state = 0x9e3779b97f4a7c15;

    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* Both write the same, and say the same size; cut, it is the beginning of that. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void format_test_same(const char *fmt, ...)
{
    char    want[2500], got[2500];
    size_t  room;
    va_list ap, again, cut;

    va_start(ap, fmt);
    va_copy(again, ap);
    va_copy(cut, ap);
    int n = vsnprintf(want, sizeof want, fmt, ap);
    assert_int_equal(format_test_vsnprintf(got, sizeof got, fmt, again), n);
    assert_string_equal(got, want);
    assert_true((size_t)n + 2 < sizeof got);
    room = format_test_random() % ((size_t)n + 2);
    memset(got, '#', sizeof got);
    assert_int_equal(format_test_vsnprintf(got, room, fmt, cut), n);
    if (room > 0) {
        want[room - 1] = '\0';
        assert_string_equal(got, want);
    }
    assert_int_equal(got[room], '#');
    va_end(cut);
    va_end(again);
    va_end(ap);
}
#pragma GCC diagnostic pop

static double format_test_double(void)
{
    uint64_t bits = format_test_random() & ~((uint64_t)1 << 63);
    double   v;

    memcpy(&v, &bits, sizeof v);
    return v - v == 0 ? v : 1;
}

static void format_test_words(void **state)
{
    (void)state;
    format_test_same("plain");
    format_test_same("%s|%10s|%-10s|%.2s|%.*s|%*s|%-*s|%.0s", "abc", "abc", "abc", "abc", 1, "abc", 6, "abc", -6, "abc", "x");
    format_test_same("%c%5c%-5c%%", 'a', 'b', 'c');
    format_test_same("%.*s|%5.1s|%-5.1s|", -1, "whole", "xy", "xy");
    for (int i = 0; i < 2000; i++) {
        uint64_t r = format_test_random() >> (format_test_random() % 64);
        format_test_same("%d %5d %-5d| %05d %+d % d %.3d %8.3d %.0d", (int)r, (int)r, (int)r, (int)r, (int)r, (int)r, (int)r, (int)r,
                         (int)(r % 2));
        format_test_same("%u %x %X %o %04x %08u", (unsigned)r, (unsigned)r, (unsigned)r, (unsigned)r, (unsigned)r, (unsigned)r);
        format_test_same("%ld %lld %zd %jd %zu %llu %lx %+05lld", (long)r, (long long)-r, (ssize_t)r, (intmax_t)r, (size_t)r,
                         (unsigned long long)r, (unsigned long)r, (long long)r);
        format_test_same("%hd %hu %hhd %hhu %hhx", (short)r, (unsigned short)r, (signed char)r, (unsigned char)r, (unsigned char)r);
    }
    /* A text with nothing behind it, and none at all. */
    char *bare = memcpy(malloc(3), "abc", 3), all[8];
    assert_int_equal(format_test_snprintf(all, sizeof all, "%.*s|%.*s", 3, bare, 0, (char *)NULL), 4);
    assert_string_equal(all, "abc|");
    free(bare);
    assert_int_equal(format_test_snprintf(all, sizeof all, "%*d", INT_MIN, 7), 1);
    char cut[4];
    assert_int_equal(format_test_snprintf(cut, sizeof cut, "%s", "abcdef"), 6);
    assert_string_equal(cut, "abc");
    assert_int_equal(format_test_snprintf(NULL, 0, "%d", 1234), 4);
    assert_int_equal(format_test_snprintf(cut, 1, "%d", 1234), 4);
    assert_string_equal(cut, "");
}

static void format_test_reals(void **state)
{
    static const double few[] = {0, -0.0, 1, 0.5, 1.5, 2.5, 0.125, 0.1, 9.995, 99.9995, 999999.5, 1e15, 123456789, 1e-5, 1e-4, 0.00012345,
                                 1e21, 1e22, 1e23, 1.7976931348623157e308, 5e-324, 2.2250738585072014e-308, 1.0 / 3, 1e300};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(few) + 3000; i++) {
        double v = i < COUNT_OF(few) ? few[i] : i % 2 ? format_test_double() : (double)(format_test_random() % 1000000) / 64;
        format_test_same("%e %.0e %.3e %.17e %+.2e", v, v, v, v, v);
        format_test_same("%g %.3g %10g|%-12g|%012g %.17g", v, v, v, v, v, v);
        format_test_same("%f %.0f %.1f %.3f %10.2f %.20f", v, v, v, v, v, v);
        format_test_same("%.3f %.3e", -v, -v);
    }
    format_test_same("%f %e %g %5f %-5g| %05f", INFINITY, -INFINITY, INFINITY, INFINITY, INFINITY, INFINITY);
    format_test_same("%f", NAN);
}

static void format_test_reads(const char *text)
{
    char  *want_end, *got_end;
    double want = strtod(text, &want_end), got = format_test_strtod(text, &got_end);

    if (memcmp(&want, &got, sizeof want) != 0 && !(want != want && got != got))
        fail_msg("%s: %a, not %a", text, got, want);
    assert_ptr_equal(got_end, want_end);
}

static void format_test_numbers(void **state)
{
    static const char *const texts[] = {
        "0", "-0", "1", "+1", " 12.5x", ".5", "5.", ".", "", "-", "e5", "1e", "1e+", "1e5", "1E-5", "1e400", "-1e400", "1e-400", "1e99999999999",
        "1e-99999999999", "inf", "-INF", "infinity", "infinit", "nan", "-nan", "0.1", "9007199254740993", "9007199254740992.9999999",
        "9007199254740993.0000000000000000000000000000000000000001", "179769313486231570814527423731704356798070e267",
        "1.7976931348623158079372897140530341507993e308", "1.797693134862315807937289714053034150799341e308",
        "1.7976931348623159e308", "2.4703282292062327208299439e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "4.9e-324",
        "2.2250738585072011e-308", "2.2250738585072012e-308", "2.2250738585072014e-308", "0.000000000000000000000000000000000000001e39",
        "00000000000000000000000000000000001", "123456789012345678901234567890123456789012345678901234567890", "1_0", "0.00",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        format_test_reads(texts[i]);
    for (int i = 0; i < 4000; i++) {
        char   text[1500];
        double v = format_test_double(), next = v;
        uint64_t bits;
        memcpy(&bits, &v, sizeof bits);
        bits++;
        memcpy(&next, &bits, sizeof next);
        snprintf(text, sizeof text, "%.*e", (int)(format_test_random() % 20), v);
        format_test_reads(text);
        /* The middle to the next one, exactly, and a last digit more or less. */
        if (next - next == 0) {
            snprintf(text, sizeof text, "%.1100Lf", ((long double)v + (long double)next) / 2);
            format_test_reads(text);
            text[strlen(text) - 1] = '1';
            format_test_reads(text);
        }
    }
}

static void format_test_integers(void **state)
{
    static const char *const texts[] = {"0", "12", "-12", "+7", "  42x", "", "-", "0x1f", "0x", "0xg", "017", "089", "zz", "9223372036854775807",
                                        "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
                                        "18446744073709551616", "99999999999999999999999", "-1"};
    static const int bases[] = {0, 2, 8, 10, 16, 36};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts) * COUNT_OF(bases); i++) {
        const char *text = texts[i / COUNT_OF(bases)];
        int         base = bases[i % COUNT_OF(bases)], before;
        char       *a, *b;
        errno = 0;
        long want = strtol(text, &a, base);
        before = errno == ERANGE;
        errno = 0;
        assert_int_equal(format_test_strtol(text, &b, base), want);
        assert_ptr_equal(a, b);
        assert_int_equal(errno == ERANGE, before);
        assert_true(format_test_strtoul(text, &b, base) == strtoul(text, &a, base));
        assert_ptr_equal(a, b);
        assert_true(format_test_strtoull(text, NULL, base) == strtoull(text, NULL, base));
    }
}

static int format_test_order(const void *a, const void *b)
{
    return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b;
}

static void format_test_sort(void **state)
{
    struct { int key; char with[100]; } items[300];

    (void)state;
    for (size_t count = 0; count < COUNT_OF(items); count++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < count; i++) {
            items[i].key = (int)(format_test_random() % (count + 1));
            memset(items[i].with, items[i].key, sizeof items[i].with);
            sum += (uint64_t)items[i].key;
        }
        format_test_qsort(items, count, sizeof *items, format_test_order);
        for (size_t i = 0; i < count; i++) {
            assert_true(i == 0 || items[i - 1].key <= items[i].key);
            assert_int_equal(items[i].with[99], (char)items[i].key);
            sum -= (uint64_t)items[i].key;
        }
        assert_int_equal(sum, 0);
    }
}

static const struct CMUnitTest format_tests[] = {
    cmocka_unit_test(format_test_words),
    cmocka_unit_test(format_test_reals),
    cmocka_unit_test(format_test_numbers),
    cmocka_unit_test(format_test_integers),
    cmocka_unit_test(format_test_sort),
};
