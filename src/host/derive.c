#include "host/derive.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"

/* One {name}, one doubled brace, or text up to the next brace. False: none of these. */
static bool derive__piece(Str *in, DeriveLookup *lookup, void *ctx, Buf *to)
{
    char c = in->p[0];

    if (c != '{' && c != '}') {
        size_t n = 0;
        while (n < in->n && in->p[n] != '{' && in->p[n] != '}')
            n++;
        buf_add(to, (Str){in->p, n});
        str_skip(in, n);
        return true;
    }
    if (in->n > 1 && in->p[1] == c) {
        buf_addc(to, c);
        str_skip(in, 2);
        return true;
    }
    size_t close = str_find(*in, '}');
    if (c == '}' || close == in->n)
        return false;
    Str value = lookup(ctx, str_from_to(*in, 1, close));
    buf_add(to, value);
    str_skip(in, close + 1);
    return value.p != NULL;
}

bool derive_fill(Str template, DeriveLookup *lookup, void *ctx, Arena *a, Str *out)
{
    Buf  text = buf_make(LIMIT_URL);
    bool ok = true;

    while (ok && template.n)
        ok = derive__piece(&template, lookup, ctx, &text);
    ok = ok && !text.over;
    if (ok)
        *out = arena_str(a, buf_str(&text));
    buf_free(&text);
    return ok;
}
