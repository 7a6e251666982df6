#include "base/sha1.h"

#include "base/cpu.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif

static uint32_t sha1__turn(uint32_t x, int n)
{
    return x << n | x >> (32 - n);
}

/* FIPS 180-4, 6.1.2. The words of the schedule are made where they are used,
 * the last sixteen of them in a ring; v is a to e there. */
static void sha1__plain(uint32_t h[static 5], const unsigned char *p)
{
    uint32_t w[16], v[5];

    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)p[4 * t] << 24 | (uint32_t)p[4 * t + 1] << 16 | (uint32_t)p[4 * t + 2] << 8 | p[4 * t + 3];
    memcpy(v, h, sizeof v);
    for (int t = 0; t < 80; t++) {
        uint32_t b = v[1], c = v[2], d = v[3], f;
        if (t >= 16)
            w[t & 15] = sha1__turn(w[(t - 3) & 15] ^ w[(t - 8) & 15] ^ w[(t - 14) & 15] ^ w[t & 15], 1);
        if (t < 20)
            f = ((b & c) | (~b & d)) + 0x5a827999;
        else if (t < 40)
            f = (b ^ c ^ d) + 0x6ed9eba1;
        else if (t < 60)
            f = ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
        else
            f = (b ^ c ^ d) + 0xca62c1d6;
        f += sha1__turn(v[0], 5) + v[4] + w[t & 15];
        v[4] = d;
        v[3] = c;
        v[2] = sha1__turn(b, 30);
        v[1] = v[0];
        v[0] = f;
    }
    for (int i = 0; i < 5; i++)
        h[i] += v[i];
}

#ifdef __x86_64__
/* The same with the processor's own instructions, which do four rounds at once:
 * they take a to d in one register, and e added to the next four words, which
 * sha1nexte makes of the a before the latest four rounds. */
__attribute__((target("sha,sse4.1")))
static void sha1__native(uint32_t h[static 5], const unsigned char *p, size_t blocks)
{
    const __m128i big = _mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f);
    __m128i abcd = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)h), 0x1b);
    __m128i first = _mm_set_epi32((int)h[4], 0, 0, 0);

    for (; blocks; blocks--, p += SHA1_BLOCK) {
        __m128i w[4], was = abcd, before = first;
        for (int i = 0; i < 20; i++) {
            __m128i *now = &w[i & 3], e;
            if (i < 4)
                *now = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)p + i), big);
            else
                *now = _mm_sha1msg2_epu32(_mm_xor_si128(_mm_sha1msg1_epu32(*now, w[(i + 1) & 3]), w[(i + 2) & 3]),
                                          w[(i + 3) & 3]);
            e = i == 0 ? _mm_add_epi32(before, *now) : _mm_sha1nexte_epu32(before, *now);
            before = abcd;
            abcd = i < 5    ? _mm_sha1rnds4_epu32(abcd, e, 0)
                   : i < 10 ? _mm_sha1rnds4_epu32(abcd, e, 1)
                   : i < 15 ? _mm_sha1rnds4_epu32(abcd, e, 2)
                            : _mm_sha1rnds4_epu32(abcd, e, 3);
        }
        first = _mm_sha1nexte_epu32(before, first);
        abcd = _mm_add_epi32(abcd, was);
    }
    _mm_storeu_si128((__m128i *)(void *)h, _mm_shuffle_epi32(abcd, 0x1b));
    h[4] = (uint32_t)_mm_extract_epi32(first, 3);
}
#endif

static void sha1__blocks(uint32_t h[static 5], const unsigned char *p, size_t blocks)
{
#ifdef __x86_64__
    if (cpu_has_sha()) {
        sha1__native(h, p, blocks);
        return;
    }
#endif
    for (; blocks; blocks--, p += SHA1_BLOCK)
        sha1__plain(h, p);
}

Sha1 sha1_make(void)
{
    return (Sha1){.h = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
}

void sha1_add(Sha1 *s, Str bytes)
{
    while (bytes.n) {
        size_t have = s->n % SHA1_BLOCK;
        if (have == 0 && bytes.n >= SHA1_BLOCK) {
            size_t blocks = bytes.n / SHA1_BLOCK;
            sha1__blocks(s->h, (const unsigned char *)bytes.p, blocks);
            s->n += blocks * SHA1_BLOCK;
            str_skip(&bytes, blocks * SHA1_BLOCK);
            continue;
        }
        size_t take = SHA1_BLOCK - have < bytes.n ? SHA1_BLOCK - have : bytes.n;
        memcpy(s->block + have, bytes.p, take);
        s->n += take;
        str_skip(&bytes, take);
        if (s->n % SHA1_BLOCK == 0)
            sha1__blocks(s->h, s->block, 1);
    }
}

void sha1_end(Sha1 *s, unsigned char out[static SHA1_SIZE])
{
    uint64_t bits = s->n * 8;
    ABX_UNSET char length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (char)(bits >> (56 - 8 * i));
    sha1_add(s, STR("\x80"));
    while (s->n % SHA1_BLOCK != SHA1_BLOCK - sizeof length)
        sha1_add(s, (Str){"", 1});
    sha1_add(s, (Str){length, sizeof length});
    for (int i = 0; i < SHA1_SIZE; i++)
        out[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}
