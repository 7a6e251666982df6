/* What a conversation means to whoever runs a command: events, ends, failures. */
#include "provider/carried.h"

#include "base/limits.h"
#include "base/str.h"

#include <errno.h>
#include <signal.h>

/* A call over a conversation of talk_test's. */
static CarriedCall *carried_test_call(TalkTest *x)
{
    CarriedCall *c = mem_new(sizeof *c);

    talk_test_begin(x);
    *c = (CarriedCall){.base = {&carried__ops}, .p = &x->p, .talk = x->t, .id = mem_str(STR("box")), .kind = x->kind,
                       .began = clock_mono_ms(), .overdue = DEADLINE_NONE};
    carried__name(c, CARRIED_PROGRAM, STR("prog\x1b[2J\n"));
    carried__name(c, CARRIED_CWD, STR("/w"));
    carried__name(c, CARRIED_WHO, STR("bob"));
    return c;
}

static void carried_test_free(TalkTest *x, CarriedCall *c)
{
    c->base.ops->close(&c->base);
    x->t = NULL;
    talk_test_free(x);
}

static Step carried_test_step(TalkTest *x, CarriedCall *c, ExecEvent *ev)
{
    Step step = STEP_MORE;

    for (int i = 0; i < 10 && step == STEP_MORE; i++)
        step = c->base.ops->next(&c->base, ev, &x->err);
    return step;
}

static TalkTest *carried_test_started(void)
{
    TalkTest *x = talk_test_new();

    talk_test_hello(x, 100);
    frame_put_started(&x->agent, 0, &(FrameStarted){42, STR("job-1")});
    return x;
}

static void test_carried_ends(void **state)
{
    static const struct { FrameExit exit; int code, signal; bool timed_out, lie; } cases[] = {
        {{FRAME_ENDED_CODE, 0, 0, 0}, 0, 0, false, false},     {{FRAME_ENDED_CODE, 255, 0, 0}, 255, 0, false, false},
        {{FRAME_ENDED_SIGNAL, 15, 0, 0}, -1, 15, false, false}, {{FRAME_ENDED_TIMEOUT, 9, 0, 0}, -1, 9, true, false},
        {{FRAME_ENDED_TIMEOUT, 9, 0, 0}, 0, 0, true, true},     /* it was told of none */
    };
    ExecEvent ev;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        TalkTest *x = carried_test_started();
        frame_put_exit(&x->agent, &cases[i].exit);
        CarriedCall *c = carried_test_call(x);
        c->timed = cases[i].timed_out && !cases[i].lie;
        assert_int_equal(carried_test_step(x, c, &ev), cases[i].lie ? STEP_ERR : STEP_DONE);
        if (cases[i].lie) {
            assert_int_equal(x->err.code, E8020);
            carried_test_free(x, c);
            continue;
        }
        assert_int_equal(ev.kind, EXEC_EXIT);
        assert_int_equal(ev.exit_code, cases[i].code);
        assert_int_equal(ev.signal, cases[i].signal);
        assert_int_equal(ev.timed_out, cases[i].timed_out);
        assert_string_equal(c->base.ops->pid(&c->base).p, "42");
        assert_string_equal(c->base.ops->job(&c->base).p, "job-1");
        carried_test_free(x, c);
    }
}

static void test_carried_events(void **state)
{
    (void)state;
    TalkTest *x = talk_test_new();
    ExecEvent ev;

    x->kind = FRAME_ATTACH;
    talk_test_hello(x, 100);
    frame_put_started(&x->agent, 0, &(FrameStarted){0, {0}});
    frame_put_u64(&x->agent, FRAME_REPLAY, 0, 9);
    frame_put(&x->agent, FRAME_ERR, 0, STR("e"));
    frame_put(&x->agent, FRAME_AGENT_EOF, 0, (Str){0});
    frame_put_exit(&x->agent, &(FrameExit){FRAME_ENDED_CODE, 1, 9, 1});
    CarriedCall *c = carried_test_call(x);
    c->tell_start = true;
    assert_int_equal(carried_test_step(x, c, &ev), STEP_DONE);
    assert_int_equal(ev.kind, EXEC_STARTED);
    assert_int_equal(c->base.ops->pid(&c->base).n, 0);
    assert_int_equal(carried_test_step(x, c, &ev), STEP_DONE);
    assert_int_equal(ev.kind, EXEC_REPLAY);
    assert_int_equal(ev.offset, 9);
    assert_int_equal(carried_test_step(x, c, &ev), STEP_DONE);
    assert_int_equal(ev.kind, EXEC_ERR);
    assert_true(str_eq(ev.bytes, STR("e")));
    assert_int_equal(carried_test_step(x, c, &ev), STEP_DONE);
    assert_int_equal(ev.kind, EXEC_EXIT);
    carried_test_free(x, c);
}

static void test_carried_failures(void **state)
{
    static const struct { FrameStage stage; uint32_t sys; Code code; ErrKind kind; const char *text; } cases[] = {
        {FRAME_AT_EXEC, ENOENT, E3005, ERR_NOT_FOUND, "the sandbox has no program prog "},
        {FRAME_AT_EXEC, EACCES, E3005, ERR_REMOTE, "the sandbox cannot run prog : Permission denied"},
        {FRAME_AT_EXEC, ENOEXEC, E3005, ERR_REMOTE, "the sandbox cannot run prog : Exec format error"},
        {FRAME_AT_EXEC, UINT32_MAX, E3005, ERR_REMOTE, NULL},
        {FRAME_AT_CWD, ENOENT, E4001, ERR_NOT_FOUND, "cannot run a command in /w: No such file or directory"},
        {FRAME_AT_CWD, EACCES, E4002, ERR_DENIED, "cannot run a command in /w: Permission denied"},
        {FRAME_AT_CWD, EIO, E3000, ERR_REMOTE, NULL},
        {FRAME_AT_USER, EPERM, E8004, ERR_REMOTE,
         "the agent in the sandbox runs as user 1000, which may not become user bob"},
        {FRAME_AT_USER, 0, E8002, ERR_USAGE, "the sandbox has no user bob"},
        {FRAME_AT_TTY, ENOSPC, E3000, ERR_REMOTE, "the sandbox has no terminal for the command: why [0m"},
        {FRAME_AT_START, 0, E3000, ERR_REMOTE, "the agent in the sandbox could not start the command: why [0m"},
        {FRAME_AT_ATTACH, ENOENT, E8005, ERR_NOT_FOUND, "there is no job bob in the sandbox"},
        {FRAME_AT_ATTACH, ESRCH, E8005, ERR_NOT_FOUND, "job bob has ended"},
        {FRAME_AT_ATTACH, EBUSY, E8003, ERR_REMOTE, "somebody has job bob"},
        {FRAME_AT_ATTACH, EINVAL, E3000, ERR_REMOTE, "the job cannot be reached: why [0m"},
    };
    ExecEvent ev;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        TalkTest *x = talk_test_new();
        talk_test_hello(x, 1);
        frame_put_fail(&x->agent, 0, &(FrameFail){cases[i].stage, cases[i].sys, STR("why\n[0m\a")});
        CarriedCall *c = carried_test_call(x);
        assert_int_equal(carried_test_step(x, c, &ev), STEP_ERR);
        assert_int_equal(x->err.code, cases[i].code);
        assert_int_equal(x->err.kind, cases[i].kind);
        if (cases[i].text)
            assert_string_equal(x->err.text, cases[i].text);
        if (cases[i].stage == FRAME_AT_EXEC && cases[i].sys <= INT32_MAX)
            assert_int_equal(x->err.sys, cases[i].sys);
        carried_test_free(x, c);
    }
}

/* What became of it, where that is known. */
static void test_carried_lost(void **state)
{
    static const char *const hints[] = {"ends what it can no longer report", "It lives on in the sandbox, as job job-1", ""};
    ExecEvent ev;

    (void)state;
    for (int i = 0; i < 3; i++) {
        TalkTest *x = i < 2 ? carried_test_started() : talk_test_new();
        x->script.end = SCRIPT_EOF;
        CarriedCall *c = carried_test_call(x);
        c->lasting = i == 1;
        assert_int_equal(carried_test_step(x, c, &ev), STEP_ERR);
        assert_int_equal(x->err.code, E5000);
        assert_non_null(strstr(x->err.hint, hints[i]));
        carried_test_free(x, c);
    }
}

/* What was given counts as used with the next call, but while it is held. */
static void test_carried_hold(void **state)
{
    (void)state;
    TalkTest *x = carried_test_started();
    char     *zeros = mem_new(FRAME_PAYLOAD);
    ExecEvent ev;
    uint64_t  told = 0;

    for (size_t n = 0; n < LIMIT_TALK_WINDOW / 2; n += FRAME_PAYLOAD)
        frame_put(&x->agent, FRAME_OUT, 0, (Str){zeros, FRAME_PAYLOAD});
    CarriedCall *c = carried_test_call(x);
    c->base.ops->hold(&c->base, true);
    for (size_t n = 0; n < LIMIT_TALK_WINDOW / 2; n += FRAME_PAYLOAD)
        assert_int_equal(carried_test_step(x, c, &ev), STEP_DONE);
    assert_int_equal(carried_test_step(x, c, &ev), STEP_MORE);
    assert_int_equal(talk_test_said(x, FRAME_CREDIT, NULL), 0);
    c->base.ops->hold(&c->base, false);
    assert_true(talk__waiting(x->t) > 0);       /* so that the caller's wait ends */
    assert_int_equal(carried_test_step(x, c, &ev), STEP_MORE);
    assert_int_equal(talk_test_said(x, FRAME_CREDIT, &told), 1);
    assert_int_equal(told, LIMIT_TALK_WINDOW / 2);
    mem_free(zeros);
    carried_test_free(x, c);
}

static char carried_test_signalled[64];

static bool carried_test_signal(Provider *p, Str id, Str pid, int number, Deadline d, Err *err)
{
    (void)p, (void)d, (void)err;
    snprintf(carried_test_signalled, sizeof carried_test_signalled, "%.*s %.*s %d", STR_ARG(id), STR_ARG(pid), number);
    return true;
}

static const ProviderKind carried_test_kind = {.process_signal = carried_test_signal};
static const ProviderKind carried_test_without = {.process_signal = NULL};

static void test_carried_says(void **state)
{
    (void)state;
    TalkTest    *x = carried_test_started();
    CarriedCall *c = carried_test_call(x);
    ExecEvent    ev;
    size_t       n = 0;

    carried_test_step(x, c, &ev);
    assert_false(c->base.ops->write(&c->base, STR("x"), &n, &x->err));
    assert_int_equal(x->err.code, E8002);
    assert_false(c->base.ops->end_input(&c->base, &x->err));
    c->input = true;
    assert_true(c->base.ops->write(&c->base, STR("xyz"), &n, &x->err));
    assert_int_equal(n, 3);
    assert_true(c->base.ops->end_input(&c->base, &x->err));
    assert_false(c->base.ops->signal(&c->base, 0, &x->err));
    assert_false(c->base.ops->signal(&c->base, 65, &x->err));
    assert_true(c->base.ops->signal(&c->base, 64, &x->err));
    assert_false(c->base.ops->resize(&c->base, -1, 1, &x->err));
    assert_false(c->base.ops->resize(&c->base, 1, 65536, &x->err));
    assert_true(c->base.ops->resize(&c->base, 1, 65535, &x->err));
    assert_true(c->base.ops->kill(&c->base, clock_after(1000), &x->err));
    assert_true(c->base.ops->detach(&c->base, &x->err));
    carried_test_step(x, c, &ev);
    static const FrameType types[] = {FRAME_DATA, FRAME_EOF, FRAME_SIGNAL, FRAME_RESIZE, FRAME_KILL, FRAME_DETACH};
    for (size_t i = 0; i < COUNT_OF(types); i++)
        assert_int_equal(talk_test_said(x, types[i], NULL), 1);
    carried_test_free(x, c);
}

/* Where nothing can be sent the backend's own call sends signals, if it has one. */
static void test_carried_deaf(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        TalkTest *x = carried_test_started();
        ExecEvent ev;
        x->p.kind = i ? &carried_test_without : &carried_test_kind;
        x->link.deaf = true;
        CarriedCall *c = carried_test_call(x);
        assert_false(c->base.ops->kill(&c->base, clock_after(1000), &x->err));      /* its number is not known yet */
        carried_test_step(x, c, &ev);
        carried_test_signalled[0] = 0;
        assert_int_equal(c->base.ops->signal(&c->base, 2, &x->err), !i);
        assert_string_equal(carried_test_signalled, i ? "" : "box -42 2");
        assert_int_equal(c->base.ops->kill(&c->base, clock_after(1000), &x->err), !i);
        assert_string_equal(carried_test_signalled, i ? "" : "box 7 15");   /* the agent ends the whole of it */
        assert_false(c->base.ops->detach(&c->base, &x->err));
        carried_test_free(x, c);
    }
}

/* A timeout whose end is not reported is one all the same, later. */
static void test_carried_overdue(void **state)
{
    (void)state;
    TalkTest    *x = carried_test_started();
    CarriedCall *c = carried_test_call(x);
    ExecEvent    ev;

    carried_test_step(x, c, &ev);
    c->overdue = clock_mono_ms() - 1;
    assert_int_equal(carried_test_step(x, c, &ev), STEP_ERR);
    assert_int_equal(x->err.code, E3001);
    carried_test_free(x, c);
}

static void test_carried_start(void **state)
{
    static const Pair env[] = {{{"A", 1}, {"1 = 2", 5}}, {{"B", 1}, {"", 0}}}, bad[] = {{{"A=", 2}, {"", 0}}};
    ExecRequest rq = {.env = env, .env_count = 2, .timeout_ms = 7, .hold_s = INT64_MAX, .tty = true, .job = true, .cols = 3};
    Arena a = arena_make(1 << 16);
    Strs  out;
    Err   err;

    (void)state;
    assert_true(carried__env(&rq, &a, &out, &err));
    assert_true(str_eq(out.v[0], STR("A=1 = 2")) && str_eq(out.v[1], STR("B=")));
    FrameStart s = carried__start(&rq, out);
    assert_int_equal(s.kind, FRAME_PTY);
    assert_int_equal(s.flags, FRAME_START_INPUT | FRAME_START_JOB);
    assert_int_equal(s.hold_s, UINT32_MAX);
    assert_int_equal(s.timeout_ms, 7);
    rq.env = bad;
    rq.env_count = 1;
    assert_false(carried__env(&rq, &a, &out, &err));
    assert_int_equal(err.code, E8002);
    arena_free(&a);
}

static const struct CMUnitTest carried_tests[] = {
    cmocka_unit_test(test_carried_ends), cmocka_unit_test(test_carried_events), cmocka_unit_test(test_carried_failures),
    cmocka_unit_test(test_carried_lost), cmocka_unit_test(test_carried_hold), cmocka_unit_test(test_carried_says),
    cmocka_unit_test(test_carried_deaf), cmocka_unit_test(test_carried_overdue), cmocka_unit_test(test_carried_start),
};
