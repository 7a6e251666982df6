/* An agent that says anything, in pieces of any size: a command, a job that is
 * come back to, forwarded connections. No result may be told whose totals are
 * not what came. */
#include "fuzz_stream.h"
#include "provider/talk.h"

static void fuzz_talk__carrier_close(Carrier *c)
{
    (void)c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const CarrierOps    carrier_ops = {.close = fuzz_talk__carrier_close};
    static const unsigned char run[FRAME_RUN];
    static const FrameKind     kinds[] = {FRAME_EXEC, FRAME_PTY, FRAME_ATTACH, FRAME_FORWARD};

    if (size < 1)
        return 0;
    Carrier    carrier = {&carrier_ops};
    Stream    *stream = fuzz_stream((Str){(const char *)data + 1, size - 1}, (size_t)(data[0] >> 3) * 3 + 1);
    Carried    link = {.carrier = &carrier, .stream = stream, .way = CARRY_LINES, .noisy = data[0] & 4};
    FrameKind  kind = kinds[data[0] & 3];
    FrameStart start = {.kind = FRAME_FORWARD, .port = 80};
    Provider   p = {.host = {.cancel_fd = -1}};
    Talk      *t = talk_over(&p, &link, run, kind);
    uint64_t   got = 0, base = 0;
    TalkEvent  ev;
    Step       step;
    Err        err;

    if (kind == FRAME_FORWARD)
        for (uint16_t c = 1; c < 4; c++)
            if (!talk_start(t, c, &start, &err))
                __builtin_trap();
    while ((step = talk_next(t, &ev, &err)) != STEP_ERR) {
        if (step == STEP_MORE)
            continue;
        if (ev.type == FRAME_EXIT && ev.exit.out + ev.exit.err != base + got)
            __builtin_trap();
        if (ev.type == FRAME_EXIT || (ev.type == FRAME_FAIL && !ev.channel))
            break;
        got += ev.bytes.n;
        if (ev.type == FRAME_REPLAY)
            base = ev.offset - got;
        if (ev.bytes.n)
            talk_taken(t, ev.channel, ev.bytes.n);
        if (ev.type == FRAME_STARTED)
            talk_write(t, ev.channel, STR("input"));
    }
    talk_close(t);
    return 0;
}
