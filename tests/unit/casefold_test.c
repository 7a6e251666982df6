#include "base/sha256.h"
#include "data/casefold.h"

/* All of Unicode at once: a line for each character that changes. The same sum
 * is made of the table and of Python in tests/cli/test_casefold.py. */
static const char casefold_all[] = "89fd8030f6d9e229d653010e7bd56ce2987cdf7e8b065e8dc1d055774c294c54";

static void casefold_all_test(void **state)
{
    Sha256        h = sha256_make();
    unsigned char digest[SHA256_SIZE];
    char          hex[2 * SHA256_SIZE + 1];

    (void)state;
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint32_t out[CASEFOLD_MOST];
        size_t   n = casefold_char(c, out);
        char     line[80];
        assert_in_range(n, 1, CASEFOLD_MOST);
        if (n == 1 && out[0] == c)
            continue;
        int w = snprintf(line, sizeof line, "%x", (unsigned)c);
        for (size_t i = 0; i < n; i++)
            w += snprintf(line + w, sizeof line - (size_t)w, " %x", (unsigned)out[i]);
        sha256_add(&h, (Str){line, (size_t)w});
        sha256_add(&h, STR("\n"));
    }
    sha256_end(&h, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(hex, casefold_all);
}

static void casefold_text_test(void **state)
{
    static const struct { const char *in, *want; } cases[] = {
        {"", ""},
        {"AZaz09@[`{", "azaz09@[`{"},
        {"Stra\xc3\x9f" "e", "strasse"},
        {"\xef\xac\x83", "ffi"},                    /* one character becomes three */
        {"\xc4\xb0", "i\xcc\x87"},
        {"\xe2\x84\xaa", "k"},                      /* the Kelvin sign */
        {"\xf0\x90\x90\x80", "\xf0\x90\x90\xa8"},   /* above U+FFFF */
        {"\xea\xad\xb0", "\xe1\x8e\xa0"},           /* Cherokee goes to the capital */
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Buf b = buf_make(100);
        casefold_add(&b, guard_copy(str_from(cases[i].in)));
        assert_true(str_eq(buf_str(&b), str_from(cases[i].want)));
        buf_free(&b);
    }
}

static const struct CMUnitTest casefold_tests[] = {
    cmocka_unit_test(casefold_all_test),
    cmocka_unit_test(casefold_text_test),
};
