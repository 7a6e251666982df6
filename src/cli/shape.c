#include "cli/shape.h"

#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/document.h"
#include "cli/screen.h"

static Shape shape__make(const Run *r)
{
    Shape s = {.run = r, .box = outbox_make()};

    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        s.held[fd] = buf_make(LIMIT_DOCUMENT);
    return s;
}

void shape_free(Shape *s)
{
    outbox_free(&s->box);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        buf_free(&s->held[fd]);
}

/* ---- as it comes ---- */

static bool shape__plain(Shape *s, int fd, Str bytes, Err *err)
{
    (void)err;
    outbox_add(&s->box, fd, bytes);
    return true;
}

static int shape__plain_end(Shape *s, const abx_event *exit)
{
    return run_ended(s->run, exit);
}

/* ---- lines of JSON ---- */

static void shape__put(Shape *s, Str text)
{
    if (s->run->out.out_terminal) {
        Buf shown = buf_make(6 * text.n + 1);
        screen_add(&shown, text);
        outbox_add(&s->box, STDOUT_FILENO, buf_str(&shown));
        buf_free(&shown);
    } else {
        outbox_add(&s->box, STDOUT_FILENO, text);
    }
}

static bool shape__line(Shape *s, int fd, Str bytes, Err *err)
{
    Buf     text = buf_make(LIMIT_DOCUMENT);
    JsonOut w = json_out(&text, JSON_COMPACT);
    bool    fits;

    json_begin(&w, '{');
    document_string(&w, "stream", fd == STDOUT_FILENO ? "stdout" : "stderr");
    document_bytes(&w, "data", bytes);
    json_end(&w, '}');
    buf_addc(&text, '\n');
    fits = !text.over && (!s->run->out.out_terminal || text.n < LIMIT_DOCUMENT / 6);
    if (fits)
        shape__put(s, buf_str(&text));
    else
        err_set(err, ERR_LIMIT, E3000, "the command printed too much at once");
    buf_free(&text);
    return fits;
}

/* How many bytes at the end may be the start of a character whose rest has not
 * come yet. */
static size_t shape__unfinished(Str bytes)
{
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};

    for (size_t n = 1; n <= 3 && n <= bytes.n; n++) {
        unsigned char b = (unsigned char)bytes.p[bytes.n - n];
        if ((b & 0xc0) != 0x80)
            return b >= leads[n] && b >= 0xc0 ? n : 0;
    }
    return 0;
}

static bool shape__lines(Shape *s, int fd, Str bytes, Err *err)
{
    Buf *held = &s->held[fd];

    buf_add(held, bytes);
    Str    all = buf_str(held);
    size_t rest = utf8_good(all) < all.n ? shape__unfinished(all) : 0;
    if (all.n > rest && !shape__line(s, fd, (Str){all.p, all.n - rest}, err))
        return false;
    buf_drop(held, all.n - rest);
    return true;
}

static void shape__result(JsonOut *w, const abx_event *exit)
{
    json_key(w, exit->exit_code >= 0 ? "exit_code" : "signal");
    if (exit->exit_code >= 0)
        json_put_int(w, exit->exit_code);
    else if (exit->signal > 0)
        json_put_int(w, exit->signal);
    else
        json_put_null(w);
}

static void shape__result_end(JsonOut *w, const abx_event *exit)
{
    json_key(w, "duration_ms");
    json_put_int(w, exit->duration_ms);
    if (exit->timed_out)
        document_flag(w, "timed_out", true);
}

/* A character that never was finished is given as the bytes it is. */
static void shape__lines_last(Shape *s, const abx_event *exit)
{
    Buf     text = buf_make(LIMIT_ERROR_BODY);
    JsonOut w = json_out(&text, JSON_COMPACT);
    ABX_UNSET Err unheard;

    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (s->held[fd].n && !shape__line(s, fd, buf_str(&s->held[fd]), &unheard))
            BUG("three bytes are too much");
    json_begin(&w, '{');
    shape__result(&w, exit);
    shape__result_end(&w, exit);
    json_end(&w, '}');
    buf_addc(&text, '\n');
    shape__put(s, buf_str(&text));
    buf_free(&text);
}

static int shape__done(Shape *s, const abx_event *exit)
{
    (void)s;
    (void)exit;
    return 0;
}

/* ---- one document ---- */

static bool shape__gather(Shape *s, int fd, Str bytes, Err *err)
{
    if (bytes.n > LIMIT_GATHER - s->held[1].n - s->held[2].n) {
        err_set(err, ERR_LIMIT, E3000, "the command printed more than the %zu bytes that --json holds in memory",
                LIMIT_GATHER);
        return err_hint(err, "Use shell-stream --json, or leave out --json: neither has such a limit.");
    }
    buf_add(&s->held[fd], bytes);
    return true;
}

static int shape__document(Shape *s, const abx_event *exit, bool output)
{
    Buf     text = buf_make(LIMIT_DOCUMENT);
    JsonOut w = json_out(&text, JSON_PRETTY);

    json_begin(&w, '{');
    shape__result(&w, exit);
    if (output) {
        document_bytes(&w, "stdout", buf_str(&s->held[1]));
        document_bytes(&w, "stderr", buf_str(&s->held[2]));
    }
    /* How long it took to be told is not how long a job ran. */
    if (output)
        shape__result_end(&w, exit);
    else if (exit->timed_out)
        document_flag(&w, "timed_out", true);
    json_end(&w, '}');
    buf_addc(&text, '\n');
    return run_end(s->run, &text);
}

static int shape__gather_end(Shape *s, const abx_event *exit)
{
    return shape__document(s, exit, true);
}

/* ---- the result alone ---- */

static bool shape__drop(Shape *s, int fd, Str bytes, Err *err)
{
    (void)s, (void)fd, (void)bytes, (void)err;
    return true;
}

static int shape__result_alone(Shape *s, const abx_event *exit)
{
    return s->run->out.json ? shape__document(s, exit, false) : shape__plain_end(s, exit);
}

static void shape__nothing(Shape *s, const abx_event *exit)
{
    (void)s;
    (void)exit;
}

/* ---- which ---- */

Shape shape_plain(const Run *r)
{
    Shape s = shape__make(r);

    s.take = shape__plain;
    s.last = shape__nothing;
    s.end = shape__plain_end;
    return s;
}

Shape shape_lines(const Run *r)
{
    Shape s = shape__make(r);

    s.take = shape__lines;
    s.last = shape__lines_last;
    s.end = shape__done;
    return s;
}

Shape shape_document(const Run *r)
{
    Shape s = shape__make(r);

    s.take = shape__gather;
    s.last = shape__nothing;
    s.end = shape__gather_end;
    return s;
}

Shape shape_logs(const Run *r)
{
    Shape s = r->out.json ? shape_lines(r) : shape_plain(r);

    s.end = shape__done;
    return s;
}

Shape shape_result(const Run *r)
{
    Shape s = shape__make(r);

    s.take = shape__drop;
    s.last = shape__nothing;
    s.end = shape__result_alone;
    return s;
}
