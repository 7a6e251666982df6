#include "cli/output.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "cli/screen.h"
#include "data/json.h"
#include "os/poll.h"

/* A pipe that poll() calls writable takes this much without blocking. */
enum { OUTPUT_PIECE = 4096 };

static bool output__waits(int fd)
{
    ABX_UNSET struct stat st;

    return fstat(fd, &st) != 0 || !S_ISREG(st.st_mode);
}

bool output_bytes(const Output *o, int fd, Str bytes, Err *err)
{
    static const char *const names[] = {"standard input", "standard output", "standard error"};
    bool waits = output__waits(fd);

    while (bytes.n) {
        /* A file is ready at once, but somebody may have had enough. */
        if (!poll_one(fd, POLLOUT, o->cancel_fd, DEADLINE_NONE, err))
            return false;
        ssize_t n = write(fd, bytes.p, waits && bytes.n > OUTPUT_PIECE ? OUTPUT_PIECE : bytes.n);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return err_sys(err, errno, E0000, "cannot write to %s", names[fd]);
        if (n > 0)
            str_skip(&bytes, (size_t)n);
    }
    return true;
}

bool output_result(const Output *o, Str text, Err *err)
{
    if (!o->out_terminal)
        return output_bytes(o, STDOUT_FILENO, text, err);
    Buf  shown = buf_make(6 * text.n + 1);
    screen_add(&shown, text);
    bool ok = output_bytes(o, STDOUT_FILENO, buf_str(&shown), err);
    buf_free(&shown);
    return ok;
}

/* To stderr there is nobody left to tell about a failure. */
static void output__tell(Str text)
{
    Output patient = {.cancel_fd = -1};
    ABX_UNSET Err unheard;

    if (!output_bytes(&patient, STDERR_FILENO, text, &unheard))
        return;
}

void output_wipe(const Output *o)
{
    if (o->bar && *o->bar)
        output__tell(STR("\r\033[K"));
    if (o->bar)
        *o->bar = false;
}

void output_say(const Output *o, Str text)
{
    Buf shown = buf_make(6 * text.n + 1);

    output_wipe(o);
    if (o->err_terminal)
        screen_add(&shown, text);
    output__tell(o->err_terminal ? buf_str(&shown) : text);
    buf_free(&shown);
}

static void output__line(const Output *o, const char *head, const char *line)
{
    Arena a = arena_make(ARENA_COMMAND);
    Str   shown = screen_line(&a, str_from(line), o->err_terminal);
    Buf   text = buf_make(shown.n + 64);

    buf_add(&text, str_from(head));
    buf_add(&text, shown);
    buf_addc(&text, '\n');
    output_wipe(o);
    output__tell(buf_str(&text));
    buf_free(&text);
    arena_free(&a);
}

void output_notice(void *ctx, const char *line)
{
    const Output *o = ctx;

    if (!o->quiet)
        output__line(o, "abx: ", line);
}

void output_trace(void *ctx, const char *line)
{
    output__line(ctx, "abx: ", line);
}

static void output__error_json(const Output *o, const abx_error *e)
{
    Buf     text = buf_make(LIMIT_ERROR_BODY);
    JsonOut w = json_out(&text, JSON_SPACED);

    json_begin(&w, '{');
    json_key(&w, "error");
    json_begin(&w, '{');
    json_key(&w, "code");
    json_put_str(&w, str_from(e->code));
    json_key(&w, "message");
    json_put_str(&w, str_from(e->message));
    json_key(&w, "suggestion");
    json_put_str(&w, str_from(e->suggestion));
    json_key(&w, "docs_url");
    json_put_str(&w, STR(""));
    json_key(&w, "retryable");
    json_put_bool(&w, e->retryable);
    if (*e->request_id) {
        json_key(&w, "request_id");
        json_put_str(&w, str_from(e->request_id));
    }
    json_end(&w, '}');
    json_end(&w, '}');
    buf_addc(&text, '\n');
    output_say(o, buf_str(&text));
    buf_free(&text);
}

void output_error(const Output *o, const abx_error *e)
{
    ABX_UNSET char head[16];

    if (o->json) {
        output__error_json(o, e);
        return;
    }
    snprintf(head, sizeof head, "[%s] ", e->code);
    output__line(o, head, e->message);
    if (*e->suggestion)
        output__line(o, "  Suggestion: ", e->suggestion);
    if (o->verbose && *e->request_id)
        output__line(o, "  Request: ", e->request_id);
}

void output_own(abx_error *e, const Err *err)
{
    static const abx_kind kinds[] = {
        [ERR_USAGE] = ABX_USAGE, [ERR_NOT_FOUND] = ABX_NOT_FOUND, [ERR_DENIED] = ABX_DENIED,
        [ERR_TIMEOUT] = ABX_TIMED_OUT, [ERR_CANCELLED] = ABX_CANCELLED,
    };

    *e = (abx_error){.kind = ABX_FAILED, .exit_status = code_exit(err->code), .retryable = err->retryable};
    if (err->kind < COUNT_OF(kinds) && kinds[err->kind])
        e->kind = kinds[err->kind];
    code_name(err->code, e->code);
    snprintf(e->message, sizeof e->message, "%s", err->text);
    snprintf(e->suggestion, sizeof e->suggestion, "%s", *err->hint ? err->hint : code_hint(err->code));
}
