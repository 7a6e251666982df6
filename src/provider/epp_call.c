#include "provider/epp_call.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "provider/epp_error.h"

enum {
    EPP_CALL_ARENA = 256 << 10,     /* most messages fit; it grows for the others */
    EPP_CALL_PER_BYTE = 26,         /* what a tree takes at most for a byte of its text (see data/json.h) */
};

/* ---- requests ---- */

JsonOut *epp_call_begin(EppCalls *c, const char *method)
{
    buf_clear(&c->text);
    c->method = method;
    c->writer = json_out(&c->text, JSON_ASCII);
    json_begin(&c->writer, '{');
    json_key(&c->writer, "jsonrpc");
    json_put_str(&c->writer, STR("2.0"));
    json_key(&c->writer, "id");
    json_put_int(&c->writer, c->number + 1);
    json_key(&c->writer, "method");
    json_put_str(&c->writer, str_from(method));
    json_key(&c->writer, "params");
    json_begin(&c->writer, '{');
    return &c->writer;
}

void epp_call_secret(EppCalls *c, size_t bytes)
{
    /* Room for all of it now: what grows later leaves a copy behind. */
    buf_room(&c->text, 6 * bytes + 4096);
}

void epp_call_cancel(EppCalls *c, const EppWait *w)
{
    ABX_UNSET char text[100];
    int  n = snprintf(text, sizeof text, "{\"jsonrpc\": \"2.0\", \"method\": \"$/cancel\", \"params\": {\"id\": %lld}}\n",
                      (long long)w->number);

    if (epp_link_idle(&c->link))        /* else it would wait behind what is not read */
        epp_link_put(&c->link, (Str){text, (size_t)n});
}

static bool epp_call__put(EppCalls *c, EppWait *w, Err *err)
{
    json_end(&c->writer, '}');
    json_end(&c->writer, '}');
    buf_addc(&c->text, '\n');
    bool ok = !c->text.over;
    if (ok) {
        *w = (EppWait){.next = c->waits, .number = ++c->number, .started = clock_mono_ms(), .line = buf_make(LIMIT_EPP_LINE)};
        c->waits = w;
        epp_link_put(&c->link, buf_str(&c->text));
    } else {
        err_set(err, ERR_LIMIT, E4003, "%s: a message to a plugin has at most %zu bytes", c->method, LIMIT_EPP_LINE);
    }
    mem_wipe(c->text.p, c->text.n);
    buf_clear(&c->text);
    return ok;
}

void epp_call_forget(EppCalls *c, EppWait *w, bool cancel)
{
    EppWait **at = &c->waits;

    while (*at && *at != w)
        at = &(*at)->next;
    if (*at)
        *at = w->next;
    if (cancel && !w->there && !c->link.failed && w->number != 1)      /* not of the handshake */
        epp_call_cancel(c, w);
    buf_free(&w->line);
}

/* ---- what comes ---- */

/* Halves of surrogate pairs, which some languages write where they cut a text,
 * become U+FFFD: same length, and the rest of the line is worth having. */
static void epp_call__mend(Str line)
{
    char *p = (char *)line.p, *end = p + line.n;

    while ((p = memchr(p, '\\', (size_t)(end - p))) != NULL && end - p >= 6) {
        bool low = p[1] == 'u' && (p[2] | 0x20) == 'd' && ((p[3] >= 'c' && p[3] <= 'f') || (p[3] >= 'C' && p[3] <= 'F'));
        bool high = p[1] == 'u' && (p[2] | 0x20) == 'd' && !low && p[3] >= '8';
        if (high && end - p >= 12 && p[6] == '\\' && p[7] == 'u' && (p[8] | 0x20) == 'd' &&
            ((p[9] >= 'c' && p[9] <= 'f') || (p[9] >= 'C' && p[9] <= 'F'))) {
            p += 12;
            continue;
        }
        if (low || high)
            memcpy(p + 2, "fffd", 4);
        p += p[1] == 'u' ? 6 : 2;
    }
}

static const Json *epp_call__parse(EppCalls *c, Str line, Err *err)
{
    const Json *doc;
    size_t      want = line.n * EPP_CALL_PER_BYTE + 4096;

    if (c->message.size < want) {
        arena_free(&c->message);
        c->message = arena_make(want > EPP_CALL_ARENA ? want : EPP_CALL_ARENA);
    }
    arena_reset(&c->message);
    epp_call__mend(line);
    if (!json_parse(line, &c->message, &doc, err)) {
        ABX_UNSET char what[200];
        snprintf(what, sizeof what, "sent a line that is no message (%.150s)", err->text);
        epp_link_break(&c->link, E8020, what, err);
        return NULL;
    }
    if (doc->type == JSON_OBJECT)
        return doc;
    epp_link_break(&c->link, E8020, "sent a line that is no message (JSON, but no object)", err);
    return NULL;
}

Str epp_call_key(const Json *process_id)
{
    if (process_id && (process_id->type == JSON_STRING || process_id->type == JSON_INT || process_id->type == JSON_REAL))
        return process_id->text;
    return (Str){0};
}

static EppStream *epp_call__find(EppCalls *c, Str key)
{
    EppStream *s = c->streams;

    while (s && !str_eq((Str){s->key, s->key_n}, key))
        s = s->next;
    return s;
}

static EppStream *epp_call__open(EppCalls *c, Str key, EppStreamState state)
{
    EppStream *s = mem_new(sizeof *s);

    *s = (EppStream){.next = c->streams, .state = state, .key = mem_str(key), .key_n = key.n, .held = buf_make(LIMIT_EPP_HELD)};
    c->streams = s;
    return s;
}

static void epp_call__free(EppCalls *c, EppStream *s)
{
    EppStream **at = &c->streams;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    c->held -= s->held.n - s->at;
    buf_free(&s->held);
    mem_free(s->key);
    mem_free(s);
}

/* Of the commands that nobody has asked about, make sure there are not too many. */
static bool epp_call__crowded(const EppCalls *c)
{
    size_t n = 0;

    for (const EppStream *s = c->streams; s; s = s->next)
        n += s->state != EPP_OPEN;
    return n >= LIMIT_EPP_STREAMS;
}

static bool epp_call__hold(EppCalls *c, Str key, Str line, bool exit, Err *err)
{
    EppStream *s = epp_call__find(c, key);

    if (s && s->state == EPP_DROPPED) {
        if (exit)
            epp_call__free(c, s);
        return true;
    }
    if ((!s && epp_call__crowded(c)) || line.n + key.n + 1 > LIMIT_EPP_HELD - c->held)
        return epp_link_break(&c->link, E8020, "told more of commands than anybody asked for", err);
    if (!s)
        s = epp_call__open(c, key, EPP_EARLY);
    if (s->at == s->held.n) {
        buf_clear(&s->held);
        s->at = 0;
    }
    buf_add(&s->held, line);
    buf_addc(&s->held, '\n');
    c->held += line.n + 1;
    s->exited = s->exited || exit;
    return true;
}

static void epp_call__log(EppCalls *c, const Json *message)
{
    if (!c->host->trace)
        return;
    Arena a = arena_make(4 * LIMIT_EPP_VOICE);
    Str   text = epp_voice_line(c->voice, json_str(message), &a);
    c->host->trace(c->host->trace_ctx, arena_fmt(&a, "[%.*s] %.*s", STR_ARG(c->voice->id), STR_ARG(text)).p);
    arena_free(&a);
}

static EppWait *epp_call__waiting(EppCalls *c, const Json *number)
{
    EppWait *w = number->type == JSON_INT ? c->waits : NULL;

    while (w && (w->number != number->integer || w->there))
        w = w->next;
    return w;
}

/* Act on one line. STEP_DONE: it was the answer that `mine` waits for, or a
 * notification for `of`, which is *doc then. STEP_MORE: something else. */
static Step epp_call__line(EppCalls *c, Str line, const EppWait *mine, const EppStream *of, const Json **doc, Err *err)
{
    /* The reader works on a copy, so the line is still there to be kept. */
    *doc = epp_call__parse(c, line, err);
    if (!*doc)
        return STEP_ERR;
    const Json *number = json_get(*doc, "id"), *method = json_get(*doc, "method"), *params = json_get(*doc, "params");
    if (number && (json_get(*doc, "result") || json_get(*doc, "error"))) {
        EppWait *w = epp_call__waiting(c, number);
        if (!w)
            return STEP_MORE;
        w->there = true;
        w->answer = w == mine ? *doc : NULL;
        if (w != mine)
            buf_add(&w->line, line);
        return w == mine ? STEP_DONE : STEP_MORE;
    }
    if (!method || method->type != JSON_STRING)
        return STEP_MORE;
    if (str_eq(method->text, STR("log"))) {
        epp_call__log(c, json_get(params, "message"));
        return STEP_MORE;
    }
    Str key = epp_call_key(json_get(params, "process_id"));
    if (!key.p)
        return STEP_MORE;
    if (of && of->at == of->held.n && str_eq((Str){of->key, of->key_n}, key))
        return STEP_DONE;
    bool exit = str_eq(method->text, STR("exec.exit")) || str_eq(method->text, STR("pty.exit"));
    return epp_call__hold(c, key, line, exit, err) ? STEP_MORE : STEP_ERR;
}

/* Go through the lines that are there. */
static Step epp_call__look(EppCalls *c, const EppWait *mine, const EppStream *of, const Json **doc, Err *err)
{
    Str line = {0};

    while (epp_link_line(&c->link, &line)) {
        Step step = epp_call__line(c, line, mine, of, doc, err);
        if (step != STEP_MORE)
            return step;
    }
    return STEP_MORE;
}

/* ---- calls ---- */

/* To a tenth of a second, since a part of a limit is over when it is looked at. */
static const char *epp_call__seconds(int64_t ms, char text[static 32])
{
    ms = (ms + 50) / 100 * 100;
    if (ms % 1000)
        snprintf(text, 32, "%lld.%lld s", (long long)(ms / 1000), (long long)(ms % 1000 / 100));
    else
        snprintf(text, 32, "%lld s", (long long)(ms / 1000));
    return text;
}

static bool epp_call__late(EppCalls *c, const char *method, int64_t ms, Err *err)
{
    ABX_UNSET char text[32];

    c->late = true;
    err_set(err, ERR_TIMEOUT, E8022, "the plugin of provider %.*s did not answer %s within %s", STR_ARG(c->voice->id),
            method, epp_call__seconds(ms, text));
    return epp_link_hint(&c->link, err);
}

static bool epp_call__unread(EppCalls *c, Err *err)
{
    c->late = true;
    return epp_link_break(&c->link, E8022, "does not read its input", err);
}

bool epp_call_send(EppCalls *c, EppWait *w, Deadline d, Err *err)
{
    const Json *doc;
    ABX_UNSET Err end;

    if (c->link.failed) {
        *err = c->link.failure;
        return false;
    }
    if (!epp_call__put(c, w, err))
        return false;
    while (!epp_link_idle(&c->link)) {
        if (epp_call__look(c, NULL, NULL, &doc, err) == STEP_ERR)
            break;
        if (epp_link_turn(&c->link, c->host->cancel_fd, d, &end))
            continue;
        *err = end;
        if (end.kind == ERR_TIMEOUT && !c->link.failed)
            epp_call__unread(c, err);
        else if (end.kind == ERR_CANCELLED)
            epp_link_break(&c->link, E8022, "did not read all of a request that was cancelled", &end);
        break;
    }
    if (epp_link_idle(&c->link) && !c->link.failed)
        return true;
    epp_call_forget(c, w, false);
    return false;
}

static bool epp_call__result(EppCalls *c, const Json *answer, const Json **result, Err *err)
{
    static const Json nothing = {.type = JSON_NULL};
    const Json       *error = json_get(answer, "error"), *value = json_get(answer, "result");

    c->no_method = false;
    if (error && error->type == JSON_OBJECT) {
        c->no_method = epp_error_is_no_method(error);
        return epp_error_set(c->voice, error, err);
    }
    *result = value ? value : &nothing;
    return true;
}

Step epp_call_poll(EppCalls *c, EppWait *w, const Json **result, Err *err)
{
    const Json *doc;

    if (!w->there) {
        Step step = epp_call__look(c, w, NULL, &doc, err);
        if (step != STEP_DONE) {
            if (step == STEP_MORE && c->link.failed) {
                *err = c->link.failure;
                step = STEP_ERR;
            }
            return step;
        }
    }
    if (!w->answer)
        w->answer = epp_call__parse(c, buf_str(&w->line), err);
    return w->answer && epp_call__result(c, w->answer, result, err) ? STEP_DONE : STEP_ERR;
}

bool epp_call_wait(EppCalls *c, EppWait *w, const char *method, Deadline d, const Json **result, Err *err)
{
    bool over = false;
    Step step;
    ABX_UNSET Err end;

    c->no_method = false;
    while ((step = epp_call_poll(c, w, result, err)) == STEP_MORE && !over)
        over = !epp_link_turn(&c->link, c->host->cancel_fd, d, &end);
    if (step == STEP_MORE && end.kind == ERR_CANCELLED)
        *err = end;
    else if (step == STEP_MORE)
        epp_call__late(c, method, d - w->started, err);
    return step == STEP_DONE;
}

bool epp_call_end(EppCalls *c, Deadline d, const Json **result, Err *err)
{
    const char *method = c->method;
    EppWait     w;

    c->no_method = false;
    if (!epp_call_send(c, &w, d, err))
        return false;
    bool ok = epp_call_wait(c, &w, method, d, result, err);
    epp_call_forget(c, &w, !ok);
    return ok;
}

/* ---- streams ---- */

EppStream *epp_call_stream(EppCalls *c, Str key)
{
    EppStream *s = epp_call__find(c, key);

    if (!s)
        return epp_call__open(c, key, EPP_OPEN);
    if (s->state == EPP_DROPPED)
        s->exited = false;
    s->state = EPP_OPEN;
    return s;
}

Step epp_call_note(EppCalls *c, EppStream *s, const Json **note, Err *err)
{
    if (s->at < s->held.n) {
        Str    rest = {s->held.p + s->at, s->held.n - s->at};
        size_t n = str_find(rest, '\n');
        s->at += n + 1;
        c->held -= n + 1;
        *note = epp_call__parse(c, (Str){rest.p, n}, err);
        return *note ? STEP_DONE : STEP_ERR;
    }
    Step step = epp_call__look(c, NULL, s, note, err);
    if (step == STEP_MORE && c->link.failed) {
        *err = c->link.failure;
        step = STEP_ERR;
    }
    return step;
}

void epp_call_leave(EppCalls *c, EppStream *s)
{
    if (s->exited || c->link.failed || epp_call__crowded(c)) {
        epp_call__free(c, s);
        return;
    }
    c->held -= s->held.n - s->at;
    buf_free(&s->held);
    s->at = 0;
    s->state = EPP_DROPPED;
}

bool epp_call_await_exit(EppCalls *c, EppStream *s, Deadline d)
{
    const Json *doc;
    ABX_UNSET Err none;

    while (!s->exited && epp_call__look(c, NULL, NULL, &doc, &none) == STEP_MORE)
        if (!s->exited && !epp_link_turn(&c->link, -1, d, &none))
            break;
    return s->exited;
}

bool epp_call_bad(EppCalls *c, const char *method, const char *what, Err *err)
{
    ABX_UNSET char text[200];

    snprintf(text, sizeof text, "answers %s wrongly: %s", method, what);
    return epp_link_break(&c->link, E8020, text, err);
}

/* ---- its life ---- */

bool epp_call_start(EppCalls *c, const ProcSpec *spec, const EppVoice *voice, const ProviderHost *host, Err *err)
{
    *c = (EppCalls){.voice = voice, .host = host, .text = buf_make(LIMIT_EPP_LINE)};
    if (!epp_link_start(&c->link, spec, voice, err)) {
        epp_link_end(&c->link);
        return false;
    }
    c->message = arena_make(EPP_CALL_ARENA);
    return true;
}

void epp_call_stop(EppCalls *c)
{
    ProviderHost quiet = *c->host;
    const Json  *result;
    ABX_UNSET Err none;

    quiet.cancel_fd = -1;
    c->host = &quiet;
    epp_call_begin(c, "shutdown");
    /* Whatever it says to that, it is ended. */
    if (!epp_call_end(c, clock_after(LIMIT_EPP_BYE_MS), &result, &none))
        result = NULL;
    epp_call_drop(c);
}

void epp_call_drop(EppCalls *c)
{
    epp_link_end(&c->link);
    while (c->streams)
        epp_call__free(c, c->streams);
    arena_free(&c->message);
    buf_free(&c->text);
}
