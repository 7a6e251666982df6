/* Any bytes: what comes out steers no terminal, and is UTF-8. */
#include "base/utf8.h"
#include "cli/screen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Str in = {(const char *)data, size};
    Buf out = buf_make(6 * size + 1);

    screen_add(&out, in);
    screen_width(in);
    if (out.over || !utf8_valid(buf_str(&out)))
        BUG("not UTF-8, or too long");
    for (size_t i = 0; i < out.n; i++)
        if (((unsigned char)out.p[i] < 0x20 && out.p[i] != '\t' && out.p[i] != '\n') || out.p[i] == 0x7f)
            BUG("a control character came through");
    buf_free(&out);
    return 0;
}
