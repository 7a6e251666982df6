/* Conversations with an agent that is made of text, and lies. */
#include "provider/talk.h"

#include "base/limits.h"
#include "script_stream.h"

static const unsigned char talk_test_run[FRAME_RUN] = "0123456789abcdef";

/* One conversation: what the agent says, and what came of it. */
typedef struct TalkTest {
    Provider     p;
    Carrier      carrier;
    Buf          agent;         /* its bytes */
    ScriptAnswer answer;
    Script       script;
    Carried      link;
    FrameKind    kind;
    Talk        *t;
    Buf          trace;
    Buf          got;           /* events, as text */
    Err          err;
} TalkTest;

static void talk_test_closed(Carrier *c)
{
    (void)c;
}

static void talk_test_trace(void *ctx, const char *line)
{
    buf_addf(ctx, "[%s]", line);
}

static const CarrierOps talk_test_carrier = {.close = talk_test_closed};

static TalkTest *talk_test_new(void)
{
    TalkTest *x = mem_new(sizeof *x);

    *x = (TalkTest){.carrier = {&talk_test_carrier}, .agent = buf_make((size_t)16 << 20), .kind = FRAME_EXEC,
                    .trace = buf_make(4096), .got = buf_make((size_t)1 << 20)};
    x->p.host = (ProviderHost){.cancel_fd = -1, .trace = talk_test_trace, .trace_ctx = &x->trace};
    frame_put_preamble(&x->agent, talk_test_run);
    return x;
}

static void talk_test_hello(TalkTest *x, uint32_t window)
{
    frame_put_agent_hello(&x->agent, &(FrameHello){.window = window, .pid = 7, .uid = 1000, .text = STR("linux\x1b[2J x86_64")});
}

static void talk_test_begin(TalkTest *x)
{
    x->answer = (ScriptAnswer){NULL, x->agent.p, x->agent.n};
    x->script.answers = &x->answer;
    x->script.count = 1;
    x->link.carrier = &x->carrier;
    x->link.stream = script_open(&x->script);
    x->t = talk_over(&x->p, &x->link, talk_test_run, x->kind);
}

/* More from the agent, behind what it said. */
static void talk_test_more(TalkTest *x)
{
    x->answer = (ScriptAnswer){NULL, x->agent.p, x->agent.n};
    x->script.answer = 0;
    x->script.at = x->script.given;
}

static void talk_test_note(TalkTest *x, const TalkEvent *ev)
{
    if (ev->type == FRAME_OUT || ev->type == FRAME_ERR)
        buf_addf(&x->got, "%c%d(%.*s)", ev->type == FRAME_OUT ? 'o' : 'e', ev->channel, (int)(ev->bytes.n < 20 ? ev->bytes.n : 20), ev->bytes.p);
    else if (ev->type == FRAME_STARTED)
        buf_addf(&x->got, "s%d(%u %.*s)", ev->channel, ev->started.pid, STR_ARG(ev->started.job));
    else if (ev->type == FRAME_EXIT)
        buf_addf(&x->got, "x(%d %u)", ev->exit.how, ev->exit.number);
    else if (ev->type == FRAME_FAIL)
        buf_addf(&x->got, "f%d(%d %u %.*s)", ev->channel, ev->fail.stage, ev->fail.sys, STR_ARG(ev->fail.text));
    else if (ev->type == FRAME_AGENT_EOF)
        buf_addf(&x->got, "z%d", ev->channel);
    else if (ev->type == FRAME_REPLAY)
        buf_addf(&x->got, "r(%llu)", (unsigned long long)ev->offset);
    else
        buf_addf(&x->got, "d");
}

/* Until nothing more comes, or it is over. */
static Step talk_test_step(TalkTest *x)
{
    TalkEvent ev;
    Step      step = STEP_MORE;

    for (int idle = 0; idle < 4 && !x->t->over;) {
        size_t moved = x->script.given + x->script.written.n;
        step = talk_next(x->t, &ev, &x->err);
        idle = step == STEP_MORE && moved == x->script.given + x->script.written.n ? idle + 1 : 0;
        if (step == STEP_DONE)
            talk_test_note(x, &ev);
    }
    return step;
}

static void talk_test_got(TalkTest *x, const char *want)
{
    assert_string_equal(buf_str(&x->got).p ? (buf_addc(&x->got, 0), x->got.n--, x->got.p) : "", want);
}

/* How many frames of a type the client said, and the last one's value. */
static size_t talk_test_said(TalkTest *x, FrameType type, uint64_t *last)
{
    FrameReader r = frame_reader_client(talk_test_run, false);
    Str         in = buf_str(&x->script.written);
    size_t      n = 0;
    Frame       f;
    Err         err;

    r.began = true;     /* the first bytes went another way */
    while (frame_next(&r, &in, &f, &err) == STEP_DONE) {
        if (f.type != type)
            continue;
        n++;
        if (last)
            *last = f.payload.n;
        if (last && f.payload.n == 8 && !frame_u64(&f, last))
            abort();
    }
    frame_reader_free(&r);
    return n;
}

static void talk_test_free(TalkTest *x)
{
    talk_close(x->t);
    assert_true(x->script.closed);
    script_free(&x->script);
    buf_free(&x->agent);
    buf_free(&x->trace);
    buf_free(&x->got);
    mem_free(x);
}

static void talk_test_good(TalkTest *x)
{
    talk_test_hello(x, 1000);
    frame_put(&x->agent, FRAME_NOTE, 0, STR("no \x1b[31mpasswd"));
    frame_put_started(&x->agent, 0, &(FrameStarted){42, STR("job-1")});
    frame_put(&x->agent, FRAME_OUT, 0, STR("out"));
    frame_put(&x->agent, FRAME_ERR, 0, STR("oops"));
    frame_put_u64(&x->agent, FRAME_PONG, 0, 3);
    frame_put_u64(&x->agent, FRAME_AGENT_CREDIT, 0, 0);
    frame_put(&x->agent, FRAME_AGENT_EOF, 0, (Str){0});
    frame_put_exit(&x->agent, &(FrameExit){FRAME_ENDED_CODE, 3, 3, 4});
}

static void test_talk_good(void **state)
{
    static const size_t pieces[] = {0, 1, 7, 64};

    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(pieces); i++) {
        TalkTest *x = talk_test_new();
        talk_test_good(x);
        x->script.piece = pieces[i / 2];
        x->script.hiccups = i % 2;
        talk_test_begin(x);
        assert_int_equal(talk_test_step(x), STEP_DONE);
        talk_test_got(x, "s0(42 job-1)o0(out)e0(oops)z0x(0 3)");
        assert_int_equal(talk_test_said(x, FRAME_ACK, NULL), 1);
        assert_int_equal(talk_hello(x->t)->uid, 1000);
        assert_string_equal((buf_addc(&x->trace, 0), x->trace.p), "[the agent says hello: linux x86_64][the agent: no passwd]");
        talk_test_free(x);
    }
}

/* Cut after every byte, by an end and by a reset: the result is unknown. */
static void test_talk_cut(void **state)
{
    (void)state;
    for (int end = SCRIPT_EOF; end <= SCRIPT_RESET; end++)
        for (size_t cut = 1;; cut++) {
            TalkTest *x = talk_test_new();
            talk_test_good(x);
            x->script.cut = cut;
            x->script.end = (ScriptEnd)end;
            talk_test_begin(x);
            bool whole = cut == x->agent.n;
            assert_int_equal(talk_test_step(x), whole ? STEP_DONE : STEP_ERR);
            if (!whole) {
                assert_int_equal(x->err.kind, ERR_CLOSED);
                assert_int_equal(x->err.code, E5000);
                assert_non_null(strstr(x->err.text, "unknown"));
                assert_null(memchr(x->got.p ? x->got.p : "", 'x', x->got.n));
            }
            talk_test_free(x);
            if (whole)
                break;
        }
}

/* What may come in which state; everything else is hostile. */
enum { TALK_TEST_COLD, TALK_TEST_STARTING, TALK_TEST_RUNS, TALK_TEST_OVER, TALK_TEST_STATES };

static bool talk_test_allowed(int at, int type)
{
    bool any = type == FRAME_PONG || type == FRAME_NOTE;

    if (at == TALK_TEST_COLD)
        return type == FRAME_AGENT_HELLO;
    if (at == TALK_TEST_STARTING)
        return any || type == FRAME_STARTED || type == FRAME_FAIL;
    if (at == TALK_TEST_OVER)
        return any || type == FRAME_AGENT_CREDIT;
    return any || type == FRAME_OUT || type == FRAME_ERR || type == FRAME_AGENT_EOF || type == FRAME_EXIT ||
           type == FRAME_FAIL || type == FRAME_AGENT_CREDIT;
}

static void talk_test_one(Buf *to, int type, uint16_t channel)
{
    size_t at = to->n;

    if (type == FRAME_AGENT_HELLO)
        frame_put_agent_hello(to, &(FrameHello){.window = 1});
    else if (type == FRAME_STARTED)
        frame_put_started(to, channel, &(FrameStarted){1, {0}});
    else if (type == FRAME_EXIT)
        frame_put_exit(to, &(FrameExit){FRAME_ENDED_CODE, 0, 0, 0});
    else if (type == FRAME_FAIL)
        frame_put_fail(to, channel, &(FrameFail){FRAME_AT_EXEC, 2, {0}});
    else if (type == FRAME_OUT || type == FRAME_ERR || type == FRAME_NOTE)
        frame_put(to, (FrameType)type, channel, STR("x"));
    else if (type == FRAME_AGENT_EOF)
        frame_put(to, FRAME_AGENT_EOF, channel, (Str){0});
    else
        frame_put_u64(to, (FrameType)type, channel, 0);
    to->p[at + 3] = (char)channel;
}

static void test_talk_states(void **state)
{
    (void)state;
    for (int at = 0; at < TALK_TEST_STATES; at++)
        for (int type = 1; type < 0x8c; type++)
            for (uint16_t channel = 0; channel < 2; channel++) {
                bool known = type <= FRAME_KILL || type >= FRAME_AGENT_HELLO;
                if (!known && (type != 0x40 || channel))
                    continue;
                TalkTest *x = talk_test_new();
                if (at > TALK_TEST_COLD)
                    talk_test_hello(x, 1);
                if (at > TALK_TEST_STARTING)
                    frame_put_started(&x->agent, 0, &(FrameStarted){1, {0}});
                if (at > TALK_TEST_RUNS)
                    frame_put_exit(&x->agent, &(FrameExit){FRAME_ENDED_CODE, 0, 0, 0});
                talk_test_one(&x->agent, type, channel);
                talk_test_begin(x);
                Step step = talk_test_step(x);
                bool good = !channel && talk_test_allowed(at, type);
                if (good != (step != STEP_ERR))
                    fail_msg("state %d, frame %02x on %d: %s", at, type, channel, good ? x->err.text : "let pass");
                if (!good) {
                    assert_int_equal(x->err.code, E8020);
                    assert_non_null(strstr(x->err.text, "unknown"));
                }
                talk_test_free(x);
            }
}

/* Frames of the right type that do not fit: each behind a good start. */
static void test_talk_misfits(void **state)
{
    static char text[FRAME_PAYLOAD];
    static const struct { int type; const char *payload; size_t n; } cases[] = {
        {FRAME_EXIT, "\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 21}, {FRAME_EXIT, "", 0},
        {FRAME_EXIT, "\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 21},
        {FRAME_EXIT, "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 21},
        {FRAME_AGENT_CREDIT, "\0\0\0\0\0\0\0\1", 8}, {FRAME_AGENT_CREDIT, "\0\0\0\0\0\0\0", 7},
        {FRAME_PONG, "", 0}, {FRAME_NOTE, text, FRAME_FAIL_TEXT + 1}, {FRAME_AGENT_EOF, "x", 1},
        {FRAME_FAIL, "\0", 1}, {FRAME_FAIL, "\7\0\0\0\0", 5}, {FRAME_FAIL, text, FRAME_FAIL_TEXT + 6},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        TalkTest *x = talk_test_new();
        talk_test_hello(x, 1);
        frame_put_started(&x->agent, 0, &(FrameStarted){1, {0}});
        frame_put(&x->agent, (FrameType)cases[i].type, 0, (Str){cases[i].payload, cases[i].n});
        talk_test_begin(x);
        if (talk_test_step(x) != STEP_ERR || x->err.code != E8020)
            fail_msg("case %zu was let pass", i);
        talk_test_free(x);
    }
}

static void test_talk_names(void **state)
{
    static char long_text[LIMIT_TALK_HELLO + 1], long_name[LIMIT_TALK_NAME + 1];
    static const struct { Str job; bool good; } cases[] = {
        {{"aZ9-_", 5}, true}, {{"", 0}, true}, {{"a b", 3}, false}, {{"../x", 4}, false}, {{"\x1b", 1}, false},
        {{long_name, LIMIT_TALK_NAME}, true}, {{long_name, LIMIT_TALK_NAME + 1}, false},
    };

    (void)state;
    memset(long_name, 'a', sizeof long_name);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        TalkTest *x = talk_test_new();
        talk_test_hello(x, 1);
        frame_put_started(&x->agent, 0, &(FrameStarted){1, cases[i].job});
        talk_test_begin(x);
        assert_int_equal(talk_test_step(x) != STEP_ERR, cases[i].good);
        talk_test_free(x);
    }
    for (size_t n = LIMIT_TALK_HELLO; n <= LIMIT_TALK_HELLO + 1; n++) {
        TalkTest *x = talk_test_new();
        frame_put_agent_hello(&x->agent, &(FrameHello){.text = {long_text, n}});
        talk_test_begin(x);
        assert_int_equal(talk_test_step(x), n > LIMIT_TALK_HELLO ? STEP_ERR : STEP_MORE);
        talk_test_free(x);
    }
}

/* Noise before the preamble, another run, nothing at all. */
static void test_talk_before(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        TalkTest *x = talk_test_new();
        buf_clear(&x->agent);
        buf_add(&x->agent, STR("Welcome, ABX1!\n"));
        if (i == 3)
            buf_clear(&x->agent);
        unsigned char run[FRAME_RUN];
        memcpy(run, talk_test_run, sizeof run);
        run[0] ^= i == 2;
        frame_put_preamble(&x->agent, run);
        talk_test_hello(x, 1);
        x->link.noisy = i == 1 || i == 2;
        x->script.end = SCRIPT_EOF;
        talk_test_begin(x);
        assert_int_equal(talk_test_step(x), STEP_ERR);
        assert_int_equal(x->err.code, i == 0 ? E8020 : E5000);
        assert_int_equal(talk_hello(x->t) != NULL, i == 1 || i == 3);
        talk_test_free(x);
    }
}

static void test_talk_totals(void **state)
{
    static const uint64_t totals[][2] = {{3, 4}, {2, 4}, {4, 4}, {3, 3}, {4, 3}, {0, 0}, {UINT64_MAX, 8}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(totals); i++)
        for (int attach = 0; attach < 2; attach++) {
            TalkTest *x = talk_test_new();
            x->kind = attach ? FRAME_ATTACH : FRAME_EXEC;
            talk_test_hello(x, 1);
            frame_put_started(&x->agent, 0, &(FrameStarted){1, {0}});
            if (attach)
                frame_put_u64(&x->agent, FRAME_REPLAY, 0, 5);
            frame_put(&x->agent, FRAME_OUT, 0, attach ? STR("o") : STR("out"));
            frame_put(&x->agent, FRAME_ERR, 0, attach ? STR("e") : STR("oops"));
            frame_put_exit(&x->agent, &(FrameExit){FRAME_ENDED_SIGNAL, 9, totals[i][0], totals[i][1]});
            talk_test_begin(x);
            bool good = attach ? totals[i][0] + totals[i][1] == 7 && totals[i][0] < 9 : i == 0;
            assert_int_equal(talk_test_step(x), good ? STEP_DONE : STEP_ERR);
            if (!good) {
                assert_int_equal(x->err.kind, ERR_CLOSED);
                assert_non_null(strstr(x->err.text, "output was lost"));
            }
            talk_test_free(x);
        }
}

/* A replay comes first, and where some was skipped; never goes back; and is an
 * attached one's alone. */
static void test_talk_replay(void **state)
{
    static const struct { bool attach, first; uint64_t again, out; bool good; } cases[] = {
        {true, true, 0, 101, true}, {true, false, 0, 1, false}, {true, true, 100, 101, false}, {true, true, 101, 101, true},
        {true, true, 105, 105, true}, {true, true, 105, 101, false}, {false, true, 0, 1, false}, {false, false, 0, 1, true},
        {false, false, 105, 105, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        TalkTest *x = talk_test_new();
        x->kind = cases[i].attach ? FRAME_ATTACH : FRAME_EXEC;
        talk_test_hello(x, 1);
        frame_put_started(&x->agent, 0, &(FrameStarted){1, {0}});
        if (cases[i].first)
            frame_put_u64(&x->agent, FRAME_REPLAY, 0, 100);
        frame_put(&x->agent, FRAME_OUT, 0, STR("x"));
        if (cases[i].again)
            frame_put_u64(&x->agent, FRAME_REPLAY, 0, cases[i].again);
        frame_put_exit(&x->agent, &(FrameExit){FRAME_ENDED_CODE, 0, cases[i].out, 0});
        talk_test_begin(x);
        if ((talk_test_step(x) == STEP_DONE) != cases[i].good)
            fail_msg("case %zu: %s", i, cases[i].good ? x->err.text : "let pass");
        talk_test_free(x);
    }
}

/* So much output and not a byte more, as long as none is taken. */
static void test_talk_window(void **state)
{
    static const struct { CarryWay way; size_t window; } ways[] = {
        {CARRY_LISTEN, LIMIT_TALK_WINDOW}, {CARRY_PIPE, LIMIT_TALK_WINDOW_PIPE}, {CARRY_LINES, LIMIT_TALK_WINDOW_LINES},
    };
    char *zeros = mem_new(FRAME_PAYLOAD);

    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(ways); i++) {
        TalkTest *x = talk_test_new();
        uint64_t  told = 0;
        x->link.way = ways[i / 2].way;
        talk_test_hello(x, 1);
        frame_put_started(&x->agent, 0, &(FrameStarted){1, {0}});
        for (size_t n = 0; n < ways[i / 2].window; n += FRAME_PAYLOAD)
            frame_put(&x->agent, n % (2 * FRAME_PAYLOAD) ? FRAME_OUT : FRAME_ERR, 0, (Str){zeros, FRAME_PAYLOAD});
        talk_test_begin(x);
        assert_int_equal(talk_test_step(x), STEP_MORE);
        if (i % 2) {        /* a quarter less a byte is not worth a word */
            talk_taken(x->t, 0, ways[i / 2].window / 4 - 1);
            talk_test_step(x);
            assert_int_equal(talk_test_said(x, FRAME_CREDIT, NULL), 0);
            talk_taken(x->t, 0, 1);
            talk_test_step(x);
            assert_int_equal(talk_test_said(x, FRAME_CREDIT, &told), 1);
            assert_int_equal(told, ways[i / 2].window / 4);
        }
        for (size_t n = 0; n < told; n += FRAME_PAYLOAD)
            frame_put(&x->agent, FRAME_OUT, 0, (Str){zeros, FRAME_PAYLOAD});
        talk_test_more(x);
        assert_int_equal(talk_test_step(x), STEP_MORE);
        frame_put(&x->agent, FRAME_OUT, 0, STR("1"));
        talk_test_more(x);
        assert_int_equal(talk_test_step(x), STEP_ERR);
        assert_int_equal(x->err.code, E8020);
        talk_test_free(x);
    }
    mem_free(zeros);
}

/* Input: none before STARTED, as much as the agent's window, the end behind it. */
static void test_talk_input(void **state)
{
    (void)state;
    TalkTest *x = talk_test_new();
    uint64_t  n = 0;

    talk_test_hello(x, 10);
    talk_test_begin(x);
    assert_int_equal(talk_write(x->t, 0, STR("early")), 0);
    talk_test_step(x);
    assert_int_equal(talk_write(x->t, 0, STR("early")), 0);
    frame_put_started(&x->agent, 0, &(FrameStarted){1, {0}});
    talk_test_more(x);
    talk_test_step(x);
    assert_int_equal(talk_write(x->t, 0, STR("0123456789ab")), 10);
    assert_int_equal(talk_write(x->t, 0, STR("ab")), 0);
    assert_int_equal(talk_want(x->t).fd, -1);       /* there is something to send */
    talk_test_step(x);
    assert_int_equal(talk_test_said(x, FRAME_DATA, &n), 1);
    assert_int_equal(n, 10);
    frame_put_u64(&x->agent, FRAME_AGENT_CREDIT, 0, 4);
    talk_test_more(x);
    talk_test_step(x);
    assert_int_equal(talk_write(x->t, 0, STR("abcdef")), 4);
    talk_end(x->t, 0);
    talk_end(x->t, 0);
    assert_int_equal(talk_write(x->t, 0, STR("z")), 0);
    talk_signal(x->t, 2, FRAME_TO_GROUP);
    talk_resize(x->t, 80, 24);
    talk_kill(x->t);
    talk_test_step(x);
    assert_int_equal(talk_test_said(x, FRAME_EOF, NULL), 1);
    assert_int_equal(talk_test_said(x, FRAME_SIGNAL, NULL), 1);
    assert_int_equal(talk_test_said(x, FRAME_RESIZE, NULL), 1);
    assert_int_equal(talk_test_said(x, FRAME_KILL, NULL), 1);
    frame_put_u64(&x->agent, FRAME_AGENT_CREDIT, 0, 3);      /* it goes down */
    talk_test_more(x);
    assert_int_equal(talk_test_step(x), STEP_ERR);
    talk_test_free(x);
}

/* A link that takes nothing: what is queued has a limit, and reading goes on. */
static void test_talk_blocked(void **state)
{
    (void)state;
    TalkTest *x = talk_test_new();
    char     *zeros = mem_new(FRAME_PAYLOAD);
    size_t    all = 0, n;

    x->script.takes = 100;
    talk_test_hello(x, 16 << 20);
    frame_put_started(&x->agent, 0, &(FrameStarted){1, {0}});
    talk_test_begin(x);
    talk_test_step(x);
    while ((n = talk_write(x->t, 0, (Str){zeros, FRAME_PAYLOAD})) > 0)
        all += n;
    assert_in_range(all, LIMIT_TALK_ROOM - FRAME_PAYLOAD, LIMIT_TALK_ROOM);
    frame_put(&x->agent, FRAME_OUT, 0, STR("still"));
    talk_test_more(x);
    talk_test_step(x);
    assert_int_equal(x->script.written.n, 100);
    while (talk_write(x->t, 0, (Str){zeros, FRAME_PAYLOAD}) > 0)
        talk_test_step(x);
    assert_true(talk_want(x->t).fd >= 0);
    talk_test_got(x, "s0(1 )o0(still)");
    /* An end whose ACK cannot go out is given all the same, a little later. */
    frame_put_exit(&x->agent, &(FrameExit){FRAME_ENDED_CODE, 0, 5, 0});
    talk_test_more(x);
    assert_int_equal(talk_test_step(x), STEP_MORE);
    assert_true(talk_deadline(x->t) <= clock_after(LIMIT_TALK_BYE_MS));
    x->t->end_by = clock_mono_ms() - 1;
    assert_int_equal(talk_test_step(x), STEP_DONE);
    talk_test_got(x, "s0(1 )o0(still)x(0 0)");
    mem_free(zeros);
    talk_test_free(x);
}

/* The agent has gone, but said how it ended before. */
static void test_talk_mute(void **state)
{
    (void)state;
    TalkTest *x = talk_test_new();

    talk_test_hello(x, 100);
    frame_put_started(&x->agent, 0, &(FrameStarted){1, {0}});
    talk_test_begin(x);
    talk_test_step(x);
    x->script.takes = 1;
    x->script.full = SCRIPT_RESET;
    talk_write(x->t, 0, STR("input"));
    frame_put_exit(&x->agent, &(FrameExit){FRAME_ENDED_CODE, 9, 0, 0});
    talk_test_more(x);
    x->script.end = SCRIPT_EOF;
    assert_int_equal(talk_test_step(x), STEP_DONE);
    talk_test_got(x, "s0(1 )x(0 9)");
    talk_test_free(x);
}

/* Silence is judged when nothing is there to be read, and then alone. */
static void test_talk_silence(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        TalkTest *x = talk_test_new();
        talk_test_hello(x, 1);
        talk_test_begin(x);
        talk_test_step(x);
        assert_in_range(x->t->silent - clock_mono_ms(), FRAME_SILENCE_MS - 1000, FRAME_SILENCE_MS);
        x->t->silent = clock_mono_ms() - 1;
        if (i) {
            frame_put_u64(&x->agent, FRAME_PONG, 0, 0);
            talk_test_more(x);
        }
        assert_int_equal(talk_test_step(x), i ? STEP_MORE : STEP_ERR);
        if (!i) {
            assert_int_equal(x->err.kind, ERR_CLOSED);
            assert_non_null(strstr(x->err.text, "silent: the command's result is unknown"));
        }
        talk_test_free(x);
    }
}

static SandboxState talk_test_state;

static bool talk_test_get(Provider *p, Str id, Arena *a, SandboxInfo *out, Deadline d, Err *err)
{
    (void)p, (void)a, (void)d;
    assert_true(str_eq(id, STR("box")));
    *out = (SandboxInfo){.state = talk_test_state};
    return talk_test_state != SANDBOX_UNKNOWN || err_set(err, ERR_CLOSED, E5000, "no answer");
}

/* A sandbox that is paused is waited for, and once more when it was. */
static void test_talk_paused(void **state)
{
    static const struct { SandboxState state; Step step; } asks[] = {
        {SANDBOX_PAUSED, STEP_MORE}, {SANDBOX_PAUSED, STEP_MORE}, {SANDBOX_RUNNING, STEP_MORE}, {SANDBOX_PAUSING, STEP_MORE},
        {SANDBOX_UNKNOWN, STEP_MORE}, {SANDBOX_RUNNING, STEP_ERR},
    };
    static const ProviderKind kind = {.get = talk_test_get};
    TalkTest *x = talk_test_new();

    (void)state;
    x->p.kind = &kind;
    talk_test_hello(x, 1);
    talk_test_begin(x);
    x->t->id = mem_str(STR("box"));
    talk_test_step(x);
    for (size_t i = 0; i < COUNT_OF(asks); i++) {
        x->t->silent = clock_mono_ms() - 1;
        talk_test_state = asks[i].state;
        assert_int_equal(talk_test_step(x), asks[i].step);
    }
    assert_non_null(strstr(x->err.text, "fallen silent"));
    talk_test_free(x);
}

static void test_talk_pings(void **state)
{
    (void)state;
    TalkTest *x = talk_test_new();

    talk_test_begin(x);
    talk_test_step(x);
    assert_true(talk_deadline(x->t) <= clock_after(FRAME_SILENCE_MS));
    talk_test_hello(x, 1);
    talk_test_more(x);
    talk_test_step(x);
    assert_true(talk_deadline(x->t) <= clock_after(FRAME_PING_MS));
    assert_int_equal(talk_test_said(x, FRAME_PING, NULL), 0);
    for (size_t i = 1; i <= 2; i++) {
        x->t->ping = clock_mono_ms() - 1;
        talk_test_step(x);
        assert_int_equal(talk_test_said(x, FRAME_PING, NULL), i);
    }
    talk_test_free(x);
}

/* Where nothing can be sent, nothing is, and no window counts. */
static void test_talk_deaf(void **state)
{
    (void)state;
    TalkTest *x = talk_test_new();
    char     *zeros = mem_new(FRAME_PAYLOAD);
    size_t    n = 0;

    x->link.deaf = true;
    x->link.way = CARRY_LINES;
    talk_test_hello(x, 100);
    frame_put_started(&x->agent, 0, &(FrameStarted){1, {0}});
    for (; n < 2 * LIMIT_TALK_WINDOW_LINES; n += FRAME_PAYLOAD)
        frame_put(&x->agent, FRAME_OUT, 0, (Str){zeros, FRAME_PAYLOAD});
    talk_test_begin(x);
    assert_int_equal(talk_test_step(x), STEP_MORE);
    talk_taken(x->t, 0, n);
    assert_int_equal(talk_write(x->t, 0, STR("x")), 0);
    talk_end(x->t, 0);
    talk_kill(x->t);
    talk_detach(x->t);
    assert_int_equal(talk_deadline(x->t), x->t->silent);
    frame_put_exit(&x->agent, &(FrameExit){FRAME_ENDED_TIMEOUT, 9, n, 0});
    talk_test_more(x);
    assert_int_equal(talk_test_step(x), STEP_DONE);
    assert_int_equal(x->script.written.n, 0);
    mem_free(zeros);
    talk_test_free(x);
}

/* Let go: told, and then gone or silent; or not told; or ended first. */
static void test_talk_detach(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        TalkTest *x = talk_test_new();
        talk_test_hello(x, 1);
        frame_put_started(&x->agent, 0, &(FrameStarted){1, STR("j")});
        talk_test_begin(x);
        talk_test_step(x);
        if (i == 2) {
            x->script.takes = 3;
            x->script.full = SCRIPT_RESET;
        }
        talk_detach(x->t);
        talk_detach(x->t);
        if (i == 0 || i == 2)
            x->script.end = SCRIPT_EOF;
        if (i == 1) {
            assert_int_equal(talk_test_step(x), STEP_MORE);
            x->t->end_by = clock_mono_ms() - 1;
        }
        if (i == 3) {
            frame_put_exit(&x->agent, &(FrameExit){FRAME_ENDED_CODE, 0, 0, 0});
            talk_test_more(x);
        }
        assert_int_equal(talk_test_step(x), i == 2 ? STEP_ERR : STEP_DONE);
        talk_test_got(x, i == 2 ? "s0(1 j)" : i == 3 ? "s0(1 j)x(0 0)" : "s0(1 j)d");
        assert_int_equal(talk_test_said(x, FRAME_DETACH, NULL), i != 2);
        talk_test_free(x);
    }
}

/* Somebody who never stops to say nothing does not keep us. */
static void test_talk_flood(void **state)
{
    (void)state;
    TalkTest *x = talk_test_new();
    TalkEvent ev;
    int       calls = 0;

    x->script.piece = 16;
    talk_test_hello(x, 1);
    for (int i = 0; i < 1000; i++)
        frame_put_u64(&x->agent, FRAME_PONG, 0, 0);
    talk_test_begin(x);
    while (x->script.given < x->agent.n) {
        assert_int_equal(talk_next(x->t, &ev, &x->err), STEP_MORE);
        calls++;
    }
    assert_true(calls >= 1000 / LIMIT_TALK_READS);
    talk_test_free(x);
}

/* Forwarded connections: each has its own windows, ends and failures. */
static void test_talk_forwards(void **state)
{
    (void)state;
    TalkTest  *x = talk_test_new();
    FrameStart start = {.kind = FRAME_FORWARD, .port = 80};
    char      *zeros = mem_new(FRAME_PAYLOAD);
    size_t     all = 0, n;

    x->kind = FRAME_FORWARD;
    talk_test_hello(x, 1);
    for (uint16_t c = 1; c <= 3; c++)
        frame_put_started(&x->agent, c, &(FrameStarted){0, {0}});
    frame_put_fail(&x->agent, 4, &(FrameFail){FRAME_AT_CONNECT, 111, STR("refused")});
    frame_put(&x->agent, FRAME_OUT, 2, STR("two"));
    frame_put(&x->agent, FRAME_AGENT_EOF, 2, (Str){0});
    talk_test_begin(x);
    for (uint16_t c = 1; c <= 4; c++)
        assert_true(talk_start(x->t, c, &start, &x->err));
    talk_test_step(x);
    talk_test_got(x, "s1(0 )s2(0 )s3(0 )f4(5 111 refused)o2(two)z2");
    assert_int_equal(talk_test_said(x, FRAME_START, NULL), 4);
    assert_int_equal(talk_test_said(x, FRAME_ACK, NULL), 1);
    /* Half closed: what we say still goes there. */
    assert_int_equal(talk_write(x->t, 2, STR("late")), 4);
    talk_end(x->t, 2);
    while (talk_test_step(x), (n = talk_write(x->t, 1, (Str){zeros, FRAME_PAYLOAD})) > 0)
        all += n;
    assert_int_equal(all, FRAME_FORWARD_WINDOW);
    /* Reset: what was under way is passed over, and the channel can be had again. */
    talk_reset(x->t, 3);
    frame_put(&x->agent, FRAME_OUT, 3, STR("under way"));
    frame_put_u64(&x->agent, FRAME_AGENT_CREDIT, 2, 4);
    talk_test_more(x);
    assert_int_equal(talk_test_step(x), STEP_MORE);
    assert_true(talk_start(x->t, 3, &start, &x->err));
    frame_put(&x->agent, FRAME_AGENT_EOF, 3, (Str){0});      /* of its former life */
    frame_put_started(&x->agent, 3, &(FrameStarted){0, {0}});
    buf_clear(&x->got);
    talk_test_more(x);
    assert_int_equal(talk_test_step(x), STEP_MORE);
    talk_test_got(x, "s3(0 )");
    frame_put(&x->agent, FRAME_OUT, 9, STR("never started"));
    talk_test_more(x);
    assert_int_equal(talk_test_step(x), STEP_ERR);
    assert_non_null(strstr(x->err.text, "forwarded connections are cut"));
    mem_free(zeros);
    talk_test_free(x);
}

static const struct CMUnitTest talk_tests[] = {
    cmocka_unit_test(test_talk_good), cmocka_unit_test(test_talk_cut), cmocka_unit_test(test_talk_states),
    cmocka_unit_test(test_talk_misfits), cmocka_unit_test(test_talk_names), cmocka_unit_test(test_talk_before),
    cmocka_unit_test(test_talk_totals), cmocka_unit_test(test_talk_replay), cmocka_unit_test(test_talk_window),
    cmocka_unit_test(test_talk_input), cmocka_unit_test(test_talk_blocked), cmocka_unit_test(test_talk_mute),
    cmocka_unit_test(test_talk_silence), cmocka_unit_test(test_talk_paused), cmocka_unit_test(test_talk_pings), cmocka_unit_test(test_talk_deaf),
    cmocka_unit_test(test_talk_detach), cmocka_unit_test(test_talk_flood), cmocka_unit_test(test_talk_forwards),
};
