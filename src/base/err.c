#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

/* Shorten what vsnprintf cut to whole characters, with an ellipsis behind. */
static void err__fit(char *text, int wanted)
{
    static const char dots[] = "\xe2\x80\xa6";

    if (wanted >= 0 && wanted < ERR_TEXT_SIZE)
        return;
    size_t n = ERR_TEXT_SIZE - sizeof dots;
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    memcpy(text + n, dots, sizeof dots);
}

bool err_set(Err *err, ErrKind kind, Code code, const char *fmt, ...)
{
    va_list ap;

    *err = (Err){.kind = kind, .code = code};
    va_start(ap, fmt);
    err__fit(err->text, vsnprintf(err->text, sizeof err->text, fmt, ap));
    va_end(ap);
    return false;
}

bool err_sys(Err *err, int sys, Code code, const char *fmt, ...)
{
    ABX_UNSET char what[ERR_TEXT_SIZE];
    va_list ap;

    va_start(ap, fmt);
    err__fit(what, vsnprintf(what, sizeof what, fmt, ap));
    va_end(ap);
    err_set(err, ERR_SYSTEM, code, "%s: %s", what, strerror(sys));
    err->sys = sys;
    return false;
}

bool err_wrap(Err *err, const char *fmt, ...)
{
    char    head[ERR_TEXT_SIZE], tail[ERR_TEXT_SIZE];
    va_list ap;

    va_start(ap, fmt);
    err__fit(head, vsnprintf(head, sizeof head, fmt, ap));
    va_end(ap);
    memcpy(tail, err->text, sizeof tail);
    err__fit(err->text, snprintf(err->text, sizeof err->text, "%s: %s", head, tail));
    return false;
}

bool err_hint(Err *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    err__fit(err->hint, vsnprintf(err->hint, sizeof err->hint, fmt, ap));
    va_end(ap);
    return false;
}
