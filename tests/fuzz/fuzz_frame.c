/* The carried agent's conversation: frames cut anywhere are the frames of the
 * whole, what a START says is written and read as the same, and armor carries
 * bytes whatever stands between its lines. */
#include "base/str.h"
#include "data/armor.h"
#include "data/frame.h"

enum { FUZZ_FRAME_ARENA = 256 << 10 };

/* Every frame as a line of bytes, until the end or an error. */
static void fuzz_frame__read(Str all, size_t step, bool noisy, Buf *log)
{
    static const unsigned char run[FRAME_RUN] = {'r'};
    FrameReader r = noisy ? frame_reader_client(run, true) : frame_reader_agent();
    Step        s = STEP_MORE;
    Frame       f;
    Err         err;

    for (size_t at = 0; at < all.n && s != STEP_ERR; at += step) {
        Str in = str_from_to(all, at, at + step < all.n ? at + step : all.n);
        while ((s = frame_next(&r, &in, &f, &err)) == STEP_DONE) {
            if (f.payload.n > FRAME_PAYLOAD)
                __builtin_trap();
            buf_addf(log, "%d %d %d %zu ", f.type, f.flags, f.channel, f.payload.n);
            buf_add(log, f.payload);
        }
        if (s == STEP_MORE && in.n)
            __builtin_trap();
    }
    buf_addf(log, "%d", s == STEP_ERR);
    frame_reader_free(&r);
}

static void fuzz_frame__same(Strs a, Strs b)
{
    if (a.n != b.n)
        __builtin_trap();
    for (size_t i = 0; i < a.n; i++)
        if (!str_eq(a.v[i], b.v[i]))
            __builtin_trap();
}

static void fuzz_frame__start(Str all)
{
    Arena       a = arena_make(FUZZ_FRAME_ARENA);
    Buf         frames = buf_make(FRAME_START_BYTES), joined = buf_make(FRAME_START_BYTES);
    FrameReader r = frame_reader_agent();
    FrameStart  s, again;
    Frame       f;
    Err         err;

    r.began = true;
    if (frame_start(all, &a, &s, &err)) {
        if (!frame_put_start(&frames, 0, &s, &err))
            __builtin_trap();
        for (Str in = buf_str(&frames); frame_next(&r, &in, &f, &err) == STEP_DONE;)
            buf_add(&joined, f.payload);
        if (!frame_start(buf_str(&joined), &a, &again, &err))
            __builtin_trap();
        fuzz_frame__same(s.argv, again.argv);
        fuzz_frame__same(s.env, again.env);
        if (s.kind != again.kind || s.flags != again.flags || s.timeout_ms != again.timeout_ms ||
            s.offset != again.offset || !str_eq(s.cwd, again.cwd) || !str_eq(s.job, again.job))
            __builtin_trap();
    }
    frame_reader_free(&r);
    buf_free(&frames);
    buf_free(&joined);
    arena_free(&a);
}

static void fuzz_frame__armor(Str all, size_t step)
{
    static const char tag[ARMOR_TAG + 1] = "0123456789abcdef0123456789abcdef";
    Armor put = armor_make(tag), take = armor_make(tag), wild = armor_make(tag);
    Buf   lines = buf_make((size_t)1 << 20), got = buf_make((size_t)1 << 20);
    Str   piece;
    Step  s;
    Err   err;

    /* Between the lines stands what must not matter: it never has the tag. */
    for (size_t at = 0; at < all.n; at += step) {
        armor_put(&put, &lines, str_from_to(all, at, at + step < all.n ? at + step : all.n), 1 + step % 50);
        buf_add(&lines, STR("noise\n"));
    }
    for (Str in = buf_str(&lines); (s = armor_next(&take, &in, &piece, &err)) == STEP_DONE;)
        buf_add(&got, piece);
    if (s == STEP_ERR || !str_eq(buf_str(&got), all))
        __builtin_trap();
    for (Str in = all; armor_next(&wild, &in, &piece, &err) == STEP_DONE;)
        continue;
    armor_free(&put);
    armor_free(&take);
    armor_free(&wild);
    buf_free(&lines);
    buf_free(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3 || size > 8192)
        return 0;
    Str    all = {(const char *)data + 3, size - 3};
    size_t step = (size_t)(data[0] << 8 | data[1]) % 700 + 1;
    Buf    whole = buf_make((size_t)1 << 20), cut = buf_make((size_t)1 << 20);

    fuzz_frame__read(all, all.n + 1, data[2] & 1, &whole);
    fuzz_frame__read(all, step, data[2] & 1, &cut);
    if (!str_eq(buf_str(&whole), buf_str(&cut)))
        __builtin_trap();
    fuzz_frame__start(all);
    fuzz_frame__armor(all, step);
    buf_free(&whole);
    buf_free(&cut);
    return 0;
}
