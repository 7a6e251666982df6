#include "provider/carry.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/clean.h"
#include "os/random.h"
#include "provider/carry_file.h"
#include "provider/carry_lines.h"
#include "provider/carry_place.h"

#include <stdio.h>

enum {
    CARRY_UPLOADS = 2,              /* in one call */
    CARRY_LINE = 4096,              /* a line of shell; it has 1,100 bytes */
    CARRY_START_MS = 15000,         /* for a program that is there to say its port, before it is put there anew */
    CARRY_HELLO_MS = 8000,          /* from a connection to the agent's HELLO; its listener waits for 10 s */
    CARRY_INPUT_VALUE = 100 << 10,  /* of a variable: execve(2) takes 128 KiB of one */
    CARRY_WHY = 1024,               /* what is said of places and ways that were given up */
    CARRY_HELLO_END = FRAME_PREAMBLE + FRAME_HEAD,
};

typedef struct Carry {
    Provider           *p;
    const CarryRequest *rq;
    const CarrierOps   *ops;
    Carrier            *carrier;
    Deadline            d;
    Err                 err;        /* the caller's is not touched by what was overcome */
    CarryFile           file;
    CarryPlace          place;
    Buf                 why;        /* what was wrong with the places before this one */
    Buf                 ways;       /* the ways that were given up */
    int                 uploads;
    bool                look;       /* the next line starts nothing, but names the folder */
    bool                broken;     /* what lies there does not start */
    bool                tried_own;  /* what lies there was uploaded by this call */
    char                secret[ARMOR_TAG + 1];  /* the listener's token, or the lines' tag */
    char                input[CARRY_PLACE_HEX + 2];     /* "@NAME": the file there that holds what a variable cannot */
    bool                input_there;
    Buf                 first;      /* the client's first bytes on this way */
    size_t              along;      /* so many of them go in the variable, or the file */
    Stream             *stream;
    Buf                 held;       /* what was read of it */
    size_t              looked;     /* of the command's text */
    CarryMark           mark;
    char                folder[CARRY_PLACE_PATH + 1];
    int                 port;
} Carry;

/* ---- a stream whose beginning was read already ---- */

typedef struct CarryStream {
    Stream  base;
    Stream *inner;
    Buf     held;
    size_t  at;
} CarryStream;

static Step carry__read(Stream *stream, char *p, size_t cap, size_t *n, Err *err)
{
    CarryStream *s = (CarryStream *)stream;
    size_t       left = s->held.n - s->at;

    if (!left)
        return stream_read(s->inner, p, cap, n, err);
    *n = left < cap ? left : cap;
    memcpy(p, s->held.p + s->at, *n);
    s->at += *n;
    return STEP_DONE;
}

static Step carry__write(Stream *stream, const char *p, size_t len, size_t *n, Err *err)
{
    return stream_write(((CarryStream *)stream)->inner, p, len, n, err);
}

static StreamWant carry__want(const Stream *stream, StreamSide side)
{
    const CarryStream *s = (const CarryStream *)stream;

    return side == STREAM_READ && s->at < s->held.n ? (StreamWant){.fd = -1} : stream_want(s->inner, side);
}

static void carry__close(Stream *stream)
{
    CarryStream *s = (CarryStream *)stream;

    stream_close(s->inner);
    buf_free(&s->held);
    mem_free(s);
}

static Stream *carry__stream(Stream *inner, Buf held)
{
    static const StreamOps ops = {carry__read, carry__write, carry__want, carry__close};
    CarryStream *s = mem_new(sizeof *s);

    *s = (CarryStream){.base = {&ops}, .inner = inner, .held = held};
    return &s->base;
}

/* ---- hearing what was started ---- */

typedef enum CarryHeard { CARRY_HEARD_HELLO, CARRY_HEARD_MARK, CARRY_HEARD_END, CARRY_HEARD_NOTHING, CARRY_HEARD_ERR } CarryHeard;

/* Look through the lines that a command printed. `all`: the last one needs no
 * end. Two markers are one too many. */
static bool carry__mark(Carry *k, bool all)
{
    Str text = carry_lines_text(k->stream), line, folder = {0};

    for (;;) {
        Str rest = str_from_to(text, k->looked, text.n);
        size_t n = str_find(rest, '\n');
        if (rest.n == 0 || (n == rest.n && !all))
            return k->mark != CARRY_MARK_NONE;
        line = (Str){rest.p, n};
        k->looked += n + (n < rest.n);
        CarryMark mark = carry_place_mark(&k->place, line, &folder, &k->port);
        if (mark == CARRY_MARK_NONE)
            continue;
        if (k->mark != CARRY_MARK_NONE)
            mark = CARRY_MARK_LIE;
        k->mark = mark;
        if (mark != CARRY_MARK_PORT && mark != CARRY_MARK_LIE)
            snprintf(k->folder, sizeof k->folder, "%.*s", (int)folder.n, folder.p);
    }
}

/* The next frame is the agent's HELLO, or there is none yet. */
static Step carry__hello(FrameReader *r, Str in, FrameHello *hello, Err *err)
{
    Frame f;
    Step  step = frame_next(r, &in, &f, err);

    if (step == STEP_DONE && (f.type != FRAME_AGENT_HELLO || !frame_hello(&f, hello))) {
        err_set(err, ERR_INPUT, E8020, "the agent in the sandbox does not begin with its HELLO");
        return STEP_ERR;
    }
    return step;
}

/* Read what was started until it says HELLO or a marker, or ends; NOTHING: until d. `lines`: it
 * is a command's output. */
static CarryHeard carry__hear(Carry *k, bool lines, bool noisy, FrameHello *hello, Deadline d)
{
    FrameReader reader = frame_reader_client((const unsigned char *)k->first.p + 8, noisy);
    CarryHeard  heard = CARRY_HEARD_ERR;
    ABX_UNSET char block[4096];
    size_t      n;

    buf_clear(&k->held);
    k->looked = 0;
    k->mark = CARRY_MARK_NONE;
    for (;;) {
        Step step = stream_read(k->stream, block, sizeof block, &n, &k->err);
        bool ended = step == STEP_DONE && n == 0;
        if (lines && carry__mark(k, ended)) {
            heard = CARRY_HEARD_MARK;
            break;
        }
        if (step == STEP_DONE && n) {
            buf_add(&k->held, (Str){block, n});
            step = carry__hello(&reader, (Str){block, n}, hello, &k->err);
            if (step == STEP_DONE)
                heard = CARRY_HEARD_HELLO;
            if (step != STEP_MORE)
                break;
            continue;
        }
        if (ended)
            heard = CARRY_HEARD_END;
        if (step != STEP_MORE)
            break;
        Deadline until = lines ? clock_sooner(d, carry_lines_deadline(k->stream)) : d;
        /* A command's silence is its own to judge. */
        if (!stream_wait(k->stream, STREAM_READ, k->p->host.cancel_fd, until, &k->err) &&
            (k->err.kind != ERR_TIMEOUT || clock_passed(d))) {
            heard = k->err.kind == ERR_TIMEOUT ? CARRY_HEARD_NOTHING : CARRY_HEARD_ERR;
            break;
        }
    }
    frame_reader_free(&reader);
    return heard;
}

static void carry__drop(Carry *k)
{
    stream_close(k->stream);
    k->stream = NULL;
}

/* ---- the program into the sandbox ---- */

/* Of a place or a way that is given up; for the person, at the end. */
static void carry__note(Buf *to, const char *what, Str why)
{
    Arena a = arena_make(1 << 16);

    buf_addf(to, "%s%s: %s", to->n ? "; " : "", what, clean_message(why, NULL, 0, &a).p);
    arena_free(&a);
}

static CarryResult carry__cannot(Carry *k)
{
    if (k->ways.n)
        carry__note(&k->why, "another way was tried before", buf_str(&k->ways));
    err_set(&k->err, ERR_REMOTE, E8004, "abx cannot be carried into the sandbox: %.*s", STR_ARG(buf_str(&k->why)));
    return CARRY_CANNOT;
}

/* CARRY_DONE: there is another place to try. */
static CarryResult carry__next_place(Carry *k, const char *why)
{
    carry__note(&k->why, carry_place_base(&k->place), str_from(why));
    if (k->place.base + 1 == CARRY_PLACE_BASES)
        return carry__cannot(k);
    k->place = (CarryPlace){.base = k->place.base + 1};
    k->broken = k->tried_own = k->input_there = false;
    k->look = k->input[0] != 0;
    return CARRY_DONE;
}

/* Not what the sandbox says of itself, but the way there, or the person. */
static bool carry__is_final(const Carry *k, const Err *err)
{
    return err->kind == ERR_CANCELLED || err->kind == ERR_UNSENT || err->kind == ERR_CLOSED || clock_passed(k->d);
}

/* A file in the folder that was named, under a name that nobody foresees. */
static CarryResult carry__put(Carry *k, Source src, char name[static CARRY_PLACE_HEX + 1])
{
    Arena a = arena_make(1 << 14);

    random_hex(name, CARRY_PLACE_HEX);
    bool ok = k->ops->put(k->carrier, arena_fmt(&a, "%s/%s", k->folder, name), src, k->d, &k->err);
    arena_free(&a);
    if (ok)
        return CARRY_DONE;
    name[0] = 0;
    return carry__is_final(k, &k->err) ? CARRY_FAILED : carry__next_place(k, k->err.text);
}

/* The folder is good. What is to go there? */
static CarryResult carry__fill(Carry *k)
{
    CarryResult r = CARRY_DONE;

    if (k->input[0] && !k->input_there) {
        Str raw = buf_str(&k->first);
        r = carry__put(k, flow_from_str(&raw), k->input + 1);
        if (r != CARRY_DONE || !k->input[1])
            return r;
        k->input_there = true;
        if (k->look && !k->broken) {
            k->look = false;
            return r;
        }
    }
    k->look = false;
    if (k->uploads == CARRY_UPLOADS) {
        carry__note(&k->why, carry_place_base(&k->place), STR("the program was put there twice and does not stay"));
        return carry__cannot(k);
    }
    k->uploads++;
    r = carry__put(k, carry_file_source(&k->file), k->place.fresh);
    if (r == CARRY_DONE && k->place.fresh[0]) {
        k->place.size = (uint64_t)k->file.size;
        k->tried_own = true;
        k->broken = false;
    }
    return r;
}

/* It ended, and no agent had said a word: it did not start. Or it says nothing at all. */
static CarryResult carry__ended(Carry *k, bool listen)
{
    static const ExecEvent mute = {.exit_code = -1};
    const ExecEvent *was = carry_lines_end(k->stream), *end = was ? was : &mute;
    Str              said = carry_lines_said(k->stream);
    bool             foreign = said.n && memmem(said.p, said.n, "ormat", 5);      /* Exec format error */
    ABX_UNSET char text[CARRY_LINES_SAID + 100];

    if (end->exit_code == 126 && !foreign)
        return carry__next_place(k, "nothing can be started there");
    if (k->look)        /* the line that starts nothing */
        return carry__next_place(k, "the sandbox's shell does not say what is there");
    if (!listen && end->exit_code == 0 && !end->signal) {      /* it may have done all that it was told */
        err_set(&k->err, ERR_REMOTE, E8020, "the agent in the sandbox ended without a word");
        return CARRY_FAILED;
    }
    if ((foreign && k->tried_own) || k->uploads == CARRY_UPLOADS) {
        snprintf(text, sizeof text, "%s (%s %d%s%.*s)",
                 foreign ? "the sandbox has another architecture" : "it does not start there",
                 !was ? "seconds without a word:" : end->signal ? "signal" : "exit code",
                 !was ? CARRY_START_MS / 1000 : end->signal ? end->signal : end->exit_code, said.n ? ": " : "", STR_ARG(said));
        carry__note(&k->why, carry_place_base(&k->place), str_from(text));
        return carry__cannot(k);
    }
    k->look = k->broken = true;
    return CARRY_DONE;
}

static CarryResult carry__marked(Carry *k)
{
    switch (k->mark) {
    case CARRY_MARK_NEED: return carry__fill(k);
    case CARRY_MARK_NOEXEC: return carry__next_place(k, "nothing can be started there (mounted noexec)");
    case CARRY_MARK_NOWRITE: return carry__next_place(k, "nothing can be written there");
    case CARRY_MARK_NODIR: return carry__next_place(k, "no folder can be made there");
    case CARRY_MARK_UNSAFE:
        if (k->place.own[0])
            return carry__next_place(k, "a new folder is not as it was made");
        random_hex(k->place.own, CARRY_PLACE_HEX);
        return CARRY_DONE;
    case CARRY_MARK_PORT: case CARRY_MARK_NONE: case CARRY_MARK_LIE: default: break;
    }
    carry__note(&k->why, carry_place_base(&k->place), STR("the sandbox answers with something that was not asked for"));
    return carry__cannot(k);
}

/* The variables of one line. Secrets are new each time: a line that was given
 * up may still run. */
static size_t carry__env(Carry *k, bool listen, Pair env[static 2], Buf *value)
{
    random_hex(k->secret, ARMOR_TAG);
    env[0] = (Pair){listen ? STR("ABX_AGENT_TOKEN") : STR("ABX_AGENT_TAG"), {k->secret, ARMOR_TAG}};
    if (listen || k->look)
        return k->look ? 0 : 1;
    if (k->input[0])
        buf_add(value, str_from(k->input));
    else
        base64_put(value, (Str){k->first.p, k->along});
    env[1] = (Pair){STR("ABX_AGENT_INPUT"), buf_str(value)};
    return 2;
}

/* One line, and what comes of it. */
static CarryResult carry__line(Carry *k, bool listen, FrameHello *hello, CarryHeard *heard)
{
    Buf       line = buf_make(CARRY_LINE), value = buf_make(CARRY_INPUT_VALUE + 4);
    Pair      env[2];
    size_t    n = carry__env(k, listen, env, &value);
    ExecCall *call;

    carry_place_line(&k->place, k->file.name, k->look ? NULL : listen ? "listen" : "lines", &line);
    bool ok = k->ops->line(k->carrier, buf_str(&line), env, n, !listen && k->rq->input, &call, k->d, &k->err);
    buf_free(&line);
    buf_free(&value);
    if (!ok)
        return CARRY_FAILED;
    k->place.fresh[0] = 0;
    k->stream = carry_lines_make(k->carrier, call, k->secret);
    /* By lines it may have begun what it was told, and is not started twice. */
    bool again = listen && !k->look;
    *heard = carry__hear(k, true, true, hello, again ? clock_sooner(k->d, clock_after(CARRY_START_MS)) : k->d);
    if (*heard == CARRY_HEARD_NOTHING && again && !clock_passed(k->d))
        carry_lines_kill(k->stream);
    else if (*heard >= CARRY_HEARD_NOTHING)
        return CARRY_FAILED;
    return CARRY_DONE;
}

/* Start the program, and put it there before where it is not. CARRY_DONE: it
 * listens on k->port, or said *hello in lines. */
static CarryResult carry__start(Carry *k, bool listen, FrameHello *hello)
{
    CarryResult r;

    do {
        CarryHeard heard = CARRY_HEARD_END;
        r = carry__line(k, listen, hello, &heard);
        if (r == CARRY_DONE && (listen ? heard == CARRY_HEARD_MARK && k->mark == CARRY_MARK_PORT : heard == CARRY_HEARD_HELLO))
            return r;
        if (r == CARRY_DONE && heard == CARRY_HEARD_HELLO) {
            err_set(&k->err, ERR_REMOTE, E8020, "the agent in the sandbox speaks where it was to listen");
            r = CARRY_FAILED;
        } else if (r == CARRY_DONE) {
            r = heard == CARRY_HEARD_MARK ? carry__marked(k) : carry__ended(k, listen);
        }
        carry__drop(k);
    } while (r == CARRY_DONE);
    return r;
}

/* ---- the ways ---- */

static bool carry__send(Carry *k, size_t from, size_t to, Deadline d)
{
    size_t n;

    while (from < to) {
        Step step = stream_write(k->stream, k->first.p + from, to - from, &n, &k->err);
        if (step == STEP_ERR || (step == STEP_MORE && !stream_wait(k->stream, STREAM_WRITE, k->p->host.cancel_fd, d, &k->err)))
            return false;
        from += step == STEP_DONE ? n : 0;
    }
    return true;
}

static bool carry__first(Carry *k, CarryWay way, bool deaf)
{
    buf_clear(&k->first);
    if (!k->rq->first(k->rq->ctx, way, deaf, &k->first, &k->err))
        return false;
    if (k->first.over || k->first.n < CARRY_HELLO_END)
        BUG("a client's first bytes without preamble and HELLO");
    return true;
}

/* Where the client's preamble and HELLO end. */
static size_t carry__hello_end(const Carry *k)
{
    const unsigned char *length = (const unsigned char *)k->first.p + FRAME_PREAMBLE + 4;

    return CARRY_HELLO_END + ((size_t)length[2] << 8 | length[3]);
}

/* Talk over k->stream. CARRY_CANNOT: this way leads nowhere, and nothing was run. */
static CarryResult carry__meet(Carry *k, bool noisy, Deadline d)
{
    size_t     hello_end = carry__hello_end(k);
    FrameHello hello;

    if (!carry__send(k, 0, hello_end, d))
        return carry__is_final(k, &k->err) && k->err.kind != ERR_CLOSED ? CARRY_FAILED : CARRY_CANNOT;
    CarryHeard heard = carry__hear(k, false, noisy, &hello, d);
    if (heard == CARRY_HEARD_END)
        err_set(&k->err, ERR_CLOSED, E5000, "the connection was closed before the agent answered");
    if (heard != CARRY_HEARD_HELLO)
        return k->err.kind == ERR_CANCELLED || clock_passed(k->d) ? CARRY_FAILED : CARRY_CANNOT;
    return carry__send(k, hello_end, k->first.n, k->d) ? CARRY_DONE : CARRY_FAILED;
}

static CarryResult carry__dial(Carry *k, bool pipe)
{
    Deadline d = clock_sooner(k->d, clock_after(CARRY_HELLO_MS));
    Buf      text = buf_make(CARRY_LINE);
    bool     ok;

    if (pipe)
        carry_place_line(&k->place, k->file.name, "pipe", &text);
    else
        buf_addf(&text, "/%s", k->secret);
    ok = pipe ? k->ops->pipe(k->carrier, buf_str(&text), &k->stream, d, &k->err)
              : k->ops->dial(k->carrier, k->port, buf_str(&text), &k->stream, d, &k->err);
    buf_free(&text);
    if (!ok)
        return k->err.kind == ERR_CANCELLED || clock_passed(k->d) ? CARRY_FAILED : CARRY_CANNOT;
    CarryResult r = carry__meet(k, pipe, d);
    if (r != CARRY_DONE)
        carry__drop(k);
    return r;
}

/* *reached: the helper was started. */
static CarryResult carry__listen(Carry *k, bool *reached)
{
    FrameHello none;

    if (!carry__first(k, CARRY_LISTEN, false))
        return CARRY_FAILED;
    CarryResult r = carry__start(k, true, &none);
    if (r != CARRY_DONE)
        return r;
    *reached = true;
    carry__drop(k);
    r = carry__dial(k, false);
    if (r == CARRY_CANNOT)
        carry__note(&k->ways, "it cannot be reached where it listens", str_from(k->err.text));
    return r;
}

static CarryResult carry__pipe(Carry *k)
{
    if (!carry__first(k, CARRY_PIPE, false))
        return CARRY_FAILED;
    CarryResult r = carry__dial(k, true);
    if (r == CARRY_CANNOT)
        carry__note(&k->ways, "nor by a pipe", str_from(k->err.text));
    return r;
}

/* A PING, to see whether it can be fed, and then the rest of the first bytes. */
static CarryResult carry__probe(Carry *k)
{
    Deadline d = clock_sooner(k->d, clock_after(CARRY_HELLO_MS));
    Buf      rest = buf_make(k->first.limit);

    buf_add(&rest, (Str){k->first.p + k->along, k->first.n - k->along});
    buf_clear(&k->first);
    frame_put_u64(&k->first, FRAME_PING, 0, 0);
    bool ok = carry__send(k, 0, k->first.n, d) && carry_lines_settle(k->stream, k->p->host.cancel_fd, d, &k->err);
    CarryResult r = CARRY_FAILED;
    if (ok) {
        buf_clear(&k->first);
        buf_add(&k->first, buf_str(&rest));
        r = carry__send(k, 0, k->first.n, k->d) ? CARRY_DONE : CARRY_FAILED;
    } else if (k->err.code == E8004 || (k->err.kind == ERR_TIMEOUT && !clock_passed(k->d))) {
        k->err.code = E8004;
        r = CARRY_CANNOT;
    }
    buf_free(&rest);
    return r;
}

static CarryResult carry__by_lines(Carry *k, bool deaf)
{
    bool       probe = !deaf && k->ops->feeds && !k->ops->feeds(k->carrier, false);
    FrameHello hello;

    if (deaf && k->rq->input) {
        err_set(&k->err, ERR_REMOTE, E8004, "a command in this sandbox cannot be given input%s%.*s", k->ways.n ? ": " : "",
                STR_ARG(buf_str(&k->ways)));
        return CARRY_CANNOT;
    }
    if (!carry__first(k, CARRY_LINES, deaf))
        return CARRY_FAILED;
    k->along = probe ? carry__hello_end(k) : k->first.n;
    if ((k->along + 2) / 3 * 4 > CARRY_INPUT_VALUE) {
        k->input[0] = '@';
        k->look = true;
    }
    CarryResult r = carry__start(k, false, &hello);
    if (r == CARRY_DONE && !deaf)
        carry_lines_feed(k->stream, hello.pid);
    return r == CARRY_DONE && probe ? carry__probe(k) : r;
}

static CarryResult carry__ways(Carry *k, Carried *out)
{
    bool        reached = false, deaf = !k->ops->feed || (k->ops->feeds && !k->ops->feeds(k->carrier, k->rq->input));
    CarryResult r = CARRY_CANNOT;

    out->way = CARRY_LISTEN;
    if (k->ops->dial) {
        r = carry__listen(k, &reached);
        if (r != CARRY_CANNOT || !reached)
            return r;
    }
    if (reached && k->ops->pipe) {
        out->way = CARRY_PIPE;
        out->noisy = true;
        r = carry__pipe(k);
        if (r != CARRY_CANNOT)
            return r;
    }
    out->way = CARRY_LINES;
    out->noisy = false;         /* what is no line with the tag was passed over */
    out->deaf = deaf;
    return carry__by_lines(k, deaf);
}

static void carry__tell(const Carry *k, CarryWay way)
{
    Buf text = buf_make(2 * CARRY_WHY);

    if (k->ways.n && k->p->host.notice) {
        buf_addf(&text, "abx's agent in the sandbox is reached by %s: %.*s",
                 way == CARRY_PIPE ? "a pipe" : "lines of a command's output, so nothing can be sent to the command",
                 STR_ARG(buf_str(&k->ways)));
        k->p->host.notice(k->p->host.notice_ctx, buf_str(&text));
    }
    buf_free(&text);
}

CarryResult carry_open(Provider *p, Str id, const CarryRequest *rq, Carried *out, Deadline d, Err *err)
{
    Carry       k = {.p = p, .rq = rq, .ops = p->kind->carrier, .d = d, .why = buf_make(CARRY_WHY),
                     .ways = buf_make(CARRY_WHY), .first = buf_make(FRAME_START_BYTES + 4096), .file = {.fd = -1},
                     .held = buf_make(FRAME_NOISE + FRAME_PREAMBLE + FRAME_HEAD + FRAME_PAYLOAD + 4096)};
    CarryResult r = CARRY_CANNOT;

    *out = (Carried){0};
    if (!k.ops || !p->host.agent_path.n)
        err_set(&k.err, ERR_REMOTE, E8004, k.ops ? "there is no program that could be carried into the sandbox"
                                                 : "this provider has no way for a program into its sandboxes");
    else if (carry_file_open(&k.file, p->host.agent_path, &k.err))
        r = k.ops->open(p, id, &k.carrier, d, &k.err) ? carry__ways(&k, out)
            : k.err.code == E8004 ? CARRY_CANNOT : CARRY_FAILED;
    if (r == CARRY_DONE) {
        carry__tell(&k, out->way);
        out->stream = carry__stream(k.stream, k.held);
        out->carrier = k.carrier;
    } else {
        *err = k.err;
        if (k.stream)
            carry__drop(&k);
        if (k.carrier)
            k.ops->close(k.carrier);
        buf_free(&k.held);
    }
    carry_file_close(&k.file);
    buf_free(&k.why);
    buf_free(&k.ways);
    buf_free(&k.first);
    return r;
}

void carry_close(Carried *c)
{
    stream_close(c->stream);
    if (c->carrier)
        c->carrier->ops->close(c->carrier);
    *c = (Carried){0};
}
