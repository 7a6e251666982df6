/* ws_stream.h - a client's WebSocket as a Stream of the bytes of its messages.
 *
 * Message borders mean nothing here. Pings are answered at once, also while
 * only reading, or only writing, is asked for; what somebody wrote and the
 * connection did not take yet goes out with reading, too, and the descriptor to
 * wait for is then wanted for both. Only where bytes came that nobody reads
 * does it not look further.
 *
 * Reading ends (0 bytes) at a close frame that says so: 1000, 1001 or without a
 * code. Any other close is ERR_REMOTE E5000 with its reason: a refusal, where
 * nothing was read before. A connection that ends without one is ERR_CLOSED.
 *
 * Memory: a block to read into, and one message of WS_STREAM_MESSAGE.
 */
#ifndef ABX_WS_STREAM_H
#define ABX_WS_STREAM_H

#include "net/stream.h"
#include "net/ws.h"

enum {
    WS_STREAM_MESSAGE = 260 << 10,      /* as much in one as its writers have at once */
    WS_STREAM_TAGGED = 68 << 10,        /* what a backend's terminals were seen to take: 64 KiB with their head */
    WS_STREAM_ASIDE = 64 << 10,
};

typedef struct WsStreamOptions {
    /* Each binary message begins with a byte that says whose it is: 0 stands
     * in front of what is sent, 1 in front of the bytes of this stream. */
    bool  tagged;
    /* A text message (-1), or a binary one with another tag, at most
     * WS_STREAM_ASIDE bytes of it. NULL: they are passed over. */
    void (*aside)(void *ctx, int tag, Str message);
    void  *ctx;
} WsStreamOptions;

/* `raw` is after the handshake, `rest` was read of it already. Takes `raw`, closes it. */
ABX_FN Stream *ws_stream_make(Stream *raw, Str rest, const WsStreamOptions *options);

#endif
