#include "agent/event.h"

#include "base/base64.h"
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

static void event__end(JsonOut *w)
{
    json_end(w, '}');
    buf_add(w->to, STR("\n\n"));
}

static void event__now(JsonOut *w)
{
    json_key(w, "timestamp");
    json_put_int(w, clock_unix_ms());
}

void event_text(Buf *to, const char *type, Str text)
{
    JsonOut w = event__begin(to, type);

    json_key(&w, "text");
    json_put_str(&w, text);
    event__now(&w);
    event__end(&w);
}

void event_stamp(char stamp[static EVENT_STAMP])
{
    snprintf(stamp, EVENT_STAMP, "%lld", (long long)clock_unix_ms());
}

/* There are millions of these, so their fixed parts are copied as they are. */
void event_output(Buf *to, const char *type, const LinesPiece *piece, const char *stamp, Arena scratch)
{
    buf_add(to, STR("{\"type\":\""));
    buf_add(to, str_from(type));
    buf_addc(to, '"');
    if (piece->text.p) {
        JsonOut w = json_out(to, JSON_COMPACT);
        buf_add(to, STR(",\"text\":"));
        json_put_str(&w, piece->text);
    }
    buf_add(to, STR(",\"timestamp\":"));
    buf_add(to, str_from(stamp));
    if (piece->odd) {
        buf_add(to, STR(",\"b64\":\""));
        buf_add(to, base64_encode(&scratch, piece->bytes));
        buf_addc(to, '"');
    }
    buf_add(to, STR("}\n\n"));
}

void event_complete(Buf *to, int64_t ms)
{
    JsonOut w = event__begin(to, "execution_complete");

    if (ms) {
        json_key(&w, "execution_time");
        json_put_int(&w, ms);
    }
    event__now(&w);
    event__end(&w);
}

void event_error(Buf *to, const char *value, const char *trace, int signo, bool timed_out)
{
    JsonOut w = event__begin(to, "error");

    event__now(&w);
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
    event__end(&w);
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
