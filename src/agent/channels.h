/* channels.h - the forwarded connections of one conversation: what its channels
 * from 1 on carry (data/frame.h).
 *
 * The conversation (agent/visitor) reads frames and knows the client; all that
 * is on another channel than 0 it hands over here, START included, whole. What
 * is to be said goes back as whole frames through `say`, which never waits: it
 * queues. `room` is how many bytes are welcome now; 0 means to say nothing but
 * what is short (CREDIT, FAIL, EOF) until channels_room() is called.
 *
 * Pings, silence, the end of the link are the conversation's. A client that is
 * gone takes its channels with it: channels_free(). A START is one frame.
 *
 * 127.0.0.1 is connected to, and ::1 where that refuses. An end goes through in
 * each direction by itself; with both, or FAIL, or KILL, the number is free.
 *
 * Memory: bounded by the windows; channels_free().
 */
#ifndef ABX_CHANNELS_H
#define ABX_CHANNELS_H

#include "data/frame.h"
#include "os/loop.h"

typedef struct Channels Channels;

typedef struct ChannelsLink {
    size_t (*room)(void *ctx);
    void   (*say)(void *ctx, Str frames);
    void    *ctx;
    Loop    *loop;              /* where the connections are watched */
} ChannelsLink;

ABX_FN Channels *channels_make(const ChannelsLink *link);
ABX_FN void      channels_free(Channels *c);

/* One frame of the client's on a channel from 1 on: START, DATA, EOF, CREDIT,
 * KILL (reset), ACK. False, with *err: nothing that an honest client sends, and
 * the link is cut. */
ABX_FN bool channels_frame(Channels *c, const Frame *f, Err *err) ABX_CHECK;

/* The link has room again. */
ABX_FN void channels_room(Channels *c);

#endif
