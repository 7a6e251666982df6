#include "cli/cmd_shell.h"

#include "base/str.h"
#include "cli/console.h"
#include "cli/values.h"
#include "data/shell.h"

/* SHELL is what the agent found in passwd for another user, or the image's own
 * choice. Some accounts have a program there that only says no. */
static const char cmd_shell__line[] = SHELL_INTERACTIVE;

static bool cmd_shell__options(Run *r, abx_exec_options *o, Err *err)
{
    static const char *const line = cmd_shell__line;
    ValuesPairs env = {0};

    if (!values_env(r->args, r->out.cancel_fd, r->a, &env, err))
        return false;
    *o = (abx_exec_options){
        .argv = &line, .argc = 1, .env = env.p, .env_count = env.n, .cwd = args_value(r->args, "workdir"),
        .user = args_value(r->args, "user"),
    };
    if (r->args->word_count > 1) {
        o->argv = r->args->words + 1;
        o->argc = r->args->word_count - 1;
    }
    return true;
}

int cmd_shell_open(Run *r)
{
    Console c = {.run = r, .input = true};
    abx_exec_options o;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    run_pass(r, true);
    if (!cmd_shell__options(r, &o, &err) || !console_options(&c, &o, args_value(r->args, "detach-keys"), &err))
        return run_fail_own(r, &err);
    c.box = run_attach(r, &e);
    c.x = c.box ? abx_exec_start(c.box, &o, &e) : NULL;
    int status = c.x ? console_run(&c) : run_fail(r, &e);
    abx_sandbox_free(c.box);
    return status;
}

/* ---- job attach ---- */

typedef struct CmdShellJob {
    const char *id;
    bool        found, tty;
} CmdShellJob;

static int cmd_shell__job(void *ctx, const abx_job *j)
{
    CmdShellJob *want = ctx;

    if (strcmp(j->id, want->id) != 0)
        return 0;
    want->found = true;
    want->tty = j->tty;
    return 1;
}

/* A job without a terminal has nothing to type into. */
static bool cmd_shell__has_terminal(abx_sandbox *box, const char *id, abx_error *e)
{
    CmdShellJob want = {.id = id};
    ABX_UNSET Err err;

    if (abx_jobs(box, cmd_shell__job, &want, e) != 0)
        return false;
    if (!want.found || want.tty)
        return true;
    err_set(&err, ERR_USAGE, E8002, "the job %s has no terminal", id);
    err_hint(&err, "`abx job logs` shows what it printed, `abx job wait` waits for its end.");
    output_own(e, &err);
    return false;
}

int cmd_shell_attach(Run *r)
{
    Console c = {.run = r, .input = true, .attaches = true};
    abx_exec_options size = {0};
    const char *id = r->args->words[1];
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    run_pass(r, true);
    if (!console_options(&c, &size, args_value(r->args, "detach-keys"), &err))
        return run_fail_own(r, &err);
    c.box = run_attach(r, &e);
    abx_attach_options o = {.take = 1, .cols = c.size.cols, .rows = c.size.rows};
    if (c.box && cmd_shell__has_terminal(c.box, id, &e))
        c.x = abx_job_attach(c.box, id, &o, &e);
    int status = c.x ? console_run(&c) : run_fail(r, &e);
    abx_sandbox_free(c.box);
    return status;
}
