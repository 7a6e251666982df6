#include "net/sse.h"

Sse sse_make(size_t limit)
{
    return (Sse){.line = buf_make(limit), .name = buf_make(limit), .data = buf_make(limit)};
}

void sse_free(Sse *s)
{
    buf_free(&s->line);
    buf_free(&s->name);
    buf_free(&s->data);
}

static void sse__field(Sse *s, Str name, Str value)
{
    if (str_eq(name, STR("data"))) {
        buf_add(&s->data, value);
        buf_add(&s->data, STR("\n"));
        s->has_data = true;
    } else if (str_eq(name, STR("event"))) {
        buf_clear(&s->name);
        buf_add(&s->name, value);
    }
    /* "id" and "retry" serve reconnecting, which our callers do not do; a
     * comment is a field with no name, and falls through here too. */
}

/* Act on the line just ended. True if it closed an event worth giving. */
static bool sse__line_end(Sse *s)
{
    Str line = buf_str(&s->line);

    if (line.n == 0) {
        if (!s->has_data)
            buf_clear(&s->name);    /* a name alone is no event */
        return s->has_data;
    }
    const char *colon = memchr(line.p, ':', line.n);
    Str name  = {line.p, colon ? (size_t)(colon - line.p) : line.n};
    Str value = colon ? (Str){colon + 1, line.n - name.n - 1} : STR("");
    if (value.n && value.p[0] == ' ')
        str_skip(&value, 1);
    sse__field(s, name, value);
    return false;
}

static size_t sse__until_eol(Str s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] != '\r' && s.p[n] != '\n')
        n++;
    return n;
}

Step sse_next(Sse *s, Str *in, SseEvent *ev, Err *err)
{
    if (s->given) {
        buf_clear(&s->name);
        buf_clear(&s->data);
        s->given = s->has_data = false;
    }
    while (in->n && s->state != SSE_FAILED) {
        if (s->state == SSE_AFTER_CR && *in->p == '\n') {
            str_skip(in, 1);
            s->state = SSE_LINE;
            continue;
        }
        size_t run = sse__until_eol(*in);
        buf_add(&s->line, (Str){in->p, run});
        str_skip(in, run);
        s->state = SSE_LINE;

        if (in->n && !s->line.over) {
            s->state = *in->p == '\r' ? SSE_AFTER_CR : SSE_LINE;
            str_skip(in, 1);
            s->given = sse__line_end(s);
            buf_clear(&s->line);
        }
        if (s->given) {
            *ev = (SseEvent){.name = buf_str(&s->name), .data = buf_str(&s->data)};
            ev->data.n--;           /* the LF after the last line */
            return STEP_DONE;
        }
        if (s->line.over || s->name.over || s->data.over)
            s->state = SSE_FAILED;
    }
    if (s->state != SSE_FAILED)
        return STEP_MORE;
    err_set(err, ERR_LIMIT, E5000, "event stream: one event holds more than %zu bytes", s->line.limit);
    return STEP_ERR;
}
