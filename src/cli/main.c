#include <errno.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "cli/cmd_about.h"
#include "cli/commands.h"
#include "cli/run.h"
#include "os/proc.h"
#include "os/tty.h"

static bool main__output(Run *r, Err *err)
{
    const char *form = args_value(r->args, "output");

    r->out.json = args_flag(r->args, "json") || (form && strcmp(form, "json") == 0);
    r->out.quiet = args_flag(r->args, "quiet");
    r->out.verbose = args_flag(r->args, "verbose") || args_flag(r->args, "debug");
    if (form && strcmp(form, "json") != 0 && strcmp(form, "text") != 0) {
        err_set(err, ERR_USAGE, E8002, "--output: there is no form '%s'", form);
        return err_hint(err, "The forms are text and json.");
    }
    if (form && strcmp(form, "text") == 0 && args_flag(r->args, "json"))
        return err_set(err, ERR_USAGE, E8002, "--json and --output text contradict each other") ||
               err_hint(err, "Leave out one of them.");
    return true;
}

/* Nothing was named that could be done: help, but as a mistake. */
static int main__nothing(const Run *r)
{
    ABX_UNSET Err err;

    if (!r->out.json) {
        Buf    text = buf_make(LIMIT_ERROR_BODY);
        Output all = {.cancel_fd = -1};
        cmd_about_text(r, &text);
        bool told = output_bytes(&all, STDERR_FILENO, buf_str(&text), &err);
        buf_free(&text);
        return told ? code_exit(E8002) : 1;
    }
    err_set(&err, ERR_USAGE, E8002, "No command is named");
    err_hint(&err, "`abx help` lists the commands.");
    return run_fail_own(r, &err);
}

static int main__help(const Run *r)
{
    Buf text = buf_make(LIMIT_ERROR_BODY);

    cmd_about_text(r, &text);
    int status = cmd_about_print(r, buf_str(&text));
    buf_free(&text);
    return status;
}

static int main__command(int argc, char **argv, Run *r, Args *args)
{
    ABX_UNSET Err err;

    if (!args_parse(argc, argv, commands_table(), r->a, args, &err)) {
        r->out.json = args_mention_json(argv);
        return run_fail_own(r, &err);
    }
    if (!main__output(r, &err))
        return run_fail_own(r, &err);
    if (args->help)
        return main__help(r);
    if (!args->command && !args->noun && args_flag(args, "version"))
        return cmd_about_version(r);
    return args->command ? args->command->run(r) : main__nothing(r);
}

/* What was written may be refused as late as here, by a full disk behind NFS. */
static int main__close(const Run *r, int status)
{
    ABX_UNSET Err err;

    if (close(STDOUT_FILENO) == 0 || errno == EBADF || errno == EINTR)
        return status;
    err_sys(&err, errno, E0000, "cannot write to standard output");
    int failed = run_fail_own(r, &err);
    return status ? status : failed;
}

int main(int argc, char **argv)
{
    /* Before anything is set up: what the agent starts inherits it. */
    if (argc > 0 && agent_is_name(argv[0]))
        return agent_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "agent") == 0 && (argc == 2 || !args_command(commands_table(), argv[1], argv[2])))
        return agent_main(argc - 1, argv + 1);

    Arena a = arena_make(ARENA_COMMAND);
    Args  args = {.table = commands_table()};
    Run   r = {.args = &args, .a = &a, .out = {.cancel_fd = -1}};
    ABX_UNSET Err err;
    int   status;

    tty_fill_standard();
    /* A key is held in memory from the first setting on. */
    proc_no_core();
    r.out.out_terminal = tty_is(STDOUT_FILENO);
    r.out.err_terminal = tty_is(STDERR_FILENO);
    if (run_watch(&r, &err))
        status = main__command(argc, argv, &r, &args);
    else
        status = run_fail_own(&r, &err);
    abx_close(r.session);
    abx_host_close(r.host);
    status = main__close(&r, status);
    arena_free(&a);
    return run_signal(&r) ? 128 + r.signal : status;
}
