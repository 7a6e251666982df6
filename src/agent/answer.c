#include "agent/answer.h"

#include "base/str.h"
#include "base/time.h"
#include "data/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum { ANSWER_TEXT = 8192 };

void answer_empty(HttpdCall *c)
{
    httpd_answer(c, 200, NULL, (Str){0});
}

void answer_json(HttpdCall *c, int status, const Buf *body)
{
    httpd_answer(c, status, "application/json; charset=utf-8", buf_str(body));
}

void answer_plain(HttpdCall *c, int status, const char *line)
{
    static const Header fields[] = {
        {{"Content-Type", 12}, {"text/plain; charset=utf-8", 25}},
        {{"X-Content-Type-Options", 22}, {"nosniff", 7}},
    };
    Str text = str_from(line);

    httpd_start(c, status, fields, COUNT_OF(fields), (int64_t)text.n + 1);
    httpd_write(c, text);
    httpd_write(c, STR("\n"));
    httpd_finish(c);
}

static void answer__put(HttpdCall *c, int status, const char *code, const char *text)
{
    Buf     body = buf_make(8 * ANSWER_TEXT);
    JsonOut w = json_out(&body, JSON_COMPACT);

    json_begin(&w, '{');
    json_key(&w, "code");
    json_put_str(&w, str_from(code));
    json_key(&w, "message");
    json_put_str(&w, str_from(text));
    json_end(&w, '}');
    answer_json(c, status, &body);
    buf_free(&body);
}

void answer_error(HttpdCall *c, int status, const char *code, const char *fmt, ...)
{
    ABX_UNSET char text[ANSWER_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    answer__put(c, status, code, text);
}

void answer_sys(HttpdCall *c, int sys, const char *fmt, ...)
{
    char    what[ANSWER_TEXT], text[ANSWER_TEXT + 200];
    va_list ap;
    bool    missing = sys == ENOENT || sys == ENOTDIR;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    snprintf(text, sizeof text, "%s%s: %s", missing ? "file not found. " : "", what, strerror(sys));
    answer__put(c, missing ? 404 : 500, missing ? "FILE_NOT_FOUND" : "RUNTIME_ERROR", text);
}

void answer_time(struct timespec t, char out[static ANSWER_TIME])
{
    char text[TIME_SIZE] = "1970-01-01T00:00:00Z";

    if (!time_text((int64_t)t.tv_sec * 1000, false, text))
        t.tv_nsec = 0;      /* a file from no year that can be written */
    size_t n = strlen(text) - 1;
    memcpy(out, text, n);
    if (t.tv_nsec) {
        n += (size_t)snprintf(out + n, ANSWER_TIME - n, ".%09ld", t.tv_nsec);
        while (out[n - 1] == '0')
            n--;
    }
    out[n] = 'Z';
    out[n + 1] = '\0';
}
