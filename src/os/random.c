#include "os/random.h"

#include "base/hex.h"
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

    if (digits > 2 * sizeof bytes || digits % 2)
        BUG("random_hex");
    random_bytes(bytes, digits / 2);
    hex_write((Str){(const char *)bytes, digits / 2}, text);
    text[digits] = '\0';
}
