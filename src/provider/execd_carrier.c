#include "provider/execd_carrier.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/clean.h"
#include "net/pool.h"
#include "net/ws_stream.h"
#include "provider/execd_command.h"
#include "provider/transfer.h"

#include <stdio.h>

enum {
    EXECD_CARRIER_ID = 100,
    EXECD_CARRIER_SAID = 512,
};

typedef struct ExecdCarrier {
    Carrier base;
    Arena   own;
    Execd   daemon;
} ExecdCarrier;

static ExecdCarrier *execd_carrier__of(Carrier *c)
{
    return (ExecdCarrier *)c;
}

bool execd_carrier_open(Lifecycle *l, Str id, const CarrierOps *ops, Carrier **out, Deadline d, Err *err)
{
    ExecdCarrier *c = mem_new(sizeof *c);

    c->base.ops = ops;
    c->own = arena_make(ARENA_COMMAND);
    if (execd_find(l, arena_str(&c->own, id), E3000, &c->own, &c->daemon, d, err)) {
        *out = &c->base;
        return true;
    }
    execd_carrier_close(&c->base);
    return false;
}

void execd_carrier_close(Carrier *carrier)
{
    arena_free(&execd_carrier__of(carrier)->own);
    mem_free(carrier);
}

bool execd_carrier_line(Carrier *carrier, Str line, const Pair *env, size_t n, bool input, ExecCall **out, Deadline d, Err *err)
{
    ExecRequest rq = {.env = env, .env_count = n};

    (void)input;        /* there is none to be had */
    if (execd_command_start(&execd_carrier__of(carrier)->daemon, line, &rq, out, d, err))
        return true;
    if (err->status == 0)
        err->hint[0] = 0;       /* what may have been started is the program, and nothing else */
    return false;
}

bool execd_carrier_put(Carrier *carrier, Str path, Source src, Deadline d, Err *err)
{
    ExecdCarrier *c = execd_carrier__of(carrier);
    Arena         scratch = c->own;
    int64_t       size;

    return transfer_put(&c->daemon, path, 0755, src, &size, &scratch, d, err);
}

/* ---- WebSocket ---- */

static bool execd_carrier__upgrade(ExecdCarrier *c, const char *path, Str query, const WsStreamOptions *options, Stream **out,
                                   Deadline d, Err *err)
{
    Arena     scratch = c->own;
    ExecdCall call = {.method = "GET", .path = path, .query = query, .websocket = true, .idempotent = true,
                      .what = "reach the agent", .code = E3000, .deadline = d};
    Exchange *x;
    Buf       rest = buf_make(POOL_IN_SIZE);

    if (!execd_open(&c->daemon, &call, &scratch, &x, err))
        return false;
    Stream *raw = client_take(x, &rest);
    *out = ws_stream_make(raw, buf_str(&rest), options);
    buf_free(&rest);
    return true;
}

bool execd_carrier_dial(Carrier *carrier, int port, Str path, Stream **out, Deadline d, Err *err)
{
    ABX_UNSET char at[128];

    snprintf(at, sizeof at, "/proxy/%d%.*s", port, STR_ARG(path));
    return execd_carrier__upgrade(execd_carrier__of(carrier), at, (Str){0}, &(WsStreamOptions){0}, out, d, err);
}

/* ---- a pipe ---- */

typedef struct ExecdPipe {
    Stream        base;
    ExecdCarrier *carrier;
    Stream       *ws;
    char          id[EXECD_CARRIER_ID];
    Buf           said;         /* why the daemon did not start it, or what it complained of */
} ExecdPipe;

static Step execd_carrier__read(Stream *stream, char *p, size_t cap, size_t *n, Err *err)
{
    ExecdPipe *s = (ExecdPipe *)stream;
    Step       step = stream_read(s->ws, p, cap, n, err);

    if (step == STEP_ERR && s->said.n) {
        Arena scratch = s->carrier->own;
        err_wrap(err, "%s", clean_message(buf_str(&s->said), NULL, 0, &scratch).p);
    }
    return step;
}

static Step execd_carrier__write(Stream *stream, const char *p, size_t len, size_t *n, Err *err)
{
    return stream_write(((ExecdPipe *)stream)->ws, p, len, n, err);
}

static StreamWant execd_carrier__want(const Stream *stream, StreamSide side)
{
    return stream_want(((const ExecdPipe *)stream)->ws, side);
}

/* A session that is not deleted holds 1 MiB of the sandbox's memory for ever. */
static void execd_carrier__end(Stream *stream)
{
    ExecdPipe *s = (ExecdPipe *)stream;
    Lifecycle *l = s->carrier->daemon.server;
    Arena      scratch = s->carrier->own;
    Str        path = arena_fmt(&scratch, "/pty/%s", s->id);
    ExecdCall  call = {.method = "DELETE", .path = path.p, .idempotent = true, .most = LIMIT_ERROR_BODY, .what = "end the agent's pipe",
                       .code = E3000, .deadline = clock_after(LIMIT_CLEANUP_MS)};
    ABX_UNSET ExecdReply reply;
    ABX_UNSET Err none;

    stream_close(s->ws);
    client_cancel_fd(l->http, -1);
    (void)execd_ask(&s->carrier->daemon, &call, &scratch, &reply, &none);
    client_cancel_fd(l->http, l->host->cancel_fd);
    buf_free(&s->said);
    mem_free(s);
}

static void execd_carrier__aside(void *ctx, int tag, Str message)
{
    ExecdPipe *s = ctx;

    if ((tag == 2 || (message.n && memmem(message.p, message.n, "\"error\"", 7))) && s->said.n + message.n <= s->said.limit)
        buf_add(&s->said, message);
}

bool execd_carrier_pipe(Carrier *carrier, Str line, Stream **out, Deadline d, Err *err)
{
    static const StreamOps ops = {execd_carrier__read, execd_carrier__write, execd_carrier__want, execd_carrier__end};
    ExecdCarrier *c = execd_carrier__of(carrier);
    Arena         scratch = c->own;
    Buf           json = buf_make(LIMIT_URL);
    JsonOut       w = json_out(&json, JSON_COMPACT);
    ABX_UNSET ExecdReply reply;

    json_begin(&w, '{');
    json_key(&w, "command");
    json_put_str(&w, line);
    json_end(&w, '}');
    Str       text = buf_str(&json);
    Source    body = flow_from_str(&text);
    ExecdCall call = {.method = "POST", .path = "/pty", .body = &body, .type = STR("application/json"), .most = LIMIT_ERROR_BODY,
                      .what = "make a pipe to the agent", .code = E3000, .deadline = d};
    bool ok = execd_ask(&c->daemon, &call, &scratch, &reply, err);
    buf_free(&json);
    if (!ok)
        return false;
    Str id = url_encode(json_str(json_get(reply.json, "session_id")), &scratch);
    if (id.n == 0 || id.n >= EXECD_CARRIER_ID)
        return err_set(err, ERR_INPUT, E8020, "the daemon does not name the pipe that it made");
    ExecdPipe *s = mem_new(sizeof *s);
    *s = (ExecdPipe){.base = {&ops}, .carrier = c, .said = buf_make(EXECD_CARRIER_SAID)};
    memcpy(s->id, id.p, id.n);
    *out = &s->base;
    Str path = arena_fmt(&scratch, "/pty/%s/ws", s->id);
    if (execd_carrier__upgrade(c, path.p, STR("pty=0"), &(WsStreamOptions){true, execd_carrier__aside, s}, &s->ws, d, err))
        return true;
    stream_close(&s->base);
    return false;
}
