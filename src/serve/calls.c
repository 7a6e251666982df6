#include "serve/calls.h"

#include "base/base64.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include "serve/running.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

/* ---- sandboxes ---- */

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
    call_member(w, "sandbox_id", i->sandbox_id);
    call_member(w, "template", i->template_name);
    call_member(w, "status", calls__status(i->status));
    json_key(w, "metadata");
    json_begin(w, '{');
    for (size_t k = 0; k < i->metadata_count; k++)
        call_member(w, i->metadata[k].key, i->metadata[k].value);
    json_end(w, '}');
    call_member(w, "created_at", i->started_at);
    call_member(w, "expires_at", i->end_at);
    call_member(w, "region", i->region);
    json_end(w, '}');
}

static bool calls__info(CallRun *c, const abx_info *i)
{
    if (!i)
        return false;
    WireOut w = wire_answer(&c->lines, c->call->id);
    calls__record(&w.json, i);
    return call_answered(c, &w);
}

/* An amount that is a whole number in EPP, with its unit behind it for us. */
static bool calls__amount(CallRun *c, const char *key, const char *unit, const char **out)
{
    int64_t n = 0;

    if (!call_number(c, key, false, &n))
        return false;
    if (n < 0)
        return call_refuse(c, WIRE_CONFIG, "%s cannot be %lld", key, (long long)n);
    if (n > 0)
        *out = arena_fmt(&c->a, "%lld%s", (long long)n, unit).p;
    return true;
}

/* Words with blanks between; what other hosts deliver as a default is none. */
static void calls__entrypoint(CallRun *c, Str text, abx_create_options *o)
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

static bool calls__create(CallRun *c)
{
    abx_create_options o = {0};
    const Json        *secure = call_param(c, "secure"), *options = call_param(c, "options");

    if (!call_text(c, "template", false, &o.template_name) || !call_number(c, "timeout", false, &o.timeout_s) ||
        !call_pairs(c, "metadata", &o.metadata, &o.metadata_count) || !call_pairs(c, "envs", &o.env, &o.env_count) ||
        !calls__amount(c, "cpu", "", &o.cpu) || !calls__amount(c, "memory", "Mi", &o.memory))
        return false;
    if (call_param(c, "disk"))
        return call_unable(c, "sandbox.disk", "choose the size of a disk");
    if (call_param(c, "gpu"))
        return call_unable(c, "sandbox.gpu", "choose a GPU");
    if (json_bool(secure, false))
        return call_unable(c, "sandbox.secure", "make a secured sandbox");
    if (o.timeout_s < 0 || (call_param(c, "timeout") && o.timeout_s == 0))
        return call_refuse(c, WIRE_CONFIG, "a sandbox cannot live for %lld seconds", (long long)o.timeout_s);
    /* Options of one call are settings that came with `initialize` already, but
     * for an entrypoint that abx, as the host, was given for this sandbox alone. */
    if (options && options->type != JSON_OBJECT)
        return call_refuse(c, WIRE_PARAMS, "params.options must be an object");
    calls__entrypoint(c, json_str(json_get(options, "entrypoint")), &o);
    c->box = abx_create(c->session, &o, &c->failed);
    c->made = c->box != NULL;
    return c->box && calls__info(c, abx_last_info(c->box));
}

static bool calls__get(CallRun *c)
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
static bool calls__list(CallRun *c)
{
    CallsList   l = {0};
    int64_t     limit = 100;
    const char *cursor = "0";

    if (!call_number(c, "limit", false, &limit) || !call_text(c, "status", false, &l.status) ||
        !call_text(c, "cursor", false, &cursor))
        return false;
    if (limit < 1)
        return call_refuse(c, WIRE_PARAMS, "params.limit must be 1 or more");
    if (!num_i64(str_from(cursor[0] ? cursor : "0"), &l.skip) || l.skip < 0 || l.skip > INT32_MAX)
        return call_refuse(c, WIRE_PARAMS, "params.cursor is none of this provider");
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
    return call_answered(c, &l.w);
}

static bool calls__kill(CallRun *c)
{
    return abx_kill(c->box, NULL, &c->failed) == 0 && call_empty(c);
}

static bool calls__set_timeout(CallRun *c)
{
    int64_t seconds;

    return call_number(c, "timeout", true, &seconds) && abx_set_timeout(c->box, seconds, &c->failed) && call_empty(c);
}

static bool calls__pause(CallRun *c)
{
    return abx_pause(c->box, &c->failed) && call_empty(c);
}

static bool calls__resume(CallRun *c)
{
    return abx_resume(c->box, &c->failed) && call_empty(c);
}

static bool calls__url(CallRun *c)
{
    int64_t port = 0;

    if (!call_number(c, "port", true, &port))
        return false;
    const abx_url *u = abx_port_url(c->box, port < 0 || port > 65535 ? 0 : (int)port, &c->failed);
    if (!u)
        return false;
    WireOut w = wire_answer(&c->lines, c->call->id);
    json_begin(&w.json, '{');
    call_member(&w.json, "url", u->url);
    if (u->header_count) {
        json_key(&w.json, "headers");
        json_begin(&w.json, '{');
        for (size_t i = 0; i < u->header_count; i++)
            call_member(&w.json, u->headers[i].key, u->headers[i].value);
        json_end(&w.json, '}');
    }
    json_end(&w.json, '}');
    return call_answered(c, &w);
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
    call_member(w, "command", p->command);
    call_member(w, "status", p->status);
    json_end(w, '}');
    return 0;
}

static bool calls__processes(CallRun *c)
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
    return call_answered(c, &w);
}

/* These are for processes that no command here is; for one that is, see running.h. */
static bool calls__stdin(CallRun *c)
{
    const char *pid;
    const Json *data = call_param(c, "data");

    if (!call_pid(c, &pid))
        return false;
    if (!data || data->type != JSON_STRING)
        return call_refuse(c, WIRE_PARAMS, "params.data must be a string");
    return abx_process_stdin(c->box, pid, data->text.p, data->text.n, &c->failed) == 0 && call_empty(c);
}

static bool calls__signal(CallRun *c)
{
    const char *pid;
    int64_t     number = SIGTERM;

    if (!call_pid(c, &pid) || !call_number(c, "signal", false, &number))
        return false;
    return abx_process_signal(c->box, pid, number < 0 || number > 64 ? 0 : (int)number, &c->failed) == 0 && call_empty(c);
}

/* ---- files ---- */

static int calls__entry(void *ctx, const abx_file_info *f)
{
    static const char *const types[] = {
        [ABX_FILE] = "file", [ABX_FOLDER] = "directory", [ABX_LINK] = "symlink", [ABX_OTHER] = "other",
    };
    JsonOut *w = ctx;

    json_begin(w, '{');
    call_member(w, "name", f->name);
    call_member(w, "path", f->path);
    call_member(w, "type", types[f->type]);
    json_key(w, "size");
    if (f->size >= 0)
        json_put_int(w, f->size);
    else
        json_put_null(w);
    call_member(w, "mtime", f->modified);
    if (f->mode >= 0) {
        json_key(w, "mode");
        json_put_int(w, f->mode);
    }
    json_end(w, '}');
    return 0;
}

static bool calls__stat(CallRun *c)
{
    const char *path;

    if (!call_text(c, "path", true, &path))
        return false;
    const abx_file_info *f = abx_stat(c->box, path, &c->failed);
    if (!f)
        return false;
    WireOut w = wire_answer(&c->lines, c->call->id);
    calls__entry(&w.json, f);
    return call_answered(c, &w);
}

static bool calls__files(CallRun *c)
{
    const char *path;

    if (!call_text(c, "path", true, &path))
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
    return call_answered(c, &w);
}

static int calls__keep(void *ctx, const void *p, size_t size)
{
    Buf *b = ctx;

    buf_add(b, (Str){p, size});
    errno = EFBIG;
    return b->over ? -1 : 0;
}

static bool calls__read(CallRun *c)
{
    const char *path;
    Buf         content = buf_make(LIMIT_SERVE_LINE / 4 * 3);

    if (!call_text(c, "path", true, &path))
        return false;
    bool ok = abx_read_file(c->box, path, calls__keep, &content, &c->failed) >= 0;
    if (content.over) {
        ok = call_refuse(c, WIRE_FAILED, "%s does not fit into the %zu bytes that a line may have", path, LIMIT_SERVE_LINE);
    } else if (ok) {
        WireOut w = wire_answer(&c->lines, c->call->id);
        json_begin(&w.json, '{');
        json_key(&w.json, "content_b64");
        json_put_str(&w.json, base64_encode(&c->a, buf_str(&content)));
        json_end(&w.json, '}');
        ok = call_answered(c, &w);
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

static bool calls__write(CallRun *c)
{
    const Json *content = call_param(c, "content_b64");
    const char *path;
    Str         bytes;

    if (!call_text(c, "path", true, &path))
        return false;
    if (!content || content->type != JSON_STRING || !base64_decode(&c->a, content->text, &bytes))
        return call_refuse(c, WIRE_PARAMS, "params.content_b64 must be base64");
    int64_t size = (int64_t)bytes.n;
    return abx_write_file(c->box, path, -1, size, calls__give, &bytes, &c->failed) == size && call_empty(c);
}

static bool calls__mkdir(CallRun *c)
{
    const char *path;

    return call_text(c, "path", true, &path) && abx_make_folder(c->box, path, &c->failed) == 0 && call_empty(c);
}

static bool calls__remove(CallRun *c)
{
    const char *path;

    return call_text(c, "path", true, &path) && abx_remove(c->box, path, &c->failed) == 0 && call_empty(c);
}

static bool calls__move(CallRun *c)
{
    const char *from, *to;

    return call_text(c, "source", true, &from) && call_text(c, "destination", true, &to) &&
           abx_move(c->box, from, to, &c->failed) == 0 && call_empty(c);
}

/* ---- the table ---- */

static const struct CallsMethod {
    const char *name;
    bool      (*run)(CallRun *c);     /* false: c->refusal or c->failed */
    bool        no_box;             /* takes no sandbox_id */
} calls__methods[] = {
    {"sandbox.create", calls__create, true}, {"sandbox.connect", calls__get, false}, {"sandbox.get", calls__get, false},
    {"sandbox.list", calls__list, true}, {"sandbox.kill", calls__kill, false},
    {"sandbox.set_timeout", calls__set_timeout, false}, {"sandbox.pause", calls__pause, false},
    {"sandbox.resume", calls__resume, false}, {"exec.run", running_run, false},
    {"exec.start", running_start, false}, {"pty.open", running_open, false}, {"process.list", calls__processes, false},
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

static bool calls__attach(CallRun *c)
{
    const char *id;

    if (!call_text(c, "sandbox_id", true, &id))
        return false;
    /* A colon is part of an id here; abx.h would take what is before it for a provider. */
    c->box = abx_attach(c->session, arena_fmt(&c->a, "%s:%s", abx_session_provider(c->session), id).p, &c->failed);
    return c->box != NULL;
}

/* Wait until the server says that the answer is out, or that it never will be. */
static bool calls__is_known(const CallRun *c)
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
    CallRun c = {.call = call, .out = out, .cancel_fd = options->cancel_fd};

    c.a = arena_make(2 * ARENA_COMMAND);
    c.lines = buf_make(8 * LIMIT_SERVE_LINE);
    c.session = abx_open(options, &c.failed);
    if (!c.session || !(m->no_box || calls__attach(&c)) || !m->run(&c))
        call_failed(&c);
    call_send(&c);
    if (c.made && !calls__is_known(&c))
        call_unmake(&c);
    abx_sandbox_free(c.box);
    abx_close(c.session);
    buf_free(&c.lines);
    arena_free(&c.a);
}
