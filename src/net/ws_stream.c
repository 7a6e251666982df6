#include "net/ws_stream.h"

#include "base/limits.h"
#include "base/mem.h"
#include "os/random.h"

typedef struct WsStream {
    Stream          base;
    Stream         *raw;
    WsStreamOptions options;
    WsReader        reader;
    Buf             block;      /* what was read; */
    Str             rest;       /* of it, not looked at yet */
    Str             piece;      /* of it, for the reader */
    bool            large;      /* the last message: of the next one only the head goes by the block */
    int             tag;        /* of the message at hand; -1: text, -2: not known yet */
    Buf             aside;      /* a message that is not for the reader, so far */
    Buf             out;        /* whole frames; [out_at, n) is still to go */
    size_t          out_at;
    char            pong[WS_CONTROL_MAX];
    size_t          pong_n;
    bool            pong_due;
    bool            ended;      /* the peer closed */
    Err             failed;     /* kind not ERR_NONE: reading ended with it */
} WsStream;

enum {
    WS_STREAM_TEXT = -1, WS_STREAM_NEW = -2,
    WS_STREAM_LARGE = 16 << 10,
    WS_STREAM_TURNS = 16,       /* pieces looked at in one call: pings without end must not hold it */
};

static void ws_stream__put(WsStream *s, WsOp op, Str bytes)
{
    unsigned char mask[4];

    random_bytes(mask, sizeof mask);
    ws_put(&s->out, op, true, bytes, mask);
}

/* ---- out ---- */

/* STEP_DONE: nothing waits. A pong goes between messages; of several pings the
 * last one is answered (RFC 6455, 5.5.3). */
static Step ws_stream__flush(WsStream *s, Err *err)
{
    for (;;) {
        size_t n;
        while (s->out_at < s->out.n) {
            Step step = stream_write(s->raw, s->out.p + s->out_at, s->out.n - s->out_at, &n, err);
            if (step != STEP_DONE)
                return step;
            s->out_at += n;
        }
        buf_clear(&s->out);
        s->out_at = 0;
        if (!s->pong_due)
            return STEP_DONE;
        s->pong_due = false;
        ws_stream__put(s, WS_PONG, (Str){s->pong, s->pong_n});
    }
}

static void ws_stream__put_close(WsStream *s, uint16_t code)
{
    unsigned char mask[4];

    random_bytes(mask, sizeof mask);
    ws_put_close(&s->out, code, (Str){0}, mask);
}

/* ---- in ---- */

/* The peer's close frame is answered with its code; what it says is kept. */
static void ws_stream__closed(WsStream *s, const WsEvent *ev)
{
    s->ended = true;
    s->pong_due = false;
    ws_stream__put_close(s, ev->code);
    if (ev->code == WS_NORMAL || ev->code == WS_NORMAL + 1 || ev->code == WS_NO_CODE)
        return;
    if (ev->bytes.n)
        err_set(&s->failed, ERR_REMOTE, E5000, "the other side closed the WebSocket (%d): %.*s", ev->code,
                STR_ARG(ev->bytes));
    else
        err_set(&s->failed, ERR_REMOTE, E5000, "the other side closed the WebSocket (%d)", ev->code);
}

/* A piece of a message: to the reader, or aside. */
static void ws_stream__piece(WsStream *s, const WsEvent *ev)
{
    Str bytes = ev->bytes;

    if (ev->first)
        s->large = bytes.n + s->reader.left >= WS_STREAM_LARGE;
    if (ev->first)
        s->tag = ev->op == WS_TEXT ? WS_STREAM_TEXT : s->options.tagged ? WS_STREAM_NEW : 1;
    if (s->tag == WS_STREAM_NEW && bytes.n) {
        s->tag = (unsigned char)*bytes.p;
        str_skip(&bytes, 1);
    }
    if (s->tag == 1) {
        s->piece = bytes;
        return;
    }
    if (bytes.n > WS_STREAM_ASIDE - s->aside.n)
        bytes.n = WS_STREAM_ASIDE - s->aside.n;
    buf_add(&s->aside, bytes);
    if (ev->last && s->options.aside && s->tag != WS_STREAM_NEW)
        s->options.aside(s->options.ctx, s->tag, buf_str(&s->aside));
    if (ev->last)
        buf_clear(&s->aside);
}

/* Look at what was read until there is something for the reader. */
static void ws_stream__look(WsStream *s)
{
    WsEvent ev;

    while (s->piece.n == 0 && !s->ended) {
        Step step = ws_next(&s->reader, &s->rest, &ev, &s->failed);
        if (step == STEP_MORE)
            return;
        if (step == STEP_ERR) {
            s->ended = true;
            ws_stream__put_close(s, s->reader.blame);
        } else if (ev.op == WS_CLOSE) {
            ws_stream__closed(s, &ev);
        } else if (ev.op == WS_PING) {
            s->pong_n = ev.bytes.n;
            if (ev.bytes.n)
                memcpy(s->pong, ev.bytes.p, ev.bytes.n);
            s->pong_due = true;
        } else if (ev.op != WS_PONG) {
            ws_stream__piece(s, &ev);
        }
    }
}

/* How much may be read right into the reader's memory: what is certainly its. */
static size_t ws_stream__direct(const WsStream *s, size_t cap)
{
    const WsReader *r = &s->reader;

    if (s->rest.n || !r->in_frame || r->op >= WS_CLOSE || r->fresh || s->tag != 1)
        return 0;
    return r->left < cap ? (size_t)r->left : cap;
}

/* Read once: into p where that can be, else into the block. STEP_MORE: nothing
 * is there; STEP_DONE: look again. */
static Step ws_stream__fill(WsStream *s, char *p, size_t cap, Err *err)
{
    size_t direct = ws_stream__direct(s, cap), n;
    char  *to = direct ? p : s->block.p;
    Step   step = stream_read(s->raw, to, direct ? direct : s->large ? WS_HEAD_MAX : LIMIT_COPY_BLOCK, &n, err);

    if (step == STEP_MORE)
        return step;
    if (step == STEP_ERR)
        s->failed = *err;
    else if (n == 0)
        err_set(&s->failed, ERR_CLOSED, E5000, "the connection ended without a close frame");
    else
        s->rest = (Str){to, n};
    s->ended = s->ended || s->failed.kind != ERR_NONE;
    return STEP_DONE;
}

static Step ws_stream__read(Stream *stream, char *p, size_t cap, size_t *n, Err *err)
{
    WsStream *s = (WsStream *)stream;
    ABX_UNSET Err ignored;

    *n = 0;
    for (int i = 0; i < WS_STREAM_TURNS; i++) {
        ws_stream__look(s);
        (void)ws_stream__flush(s, &ignored);    /* who cannot be written to may still say why */
        if (s->piece.n) {
            size_t some = s->piece.n < cap - *n ? s->piece.n : cap - *n;
            if (s->piece.p != p + *n)
                memcpy(p + *n, s->piece.p, some);
            str_skip(&s->piece, some);
            *n += some;
        }
        /* What is certain to follow comes with it: who reads wants whole frames. */
        if (*n && (s->ended || !ws_stream__direct(s, cap - *n)))
            return STEP_DONE;
        if (s->ended && s->failed.kind == ERR_NONE)
            return STEP_DONE;
        if (s->ended) {
            *err = s->failed;
            return STEP_ERR;
        }
        if (ws_stream__fill(s, p + *n, cap - *n, err) == STEP_MORE)
            break;
    }
    return *n ? STEP_DONE : STEP_MORE;
}

static Step ws_stream__write(Stream *stream, const char *p, size_t len, size_t *n, Err *err)
{
    WsStream *s = (WsStream *)stream;
    Step      step;

    *n = 0;
    for (int i = 0; i < WS_STREAM_TURNS; i++) {     /* pings, while only writing is asked for */
        ws_stream__look(s);
        if (s->piece.n || s->ended || ws_stream__fill(s, NULL, 0, err) == STEP_MORE)
            break;
    }
    if (s->ended) {
        ABX_UNSET Err ignored;
        (void)ws_stream__flush(s, &ignored);
        if (s->failed.kind == ERR_NONE)
            err_set(err, ERR_CLOSED, E5000, "the other side closed the WebSocket");
        else
            *err = s->failed;
        return STEP_ERR;
    }
    step = ws_stream__flush(s, err);
    if (step != STEP_DONE)
        return step;
    size_t most = (s->options.tagged ? WS_STREAM_TAGGED : WS_STREAM_MESSAGE) - 1;
    *n = len < most ? len : most;
    if (s->options.tagged) {
        Buf tagged = buf_make(WS_STREAM_TAGGED);
        buf_addc(&tagged, 0);
        buf_add(&tagged, (Str){p, *n});
        ws_stream__put(s, WS_BINARY, buf_str(&tagged));
        buf_free(&tagged);
    } else {
        ws_stream__put(s, WS_BINARY, (Str){p, *n});
    }
    return ws_stream__flush(s, err) == STEP_ERR ? STEP_ERR : STEP_DONE;
}

static StreamWant ws_stream__want(const Stream *stream, StreamSide side)
{
    const WsStream *s = (const WsStream *)stream;
    bool            pending = s->out_at < s->out.n || s->pong_due;
    StreamWant      in = stream_want(s->raw, STREAM_READ), out = stream_want(s->raw, STREAM_WRITE);

    if (side == STREAM_READ ? s->piece.n || s->ended || s->rest.n : !pending)
        return (StreamWant){.fd = -1};
    if (!pending)
        return in;
    if (s->piece.n || s->ended)
        return out;
    return in.fd < 0 || out.fd < 0 ? (StreamWant){.fd = -1} : (StreamWant){in.fd, in.events | out.events};
}

static void ws_stream__close(Stream *stream)
{
    WsStream *s = (WsStream *)stream;
    ABX_UNSET Err ignored;

    if (!s->ended && ws_stream__flush(s, &ignored) == STEP_DONE) {
        ws_stream__put_close(s, WS_NORMAL);
        (void)ws_stream__flush(s, &ignored);
    }
    stream_close(s->raw);
    buf_free(&s->block);
    buf_free(&s->aside);
    buf_free(&s->out);
    mem_free(s);
}

Stream *ws_stream_make(Stream *raw, Str rest, const WsStreamOptions *options)
{
    static const StreamOps ops = {ws_stream__read, ws_stream__write, ws_stream__want, ws_stream__close};
    WsStream *s = mem_new(sizeof *s);

    s->base.ops = &ops;
    s->raw = raw;
    s->options = *options;
    s->reader = ws_reader(false, 0);
    s->block = buf_make(LIMIT_COPY_BLOCK);
    s->aside = buf_make(WS_STREAM_ASIDE);
    s->out = buf_make(2 * WS_STREAM_MESSAGE);
    if (rest.n > LIMIT_COPY_BLOCK)
        BUG("more behind a head than a connection holds");
    s->rest = (Str){buf_room(&s->block, LIMIT_COPY_BLOCK), rest.n};
    if (rest.n)
        memcpy(s->block.p, rest.p, rest.n);
    return &s->base;
}
