#include "script_stream.h"

#include <poll.h>
#include <unistd.h>

static Step script__end(ScriptEnd end, size_t *n, Err *err)
{
    *n = 0;
    if (end == SCRIPT_OPEN)
        return STEP_MORE;
    if (end == SCRIPT_EOF)
        return STEP_DONE;
    err_set(err, ERR_CLOSED, E5000, "the connection was reset");
    return STEP_ERR;
}

static Str script__answer(const Script *s)
{
    const ScriptAnswer *a = &s->answers[s->answer];

    return (Str){a->bytes, a->n ? a->n : strlen(a->bytes)};
}

/* `after` was written since `mark`, which is moved behind it. What was looked
 * through is not looked through again. */
static bool script__wrote(Script *s, Str after)
{
    size_t from = s->looked > s->mark + after.n ? s->looked - after.n : s->mark;
    char  *found = s->written.n > from ? memmem(s->written.p + from, s->written.n - from, after.p, after.n) : NULL;

    s->looked = s->written.n;
    if (found)
        s->mark = (size_t)(found - s->written.p) + after.n;
    return found;
}

/* What is to be read now may go out; false: not yet. */
static bool script__ready(Script *s)
{
    while (s->answer < s->count) {
        const char *after = s->answers[s->answer].after;
        if (after && !s->released && !script__wrote(s, str_from(after)))
            return false;
        s->released = true;
        if (s->at < script__answer(s).n)
            return true;
        s->answer++;
        s->at = 0;
        s->released = false;
    }
    return true;
}

static Step script__read(Stream *stream, char *p, size_t cap, size_t *n, Err *err)
{
    Script *s = (Script *)stream;

    *n = 0;
    if (s->hiccups && s->reads++ % 2 == 0)
        return STEP_MORE;
    if (!script__ready(s))
        return STEP_MORE;
    if (s->answer == s->count || (s->cut && s->given == s->cut))
        return script__end(s->end, n, err);
    Str rest = script__answer(s);
    str_skip(&rest, s->at);
    *n = rest.n < cap ? rest.n : cap;
    if (s->piece && *n > s->piece)
        *n = s->piece;
    if (s->cut && *n > s->cut - s->given)
        *n = s->cut - s->given;
    memcpy(p, rest.p, *n);
    s->at += *n;
    s->given += *n;
    return STEP_DONE;
}

static Step script__write(Stream *stream, const char *p, size_t len, size_t *n, Err *err)
{
    Script *s = (Script *)stream;

    *n = 0;
    if (s->hiccups && s->writes++ % 2 == 0)
        return STEP_MORE;
    *n = s->piece && len > s->piece ? s->piece : len;
    if (s->takes && *n > s->takes - s->written.n)
        *n = s->takes - s->written.n;
    if (*n == 0)
        return script__end(s->full == SCRIPT_EOF ? SCRIPT_RESET : s->full, n, err);
    buf_add(&s->written, (Str){p, *n});
    return STEP_DONE;
}

static StreamWant script__want(const Stream *stream, StreamSide side)
{
    static int never[2] = {-1, -1};
    Script    *s = (Script *)stream;
    bool       ready = side == STREAM_WRITE
                           ? !s->takes || s->written.n < s->takes || s->full != SCRIPT_OPEN
                           : script__ready(s) && ((s->answer < s->count && !(s->cut && s->given == s->cut)) || s->end != SCRIPT_OPEN);

    if (never[0] < 0 && pipe(never) != 0)
        abort();
    return (StreamWant){.fd = ready ? -1 : never[0], .events = POLLIN};
}

static void script__close(Stream *stream)
{
    ((Script *)stream)->closed = true;
}

static Stream *script_open(Script *s)
{
    static const StreamOps ops = {script__read, script__write, script__want, script__close};

    s->stream.ops = &ops;
    s->written = buf_make((size_t)64 << 20);
    return &s->stream;
}

static void script_free(Script *s)
{
    buf_free(&s->written);
}

static bool script_dial(void *ctx, const Url *url, int cancel_fd, Deadline deadline, Stream **out, Err *err)
{
    ScriptDial *d = ctx;

    (void)cancel_fd, (void)deadline;
    if (d->used == d->count)
        return err_set(err, ERR_UNSENT, E5001, "cannot connect to %.*s:%d: refused", STR_ARG(url->host), url->port);
    *out = script_open(&d->scripts[d->used++]);
    return true;
}
