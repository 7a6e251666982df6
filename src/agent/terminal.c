#include "agent/terminal.h"

#include "agent/answer.h"
#include "agent/daemon.h"
#include "agent/environ.h"
#include "agent/program.h"
#include "agent/query.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "data/json.h"
#include "net/ws.h"
#include "os/random.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TERMINAL_OUT = 1, TERMINAL_ERR = 2, TERMINAL_REPLAY = 3, TERMINAL_PIECE = 32 << 10, TERMINAL_ID = 37 };

struct Terminal {
    Terminal *next;
    Daemon   *daemon;
    char      id[TERMINAL_ID];
    char     *command, *cwd;    /* empty: an interactive shell; where the daemon is */
    bool      began;            /* there is a program, running or over */
    bool      deleted;
    Program   program;
    uint64_t  before;           /* what earlier programs of the session printed */
    HttpdCall *call;            /* the client; NULL: none */
    WsReader  reader;
    Buf       text;             /* a text message of the client, as far as it came */
    bool      input;            /* a binary message that it is sending is input */
    RingPlace at;               /* what it was given */
};

/* --- saying something to the client --- */

static void terminal__send(Terminal *t, WsOp op, Str bytes)
{
    Buf *frame = &t->daemon->events;

    ws_put(frame, op, true, bytes, NULL);
    httpd_write(t->call, buf_str(frame));
    buf_clear(frame);
}

/* A text frame: {"type":TYPE, and up to two texts of other names}. */
static void terminal__say(Terminal *t, const char *type, const char *name, Str value, const char *name2, Str value2)
{
    Buf     text = buf_make(LIMIT_AGENT_JSON);
    JsonOut w = json_out(&text, JSON_COMPACT);

    json_begin(&w, '{');
    json_key(&w, "type");
    json_put_str(&w, str_from(type));
    if (name) {
        json_key(&w, name);
        json_put_str(&w, value);
    }
    if (name2) {
        json_key(&w, name2);
        json_put_str(&w, value2);
    }
    json_end(&w, '}');
    buf_addc(&text, '\n');
    terminal__send(t, WS_TEXT, buf_str(&text));
    buf_free(&text);
}

static void terminal__complain(Terminal *t, const char *code, Str what)
{
    terminal__say(t, "error", "error", what, "code", str_from(code));
}

/* The client is no longer ours; with code 0 there is no close frame. */
static void terminal__part(Terminal *t, uint16_t code, const char *reason)
{
    static const HttpdHandler nobody;
    Buf       *frame = &t->daemon->events;
    HttpdCall *c = t->call;

    if (!c)
        return;
    if (code) {
        ws_put_close(frame, code, str_from(reason), NULL);
        httpd_write(c, buf_str(frame));
        buf_clear(frame);
    }
    httpd_finish(c);
    c->handler = &nobody;
    t->call = NULL;
    buf_free(&t->text);
}

/* --- the client's frames --- */

static void terminal__signal(Terminal *t, Str name)
{
    static const struct { const char *name; int number; } known[] = {
        {"SIGINT", SIGINT}, {"SIGTERM", SIGTERM}, {"SIGKILL", SIGKILL}, {"SIGQUIT", SIGQUIT}, {"SIGHUP", SIGHUP},
    };

    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (str_eq(name, str_from(known[i].name))) {
            program_signal(&t->program, known[i].number, FRAME_TO_GROUP);
            return;
        }
    terminal__complain(t, "INVALID_FRAME", STR("unknown signal"));
}

static void terminal__size(Terminal *t, const Json *doc)
{
    int64_t cols = json_int(json_get(doc, "cols"), 0), rows = json_int(json_get(doc, "rows"), 0);

    if (cols > 0 && cols <= UINT16_MAX && rows > 0 && rows <= UINT16_MAX)
        program_resize(&t->program, (uint16_t)cols, (uint16_t)rows);
}

static void terminal__text(Terminal *t)
{
    Arena       a = arena_make(LIMIT_AGENT_ARENA);
    const Json *doc = NULL;
    ABX_UNSET Err err;

    if (!json_parse(buf_str(&t->text), &a, &doc, &err) || doc->type != JSON_OBJECT) {
        terminal__complain(t, "INVALID_FRAME", STR("not a JSON object"));
    } else {
        Str type = json_str(json_get(doc, "type"));
        if (str_eq(type, STR("ping")))
            terminal__say(t, "pong", NULL, (Str){0}, NULL, (Str){0});
        else if (str_eq(type, STR("stdin")))
            program_write(&t->program, json_str(json_get(doc, "data")));
        else if (str_eq(type, STR("resize")))
            terminal__size(t, doc);
        else if (str_eq(type, STR("signal")))
            terminal__signal(t, json_str(json_get(doc, "signal")));
        else
            terminal__complain(t, "INVALID_FRAME", arena_fmt(&a, "unknown frame type \"%.*s\"", STR_ARG(type)));
    }
    arena_free(&a);
    buf_clear(&t->text);
}

/* False: it has left, or must go. */
static bool terminal__event(Terminal *t, const WsEvent *ev)
{
    Str bytes = ev->bytes;

    switch (ev->op) {
    case WS_TEXT:
        buf_add(&t->text, bytes);
        if (t->text.over) {
            terminal__part(t, WS_TOO_LONG, "");
            return false;
        }
        if (ev->last)
            terminal__text(t);
        break;
    case WS_BINARY:
        /* The first byte says what it is; of kinds that are not known nothing is taken. */
        if (ev->first) {
            t->input = bytes.n && bytes.p[0] == 0;
            str_skip(&bytes, bytes.n ? 1 : 0);
        }
        if (t->input)
            program_write(&t->program, bytes);
        break;
    case WS_PING:
        terminal__send(t, WS_PONG, bytes);
        break;
    case WS_CLOSE:
        terminal__part(t, ev->code, "");
        return false;
    case WS_PONG:
    case WS_CONTINUATION:
        break;
    }
    return true;
}

static void terminal__body(HttpdCall *c, Str piece)
{
    Terminal *t = c->ctx;
    WsEvent   ev;
    ABX_UNSET Err err;
    Step      step;

    while ((step = ws_next(&t->reader, &piece, &ev, &err)) == STEP_DONE)
        if (!terminal__event(t, &ev))
            return;
    if (step == STEP_ERR)
        terminal__part(t, t->reader.blame, "");
    else if (t->program.queue.n - t->program.queue_at >= LIMIT_CARRY_INPUT)
        httpd_pause(c);
}

static void terminal__left(HttpdCall *c)
{
    terminal__part(c->ctx, 0, NULL);
}

static void terminal__gone(HttpdCall *c, bool whole)
{
    Terminal *t = c->ctx;

    (void)whole;
    t->call = NULL;
    buf_free(&t->text);
}

/* --- starting --- */

static bool terminal__run(Terminal *t, bool pipes, Arena *a, FrameFail *fail)
{
    const char *fault = NULL, *const *env = environ_make(NULL, a, &fault);
    char       *here = arena_alloc(a, 4096);
    size_t      n = 0;
    Str         words[3] = {STR("bash"), STR("--norc"), STR("--noprofile")};
    FrameStart  start = {.kind = pipes ? FRAME_EXEC : FRAME_PTY, .flags = FRAME_START_INPUT, .cols = 80, .rows = 24,
                         .cwd = str_from(t->cwd)};

    *fail = (FrameFail){FRAME_AT_START, 0, fault ? str_from(fault) : (Str){0}};
    if (!env)
        return false;
    while (env[n])
        n++;
    Str *list = arena_array(a, n + 1, sizeof *list);
    for (size_t i = 0; i < n; i++)
        list[i] = str_from(env[i]);
    if (t->command[0]) {
        words[1] = STR("-c");
        words[2] = str_from(t->command);
    }
    start.env = (Strs){list, n};
    start.argv = (Strs){words, 3};
    Str  cwd = getcwd(here, 4096) ? str_from(here) : (Str){0};
    bool ok = program_start(&t->program, &t->daemon->loop, &start, cwd, *a, fail);
    if (!ok && fail->stage == FRAME_AT_EXEC && fail->sys == ENOENT) {
        words[0] = STR("sh");
        if (!t->command[0]) {
            words[1] = STR("-i");
            start.argv.n = 2;
        }
        ok = program_start(&t->program, &t->daemon->loop, &start, cwd, *a, fail);
    }
    if (ok)
        prlimit(t->program.pid, RLIMIT_NOFILE, &t->daemon->files, NULL);
    return ok;
}

/* What the last program of the session left, if it is over, makes room for another. */
static bool terminal__begin(Terminal *t, bool pipes)
{
    Arena     a = arena_make(LIMIT_AGENT_ARENA);
    FrameFail fail;

    if (t->began) {
        t->before += t->program.ring.end;
        program_free(&t->program);
    }
    t->began = terminal__run(t, pipes, &a, &fail);
    if (!t->began) {
        terminal__complain(t, "START_FAILED", fail.text);
        terminal__part(t, 0, NULL);
    }
    arena_free(&a);
    return t->began;
}

/* --- a client comes --- */

static bool terminal__over(const Terminal *t)
{
    return !t->began || program_done(&t->program);
}

/* One frame with all that the ring has from `since` on. */
static void terminal__replay(Terminal *t, uint64_t since)
{
    Buf       all = buf_make(RING_BYTES + 16);
    char      head[9] = {TERMINAL_REPLAY};
    bool      is_err;
    Str       piece;

    t->at = ring_place(&t->program.ring, since < t->before ? 0 : since - t->before);
    for (int i = 0; i < 8; i++)
        head[1 + i] = (char)((t->at.offset + t->before) >> (8 * (7 - i)));
    buf_add(&all, (Str){head, sizeof head});
    while ((piece = ring_piece(&t->program.ring, &t->at, RING_BYTES, &is_err)).n) {
        buf_add(&all, piece);
        ring_pass(&t->at, piece.n);
    }
    if (all.n > sizeof head)
        terminal__send(t, WS_BINARY, buf_str(&all));
    buf_free(&all);
}

static void terminal__admit(Terminal *t, HttpdCall *c, bool pipes, uint64_t since)
{
    static const HttpdHandler client = {.body = terminal__body, .end = terminal__left, .gone = terminal__gone};

    terminal__part(t, 4001, "TAKEN_OVER");
    t->call = c;
    t->reader = ws_reader(true, 0);
    t->text = buf_make(LIMIT_AGENT_JSON);
    c->handler = &client;
    c->ctx = t;
    if (t->began)
        terminal__replay(t, since);
    if (terminal__over(t)) {
        if (!terminal__begin(t, pipes))
            return;
        t->at = ring_place(&t->program.ring, 0);
    }
    terminal__say(t, "connected", "session_id", str_from(t->id), "mode",
                  t->program.tty ? STR("pty") : STR("pipe"));
}

static void terminal__upgrade(HttpdCall *c, Terminal *t)
{
    Headers  h = c->head.headers;
    Str      key = header_get(h, "Sec-WebSocket-Key"), text;
    ABX_UNSET char proof[WS_ACCEPT + 1];
    uint64_t since = 0;

    if (t->call && !(query_get(c->head.target, "takeover", c->arena, &text) && str_eq(text, STR("1")))) {
        answer_error(c, 409, "ALREADY_CONNECTED", "another client is already connected to pty session %s", t->id);
        return;
    }
    if (!header_has_token(h, "Connection", "Upgrade") || !header_has_token(h, "Upgrade", "websocket") ||
        !str_eq(header_get(h, "Sec-WebSocket-Version"), STR("13")) || key.n != WS_KEY) {
        Header fields[] = {{STR("Content-Type"), STR("text/plain; charset=utf-8")},
                           {STR("Sec-WebSocket-Version"), STR("13")}};
        httpd_start(c, 400, fields, COUNT_OF(fields), 12);
        httpd_write(c, STR("Bad Request\n"));
        httpd_finish(c);
        return;
    }
    if (query_get(c->head.target, "since", c->arena, &text) && !num_u64(text, &since))
        since = 0;
    bool pipes = query_get(c->head.target, "pty", c->arena, &text) && str_eq(text, STR("0"));
    ws_accept(key, proof);
    Header fields[] = {{STR("Upgrade"), STR("websocket")}, {STR("Connection"), STR("Upgrade")},
                       {STR("Sec-WebSocket-Accept"), {proof, WS_ACCEPT}}};
    httpd_tunnel(c, fields, COUNT_OF(fields));
    terminal__admit(t, c, pipes, since);
}

/* --- each turn --- */

static void terminal__pump(Terminal *t)
{
    char  *frame = t->daemon->scratch;
    size_t room;
    bool   is_err;
    Str    piece;

    while ((room = httpd_room(t->call)) > 0) {
        piece = ring_piece(&t->program.ring, &t->at, room < TERMINAL_PIECE ? room : TERMINAL_PIECE, &is_err);
        if (!piece.n)
            return;
        frame[0] = is_err ? TERMINAL_ERR : TERMINAL_OUT;
        memcpy(frame + 1, piece.p, piece.n);
        terminal__send(t, WS_BINARY, (Str){frame, piece.n + 1});
        ring_pass(&t->at, piece.n);
    }
}

static void terminal__exit(Terminal *t)
{
    ABX_UNSET char text[80];
    int  status = t->program.status;

    if (WIFSIGNALED(status))
        snprintf(text, sizeof text, "{\"type\":\"exit\",\"exit_code\":-1,\"signal\":%d}\n", WTERMSIG(status));
    else
        snprintf(text, sizeof text, "{\"type\":\"exit\",\"exit_code\":%d}\n", WEXITSTATUS(status));
    terminal__send(t, WS_TEXT, str_from(text));
    terminal__part(t, WS_NORMAL, "process exited");
}

static void terminal__free(Terminal *t)
{
    terminal__part(t, WS_NORMAL, "");
    if (t->began)
        program_free(&t->program);
    mem_free(t->command);
    mem_free(t->cwd);
    mem_free(t);
}

/* When to come again. */
static int64_t terminal__step(Terminal *t, int64_t now)
{
    Program *p = &t->program;
    int64_t  next;

    if (!t->began)
        return DEADLINE_NONE;
    p->keep = t->call ? t->at.offset : p->ring.end;
    next = program_step(p, now);
    if (t->call) {
        terminal__pump(t);
        p->keep = t->at.offset;
        if (p->queue.n - p->queue_at < LIMIT_CARRY_INPUT / 2)
            httpd_resume(t->call);
    }
    if (!program_done(p))
        return next;
    if (t->call && t->at.offset == p->ring.end)
        terminal__exit(t);
    /* What children that were left behind print now goes nowhere. */
    if (!p->forgotten)
        program_forget(p);
    return DEADLINE_NONE;
}

void terminal_turn(Daemon *d)
{
    int64_t next = DEADLINE_NONE, now = clock_mono_ms();

    for (Terminal **at = &d->terminals.first, *t; (t = *at) != NULL;) {
        next = clock_sooner(next, terminal__step(t, now));
        if (t->deleted && terminal__over(t)) {
            *at = t->next;
            d->terminals.n--;
            terminal__free(t);
        } else {
            at = &t->next;
        }
    }
    d->terminals.tick.deadline = next;
}

void terminal_reaped(Daemon *d, pid_t pid, int status)
{
    for (Terminal *t = d->terminals.first; t; t = t->next)
        if (t->began)
            program_reaped(&t->program, pid, status);
}

void terminal_free_all(Daemon *d)
{
    for (Terminal *t = d->terminals.first, *next; t; t = next) {
        next = t->next;
        terminal__free(t);
    }
    loop_remove(&d->loop, &d->terminals.tick);
    d->terminals = (Terminals){0};
}

/* --- the calls --- */

static void terminal__tick(LoopWatch *w, short revents)
{
    (void)revents;
    w->deadline = DEADLINE_NONE;        /* what is due is done after the turn */
}

static void terminal__make(HttpdCall *c, Daemon *d, const char *command, const char *cwd)
{
    Terminal *t = mem_new(sizeof *t);
    char      hex[33], text[80];

    random_hex(hex, sizeof hex - 1);
    *t = (Terminal){.next = d->terminals.first, .daemon = d, .command = mem_str(str_from(command)),
                    .cwd = mem_str(str_from(cwd))};
    snprintf(t->id, sizeof t->id, "%.8s-%.4s-4%.3s-a%.3s-%.12s", hex, hex + 8, hex + 13, hex + 17, hex + 20);
    if (!d->terminals.tick.wake) {
        d->terminals.tick = (LoopWatch){.fd = -1, .deadline = DEADLINE_NONE, .wake = terminal__tick};
        loop_add(&d->loop, &d->terminals.tick);
    }
    d->terminals.first = t;
    d->terminals.n++;
    snprintf(text, sizeof text, "{\"session_id\":\"%s\"}", t->id);
    httpd_answer(c, 201, "application/json; charset=utf-8", str_from(text));
}

void terminal_post(HttpdCall *c, Str body)
{
    Daemon     *d = c->ctx;
    Arena       a = arena_make(LIMIT_AGENT_ARENA);
    const Json *doc = NULL, *command, *cwd;
    ABX_UNSET Err err;

    err_set(&err, ERR_INPUT, E0000, "not an object");
    bool ok = body.n == 0 || (json_parse(body, &a, &doc, &err) && doc->type == JSON_OBJECT);
    command = json_get(doc, "command");
    cwd = json_get(doc, "cwd");
    Str         line = json_str(command), folder = json_str(cwd);
    const char *path = folder.n ? query_file(folder, &a) : "";
    if (!ok)
        answer_error(c, 400, "INVALID_REQUEST_BODY", "error parsing request, MAYBE invalid body format. %s", err.text);
    else if (!path || str_has(line, '\0') || (command && command->type != JSON_STRING && command->type != JSON_NULL))
        answer_error(c, 400, "INVALID_REQUEST_BODY", "command and cwd must be texts");
    else if (d->terminals.n >= LIMIT_AGENT_TERMINALS)
        answer_error(c, 500, "RUNTIME_ERROR", "there are %d pty sessions already", LIMIT_AGENT_TERMINALS);
    else
        terminal__make(c, d, line.n ? arena_cstr(&a, line) : "", path);
    arena_free(&a);
}

static void terminal__status(HttpdCall *c, const Terminal *t)
{
    ABX_UNSET char text[128];
    uint64_t end = t->before + (t->began ? t->program.ring.end : 0);

    snprintf(text, sizeof text, "{\"session_id\":\"%s\",\"running\":%s,\"output_offset\":%llu}", t->id,
             terminal__over(t) ? "false" : "true", (unsigned long long)end);
    httpd_answer(c, 200, "application/json; charset=utf-8", str_from(text));
}

static void terminal__delete(HttpdCall *c, Terminal *t)
{
    t->deleted = true;
    if (!terminal__over(t))
        program_kill(&t->program);
    answer_empty(c);
}

bool terminal_route(HttpdCall *c, Str path)
{
    Daemon   *d = c->ctx;
    Terminal *t = d->terminals.first;
    Str       id, rest = path, method = c->head.method;

    if (!str_starts(path, STR("/pty/")))
        return false;
    str_skip(&rest, 5);
    str_cut(&rest, '/', &id);
    bool ws = rest.p != NULL, get = str_eq(method, STR("GET")), remove = str_eq(method, STR("DELETE"));
    if (!id.n || (ws ? !get || !str_eq(rest, STR("ws")) : !get && !remove))
        return false;
    while (t && (t->deleted || !str_eq(str_from(t->id), id)))
        t = t->next;
    if (!t)
        answer_error(c, 404, "CONTEXT_NOT_FOUND", "pty session %.*s not found", STR_ARG(id));
    else if (ws)
        terminal__upgrade(c, t);
    else if (get)
        terminal__status(c, t);
    else
        terminal__delete(c, t);
    return true;
}
