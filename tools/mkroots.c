/* mkroots DATE < BUNDLE.pem > roots_data.h - the root certificates for the
 * program, as a C header (vendor/README.md says what is in it).
 *
 * A host tool: it runs while abx is built, with the pinned zlib, so that the
 * same bundle gives the same bytes everywhere.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { ROOTS_MAX = 4 << 20 };   /* today's bundle is 180 KB of base64 */

static void die(const char *why)
{
    fprintf(stderr, "mkroots: %s\n", why);
    exit(1);
}

static int base64_value(int c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

/* Decode the base64 lines up to the END line; returns the length. */
static size_t read_body(unsigned char *out, size_t room)
{
    char line[1024];
    size_t n = 0;
    uint32_t bits = 0;
    int have = 0;

    while (fgets(line, sizeof line, stdin)) {
        if (!strncmp(line, "-----END CERTIFICATE-----", 25))
            return n;
        for (char *p = line; *p && *p != '=' && *p != '\n' && *p != '\r'; p++) {
            int v = base64_value(*p);
            if (v < 0)
                die("not base64 inside a certificate");
            bits = bits << 6 | (uint32_t)v;
            have += 6;
            if (have >= 8) {
                have -= 8;
                if (n == room)
                    die("the bundle is larger than expected");
                out[n++] = (unsigned char)(bits >> have);
            }
        }
    }
    die("a certificate without its end line");
    return 0;
}

/* The length of the DER element at p, its head included. */
static size_t element(const unsigned char *p, size_t room)
{
    size_t head = 2, n = room < 2 ? 0 : p[1];

    if (n & 0x80) {
        head += n & 0x7f;
        if (head > 5 || room < head)
            die("a certificate that is not DER");
        n = 0;
        for (size_t i = 2; i < head; i++)
            n = n << 8 | p[i];
    }
    if (room < 2 || n > room - head)
        die("a certificate that is not DER");
    return head + n;
}

/* Take out the signature that a root puts on itself: nobody checks it, for a
 * root is trusted because it is here, and it is the part that does not shrink
 * when it is packed. One zero byte stands for it. Returns the new length. */
static size_t unsign(unsigned char *der, size_t n)
{
    static const unsigned char none[] = {0x03, 0x02, 0x00, 0x00};
    size_t head = 2 + (der[1] & 0x80 ? der[1] & 0x7f : 0u), at = head;

    if (element(der, n) != n)
        die("something follows a certificate");
    at += element(der + at, n - at);        /* TBSCertificate */
    at += element(der + at, n - at);        /* signatureAlgorithm */
    if (n - at < sizeof none || der[at] != 0x03)
        die("a certificate without a signature");
    size_t inside = at - head + sizeof none;
    if (head != 4 || inside < 0x100)
        die("a certificate of an unexpected length");
    memcpy(der + at, none, sizeof none);
    der[2] = (unsigned char)(inside >> 8);
    der[3] = (unsigned char)inside;
    return head + inside;
}

/* Every certificate: its length in four bytes, the highest first, then its DER. */
static size_t read_bundle(unsigned char *raw, int *count)
{
    char line[1024];
    size_t n = 0;

    while (fgets(line, sizeof line, stdin)) {
        if (strncmp(line, "-----BEGIN CERTIFICATE-----", 27))
            continue;
        if (ROOTS_MAX - n < 4)
            die("the bundle is larger than expected");
        size_t der = read_body(raw + n + 4, ROOTS_MAX - n - 4);
        if (der < 4 || raw[n + 4] != 0x30)
            die("a certificate that is not DER");
        der = unsign(raw + n + 4, der);
        for (int i = 0; i < 4; i++)
            raw[n + i] = (unsigned char)(der >> (24 - 8 * i));
        n += 4 + der;
        ++*count;
    }
    return n;
}

static size_t gzip(const unsigned char *raw, size_t n, unsigned char *out)
{
    z_stream z = {0};

    /* 15 + 16: the largest window, with a gzip head and its CRC-32. */
    if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        die("zlib does not start");
    z.next_in = (unsigned char *)raw;
    z.avail_in = (unsigned)n;
    z.next_out = out;
    z.avail_out = ROOTS_MAX;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        die("zlib does not finish");
    deflateEnd(&z);
    return z.total_out;
}

int main(int argc, char **argv)
{
    static unsigned char raw[ROOTS_MAX], packed[ROOTS_MAX];
    int count = 0;

    if (argc != 2 || strlen(argv[1]) != 10)
        die("usage: mkroots YYYY-MM-DD < BUNDLE.pem > roots_data.h");
    size_t raw_size = read_bundle(raw, &count);
    if (!count)
        die("no certificate in the bundle");
    size_t size = gzip(raw, raw_size, packed);

    printf("/* made by tools/mkroots; vendor/README.md says what this is */\n"
           "#define ROOTS_DATE \"%s\"\n"
           "#define ROOTS_COUNT %d\n"
           "#define ROOTS_RAW_SIZE %zu\n"
           "static const unsigned char roots_data[%zu] = {", argv[1], count, raw_size, size);
    for (size_t i = 0; i < size; i++)
        printf("%s%d,", i % 24 ? "" : "\n", packed[i]);
    printf("\n};\n");
    return fflush(stdout) || ferror(stdout) ? 1 : 0;
}
