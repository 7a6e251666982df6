#include "os/random.h"
#include "base/hex.h"
#include "base/sha256.h"

static void sha256_check(Sha256 *h, const char *want)
{
    unsigned char digest[SHA256_SIZE];
    char          room[256];
    Arena         a = {.p = room, .size = sizeof room};

    sha256_end(h, digest);
    assert_string_equal(hex_encode(&a, (Str){(const char *)digest, sizeof digest}).p, want);
}

/* The examples that NIST publishes for FIPS 180. */
static void sha256_vectors_test(void **state)
{
    static const struct { const char *in, *want; } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str whole = str_from(cases[i].in);
        for (size_t cut = 0; cut <= whole.n; cut++) {
            Sha256 h = sha256_make();
            sha256_add(&h, guard_copy((Str){whole.p, cut}));
            sha256_add(&h, guard_copy((Str){whole.p + cut, whole.n - cut}));
            sha256_check(&h, cases[i].want);
        }
    }
    Sha256 h = sha256_make();
    for (size_t left = 1000000; left > 0;) {        /* a million times "a", in odd pieces */
        char   piece[997];
        size_t n = left < sizeof piece ? left : sizeof piece;
        memset(piece, 'a', sizeof piece);
        sha256_add(&h, (Str){piece, n});
        left -= n;
    }
    sha256_check(&h, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Every length around the ends of a block, against a hash of all the hashes
 * that another implementation made. */
static void sha256_lengths_test(void **state)
{
    char   bytes[200];
    Sha256 all = sha256_make();

    (void)state;
    memset(bytes, 'x', sizeof bytes);
    for (size_t n = 0; n < sizeof bytes; n++) {
        unsigned char digest[SHA256_SIZE];
        Sha256        h = sha256_make();
        sha256_add(&h, guard_copy((Str){bytes, n}));
        sha256_end(&h, digest);
        sha256_add(&all, (Str){(const char *)digest, sizeof digest});
    }
    sha256_check(&all, "f5e61141898898cdabae3590cb32e1901b40bdc59952302926213a44c105c129");
}

/* The processor's way, where it has one, against the plain one. */
static void sha256_ways_test(void **state)
{
    unsigned char bytes[SHA256_BLOCK * 9];
    uint32_t      one[8], two[8];

    (void)state;
    for (int round = 0; round < 300; round++) {
        random_bytes(bytes, sizeof bytes);
        random_bytes(one, sizeof one);
        memcpy(two, one, sizeof two);
        size_t blocks = (size_t)round % 10;
        sha256__plain(one, (const unsigned char *)guard_copy((Str){(char *)bytes, SHA256_BLOCK * blocks}).p, blocks);
        sha256__blocks(two, (const unsigned char *)guard_copy((Str){(char *)bytes, SHA256_BLOCK * blocks}).p, blocks);
        assert_memory_equal(one, two, sizeof one);
    }
}

static const struct CMUnitTest sha256_tests[] = {
    cmocka_unit_test(sha256_ways_test),
    cmocka_unit_test(sha256_vectors_test),
    cmocka_unit_test(sha256_lengths_test),
};
