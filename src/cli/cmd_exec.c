#include "cli/cmd_exec.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/document.h"
#include "cli/follow.h"
#include "cli/values.h"

/* ---- options ---- */

bool cmd_exec_options(const Run *r, size_t skip, abx_exec_options *o, Err *err)
{
    const Args *args = r->args;
    const char *timeout = args_value(args, "timeout");
    ValuesPairs env = {0};
    int64_t     ms = 0;

    *o = (abx_exec_options){
        .argv = args->words + skip,
        .argc = args->word_count - skip,
        .cwd = args_value(args, "workdir"),
        .user = args_value(args, "user"),
    };
    if (timeout && !values_duration("--timeout", timeout, &ms, err))
        return false;
    o->timeout_ms = ms < 0 ? 0 : ms;
    if (args_flag(args, "interactive") && values_take_input(args, r->a))
        return err_set(err, ERR_USAGE, E8002, "Standard input cannot hold both the command's input and a setting");
    if (!values_env(args, r->out.cancel_fd, r->a, &env, err))
        return false;
    o->env = env.p;
    o->env_count = env.n;
    return true;
}

bool cmd_exec_named(const abx_exec_options *o, Err *err)
{
    if (o->argc && o->argv[0][0])
        return true;
    err_set(err, ERR_USAGE, E8002, "Missing argument COMMAND");
    return err_hint(err, "One word is a line for the shell, several are a program and its arguments.");
}

/* ---- in the foreground ---- */

/* Where its standard input cannot be fed, a command runs without one that
 * nobody asked for, and that has held nothing so far. */
static abx_exec *cmd_exec__start(Run *r, abx_sandbox *box, abx_exec_options *o, Input *in, abx_error *e)
{
    o->input = in->kind != INPUT_NONE;
    abx_exec *x = abx_exec_start(box, o, e);
    if (x || !o->input || strcmp(e->code, "E8004") != 0 || o->user ||
        input_matters(in, args_flag(r->args, "interactive")))
        return x;
    o->input = 0;
    in->unsent = true;
    return abx_exec_start(box, o, e);
}

static int cmd_exec__follow(Run *r, abx_sandbox *box, abx_exec_options *o, Shape *s, abx_error *e)
{
    Input    *in = mem_new(sizeof *in);
    abx_exec *x = NULL;
    ABX_UNSET Err err;
    int       status;

    /* A setting that is read from standard input has it. */
    if (values_take_input(r->args, r->a))
        in->kind = INPUT_NONE;
    else if (!input_look(in, args_flag(r->args, "interactive"), &err)) {
        mem_free(in);
        return run_fail_own(r, &err);
    }
    x = cmd_exec__start(r, box, o, in, e);
    status = x ? follow_to_end(r, x, s, in->kind != INPUT_NONE ? in : NULL, NULL) : run_fail(r, e);
    abx_exec_free(x);
    mem_free(in);
    return status;
}

static int cmd_exec__shaped(Run *r, abx_sandbox *box, abx_exec_options *o, Shape s, abx_error *e)
{
    int status = box ? cmd_exec__follow(r, box, o, &s, e) : run_fail(r, e);

    shape_free(&s);
    return status;
}

bool cmd_exec_console(Run *r, abx_exec_options *o, const char *keys, Console *c, Err *err)
{
    *c = (Console){.input = args_flag(r->args, "interactive")};
    if (!args_flag(r->args, "tty"))
        return true;
    if (args_flag(r->args, "no-tty"))
        return err_set(err, ERR_USAGE, E8002, "-t and -T contradict each other");
    c->run = r;
    return console_options(c, o, keys, err);
}

static int cmd_exec__terminal(Run *r, abx_sandbox *box, abx_exec_options *o, Console *c, abx_error *e)
{
    c->box = box;
    c->x = box ? abx_exec_start(box, o, e) : NULL;
    return c->x ? console_run(c) : run_fail(r, e);
}

int cmd_exec_in(Run *r, abx_sandbox *box, abx_exec_options *o, Console *c, abx_error *e)
{
    if (c->run)
        return cmd_exec__terminal(r, box, o, c, e);
    return cmd_exec__shaped(r, box, o, r->out.json ? shape_document(r) : shape_plain(r), e);
}

/* ---- in the background ---- */

static int cmd_exec__job(Run *r, abx_sandbox *box, const char *job)
{
    Buf text = buf_make(LIMIT_ERROR_BODY);

    if (r->out.json) {
        JsonOut w = json_out(&text, JSON_PRETTY);
        json_begin(&w, '{');
        document_string(&w, "job", job);
        document_string(&w, "sandbox_id", abx_sandbox_id(box));
        json_end(&w, '}');
    } else {
        buf_add(&text, str_from(job));
    }
    buf_addc(&text, '\n');
    return run_end(r, &text);
}

/* Until its name has come. What it prints by then is in its log. */
static int cmd_exec__detach(Run *r, abx_sandbox *box, abx_exec *x, abx_error *e)
{
    abx_event event = {.kind = ABX_STDOUT};
    int       got = 1;

    while (got > 0 && event.kind != ABX_EXIT && !abx_exec_job(x))
        got = abx_exec_next(x, 1, &event, e);
    if (got < 0) {
        ABX_UNSET abx_error unheard;
        run_release(r);
        abx_exec_kill(x, &unheard);
        return run_fail(r, e);
    }
    const char *job = abx_exec_job(x);
    if (!job || abx_exec_detach(x, e) != 0)
        return run_fail(r, e);
    return cmd_exec__job(r, box, job);
}

static int cmd_exec__background(Run *r, abx_sandbox *box, abx_exec_options *o, abx_error *e)
{
    o->job = o->tell_start = 1;
    abx_exec *x = box ? abx_exec_start(box, o, e) : NULL;
    int       status = x ? cmd_exec__detach(r, box, x, e) : run_fail(r, e);
    abx_exec_free(x);
    return status;
}

/* ---- the verbs ---- */

int cmd_exec_run(Run *r)
{
    bool detach = args_flag(r->args, "detach");
    abx_exec_options o;
    Console   c;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    if (!cmd_exec_options(r, 1, &o, &err) || !cmd_exec_named(&o, &err))
        return run_fail_own(r, &err);
    if (detach && args_flag(r->args, "interactive")) {
        err_set(&err, ERR_USAGE, E8002, "-d and -i contradict each other: a job reads from /dev/null");
        return run_fail_own(r, &err);
    }
    if (!cmd_exec_console(r, &o, args_value(r->args, "detach-keys"), &c, &err))
        return run_fail_own(r, &err);
    run_pass(r, !r->out.json);
    if ((r->out.json || detach) && !run_can_print(&e))
        return run_fail(r, &e);
    abx_sandbox *box = run_attach(r, &e);
    int status = detach ? cmd_exec__background(r, box, &o, &e) : cmd_exec_in(r, box, &o, &c, &e);
    abx_sandbox_free(box);
    return status;
}

int cmd_exec_stream(Run *r)
{
    const char *line = args_value(r->args, "command");
    abx_exec_options o;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    if (!cmd_exec_options(r, 1, &o, &err))
        return run_fail_own(r, &err);
    if (line && o.argc) {
        err_set(&err, ERR_USAGE, E8002, "The command is given twice: by --command and as an argument");
        return run_fail_own(r, &err);
    }
    if (line) {
        o.argv = &line;
        o.argc = 1;
    }
    if (!cmd_exec_named(&o, &err))
        return run_fail_own(r, &err);
    run_pass(r, !r->out.json);
    if (r->out.json && !run_can_print(&e))
        return run_fail(r, &e);
    abx_sandbox *box = run_attach(r, &e);
    int status = cmd_exec__shaped(r, box, &o, r->out.json ? shape_lines(r) : shape_plain(r), &e);
    abx_sandbox_free(box);
    return status;
}
