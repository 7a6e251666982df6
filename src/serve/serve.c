#include "serve/serve.h"

#include "abx.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/env.h"
#include "os/poll.h"
#include "serve/asks.h"
#include "serve/calls.h"
#include "serve/export.h"
#include "serve/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVE_NAME "abx-"       /* what the process ids of exec.start begin with; a number follows */

/* A call that runs. */
typedef struct ServeJob {
    pid_t      pid;             /* 0: the place is free */
    int        out;             /* its lines */
    int        cancel;          /* -1: it was cancelled */
    WireReader lines;
    char      *id;              /* of the request, as JSON text; NULL when that was empty */
    char      *sandbox;         /* exec.start: where */
    uint64_t   told;            /* sandbox.create: how many bytes must be out for the host to know; 0: not yet */
    char       name[32];        /* exec.start, pty.open: the process id; else "" */
    char       process[16];     /* its number in the sandbox; "": not known yet */
    Asks       asks;            /* and what is asked of it */
    bool       pty;
    bool       create;
    bool       answered;
    bool       ended;           /* exec.exit or pty.exit was sent */
} ServeJob;

/* A request that waits for a free place. */
typedef struct ServeHeld {
    char *line;
    size_t n;
    char *id;
} ServeHeld;

typedef struct Serve {
    const char *provider;
    int         in, out, signal_fd;
    Arena       own;            /* the configuration */
    abx_pair   *config;
    size_t      config_count;
    bool        ready;          /* initialize was answered well */
    bool        leaving;
    bool        broken;         /* nobody reads */
    WireReader  reader;
    Buf         to;             /* for the host */
    size_t      gone;           /* of it: bytes that are out already */
    uint64_t    written;        /* bytes that are out, ever */
    ServeJob    jobs[LIMIT_SERVE_JOBS];
    ServeHeld   held[LIMIT_SERVE_HELD];
    size_t      held_count, held_bytes;
    uint64_t    names;          /* given to commands so far */
} Serve;

static size_t serve__unread(const Serve *s)
{
    return s->to.n - s->gone;
}

static void serve__error(Serve *s, Str id, int code, const char *message)
{
    /* A host that sends and sends, and reads nothing, gets no more of these. */
    if (serve__unread(s) <= LIMIT_SERVE_UNREAD)
        wire_error(&s->to, id, &(WireError){.code = code, .message = message});
}

/* ---- initialize ---- */

/* A value of `config` as the text that a setting has; NULL: leave it out. */
static const char *serve__setting(const Json *v, Arena *a)
{
    Buf         list = buf_make(LIMIT_SETTING);
    const char *text = NULL;

    switch (v->type) {
    case JSON_STRING:
    case JSON_INT:
    case JSON_REAL:
        text = arena_cstr(a, v->text);
        break;
    case JSON_BOOL:
        text = v->boolean ? "true" : "false";
        break;
    case JSON_ARRAY:
        for (size_t i = 0; i < v->count; i++)
            buf_addf(&list, "%s%.*s", i ? "," : "", STR_ARG(v->items[i].text));
        text = arena_cstr(a, buf_str(&list));
        break;
    case JSON_NULL:
    case JSON_OBJECT:
        break;
    }
    buf_free(&list);
    return text;
}

static bool serve__is_field(const abx_details *d, Str key)
{
    for (size_t i = 0; i < d->field_count; i++)
        if (str_eq(str_from(d->fields[i].key), key))
            return true;
    return false;
}

static void serve__configure(Serve *s, const abx_details *d, const Json *params)
{
    const Json *config = json_get(params, "config"), *core = json_get(params, "core");
    size_t      most = (config && config->type == JSON_OBJECT ? config->count : 0) + 1, n = 0;
    abx_pair   *pairs = arena_array(&s->own, most, sizeof *pairs);

    for (size_t i = 0; i + 1 < most; i++) {
        const char *text = serve__is_field(d, config->keys[i]) ? serve__setting(&config->items[i], &s->own) : NULL;
        if (text && text[0])
            pairs[n++] = (abx_pair){arena_cstr(&s->own, config->keys[i]), text};
    }
    const Json *timeout = json_get(core, "http_timeout");
    if (timeout && json_real(timeout, 0) > 0)
        pairs[n++] = (abx_pair){"http_timeout", serve__setting(timeout, &s->own)};
    s->config = pairs;
    s->config_count = n;
}

static abx_options serve__options(const Serve *s, int cancel_fd)
{
    return (abx_options){.provider = s->provider, .config = s->config, .config_count = s->config_count, .config_only = 1,
                         .agent_path = "/proc/self/exe", .cancel_fd_set = cancel_fd >= 0, .cancel_fd = cancel_fd};
}

static void serve__strings(JsonOut *w, const char *key, abx_strings list)
{
    json_key(w, key);
    json_begin(w, '[');
    for (size_t i = 0; i < list.n; i++)
        json_put_str(w, str_from(list.v[i]));
    json_end(w, ']');
}

/* What stands here must agree with the manifest that export_manifest() writes:
 * hosts compare it member by member. */
static void serve__introduce(Serve *s, Str id, const abx_details *d)
{
    WireOut  w = wire_answer(&s->to, id);
    JsonOut *j = &w.json;

    json_begin(j, '{');
    json_key(j, "protocol");
    json_put_str(j, STR("epp/1"));
    json_key(j, "plugin");
    json_begin(j, '{');
    json_key(j, "name");
    json_put_str(j, STR("abx"));
    json_key(j, "version");
    json_put_str(j, str_from(abx_build_info()->version));
    json_end(j, '}');
    serve__strings(j, "features", d->features);
    json_key(j, "operation_contract_version");
    json_put_int(j, 1);
    json_key(j, "operations");
    json_begin(j, '{');
    serve__strings(j, "cli", d->cli);
    serve__strings(j, "python", d->cli);
    json_end(j, '}');
    serve__strings(j, "workflow_inputs", d->inputs);
    serve__strings(j, "startup_modes", d->startups);
    json_key(j, "stdin");
    json_put_bool(j, true);
    json_end(j, '}');
    if (!wire_end(&w))
        BUG("an introduction that fits no line");
}

static void serve__initialize(Serve *s, Str id, const Json *params)
{
    abx_options o = serve__options(s, -1);
    ABX_UNSET abx_error e;
    abx_host   *h = NULL;
    Str         protocol = json_str(json_get(params, "protocol")), provider = json_str(json_get(params, "provider_id"));

    if (s->ready) {
        serve__error(s, id, WIRE_INVALID, "initialize was called before");
        return;
    }
    if (!str_eq(protocol, STR("epp/1"))) {
        serve__error(s, id, WIRE_CONFIG, "this plugin speaks epp/1, and params.protocol is another");
        return;
    }
    if (provider.n && !str_eq(provider, str_from(s->provider))) {
        serve__error(s, id, WIRE_CONFIG, "this plugin is another provider than params.provider_id");
        return;
    }
    const abx_details *d = (h = abx_host_open(&o, &e)) ? abx_provider_details(h, s->provider, &e) : NULL;
    if (d) {
        serve__configure(s, d, params);
        o = serve__options(s, -1);
        abx_session *session = abx_open(&o, &e);
        if (session)
            serve__introduce(s, id, d);
        s->ready = session != NULL;
        abx_close(session);
    }
    if (!s->ready) {
        WireError w = wire_from(&e);
        wire_error(&s->to, id, &w);
    }
    abx_host_close(h);
}

/* ---- calls ---- */

static ServeJob *serve__free_job(Serve *s, bool long_one)
{
    size_t end = COUNT_OF(s->jobs) - (long_one ? LIMIT_SERVE_SPARE : 0);

    for (size_t i = 0; i < end; i++)
        if (s->jobs[i].pid == 0)
            return &s->jobs[i];
    return NULL;
}

/* In the child: nothing of the server's but what the call needs. */
static void serve__become(Serve *s, const ServeJob *self, const Call *call, int out, int cancel)
{
    static const int quiet[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    int              null = open("/dev/null", O_RDWR | O_CLOEXEC);

    /* The server's end is seen at the cancel descriptor; clearing up is then
     * allowed its time. */
    for (size_t i = 0; i < COUNT_OF(quiet); i++)
        signal(quiet[i], SIG_IGN);
    for (size_t i = 0; i < COUNT_OF(s->jobs); i++)
        if (s->jobs[i].pid && &s->jobs[i] != self) {
            close(s->jobs[i].out);
            if (s->jobs[i].cancel >= 0)
                close(s->jobs[i].cancel);
            if (s->jobs[i].asks.fd >= 0)
                close(s->jobs[i].asks.fd);
        }
    if (null >= 0) {
        dup2(null, s->in);
        dup2(null, s->out);
    }
    abx_options o = serve__options(s, cancel);
    calls_run(call, &o, out);
    _exit(0);
}

static void serve__close_all(int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* What is asked of it comes in a pipe that never blocks, on either side. */
static bool serve__pipes(int out[2], int cancel[2], int ask[2], bool command)
{
    return pipe2(out, O_CLOEXEC) == 0 && pipe2(cancel, O_CLOEXEC) == 0 && (!command || pipe2(ask, O_CLOEXEC | O_NONBLOCK) == 0);
}

static bool serve__start(Serve *s, ServeJob *j, Call *call, Str sandbox)
{
    int   fds[6] = {-1, -1, -1, -1, -1, -1}, *out = fds, *cancel = fds + 2, *ask = fds + 4;
    bool  pty = str_eq(call->method, STR("pty.open")), command = pty || str_eq(call->method, STR("exec.start"));
    pid_t pid = -1;

    if (serve__pipes(out, cancel, ask, command)) {
        *j = (ServeJob){.out = out[0], .cancel = cancel[1], .pty = pty,
                        .create = str_eq(call->method, STR("sandbox.create"))};
        if (command) {
            snprintf(j->name, sizeof j->name, SERVE_NAME "%llu", (unsigned long long)++s->names);
            call->process_id = j->name;
        }
        call->asks = ask[0];
        pid = fork();
    }
    if (pid == 0) {
        close(out[0]);
        close(cancel[1]);
        if (ask[1] >= 0)
            close(ask[1]);
        serve__become(s, j, call, out[1], cancel[0]);
    }
    if (pid < 0) {
        serve__close_all(fds, COUNT_OF(fds));
        *j = (ServeJob){0};
        return false;
    }
    int theirs[] = {out[1], cancel[0], ask[0]};
    serve__close_all(theirs, COUNT_OF(theirs));
    j->pid = pid;
    j->sandbox = mem_str(sandbox);
    j->lines = wire_reader(LIMIT_SERVE_LINE + 64);
    j->asks = asks_make(ask[1]);
    j->id = call->id.n ? mem_str(call->id) : NULL;
    return true;
}

/* ---- what is asked of commands ---- */

/* The command that a request is about; NULL: it is about none of ours. A number
 * is one of ours where it is to be fed, for its input belongs to us. */
static ServeJob *serve__meant(Serve *s, const Call *call, Str sandbox)
{
    bool  pty = str_starts(call->method, STR("pty."));
    const Json *v = json_get(call->params, pty ? "process_id" : "pid");
    bool  number = v && !pty && str_eq(call->method, STR("process.stdin")) && !str_starts(json_str(v), STR(SERVE_NAME));
    Str   name = v && v->type == JSON_INT ? v->text : json_str(v);

    for (size_t i = 0; name.n && i < COUNT_OF(s->jobs); i++) {
        ServeJob *j = &s->jobs[i];
        if (j->pid && j->name[0] && !j->ended && j->pty == pty && str_eq(str_from(number ? j->process : j->name), name) &&
            str_eq(str_from(j->sandbox), sandbox))
            return j;
    }
    return NULL;
}

static bool serve__about_command(Serve *s, const Call *call, Str sandbox, Str line)
{
    bool      known = asks_known(call->method), pty = str_starts(call->method, STR("pty."));
    Str       name = json_str(json_get(call->params, pty ? "process_id" : "pid")), number = name;
    uint64_t  n;
    ServeJob *j = known ? serve__meant(s, call, sandbox) : NULL;

    if (j) {
        if (!asks_add(&j->asks, call->id, line))
            serve__error(s, call->id, WIRE_FAILED, "too many calls wait already");
        return true;
    }
    if (!known || (!pty && !str_starts(name, STR(SERVE_NAME))))
        return false;
    str_skip(&number, number.n < sizeof SERVE_NAME ? number.n : sizeof SERVE_NAME - 1);
    bool was = num_u64(number, &n) && n >= 1 && n <= s->names;
    serve__error(s, call->id, WIRE_NOT_FOUND,
                 was ? "the command has ended, or runs in another sandbox" : "there is no such command");
    return true;
}

/* ---- requests that wait ---- */

static void serve__hold(Serve *s, Str line, Str id)
{
    if (s->held_count == COUNT_OF(s->held) || s->held_bytes + line.n > LIMIT_SERVE_REQUEST) {
        serve__error(s, id, WIRE_FAILED, "too many calls wait already");
        return;
    }
    s->held[s->held_count++] = (ServeHeld){.line = mem_str(line), .n = line.n, .id = mem_str(id)};
    s->held_bytes += line.n;
}

static void serve__forget_held(Serve *s, size_t i)
{
    s->held_bytes -= s->held[i].n;
    mem_free(s->held[i].line);
    mem_free(s->held[i].id);
    s->held_count--;
    memmove(&s->held[i], &s->held[i + 1], (s->held_count - i) * sizeof s->held[0]);
}

static void serve__call(Serve *s, Call *call, Str line)
{
    Str sandbox = json_str(json_get(call->params, "sandbox_id"));

    if (serve__about_command(s, call, sandbox, line))
        return;
    bool      command = str_eq(call->method, STR("exec.start")) || str_eq(call->method, STR("pty.open"));
    ServeJob *j = serve__free_job(s, command);
    if (!j)
        serve__hold(s, line, call->id);
    else if (!serve__start(s, j, call, sandbox))
        serve__error(s, call->id, WIRE_FAILED, "this machine has no room for another call");
}

/* ---- cancelling ---- */

/* 'c': the host gave it up; 'k': what was made is known and stays. Without a
 * byte it is the server that leaves. */
static void serve__signal_job(ServeJob *j, const char *byte)
{
    if (j->cancel < 0)
        return;
    if (byte && write(j->cancel, byte, 1) < 0)
        return;     /* it has ended */
    if (!byte) {
        close(j->cancel);
        j->cancel = -1;
    }
}

static void serve__cancel(Serve *s, Str id)
{
    for (size_t i = 0; i < s->held_count; i++)
        if (str_eq(str_from(s->held[i].id), id)) {
            serve__error(s, id, WIRE_FAILED, "cancelled");
            serve__forget_held(s, i);
            return;
        }
    for (size_t i = 0; i < COUNT_OF(s->jobs); i++) {
        ServeJob *j = &s->jobs[i];
        if (j->pid && !j->answered && str_eq(str_from(j->id), id))
            serve__signal_job(j, "c");
        if (j->pid)
            asks_cancel(&j->asks, id);
    }
}

static void serve__leave(Serve *s)
{
    if (s->leaving)
        return;
    s->leaving = true;
    while (s->held_count)
        serve__forget_held(s, 0);
    for (size_t i = 0; i < COUNT_OF(s->jobs); i++)
        if (s->jobs[i].pid && !(s->jobs[i].create && s->jobs[i].answered))
            serve__signal_job(&s->jobs[i], NULL);
}

/* ---- requests ---- */

/* The id as JSON text: it goes back as it came. Empty: there is none. */
static Str serve__id(const Json *v, Arena *a)
{
    if (!v || (v->type != JSON_INT && v->type != JSON_REAL && v->type != JSON_STRING))
        return (Str){0};
    if (v->type != JSON_STRING)
        return v->text;
    Buf     b = buf_make(8 * LIMIT_SERVE_BEGIN);
    JsonOut w = json_out(&b, JSON_COMPACT);
    json_put_str(&w, v->text.n <= LIMIT_SERVE_BEGIN ? v->text : STR(""));
    Str text = arena_str(a, buf_str(&b));
    buf_free(&b);
    return text;
}

static void serve__request(Serve *s, const Json *doc, Str line, Arena *a)
{
    static const Json nothing = {.type = JSON_OBJECT};
    const Json *params = json_get(doc, "params");
    Call        call = {.method = json_str(json_get(doc, "method")), .id = serve__id(json_get(doc, "id"), a), .params = params};

    if (!params || params->type != JSON_OBJECT)
        call.params = &nothing;
    if (!call.method.p) {
        if (!json_get(doc, "result") && !json_get(doc, "error"))
            serve__error(s, call.id, WIRE_INVALID, "the line is no request: it has no method");
        return;
    }
    if (str_eq(call.method, STR("$/cancel"))) {
        serve__cancel(s, serve__id(json_get(call.params, "id"), a));
    } else if (!call.id.n) {
        return;     /* a notification that is none of ours */
    } else if (str_eq(call.method, STR("initialize"))) {
        serve__initialize(s, call.id, call.params);
    } else if (str_eq(call.method, STR("shutdown"))) {
        WireOut w = wire_answer(&s->to, call.id);
        json_begin(&w.json, '{');
        json_end(&w.json, '}');
        if (wire_end(&w))
            serve__leave(s);
    } else if (!calls_known(call.method) && !asks_known(call.method)) {
        serve__error(s, call.id, WIRE_NO_METHOD, "there is no such method");
    } else if (!s->ready) {
        serve__error(s, call.id, WIRE_INVALID, "initialize has to come first");
    } else {
        serve__call(s, &call, line);
    }
}

static void serve__line(Serve *s, const WireLine *line)
{
    Str         id = wire_find_id(line->text);
    const Json *doc;
    ABX_UNSET Err err;

    if (s->leaving)
        return;
    if (line->too_long) {
        serve__error(s, id, WIRE_FAILED, "the request is longer than this plugin takes");
        return;
    }
    Arena a = arena_make(3 * ARENA_COMMAND);
    if (!json_parse(line->text, &a, &doc, &err))
        serve__error(s, id, WIRE_PARSE, err.text);
    else if (doc->type != JSON_OBJECT)
        serve__error(s, (Str){0}, WIRE_INVALID, "the line is no object");
    else
        serve__request(s, doc, line->text, &a);
    mem_wipe(a.p, a.used < LIMIT_SETTING ? a.used : LIMIT_SETTING);    /* a key may lie here */
    arena_free(&a);
}

/* ---- what calls say ---- */

static void serve__retry(Serve *s)
{
    size_t n = s->held_count;

    for (size_t i = 0; i < n; i++) {
        ServeHeld h = s->held[0];
        WireLine  line = {.text = {mem_str((Str){h.line, h.n}), h.n}};
        serve__forget_held(s, 0);
        serve__line(s, &line);
        mem_free((char *)line.text.p);
    }
}

static void serve__said(Serve *s, ServeJob *j, Str line)
{
    if (str_starts(line, STR("!pid "))) {
        str_skip(&line, 5);
        snprintf(j->process, sizeof j->process, "%.*s", STR_ARG(line));
    } else if (str_starts(line, STR("!did "))) {
        str_skip(&line, 5);
        asks_answered(&j->asks, line);
    } else if (str_eq(line, STR("!end"))) {
        j->ended = true;
    } else {
        buf_add(&s->to, line);
        buf_addc(&s->to, '\n');
        if (!j->answered && j->create)
            j->told = s->written + serve__unread(s);
        j->answered = true;
    }
}

/* It ended without having said all that was due. */
static void serve__broke(Serve *s, const ServeJob *j)
{
    Str id = str_from(j->id);

    for (const Ask *ask = j->asks.first; ask; ask = ask->next)
        serve__error(s, str_from(ask->id), WIRE_NOT_FOUND, "the command has ended");

    if (!j->answered) {
        serve__error(s, id, WIRE_FAILED, "the call broke off: its result is unknown");
    } else if (j->name[0] && !j->ended) {
        WireOut w = wire_notification(&s->to, j->pty ? "pty.exit" : "exec.exit");
        json_begin(&w.json, '{');
        json_key(&w.json, "process_id");
        json_put_str(&w.json, str_from(j->name));
        json_key(&w.json, "exit_code");
        json_put_int(&w.json, 125);
        json_end(&w.json, '}');
        if (!wire_end(&w))
            BUG("an exit code that fits no line");
    }
}

static void serve__reap(Serve *s, ServeJob *j)
{
    while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (!s->leaving)
        serve__broke(s, j);
    close(j->out);
    if (j->cancel >= 0)
        close(j->cancel);
    asks_free(&j->asks);
    wire_free(&j->lines);
    mem_free(j->id);
    mem_free(j->sandbox);
    *j = (ServeJob){0};
    serve__retry(s);
}

static void serve__hear(Serve *s, ServeJob *j)
{
    ABX_UNSET char block[LIMIT_COPY_BLOCK];
    WireLine line;
    ssize_t  n = read(j->out, block, sizeof block);

    if (n < 0 && errno == EINTR)
        return;
    Str in = {block, n > 0 ? (size_t)n : 0};
    while (wire_next(&j->lines, &in, &line) == STEP_DONE)
        serve__said(s, j, line.text);
    if (n <= 0)
        serve__reap(s, j);
}

/* ---- the loop ---- */

static void serve__read(Serve *s)
{
    static char block[4 * LIMIT_COPY_BLOCK];
    WireLine    line;
    ssize_t     n = read(s->in, block, sizeof block);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    Str in = {block, n > 0 ? (size_t)n : 0};
    while (wire_next(&s->reader, &in, &line) == STEP_DONE)
        serve__line(s, &line);
    if (n > 0)
        return;
    if (wire_last(&s->reader, &line))
        serve__line(s, &line);
    serve__leave(s);
}

/* Whoever waits to hear that the host knows: it does, by now. */
static void serve__tell(Serve *s)
{
    for (size_t i = 0; i < COUNT_OF(s->jobs); i++)
        if (s->jobs[i].pid && s->jobs[i].told && s->jobs[i].told <= s->written) {
            serve__signal_job(&s->jobs[i], "k");
            s->jobs[i].told = 0;
        }
}

/* So much that it cannot block: a pipe that is ready takes a page. */
static void serve__write(Serve *s)
{
    size_t  most = serve__unread(s) < 4096 ? serve__unread(s) : 4096;
    ssize_t n = write(s->out, s->to.p + s->gone, most);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0) {
        s->broken = true;
        serve__leave(s);
        return;
    }
    s->gone += (size_t)n;
    s->written += (uint64_t)n;
    if (s->gone == s->to.n || s->gone >= LIMIT_SERVE_BACKLOG) {
        buf_drop(&s->to, s->gone);
        s->gone = 0;
    }
    serve__tell(s);
}

static bool serve__busy(const Serve *s)
{
    for (size_t i = 0; i < COUNT_OF(s->jobs); i++)
        if (s->jobs[i].pid)
            return true;
    return false;
}

static bool serve__turn(Serve *s, Deadline d, Err *err)
{
    enum { JOBS = 3, ASKS = JOBS + LIMIT_SERVE_JOBS, ALL = ASKS + LIMIT_SERVE_JOBS };
    struct pollfd fds[ALL + 1];

    fds[0] = (struct pollfd){.fd = s->leaving ? -1 : s->in, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = serve__unread(s) && !s->broken ? s->out : -1, .events = POLLOUT};
    fds[2] = (struct pollfd){.fd = s->leaving ? -1 : s->signal_fd, .events = POLLIN};
    for (size_t i = 0; i < COUNT_OF(s->jobs); i++) {
        const ServeJob *j = &s->jobs[i];
        bool            heard = j->pid && (serve__unread(s) < LIMIT_SERVE_BACKLOG || s->broken);
        fds[JOBS + i] = (struct pollfd){.fd = heard ? j->out : -1, .events = POLLIN};
        fds[ASKS + i] = (struct pollfd){.fd = j->pid && j->asks.to.n ? j->asks.fd : -1, .events = POLLOUT};
    }
    if (!poll_wait(fds, ALL, -1, d, err))
        return false;
    if (fds[1].revents)
        serve__write(s);
    if (fds[2].revents)
        serve__leave(s);
    if (fds[0].revents && !s->leaving)
        serve__read(s);
    for (size_t i = 0; i < COUNT_OF(s->jobs); i++) {
        ServeJob *j = &s->jobs[i];
        if (fds[ASKS + i].revents && j->pid && j->asks.fd == fds[ASKS + i].fd)
            asks_hand_on(&j->asks);
        if (fds[JOBS + i].revents && j->pid && j->out == fds[JOBS + i].fd)
            serve__hear(s, j);
    }
    return true;
}

/* The end has a time of its own, half of it for the last bytes, and then for
 * removing what nobody was told of. */
static void serve__end(Serve *s)
{
    Deadline half = clock_after(LIMIT_SERVE_END_MS / 2), end = clock_after(LIMIT_SERVE_END_MS);
    ABX_UNSET Err none;

    while (!s->broken && (serve__busy(s) || serve__unread(s)) && serve__turn(s, half, &none))
        continue;
    for (size_t i = 0; i < COUNT_OF(s->jobs); i++)
        if (s->jobs[i].pid)
            serve__signal_job(&s->jobs[i], NULL);
    while (serve__busy(s) && serve__turn(s, end, &none))
        continue;
    for (size_t i = 0; i < COUNT_OF(s->jobs); i++)
        if (s->jobs[i].pid) {
            kill(s->jobs[i].pid, SIGKILL);
            serve__reap(s, &s->jobs[i]);
        }
}

/* What is set for abx itself must not reach a provider that a host configures. */
static void serve__forget_environment(void)
{
    for (bool again = true; again;) {
        again = false;
        for (const char *const *e = env_all(); e && *e && !again; e++) {
            ABX_UNSET char name[128];
            size_t n = strcspn(*e, "=");
            if (strncmp(*e, "ABX_", 4) != 0 || n >= sizeof name)
                continue;
            memcpy(name, *e, n);
            name[n] = '\0';
            again = unsetenv(name) == 0;
        }
    }
}

bool serve_run(const char *id, int in, int out, int signal_fd, Err *err)
{
    Serve *s = mem_new(sizeof *s);
    ABX_UNSET Err why;
    bool   ok = true;

    *s = (Serve){.provider = id, .in = in, .out = out, .signal_fd = signal_fd};
    if (!export_known(id, err)) {
        mem_free(s);
        return false;
    }
    serve__forget_environment();
    s->own = arena_make(ARENA_COMMAND);
    s->reader = wire_reader(LIMIT_SERVE_REQUEST);
    s->to = buf_make(4 * LIMIT_SERVE_UNREAD);
    while (ok && !s->leaving)
        ok = serve__turn(s, DEADLINE_NONE, &why);
    serve__leave(s);
    serve__end(s);
    if (s->broken)
        ok = err_set(err, ERR_CLOSED, E8021, "the host no longer reads");
    else if (!ok)
        *err = why;
    mem_wipe(s->own.p, s->own.used);
    arena_free(&s->own);
    wire_free(&s->reader);
    buf_free(&s->to);
    mem_free(s);
    return ok;
}
