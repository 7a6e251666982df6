/* visitor.h - one client's conversation (data/frame.h): its link, its state, and
 * what it was told.
 *
 *     HELLO -> START -> ON -> TOLD (EXIT or FAIL was sent, ACK is waited for) -> GONE
 *                    -> FORWARD (channels are there, and none of them is 0) -> GONE
 *
 * A later helper that attaches to a job becomes a relay, FAR: it hands bytes on.
 * What no honest client sends ends the conversation as a cut link does.
 *
 * Memory: a queue of LIMIT_CARRY_QUEUE, a START while it comes; visitor_free().
 */
#ifndef ABX_VISITOR_H
#define ABX_VISITOR_H

#include "agent/channels.h"
#include "agent/link.h"
#include "agent/ring.h"
#include "data/frame.h"

typedef struct Keeper Keeper;

typedef enum VisitorState {
    VISITOR_HELLO, VISITOR_START, VISITOR_FORWARD, VISITOR_ON, VISITOR_TOLD, VISITOR_FAR, VISITOR_BYE, VISITOR_GONE,
} VisitorState;

typedef struct Visitor Visitor;
struct Visitor {
    Visitor       *next;
    Keeper *keeper;
    Link           link;
    FrameReader    reader;
    VisitorState   state;
    bool           local;       /* it came to the job's socket */
    bool           looks_on;    /* it may not send input, signals, sizes */
    bool           deaf;        /* FRAME_START_NO_ACK */
    bool           owner;       /* it is, or was, the client */
    bool           left;        /* by DETACH */
    Buf            start;       /* payloads of START */
    uint32_t       window;
    uint64_t       sent, credited;      /* of OUT and ERR */
    RingPlace      at;
    uint64_t       data;        /* bytes of DATA that came, */
    int64_t        data_from;   /* counted from here in what the program took, */
    int64_t        data_told;   /* and how much of that it was told */
    int64_t        since;       /* in this state */
    int64_t        heard, spoke;
    Link           far;         /* of a relay */
    Channels      *channels;    /* NULL: none yet */
};

/* Takes the descriptor. `first` and `rest`: the client's bytes that came
 * before; rest is what was read from fd, and writable. */
ABX_FN Visitor *visitor_make(Keeper *k, int fd, bool web, bool local, Str first, Str rest);
ABX_FN void visitor_free(Visitor *v);

/* Send what is there to be sent, look at the clock. */
ABX_FN void visitor_step(Visitor *v);

ABX_FN void visitor_fail(Visitor *v, FrameStage stage, int sys, Str text);

#endif
