#include "data/pktline.h"

#include "base/num.h"
#include <stdarg.h>
#include <stdio.h>

PktReader pktline_reader(void)
{
    return (PktReader){.payload = buf_make(PKT_LONGEST)};
}

void pktline_free(PktReader *r)
{
    buf_free(&r->payload);
}

/* The four digits are there. False: they are no length. */
static bool pktline__length(PktReader *r, size_t *length, Err *err)
{
    uint64_t v;

    if (num_hex((Str){r->head, sizeof r->head}, &v) && v != 3 && v <= PKT_LONGEST) {
        *length = (size_t)v;
        return true;
    }
    r->failed = true;
    return err_set(err, ERR_INPUT, E8010, "not git's protocol: a packet with a bad length");
}

Step pktline_next(PktReader *r, Str *in, Pkt *out, Err *err)
{
    size_t length = 0;

    if (r->given) {
        r->given = false;
        r->digits = 0;
        buf_clear(&r->payload);
    }
    while (in->n && r->digits < 4 && !r->failed) {
        r->head[r->digits++] = *in->p;
        str_skip(in, 1);
        if (r->digits < 4)
            continue;
        if (!pktline__length(r, &length, err))
            return STEP_ERR;
        r->given = length <= 4;
        r->left = length > 4 ? length - 4 : 0;
        *out = (Pkt){length == 0 ? PKT_FLUSH : length == 1 ? PKT_DELIM : length == 2 ? PKT_END : PKT_DATA, {"", 0}};
        if (r->given)
            return STEP_DONE;
    }
    if (r->failed) {
        err_set(err, ERR_INPUT, E8010, "not git's protocol: a packet with a bad length");
        return STEP_ERR;
    }
    if (r->digits < 4)
        return STEP_MORE;
    size_t take = r->left < in->n ? r->left : in->n;
    r->left -= take;
    /* A packet that lies there whole is handed out where it lies. */
    if (r->left == 0 && r->payload.n == 0) {
        *out = (Pkt){PKT_DATA, {in->p, take}};
    } else {
        buf_add(&r->payload, (Str){in->p, take});
        *out = (Pkt){PKT_DATA, buf_str(&r->payload)};
    }
    str_skip(in, take);
    r->given = r->left == 0;
    return r->given ? STEP_DONE : STEP_MORE;
}

Str pktline_text(Str bytes)
{
    if (bytes.n && bytes.p[bytes.n - 1] == '\n')
        bytes.n--;
    return bytes;
}

void pktline_putf(Buf *b, const char *fmt, ...)
{
    ABX_UNSET char text[1024];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text)
        BUG("a packet of this length is never sent");
    buf_addf(b, "%04x", (unsigned)n + 4);
    buf_add(b, (Str){text, (size_t)n});
}

void pktline_sign(Buf *b, PktKind kind)
{
    buf_add(b, kind == PKT_FLUSH ? STR("0000") : STR("0001"));
}
