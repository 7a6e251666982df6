#include "os/random.h"

#include <errno.h>
#include <sys/random.h>

void random_bytes(void *p, size_t n)
{
    char *to = p;

    while (n) {
        ssize_t got = getrandom(to, n, 0);
        if (got < 0 && errno != EINTR)
            BUG("getrandom");
        if (got > 0) {
            to += got;
            n -= (size_t)got;
        }
    }
}

void random_hex(char *text, size_t digits)
{
    unsigned char bytes[32];

    if (digits > 2 * sizeof bytes)
        BUG("random_hex");
    random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < digits; i++)
        text[i] = "0123456789abcdef"[bytes[i / 2] >> (i % 2 ? 4 : 0) & 15];
    text[digits] = '\0';
}
