#include "provider/opensandbox.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/clean.h"
#include "data/shell.h"
#include "net/dial.h"
#include "os/poll.h"
#include "provider/entry.h"
#include "provider/execd_carrier.h"
#include "provider/execd_command.h"
#include "provider/lifecycle.h"
#include "provider/process.h"
#include "provider/transfer.h"

typedef struct Opensandbox {
    Provider  base;
    Dialer   *dialer;
    Lifecycle server;
} Opensandbox;

static const ProviderField opensandbox__fields[] = {
    {"base_url", FIELD_URL, false, "http://127.0.0.1:8080", "address of the opensandbox-server"},
    {"api_key", FIELD_STR, true, NULL, "key for the server; a server without keys needs none"},
    {"image", FIELD_STR, false, "python:3.12-slim", "image of the template `base`"},
    {"entrypoint", FIELD_STR, false, "tail -f /dev/null",
     "command that keeps a sandbox alive, as words; as long as it is this default, the image may choose"},
    {"use_server_proxy", FIELD_BOOL, false, "false", "reach sandboxes through the server instead of directly"},
    {"cpu", FIELD_STR, false, NULL, "CPU limit of new sandboxes, such as 500m or 2"},
    {"memory", FIELD_STR, false, NULL, "memory limit of new sandboxes, such as 512Mi"},
    {"ready_timeout", FIELD_FLOAT, false, "30", "seconds until a new sandbox must answer"},
};

static const char *const opensandbox__features[] = {
    "sandbox.lifecycle", "sandbox.timeout", "sandbox.pause", "exec.run", "exec.stream", "process.manage", "pty", "files.rw",
    "ports.url",
};

static Lifecycle *opensandbox__server(Provider *p)
{
    return &((Opensandbox *)p)->server;
}

/* Split the configured entrypoint at blanks: it is words, not a shell line. */
static void opensandbox__entrypoint(Lifecycle *l, Str text)
{
    Str word;

    /* Hosts deliver a manifest's default as if the user had set it: ours, and
     * that of the plugin that the other hosts know under this name. */
    if (str_eq(text, STR("tail -f /dev/null")) || str_eq(text, STR("python3 commands.py")))
        return;
    Str *words = arena_array(&l->own, text.n / 2 + 1, sizeof *words);
    while (str_cut(&text, ' ', &word))
        if (word.n)
            words[l->entrypoint_count++] = arena_str(&l->own, word);
    l->entrypoint = words;
}

static bool opensandbox__seconds(Settings s, const char *key, int64_t otherwise, int64_t *ms, Err *err)
{
    Str     text = provider_setting(s, key), whole;
    int64_t seconds = 0, part = 0, scale = 100;

    *ms = otherwise;
    if (!text.n)
        return true;
    Str rest = text;
    str_cut(&rest, '.', &whole);
    bool ok = num_i64(whole, &seconds) && seconds >= 0 && seconds <= 86400 * 365;
    for (size_t i = 0; ok && i < rest.n; i++, scale /= 10) {
        ok = rest.p[i] >= '0' && rest.p[i] <= '9';
        part += ok ? (rest.p[i] - '0') * scale : 0;
    }
    if (!ok || seconds * 1000 + part < 1)
        return err_set(err, ERR_USAGE, E8002, "%s must be a number of seconds above 0, not %.*s", key, STR_ARG(text));
    *ms = seconds * 1000 + part;
    return true;
}

static bool opensandbox__settings(Opensandbox *o, Settings s, Err *err)
{
    Lifecycle *l = &o->server;
    Url        base;

    if (!url_parse(arena_str(&l->own, provider_setting(s, "base_url")), &l->own, &base, err))
        return err_wrap(err, "base_url");
    if (base.query.p)
        return err_set(err, ERR_USAGE, E8002, "base_url has a query, which an address of a server cannot have");
    while (base.path.n > 1 && base.path.p[base.path.n - 1] == '/')
        base.path.n--;
    l->base = str_ends(base.path, STR("/v1")) ? base : url_join(&base, STR("/v1"), (Str){0}, &l->own);
    l->key = arena_str(&l->own, provider_setting(s, "api_key"));
    if (l->key.n && !header_value_ok(l->key))
        return err_set(err, ERR_USAGE, E8002, "api_key has characters that no header can carry");
    l->image = arena_str(&l->own, provider_setting(s, "image"));
    l->cpu = arena_str(&l->own, provider_setting(s, "cpu"));
    l->memory = arena_str(&l->own, provider_setting(s, "memory"));
    l->use_proxy = str_eq(provider_setting(s, "use_server_proxy"), STR("true"));
    opensandbox__entrypoint(l, provider_setting(s, "entrypoint"));
    if (l->key.n && !base.tls && !url_is_loopback(&base) && o->base.host.notice)
        o->base.host.notice(
            o->base.host.notice_ctx,
            arena_fmt(&l->own, "warning: the API key goes to %.*s unencrypted: use https", STR_ARG(base.host)));
    return opensandbox__seconds(s, "ready_timeout", LIMIT_READY_MS, &l->ready_ms, err) &&
           opensandbox__seconds(s, "http_timeout", LIMIT_CALL_MS, &l->call_ms, err);
}

static void opensandbox__close(Provider *p)
{
    Opensandbox *o = (Opensandbox *)p;

    client_free(o->server.http);
    dial_free(o->dialer);
    mem_wipe((char *)o->server.key.p, o->server.key.n);
    arena_free(&o->server.own);
    arena_free(&o->server.near.own);
    mem_free(o);
}

static bool opensandbox__open(Settings s, const ProviderHost *host, Provider **out, Err *err)
{
    Opensandbox *o = mem_new(sizeof *o);

    o->base = (Provider){.kind = opensandbox_kind(), .host = *host};
    o->server = (Lifecycle){.host = &o->base.host, .own = arena_make(ARENA_COMMAND)};
    o->dialer = dial_make(host->ca_file);
    o->server.http = client_make(&(ClientOptions){
        .dial = dial_stream, .dial_ctx = o->dialer, .cancel_fd = host->cancel_fd, .agent = STR("abx/" ABX_VERSION),
        .trace = host->trace, .trace_ctx = host->trace_ctx,
    });
    if (!opensandbox__settings(o, s, err)) {
        opensandbox__close(&o->base);
        return false;
    }
    *out = &o->base;
    return true;
}

static void opensandbox__ignore_cancel(Provider *p)
{
    p->host.cancel_fd = -1;
    client_cancel_fd(opensandbox__server(p)->http, -1);
}

/* ---- create ---- */

/* The container ended before its daemon could answer. */
static bool opensandbox__ended(Lifecycle *l, const SandboxInfo *info, Arena *a, Err *err)
{
    Str words = lifecycle_last_words(l, info->id, a, clock_after(LIMIT_CLEANUP_MS));

    err_set(err, ERR_REMOTE, E2000, "the sandbox ended at once: %.*s",
            STR_ARG(info->reason.n ? info->reason : info->status));
    words = clean_message(words, &l->key, 1, a);
    err_hint(err, "Its entrypoint must not end. %s%.*s", words.n ? "The container printed: " : "", STR_ARG(words));
    return false;
}

/* Wait until the daemon answers and the container still runs then. */
static bool opensandbox__wait_ready(Lifecycle *l, SandboxInfo *info, Arena *a, Deadline d, Err *err)
{
    Str      template = info->template;
    int64_t  timeout_s = info->timeout_s;
    Deadline ready = clock_sooner(d, clock_after(l->ready_ms));
    Err      last = {.text = "it was never asked"};
    bool     up = false;
    Str      id = arena_str(a, info->id);

    for (int64_t pause = 20;; pause = pause < 500 ? pause * 2 : pause) {
        Execd x = {.server = l, .id = id};
        Arena turn = *a, asking = *a;   /* what the turns before brought is forgotten */
        if (info->state == SANDBOX_RUNNING) {
            up = lifecycle_endpoint(l, id, 44772, &asking, &x.at, ready, &last) && execd_ping(&x, asking, ready, &last);
            if (!up && last.kind == ERR_CANCELLED) {
                *err = last;
                return false;
            }
        }
        if (!lifecycle_get(l, id, &turn, info, clock_after(l->call_ms), err))
            return false;
        info->timeout_s = timeout_s;
        if (!info->template.n)
            info->template = template;
        if (info->state == SANDBOX_STOPPED || info->state == SANDBOX_ERROR)
            return opensandbox__ended(l, info, &turn, err);
        if (up && info->state == SANDBOX_RUNNING) {
            *a = turn;
            return true;
        }
        if (clock_passed(ready))
            return err_set(err, ERR_TIMEOUT, E2000,
                           "the sandbox is %.*s, but its daemon did not answer within %lld s: %s",
                           STR_ARG(info->status), (long long)(l->ready_ms / 1000), last.text);
        if (!poll_sleep(pause, l->host->cancel_fd, err))
            return false;
    }
}

static bool opensandbox__create(Provider *p, const CreateRequest *rq, Arena *a, SandboxInfo *out, Deadline d, Err *err)
{
    Lifecycle *l = opensandbox__server(p);
    Str        id;
    bool       killed;
    ABX_UNSET Err no;

    if (!lifecycle_create(l, rq, a, out, d, err))
        return false;
    id = arena_str(a, out->id);
    if (opensandbox__wait_ready(l, out, a, d, err))
        return true;
    client_cancel_fd(l->http, -1);
    if (lifecycle_kill(l, id, &killed, clock_after(LIMIT_CLEANUP_MS), &no))
        err_wrap(err, "sandbox %.*s (removed again)", STR_ARG(id));
    else
        err_wrap(err, "sandbox %.*s (it could not be removed: %s)", STR_ARG(id), no.text);
    client_cancel_fd(l->http, p->host.cancel_fd);
    return false;
}

/* ---- the rest of the table ---- */

static bool opensandbox__get(Provider *p, Str id, Arena *a, SandboxInfo *out, Deadline d, Err *err)
{
    return lifecycle_get(opensandbox__server(p), id, a, out, d, err);
}

static bool opensandbox__list(Provider *p, const Pair *metadata, size_t metadata_count, int page,
                              int64_t wanted, Arena *a, ListPage *out, Deadline d, Err *err)
{
    (void)wanted;       /* its pages have a size of their own */
    return lifecycle_list(opensandbox__server(p), metadata, metadata_count, page, a, out, d, err);
}

static bool opensandbox__kill(Provider *p, Str id, bool *killed, Deadline d, Err *err)
{
    return lifecycle_kill(opensandbox__server(p), id, killed, d, err);
}

static bool opensandbox__set_timeout(Provider *p, Str id, int64_t seconds, Arena *a, SandboxInfo *out, Deadline d,
                                     Err *err)
{
    return lifecycle_set_timeout(opensandbox__server(p), id, seconds, a, out, d, err);
}

static bool opensandbox__pause(Provider *p, Str id, Arena *a, SandboxInfo *out, Deadline d, Err *err)
{
    return lifecycle_switch(opensandbox__server(p), id, "pause", SANDBOX_PAUSED, a, out, d, err);
}

static bool opensandbox__resume(Provider *p, Str id, Arena *a, SandboxInfo *out, Deadline d, Err *err)
{
    return lifecycle_switch(opensandbox__server(p), id, "resume", SANDBOX_RUNNING, a, out, d, err);
}

static bool opensandbox__port_url(Provider *p, Str id, int port, Arena *a, PortUrl *out, Deadline d, Err *err)
{
    Endpoint at;

    if (!lifecycle_endpoint(opensandbox__server(p), id, port, a, &at, d, err))
        return false;
    out->url = url_text(&at.url, a);
    /* The key is ours to use, not to print: the server's proxy works without
     * it where there is one tenant. */
    Header *shown = arena_array(a, at.headers.n, sizeof *shown);
    size_t  n = 0;
    for (size_t i = 0; i < at.headers.n; i++)
        if (!str_eq_nocase(at.headers.v[i].name, STR("OPEN-SANDBOX-API-KEY")))
            shown[n++] = at.headers.v[i];
    out->headers = (Headers){shown, n};
    return true;
}

/* The line for the daemon's shell. One word is a shell line, for sh whatever
 * shell the daemon prefers. The daemon would take a `$` in its cwd field for a
 * variable, so that such a folder is entered here. */
static Str opensandbox__line(const ExecRequest *rq, bool *cwd_done, Arena *a)
{
    Buf b = buf_make(LIMIT_ANSWER);

    /* Whoever learns the number may write at once: the pipe comes first. */
    if (rq->open_stdin)
        process_open_stdin(&b);
    if (rq->tell_pid)
        buf_add(&b, STR("echo $$ >&2; "));
    *cwd_done = str_has(rq->cwd, '$') || str_starts(rq->cwd, STR("~"));
    if (*cwd_done) {
        buf_add(&b, STR("cd -- "));
        shell_quote(&b, str_starts(rq->cwd, STR("~")) ? arena_fmt(a, "./%.*s", STR_ARG(rq->cwd)) : rq->cwd);
        buf_add(&b, STR(" || exit 126; "));
    }
    buf_add(&b, STR("exec "));
    if (rq->argc == 1) {
        /* The shell takes a line that begins like an option for one. */
        bool option = rq->argv[0].n && (rq->argv[0].p[0] == '-' || rq->argv[0].p[0] == '+');
        buf_add(&b, STR("sh -c "));
        shell_quote(&b, option ? arena_fmt(a, " %.*s", (int)rq->argv[0].n, rq->argv[0].p) : rq->argv[0]);
    } else {
        shell_command(&b, rq->argv, rq->argc);
    }
    Str line = arena_str(a, buf_str(&b));
    buf_free(&b);
    return line;
}

/* The daemon is told in JSON, which cannot carry other bytes. */
static bool opensandbox__sayable(const ExecRequest *rq, Err *err)
{
    for (size_t i = 0; i < rq->argc; i++)
        if (!utf8_valid(rq->argv[i]))
            return err_set(err, ERR_USAGE, E8002,
                           "word %zu of the command is not UTF-8, and OpenSandbox takes no other", i + 1);
    if (rq->argc > 1 && str_starts(rq->argv[0], STR("-"))) {
        /* The shell's exec would take it for an option of its own. */
        err_set(err, ERR_USAGE, E8002, "a program's name cannot begin with a dash");
        return err_hint(err, "Name it with its folder: ./%.*s", STR_ARG(rq->argv[0]));
    }
    for (size_t i = 0; i < rq->env_count; i++)
        if (!utf8_valid(rq->env[i].key) || !utf8_valid(rq->env[i].value))
            return err_set(err, ERR_USAGE, E8002,
                           "environment variable %zu is not UTF-8, and OpenSandbox takes no other", i + 1);
    if (rq->cwd.n >= 4096)
        return err_set(err, ERR_USAGE, E8002, "the working directory has %zu bytes; 4095 are the most", rq->cwd.n);
    return utf8_valid(rq->cwd) || err_set(err, ERR_USAGE, E8002, "the working directory is not UTF-8");
}

static bool opensandbox__exec(Provider *p, Str id, const ExecRequest *rq, ExecCall **out, Deadline d, Err *err)
{
    if (!provider_plain(rq, err) || !opensandbox__sayable(rq, err))
        return false;

    Arena       a = arena_make(ARENA_COMMAND);
    Execd       x;
    ExecRequest use = *rq;
    bool        cwd_done;
    Str         line = opensandbox__line(rq, &cwd_done, &a);

    if (cwd_done)
        use.cwd = (Str){0};
    bool ok = execd_find(opensandbox__server(p), id, E3000, &a, &x, d, err) && execd_command_start(&x, line, &use, out, d, err);
    arena_free(&a);
    return ok;
}

static bool opensandbox__write(Provider *p, Str id, Str path, int mode, Source src, int64_t *size, Deadline d, Err *err)
{
    return transfer_write(opensandbox__server(p), id, path, mode, src, size, d, err);
}

static bool opensandbox__read(Provider *p, Str id, Str path, Sink to, int64_t *size, Deadline d, Err *err)
{
    return transfer_read(opensandbox__server(p), id, path, to, size, d, err);
}

static bool opensandbox__stat(Provider *p, Str id, Str path, Arena *a, FileInfo *out, Deadline d, Err *err)
{
    return entry_stat(opensandbox__server(p), id, path, a, out, d, err);
}

static bool opensandbox__files(Provider *p, Str id, Str path, Arena *a, FileList *out, Deadline d, Err *err)
{
    return entry_list(opensandbox__server(p), id, path, a, out, d, err);
}

static bool opensandbox__make_folder(Provider *p, Str id, Str path, Deadline d, Err *err)
{
    return entry_make_folder(opensandbox__server(p), id, path, d, err);
}

static bool opensandbox__move(Provider *p, Str id, Str from, Str to, Deadline d, Err *err)
{
    return entry_move(opensandbox__server(p), id, from, to, d, err);
}

static bool opensandbox__remove(Provider *p, Str id, Str path, Deadline d, Err *err)
{
    return entry_remove(opensandbox__server(p), id, path, d, err);
}

static bool opensandbox__processes(Provider *p, Str id, Arena *a, ProcessList *out, Deadline d, Err *err)
{
    return process_list(opensandbox__server(p), id, a, out, d, err);
}

static bool opensandbox__stdin(Provider *p, Str id, Str pid, Str bytes, Deadline d, Err *err)
{
    return process_stdin(opensandbox__server(p), id, pid, bytes, d, err);
}

static bool opensandbox__signal(Provider *p, Str id, Str pid, int number, Deadline d, Err *err)
{
    return process_signal(opensandbox__server(p), id, pid, number, d, err);
}
static bool opensandbox__carrier(Provider *p, Str id, Carrier **out, Deadline d, Err *err)
{
    return execd_carrier_open(opensandbox__server(p), id, p->kind->carrier, out, d, err);
}

const ProviderKind *opensandbox_kind(void)
{
    static const CarrierOps carrier = {
        .open = opensandbox__carrier, .close = execd_carrier_close, .line = execd_carrier_line, .put = execd_carrier_put,
        .dial = execd_carrier_dial, .pipe = execd_carrier_pipe,
    };
    static const ProviderKind kind = {
        .id = {"opensandbox", 11}, .name = {"OpenSandbox", 11},
        .fields = opensandbox__fields, .field_count = COUNT_OF(opensandbox__fields),
        .features = opensandbox__features, .feature_count = COUNT_OF(opensandbox__features),
        .open = opensandbox__open, .close = opensandbox__close, .ignore_cancel = opensandbox__ignore_cancel,
        .create = opensandbox__create, .get = opensandbox__get, .list = opensandbox__list, .kill = opensandbox__kill,
        .set_timeout = opensandbox__set_timeout, .pause = opensandbox__pause, .resume = opensandbox__resume,
        .port_url = opensandbox__port_url, .exec = opensandbox__exec, .carrier = &carrier,
        .file_write = opensandbox__write, .file_read = opensandbox__read, .file_stat = opensandbox__stat,
        .file_list = opensandbox__files, .folder_make = opensandbox__make_folder, .file_move = opensandbox__move,
        .file_remove = opensandbox__remove, .process_list = opensandbox__processes,
        .process_stdin = opensandbox__stdin, .process_signal = opensandbox__signal,
    };

    return &kind;
}
