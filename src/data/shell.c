#include "data/shell.h"

#include "base/str.h"

void shell_quote(Buf *b, Str word)
{
    Str part;

    buf_addc(b, '\'');
    if (word.n == 0)
        word.p = "";
    for (bool first = true; str_cut(&word, '\'', &part); first = false) {
        if (!first)
            buf_add(b, STR("'\\''"));
        buf_add(b, part);
    }
    buf_addc(b, '\'');
}

void shell_command(Buf *b, const Str *argv, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_addc(b, ' ');
        shell_quote(b, argv[i]);
    }
}
