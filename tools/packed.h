/* packed.h - for the host tools that put data into the program as a C header:
 * bytes as one gzip member. They run with the pinned zlib while abx is built, so
 * that the same input gives the same bytes everywhere. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { PACKED_MAX = 4 << 20 };

static void die(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(1);
}

/* PREFIX_RAW_SIZE, and the array NAME_data. */
static void print_packed(const char *prefix, const char *name, const unsigned char *raw, size_t n)
{
    static unsigned char out[PACKED_MAX];
    z_stream             z = {0};

    /* 15 + 16: the largest window, with a gzip head and its CRC-32. */
    if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        die("zlib does not start");
    z.next_in = (unsigned char *)raw;
    z.avail_in = (unsigned)n;
    z.next_out = out;
    z.avail_out = sizeof out;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        die("zlib does not finish");
    deflateEnd(&z);

    printf("#define %s_RAW_SIZE %zu\nstatic const unsigned char %s_data[%zu] = {", prefix, n, name, (size_t)z.total_out);
    for (size_t i = 0; i < z.total_out; i++)
        printf("%s%d,", i % 24 ? "" : "\n", out[i]);
    printf("\n};\n");
    if (fflush(stdout) || ferror(stdout))
        die("the header cannot be written");
}
