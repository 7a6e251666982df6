#include "net/ws.h"

#include "base/base64.h"
#include "base/sha1.h"
#include "base/utf8.h"

void ws_accept(Str key, char out[static WS_ACCEPT + 1])
{
    unsigned char digest[SHA1_SIZE];
    Sha1          h = sha1_make();
    Buf           text = buf_make(WS_ACCEPT);

    sha1_add(&h, key);
    sha1_add(&h, STR("258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
    sha1_end(&h, digest);
    base64_put(&text, (Str){(const char *)digest, sizeof digest});
    memcpy(out, text.p, WS_ACCEPT);
    out[WS_ACCEPT] = 0;
    buf_free(&text);
}

/* One register's worth, on any processor that has such. */
typedef uint64_t WsWide __attribute__((vector_size(16)));

/* XOR with the mask, whose byte `at` is the first one's; `to` may be `from`. */
static void ws__mask(char *to, const char *from, size_t n, const unsigned char mask[static 4], size_t at)
{
    unsigned char turned[sizeof(WsWide)];
    WsWide        some, word;
    size_t        i = 0;

    for (size_t k = 0; k < sizeof turned; k++)
        turned[k] = mask[(at + k) & 3];
    memcpy(&word, turned, sizeof word);
    for (; i + sizeof some <= n; i += sizeof some) {
        memcpy(&some, from + i, sizeof some);
        some ^= word;
        memcpy(to + i, &some, sizeof some);
    }
    for (; i < n; i++)
        to[i] = (char)(from[i] ^ turned[i & 3]);
}

/* ---- reading ---- */

WsReader ws_reader(bool server, uint64_t message_limit)
{
    return (WsReader){.server = server, .limit = message_limit};
}

static Step ws__refuse(WsReader *r, uint16_t code, Err *err, const char *what)
{
    r->blame = code;
    err_set(err, code == WS_TOO_LONG ? ERR_LIMIT : ERR_INPUT, E8020, "bad WebSocket: %s", what);
    return STEP_ERR;
}

static uint64_t ws__number(const unsigned char *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

/* What the first two bytes allow to say. */
static const char *ws__first_two(const WsReader *r)
{
    unsigned op = r->head[0] & 0x0fu, length = r->head[1] & 0x7fu;
    bool     control = op >= WS_CLOSE, fin = r->head[0] & 0x80;

    if (r->head[0] & 0x70)
        return "a reserved bit is set";
    if ((op > WS_BINARY && op < WS_CLOSE) || op > WS_PONG)
        return "a reserved opcode";
    if (!(r->head[1] & 0x80) == r->server)
        return r->server ? "a frame without a mask" : "a frame with a mask";
    if (control && (!fin || length > WS_CONTROL_MAX))
        return fin ? "a control frame of more than 125 bytes" : "a control frame in fragments";
    if (op == WS_CONTINUATION && !r->in_message)
        return "a continuation of nothing";
    if ((op == WS_TEXT || op == WS_BINARY) && r->in_message)
        return "a new message inside another";
    return NULL;
}

static Step ws__begin(WsReader *r, size_t length_n, Err *err)
{
    uint64_t length = length_n ? ws__number(r->head + 2, length_n) : r->head[1] & 0x7fu;

    if ((length_n == 2 && length < 126) || (length_n == 8 && length < 65536))
        return ws__refuse(r, WS_PROTOCOL, err, "a length that is not in its shortest form");
    if (length >> 63)
        return ws__refuse(r, WS_PROTOCOL, err, "a length over 2^63");
    r->op = (WsOp)(r->head[0] & 0x0f);
    r->fin = r->head[0] & 0x80;
    r->left = length;
    r->control_n = r->mask_at = r->head_n = 0;
    if (r->server)
        memcpy(r->mask, r->head + 2 + length_n, sizeof r->mask);
    r->in_frame = true;
    if (r->op >= WS_CLOSE)
        return STEP_DONE;
    if (r->op != WS_CONTINUATION) {
        r->message = r->op;
        r->in_message = r->fresh = true;
        r->message_n = 0;
    }
    if (r->limit && (length > r->limit || r->message_n > r->limit - length))
        return ws__refuse(r, WS_TOO_LONG, err, "a message that is longer than was agreed");
    r->message_n += length;
    return STEP_DONE;
}

static Step ws__head(WsReader *r, Str *in, Err *err)
{
    for (;;) {
        unsigned short_length = r->head_n < 2 ? 0 : r->head[1] & 0x7fu;
        size_t length_n = short_length == 126 ? 2 : short_length == 127 ? 8 : 0;
        size_t want = 2 + length_n + (r->server && r->head_n >= 2 ? 4 : 0);
        if (r->head_n == want)
            return ws__begin(r, length_n, err);
        if (in->n == 0)
            return STEP_MORE;
        r->head[r->head_n++] = (unsigned char)*in->p;
        str_skip(in, 1);
        const char *wrong = r->head_n == 2 ? ws__first_two(r) : NULL;
        if (wrong)
            return ws__refuse(r, WS_PROTOCOL, err, wrong);
    }
}

/* UTF-8 as utf8.h has it, of text that is cut anywhere. */
static bool ws__text(WsReader *r, Str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char b = (unsigned char)s.p[i];
        if (r->utf8_left) {
            if (b < r->utf8_low || b > r->utf8_high)
                return false;
            r->utf8_low = 0x80;
            r->utf8_high = 0xbf;
            r->utf8_left--;
        } else if (b >= 0x80) {
            if (b < 0xc2 || b > 0xf4)
                return false;
            r->utf8_left = b < 0xe0 ? 1 : b < 0xf0 ? 2 : 3;
            r->utf8_low = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : 0x80;
            r->utf8_high = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : 0xbf;
        }
    }
    return true;
}

/* Some of a message. STEP_MORE: of an empty fragment there is nothing to give. */
static Step ws__piece(WsReader *r, Str piece, WsEvent *ev, Err *err)
{
    bool last = r->fin && r->left == 0;

    if (r->left == 0)
        r->in_frame = false;
    if (last)
        r->in_message = false;
    if (r->message == WS_TEXT && (!ws__text(r, piece) || (last && r->utf8_left)))
        return ws__refuse(r, WS_BAD_TEXT, err, "text that is not UTF-8");
    if (piece.n == 0 && !last)
        return STEP_MORE;
    *ev = (WsEvent){.op = r->message, .bytes = piece, .first = r->fresh, .last = last};
    r->fresh = false;
    return STEP_DONE;
}

static bool ws__code_ok(uint16_t code)
{
    return (code >= 1000 && code <= 1014 && code != 1004 && code != WS_NO_CODE && code != 1006) ||
           (code >= 3000 && code <= 4999);
}

static Step ws__control(WsReader *r, WsEvent *ev, Err *err)
{
    *ev = (WsEvent){.op = r->op, .bytes = {r->control, r->control_n}, .first = true, .last = true};
    r->in_frame = false;
    if (r->op != WS_CLOSE)
        return STEP_DONE;
    ev->code = WS_NO_CODE;
    if (r->control_n == 0)
        return STEP_DONE;
    if (r->control_n == 1)
        return ws__refuse(r, WS_PROTOCOL, err, "a close frame of one byte");
    ev->code = (uint16_t)ws__number((const unsigned char *)r->control, 2);
    str_skip(&ev->bytes, 2);
    if (!ws__code_ok(ev->code))
        return ws__refuse(r, WS_PROTOCOL, err, "a close code that may not be sent");
    if (!utf8_valid(ev->bytes))
        return ws__refuse(r, WS_BAD_TEXT, err, "a close reason that is not UTF-8");
    return STEP_DONE;
}

Step ws_next(WsReader *r, Str *in, WsEvent *ev, Err *err)
{
    if (r->blame)
        return ws__refuse(r, r->blame, err, "it broke off before");
    for (;;) {
        Step step = r->in_frame ? STEP_DONE : ws__head(r, in, err);
        if (step != STEP_DONE || (r->left && in->n == 0))
            return step == STEP_DONE ? STEP_MORE : step;
        Str piece = {in->p, r->left < in->n ? (size_t)r->left : in->n};
        if (r->server)
            ws__mask((char *)(uintptr_t)piece.p, piece.p, piece.n, r->mask, r->mask_at);
        r->mask_at += piece.n;
        r->left -= piece.n;
        str_skip(in, piece.n);
        if (r->op < WS_CLOSE)
            step = ws__piece(r, piece, ev, err);
        else {
            if (piece.n)
                memcpy(r->control + r->control_n, piece.p, piece.n);
            r->control_n += piece.n;
            step = r->left ? STEP_MORE : ws__control(r, ev, err);
        }
        if (step != STEP_MORE)
            return step;
    }
}

/* ---- writing ---- */

size_t ws_head(char head[static WS_HEAD_MAX], WsOp op, bool fin, size_t length, const unsigned char *mask)
{
    size_t n = 2, length_n = length < 126 ? 0 : length < 65536 ? 2 : 8;

    if (op >= WS_CLOSE && length > WS_CONTROL_MAX)
        BUG("a control frame that is too long");
    head[0] = (char)(op | (fin ? 0x80 : 0));
    head[1] = (char)((length_n == 0 ? length : length_n == 2 ? 126 : 127) | (mask ? 0x80 : 0));
    for (size_t i = length_n; i-- > 0; n++)
        head[n] = (char)((uint64_t)length >> (8 * i));
    if (mask) {
        memcpy(head + n, mask, 4);
        n += 4;
    }
    return n;
}

void ws_put(Buf *to, WsOp op, bool fin, Str bytes, const unsigned char *mask)
{
    ABX_UNSET char head[WS_HEAD_MAX];

    buf_add(to, (Str){head, ws_head(head, op, fin, bytes.n, mask)});
    char *p = mask ? buf_room(to, bytes.n) : NULL;
    if (!mask)
        buf_add(to, bytes);
    if (!p)
        return;
    ws__mask(p, bytes.p, bytes.n, mask, 0);
    buf_grew(to, bytes.n);
}

void ws_put_close(Buf *to, uint16_t code, Str reason, const unsigned char *mask)
{
    char   bytes[WS_CONTROL_MAX] = {(char)(code >> 8), (char)code};
    size_t n = reason.n < sizeof bytes - 2 ? reason.n : sizeof bytes - 2;

    n = utf8_good((Str){reason.p, n});
    if (n)
        memcpy(bytes + 2, reason.p, n);
    ws_put(to, WS_CLOSE, true, (Str){bytes, code == WS_NO_CODE ? 0 : n + 2}, mask);
}
