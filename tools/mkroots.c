/* mkroots DATE < BUNDLE.pem > roots_data.h - the root certificates for the
 * program, as a C header (vendor/README.md says what is in it).
 *
 * A host tool.
 */
#include "packed.h"

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
                die("mkroots: not base64 inside a certificate");
            bits = bits << 6 | (uint32_t)v;
            have += 6;
            if (have >= 8) {
                have -= 8;
                if (n == room)
                    die("mkroots: the bundle is larger than expected");
                out[n++] = (unsigned char)(bits >> have);
            }
        }
    }
    die("mkroots: a certificate without its end line");
    return 0;
}

/* The length of the DER element at p, its head included. */
static size_t element(const unsigned char *p, size_t room)
{
    size_t head = 2, n = room < 2 ? 0 : p[1];

    if (n & 0x80) {
        head += n & 0x7f;
        if (head > 5 || room < head)
            die("mkroots: a certificate that is not DER");
        n = 0;
        for (size_t i = 2; i < head; i++)
            n = n << 8 | p[i];
    }
    if (room < 2 || n > room - head)
        die("mkroots: a certificate that is not DER");
    return head + n;
}

/* The contents of the element at p; *n is their length. */
static const unsigned char *inside(const unsigned char *p, size_t whole, size_t *n)
{
    size_t head = 2 + (p[1] & 0x80 ? p[1] & 0x7fu : 0u);

    *n = whole - head;
    return p + head;
}

/* Writes an element with these contents; returns its length. They may lie at
 * the place themselves, or behind it. */
static size_t wrap(unsigned char *out, unsigned char tag, const unsigned char *body, size_t n)
{
    size_t head = n < 0x80 ? 2 : n < 0x100 ? 3 : 4;

    if (n > 0xffff)
        die("mkroots: a certificate of an unexpected length");
    memmove(out + head, body, n);
    out[0] = tag;
    out[1] = (unsigned char)(head == 2 ? n : 0x80 + head - 2);
    for (size_t i = 2; i < head; i++)
        out[i] = (unsigned char)(n >> 8 * (head - 1 - i));
    return head + n;
}

/* Of the extensions those stay that say what a certificate may be used for:
 * basicConstraints, keyUsage, extKeyUsage, nameConstraints, and what is critical. */
static int stays(const unsigned char *ext, size_t whole)
{
    size_t n, id;
    const unsigned char *p = inside(ext, whole, &n);

    id = element(p, n);
    int known = id == 5 && !memcmp(p, "\x06\x03\x55\x1d", 4) && (p[4] == 15 || p[4] == 19 || p[4] == 30 || p[4] == 37);
    return known || (n > id && p[id] == 0x01);
}

/* [3] EXPLICIT SEQUENCE OF Extension, without those that do not stay. */
static size_t extensions(unsigned char *out, const unsigned char *p, size_t whole)
{
    static unsigned char kept[0x10000];
    size_t n, list, used = 0;

    p = inside(p, whole, &n);
    list = element(p, n);
    p = inside(p, list, &n);
    for (size_t at = 0, size; at < n; at += size) {
        size = element(p + at, n - at);
        if (!stays(p + at, size))
            continue;
        memcpy(kept + used, p + at, size);
        used += size;
    }
    return used ? wrap(out, 0xa3, kept, wrap(kept, 0x30, kept, used)) : 0;
}

/* A root is trusted because it is here. What says nothing about it, and does
 * not shrink when it is packed, is left out: the signature that it puts on
 * itself (one zero byte stands for it), its number (1), the hashes of its key,
 * where to read more. Returns the new length. */
static size_t reduce(unsigned char *der, size_t whole)
{
    static const unsigned char none[] = {0x03, 0x02, 0x00, 0x00}, one[] = {0x02, 0x01, 0x01};
    static unsigned char out[0x10000];
    size_t n, tbs, used = 0;

    if (element(der, whole) != whole || whole > 0xf000)
        die("mkroots: something follows a certificate, or it is too long");
    const unsigned char *p = inside(der, whole, &n), *part;
    tbs = element(p, n);
    part = inside(p, tbs, &n);
    for (size_t at = 0, size; at < n; at += size) {
        size = element(part + at, n - at);
        if (part[at] == 0xa3) {
            used += extensions(out + used, part + at, size);
            continue;
        }
        int number = part[at] == 0x02;
        memcpy(out + used, number ? one : part + at, number ? sizeof one : size);
        used += number ? sizeof one : size;
    }
    used = wrap(out, 0x30, out, used);
    p += tbs;
    size_t algorithm = element(p, (size_t)(der + whole - p));
    memcpy(out + used, p, algorithm);
    memcpy(out + used + algorithm, none, sizeof none);
    return wrap(der, 0x30, out, used + algorithm + sizeof none);
}

/* Every certificate: its length in four bytes, the highest first, then its DER. */
static size_t read_bundle(unsigned char *raw, int *count)
{
    char line[1024];
    size_t n = 0;

    while (fgets(line, sizeof line, stdin)) {
        if (strncmp(line, "-----BEGIN CERTIFICATE-----", 27))
            continue;
        if (PACKED_MAX - n < 4)
            die("mkroots: the bundle is larger than expected");
        size_t der = read_body(raw + n + 4, PACKED_MAX - n - 4);
        if (der < 4 || raw[n + 4] != 0x30)
            die("mkroots: a certificate that is not DER");
        der = reduce(raw + n + 4, der);
        for (int i = 0; i < 4; i++)
            raw[n + i] = (unsigned char)(der >> (24 - 8 * i));
        n += 4 + der;
        ++*count;
    }
    return n;
}

int main(int argc, char **argv)
{
    static unsigned char raw[PACKED_MAX];
    int count = 0;

    if (argc != 2 || strlen(argv[1]) != 10)
        die("usage: mkroots YYYY-MM-DD < BUNDLE.pem > roots_data.h");
    size_t raw_size = read_bundle(raw, &count);
    if (!count)
        die("mkroots: no certificate in the bundle");
    printf("/* made by tools/mkroots; vendor/README.md says what this is */\n"
           "#define ROOTS_DATE \"%s\"\n"
           "#define ROOTS_COUNT %d\n", argv[1], count);
    print_packed("ROOTS", "roots", raw, raw_size);
    return 0;
}
