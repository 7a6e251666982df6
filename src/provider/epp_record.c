#include "provider/epp_record.h"

#include "base/num.h"
#include "base/str.h"
#include "base/time.h"
#include "base/utf8.h"

#include <stdio.h>

enum { EPP_RECORD_ID = 1024, EPP_RECORD_SIGNALS = 64 };

/* Text as it is; a number as it was written, anything else as JSON; empty for
 * null and for what is not there. */
static Str epp_record__text(const Json *v, Arena *a)
{
    if (!v || v->type == JSON_NULL)
        return (Str){0};
    if (v->type == JSON_STRING || v->type == JSON_INT || v->type == JSON_REAL)
        return arena_str(a, v->text);
    Buf     b = buf_make((size_t)64 << 20);
    JsonOut w = json_out(&b, JSON_SPACED);
    json_put(&w, v);
    Str text = arena_str(a, buf_str(&b));
    buf_free(&b);
    return text;
}

/* ---- times ---- */

static bool epp_record__two(Str *s, int max, int *out)
{
    if (s->n < 2 || s->p[0] < '0' || s->p[0] > '9' || s->p[1] < '0' || s->p[1] > '9')
        return false;
    *out = (s->p[0] - '0') * 10 + s->p[1] - '0';
    str_skip(s, 2);
    return *out <= max;
}

static bool epp_record__char(Str *s, const char *any)
{
    if (s->n == 0 || s->p[0] == '\0' || !strchr(any, s->p[0]))
        return false;
    str_skip(s, 1);
    return true;
}

/* Hours, minutes and seconds, of which the latter two may be missing, with
 * colons between all or none; and a fraction. */
static bool epp_record__clock(Str *s, int v[static 3], int64_t *us)
{
    static const int most[] = {23, 59, 59};
    bool colons = false;

    *us = 0;
    v[1] = v[2] = 0;
    if (!epp_record__two(s, most[0], &v[0]))
        return false;
    for (int n = 1; n < 3; n++) {
        bool colon = epp_record__char(s, ":");
        if (n == 1)
            colons = colon;
        if (colon != colons || (!colon && (s->n == 0 || s->p[0] < '0' || s->p[0] > '9')))
            break;
        if (!epp_record__two(s, most[n], &v[n]))
            return false;
    }
    if (!epp_record__char(s, ".,"))
        return true;
    for (int64_t scale = 100000; s->n && s->p[0] >= '0' && s->p[0] <= '9'; scale /= 10) {
        *us += (s->p[0] - '0') * scale;
        str_skip(s, 1);
    }
    return true;
}

static bool epp_record__zone(Str s, int64_t *us)
{
    int     v[3];
    int64_t part;

    *us = 0;
    epp_record__char(&s, " ");
    if (s.n == 0 || str_eq(s, STR("Z")))
        return true;
    bool west = s.p[0] == '-';
    if (!epp_record__char(&s, "+-") || !epp_record__clock(&s, v, &part) || s.n)
        return false;
    *us = ((int64_t)(v[0] * 3600 + v[1] * 60 + v[2]) * 1000000 + part) * (west ? -1 : 1);
    return true;
}

/* Milliseconds at the beginning of a day. */
static bool epp_record__day(int year, int month, int day, int64_t *ms)
{
    char text[] = "2026-11-30T00:00:00Z";

    snprintf(text, sizeof text, "%04u-%02u-%02uT00:00:00Z", (unsigned)year % 10000, (unsigned)month % 100, (unsigned)day % 100);
    return year > 0 && time_parse(str_from(text), ms);
}

/* The day of a week: week 1 is the one with January 4 in it, Monday its first. */
static bool epp_record__week(int year, int week, int day, int64_t *ms)
{
    enum { DAY = 86400000 };
    int64_t fourth, next;

    if (week < 1 || week > 53 || day < 1 || !epp_record__day(year, 1, 4, &fourth))
        return false;
    int64_t monday = fourth - (fourth / DAY % 7 + 10) % 7 * DAY;       /* 1970 began on a Thursday */
    *ms = monday + (int64_t)((week - 1) * 7 + day - 1) * DAY;
    if (week < 53 || !epp_record__day(year + 1, 1, 4, &next))
        return true;
    return *ms < next - (next / DAY % 7 + 10) % 7 * DAY;
}

static bool epp_record__date(Str *s, int64_t *ms)
{
    int century, year, a, b = 1;

    if (!epp_record__two(s, 99, &century) || !epp_record__two(s, 99, &year))
        return false;
    bool dashes = epp_record__char(s, "-"), week = epp_record__char(s, "W");
    year += century * 100;
    if (!epp_record__two(s, 53, &a))
        return false;
    if (!week)
        return dashes == epp_record__char(s, "-") && epp_record__two(s, 31, &b) && epp_record__day(year, a, b, ms);
    /* The day may be missing. */
    if (dashes ? epp_record__char(s, "-") : s->n && s->p[0] >= '0' && s->p[0] <= '9') {
        if (s->n == 0 || s->p[0] < '1' || s->p[0] > '7')
            return false;
        b = s->p[0] - '0';
        str_skip(s, 1);
    }
    return epp_record__week(year, a, b, ms);
}

bool epp_record_time(Str s, int64_t *us)
{
    int      v[3] = {0, 0, 0};
    int64_t  ms, part = 0, ahead = 0;
    uint32_t between;

    if (!epp_record__date(&s, &ms))
        return false;
    if (s.n) {
        utf8_next(&s, &between);        /* whatever stands between the two */
        if (!epp_record__clock(&s, v, &part) || !epp_record__zone(s, &ahead))
            return false;
    }
    *us = (ms + (int64_t)(v[0] * 3600 + v[1] * 60 + v[2]) * 1000) * 1000 + part - ahead;
    return true;
}

static bool epp_record__when(const Json *v, Arena *a, Str *text, int64_t *us)
{
    ABX_UNSET char out[TIME_SIZE];

    if (!epp_record_time(json_str(v), us) || !time_text(*us / 1000, *us % 1000000 != 0, out))
        return false;
    *text = arena_str(a, str_from(out));
    return true;
}

/* Whole seconds, halves to the even one; -1 when it is none. */
static int64_t epp_record__seconds(int64_t us)
{
    if (us <= 0)
        return -1;
    int64_t s = us / 1000000, rest = us % 1000000;
    s += rest > 500000 || (rest == 500000 && s % 2);
    return s > 0 ? s : -1;
}

/* ---- sandboxes ---- */

static bool epp_record__is_id(Str id)
{
    for (size_t i = 0; i + 1 < id.n; i++)
        if (id.p[i] == '\xc2' && (unsigned char)id.p[i + 1] < 0xa0)
            return false;       /* a C1 control character */
    return id.n > 0 && id.n <= EPP_RECORD_ID && !str_has_control(id);
}

Str epp_record_id(const Json *record, Arena *a)
{
    const Json *v = json_get(record, "sandbox_id");
    bool        is_text = v && (v->type == JSON_STRING || v->type == JSON_INT || v->type == JSON_REAL);

    return is_text && epp_record__is_id(v->text) ? arena_str(a, v->text) : (Str){0};
}

static void epp_record__state(Str word, SandboxInfo *out)
{
    static const SandboxState states[] = {SANDBOX_CREATING, SANDBOX_PAUSED,  SANDBOX_PAUSING,
                                          SANDBOX_STOPPING, SANDBOX_STOPPED, SANDBOX_ERROR};

    out->state = SANDBOX_RUNNING;
    for (size_t i = 0; i < COUNT_OF(states); i++)
        if (str_eq(word, provider_state_word(states[i])))
            out->state = states[i];
    out->status = provider_state_word(out->state);
}

static void epp_record__metadata(const Json *v, Arena *a, SandboxInfo *out)
{
    size_t n = v && v->type == JSON_OBJECT ? v->count : 0;
    Pair  *pairs = arena_array(a, n, sizeof *pairs);

    for (size_t i = 0; i < n; i++)
        pairs[i] = (Pair){arena_str(a, v->keys[i]), epp_record__text(&v->items[i], a)};
    out->metadata = pairs;
    out->metadata_count = n;
}

static bool epp_record__truth(const Json *v)
{
    return v && v->type != JSON_NULL && !(v->type == JSON_BOOL && !v->boolean) && json_real(v, 1) != 0;
}

bool epp_record_sandbox(const Json *record, Arena *a, SandboxInfo *out, const char **what)
{
    const Json *token = json_get(record, "envd_access_token");
    int64_t     from = 0, to = 0;

    *out = (SandboxInfo){.timeout_s = -1};
    if (!record || record->type != JSON_OBJECT) {
        *what = "it is no object";
        return false;
    }
    out->id = epp_record_id(record, a);
    if (!out->id.n) {
        *what = "sandbox_id is none";
        return false;
    }
    if (token && token->type != JSON_NULL && token->type != JSON_STRING) {
        *what = "envd_access_token is no text";
        return false;
    }
    out->template = epp_record__text(json_get(record, "template"), a);
    epp_record__state(json_str(json_get(record, "status")), out);
    epp_record__metadata(json_get(record, "metadata"), a, out);
    bool begun = epp_record__when(json_get(record, "created_at"), a, &out->started_at, &from);
    if (epp_record__when(json_get(record, "expires_at"), a, &out->end_at, &to) && begun)
        out->timeout_s = epp_record__seconds(to - from);
    if (epp_record__truth(json_get(record, "region")))
        out->region = epp_record__text(json_get(record, "region"), a);
    return true;
}

/* ---- the rest ---- */

static bool epp_record__optional(const Json *v, JsonType type)
{
    return !v || v->type == JSON_NULL || v->type == type;
}

static Str epp_record__last(Str path)
{
    size_t at = path.n;

    while (at > 0 && path.p[at - 1] != '/')
        at--;
    return str_from_to(path, at, path.n);
}

bool epp_record_entry(const Json *entry, Str path, bool folder, Arena *a, FileInfo *out, const char **what)
{
    const Json *size = json_get(entry, "size"), *name = json_get(entry, "name"), *at = json_get(entry, "path");
    Str         type = json_str(json_get(entry, "type"));
    int64_t     us;

    *out = (FileInfo){.mode = -1};
    *what = !entry || entry->type != JSON_OBJECT ? "an entry is no object"
            : !epp_record__optional(name, JSON_STRING) ? "name is no text"
            : !epp_record__optional(at, JSON_STRING) ? "path is no text" : NULL;
    if (!*what && folder && !json_str(name).n && !json_str(at).n)
        *what = "an entry has neither name nor path";
    out->size = size && size->type != JSON_NULL ? json_int(size, -1) : 0;
    if (!*what && out->size < 0)
        *what = "size is no number of bytes";
    if (*what)
        return false;
    out->path = arena_str(a, json_str(at));
    if (!out->path.n && folder)
        out->path = arena_fmt(a, "%.*s%s%.*s", (int)path.n, path.p, str_ends(path, STR("/")) ? "" : "/",
                              (int)json_str(name).n, json_str(name).p);
    else if (!out->path.n)
        out->path = arena_str(a, path);
    out->name = json_str(name).n ? arena_str(a, json_str(name)) : epp_record__last(out->path);
    out->type = str_eq(type, STR("dir")) || str_eq(type, STR("directory")) ? FILE_FOLDER : FILE_REGULAR;
    epp_record__when(json_get(entry, "mtime"), a, &out->modified, &us);
    return true;
}

bool epp_record_process(const Json *process, Arena *a, ProcessInfo *out, const char **what)
{
    const Json *pid = json_get(process, "pid");

    *out = (ProcessInfo){0};
    *what = !process || process->type != JSON_OBJECT ? "a process is no object"
            : !pid || (pid->type != JSON_INT && pid->type != JSON_STRING) ? "pid is neither a whole number nor text"
            : !epp_record__optional(json_get(process, "command"), JSON_STRING) ? "command is no text"
            : !epp_record__optional(json_get(process, "status"), JSON_STRING) ? "status is no text" : NULL;
    if (*what)
        return false;
    out->pid = arena_str(a, pid->text);
    out->command = arena_str(a, json_str(json_get(process, "command")));
    out->status = arena_str(a, json_str(json_get(process, "status")));
    if (!out->status.n)
        out->status = STR("running");
    return true;
}

bool epp_record_port(const Json *result, Arena *a, PortUrl *out, const char **what)
{
    const Json *headers = json_get(result, "headers");
    Str         url = json_str(json_get(result, "url"));
    size_t      n = headers && headers->type == JSON_OBJECT ? headers->count : 0;
    Header     *v = arena_array(a, n, sizeof *v);

    *what = !url.n || str_has_control(url) ? "url is none"
            : !epp_record__optional(headers, JSON_OBJECT) ? "headers is no object" : NULL;
    for (size_t i = 0; i < n && !*what; i++) {
        v[i] = (Header){arena_str(a, headers->keys[i]), epp_record__text(&headers->items[i], a)};
        if (!header_name_ok(v[i].name) || !header_value_ok(v[i].value))
            *what = "a header is none";
    }
    *out = (PortUrl){arena_str(a, url), {v, n}};
    return !*what;
}

bool epp_record_exit(const Json *code, ExecEvent *out, const char **what)
{
    int64_t v;

    *what = "exit_code is none";
    if (code && code->type == JSON_STRING) {
        if (!num_i64(code->text, &v))
            return false;
    } else {
        v = json_int(code, INT64_MAX);
    }
    if (v > 255 || v < -EPP_RECORD_SIGNALS)
        return false;
    out->kind = EXEC_EXIT;
    out->exit_code = v < 0 ? -1 : (int)v;
    out->signal = v < 0 ? (int)-v : 0;
    return true;
}
