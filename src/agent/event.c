#include "agent/event.h"

#include "base/base64.h"
#include "base/limits.h"
#include "base/str.h"
#include "data/json.h"
#include "os/clock.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

static JsonOut event__begin(Buf *b, const char *type)
{
    JsonOut w = json_out(b, JSON_COMPACT);

    json_begin(&w, '{');
    json_key(&w, "type");
    json_put_str(&w, str_from(type));
    return w;
}

static void event__stamp(JsonOut *w)
{
    json_key(w, "timestamp");
    json_put_int(w, clock_unix_ms());
}

static void event__end(JsonOut *w, HttpdCall *c)
{
    json_end(w, '}');
    buf_add(w->to, STR("\n\n"));
    httpd_write(c, buf_str(w->to));
    buf_free(w->to);
}

void event_text(HttpdCall *c, const char *type, Str text)
{
    Buf     b = buf_make(LIMIT_HTTPD_OUT);
    JsonOut w = event__begin(&b, type);

    json_key(&w, "text");
    json_put_str(&w, text);
    event__stamp(&w);
    event__end(&w, c);
}

void event_output(HttpdCall *c, const char *type, const LinesPiece *piece)
{
    Buf     b = buf_make(LIMIT_HTTPD_OUT);
    JsonOut w = event__begin(&b, type);
    Arena   scratch = *c->arena;

    if (piece->text.p) {
        json_key(&w, "text");
        json_put_str(&w, piece->text);
    }
    event__stamp(&w);
    if (piece->odd) {
        json_key(&w, "b64");
        json_put_str(&w, base64_encode(&scratch, piece->bytes));
    }
    event__end(&w, c);
}

void event_complete(HttpdCall *c, int64_t ms)
{
    Buf     b = buf_make(LIMIT_HTTPD_OUT);
    JsonOut w = event__begin(&b, "execution_complete");

    if (ms) {
        json_key(&w, "execution_time");
        json_put_int(&w, ms);
    }
    event__stamp(&w);
    event__end(&w, c);
}

void event_error(HttpdCall *c, const char *value, const char *trace, int signo, bool timed_out)
{
    Buf     b = buf_make(LIMIT_HTTPD_OUT);
    JsonOut w = event__begin(&b, "error");

    event__stamp(&w);
    json_key(&w, "error");
    json_begin(&w, '{');
    json_key(&w, "ename");
    json_put_str(&w, STR("CommandExecError"));
    json_key(&w, "evalue");
    json_put_str(&w, str_from(value));
    json_key(&w, "traceback");
    json_begin(&w, '[');
    json_put_str(&w, str_from(trace));
    json_end(&w, ']');
    json_end(&w, '}');
    if (signo) {
        json_key(&w, "signal");
        json_put_int(&w, signo);
    }
    if (timed_out) {
        json_key(&w, "timed_out");
        json_put_bool(&w, true);
    }
    event__end(&w, c);
}

static const char *event__signal(int signo)
{
    static const struct { int signo; const char *name; } names[] = {
        {SIGHUP, "hangup"}, {SIGINT, "interrupt"}, {SIGQUIT, "quit"}, {SIGILL, "illegal instruction"},
        {SIGTRAP, "trace/breakpoint trap"}, {SIGABRT, "aborted"}, {SIGBUS, "bus error"},
        {SIGFPE, "floating point exception"}, {SIGKILL, "killed"}, {SIGUSR1, "user defined signal 1"},
        {SIGSEGV, "segmentation fault"}, {SIGUSR2, "user defined signal 2"}, {SIGPIPE, "broken pipe"},
        {SIGALRM, "alarm clock"}, {SIGTERM, "terminated"},
    };

    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i].signo == signo)
            return names[i].name;
    return NULL;
}

void event_result(int status, int *code, char text[static EVENT_RESULT])
{
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (WIFEXITED(status)) {
        snprintf(text, EVENT_RESULT, "exit status %d", *code);
        return;
    }
    const char *name = event__signal(WTERMSIG(status));
    const char *core = WCOREDUMP(status) ? " (core dumped)" : "";
    if (name)
        snprintf(text, EVENT_RESULT, "signal: %s%s", name, core);
    else
        snprintf(text, EVENT_RESULT, "signal: signal %d%s", WTERMSIG(status), core);
}
