#include "base/hex.h"
#include "base/sha1.h"

static void sha1_check(Sha1 *h, const char *want)
{
    unsigned char digest[SHA1_SIZE];
    char          room[256];
    Arena         a = {.p = room, .size = sizeof room};

    sha1_end(h, digest);
    assert_string_equal(hex_encode(&a, (Str){(const char *)digest, sizeof digest}).p, want);
}

/* The examples that NIST publishes for FIPS 180. */
static void sha1_vectors_test(void **state)
{
    static const struct { const char *in, *want; } cases[] = {
        {"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "a49b2446a02c645bf419f995b67091253a04a259"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str whole = str_from(cases[i].in);
        for (size_t cut = 0; cut <= whole.n; cut++) {
            Sha1 h = sha1_make();
            sha1_add(&h, guard_copy((Str){whole.p, cut}));
            sha1_add(&h, guard_copy((Str){whole.p + cut, whole.n - cut}));
            sha1_check(&h, cases[i].want);
        }
    }
    Sha1 h = sha1_make();
    for (size_t left = 1000000; left > 0;) {        /* a million times "a", in odd pieces */
        char   piece[997];
        size_t n = left < sizeof piece ? left : sizeof piece;
        memset(piece, 'a', sizeof piece);
        sha1_add(&h, (Str){piece, n});
        left -= n;
    }
    sha1_check(&h, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

/* Every length around the ends of a block, against a hash of all the hashes
 * that another implementation made. */
static void sha1_lengths_test(void **state)
{
    char   bytes[200];
    Sha1 all = sha1_make();

    (void)state;
    memset(bytes, 'x', sizeof bytes);
    for (size_t n = 0; n < sizeof bytes; n++) {
        unsigned char digest[SHA1_SIZE];
        Sha1        h = sha1_make();
        sha1_add(&h, guard_copy((Str){bytes, n}));
        sha1_end(&h, digest);
        sha1_add(&all, (Str){(const char *)digest, sizeof digest});
    }
    sha1_check(&all, "bbd580c3a0c872a603baa084a09981df9eb680e5");
}

/* The processor's instructions, where it has them, and the other way give the same. */
static void sha1_plain_test(void **state)
{
    unsigned char bytes[SHA1_BLOCK * 5];
    uint32_t      one[5] = {1, 2, 3, 4, 5}, two[5] = {1, 2, 3, 4, 5};

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * i + 7 * i);
    for (size_t blocks = 1; blocks <= 5; blocks++) {
        for (size_t i = 0; i < blocks; i++)
            sha1__plain(one, bytes + SHA1_BLOCK * i);
        sha1__blocks(two, (const unsigned char *)guard_copy((Str){(char *)bytes, SHA1_BLOCK * blocks}).p, blocks);
        assert_memory_equal(one, two, sizeof one);
    }
}

static const struct CMUnitTest sha1_tests[] = {
    cmocka_unit_test(sha1_vectors_test),
    cmocka_unit_test(sha1_lengths_test),
    cmocka_unit_test(sha1_plain_test),
};
