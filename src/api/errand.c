#include "api/errand.h"

#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include "data/clean.h"
#include "os/poll.h"

enum { ERRAND_SAID = 4096, ERRAND_SCRATCH = 64 << 10 };

CarryResult errand_start(const abx_sandbox *b, FrameKind kind, const Str *words, size_t n, Str user, bool input, Errand *out,
                         Err *err)
{
    Provider *p = b->session->provider;

    *out = (Errand){.box = b};
    if (!session_can(p, p->kind->carrier != NULL, "the carried agent", err))
        return CARRY_CANNOT;
    if (!p->host.agent_path.n) {
        err_set(err, ERR_USAGE, E8004, "this is the agent's, and %s", b->session->no_agent);
        return CARRY_CANNOT;
    }
    CarryResult r = carried_files(p, str_from(b->id), kind, (Strs){words, n}, user, input, &out->x, clock_after(LIMIT_CARRY_MS),
                                  err);
    if (r == CARRY_DONE)
        out->said = buf_make(ERRAND_SAID);
    else if (r == CARRY_CANNOT)
        err->code = E8004;
    return r;
}

/* Codes that a program of the agent's has a reason to give. */
static ErrKind errand__kind(Code code)
{
    static const struct { Code code; ErrKind kind; } known[] = {
        {E4001, ERR_NOT_FOUND}, {E4002, ERR_DENIED}, {E4003, ERR_LIMIT}, {E8002, ERR_USAGE}, {E8004, ERR_REMOTE},
        {E8020, ERR_INPUT},
    };

    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (known[i].code == code)
            return known[i].kind;
    return ERR_REMOTE;
}

/* "E4001 there is no ..." */
static bool errand__failed(const Errand *e, const ExecEvent *end, Err *err)
{
    Arena    a = arena_make(ERRAND_SCRATCH);
    Str      said = str_trim(clean_message(buf_str(&e->said), NULL, 0, &a));
    uint64_t number;
    Code     code = E4000;

    if (said.n > 6 && said.p[0] == 'E' && said.p[5] == ' ' && num_u64(str_from_to(said, 1, 5), &number)) {
        code = errand__kind((Code)number) != ERR_REMOTE || number == 8004 ? (Code)number : E4000;
        str_skip(&said, 6);
    }
    if (said.n)
        err_set(err, errand__kind(code), code, "in the sandbox: %.*s", STR_ARG(said));
    else if (end->signal)
        err_set(err, ERR_REMOTE, E4000, "the agent's program in the sandbox was ended by signal %d", end->signal);
    else
        err_set(err, ERR_REMOTE, E4000, "the agent's program in the sandbox ended with status %d", end->exit_code);
    arena_free(&a);
    return false;
}

Step errand_next(Errand *e, Str *bytes, Err *err)
{
    ExecEvent ev;
    Step      step;

    while (!e->over && (step = e->x->ops->next(e->x, &ev, err)) != STEP_MORE) {
        if (step == STEP_ERR) {
            e->over = true;
            return STEP_ERR;
        }
        if (ev.kind == EXEC_EXIT) {
            e->over = true;
            return ev.exit_code == 0 || errand__failed(e, &ev, err) ? STEP_MORE : STEP_ERR;
        }
        if (ev.kind == EXEC_OUT) {
            *bytes = ev.bytes;
            return STEP_DONE;
        }
        if (ev.kind == EXEC_ERR)
            buf_add(&e->said, str_from_to(ev.bytes, 0, e->said.limit - e->said.n < ev.bytes.n ? e->said.limit - e->said.n
                                                                                                : ev.bytes.n));
    }
    return STEP_MORE;
}

static bool errand__wait(Errand *const *v, size_t n, int cancel_fd, Deadline d, Err *err)
{
    struct pollfd fds[3];
    size_t        k = 0;

    for (size_t i = 0; i < n; i++)
        if (v[i]->x && !v[i]->over) {
            StreamWant w = v[i]->x->ops->want(v[i]->x);
            fds[k++] = (struct pollfd){.fd = w.fd, .events = w.events};
            d = w.fd < 0 ? clock_mono_ms() : clock_sooner(d, v[i]->x->ops->deadline(v[i]->x));
        }
    /* What a deadline means is the call's to judge. */
    return poll_wait(fds, k, cancel_fd, d, err) || err->kind == ERR_TIMEOUT;
}

bool errand_wait(Errand *const *v, size_t n, bool busy, Err *err)
{
    int cancel_fd = v[0]->box->session->provider->host.cancel_fd;
    ABX_UNSET Err end;

    if (errand__wait(v, n, cancel_fd, busy ? clock_mono_ms() : DEADLINE_NONE, &end))
        return true;
    *err = end;
    return false;
}

/* Its end is waited for, so that nothing of it is left when the call returns. */
static void errand__kill(Errand *e)
{
    Provider *p = e->box->session->provider;
    Deadline  d = clock_after(LIMIT_CLEANUP_MS);
    ABX_UNSET Err err;
    Str       bytes;
    Step      step;

    if (!e->x->ops->kill(e->x, d, &err) && err.kind == ERR_CANCELLED) {
        p->kind->ignore_cancel(p);
        e->x->ops->kill(e->x, d, &err);
    }
    while (!clock_passed(d) && (step = errand_next(e, &bytes, &err)) != STEP_ERR && !e->over)
        if (step == STEP_MORE && !errand__wait(&e, 1, -1, d, &err))
            break;
}

void errand_close(Errand *e)
{
    if (!e->x)
        return;
    if (!e->over)
        errand__kill(e);
    e->x->ops->close(e->x);
    buf_free(&e->said);
    e->x = NULL;
}
