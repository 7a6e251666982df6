#include "net/events.h"

#include "base/str.h"

Events events_make(size_t limit)
{
    return (Events){.line = buf_make(limit), .sse = sse_make(limit)};
}

void events_free(Events *e)
{
    buf_free(&e->line);
    sse_free(&e->sse);
}

static Step events__over(const Events *e, Err *err)
{
    err_set(err, ERR_LIMIT, E5000, "event stream: one event holds more than %zu bytes", e->line.limit);
    return STEP_ERR;
}

static Step events__bare(Events *e, Str *in, Str *text, Err *err)
{
    while (in->n) {
        size_t n = str_find(*in, '\n');
        bool   ended = n < in->n;
        Str    part = {in->p, n};

        str_skip(in, ended ? n + 1 : n);
        if (ended && e->line.n == 0 && part.n <= e->line.limit) {
            *text = str_trim(part);     /* whole in what came: no copy */
        } else {
            buf_add(&e->line, part);
            if (e->line.over)
                return events__over(e, err);
            if (!ended)
                return STEP_MORE;
            *text = str_trim(buf_str(&e->line));
            e->given = true;
        }
        if (text->n)
            return STEP_DONE;
        buf_clear(&e->line);
        e->given = false;
    }
    return STEP_MORE;
}

Step events_next(Events *e, Str *in, Str *text, Err *err)
{
    if (e->given) {
        buf_clear(&e->line);
        e->given = false;
    }
    if (e->line.over)
        return events__over(e, err);
    if (e->form == EVENTS_UNKNOWN) {
        while (in->n && (in->p[0] == ' ' || in->p[0] == '\t' || in->p[0] == '\r' || in->p[0] == '\n'))
            str_skip(in, 1);
        if (in->n == 0)
            return STEP_MORE;
        e->form = in->p[0] == '{' || in->p[0] == '[' ? EVENTS_BARE : EVENTS_SSE;
    }
    if (e->form == EVENTS_BARE)
        return events__bare(e, in, text, err);

    SseEvent ev = {0};
    Step     step = sse_next(&e->sse, in, &ev, err);
    *text = ev.data;
    return step;
}

Step events_end(Events *e, Str *text)
{
    if (e->given || e->line.over || e->form != EVENTS_BARE)
        return STEP_MORE;
    *text = str_trim(buf_str(&e->line));
    e->given = true;
    return text->n ? STEP_DONE : STEP_MORE;
}
