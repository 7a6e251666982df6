#include "cli/cmd_file.h"

#include "base/limits.h"
#include "base/str.h"
#include "cli/document.h"
#include "cli/pipe.h"
#include "cli/screen.h"
#include "cli/values.h"

/* ---- bytes ---- */

int cmd_file_cat(Run *r)
{
    Pipe         pipe = {.out = &r->out};
    abx_sandbox *box = NULL;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;
    int          status = 0;

    if (r->out.json) {
        err_set(&err, ERR_USAGE, E8002, "--json has no document for the bytes of files");
        return run_fail_own(r, &err);
    }
    if (!run_can_print(&e) || !(box = run_attach(r, &e)))
        return run_fail(r, &e);
    for (size_t i = 1; i < r->args->word_count; i++) {
        if (abx_read_file(box, r->args->words[i], pipe_write, &pipe, &e) >= 0)
            continue;
        if (pipe.failed)
            status = pipe_fail(r, &pipe, &e);
        if (pipe.failed || !run_fail_one(r, &e, &status))
            break;
    }
    abx_sandbox_free(box);
    return status;
}

/* Up to four octal digits; -1: it is something else. */
static int cmd_file__octal(const char *text)
{
    int mode = 0;
    size_t n = strlen(text);

    for (const char *p = text; *p; p++)
        mode = *p < '0' || *p > '7' || n > 4 ? -1 : mode < 0 ? mode : mode * 8 + *p - '0';
    return n ? mode : -1;
}

int cmd_file_write(Run *r)
{
    const char *path = r->args->words[1], *digits = args_value(r->args, "mode");
    int         mode = digits ? cmd_file__octal(digits) : -1;
    Pipe        pipe = {.out = &r->out};
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    if (digits && mode < 0) {
        err_set(&err, ERR_USAGE, E8002, "--mode: '%s' is no octal number of up to four digits", digits);
        return run_fail_own(r, &err);
    }
    if (values_take_input(r->args, r->a)) {
        err_set(&err, ERR_USAGE, E8002, "Standard input cannot hold both the file and a setting");
        return run_fail_own(r, &err);
    }
    abx_sandbox *box = run_can_print(&e) ? run_attach(r, &e) : NULL;
    int64_t      size = box ? abx_write_file(box, path, mode, -1, pipe_read, &pipe, &e) : -1;
    int          status = 0;
    if (size >= 0 && digits && abx_chmod(box, path, digits, 0, &e) != 0)
        size = -1;              /* what was there kept its own, or the backend knows none */
    if (size < 0) {
        status = pipe_fail(r, &pipe, &e);
    } else if (r->out.json) {
        Buf     text = buf_make(LIMIT_DOCUMENT);
        JsonOut w = json_out(&text, JSON_PRETTY);
        json_begin(&w, '{');
        document_string(&w, "path", path);
        json_key(&w, "size");
        json_put_int(&w, size);
        json_end(&w, '}');
        buf_addc(&text, '\n');
        status = run_end(r, &text);
    }
    abx_sandbox_free(box);
    return status;
}

/* ---- names ---- */

typedef struct CmdFile {
    Run         *run;
    abx_sandbox *box;
    Buf          text;          /* an array of the paths that were changed */
    JsonOut      w;
    size_t       done;
    int          status;
} CmdFile;

static bool cmd_file__begin(CmdFile *f, Run *r, abx_error *e)
{
    *f = (CmdFile){.run = r, .text = buf_make(LIMIT_DOCUMENT)};
    f->w = json_out(&f->text, JSON_PRETTY);
    json_begin(&f->w, '[');
    f->box = run_can_print(e) ? run_attach(r, e) : NULL;
    return f->box != NULL;
}

static void cmd_file__done(CmdFile *f, const char *path)
{
    json_put_str(&f->w, str_from(path));
    f->done++;
}

static int cmd_file__end(CmdFile *f)
{
    int printed = 0;

    run_signal(f->run);         /* what was done is said nevertheless */
    json_end(&f->w, ']');
    buf_addc(&f->text, '\n');
    if (f->run->out.json && (f->done || !f->status))
        printed = run_result(f->run, buf_str(&f->text));
    buf_free(&f->text);
    abx_sandbox_free(f->box);
    return f->status ? f->status : printed;
}

static int cmd_file__refuse(abx_error *e, Code code, const char *path, const char *why, const char *hint)
{
    ABX_UNSET Err err;

    err_set(&err, code == E8002 ? ERR_USAGE : ERR_REMOTE, code, "%s%s", path, why);
    if (hint)
        err_hint(&err, "%s", hint);
    output_own(e, &err);
    return -1;
}

static bool cmd_file__missing(const abx_error *e)
{
    return strcmp(e->code, "E4001") == 0 || strcmp(e->code, "E8005") == 0;
}

/* Does one path: 1, 0 when there was nothing to do, or -1. */
typedef int CmdFileAct(const CmdFile *f, const char *path, abx_error *e);

static int cmd_file__each(Run *r, size_t first, CmdFileAct *act)
{
    ABX_UNSET abx_error e;
    CmdFile   f;

    if (!cmd_file__begin(&f, r, &e))
        f.status = run_fail(r, &e);
    for (size_t i = first; f.box && i < r->args->word_count; i++) {
        int did = act(&f, r->args->words[i], &e);
        if (did > 0)
            cmd_file__done(&f, r->args->words[i]);
        if (did < 0 && !run_fail_one(r, &e, &f.status))
            break;
    }
    return cmd_file__end(&f);
}

/* The part behind the last slash, where those at the end do not count; empty: the root. */
static Str cmd_file__last(const char *path)
{
    Str s = str_from(path);

    while (s.n && s.p[s.n - 1] == '/')
        s.n--;
    for (size_t i = s.n; i > 0; i--)
        if (s.p[i - 1] == '/')
            return (Str){s.p + i, s.n - i};
    return s;
}

/* Without -p a folder is new, and its parent is there. */
static int cmd_file__mkdir(const CmdFile *f, const char *path, abx_error *e)
{
    Arena a = *f->run->a;

    if (!args_flag(f->run->args, "parents")) {
        if (abx_stat(f->box, path, e))
            return cmd_file__refuse(e, E4000, path, " is there already", NULL);
        size_t above = (size_t)(cmd_file__last(path).p - path);
        if (!cmd_file__missing(e) || (above && !abx_stat(f->box, arena_fmt(&a, "%.*s", (int)above, path).p, e)))
            return -1;
    }
    return abx_make_folder(f->box, path, e) == 0 ? 1 : -1;
}

int cmd_file_mkdir(Run *r)
{
    return cmd_file__each(r, 1, cmd_file__mkdir);
}

static int cmd_file__rm(const CmdFile *f, const char *path, abx_error *e)
{
    bool gone = false;

    if (!args_flag(f->run->args, "recursive")) {
        const abx_file_info *i = abx_stat(f->box, path, e);
        if (i && i->type == ABX_FOLDER)
            return cmd_file__refuse(e, E4000, path, " is a folder", "-r removes it with all that is in it.");
        gone = !i;
    }
    if (!gone && abx_remove(f->box, path, e) == 0)
        return 1;
    return args_flag(f->run->args, "force") && cmd_file__missing(e) ? 0 : -1;
}

int cmd_file_rm(Run *r)
{
    ABX_UNSET abx_error e;

    for (size_t i = 1; i < r->args->word_count; i++) {
        Str last = cmd_file__last(r->args->words[i]);
        if (!last.n || str_eq(last, STR(".")) || str_eq(last, STR(".."))) {
            cmd_file__refuse(&e, E8002, r->args->words[i], " cannot be removed, nor was anything else", NULL);
            return run_fail(r, &e);
        }
    }
    return cmd_file__each(r, 1, cmd_file__rm);
}

/* A folder, or a link, which may lead to one, is moved into. */
static bool cmd_file__enter(const CmdFile *f, const char *to, abx_error *e)
{
    ABX_UNSET abx_error no;
    const abx_file_info *i = e->kind == ABX_FAILED && !e->retryable ? abx_stat(f->box, to, &no) : NULL;

    return i && (i->type == ABX_FOLDER || i->type == ABX_LINK);
}

int cmd_file_mv(Run *r)
{
    const char *from = r->args->words[1], *to = r->args->words[2], *end = str_ends(str_from(to), STR("/")) ? "" : "/";
    Str         last = cmd_file__last(from);
    ABX_UNSET abx_error e;
    CmdFile     f;
    bool        into = !*end, ok = false;

    if (!last.n || str_eq(last, STR(".")) || str_eq(last, STR(".."))) {
        cmd_file__refuse(&e, E8002, from, " cannot be moved", NULL);
        return run_fail(r, &e);
    }
    if (cmd_file__begin(&f, r, &e)) {
        if (!into)
            ok = abx_move(f.box, from, to, &e) == 0;
        if (into || (!ok && cmd_file__enter(&f, to, &e))) {
            to = arena_fmt(r->a, "%s%s%.*s", to, end, STR_ARG(last)).p;
            ok = abx_move(f.box, from, to, &e) == 0;
        }
    }
    if (ok)
        cmd_file__done(&f, to);
    else
        f.status = run_fail(r, &e);
    return cmd_file__end(&f);
}

static int cmd_file__chmod(const CmdFile *f, const char *path, abx_error *e)
{
    return abx_chmod(f->box, path, f->run->args->words[1], args_flag(f->run->args, "recursive"), e) == 0 ? 1 : -1;
}

int cmd_file_chmod(Run *r)
{
    return cmd_file__each(r, 2, cmd_file__chmod);
}

/* ---- what happens ---- */

static int cmd_file__event(Run *r, const abx_watch_event *ev)
{
    static const char *const words[] = {
        [ABX_CREATED] = "created", [ABX_CHANGED] = "changed", [ABX_REMOVED] = "removed", [ABX_LOST_TRACK] = "lost",
        [ABX_WATCHING] = "watching",
    };
    Arena a = *r->a;
    Buf   line = buf_make(LIMIT_DOCUMENT);
    Str   path = str_from(ev->path);

    if (r->out.json) {
        JsonOut w = json_out(&line, JSON_SPACED);
        json_begin(&w, '{');
        document_string(&w, "change", words[ev->change]);
        document_bytes(&w, "path", path);
        json_end(&w, '}');
        buf_addc(&line, '\n');
    } else if (ev->change == ABX_WATCHING) {
        output_notice(&r->out, arena_fmt(&a, "watching %s", ev->path).p);
    } else {
        buf_addf(&line, "%s ", words[ev->change]);
        buf_add(&line, r->out.out_terminal ? screen_line(&a, path, true) : path);
        buf_addc(&line, args_flag(r->args, "null") ? '\0' : '\n');
    }
    return run_end(r, &line);
}

int cmd_file_watch(Run *r)
{
    ABX_UNSET abx_error e;
    abx_watch_event     ev = {0};
    int             status = 0;
    abx_sandbox    *box = run_can_print(&e) ? run_attach(r, &e) : NULL;
    abx_watch      *w = box ? abx_watch_start(box, r->args->words[1], args_flag(r->args, "recursive"), &e) : NULL;

    while (w && !status && abx_watch_next(w, 1, &ev, &e) > 0)
        status = cmd_file__event(r, &ev);
    status = status ? status : run_stopped(r, &e);
    abx_watch_close(w);
    abx_sandbox_free(box);
    return status;
}
