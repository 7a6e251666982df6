/* ws.h - WebSocket (RFC 6455): frames, both sides' handshakes, and a stream.
 *
 * Reading: a WsReader takes bytes cut anywhere and gives pieces of messages
 * and control frames as they come, unmasked; a message may be in any number of
 * frames, control frames between them. What the RFC forbids is refused: a
 * reserved bit or opcode, a mask where none may be or none where one must, a
 * length not in its shortest form or over 2^63, a control frame over 125 bytes
 * or in fragments, a continuation of nothing, a new message inside another, a
 * close frame with one byte or a code that may not be sent, text that is not
 * UTF-8 (where `text` is to be looked at).
 *
 * Memory: a reader holds a head and a control frame, never a message.
 */
#ifndef ABX_WS_H
#define ABX_WS_H

#include "base/buf.h"
#include "base/err.h"
#include "net/stream.h"

typedef enum WsOp { WS_CONTINUATION = 0, WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 } WsOp;

typedef struct WsEvent {
    WsOp     op;            /* of a piece: its message's, WS_TEXT or WS_BINARY */
    Str      bytes;         /* the piece; a ping's or pong's payload; a close's reason */
    bool     first, last;   /* the piece begins, ends its message */
    uint16_t code;          /* of a close; 1005: it had none */
} WsEvent;

enum { WS_KEY = 24, WS_ACCEPT = 28, WS_HEAD_MAX = 14 };

/* Sec-WebSocket-Accept for a key, NUL-terminated. */
ABX_FN void ws_accept(Str key, char out[static WS_ACCEPT + 1]);

typedef struct WsReader {
    bool     server;        /* what comes is masked */
    char     head[WS_HEAD_MAX];
    size_t   head_n;
    bool     in_frame, in_message;
    WsOp     op, message;
    bool     fin, fresh;
    uint64_t left;
    unsigned char mask[4];
    size_t   mask_at;
    char     control[125];
    size_t   control_n;
    uint64_t limit;         /* of one message; 0: none */
    uint64_t message_n;
} WsReader;

ABX_FN WsReader ws_reader(bool server, uint64_t message_limit);

/* STEP_DONE: *ev. STEP_MORE: *in is used up. STEP_ERR: ERR_INPUT or ERR_LIMIT,
 * E8020; ws_blame() is the close code for it. A piece is unmasked in place, so
 * the bytes of *in must be writable memory. */
ABX_FN Step ws_next(WsReader *r, Str *in, WsEvent *ev, Err *err) ABX_CHECK;
ABX_FN uint16_t ws_blame(const Err *err);

/* One whole frame behind what is there; mask NULL: a server's. */
ABX_FN void ws_put(Buf *to, WsOp op, bool fin, Str bytes, const unsigned char *mask);
ABX_FN void ws_put_close(Buf *to, uint16_t code, Str reason, const unsigned char *mask);

/* A client's WebSocket as a stream of the bytes of its binary messages; text
 * messages go to `text` (NULL: refused). Answers pings at once, also while only
 * reading, or only writing, is asked for. The end is a close frame, or ERR_CLOSED
 * without one. `raw` is after the upgrade; `rest` was read behind the head.
 * Takes `raw`, closes it. Sends messages of at most 64 KiB. */
ABX_FN Stream *ws_stream(Stream *raw, Str rest, void (*text)(void *ctx, Str message), void *ctx);

#endif
