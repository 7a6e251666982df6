#include "cli/detach.h"

#include "base/str.h"

/* The byte that a key sends; -1: there is no such key. */
static int detach__byte(Str name)
{
    if (name.n == 1 && name.p[0] > ' ' && name.p[0] <= '~')
        return name.p[0];
    if (name.n != 6 || memcmp(name.p, "ctrl-", 5) != 0)
        return -1;
    char c = name.p[5];
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 1;
    return c == '@' || (c >= '[' && c <= '_') ? c & 0x1f : -1;
}

bool detach_parse(const char *text, Detach *k, Err *err)
{
    Str rest = str_from(text), name;

    *k = (Detach){.n = 0};
    if (str_eq(rest, STR("none")))
        return true;
    do {
        size_t cut = str_find(rest, ',');
        name = (Str){rest.p, cut};
        int byte = k->n < DETACH_MOST ? detach__byte(name) : -1;
        if (byte < 0) {
            err_set(err, ERR_USAGE, E8002, "--detach-keys: '%s' is no sequence of keys", text);
            return err_hint(err, "Write at most %d keys such as ctrl-p,ctrl-q or ctrl-a,d; `none` for none.", DETACH_MOST);
        }
        k->seq[k->n++] = (unsigned char)byte;
        str_skip(&rest, cut < rest.n ? cut + 1 : cut);
    } while (rest.n || name.p + name.n < rest.p);
    return true;
}

bool detach_scan(Detach *k, Str typed, Buf *to)
{
    for (; k->n && typed.n; str_skip(&typed, 1)) {
        unsigned char c = (unsigned char)typed.p[0];
        /* What is held may end in a shorter beginning of the sequence. */
        while (k->held && k->seq[k->held] != c) {
            size_t less = k->held - 1;
            while (less && memcmp(k->seq, k->seq + k->held - less, less) != 0)
                less--;
            buf_add(to, (Str){(const char *)k->seq, k->held - less});
            k->held = less;
        }
        if (k->seq[k->held] != c)
            buf_addc(to, (char)c);
        else if (++k->held == k->n) {
            k->held = 0;
            return true;
        }
    }
    buf_add(to, typed);
    return false;
}
