#include "cli/cmd_run.h"

#include <stdio.h>

#include "base/str.h"
#include "cli/cmd_exec.h"
#include "cli/values.h"

enum {
    CMD_RUN_LIFETIME_S = 3600,
    CMD_RUN_MARGIN_S = 300,         /* from the command's timeout to the sandbox's: starting and ending it */
};

static bool cmd_run__create(const Run *r, int64_t timeout_ms, abx_create_options *o, Err *err)
{
    const Args *args = r->args;
    const char *lifetime = args_value(args, "lifetime");
    ValuesPairs metadata = {0};

    *o = (abx_create_options){
        .template_name = args_value(args, "template"),
        .timeout_s = timeout_ms ? timeout_ms / 1000 + CMD_RUN_MARGIN_S : CMD_RUN_LIFETIME_S,
        .cpu = args_value(args, "cpu"),
        .memory = args_value(args, "memory"),
    };
    if (lifetime && !values_seconds("--lifetime", lifetime, &o->timeout_s, err))
        return false;
    if (!values_pairs(args, "metadata", r->a, &metadata, err))
        return false;
    o->metadata = metadata.p;
    o->metadata_count = metadata.n;
    o->entrypoint_count = args_list(args, "entrypoint", r->a, &o->entrypoint);
    if (o->entrypoint_count == 0)
        o->entrypoint = NULL;
    return true;
}

/* A signal that came before this was for the command; one from now on is for us. */
static int cmd_run__remove(Run *r, abx_sandbox *box, int status)
{
    const char *id = abx_sandbox_id(box);
    ABX_UNSET abx_error e;

    if (args_flag(r->args, "keep")) {
        output_say(&r->out, arena_fmt(r->a, "abx: sandbox %s is kept\n", id));
        return status;
    }
    run_signal(r);
    if (abx_kill(box, NULL, &e) == 0)
        return status;
    Str why = arena_fmt(r->a, "sandbox %s still runs: %s", id, e.message);
    snprintf(e.message, sizeof e.message, "%.*s", STR_ARG(why));
    snprintf(e.suggestion, sizeof e.suggestion, "`abx kill %s` removes it.", id);
    int failed = run_fail(r, &e);
    return status ? status : failed;
}

static int cmd_run__in(Run *r, const abx_create_options *create, abx_exec_options *o, Console *c)
{
    ABX_UNSET abx_error e;
    abx_sandbox *box = run_open(r, NULL, &e) ? abx_create(r->session, create, &e) : NULL;
    int          status = 0;

    if (!box)
        return run_fail(r, &e);
    if (!run_signal(r))
        status = cmd_exec_in(r, box, o, c, &e);
    status = cmd_run__remove(r, box, status);
    abx_sandbox_free(box);
    return status;
}

int cmd_run_once(Run *r)
{
    abx_create_options create;
    abx_exec_options   o;
    Console   c;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    /* Nothing can be left running in a sandbox that is removed. */
    if (!cmd_exec_options(r, 0, &o, &err) || !cmd_exec_named(&o, &err) || !cmd_run__create(r, o.timeout_ms, &create, &err) ||
        !cmd_exec_console(r, &o, "none", &c, &err))
        return run_fail_own(r, &err);
    run_pass(r, !r->out.json);
    if (r->out.json && !run_can_print(&e))
        return run_fail(r, &e);
    return cmd_run__in(r, &create, &o, &c);
}
