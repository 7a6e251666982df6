/* ws.h - WebSocket (RFC 6455): frames of both sides, and the proof of a handshake.
 *
 * A WsReader takes bytes cut anywhere and gives pieces of messages and whole
 * control frames as they come, unmasked; a message may be in any number of
 * frames, control frames between them. What the RFC forbids is refused: a
 * reserved bit or opcode, a mask where none may be or none where one must, a
 * length not in its shortest form or over 2^63, a control frame over 125 bytes
 * or in fragments, a continuation of nothing, a new message inside another, a
 * close frame with one byte or a code that may not be sent, text that is not
 * UTF-8.
 *
 *     while ((step = ws_next(&r, &in, &ev, err)) == STEP_DONE) ...
 *
 * Memory: a reader holds a head and a control frame, never a message.
 */
#ifndef ABX_WS_H
#define ABX_WS_H

#include "base/buf.h"
#include "base/err.h"

typedef enum WsOp { WS_CONTINUATION = 0, WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 } WsOp;

typedef struct WsEvent {
    WsOp     op;            /* of a piece: its message's, WS_TEXT or WS_BINARY */
    Str      bytes;         /* the piece; a ping's or pong's payload; a close's reason. Good until the next call */
    bool     first, last;   /* the piece begins, ends its message */
    uint16_t code;          /* of a close */
} WsEvent;

enum { WS_KEY = 24, WS_ACCEPT = 28, WS_HEAD_MAX = 14, WS_CONTROL_MAX = 125 };

/* Close codes (RFC 6455, 7.4). */
enum { WS_NORMAL = 1000, WS_PROTOCOL = 1002, WS_REFUSED_KIND = 1003, WS_NO_CODE = 1005, WS_BAD_TEXT = 1007, WS_TOO_LONG = 1009 };

/* Sec-WebSocket-Accept for a key, NUL-terminated. */
ABX_FN void ws_accept(Str key, char out[static WS_ACCEPT + 1]);

typedef struct WsReader {
    bool          server;       /* what comes is masked */
    uint64_t      limit;        /* of one message; 0: none */
    unsigned char head[WS_HEAD_MAX];
    size_t        head_n;
    bool          in_frame, in_message;
    bool          fin, fresh;   /* of the frame: it ends its message; of the message: nothing of it was given */
    WsOp          op, message;  /* of the frame, of the message it belongs to */
    uint64_t      left;         /* of the frame */
    uint64_t      message_n;
    unsigned char mask[4];
    size_t        mask_at;
    char          control[WS_CONTROL_MAX];
    size_t        control_n;
    unsigned      utf8_left;    /* bytes that a character in a text message still wants, */
    unsigned char utf8_low, utf8_high;      /* the next of them from here to there */
    uint16_t      blame;
} WsReader;

ABX_FN WsReader ws_reader(bool server, uint64_t message_limit);

/* STEP_DONE: *ev. STEP_MORE: *in is used up. STEP_ERR: ERR_INPUT or ERR_LIMIT,
 * E8020; nothing can be read after that, and r->blame is the code for the close
 * frame. A piece is unmasked in place: for a server *in must be writable memory. */
ABX_FN Step ws_next(WsReader *r, Str *in, WsEvent *ev, Err *err) ABX_CHECK;

/* The head of a frame whose `length` bytes follow, masked by the caller; its length. */
ABX_FN size_t ws_head(char head[static WS_HEAD_MAX], WsOp op, bool fin, size_t length, const unsigned char *mask);

/* One whole frame behind what is there; mask NULL: a server's. A control
 * frame's bytes are at most WS_CONTROL_MAX. */
ABX_FN void ws_put(Buf *to, WsOp op, bool fin, Str bytes, const unsigned char *mask);

/* WS_NO_CODE: a close without code and reason. A reason is cut to fit. */
ABX_FN void ws_put_close(Buf *to, uint16_t code, Str reason, const unsigned char *mask);

#endif
