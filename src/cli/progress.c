#include "cli/progress.h"

#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "cli/document.h"
#include "cli/screen.h"
#include "os/poll.h"
#include "os/tty.h"

enum {
    PROGRESS_DRAW_MS = 100,
    PROGRESS_MARK_MS = 3000,    /* the rate is that of the last three to six seconds */
    PROGRESS_BAR_MOST = 30,
    PROGRESS_BAR_LEAST = 8,
};

bool progress_open(Progress *p, Run *r, bool piped, Err *err)
{
    static const char *const forms[] = {[PROGRESS_NONE] = "none", [PROGRESS_BAR] = "bar", [PROGRESS_JSON] = "json"};
    const char *form = args_value(r->args, "progress");
    const Output *o = &r->out;

    *p = (Progress){.run = r, .marks = {{.at = clock_mono_ms()}, {.at = clock_mono_ms()}}};
    r->out.bar = &p->drawn;
    if (!form || strcmp(form, "auto") == 0) {
        if (o->err_terminal && !o->quiet && !o->json && !(piped && o->out_terminal))
            p->form = PROGRESS_BAR;
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(forms); i++)
        if (strcmp(form, forms[i]) == 0) {
            p->form = (ProgressForm)i;
            return true;
        }
    err_set(err, ERR_USAGE, E8002, "--progress: there is no form '%s'", form);
    return err_hint(err, "The forms are auto, none, bar and json.");
}

/* ---- the bar ---- */

static void progress__amount(Buf *to, int64_t bytes)
{
    static const char units[] = "BKMGTPE";
    double v = (double)bytes;
    size_t u = 0;

    for (; v >= 1000 && units[u + 1]; u++)
        v /= 1024;
    buf_addf(to, "%.*f %c%s", u ? 1 : 0, v, units[u], u ? "iB" : "");
}

/* Behind the bar: how much, how fast, how long, how many. */
static void progress__text(Progress *p, const abx_copy_event *ev, Buf *to)
{
    int64_t now = clock_mono_ms();
    int64_t ms = now - p->marks[0].at, rate = 0;

    if (ms > 0)
        rate = (int64_t)((double)(ev->bytes - p->marks[0].bytes) * 1000 / (double)ms);
    if (now - p->marks[1].at >= PROGRESS_MARK_MS) {
        p->marks[0] = p->marks[1];
        p->marks[1] = (ProgressMark){now, ev->bytes};
    }
    progress__amount(to, ev->bytes);
    if (ev->total >= 0) {
        buf_add(to, STR(" of "));
        progress__amount(to, ev->total);
    }
    if (rate > 0) {
        buf_add(to, STR("  "));
        progress__amount(to, rate);
        buf_add(to, STR("/s"));
        if (ev->total > ev->bytes) {
            int64_t s = (ev->total - ev->bytes) / rate;
            buf_addf(to, "  %lld:%02d:%02d left", (long long)(s / 3600), (int)(s / 60 % 60), (int)(s % 60));
        }
    }
    if (ev->total_files > 1)
        buf_addf(to, "  %lld of %lld files", (long long)ev->files, (long long)ev->total_files);
    else if (ev->total_files < 0 && ev->files > 0)
        buf_addf(to, "  %lld file%s", (long long)ev->files, ev->files == 1 ? "" : "s");
}

/* "[=====>    ] 45%  " in what is left of the line. */
static void progress__bar(const abx_copy_event *ev, size_t room, Buf *to)
{
    size_t wide = room > PROGRESS_BAR_MOST ? PROGRESS_BAR_MOST : room;
    double part = (double)ev->bytes / (double)ev->total;

    part = part > 1 ? 1 : part;
    if (wide >= PROGRESS_BAR_LEAST) {
        size_t full = (size_t)((double)wide * part);
        buf_addc(to, '[');
        for (size_t i = 0; i < wide; i++)
            buf_addc(to, i < full ? '=' : i == full ? '>' : ' ');
        buf_add(to, STR("] "));
    }
    buf_addf(to, "%d%%  ", (int)(part * 100));
}

/* Not as wide as the terminal: many of them wrap behind the last column. */
static void progress__line(Progress *p, const abx_copy_event *ev, size_t cols, Buf *line)
{
    enum { AROUND = 10 };       /* "[] 100%  " and a column that stays free */
    Buf text = buf_make(LIMIT_ERROR_BODY);

    progress__text(p, ev, &text);
    buf_addc(line, '\r');
    if (ev->total > 0)
        progress__bar(ev, cols > text.n + AROUND ? cols - text.n - AROUND : 0, line);
    buf_add(line, buf_str(&text));
    if (line->n > cols)
        line->n = cols;
    buf_add(line, STR("\033[K"));
    buf_free(&text);
}

static void progress__draw(Progress *p, const abx_copy_event *ev)
{
    Buf line = buf_make(LIMIT_ERROR_BODY);
    ABX_UNSET Err unheard;

    progress__line(p, ev, (size_t)tty_size().cols, &line);
    /* A terminal that was stopped (Ctrl-S) does not stop the copy. */
    if (poll_one(STDERR_FILENO, POLLOUT, -1, clock_after(0), &unheard))
        p->drawn = write(STDERR_FILENO, line.p, line.n) > 0;
    buf_free(&line);
}

/* ---- lines ---- */

static void progress__number(JsonOut *w, const char *key, int64_t n)
{
    if (n < 0)
        return;
    json_key(w, key);
    json_put_int(w, n);
}

/* Its reader may be slow, and somebody may have had enough: then it is not told. */
static void progress__say(const Progress *p, Buf *line)
{
    ABX_UNSET Err unheard;

    buf_addc(line, '\n');
    if (!output_bytes(&p->run->out, STDERR_FILENO, buf_str(line), &unheard))
        buf_clear(line);
    buf_free(line);
}

static void progress__json(const Progress *p, const char *what, const abx_copy_event *ev, int64_t failed)
{
    Buf     line = buf_make(LIMIT_ERROR_BODY);
    JsonOut w = json_out(&line, JSON_SPACED);

    json_begin(&w, '{');
    document_string(&w, "event", what);
    if (ev->kind != ABX_COPY_PROGRESS) {
        document_string(&w, "path", ev->path);
        if (*ev->reason)
            document_string(&w, "reason", ev->reason);
        if (ev->sha256)
            document_string(&w, "sha256", ev->sha256);
    } else {
        progress__number(&w, "bytes", ev->bytes);
        progress__number(&w, "total", ev->total);
        progress__number(&w, "files", ev->files);
        progress__number(&w, "total_files", ev->total_files);
        progress__number(&w, "failed", failed);
    }
    json_end(&w, '}');
    progress__say(p, &line);
}

static void progress__entry(const Progress *p, const abx_copy_event *ev)
{
    bool   failed = ev->kind == ABX_COPY_FAILED;
    Arena  a = *p->run->a;
    Buf    line = buf_make(LIMIT_ERROR_BODY);

    buf_addf(&line, "abx: %s%s%s", ev->path, failed ? ": " : "", failed ? ev->reason : "");
    Str shown = screen_line(&a, buf_str(&line), p->run->out.err_terminal);
    buf_clear(&line);
    buf_add(&line, shown);
    output_wipe(&p->run->out);
    progress__say(p, &line);
}

void progress_event(Progress *p, const abx_copy_event *ev)
{
    static const char *const kinds[] = {[ABX_COPY_DONE] = "copied", [ABX_COPY_SAME] = "same", [ABX_COPY_FAILED] = "failed"};

    if (ev->kind == ABX_COPY_FAILED || (ev->kind != ABX_COPY_PROGRESS && p->run->out.verbose)) {
        if (p->form == PROGRESS_JSON)
            progress__json(p, kinds[ev->kind], ev, -1);
        else
            progress__entry(p, ev);
    }
    if (p->form == PROGRESS_NONE || !clock_passed(p->next))
        return;
    p->next = clock_after(PROGRESS_DRAW_MS);
    if (p->form == PROGRESS_BAR)
        progress__draw(p, ev);
    else
        progress__json(p, "progress", &(abx_copy_event){.bytes = ev->bytes, .total = ev->total, .files = ev->files,
                                                        .total_files = ev->total_files}, -1);
}

void progress_close(Progress *p, const abx_copied *done)
{
    output_wipe(&p->run->out);
    if (done && p->form == PROGRESS_JSON)
        progress__json(p, "done", &(abx_copy_event){.bytes = done->bytes, .total = -1, .files = done->files,
                                                    .total_files = -1}, done->failed);
}
