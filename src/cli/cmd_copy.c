#include "cli/cmd_copy.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/document.h"
#include "cli/pipe.h"
#include "cli/progress.h"
#include "cli/screen.h"
#include "cli/values.h"
#include "os/signal.h"

typedef struct CmdCopyFailure { const char *path, *reason; } CmdCopyFailure;

typedef struct CmdCopy {
    Run             *run;
    const char      *from, *to;     /* sandboxes; NULL: this machine */
    abx_copy_options o;
    Run              second;        /* its session is that of `to`, where the two have providers of their own */
    Progress         progress;
    bool             piped;         /* `-` is one of the two */
    int64_t          moved;         /* through it */
    Pipe             pipe;
    CmdCopyFailure  *list;          /* of entries that failed, for the document */
    size_t           listed;
} CmdCopy;

/* ---- what is told ---- */

static void cmd_copy__event(void *ctx, const abx_copy_event *ev)
{
    CmdCopy *c = ctx;
    Arena   *a = c->run->a;

    progress_event(&c->progress, ev);
    if (ev->kind != ABX_COPY_FAILED || !c->run->out.json || c->listed == LIMIT_COPY_LISTED)
        return;
    if (!c->list)
        c->list = arena_array(a, LIMIT_COPY_LISTED, sizeof *c->list);
    c->list[c->listed++] = (CmdCopyFailure){arena_cstr(a, str_from(ev->path)), arena_cstr(a, str_from(ev->reason))};
}

static void cmd_copy__document(const CmdCopy *c, const abx_copied *done, const char *path, bool one, Buf *text)
{
    JsonOut w = json_out(text, JSON_PRETTY);

    json_begin(&w, '{');
    document_string(&w, "path", path);
    json_key(&w, "size");
    json_put_int(&w, done->bytes);
    if (one && *done->sha256)
        document_string(&w, "sha256", done->sha256);
    if (!one) {
        json_key(&w, "files");
        json_put_int(&w, done->files);
        json_key(&w, "failed_count");
        json_put_int(&w, done->failed);
        json_key(&w, "failed");
        json_begin(&w, '[');
        for (size_t i = 0; i < c->listed; i++) {
            json_begin(&w, '{');
            document_string(&w, "path", c->list[i].path);
            document_string(&w, "reason", c->list[i].reason);
            json_end(&w, '}');
        }
        json_end(&w, ']');
    }
    json_end(&w, '}');
    buf_addc(text, '\n');
}

static int cmd_copy__result(const CmdCopy *c, const abx_copied *done)
{
    const Run  *r = c->run;
    bool        one = !done->tree && done->files == 1 && done->failed == 0 && *done->path;
    const char *path = one ? done->path : c->o.target;
    Buf         text = buf_make(LIMIT_DOCUMENT);

    /* The working directory goes without saying. */
    if (one && strcmp(c->o.target, ".") == 0 && strncmp(path, "./", 2) == 0)
        path += 2;
    if (r->out.json) {
        cmd_copy__document(c, done, path, one, &text);
    } else if (!r->out.quiet) {
        buf_addf(&text, "%s: ", screen_line(r->a, str_from(path), false).p);
        if (!one)
            buf_addf(&text, "%lld file%s, ", (long long)done->files, done->files == 1 ? "" : "s");
        buf_addf(&text, "%lld byte%s", (long long)done->bytes, done->bytes == 1 ? "" : "s");
        if (done->failed)
            buf_addf(&text, "; %lld failed", (long long)done->failed);
        buf_addc(&text, '\n');
    }
    int status = run_end(r, &text);
    return status ? status : done->failed != 0;
}

/* ---- standard input and output as a flow of abx.h ---- */

static void cmd_copy__piped(CmdCopy *c, size_t n)
{
    c->moved += (int64_t)n;
    progress_event(&c->progress, &(abx_copy_event){.bytes = c->moved, .total = -1, .total_files = 1});
}

static ptrdiff_t cmd_copy__read(void *ctx, void *p, size_t size)
{
    CmdCopy  *c = ctx;
    ptrdiff_t n = pipe_read(&c->pipe, p, size);

    if (n > 0)
        cmd_copy__piped(c, (size_t)n);
    return n;
}

static int cmd_copy__write(void *ctx, const void *p, size_t size)
{
    CmdCopy *c = ctx;
    int      failed = pipe_write(&c->pipe, p, size);

    if (!failed)
        cmd_copy__piped(c, size);
    return failed;
}

static bool cmd_copy__pipe(CmdCopy *c, abx_copied *done, abx_error *e)
{
    const char *path = c->o.paths[0];

    if (c->o.to)
        done->bytes = abx_write_file(c->o.to, path = c->o.target, -1, -1, cmd_copy__read, c, e);
    else
        done->bytes = abx_read_file(c->o.from, path, cmd_copy__write, c, e);
    done->files = 1;
    snprintf(done->path, sizeof done->path, "%s", path);
    return done->bytes >= 0;
}

/* ---- doing it ---- */

/* The provider's part of a sandbox's name. */
static Str cmd_copy__provider(const char *ref)
{
    const char *colon = strrchr(ref, ':');

    return (Str){ref, colon ? (size_t)(colon - ref) : 0};
}

static bool cmd_copy__attach(CmdCopy *c, abx_error *e)
{
    Run *r = c->run;

    if (c->from && !(run_open(r, c->from, e) && (c->o.from = abx_attach(r->session, c->from, e))))
        return false;
    if (!c->to)
        return true;
    if (!c->from && !run_open(r, c->to, e))
        return false;
    if (c->from && !str_eq(cmd_copy__provider(c->from), cmd_copy__provider(c->to))) {
        c->second = *r;
        c->second.session = NULL;
        r = &c->second;
        if (!run_open(r, c->to, e))
            return false;
    }
    c->o.to = abx_attach(r->session, c->to, e);
    return c->o.to != NULL;
}

/* What is known to be wrong before anybody is asked. */
static bool cmd_copy__check(CmdCopy *c, Err *err)
{
    const abx_copy_options *o = &c->o;
    bool out = !c->to && strcmp(o->target, "-") == 0, in = false;

    for (size_t i = 0; i < o->path_count; i++)
        in = in || (!c->from && strcmp(o->paths[i], "-") == 0);
    c->piped = in || out;
    if (!c->piped)
        return true;
    if (o->path_count > 1)
        return err_set(err, ERR_USAGE, E8002, "`-` is one file, and goes alone") ||
               err_hint(err, "A file of that name is written ./-.");
    if (o->user || o->resume || o->verify > 0)
        return err_set(err, ERR_USAGE, E8002, "-u, --resume and --verify are not for `-`, which is checked by its size alone");
    if (out && c->run->out.json)
        return err_set(err, ERR_USAGE, E8002, "The file and the document of --json cannot both go to standard output");
    if (in && values_take_input(c->run->args, c->run->a))
        return err_set(err, ERR_USAGE, E8002, "Standard input cannot hold both the file and a setting");
    if (in && str_ends(str_from(o->target), STR("/")))
        return err_set(err, ERR_USAGE, E8002, "'-' does not end in the name of a file");
    return true;
}

static bool cmd_copy__options(CmdCopy *c, Err *err)
{
    const Args *args = c->run->args;
    bool verify = args_flag(args, "verify"), not = args_flag(args, "no-verify");

    c->o.size = sizeof c->o;
    c->o.user = args_value(args, "user");
    c->o.verify = verify ? 1 : not ? 0 : -1;
    c->o.resume = args_flag(args, "resume");
    c->o.event = cmd_copy__event;
    c->o.ctx = c;
    if (verify && not)
        return err_set(err, ERR_USAGE, E8002, "--verify and --no-verify contradict each other");
    return cmd_copy__check(c, err) && progress_open(&c->progress, c->run, c->piped && !c->to, err);
}

static int cmd_copy__run(CmdCopy *c)
{
    ABX_UNSET abx_copied done;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;
    int status;

    done.failed = done.tree = 0;
    done.sha256[0] = '\0';
    c->pipe.out = &c->run->out;
    if (!cmd_copy__options(c, &err))
        return run_fail_own(c->run, &err);
    /* While the first Ctrl-C is cleaned up after, another need not wait for it. */
    signal_once();
    bool ok = run_can_print(&e) && cmd_copy__attach(c, &e) &&
              (c->piped ? cmd_copy__pipe(c, &done, &e) : abx_copy(&c->o, &done, &e) == 0);
    progress_close(&c->progress, ok ? &done : NULL);
    if (ok)
        status = c->piped && !c->to ? 0 : cmd_copy__result(c, &done);
    else
        status = pipe_fail(c->run, &c->pipe, &e);
    abx_sandbox_free(c->o.from);
    abx_sandbox_free(c->o.to);
    abx_close(c->second.session);
    return status;
}

/* ---- the verbs ---- */

/* The words from `first` on: sources, and the target last. */
static CmdCopy cmd_copy__words(Run *r, size_t first)
{
    const Args *args = r->args;

    return (CmdCopy){.run = r, .o = {.paths = args->words + first, .path_count = args->word_count - first - 1,
                                     .target = args->words[args->word_count - 1]}};
}

int cmd_copy_upload(Run *r)
{
    CmdCopy c = cmd_copy__words(r, 1);

    c.to = r->args->words[0];
    return cmd_copy__run(&c);
}

int cmd_copy_download(Run *r)
{
    CmdCopy c = cmd_copy__words(r, 1);

    c.from = r->args->words[0];
    if (c.o.path_count == 0) {
        c.o.path_count = 1;
        c.o.target = ".";
    }
    return cmd_copy__run(&c);
}

/* ID:PATH is split at the last colon in front of the first '/'; a word without
 * one is a path here. */
static bool cmd_copy__word(const char *word, Arena *a, const char **box, const char **path, Err *err)
{
    size_t head = strcspn(word, "/");

    while (head > 0 && word[head - 1] != ':')
        head--;
    *box = NULL;
    *path = word;
    if (head == 0)
        return true;
    *box = arena_cstr(a, (Str){word, head - 1});
    *path = word + head;
    if (head == 1 || !**path) {
        err_set(err, ERR_USAGE, E8002, "'%s' names no %s", word, head == 1 ? "sandbox" : "path in the sandbox");
        return err_hint(err, "ID:PATH is in a sandbox; a path here that has a colon is written ./%s.", word);
    }
    if (utf8_valid(str_from(word)))
        return true;
    err_set(err, ERR_USAGE, E8002, "An argument is not UTF-8: '%s'", word);
    return err_hint(err, "Only names of local files may hold other bytes.");
}

static bool cmd_copy__sides(CmdCopy *c, Err *err)
{
    Arena       *a = c->run->a;
    const char **paths = arena_array(a, c->o.path_count, sizeof *paths), *box;

    for (size_t i = 0; i < c->o.path_count; i++) {
        if (!cmd_copy__word(c->o.paths[i], a, &box, &paths[i], err))
            return false;
        if (i && (!box != !c->from || (box && strcmp(box, c->from) != 0)))
            return err_set(err, ERR_USAGE, E8002, "The sources are not all in one place") ||
                   err_hint(err, "Copy from one sandbox, or from here, at a time.");
        c->from = box;
    }
    c->o.paths = paths;
    if (!cmd_copy__word(c->o.target, a, &c->to, &c->o.target, err))
        return false;
    if (c->from || c->to)
        return true;
    err_set(err, ERR_USAGE, E8002, "Nothing of this is in a sandbox");
    return err_hint(err, "ID:PATH is in a sandbox; for files of this machine there is `cp`.");
}

int cmd_copy_between(Run *r)
{
    CmdCopy c = cmd_copy__words(r, 0);
    ABX_UNSET Err err;

    return cmd_copy__sides(&c, &err) ? cmd_copy__run(&c) : run_fail_own(r, &err);
}
