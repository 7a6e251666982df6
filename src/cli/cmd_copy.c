#include "cli/cmd_copy.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "cli/document.h"
#include "cli/screen.h"
#include "cli/values.h"
#include "os/poll.h"

/* Standard input or output as a flow of abx.h, and how it failed. */
typedef struct CmdCopyPipe {
    const Output *out;
    bool          failed;
    Err           err;
} CmdCopyPipe;

static ptrdiff_t cmd_copy__read(void *ctx, void *p, size_t size)
{
    CmdCopyPipe *pipe = ctx;

    for (;;) {
        pipe->failed = !poll_one(STDIN_FILENO, POLLIN, pipe->out->cancel_fd, DEADLINE_NONE, &pipe->err);
        if (pipe->failed) {
            errno = EINTR;
            return -1;
        }
        ssize_t n = read(STDIN_FILENO, p, size);
        if (n >= 0)
            return n;
        if (errno != EINTR && errno != EAGAIN) {
            int sys = errno;
            pipe->failed = !err_sys(&pipe->err, sys, E4000, "cannot read standard input");
            errno = sys;
            return -1;
        }
    }
}

static int cmd_copy__write(void *ctx, const void *p, size_t size)
{
    CmdCopyPipe *pipe = ctx;

    pipe->failed = !output_bytes(pipe->out, STDOUT_FILENO, (Str){p, size}, &pipe->err);
    errno = !pipe->failed ? 0 : pipe->err.sys ? pipe->err.sys : EINTR;
    return pipe->failed ? -1 : 0;
}

/* The last part of a path, as a name for the other side. */
static bool cmd_copy__last(const char *path, Str *name, Err *err)
{
    Str s = str_from(path);

    while (s.n && s.p[s.n - 1] == '/')
        s.n--;
    *name = s;
    for (size_t i = s.n; i > 0; i--)
        if (s.p[i - 1] == '/') {
            *name = (Str){s.p + i, s.n - i};
            break;
        }
    if (name->n == 0 || str_eq(*name, STR(".")) || str_eq(*name, STR("..")) || str_eq(*name, STR("-")))
        return err_set(err, ERR_USAGE, E8002, "'%s' does not end in the name of a file", path);
    return true;
}

static bool cmd_copy__is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int cmd_copy__moved(const Run *r, const char *path, int64_t size)
{
    Buf text = buf_make(LIMIT_DOCUMENT);

    if (r->out.json) {
        JsonOut w = json_out(&text, JSON_PRETTY);
        json_begin(&w, '{');
        json_key(&w, "path");
        json_put_str(&w, str_from(path));
        json_key(&w, "size");
        json_put_int(&w, size);
        json_end(&w, '}');
        buf_addc(&text, '\n');
    } else if (!r->out.quiet) {
        buf_add(&text, screen_line(r->a, str_from(path), false));
        buf_addf(&text, ": %lld bytes\n", (long long)size);
    }
    int status = run_result(r, buf_str(&text));
    buf_free(&text);
    return status;
}

/* A flow of ours that failed knows the reason better than the call it failed. */
static int cmd_copy__failed(const Run *r, const CmdCopyPipe *pipe, const abx_error *e)
{
    return pipe->failed ? run_fail_own(r, &pipe->err) : run_fail(r, e);
}

/* upload ID LOCAL REMOTE; a REMOTE that ends in '/' is a folder. */
static bool cmd_copy__remote(const Run *r, const char **remote, Err *err)
{
    const char *local = r->args->words[1];
    Str         name, folder = str_from(r->args->words[2]);

    *remote = folder.p;
    if (!str_ends(folder, STR("/")))
        return true;
    if (!cmd_copy__last(local, &name, err))
        return false;
    *remote = arena_fmt(r->a, "%s%s", folder.p, name.p).p;
    return true;
}

int cmd_copy_upload(Run *r)
{
    const char *local = r->args->words[1], *remote;
    CmdCopyPipe pipe = {.out = &r->out};
    ABX_UNSET abx_error   e;
    ABX_UNSET Err         err;

    if (!cmd_copy__remote(r, &remote, &err))
        return run_fail_own(r, &err);
    if (strcmp(local, "-") == 0 && values_take_input(r->args, r->a)) {
        err_set(&err, ERR_USAGE, E8002, "Standard input cannot hold both the file and a setting");
        return run_fail_own(r, &err);
    }
    abx_sandbox *box = run_can_print(&e) ? run_attach(r, &e) : NULL;
    int64_t      size = -1;
    if (box && strcmp(local, "-") == 0)
        size = abx_write_file(box, remote, -1, -1, cmd_copy__read, &pipe, &e);
    else if (box)
        size = abx_upload(box, local, remote, &e);
    int status = size < 0 ? cmd_copy__failed(r, &pipe, &e) : cmd_copy__moved(r, remote, size);
    abx_sandbox_free(box);
    return status;
}

/* download ID REMOTE [LOCAL]; a LOCAL that is a folder takes the file's name,
 * and so does the working directory. */
static bool cmd_copy__local(const Run *r, const char **local, Err *err)
{
    const char *remote = r->args->words[1];
    Str         name;

    *local = r->args->word_count > 2 ? r->args->words[2] : ".";
    if (strcmp(*local, "-") == 0 || (!str_ends(str_from(*local), STR("/")) && !cmd_copy__is_dir(*local)))
        return true;
    if (!cmd_copy__last(remote, &name, err))
        return false;
    if (r->args->word_count == 2)
        *local = arena_cstr(r->a, name);
    else
        *local = arena_fmt(r->a, "%s%s%.*s", *local, str_ends(str_from(*local), STR("/")) ? "" : "/", STR_ARG(name)).p;
    return true;
}

int cmd_copy_download(Run *r)
{
    const char *remote = r->args->words[1], *local;
    CmdCopyPipe pipe = {.out = &r->out};
    ABX_UNSET abx_error   e;
    ABX_UNSET Err         err;

    if (!cmd_copy__local(r, &local, &err))
        return run_fail_own(r, &err);
    bool to_stdout = strcmp(local, "-") == 0;
    if (to_stdout && r->out.json) {
        err_set(&err, ERR_USAGE, E8002, "The file and the document of --json cannot both go to standard output");
        return run_fail_own(r, &err);
    }
    abx_sandbox *box = run_can_print(&e) ? run_attach(r, &e) : NULL;
    int64_t      size = -1;
    if (box)
        size = to_stdout ? abx_read_file(box, remote, cmd_copy__write, &pipe, &e) : abx_download(box, remote, local, &e);
    int status = size < 0 ? cmd_copy__failed(r, &pipe, &e) : to_stdout ? 0 : cmd_copy__moved(r, local, size);
    abx_sandbox_free(box);
    return status;
}
