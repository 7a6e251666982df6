#include "base/sha1.h"

static uint32_t sha1__turn(uint32_t x, int n)
{
    return x << n | x >> (32 - n);
}

/* FIPS 180-4, 6.1.2. The words of the schedule are made where they are used,
 * the last sixteen of them in a ring; v is a to e there. */
static void sha1__block(uint32_t h[static 5], const unsigned char *p)
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

Sha1 sha1_make(void)
{
    return (Sha1){.h = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
}

void sha1_add(Sha1 *s, Str bytes)
{
    while (bytes.n) {
        size_t have = s->n % SHA1_BLOCK;
        if (have == 0 && bytes.n >= SHA1_BLOCK) {
            sha1__block(s->h, (const unsigned char *)bytes.p);
            s->n += SHA1_BLOCK;
            str_skip(&bytes, SHA1_BLOCK);
            continue;
        }
        size_t take = SHA1_BLOCK - have < bytes.n ? SHA1_BLOCK - have : bytes.n;
        memcpy(s->block + have, bytes.p, take);
        s->n += take;
        str_skip(&bytes, take);
        if (s->n % SHA1_BLOCK == 0)
            sha1__block(s->h, s->block);
    }
}

void sha1_end(Sha1 *s, unsigned char out[static SHA1_SIZE])
{
    uint64_t bits = s->n * 8;
    char     length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (char)(bits >> (56 - 8 * i));
    sha1_add(s, STR("\x80"));
    while (s->n % SHA1_BLOCK != SHA1_BLOCK - sizeof length)
        sha1_add(s, (Str){"", 1});
    sha1_add(s, (Str){length, sizeof length});
    for (int i = 0; i < SHA1_SIZE; i++)
        out[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}
