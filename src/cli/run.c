#include "cli/run.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/values.h"
#include "os/signal.h"
#include "os/tty.h"

static const int run__signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/* What a shell shows for a program that SIGPIPE ended. */
enum { RUN_PIPE_STATUS = 128 + SIGPIPE, RUN_OWN_FAILURE = 125, RUN_TIMED_OUT = 124, RUN_USAGE = 2 };

bool run_watch(Run *r, Err *err)
{
    int    wanted[COUNT_OF(run__signals)];
    size_t n = 0;

    for (size_t i = 0; i < COUNT_OF(run__signals); i++) {
        struct sigaction was;
        if (sigaction(run__signals[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            wanted[n++] = run__signals[i];
    }
    signal_ignore_writes();
    return signal_catch(wanted, n, &r->out.cancel_fd, err);
}

int run_signal(Run *r)
{
    if (r->signal == 0)
        r->signal = signal_next();
    return r->signal;
}

void run_pass(Run *r, bool passes)
{
    r->passes = passes;
    if (passes)
        base_fail_with(RUN_OWN_FAILURE);
}

void run_release(Run *r)
{
    run_signal(r);
    for (size_t i = 0; i < COUNT_OF(run__signals); i++) {
        struct sigaction was;
        if (sigaction(run__signals[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            signal(run__signals[i], SIG_DFL);
    }
    r->out.cancel_fd = -1;
    if (r->session)
        abx_ignore_cancel(r->session);
}

bool run_options(Run *r, abx_options *o, Err *err)
{
    const Args *args = r->args;
    const char    *agent = args_value(args, "agent");
    ValuesSettings settings = {0};
    bool           never = agent && strcmp(agent, "never") == 0;

    if (agent && !never && strcmp(agent, "auto") != 0) {
        err_set(err, ERR_USAGE, E8002, "--agent: there is no mode '%s'", agent);
        return err_hint(err, "The modes are auto and never.");
    }
    if (!values_settings(args, r->out.cancel_fd, r->a, &settings, err))
        return false;
    *o = (abx_options){
        .provider = args_value(args, "provider"),
        .config = settings.p,
        .config_count = settings.n,
        .exposed = settings.exposed,
        .exposed_count = settings.exposed_count,
        .ca_file = args_value(args, "ca-file"),
        .cancel_fd_set = 1,
        .cancel_fd = r->out.cancel_fd,
        .allow_cwd_env = args_flag(args, "allow-cwd-env"),
        .agent_never = never,
        .agent_path = "/proc/self/exe",
        .notice = output_notice,
        .notice_ctx = &r->out,
        .trace = args_flag(args, "debug") ? output_trace : NULL,
        .trace_ctx = &r->out,
    };
    return true;
}

bool run_open(Run *r, const char *ref, abx_error *e)
{
    abx_options o;
    ABX_UNSET Err err;

    if (!run_options(r, &o, &err)) {
        output_own(e, &err);
        return false;
    }
    o.sandbox = ref;
    abx_close(r->session);
    r->session = abx_open(&o, e);
    if (r->session && r->out.verbose)
        output_notice(&r->out, arena_fmt(r->a, "provider %s", abx_session_provider(r->session)).p);
    return r->session != NULL;
}

abx_host *run_host(Run *r, abx_error *e)
{
    abx_options o;
    ABX_UNSET Err err;

    if (run_options(r, &o, &err))
        r->host = abx_host_open(&o, e);
    else
        output_own(e, &err);
    return r->host;
}

abx_sandbox *run_attach(Run *r, abx_error *e)
{
    const char *ref = r->args->words[0];

    return run_open(r, ref, e) ? abx_attach(r->session, ref, e) : NULL;
}

int run_fail(const Run *r, const abx_error *e)
{
    output_error(&r->out, e);
    /* What is refused for the backend's sake is not wrong in itself. */
    if (r->passes && (e->kind != ABX_USAGE || e->exit_status != RUN_USAGE))
        return e->command_status ? e->command_status : RUN_OWN_FAILURE;
    return e->exit_status ? e->exit_status : 1;
}

int run_stopped(const Run *r, const abx_error *e)
{
    return e->kind == ABX_CANCELLED && !r->out.json ? 1 : run_fail(r, e);
}

int run_fail_told(const Run *r, const Err *err)
{
    ABX_UNSET abx_error e;

    output_own(&e, err);
    int status = run_fail(r, &e);
    return err->sys == EPIPE ? RUN_PIPE_STATUS : status;
}

int run_fail_own(const Run *r, const Err *err)
{
    return err->sys == EPIPE ? RUN_PIPE_STATUS : run_fail_told(r, err);
}

bool run_fail_one(const Run *r, const abx_error *e, int *status)
{
    int failed = run_fail(r, e);

    *status = *status ? *status : failed;
    return e->code[1] == '4' || strcmp(e->code, "E8000") == 0 || strcmp(e->code, "E8005") == 0;
}

int run_result(const Run *r, Str text)
{
    ABX_UNSET Err err;

    return output_result(&r->out, text, &err) ? 0 : run_fail_own(r, &err);
}

int run_end(const Run *r, Buf *text)
{
    int status = run_result(r, buf_str(text));

    buf_free(text);
    return status;
}

int run_ended(const Run *r, const abx_event *exit)
{
    ABX_UNSET Err err;

    if (exit->timed_out)
        return RUN_TIMED_OUT;
    if (exit->exit_code >= 0)
        return exit->exit_code;
    if (exit->signal > 0)
        return 128 + exit->signal;
    err_set(&err, ERR_REMOTE, E3000, "a signal ended the command, and the backend does not say which");
    return run_fail_own(r, &err);
}

bool run_can_print(abx_error *e)
{
    ABX_UNSET Err err;

    if (tty_writable(STDOUT_FILENO))
        return true;
    err_sys(&err, EBADF, E0000, "cannot write to standard output");
    output_own(e, &err);
    return false;
}
