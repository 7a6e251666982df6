#include "base/time.h"

#include <stdio.h>
#include <time.h>

/* The number that is the n digits in front of *s; -1 when they are not there. */
static int time__digits(Str *s, size_t n)
{
    int v = 0;

    if (s->n < n)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (s->p[i] < '0' || s->p[i] > '9')
            return -1;
        v = v * 10 + (s->p[i] - '0');
    }
    str_skip(s, n);
    return v;
}

static bool time__char(Str *s, const char *any)
{
    if (s->n == 0 || s->p[0] == '\0' || !strchr(any, s->p[0]))
        return false;
    str_skip(s, 1);
    return true;
}

/* The next two digits, at most max. */
static bool time__field(Str *s, int max, int *out)
{
    *out = time__digits(s, 2);
    return *out >= 0 && *out <= max;
}

static int time__month_days(int year, int month)
{
    static const char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month - 1] + (month == 2 && leap);
}

static bool time__date(Str *s, struct tm *t)
{
    int year = time__digits(s, 4), month, day;

    if (year < 0 || !time__char(s, "-") || !time__field(s, 12, &month) || !time__char(s, "-") ||
        !time__field(s, 31, &day) || month == 0 || day == 0 || day > time__month_days(year, month))
        return false;
    t->tm_year = year - 1900;
    t->tm_mon = month - 1;
    t->tm_mday = day;
    return true;
}

static bool time__fraction(Str *s, int64_t *ms)
{
    int digits = 0, scale = 100;

    *ms = 0;
    if (!time__char(s, "."))
        return true;
    for (int d; (d = time__digits(s, 1)) >= 0; digits++, scale /= 10)
        *ms += d * scale;
    return digits >= 1 && digits <= 9;
}

/* Seconds that the local time is ahead of UTC. */
static bool time__offset(Str *s, int64_t *seconds)
{
    int hours, minutes;

    *seconds = 0;
    if (time__char(s, "Zz"))
        return true;
    bool west = s->n && s->p[0] == '-';
    if (!time__char(s, "+-") || !time__field(s, 23, &hours) || !time__char(s, ":") || !time__field(s, 59, &minutes))
        return false;
    *seconds = (hours * 60 + minutes) * 60 * (west ? -1 : 1);
    return true;
}

bool time_parse(Str s, int64_t *unix_ms)
{
    struct tm t = {0};
    int64_t   ms, offset;

    if (!time__date(&s, &t) || !time__char(&s, "Tt ") || !time__field(&s, 23, &t.tm_hour) || !time__char(&s, ":") ||
        !time__field(&s, 59, &t.tm_min) || !time__char(&s, ":") || !time__field(&s, 60, &t.tm_sec) ||
        !time__fraction(&s, &ms) || !time__offset(&s, &offset) || s.n != 0)
        return false;
    bool    leap = t.tm_sec == 60;
    int64_t seconds = timegm(&t) - offset;
    if (leap && seconds % 86400 != 0)
        return false;
    *unix_ms = seconds * 1000 + ms;
    return true;
}

static const char time__months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

void time_http(int64_t unix_ms, char out[static TIME_HTTP_SIZE])
{
    static const char days[] = "SunMonTueWedThuFriSat";
    ABX_UNSET char text[TIME_SIZE];
    struct tm t;
    time_t    seconds = unix_ms / 1000;

    if (!time_text(unix_ms, false, text))
        seconds = 0;
    if (!gmtime_r(&seconds, &t))
        BUG("a time within four digits of a year");
    snprintf(out, TIME_HTTP_SIZE, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT", days + t.tm_wday * 3, (unsigned)t.tm_mday % 100,
             time__months + t.tm_mon * 3, (unsigned)(t.tm_year + 1900) % 10000, (unsigned)t.tm_hour % 100,
             (unsigned)t.tm_min % 100, (unsigned)t.tm_sec % 100);
}

bool time_parse_http(Str s, int64_t *unix_ms)
{
    ABX_UNSET char text[sizeof "2026-11-30T03:05:54Z"];

    if (s.n != 29 || memcmp(s.p + 3, ", ", 2) != 0 || memcmp(s.p + 25, " GMT", 4) != 0 || s.p[7] != ' ' ||
        s.p[11] != ' ' || s.p[16] != ' ')
        return false;
    for (unsigned month = 0; month < 12; month++)
        if (memcmp(s.p + 8, time__months + month * 3, 3) == 0) {
            snprintf(text, sizeof text, "%.4s-%02u-%.2sT%.8sZ", s.p + 12, month + 1, s.p + 5, s.p + 17);
            return time_parse((Str){text, sizeof text - 1}, unix_ms);
        }
    return false;
}

bool time_text(int64_t unix_ms, bool with_ms, char out[static TIME_SIZE])
{
    struct tm t;

    /* years 0000 to 9999 */
    if (unix_ms < -62167219200000 || unix_ms > 253402300799999)
        return false;
    int    ms = (int)((unix_ms % 1000 + 1000) % 1000);
    time_t seconds = (unix_ms - ms) / 1000;
    if (!gmtime_r(&seconds, &t))
        return false;
    char rest[6] = "Z";
    if (with_ms)
        snprintf(rest, sizeof rest, ".%03uZ", (unsigned)ms % 1000);
    snprintf(out, TIME_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u%s", (unsigned)(t.tm_year + 1900) % 10000,
             (unsigned)(t.tm_mon + 1) % 100, (unsigned)t.tm_mday % 100, (unsigned)t.tm_hour % 100,
             (unsigned)t.tm_min % 100, (unsigned)t.tm_sec % 100, rest);
    return true;
}
