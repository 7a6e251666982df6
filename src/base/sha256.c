#include "base/sha256.h"

/* The first 32 bits of the fractional parts of the cube roots of the first 64
 * primes (FIPS 180-4, 4.2.2). */
static const uint32_t sha256__k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t sha256__turn(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static uint32_t sha256__load(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* FIPS 180-4, 6.2.2; a to h there are v[0] to v[7]. */
static void sha256__block(uint32_t h[static 8], const unsigned char *p)
{
    uint32_t w[64], v[8];

    for (int t = 0; t < 16; t++)
        w[t] = sha256__load(p + 4 * t);
    for (int t = 16; t < 64; t++) {
        uint32_t x = w[t - 15], y = w[t - 2];
        w[t] = w[t - 16] + (sha256__turn(x, 7) ^ sha256__turn(x, 18) ^ x >> 3) + w[t - 7] +
               (sha256__turn(y, 17) ^ sha256__turn(y, 19) ^ y >> 10);
    }
    memcpy(v, h, sizeof v);
    for (int t = 0; t < 64; t++) {
        uint32_t e = v[4], a = v[0];
        uint32_t one = v[7] + (sha256__turn(e, 6) ^ sha256__turn(e, 11) ^ sha256__turn(e, 25)) +
                       ((e & v[5]) ^ (~e & v[6])) + sha256__k[t] + w[t];
        uint32_t two = (sha256__turn(a, 2) ^ sha256__turn(a, 13) ^ sha256__turn(a, 22)) +
                       ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one;
        v[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        h[i] += v[i];
}

Sha256 sha256_make(void)
{
    /* the square roots of the first eight primes */
    return (Sha256){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(Sha256 *s, Str bytes)
{
    while (bytes.n) {
        size_t have = s->n % SHA256_BLOCK;
        if (have == 0 && bytes.n >= SHA256_BLOCK) {
            sha256__block(s->h, (const unsigned char *)bytes.p);
            s->n += SHA256_BLOCK;
            str_skip(&bytes, SHA256_BLOCK);
            continue;
        }
        size_t take = SHA256_BLOCK - have < bytes.n ? SHA256_BLOCK - have : bytes.n;
        memcpy(s->block + have, bytes.p, take);
        s->n += take;
        str_skip(&bytes, take);
        if (s->n % SHA256_BLOCK == 0)
            sha256__block(s->h, s->block);
    }
}

void sha256_end(Sha256 *s, unsigned char out[static SHA256_SIZE])
{
    uint64_t bits = s->n * 8;
    char     length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (char)(bits >> (56 - 8 * i));
    sha256_add(s, STR("\x80"));
    while (s->n % SHA256_BLOCK != SHA256_BLOCK - sizeof length)
        sha256_add(s, (Str){"", 1});
    sha256_add(s, (Str){length, sizeof length});
    for (int i = 0; i < SHA256_SIZE; i++)
        out[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}
