#include "data/frame.h"

#include "base/limits.h"

/* The parts of a START, each as tag u8, length u32, bytes. */
typedef enum FramePart {
    FRAME_PART_KIND = 1, FRAME_PART_FLAGS, FRAME_PART_ARG, FRAME_PART_ENV, FRAME_PART_CWD, FRAME_PART_USER,
    FRAME_PART_SIZE, FRAME_PART_TIMEOUT, FRAME_PART_HOLD, FRAME_PART_PORT, FRAME_PART_JOB, FRAME_PART_OFFSET,
} FramePart;

static void frame__be(char *p, size_t n, uint64_t v)
{
    while (n--) {
        p[n] = (char)(v & 0xff);
        v >>= 8;
    }
}

static uint64_t frame__value(const char *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v = v << 8 | (unsigned char)p[i];
    return v;
}

static void frame__add(Buf *to, size_t n, uint64_t v)
{
    ABX_UNSET char bytes[8];

    frame__be(bytes, n, v);
    buf_add(to, (Str){bytes, n});
}

/* Take n bytes as a number; false where there are not so many. */
static bool frame__take(Str *s, size_t n, uint64_t *v)
{
    if (s->n < n)
        return false;
    *v = frame__value(s->p, n);
    str_skip(s, n);
    return true;
}

/* ---- reading ---- */

static FrameReader frame__reader(void)
{
    return (FrameReader){.held = buf_make(FRAME_HEAD + FRAME_PAYLOAD)};
}

FrameReader frame_reader_agent(void)
{
    return frame__reader();
}

FrameReader frame_reader_client(const unsigned char run[static FRAME_RUN], bool noisy)
{
    FrameReader r = frame__reader();

    memcpy(r.run, run, FRAME_RUN);
    r.expects = true;
    r.noisy = noisy;
    return r;
}

void frame_reader_free(FrameReader *r)
{
    buf_free(&r->held);
}

static Step frame__bad(Err *err, const char *what)
{
    err_set(err, ERR_INPUT, E8020, "the agent's conversation: %s", what);
    return STEP_ERR;
}

/* Make the first n bytes of what comes one piece: a view into *in where they
 * are all there, else gathered. False: not there yet. */
static bool frame__whole(FrameReader *r, Str *in, size_t n, const char **p)
{
    if (r->held.n == 0 && in->n >= n) {
        *p = in->p;
        return true;
    }
    size_t missing = r->held.n < n ? n - r->held.n : 0, some = in->n < missing ? in->n : missing;
    buf_add(&r->held, (Str){in->p, some});
    str_skip(in, some);
    *p = r->held.p;
    return some == missing;
}

/* The n bytes that frame__whole() showed are done with after this call. */
static void frame__used(FrameReader *r, Str *in, size_t n)
{
    if (r->held.n)
        r->given = n;
    else
        str_skip(in, n);
}

/* Drop what stands before the preamble, one byte at a time at most. */
static void frame__drop_noise(FrameReader *r, Str *in, const char *p)
{
    const char *next = memchr(p + 1, 'A', FRAME_PREAMBLE - 1);
    size_t      n = next ? (size_t)(next - p) : FRAME_PREAMBLE;

    r->noise += n;
    if (r->held.n)
        buf_drop(&r->held, n);
    else
        str_skip(in, n);
}

static Step frame__preamble(FrameReader *r, Str *in, Err *err)
{
    static const char version[4] = {FRAME_VERSION, 0, 0, 0};
    const char       *p;

    while (frame__whole(r, in, FRAME_PREAMBLE, &p)) {
        bool ours = memcmp(p, "ABX1", 4) == 0;
        if (ours && r->expects && memcmp(p + 8, r->run, FRAME_RUN) != 0 && r->noisy)
            ours = false;               /* a greeting could hold the four letters */
        if (!ours && (!r->noisy || r->noise > FRAME_NOISE))
            return frame__bad(err, "it does not begin as one");
        if (!ours) {
            frame__drop_noise(r, in, p);
            continue;
        }
        if (memcmp(p + 4, version, 4) != 0)
            return frame__bad(err, "another version of it");
        if (r->expects && memcmp(p + 8, r->run, FRAME_RUN) != 0)
            return frame__bad(err, "it belongs to another run");
        memcpy(r->run, p + 8, FRAME_RUN);
        r->began = true;
        frame__used(r, in, FRAME_PREAMBLE);
        return STEP_DONE;
    }
    return STEP_MORE;
}

static void frame__forget(FrameReader *r)
{
    if (r->given)
        buf_drop(&r->held, r->given);
    r->given = 0;
}

/* What is there of a frame whose head was read. */
static Step frame__piece(FrameReader *r, Str *in, Frame *f)
{
    size_t n = in->n < r->left ? in->n : r->left;

    *f = r->part;
    f->payload = (Str){in->p, n};
    r->left -= n;
    str_skip(in, n);
    return n ? STEP_DONE : STEP_MORE;
}

Step frame_next(FrameReader *r, Str *in, Frame *f, Err *err)
{
    const char *p;
    Step        step = STEP_DONE;

    frame__forget(r);
    if (r->left)
        return frame__piece(r, in, f);
    if (!r->began && (step = frame__preamble(r, in, err)) != STEP_DONE)
        return step;
    for (;;) {
        frame__forget(r);
        if (!frame__whole(r, in, FRAME_HEAD, &p))
            return STEP_MORE;
        size_t n = (size_t)frame__value(p + 4, 4);
        if (n > FRAME_PAYLOAD)
            return frame__bad(err, "a frame is longer than any may be");
        if (r->pieces && n && (unsigned char)p[0] == FRAME_DATA) {
            r->part = (Frame){FRAME_DATA, (uint8_t)p[1], (uint16_t)frame__value(p + 2, 2), {0}};
            r->left = n;
            frame__used(r, in, FRAME_HEAD);
            return frame__piece(r, in, f);
        }
        if (!frame__whole(r, in, FRAME_HEAD + n, &p))
            return STEP_MORE;
        *f = (Frame){(uint8_t)p[0], (uint8_t)p[1], (uint16_t)frame__value(p + 2, 2), {p + FRAME_HEAD, n}};
        frame__used(r, in, FRAME_HEAD + n);
        bool known = (f->type >= FRAME_HELLO && f->type <= FRAME_KILL) ||
                     (f->type >= FRAME_AGENT_HELLO && f->type <= FRAME_NOTE);
        if (known)
            return STEP_DONE;
        if (!(f->flags & FRAME_SKIP))
            return frame__bad(err, "a frame of an unknown type");
    }
}

/* ---- writing ---- */

void frame_put_preamble(Buf *to, const unsigned char run[static FRAME_RUN])
{
    buf_add(to, STR("ABX1"));
    frame__add(to, 1, FRAME_VERSION);
    frame__add(to, 3, 0);
    buf_add(to, (Str){(const char *)run, FRAME_RUN});
}

void frame_head(char head[static FRAME_HEAD], FrameType type, uint16_t channel, size_t length)
{
    head[0] = (char)type;
    head[1] = 0;
    frame__be(head + 2, 2, channel);
    frame__be(head + 4, 4, length);
}

void frame_put(Buf *to, FrameType type, uint16_t channel, Str payload)
{
    ABX_UNSET char head[FRAME_HEAD];

    frame_head(head, type, channel, payload.n);
    buf_add(to, (Str){head, sizeof head});
    buf_add(to, payload);
}

void frame_put_u64(Buf *to, FrameType type, uint16_t channel, uint64_t v)
{
    ABX_UNSET char bytes[8];

    frame__be(bytes, sizeof bytes, v);
    frame_put(to, type, channel, (Str){bytes, sizeof bytes});
}

bool frame_u64(const Frame *f, uint64_t *v)
{
    Str s = f->payload;

    return s.n == 8 && frame__take(&s, 8, v);
}

/* A frame whose payload is made of numbers and a text behind them. */
static void frame__put_fields(Buf *to, FrameType type, uint16_t channel, Str text, size_t n, const uint64_t *v,
                              const size_t *size)
{
    ABX_UNSET char head[FRAME_HEAD];
    size_t all = text.n;

    for (size_t i = 0; i < n; i++)
        all += size[i];
    frame_head(head, type, channel, all);
    buf_add(to, (Str){head, sizeof head});
    for (size_t i = 0; i < n; i++)
        frame__add(to, size[i], v[i]);
    buf_add(to, text);
}

static bool frame__fields(const Frame *f, Str *text, size_t n, uint64_t *v, const size_t *size)
{
    Str s = f->payload;

    for (size_t i = 0; i < n; i++)
        if (!frame__take(&s, size[i], &v[i]))
            return false;
    if (!text)
        return s.n == 0;
    *text = s;
    return true;
}

static const size_t frame__hello[] = {4, 4}, frame__agent_hello[] = {4, 4, 4, 4};

void frame_put_hello(Buf *to, const FrameHello *h)
{
    frame__put_fields(to, FRAME_HELLO, 0, (Str){0}, 2, (uint64_t[]){h->features, h->window}, frame__hello);
}

void frame_put_agent_hello(Buf *to, const FrameHello *h)
{
    frame__put_fields(to, FRAME_AGENT_HELLO, 0, h->text, 4, (uint64_t[]){h->features, h->window, h->pid, h->uid},
                      frame__agent_hello);
}

bool frame_hello(const Frame *f, FrameHello *h)
{
    bool     agent = f->type == FRAME_AGENT_HELLO;
    uint64_t v[4] = {0};

    *h = (FrameHello){0};
    if (agent ? !frame__fields(f, &h->text, 4, v, frame__agent_hello) : !frame__fields(f, NULL, 2, v, frame__hello))
        return false;
    h->features = (uint32_t)v[0];
    h->window = (uint32_t)v[1];
    h->pid = (uint32_t)v[2];
    h->uid = (uint32_t)v[3];
    return true;
}

void frame_put_started(Buf *to, uint16_t channel, const FrameStarted *s)
{
    frame__put_fields(to, FRAME_STARTED, channel, s->job, 1, (uint64_t[]){s->pid}, (size_t[]){4});
}

bool frame_started(const Frame *f, FrameStarted *s)
{
    uint64_t pid;

    if (!frame__fields(f, &s->job, 1, &pid, (size_t[]){4}))
        return false;
    s->pid = (uint32_t)pid;
    return true;
}

void frame_put_signal(Buf *to, int number, FrameTarget target)
{
    frame__put_fields(to, FRAME_SIGNAL, 0, (Str){0}, 2, (uint64_t[]){(unsigned)number, target}, (size_t[]){1, 1});
}

bool frame_signal(const Frame *f, int *number, FrameTarget *target)
{
    uint64_t v[2];

    if (!frame__fields(f, NULL, 2, v, (size_t[]){1, 1}) || v[0] < 1 || v[0] > 64 || v[1] > FRAME_TO_SESSION)
        return false;
    *number = (int)v[0];
    *target = (FrameTarget)v[1];
    return true;
}

void frame_put_resize(Buf *to, uint16_t cols, uint16_t rows)
{
    frame__put_fields(to, FRAME_RESIZE, 0, (Str){0}, 2, (uint64_t[]){cols, rows}, (size_t[]){2, 2});
}

bool frame_resize(const Frame *f, uint16_t *cols, uint16_t *rows)
{
    uint64_t v[2];

    if (!frame__fields(f, NULL, 2, v, (size_t[]){2, 2}))
        return false;
    *cols = (uint16_t)v[0];
    *rows = (uint16_t)v[1];
    return true;
}

void frame_put_exit(Buf *to, const FrameExit *x)
{
    frame__put_fields(to, FRAME_EXIT, 0, (Str){0}, 4, (uint64_t[]){x->how, x->number, x->out, x->err},
                      (size_t[]){1, 4, 8, 8});
}

bool frame_exit(const Frame *f, FrameExit *x)
{
    uint64_t v[4];

    if (!frame__fields(f, NULL, 4, v, (size_t[]){1, 4, 8, 8}) || v[0] > FRAME_ENDED_TIMEOUT)
        return false;
    /* What wait(2) can say, and no more. */
    if (v[0] == FRAME_ENDED_CODE ? v[1] > 255 : v[1] < 1 || v[1] > 64)
        return false;
    *x = (FrameExit){(FrameEnd)v[0], (uint32_t)v[1], v[2], v[3]};
    return true;
}

void frame_put_fail(Buf *to, uint16_t channel, const FrameFail *x)
{
    Str text = {x->text.p, x->text.n < FRAME_FAIL_TEXT ? x->text.n : FRAME_FAIL_TEXT};

    frame__put_fields(to, FRAME_FAIL, channel, text, 2, (uint64_t[]){x->stage, x->sys}, (size_t[]){1, 4});
}

bool frame_fail(const Frame *f, FrameFail *x)
{
    uint64_t v[2];
    Str      text;

    if (!frame__fields(f, &text, 2, v, (size_t[]){1, 4}) || v[0] > FRAME_AT_ATTACH || text.n > FRAME_FAIL_TEXT)
        return false;
    *x = (FrameFail){(FrameStage)v[0], (uint32_t)v[1], text};
    return true;
}

/* ---- what to do ---- */

static void frame__part(Buf *to, FramePart tag, Str bytes)
{
    frame__add(to, 1, tag);
    frame__add(to, 4, bytes.n);
    buf_add(to, bytes);
}

static void frame__part_value(Buf *to, FramePart tag, size_t n, uint64_t v)
{
    ABX_UNSET char bytes[8];

    if (!v)
        return;
    frame__be(bytes, n, v);
    frame__part(to, tag, (Str){bytes, n});
}

static void frame__part_text(Buf *to, FramePart tag, Str text)
{
    if (text.n)
        frame__part(to, tag, text);
}

static void frame__parts(Buf *to, const FrameStart *s)
{
    frame__part_value(to, FRAME_PART_KIND, 1, s->kind);
    frame__part_value(to, FRAME_PART_FLAGS, 4, s->flags);
    for (size_t i = 0; i < s->argv.n; i++)
        frame__part(to, FRAME_PART_ARG, s->argv.v[i]);
    for (size_t i = 0; i < s->env.n; i++)
        frame__part(to, FRAME_PART_ENV, s->env.v[i]);
    frame__part_text(to, FRAME_PART_CWD, s->cwd);
    frame__part_text(to, FRAME_PART_USER, s->user);
    frame__part_value(to, FRAME_PART_SIZE, 4, (uint64_t)s->cols << 16 | s->rows);
    frame__part_value(to, FRAME_PART_TIMEOUT, 8, s->timeout_ms);
    frame__part_value(to, FRAME_PART_HOLD, 4, s->hold_s);
    frame__part_value(to, FRAME_PART_PORT, 2, s->port);
    frame__part_text(to, FRAME_PART_JOB, s->job);
    frame__part_value(to, FRAME_PART_OFFSET, 8, s->offset);
}

bool frame_put_start(Buf *to, uint16_t channel, const FrameStart *s, Err *err)
{
    Buf parts = buf_make(FRAME_START_BYTES);

    frame__parts(&parts, s);
    bool ok = !parts.over;
    if (!ok)
        err_set(err, ERR_LIMIT, E8002, "the command with its environment is larger than %zu bytes", parts.limit);
    for (Str rest = buf_str(&parts); ok && (rest.n || parts.n == 0);) {
        Str    piece = {rest.p, rest.n < FRAME_PAYLOAD ? rest.n : FRAME_PAYLOAD};
        size_t at = to->n;
        str_skip(&rest, piece.n);
        frame_put(to, FRAME_START, channel, piece);
        if (rest.n && !to->over)
            to->p[at + 1] = FRAME_MORE;
        if (parts.n == 0)
            break;
    }
    buf_free(&parts);
    return ok;
}

/* How often each kind of part comes, or how it may not. */
static bool frame__count(Str all, size_t n[static FRAME_PART_OFFSET + 1])
{
    uint64_t tag, length;

    while (all.n) {
        if (!frame__take(&all, 1, &tag) || !frame__take(&all, 4, &length) || length > all.n)
            return false;
        if (tag < FRAME_PART_KIND || tag > FRAME_PART_OFFSET)
            return false;
        if (n[tag]++ && tag != FRAME_PART_ARG && tag != FRAME_PART_ENV)
            return false;
        /* Text becomes strings that end with a NUL. */
        bool text = tag == FRAME_PART_ARG || tag == FRAME_PART_ENV || tag == FRAME_PART_CWD ||
                    tag == FRAME_PART_USER || tag == FRAME_PART_JOB;
        if (text && length && memchr(all.p, 0, length))
            return false;
        str_skip(&all, (size_t)length);
    }
    return true;
}

static bool frame__number(Str bytes, size_t n, uint64_t *v)
{
    return bytes.n == n && frame__take(&bytes, n, v);
}

static bool frame__fill(Str all, Str *argv, Str *env, FrameStart *s)
{
    uint64_t tag = 0, length = 0, v = 0;
    bool     ok = true;

    while (ok && frame__take(&all, 1, &tag) && frame__take(&all, 4, &length)) {
        Str bytes = {all.p, (size_t)length};
        str_skip(&all, bytes.n);
        switch ((FramePart)tag) {
        case FRAME_PART_KIND: ok = frame__number(bytes, 1, &v) && v < FRAME_KINDS; s->kind = (FrameKind)v; break;
        case FRAME_PART_FLAGS: ok = frame__number(bytes, 4, &v); s->flags = (uint32_t)v; break;
        case FRAME_PART_ARG: argv[s->argv.n++] = bytes; break;
        case FRAME_PART_ENV: env[s->env.n++] = bytes; break;
        case FRAME_PART_CWD: s->cwd = bytes; break;
        case FRAME_PART_USER: s->user = bytes; break;
        case FRAME_PART_SIZE:
            ok = frame__number(bytes, 4, &v);
            s->cols = (uint16_t)(v >> 16);
            s->rows = (uint16_t)v;
            break;
        case FRAME_PART_TIMEOUT: ok = frame__number(bytes, 8, &s->timeout_ms); break;
        case FRAME_PART_HOLD: ok = frame__number(bytes, 4, &v); s->hold_s = (uint32_t)v; break;
        case FRAME_PART_PORT: ok = frame__number(bytes, 2, &v); s->port = (uint16_t)v; break;
        case FRAME_PART_JOB: s->job = bytes; break;
        case FRAME_PART_OFFSET: ok = frame__number(bytes, 8, &s->offset); break;
        }
    }
    return ok;
}

bool frame_start(Str all, Arena *a, FrameStart *s, Err *err)
{
    size_t n[FRAME_PART_OFFSET + 1] = {0};

    *s = (FrameStart){0};
    if (all.n > FRAME_START_BYTES || !frame__count(all, n))
        return frame__bad(err, "a start that cannot be read") == STEP_DONE;
    Str *argv = arena_array(a, n[FRAME_PART_ARG], sizeof *argv);
    Str *env = arena_array(a, n[FRAME_PART_ENV], sizeof *env);
    s->argv.v = argv;
    s->env.v = env;
    if (!frame__fill(all, argv, env, s) || s->kind < FRAME_EXEC)
        return frame__bad(err, "a start with a part that makes no sense") == STEP_DONE;
    return true;
}
