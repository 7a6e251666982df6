#include "data/frame.h"

#include "base/str.h"

/* A conversation's beginning, with every kind of part in its start. */
static void frame_test_make(Buf *b, const unsigned char *run)
{
    static const Str argv[] = {{"sh", 2}, {"", 0}, {"a\nb \xff", 5}}, env[] = {{"A=1", 3}};
    FrameStart s = {.kind = FRAME_PTY, .flags = FRAME_START_INPUT, .argv = {argv, 3}, .env = {env, 1}, .cwd = STR("/w"),
                    .user = STR("7"), .cols = 80, .rows = 24, .timeout_ms = 1500, .hold_s = 9, .port = 80,
                    .job = STR("j"), .offset = 1ull << 40};
    Err err;

    frame_put_preamble(b, run);
    frame_put_hello(b, &(FrameHello){.window = 4 << 20});
    frame_put_agent_hello(b, &(FrameHello){.window = 1, .pid = 7, .uid = 8, .text = STR("linux")});
    assert_true(frame_put_start(b, 3, &s, &err));
    frame_put(b, FRAME_OUT, 0, STR("out"));
    frame_put(b, (FrameType)0x40, 0, STR("later"));
    b->p[b->n - 5 - FRAME_HEAD + 1] = (char)FRAME_SKIP;
    frame_put_u64(b, FRAME_CREDIT, 2, 77);
    frame_put_signal(b, 2, FRAME_TO_LEADER);
    frame_put_resize(b, 100, 50);
    frame_put_exit(b, &(FrameExit){FRAME_ENDED_SIGNAL, 9, 3, 4});
    frame_put_fail(b, 0, &(FrameFail){FRAME_AT_EXEC, 2, STR("no")});
    frame_put_started(b, 0, &(FrameStarted){12, STR("job1")});
}

static void frame_test_note(const Frame *f, Buf *got)
{
    FrameHello h; FrameStart s; FrameExit x; FrameFail fail; FrameStarted st; FrameTarget to = 0;
    uint64_t v; uint16_t cols = 0, rows = 0; int n = 0;
    Arena a = arena_make(1 << 16);
    Err   err;

    buf_addf(got, "%02x.%d", f->type, f->channel);
    switch (f->type) {
    case FRAME_HELLO: case FRAME_AGENT_HELLO:
        assert_true(frame_hello(f, &h));
        buf_addf(got, "(%u %u %u %.*s)", h.window, h.pid, h.uid, STR_ARG(h.text));
        break;
    case FRAME_START:
        assert_true(frame_start(f->payload, &a, &s, &err));
        buf_addf(got, "(%d %u", s.kind, s.flags);
        for (size_t i = 0; i < s.argv.n; i++)
            buf_addf(got, " [%.*s]", STR_ARG(s.argv.v[i]));
        buf_addf(got, " %.*s %.*s %.*s %ux%u %d %u %u %.*s %lld)", STR_ARG(s.env.v[0]), STR_ARG(s.cwd), STR_ARG(s.user),
                 s.cols, s.rows, (int)s.timeout_ms, s.hold_s, s.port, STR_ARG(s.job), (long long)s.offset);
        break;
    case FRAME_OUT: buf_addf(got, "(%.*s)", STR_ARG(f->payload)); break;
    case FRAME_CREDIT: assert_true(frame_u64(f, &v)); buf_addf(got, "(%d)", (int)v); break;
    case FRAME_SIGNAL: assert_true(frame_signal(f, &n, &to)); buf_addf(got, "(%d %d)", n, to); break;
    case FRAME_RESIZE: assert_true(frame_resize(f, &cols, &rows)); buf_addf(got, "(%d %d)", cols, rows); break;
    case FRAME_EXIT: assert_true(frame_exit(f, &x)); buf_addf(got, "(%d %u %d %d)", x.how, x.number, (int)x.out, (int)x.err); break;
    case FRAME_FAIL: assert_true(frame_fail(f, &fail)); buf_addf(got, "(%d %u %.*s)", fail.stage, fail.sys, STR_ARG(fail.text)); break;
    case FRAME_STARTED: assert_true(frame_started(f, &st)); buf_addf(got, "(%u %.*s)", st.pid, STR_ARG(st.job)); break;
    default: fail_msg("type %d", f->type);
    }
    arena_free(&a);
}

static bool frame_test_all(FrameReader *r, Str in, Buf *got)
{
    Frame f;
    Err   err;
    Step  step;

    while ((step = frame_next(r, &in, &f, &err)) == STEP_DONE)
        frame_test_note(&f, got);
    return step == STEP_MORE;
}

/* Cut at every byte, with and without other text before it, it is the same. */
static void frame_cuts_test(void **state)
{
    static const char expected[] =
        "01.0(4194304 0 0 )81.0(1 7 8 linux)02.3(2 1 [sh] [] [a\nb \xff] A=1 /w 7 80x24 1500 9 80 j 1099511627776)"
        "83.0(out)07.2(77)05.0(2 1)06.0(100 50)86.0(1 9 3 4)87.0(4 2 no)82.0(12 job1)";
    unsigned char run[FRAME_RUN] = "0123456789abcde";
    Buf           b = buf_make(1 << 20), got = buf_make(1 << 20);

    (void)state;
    for (int noisy = 0; noisy < 2; noisy++) {
        buf_clear(&b);
        if (noisy)
            buf_add(&b, STR("Welcome, AABX ABX1 to a shell\nABX1"));
        frame_test_make(&b, run);
        for (size_t cut = 0; cut <= b.n; cut++) {
            FrameReader r = noisy || cut % 2 ? frame_reader_client(run, noisy) : frame_reader_agent();
            buf_clear(&got);
            assert_true(frame_test_all(&r, (Str){b.p, cut}, &got));
            assert_true(frame_test_all(&r, (Str){b.p + cut, b.n - cut}, &got));
            assert_true(str_eq(buf_str(&got), str_from(expected)));
            assert_memory_equal(r.run, run, FRAME_RUN);
            frame_reader_free(&r);
        }
    }
    buf_free(&b);
    buf_free(&got);
}

/* DATA in pieces, cut at every byte: the same bytes for the same channel, and all else as ever. */
static void frame_pieces_test(void **state)
{
    static const unsigned char run[FRAME_RUN];
    Buf   b = buf_make(1 << 16), got = buf_make(1 << 16);
    Frame f;
    Err   err;

    (void)state;
    frame_put_preamble(&b, run);
    frame_put(&b, FRAME_DATA, 4, STR("some bytes"));
    frame_put(&b, FRAME_DATA, 0, (Str){0});
    frame_put(&b, FRAME_DATA, 4, STR(", and more"));
    frame_put_u64(&b, FRAME_CREDIT, 4, 20);
    frame_put(&b, FRAME_DATA, 5, STR("5"));
    b.p[b.n - 1 - FRAME_HEAD + 1] = (char)FRAME_MORE;
    for (size_t cut = 0; cut <= b.n; cut++) {
        FrameReader r = frame_reader_agent();
        size_t      empty = 0;
        r.pieces = true;
        buf_clear(&got);
        for (int half = 0; half < 2; half++) {
            Str  in = half ? (Str){b.p + cut, b.n - cut} : (Str){b.p, cut};
            Step step;
            while ((step = frame_next(&r, &in, &f, &err)) == STEP_DONE) {
                empty += f.type == FRAME_DATA && !f.payload.n;
                if (f.type != FRAME_DATA || f.flags)
                    buf_addf(&got, "(%d %d)", f.type, f.flags);
                else
                    assert_int_equal(f.channel, f.payload.n ? 4 : 0);
                if (f.type == FRAME_DATA)
                    buf_add(&got, f.payload);
            }
            assert_int_equal(step, STEP_MORE);
            assert_int_equal(in.n, 0);
        }
        assert_true(str_eq(buf_str(&got), STR("some bytes, and more(7 0)(3 1)5")));
        assert_int_equal(empty, 1);
        frame_reader_free(&r);
    }
    buf_free(&b);
    buf_free(&got);
}

static void frame_hostile_test(void **state)
{
    static const char head[] = "ABX1\1\0\0\0" "0123456789abcde\0";
    static const struct { const char *bytes; size_t n; bool good; } rows[] = {
        {head, 24, true},
        {"ABX2", 4, true},                                                  /* not enough to say */
        {"ABX2\1\0\0\0" "0123456789abcde\0", 24, false},
        {"ABX1\2\0\0\0" "0123456789abcde\0", 24, false},
        {"ABX1\1\0\0\0" "0123456789abcdX\0", 24, false},
        {"ABX1\1\0\0\0" "0123456789abcde\0" "\x83\0\0\0\0\1\0\1", 32, false},       /* 65,537 bytes */
        {"ABX1\1\0\0\0" "0123456789abcde\0" "\x83\0\0\0\0\1\0\0", 32, true},
        {"ABX1\1\0\0\0" "0123456789abcde\0" "\x40\0\0\0\0\0\0\0", 32, false},       /* unknown */
        {"ABX1\1\0\0\0" "0123456789abcde\0" "\x40\x80\0\0\0\0\0\0", 32, true},
        {"ABX1\1\0\0\0" "0123456789abcde\0" "\0\0\0\0\0\0\0\0", 32, false},
    };
    unsigned char run[FRAME_RUN] = "0123456789abcde";
    Buf           got = buf_make(1 << 20), noise = buf_make(1 << 20);
    Err           err;
    Frame         f;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        FrameReader r = frame_reader_client(run, false);
        assert_int_equal(frame_test_all(&r, (Str){rows[i].bytes, rows[i].n}, &got), rows[i].good);
        frame_reader_free(&r);
    }
    FrameReader r = frame_reader_client(run, true);
    for (size_t i = 0; i < FRAME_NOISE + 100; i++)
        buf_addc(&noise, 'A');
    Str in = buf_str(&noise);
    assert_int_equal(frame_next(&r, &in, &f, &err), STEP_ERR);
    frame_reader_free(&r);
    buf_free(&got);
    buf_free(&noise);
}

/* A start of every length, and with each byte changed, is read or refused. */
static void frame_start_test(void **state)
{
    static const Str argv[] = {{"one", 3}, {"two", 3}};
    FrameStart s = {.kind = FRAME_EXEC, .argv = {argv, 2}, .timeout_ms = 5, .cwd = STR("/")}, got;
    Buf   b = buf_make(1 << 23);
    Arena a = arena_make(1 << 22);
    int   whole = 0;
    Err   err;

    (void)state;
    assert_true(frame_put_start(&b, 0, &s, &err));
    Str all = {b.p + FRAME_HEAD, b.n - FRAME_HEAD};
    for (size_t n = 0; n <= all.n; n++) {
        Arena scratch = a;
        whole += frame_start((Str){all.p, n}, &scratch, &got, &err);
    }
    for (size_t i = 0; i < all.n; i++) {
        Arena scratch = a;
        b.p[FRAME_HEAD + i] ^= (char)0x81;
        whole += frame_start(all, &scratch, &got, &err);
        b.p[FRAME_HEAD + i] ^= (char)0x81;
    }
    assert_true(whole > 0 && whole < 2 * (int)all.n);
    assert_true(frame_start(all, &a, &got, &err));
    assert_int_equal(got.argv.n, 2);
    char *big = calloc(1, FRAME_START_BYTES);
    memset(big, 'x', FRAME_START_BYTES);
    s.argv = (Strs){(Str[]){{big, 200000}}, 1};
    buf_clear(&b);
    assert_true(frame_put_start(&b, 0, &s, &err));
    assert_int_equal(b.p[1], FRAME_MORE);
    assert_int_equal(b.p[1 + 3 * (FRAME_HEAD + FRAME_PAYLOAD)], 0);
    s.argv = (Strs){(Str[]){{big, FRAME_START_BYTES}}, 1};
    assert_false(frame_put_start(&b, 0, &s, &err));
    free(big);
    arena_free(&a);
    buf_free(&b);
}

static const struct CMUnitTest frame_tests[] = {
    cmocka_unit_test(frame_cuts_test), cmocka_unit_test(frame_pieces_test), cmocka_unit_test(frame_hostile_test),
    cmocka_unit_test(frame_start_test),
};
