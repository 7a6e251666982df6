#include "cli/cmd_exec.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/document.h"
#include "cli/values.h"

/* Where the output goes: each shape is one of these. */
typedef struct CmdExec CmdExec;

struct CmdExec {
    Run      *run;
    abx_exec *x;
    bool    (*output)(CmdExec *c, int fd, Str bytes, Err *err);
    bool    (*flush)(CmdExec *c, Err *err);     /* nothing more is there at the moment */
    int     (*end)(CmdExec *c, const abx_event *exit);
    Buf       out[3];           /* 1 and 2: what is held back of each stream */
    size_t    limit;            /* of what both hold */
};

enum {
    CMD_EXEC_TIMED_OUT = 124, CMD_EXEC_FAILED = 125,
    CMD_EXEC_BLOCK = 64 << 10,  /* as much is written at once, while more is there */
};

/* ---- as it comes ---- */

static bool cmd_exec__plain_flush(CmdExec *c, Err *err)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        if (c->out[fd].n && !output_bytes(&c->run->out, fd, buf_str(&c->out[fd]), err))
            return false;
        buf_clear(&c->out[fd]);
    }
    return true;
}

/* One of the two is empty whenever the other gathers, so their order is kept. */
static bool cmd_exec__plain(CmdExec *c, int fd, Str bytes, Err *err)
{
    int other = STDOUT_FILENO + STDERR_FILENO - fd;

    if ((c->out[other].n || c->out[fd].n + bytes.n > CMD_EXEC_BLOCK) && !cmd_exec__plain_flush(c, err))
        return false;
    if (bytes.n > CMD_EXEC_BLOCK)
        return output_bytes(&c->run->out, fd, bytes, err);
    buf_add(&c->out[fd], bytes);
    return true;
}

static int cmd_exec__plain_end(CmdExec *c, const abx_event *exit)
{
    if (exit->timed_out)
        return CMD_EXEC_TIMED_OUT;
    if (exit->exit_code >= 0)
        return exit->exit_code;
    if (exit->signal > 0)
        return 128 + exit->signal;
    Err err;
    err_set(&err, ERR_REMOTE, E3000, "a signal ended the command, and the backend does not say which");
    return run_fail_own(c->run, &err);
}

/* ---- lines of JSON ---- */

static bool cmd_exec__line(CmdExec *c, int fd, Str bytes, Err *err)
{
    Buf     text = buf_make(LIMIT_DOCUMENT);
    JsonOut w = json_out(&text, JSON_COMPACT);

    json_begin(&w, '{');
    json_key(&w, "stream");
    json_put_str(&w, fd == STDOUT_FILENO ? STR("stdout") : STR("stderr"));
    document_bytes(&w, "data", bytes);
    json_end(&w, '}');
    buf_addc(&text, '\n');
    bool ok = text.over ? err_set(err, ERR_LIMIT, E3000, "the command printed too much at once")
                        : output_result(&c->run->out, buf_str(&text), err);
    buf_free(&text);
    return ok;
}

/* How many bytes at the end may be the start of a character whose rest has not
 * come yet. */
static size_t cmd_exec__unfinished(Str bytes)
{
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};

    for (size_t n = 1; n <= 3 && n <= bytes.n; n++) {
        unsigned char b = (unsigned char)bytes.p[bytes.n - n];
        if ((b & 0xc0) != 0x80)
            return b >= leads[n] && b >= 0xc0 ? n : 0;
    }
    return 0;
}

static bool cmd_exec__lines(CmdExec *c, int fd, Str bytes, Err *err)
{
    Buf *held = &c->out[fd];

    buf_add(held, bytes);
    Str    all = buf_str(held);
    size_t rest = utf8_good(all) < all.n ? cmd_exec__unfinished(all) : 0;
    if (all.n > rest && !cmd_exec__line(c, fd, (Str){all.p, all.n - rest}, err))
        return false;
    buf_drop(held, all.n - rest);
    return true;
}

/* A character that never was finished is given as the bytes it is. */
static bool cmd_exec__lines_rest(CmdExec *c, Err *err)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (c->out[fd].n && !cmd_exec__line(c, fd, buf_str(&c->out[fd]), err))
            return false;
    return true;
}

static void cmd_exec__result(JsonOut *w, const abx_event *exit)
{
    json_key(w, exit->exit_code >= 0 ? "exit_code" : "signal");
    if (exit->exit_code >= 0)
        json_put_int(w, exit->exit_code);
    else if (exit->signal > 0)
        json_put_int(w, exit->signal);
    else
        json_put_null(w);
}

static void cmd_exec__result_end(JsonOut *w, const abx_event *exit)
{
    json_key(w, "duration_ms");
    json_put_int(w, exit->duration_ms);
    if (exit->timed_out) {
        json_key(w, "timed_out");
        json_put_bool(w, true);
    }
}

static int cmd_exec__lines_end(CmdExec *c, const abx_event *exit)
{
    Buf     text = buf_make(LIMIT_ERROR_BODY);
    JsonOut w = json_out(&text, JSON_COMPACT);
    Err     err;

    json_begin(&w, '{');
    cmd_exec__result(&w, exit);
    cmd_exec__result_end(&w, exit);
    json_end(&w, '}');
    buf_addc(&text, '\n');
    int status = cmd_exec__lines_rest(c, &err) ? run_result(c->run, buf_str(&text)) : run_fail_own(c->run, &err);
    buf_free(&text);
    return status;
}

/* ---- one document ---- */

static bool cmd_exec__gather(CmdExec *c, int fd, Str bytes, Err *err)
{
    if (bytes.n > c->limit - c->out[1].n - c->out[2].n) {
        err_set(err, ERR_LIMIT, E3000, "the command printed more than the %zu bytes that --json holds in memory",
                c->limit);
        return err_hint(err, "Use shell-stream --json, or leave out --json: neither has such a limit.");
    }
    buf_add(&c->out[fd], bytes);
    return true;
}

static int cmd_exec__gather_end(CmdExec *c, const abx_event *exit)
{
    Buf     text = buf_make(LIMIT_DOCUMENT);
    JsonOut w = json_out(&text, JSON_PRETTY);

    json_begin(&w, '{');
    cmd_exec__result(&w, exit);
    document_bytes(&w, "stdout", buf_str(&c->out[1]));
    document_bytes(&w, "stderr", buf_str(&c->out[2]));
    cmd_exec__result_end(&w, exit);
    json_end(&w, '}');
    buf_addc(&text, '\n');
    int status = run_result(c->run, buf_str(&text));
    buf_free(&text);
    return status;
}

static bool cmd_exec__nothing_held(CmdExec *c, Err *err)
{
    (void)c;
    (void)err;
    return true;
}

/* ---- running it ---- */

/* Something here went wrong, or somebody wants to stop: the remote command is
 * stopped too. A second signal ends abx at once. */
static int cmd_exec__stop(CmdExec *c, const abx_error *why, bool silent)
{
    abx_error e;

    run_release(c->run);
    if (abx_exec_kill(c->x, &e) != 0)
        output_notice(&c->run->out, arena_fmt(c->run->a, "the command may still run: %s", e.message).p);
    return silent ? CMD_EXEC_FAILED : run_fail(c->run, why);
}

static int cmd_exec__stop_own(CmdExec *c, const Err *err)
{
    abx_error e;

    if (err->sys == EPIPE) {
        cmd_exec__stop(c, NULL, true);
        return run_fail_own(c->run, err);
    }
    output_own(&e, err);
    return cmd_exec__stop(c, &e, err->kind == ERR_CANCELLED && c->run->passes);
}

/* What was printed before a failure is part of the truth, too. */
static int cmd_exec__unknown(CmdExec *c, const abx_error *e)
{
    Err err;

    if (e->kind == ABX_CANCELLED)
        return cmd_exec__stop(c, e, c->run->passes);
    if (!c->flush(c, &err))
        return cmd_exec__stop_own(c, &err);
    return run_fail(c->run, e);
}

static int cmd_exec__pump(CmdExec *c)
{
    abx_event event;
    abx_error e;
    Err       err;

    for (;;) {
        int got = abx_exec_next(c->x, 0, &event, &e);
        if (got == 0) {
            if (!c->flush(c, &err))
                return cmd_exec__stop_own(c, &err);
            got = abx_exec_next(c->x, 1, &event, &e);
        }
        if (got < 0)
            return cmd_exec__unknown(c, &e);
        if (got > 0 && event.kind == ABX_EXIT)
            break;
        int fd = event.kind == ABX_STDOUT ? STDOUT_FILENO : STDERR_FILENO;
        if (got > 0 && !c->output(c, fd, (Str){event.bytes, event.size}, &err))
            return cmd_exec__stop_own(c, &err);
    }
    return c->flush(c, &err) ? c->end(c, &event) : run_fail_own(c->run, &err);
}

static bool cmd_exec__options(Run *r, abx_exec_options *o, Err *err)
{
    const char *timeout = args_value(r->args, "timeout");
    ValuesPairs env = {0};
    int64_t     ms = 0;

    *o = (abx_exec_options){
        .argv = r->args->words + 1,
        .argc = r->args->word_count - 1,
        .cwd = args_value(r->args, "workdir"),
    };
    if (timeout && !values_duration("--timeout", timeout, &ms, err))
        return false;
    o->timeout_ms = ms < 0 ? 0 : ms;
    if (!values_env(r->args, r->a, &env, err))
        return false;
    o->env = env.p;
    o->env_count = env.n;
    return true;
}

static int cmd_exec__start(CmdExec *c, const abx_exec_options *o)
{
    abx_error    e;
    abx_sandbox *box = run_attach(c->run, &e);
    int          status;

    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        c->out[fd] = buf_make(LIMIT_DOCUMENT);
    c->limit = LIMIT_GATHER;
    c->x = box ? abx_exec_start(box, o, &e) : NULL;
    status = c->x ? cmd_exec__pump(c) : run_fail(c->run, &e);
    abx_exec_free(c->x);
    abx_sandbox_free(box);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        buf_free(&c->out[fd]);
    return status;
}

static const CmdExec cmd_exec__as_it_comes = {
    .output = cmd_exec__plain, .flush = cmd_exec__plain_flush, .end = cmd_exec__plain_end,
};
static const CmdExec cmd_exec__as_lines = {
    .output = cmd_exec__lines, .flush = cmd_exec__nothing_held, .end = cmd_exec__lines_end,
};
static const CmdExec cmd_exec__as_document = {
    .output = cmd_exec__gather, .flush = cmd_exec__nothing_held, .end = cmd_exec__gather_end,
};

static bool cmd_exec__missing(Err *err)
{
    err_set(err, ERR_USAGE, E8002, "Missing argument COMMAND");
    return err_hint(err, "One word is a line for the shell, several are a program and its arguments.");
}

int cmd_exec_run(Run *r)
{
    CmdExec c = r->out.json ? cmd_exec__as_document : cmd_exec__as_it_comes;
    abx_exec_options o;
    abx_error e;
    Err       err;

    c.run = r;
    r->passes = !r->out.json;
    if (!cmd_exec__options(r, &o, &err) || (o.argc == 0 && !cmd_exec__missing(&err)))
        return run_fail_own(r, &err);
    if (r->out.json && !run_can_print(&e))
        return run_fail(r, &e);
    return cmd_exec__start(&c, &o);
}

int cmd_exec_stream(Run *r)
{
    CmdExec     c = r->out.json ? cmd_exec__as_lines : cmd_exec__as_it_comes;
    const char *line = args_value(r->args, "command");
    abx_exec_options o;
    abx_error e;
    Err       err;

    c.run = r;
    r->passes = !r->out.json;
    if (!cmd_exec__options(r, &o, &err))
        return run_fail_own(r, &err);
    if (line && o.argc) {
        err_set(&err, ERR_USAGE, E8002, "The command is given twice: by --command and as an argument");
        return run_fail_own(r, &err);
    }
    if (line) {
        o.argv = &line;
        o.argc = 1;
    }
    if (o.argc == 0 && !cmd_exec__missing(&err))
        return run_fail_own(r, &err);
    if (r->out.json && !run_can_print(&e))
        return run_fail(r, &e);
    return cmd_exec__start(&c, &o);
}
