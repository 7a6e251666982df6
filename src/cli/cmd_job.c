#include "cli/cmd_job.h"

#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/document.h"
#include "cli/follow.h"
#include "cli/screen.h"
#include "data/shell.h"

/* ---- list ---- */

typedef struct CmdJobList {
    const Run    *run;
    Buf           text;
    JsonOut       json;
    DocumentTable table;
} CmdJobList;

static void cmd_job__known(JsonOut *w, const char *key, const char *text)
{
    if (text)
        document_string(w, key, text);
}

static void cmd_job__json(JsonOut *w, const abx_job *j)
{
    json_begin(w, '{');
    document_string(w, "job", j->id);
    document_string(w, "state", j->state);
    document_string(w, "command", j->command);
    cmd_job__known(w, "pid", j->pid);
    cmd_job__known(w, "started_at", j->started_at);
    cmd_job__known(w, "ended_at", j->ended_at);
    document_flag(w, "tty", j->tty);
    document_flag(w, "attached", j->attached);
    if (j->exit_code >= 0 || j->signal) {
        json_key(w, j->exit_code >= 0 ? "exit_code" : "signal");
        json_put_int(w, j->exit_code >= 0 ? j->exit_code : j->signal);
    }
    if (j->timed_out)
        document_flag(w, "timed_out", true);
    json_key(w, "printed");
    json_put_int(w, (int64_t)j->printed);
    json_key(w, "kept_from");
    json_put_int(w, (int64_t)j->kept_from);
    json_end(w, '}');
}

static Str cmd_job__how(Arena *a, const abx_job *j)
{
    if (j->timed_out)
        return STR("timed out");
    if (j->exit_code >= 0)
        return arena_fmt(a, "exit %d", j->exit_code);
    return j->signal ? arena_fmt(a, "signal %d", j->signal) : str_from(j->state);
}

static int cmd_job__each(void *ctx, const abx_job *j)
{
    CmdJobList *l = ctx;

    if (l->run->out.json) {
        cmd_job__json(&l->json, j);
    } else if (l->run->out.quiet) {
        buf_add(&l->text, screen_line(l->run->a, str_from(j->id), false));
        buf_addc(&l->text, '\n');
    } else {
        document_cell(&l->table, str_from(j->id));
        document_cell(&l->table, cmd_job__how(l->run->a, j));
        document_cell(&l->table, str_from(j->started_at));
        document_cell(&l->table, str_from(j->ended_at));
        document_cell(&l->table, str_from(strcmp(j->command, SHELL_INTERACTIVE) == 0 ? "shell" : j->command));
    }
    return l->text.over;
}

int cmd_job_list(Run *r)
{
    static const char *const heads[] = {"JOB", "STATE", "STARTED", "ENDED", "COMMAND"};
    CmdJobList l = {.run = r, .text = buf_make(LIMIT_DOCUMENT),
                    .table = document_table(r->a, COUNT_OF(heads), r->out.out_terminal)};
    ABX_UNSET abx_error e;
    abx_sandbox *box = run_can_print(&e) ? run_attach(r, &e) : NULL;
    int          status;

    l.json = json_out(&l.text, JSON_PRETTY);
    if (r->out.json)
        json_begin(&l.json, '[');
    for (size_t i = 0; i < COUNT_OF(heads); i++)
        document_cell(&l.table, str_from(heads[i]));
    if (box && abx_jobs(box, cmd_job__each, &l, &e) == 0) {
        if (r->out.json) {
            json_end(&l.json, ']');
            buf_addc(&l.text, '\n');
        } else if (!r->out.quiet) {
            document_table_end(&l.table, &l.text);
        }
        status = run_result(r, buf_str(&l.text));
    } else {
        status = run_fail(r, &e);
    }
    buf_free(&l.text);
    abx_sandbox_free(box);
    return status;
}

/* ---- logs, wait ---- */

typedef struct CmdJobSeek {
    const char *id;
    uint64_t    printed;
} CmdJobSeek;

static int cmd_job__seek(void *ctx, const abx_job *j)
{
    CmdJobSeek *s = ctx;

    if (strcmp(j->id, s->id) == 0)
        s->printed = j->printed;
    return strcmp(j->id, s->id) == 0;
}

static int cmd_job__attach(Run *r, abx_sandbox *box, Shape *s, const FollowJob *job, abx_error *e)
{
    abx_exec *x = abx_job_attach(box, r->args->words[1], &(abx_attach_options){.watch = 1}, e);
    int       status = x ? follow_to_end(r, x, s, NULL, job) : run_fail(r, e);

    abx_exec_free(x);
    return status;
}

static int cmd_job__look(Run *r, Shape s, FollowJob job, bool follow)
{
    CmdJobSeek   seek = {.id = r->args->words[1]};
    ABX_UNSET abx_error e;
    abx_sandbox *box = run_can_print(&e) ? run_attach(r, &e) : NULL;
    bool         ok = box && (follow || abx_jobs(box, cmd_job__seek, &seek, &e) == 0);

    job.until = follow ? UINT64_MAX : seek.printed;
    int status = ok ? cmd_job__attach(r, box, &s, &job, &e) : run_fail(r, &e);
    shape_free(&s);
    abx_sandbox_free(box);
    return status;
}

int cmd_job_logs(Run *r)
{
    return cmd_job__look(r, shape_logs(r), (FollowJob){.silent = false}, args_flag(r->args, "follow"));
}

int cmd_job_wait(Run *r)
{
    run_pass(r, !r->out.json);
    return cmd_job__look(r, shape_result(r), (FollowJob){.silent = true}, true);
}

/* ---- kill, rm ---- */

/* "TERM", "SIGTERM", "15". */
static bool cmd_job__signal(const char *text, int64_t *number, Err *err)
{
    static const char names[][8] = {
        "", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
        "WINCH", "IO", "PWR", "SYS",
    };
    const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;

    for (size_t i = 1; i < COUNT_OF(names); i++)
        if (strcasecmp(name, names[i]) == 0) {
            *number = (int64_t)i;
            return true;
        }
    if (num_i64(str_from(text), number) && *number >= 1 && *number <= 64)
        return true;
    err_set(err, ERR_USAGE, E8002, "--signal: there is no signal '%s'", text);
    return err_hint(err, "Write a name, such as INT, or a number from 1 to 64.");
}

/* Each job that is named; the first failure decides the exit status. `number` 0:
 * it is forgotten. */
static int cmd_job__each_named(Run *r, int number)
{
    ABX_UNSET abx_error e;
    abx_sandbox *box = run_can_print(&e) ? run_attach(r, &e) : NULL;
    bool         list = r->args->word_count > 2;
    Buf          text = buf_make(LIMIT_DOCUMENT);
    JsonOut      w = json_out(&text, JSON_PRETTY);
    size_t       done = 0;
    int          status = box ? 0 : run_fail(r, &e);

    if (list)
        json_begin(&w, '[');
    for (size_t i = 1; box && i < r->args->word_count && !run_signal(r); i++) {
        const char *id = r->args->words[i];
        if ((number ? abx_job_signal(box, id, number, &e) : abx_job_forget(box, id, &e)) != 0) {
            int failed = run_fail(r, &e);
            status = status ? status : failed;
            continue;
        }
        done++;
        json_begin(&w, '{');
        document_string(&w, "job", id);
        if (number) {
            json_key(&w, "signal");
            json_put_int(&w, number);
        }
        json_end(&w, '}');
    }
    if (list)
        json_end(&w, ']');
    buf_addc(&text, '\n');
    int printed = done && r->out.json ? run_result(r, buf_str(&text)) : 0;
    buf_free(&text);
    abx_sandbox_free(box);
    return status ? status : printed;
}

int cmd_job_kill(Run *r)
{
    const char *signal = args_value(r->args, "signal");
    int64_t     number;
    ABX_UNSET Err err;

    if (!cmd_job__signal(signal ? signal : "TERM", &number, &err))
        return run_fail_own(r, &err);
    return cmd_job__each_named(r, (int)number);
}

int cmd_job_forget(Run *r)
{
    return cmd_job__each_named(r, 0);
}

/* ---- what was carried ---- */

int cmd_job_remove_agent(Run *r)
{
    ABX_UNSET abx_error e;
    abx_sandbox *box = run_can_print(&e) ? run_attach(r, &e) : NULL;
    int          removed = 0, status;

    if (box && abx_remove_agent(box, args_flag(r->args, "force"), &removed, &e) == 0) {
        Buf     text = buf_make(LIMIT_ERROR_BODY);
        JsonOut w = json_out(&text, JSON_PRETTY);
        json_begin(&w, '{');
        document_string(&w, "sandbox_id", abx_sandbox_id(box));
        document_flag(&w, "removed", removed > 0);
        json_end(&w, '}');
        if (!r->out.json) {
            buf_clear(&text);
            buf_add(&text, removed ? STR("removed") : STR("nothing was there"));
        }
        buf_addc(&text, '\n');
        status = run_end(r, &text);
    } else {
        status = run_fail(r, &e);
    }
    abx_sandbox_free(box);
    return status;
}
