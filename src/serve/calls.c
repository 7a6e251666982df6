#include "serve/calls.h"

#include "base/base64.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include "data/shell.h"
#include "os/poll.h"
#include "serve/wire.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum {
    CALLS_PIECE = 65536,        /* of output in one notification: written as JSON at most six times as long */
    CALLS_UNKNOWN = 125,        /* the exit codes of the interface, as of `abx sandbox exec` */
    CALLS_TIMED_OUT = 124,
};

/* One call under way. */
typedef struct Calls {
    const Call  *call;
    int          out;
    int          cancel_fd;
    Arena        a;
    Buf          lines;         /* to be sent */
    abx_session *session;
    abx_sandbox *box;           /* that params.sandbox_id names; NULL for methods without */
    abx_error    failed;
    bool         refused;       /* the reason is `refusal`, not `failed` */
    bool         made;          /* the sandbox is ours until the host knows of it */
    WireError    refusal;
    char         text[512];     /* of the refusal */
} Calls;

/* ---- sending ---- */

static void calls__unmake(Calls *c)
{
    abx_error none;

    abx_ignore_cancel(c->session);
    if (c->made && abx_kill(c->box, NULL, &none) != 0)
        fprintf(stderr, "abx: sandbox %s was made for a host that is gone, and could not be removed: %s\n",
                abx_sandbox_id(c->box), none.message);
    c->made = false;
}

static void calls__send(Calls *c)
{
    Str rest = buf_str(&c->lines);

    while (rest.n) {
        ssize_t n = write(c->out, rest.p, rest.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {            /* the server is gone, and the host with it */
            if (c->session)
                calls__unmake(c);
            _exit(1);
        }
        str_skip(&rest, (size_t)n);
    }
    buf_clear(&c->lines);
}

static bool calls__refuse(Calls *c, int code, const char *fmt, ...) ABX_PRINTF(3, 4);
static bool calls__refuse(Calls *c, int code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(c->text, sizeof c->text, fmt, args);
    va_end(args);
    c->refused = true;
    c->refusal = (WireError){.code = code, .message = c->text};
    return false;
}

/* The answer's line is complete. */
static bool calls__answered(Calls *c, WireOut *w)
{
    return wire_end(w) ||
           calls__refuse(c, WIRE_FAILED, "the result is larger than the %zu bytes that a line may have", LIMIT_SERVE_LINE);
}

static bool calls__empty(Calls *c)
{
    WireOut w = wire_answer(&c->lines, c->call->id);

    json_begin(&w.json, '{');
    json_end(&w.json, '}');
    return calls__answered(c, &w);
}

/* ---- parameters ---- */

/* A member, or NULL where it is missing or null. */
static const Json *calls__param(const Calls *c, const char *key)
{
    const Json *v = json_get(c->call->params, key);

    return v && v->type != JSON_NULL ? v : NULL;
}

/* *out stays as it is when the member is not there and need not be. */
static bool calls__text(Calls *c, const char *key, bool needed, const char **out)
{
    const Json *v = calls__param(c, key);

    if (!v && !needed)
        return true;
    if (!v || v->type != JSON_STRING)
        return calls__refuse(c, WIRE_PARAMS, "params.%s must be a string", key);
    if (str_has(v->text, '\0'))
        return calls__refuse(c, WIRE_PARAMS, "params.%s holds a NUL", key);
    *out = v->text.p;
    return true;
}

static bool calls__number(Calls *c, const char *key, bool needed, int64_t *out)
{
    const Json *v = calls__param(c, key);

    if (!v && !needed)
        return true;
    *out = json_int(v, INT64_MIN);
    return *out != INT64_MIN || calls__refuse(c, WIRE_PARAMS, "params.%s must be an integer", key);
}

/* An object of strings. */
static bool calls__pairs(Calls *c, const char *key, const abx_pair **out, size_t *n)
{
    const Json *v = calls__param(c, key);
    size_t      count = json_count(v);
    abx_pair   *pairs = arena_array(&c->a, count, sizeof *pairs);

    if (v && v->type != JSON_OBJECT)
        return calls__refuse(c, WIRE_PARAMS, "params.%s must be an object", key);
    for (size_t i = 0; i < count; i++) {
        if (v->items[i].type != JSON_STRING || str_has(v->items[i].text, '\0') || str_has(v->keys[i], '\0'))
            return calls__refuse(c, WIRE_PARAMS, "params.%s must hold strings without NUL", key);
        pairs[i] = (abx_pair){v->keys[i].p, v->items[i].text.p};
    }
    *out = pairs;
    *n = count;
    return true;
}

static bool calls__unable(Calls *c, const char *feature, const char *what)
{
    calls__refuse(c, WIRE_NO_FEATURE, "the provider cannot %s", what);
    c->refusal.feature = feature;
    return false;
}

/* ---- sandboxes ---- */

static void calls__member(JsonOut *w, const char *key, const char *value)
{
    if (!value)
        return;
    json_key(w, key);
    json_put_str(w, str_from(value));
}

/* A word that hosts do not know counts as running with them: none may be. */
static const char *calls__status(const char *status)
{
    static const char *const known[] = {"creating", "running", "paused", "pausing", "stopping", "stopped", "error"};

    for (size_t i = 0; status && i < COUNT_OF(known); i++)
        if (strcmp(status, known[i]) == 0)
            return status;
    return status && strcmp(status, "resuming") == 0 ? "creating" : "error";
}

static void calls__record(JsonOut *w, const abx_info *i)
{
    json_begin(w, '{');
    calls__member(w, "sandbox_id", i->sandbox_id);
    calls__member(w, "template", i->template_name);
    calls__member(w, "status", calls__status(i->status));
    json_key(w, "metadata");
    json_begin(w, '{');
    for (size_t k = 0; k < i->metadata_count; k++)
        calls__member(w, i->metadata[k].key, i->metadata[k].value);
    json_end(w, '}');
    calls__member(w, "created_at", i->started_at);
    calls__member(w, "expires_at", i->end_at);
    calls__member(w, "region", i->region);
    json_end(w, '}');
}

static bool calls__info(Calls *c, const abx_info *i)
{
    if (!i)
        return false;
    WireOut w = wire_answer(&c->lines, c->call->id);
    calls__record(&w.json, i);
    return calls__answered(c, &w);
}

/* An amount that is a whole number in EPP, with its unit behind it for us. */
static bool calls__amount(Calls *c, const char *key, const char *unit, const char **out)
{
    int64_t n = 0;

    if (!calls__number(c, key, false, &n))
        return false;
    if (n < 0)
        return calls__refuse(c, WIRE_CONFIG, "%s cannot be %lld", key, (long long)n);
    if (n > 0)
        *out = arena_fmt(&c->a, "%lld%s", (long long)n, unit).p;
    return true;
}

/* Words with blanks between; what other hosts deliver as a default is none. */
static void calls__entrypoint(Calls *c, Str text, abx_create_options *o)
{
    const char **words = arena_array(&c->a, text.n / 2 + 1, sizeof *words);
    Str          word;

    if (str_eq(text, STR("python3 commands.py")) || str_eq(text, STR("tail -f /dev/null")))
        return;
    while (str_cut(&text, ' ', &word))
        if (word.n)
            words[o->entrypoint_count++] = arena_cstr(&c->a, word);
    o->entrypoint = o->entrypoint_count ? words : NULL;
}

static bool calls__create(Calls *c)
{
    abx_create_options o = {0};
    const Json        *secure = calls__param(c, "secure"), *options = calls__param(c, "options");

    if (!calls__text(c, "template", false, &o.template_name) || !calls__number(c, "timeout", false, &o.timeout_s) ||
        !calls__pairs(c, "metadata", &o.metadata, &o.metadata_count) || !calls__pairs(c, "envs", &o.env, &o.env_count) ||
        !calls__amount(c, "cpu", "", &o.cpu) || !calls__amount(c, "memory", "Mi", &o.memory))
        return false;
    if (calls__param(c, "disk"))
        return calls__unable(c, "sandbox.disk", "choose the size of a disk");
    if (calls__param(c, "gpu"))
        return calls__unable(c, "sandbox.gpu", "choose a GPU");
    if (json_bool(secure, false))
        return calls__unable(c, "sandbox.secure", "make a secured sandbox");
    if (o.timeout_s < 0 || (calls__param(c, "timeout") && o.timeout_s == 0))
        return calls__refuse(c, WIRE_CONFIG, "a sandbox cannot live for %lld seconds", (long long)o.timeout_s);
    /* Options of one call are settings that came with `initialize` already, but
     * for an entrypoint that abx, as the host, was given for this sandbox alone. */
    if (options && options->type != JSON_OBJECT)
        return calls__refuse(c, WIRE_PARAMS, "params.options must be an object");
    calls__entrypoint(c, json_str(json_get(options, "entrypoint")), &o);
    c->box = abx_create(c->session, &o, &c->failed);
    c->made = c->box != NULL;
    return c->box && calls__info(c, abx_last_info(c->box));
}

static bool calls__get(Calls *c)
{
    return calls__info(c, abx_get_info(c->box, &c->failed));
}

typedef struct CallsList {
    WireOut     w;
    const char *status;         /* NULL: any */
    int64_t     skip, left;     /* of those that match */
    bool        more;
} CallsList;

static int calls__listed(void *ctx, const abx_info *i)
{
    CallsList *l = ctx;

    if (l->status && strcmp(calls__status(i->status), l->status) != 0)
        return 0;
    if (l->skip > 0) {
        l->skip--;
        return 0;
    }
    l->more = l->left == 0;
    if (l->more)
        return 1;
    l->left--;
    calls__record(&l->w.json, i);
    return 0;
}

/* The cursor is how many were listed before. */
static bool calls__list(Calls *c)
{
    CallsList   l = {0};
    int64_t     limit = 100;
    const char *cursor = "0";

    if (!calls__number(c, "limit", false, &limit) || !calls__text(c, "status", false, &l.status) ||
        !calls__text(c, "cursor", false, &cursor))
        return false;
    if (limit < 1)
        return calls__refuse(c, WIRE_PARAMS, "params.limit must be 1 or more");
    if (!num_i64(str_from(cursor[0] ? cursor : "0"), &l.skip) || l.skip < 0 || l.skip > INT32_MAX)
        return calls__refuse(c, WIRE_PARAMS, "params.cursor is none of this provider");
    int64_t next = l.skip + limit;
    l.left = limit;
    l.w = wire_answer(&c->lines, c->call->id);
    json_begin(&l.w.json, '{');
    json_key(&l.w.json, "sandboxes");
    json_begin(&l.w.json, '[');
    if (abx_list(c->session, NULL, calls__listed, &l, NULL, &c->failed) != 0) {
        buf_clear(&c->lines);
        return false;
    }
    json_end(&l.w.json, ']');
    if (l.more) {
        json_key(&l.w.json, "next");
        json_put_str(&l.w.json, arena_fmt(&c->a, "%lld", (long long)next));
    }
    json_end(&l.w.json, '}');
    return calls__answered(c, &l.w);
}

static bool calls__kill(Calls *c)
{
    return abx_kill(c->box, NULL, &c->failed) == 0 && calls__empty(c);
}

static bool calls__set_timeout(Calls *c)
{
    int64_t seconds;

    return calls__number(c, "timeout", true, &seconds) && abx_set_timeout(c->box, seconds, &c->failed) && calls__empty(c);
}

static bool calls__pause(Calls *c)
{
    return abx_pause(c->box, &c->failed) && calls__empty(c);
}

static bool calls__resume(Calls *c)
{
    return abx_resume(c->box, &c->failed) && calls__empty(c);
}

static bool calls__url(Calls *c)
{
    int64_t port = 0;

    if (!calls__number(c, "port", true, &port))
        return false;
    const abx_url *u = abx_port_url(c->box, port < 0 || port > 65535 ? 0 : (int)port, &c->failed);
    if (!u)
        return false;
    WireOut w = wire_answer(&c->lines, c->call->id);
    json_begin(&w.json, '{');
    calls__member(&w.json, "url", u->url);
    if (u->header_count) {
        json_key(&w.json, "headers");
        json_begin(&w.json, '{');
        for (size_t i = 0; i < u->header_count; i++)
            calls__member(&w.json, u->headers[i].key, u->headers[i].value);
        json_end(&w.json, '}');
    }
    json_end(&w.json, '}');
    return calls__answered(c, &w);
}

/* ---- commands ---- */

/* A single word is a program in EPP, where abx.h would take it for a line. */
static const char *calls__line(Calls *c, const char *program)
{
    Buf b = buf_make(LIMIT_ANSWER);

    buf_add(&b, STR("exec "));
    shell_quote(&b, str_from(program));
    const char *line = arena_cstr(&c->a, buf_str(&b));
    buf_free(&b);
    return line;
}

static abx_exec *calls__exec(Calls *c, bool watched)
{
    const Json      *args = calls__param(c, "args");
    size_t           n = json_count(args);
    const char     **argv = arena_array(&c->a, n + 1, sizeof *argv);
    abx_exec_options o = {.argv = argv, .argc = n + 1, .tell_pid = watched};
    const char      *user = "", *cwd = "";
    int64_t          seconds = 0;

    if (!calls__text(c, "cmd", true, &argv[0]) || !calls__text(c, "cwd", false, &cwd) ||
        !calls__text(c, "user", false, &user) || !calls__number(c, "timeout", false, &seconds) ||
        !calls__pairs(c, "env", &o.env, &o.env_count))
        return NULL;
    if (args && args->type != JSON_ARRAY) {
        calls__refuse(c, WIRE_PARAMS, "params.args must be an array");
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        argv[i + 1] = args->items[i].text.p;
        if (args->items[i].type != JSON_STRING || str_has(args->items[i].text, '\0')) {
            calls__refuse(c, WIRE_PARAMS, "params.args must hold strings without NUL");
            return NULL;
        }
    }
    if (user[0]) {
        calls__unable(c, "exec.user", "choose the user of a command");
        return NULL;
    }
    if (seconds < 0 || seconds > INT32_MAX) {
        calls__refuse(c, WIRE_CONFIG, "a timeout of %lld seconds makes no sense", (long long)seconds);
        return NULL;
    }
    if (n == 0 && argv[0][0])
        argv[0] = calls__line(c, argv[0]);
    o.cwd = cwd[0] ? cwd : NULL;
    o.timeout_ms = seconds * 1000;
    o.open_stdin = watched && json_bool(calls__param(c, "stdin"), false);
    return abx_exec_start(c->box, &o, &c->failed);
}

static int calls__exit_code(const abx_event *e)
{
    if (e->timed_out)
        return CALLS_TIMED_OUT;
    return e->exit_code >= 0 ? e->exit_code : 128 + (e->signal > 0 ? e->signal : SIGKILL);
}

/* The host gave the call up, and did not just leave. */
static bool calls__given_up(const Calls *c)
{
    struct pollfd p = {.fd = c->cancel_fd, .events = POLLIN};
    char          why;

    return poll(&p, 1, 0) == 1 && (p.revents & POLLIN) && read(c->cancel_fd, &why, 1) == 1 && why == 'c';
}

/* exec.run: all of it in one answer. */
static bool calls__run_command(Calls *c)
{
    abx_exec *x = calls__exec(c, false);
    Buf       texts[2] = {buf_make(LIMIT_SERVE_LINE), buf_make(LIMIT_SERVE_LINE)};     /* ABX_STDOUT, ABX_STDERR */
    abx_event e;
    int       step;

    while (x && (step = abx_exec_next(x, 1, &e, &c->failed)) == 1 && e.kind != ABX_EXIT)
        buf_add(&texts[e.kind], (Str){e.bytes, e.size});
    bool ok = x && step == 1;
    if (x && !ok && c->failed.kind == ABX_CANCELLED && calls__given_up(c)) {
        abx_error none;
        abx_ignore_cancel(c->session);
        abx_exec_kill(x, &none);
    }
    if (ok && (texts[0].over || texts[1].over)) {
        ok = calls__refuse(c, WIRE_FAILED, "the command printed more than a line may carry: use exec.start");
    } else if (ok) {
        WireOut w = wire_answer(&c->lines, c->call->id);
        json_begin(&w.json, '{');
        json_key(&w.json, "stdout");
        json_put_str(&w.json, buf_str(&texts[ABX_STDOUT]));
        json_key(&w.json, "stderr");
        json_put_str(&w.json, buf_str(&texts[ABX_STDERR]));
        json_key(&w.json, "exit_code");
        json_put_int(&w.json, calls__exit_code(&e));
        json_end(&w.json, '}');
        ok = calls__answered(c, &w);
    }
    buf_free(&texts[0]);
    buf_free(&texts[1]);
    abx_exec_free(x);
    return ok;
}

/* The bytes at the end of s that may be the beginning of a character. */
static size_t calls__begun(Str s)
{
    for (size_t k = 1; k <= 3 && k <= s.n; k++) {
        unsigned char c = (unsigned char)s.p[s.n - k];
        if (c >= 0xc0)
            return (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) > k ? k : 0;
        if (c < 0x80)
            return 0;
    }
    return 0;
}

static void calls__notify(Calls *c, bool is_err, Str text)
{
    WireOut w = wire_notification(&c->lines, "exec.output");

    json_begin(&w.json, '{');
    calls__member(&w.json, "process_id", c->call->process_id);
    calls__member(&w.json, "stream", is_err ? "stderr" : "stdout");
    json_key(&w.json, "data");
    json_put_str(&w.json, text);
    json_end(&w.json, '}');
    if (!wire_end(&w))
        BUG("a piece of output that fits no line");
    calls__send(c);
}

/* Send what is in `held`, all of it or up to the character it was cut in. */
static void calls__output(Calls *c, bool is_err, Buf *held, bool all)
{
    while (held->n) {
        Str  s = buf_str(held);
        bool last = s.n <= CALLS_PIECE;
        s.n = last ? s.n : CALLS_PIECE;
        if (!last || !all)
            s.n -= calls__begun(s);
        if (!s.n)
            return;
        calls__notify(c, is_err, s);
        buf_drop(held, s.n);
    }
}

static void calls__exited(Calls *c, int code)
{
    WireOut w = wire_notification(&c->lines, "exec.exit");

    json_begin(&w.json, '{');
    calls__member(&w.json, "process_id", c->call->process_id);
    json_key(&w.json, "exit_code");
    json_put_int(&w.json, code);
    json_end(&w.json, '}');
    if (!wire_end(&w))
        BUG("an exit code that fits no line");
    buf_add(&c->lines, STR("!end\n"));
    calls__send(c);
}

/* The next event, as abx_exec_next() gives it; the command's process is told
 * to the server as soon as it is known, which no event says. */
static int calls__next(Calls *c, abx_exec *x, bool *told, abx_event *e)
{
    for (;;) {
        int step = abx_exec_next(x, 0, e, &c->failed);
        if (!*told && abx_exec_pid(x)) {
            *told = true;
            buf_addf(&c->lines, "!pid %s\n", abx_exec_pid(x));
            calls__send(c);
        }
        if (step != 0)
            return step;
        abx_want w = abx_exec_want(x);
        Err      err;
        if (w.fd >= 0 && !poll_one(w.fd, w.events, c->cancel_fd, w.wait_ms < 0 ? DEADLINE_NONE : clock_after(w.wait_ms), &err) &&
            err.kind == ERR_CANCELLED) {
            c->failed.kind = ABX_CANCELLED;
            return -1;
        }
    }
}

static void calls__stream(Calls *c, abx_exec *x)
{
    Buf       held[2] = {buf_make(LIMIT_EVENT + 8), buf_make(LIMIT_EVENT + 8)};
    bool      told = false;
    abx_event e;
    int       step;

    while ((step = calls__next(c, x, &told, &e)) == 1 && e.kind != ABX_EXIT) {
        buf_add(&held[e.kind], (Str){e.bytes, e.size});
        calls__output(c, e.kind == ABX_STDERR, &held[e.kind], false);
    }
    if (step != 1 && c->failed.kind == ABX_CANCELLED)
        return;                 /* the host is gone: the command goes on, as it would under any other */
    calls__output(c, false, &held[ABX_STDOUT], true);
    calls__output(c, true, &held[ABX_STDERR], true);
    if (step != 1)
        calls__notify(c, true, arena_fmt(&c->a, "abx: %s\n", c->failed.message));
    calls__exited(c, step == 1 ? calls__exit_code(&e) : CALLS_UNKNOWN);
    buf_free(&held[0]);
    buf_free(&held[1]);
}

static bool calls__start_command(Calls *c)
{
    abx_exec *x = calls__exec(c, true);

    if (!x)
        return false;
    WireOut w = wire_answer(&c->lines, c->call->id);
    json_begin(&w.json, '{');
    calls__member(&w.json, "process_id", c->call->process_id);
    json_end(&w.json, '}');
    if (!calls__answered(c, &w))
        BUG("a process id that fits no line");
    calls__send(c);
    calls__stream(c, x);
    abx_exec_free(x);
    return true;
}

/* ---- processes ---- */

static int calls__process(void *ctx, const abx_process *p)
{
    JsonOut *w = ctx;
    int64_t  pid;

    json_begin(w, '{');
    json_key(w, "pid");
    if (num_i64(str_from(p->pid), &pid))
        json_put_int(w, pid);
    else
        json_put_str(w, str_from(p->pid));
    calls__member(w, "command", p->command);
    calls__member(w, "status", p->status);
    json_end(w, '}');
    return 0;
}

static bool calls__processes(Calls *c)
{
    WireOut w = wire_answer(&c->lines, c->call->id);

    json_begin(&w.json, '{');
    json_key(&w.json, "processes");
    json_begin(&w.json, '[');
    if (abx_processes(c->box, calls__process, &w.json, &c->failed) != 0) {
        buf_clear(&c->lines);
        return false;
    }
    json_end(&w.json, ']');
    json_end(&w.json, '}');
    return calls__answered(c, &w);
}

/* A command is meant with all that it started, where a signal is concerned. */
static bool calls__pid(Calls *c, bool group, const char **out)
{
    const Json *pid = calls__param(c, "pid");

    if (c->call->pid)
        *out = group ? arena_fmt(&c->a, "-%s", c->call->pid).p : c->call->pid;
    else if (pid && pid->type == JSON_INT)
        *out = arena_cstr(&c->a, pid->text);
    else
        return calls__text(c, "pid", true, out);
    return true;
}

static bool calls__stdin(Calls *c)
{
    const char *pid;
    const Json *data = calls__param(c, "data");

    if (!calls__pid(c, false, &pid))
        return false;
    if (!data || data->type != JSON_STRING)
        return calls__refuse(c, WIRE_PARAMS, "params.data must be a string");
    return abx_process_stdin(c->box, pid, data->text.p, data->text.n, &c->failed) == 0 && calls__empty(c);
}

static bool calls__signal(Calls *c)
{
    const char *pid;
    int64_t     number = SIGTERM;

    if (!calls__pid(c, true, &pid) || !calls__number(c, "signal", false, &number))
        return false;
    return abx_process_signal(c->box, pid, number < 0 || number > 64 ? 0 : (int)number, &c->failed) == 0 && calls__empty(c);
}

/* ---- files ---- */

static int calls__entry(void *ctx, const abx_file_info *f)
{
    static const char *const types[] = {
        [ABX_FILE] = "file", [ABX_FOLDER] = "directory", [ABX_LINK] = "symlink", [ABX_OTHER] = "other",
    };
    JsonOut *w = ctx;

    json_begin(w, '{');
    calls__member(w, "name", f->name);
    calls__member(w, "path", f->path);
    calls__member(w, "type", types[f->type]);
    json_key(w, "size");
    if (f->size >= 0)
        json_put_int(w, f->size);
    else
        json_put_null(w);
    calls__member(w, "mtime", f->modified);
    if (f->mode >= 0) {
        json_key(w, "mode");
        json_put_int(w, f->mode);
    }
    json_end(w, '}');
    return 0;
}

static bool calls__stat(Calls *c)
{
    const char *path;

    if (!calls__text(c, "path", true, &path))
        return false;
    const abx_file_info *f = abx_stat(c->box, path, &c->failed);
    if (!f)
        return false;
    WireOut w = wire_answer(&c->lines, c->call->id);
    calls__entry(&w.json, f);
    return calls__answered(c, &w);
}

static bool calls__files(Calls *c)
{
    const char *path;

    if (!calls__text(c, "path", true, &path))
        return false;
    WireOut w = wire_answer(&c->lines, c->call->id);
    json_begin(&w.json, '{');
    json_key(&w.json, "entries");
    json_begin(&w.json, '[');
    if (abx_list_files(c->box, path, calls__entry, &w.json, &c->failed) != 0) {
        buf_clear(&c->lines);
        return false;
    }
    json_end(&w.json, ']');
    json_end(&w.json, '}');
    return calls__answered(c, &w);
}

static int calls__keep(void *ctx, const void *p, size_t size)
{
    Buf *b = ctx;

    buf_add(b, (Str){p, size});
    errno = EFBIG;
    return b->over ? -1 : 0;
}

static bool calls__read(Calls *c)
{
    const char *path;
    Buf         content = buf_make(LIMIT_SERVE_LINE / 4 * 3);

    if (!calls__text(c, "path", true, &path))
        return false;
    bool ok = abx_read_file(c->box, path, calls__keep, &content, &c->failed) >= 0;
    if (content.over) {
        ok = calls__refuse(c, WIRE_FAILED, "%s does not fit into the %zu bytes that a line may have", path, LIMIT_SERVE_LINE);
    } else if (ok) {
        WireOut w = wire_answer(&c->lines, c->call->id);
        json_begin(&w.json, '{');
        json_key(&w.json, "content_b64");
        json_put_str(&w.json, base64_encode(&c->a, buf_str(&content)));
        json_end(&w.json, '}');
        ok = calls__answered(c, &w);
    }
    buf_free(&content);
    return ok;
}

static ptrdiff_t calls__give(void *ctx, void *p, size_t size)
{
    Str   *rest = ctx;
    size_t n = rest->n < size ? rest->n : size;

    memcpy(p, rest->n ? rest->p : "", n);
    str_skip(rest, n);
    return (ptrdiff_t)n;
}

static bool calls__write(Calls *c)
{
    const Json *content = calls__param(c, "content_b64");
    const char *path;
    Str         bytes;

    if (!calls__text(c, "path", true, &path))
        return false;
    if (!content || content->type != JSON_STRING || !base64_decode(&c->a, content->text, &bytes))
        return calls__refuse(c, WIRE_PARAMS, "params.content_b64 must be base64");
    int64_t size = (int64_t)bytes.n;
    return abx_write_file(c->box, path, -1, size, calls__give, &bytes, &c->failed) == size && calls__empty(c);
}

static bool calls__mkdir(Calls *c)
{
    const char *path;

    return calls__text(c, "path", true, &path) && abx_make_folder(c->box, path, &c->failed) == 0 && calls__empty(c);
}

static bool calls__remove(Calls *c)
{
    const char *path;

    return calls__text(c, "path", true, &path) && abx_remove(c->box, path, &c->failed) == 0 && calls__empty(c);
}

static bool calls__move(Calls *c)
{
    const char *from, *to;

    return calls__text(c, "source", true, &from) && calls__text(c, "destination", true, &to) &&
           abx_move(c->box, from, to, &c->failed) == 0 && calls__empty(c);
}

/* ---- the table ---- */

static const struct CallsMethod {
    const char *name;
    bool      (*run)(Calls *c);     /* false: c->refusal or c->failed */
    bool        no_box;             /* takes no sandbox_id */
} calls__methods[] = {
    {"sandbox.create", calls__create, true}, {"sandbox.connect", calls__get, false}, {"sandbox.get", calls__get, false},
    {"sandbox.list", calls__list, true}, {"sandbox.kill", calls__kill, false},
    {"sandbox.set_timeout", calls__set_timeout, false}, {"sandbox.pause", calls__pause, false},
    {"sandbox.resume", calls__resume, false}, {"exec.run", calls__run_command, false},
    {"exec.start", calls__start_command, false}, {"process.list", calls__processes, false},
    {"process.stdin", calls__stdin, false}, {"process.signal", calls__signal, false},
    {"files.stat", calls__stat, false}, {"files.list", calls__files, false}, {"files.read", calls__read, false},
    {"files.write", calls__write, false}, {"files.mkdir", calls__mkdir, false}, {"files.remove", calls__remove, false},
    {"files.move", calls__move, false}, {"ports.url", calls__url, false},
};

static const struct CallsMethod *calls__method(Str name)
{
    for (size_t i = 0; i < COUNT_OF(calls__methods); i++)
        if (str_eq(str_from(calls__methods[i].name), name))
            return &calls__methods[i];
    return NULL;
}

bool calls_known(Str method)
{
    return calls__method(method) != NULL;
}

static bool calls__attach(Calls *c)
{
    const char *id;

    if (!calls__text(c, "sandbox_id", true, &id))
        return false;
    /* A colon is part of an id here; abx.h would take what is before it for a provider. */
    c->box = abx_attach(c->session, arena_fmt(&c->a, "%s:%s", abx_session_provider(c->session), id).p, &c->failed);
    return c->box != NULL;
}

/* Wait until the server says that the answer is out, or that it never will be. */
static bool calls__is_known(const Calls *c)
{
    char    byte = 0;
    ssize_t n;

    do
        n = read(c->cancel_fd, &byte, 1);
    while (n < 0 && errno == EINTR);
    return n == 1 && byte == 'k';
}

void calls_run(const Call *call, const abx_options *options, int out)
{
    const struct CallsMethod *m = calls__method(call->method);
    Calls c = {.call = call, .out = out, .cancel_fd = options->cancel_fd};

    c.a = arena_make(2 * ARENA_COMMAND);
    c.lines = buf_make(2 * LIMIT_SERVE_LINE);
    c.session = abx_open(options, &c.failed);
    if (!c.session || !(m->no_box || calls__attach(&c)) || !m->run(&c)) {
        WireError failed = wire_from(&c.failed);
        wire_error(&c.lines, call->id, c.refused ? &c.refusal : &failed);
    }
    calls__send(&c);
    if (c.made && !calls__is_known(&c))
        calls__unmake(&c);
    abx_sandbox_free(c.box);
    abx_close(c.session);
    buf_free(&c.lines);
    arena_free(&c.a);
}
