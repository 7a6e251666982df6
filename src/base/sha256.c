#include "base/sha256.h"

#include "base/cpu.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif

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

static inline uint32_t sha256__turn(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static inline uint32_t sha256__load(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* One round of FIPS 180-4, 6.2.2, with the eight letters named anew in each
 * instead of moved. w is the message, of which sixteen words are kept. */
#define SHA256_ROUND(a, b, c, d, e, f, g, h, t) do { \
        uint32_t one = h + (sha256__turn(e, 6) ^ sha256__turn(e, 11) ^ sha256__turn(e, 25)) + \
                       (g ^ (e & (f ^ g))) + sha256__k[t] + w[(t) & 15]; \
        d += one; \
        h = one + (sha256__turn(a, 2) ^ sha256__turn(a, 13) ^ sha256__turn(a, 22)) + ((a & b) | (c & (a | b))); \
    } while (0)

static void sha256__plain(uint32_t h[static 8], const unsigned char *p, size_t blocks)
{
    uint32_t w[16];

    for (; blocks; blocks--, p += SHA256_BLOCK) {
        uint32_t v0 = h[0], v1 = h[1], v2 = h[2], v3 = h[3], v4 = h[4], v5 = h[5], v6 = h[6], v7 = h[7];
        for (int t = 0; t < 16; t++)
            w[t] = sha256__load(p + 4 * t);
        for (int t = 0; t < 64; t += 8) {
            for (int i = t; t >= 16 && i < t + 8; i++) {
                uint32_t x = w[(i + 1) & 15], y = w[(i + 14) & 15];
                w[i & 15] += (sha256__turn(x, 7) ^ sha256__turn(x, 18) ^ x >> 3) + w[(i + 9) & 15] +
                             (sha256__turn(y, 17) ^ sha256__turn(y, 19) ^ y >> 10);
            }
            SHA256_ROUND(v0, v1, v2, v3, v4, v5, v6, v7, t);
            SHA256_ROUND(v7, v0, v1, v2, v3, v4, v5, v6, t + 1);
            SHA256_ROUND(v6, v7, v0, v1, v2, v3, v4, v5, t + 2);
            SHA256_ROUND(v5, v6, v7, v0, v1, v2, v3, v4, t + 3);
            SHA256_ROUND(v4, v5, v6, v7, v0, v1, v2, v3, t + 4);
            SHA256_ROUND(v3, v4, v5, v6, v7, v0, v1, v2, t + 5);
            SHA256_ROUND(v2, v3, v4, v5, v6, v7, v0, v1, t + 6);
            SHA256_ROUND(v1, v2, v3, v4, v5, v6, v7, v0, t + 7);
        }
        h[0] += v0, h[1] += v1, h[2] += v2, h[3] += v3, h[4] += v4, h[5] += v5, h[6] += v6, h[7] += v7;
    }
}

#ifdef __x86_64__
/* The same with the processor's own instructions, which want the letters as
 * ABEF and CDGH, and do two rounds at once. w0 to w3 are the next sixteen words
 * of the message, taken round; the last three turns need none further. */
#define SHA256_FOUR(w0, w1, w2, w3, t, more) do { \
        __m128i m = _mm_add_epi32(w0, _mm_loadu_si128((const __m128i *)(const void *)(sha256__k + (t)))); \
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, m); \
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(m, 0x0e)); \
        if (more) \
            w0 = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4)), w3); \
    } while (0)

__attribute__((target("sha,sse4.1")))
static void sha256__native(uint32_t h[static 8], const unsigned char *p, size_t blocks)
{
    const __m128i big = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)h), 0xb1);
    __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)(h + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);

    for (; blocks; blocks--, p += SHA256_BLOCK) {
        const __m128i *in = (const __m128i *)(const void *)p;
        __m128i a = abef, c = cdgh;
        __m128i w0 = _mm_shuffle_epi8(_mm_loadu_si128(in), big), w1 = _mm_shuffle_epi8(_mm_loadu_si128(in + 1), big);
        __m128i w2 = _mm_shuffle_epi8(_mm_loadu_si128(in + 2), big), w3 = _mm_shuffle_epi8(_mm_loadu_si128(in + 3), big);
        for (int t = 0; t < 64; t += 16) {
            SHA256_FOUR(w0, w1, w2, w3, t, t < 48);
            SHA256_FOUR(w1, w2, w3, w0, t + 4, t < 48);
            SHA256_FOUR(w2, w3, w0, w1, t + 8, t < 48);
            SHA256_FOUR(w3, w0, w1, w2, t + 12, t < 48);
        }
        abef = _mm_add_epi32(abef, a);
        cdgh = _mm_add_epi32(cdgh, c);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)(void *)h, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#endif

static void sha256__blocks(uint32_t h[static 8], const unsigned char *p, size_t blocks)
{
#ifdef __x86_64__
    if (cpu_has_sha()) {
        sha256__native(h, p, blocks);
        return;
    }
#endif
    sha256__plain(h, p, blocks);
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
            size_t blocks = bytes.n / SHA256_BLOCK;
            sha256__blocks(s->h, (const unsigned char *)bytes.p, blocks);
            s->n += blocks * SHA256_BLOCK;
            str_skip(&bytes, blocks * SHA256_BLOCK);
            continue;
        }
        size_t take = SHA256_BLOCK - have < bytes.n ? SHA256_BLOCK - have : bytes.n;
        memcpy(s->block + have, bytes.p, take);
        s->n += take;
        str_skip(&bytes, take);
        if (s->n % SHA256_BLOCK == 0)
            sha256__blocks(s->h, s->block, 1);
    }
}

void sha256_end(Sha256 *s, unsigned char out[static SHA256_SIZE])
{
    uint64_t bits = s->n * 8;
    ABX_UNSET char length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (char)(bits >> (56 - 8 * i));
    sha256_add(s, STR("\x80"));
    while (s->n % SHA256_BLOCK != SHA256_BLOCK - sizeof length)
        sha256_add(s, (Str){"", 1});
    sha256_add(s, (Str){length, sizeof length});
    for (int i = 0; i < SHA256_SIZE; i++)
        out[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}
