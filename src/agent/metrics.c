#include "agent/metrics.h"

#include "agent/answer.h"
#include "agent/daemon.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

#include <stdio.h>
#include <unistd.h>

enum { METRICS_EVERY_MS = 2000 };

typedef struct MetricsWatch {
    Daemon    *daemon;
    HttpdCall *call;
    LoopWatch  tick;
} MetricsWatch;

/* The next number of a line of /proc, which are words between blanks; 0 when
 * there is none. */
static uint64_t metrics__number(Str *line)
{
    Str      word;
    uint64_t v;

    while (str_cut(line, ' ', &word))
        if (num_u64(str_trim(word), &v))
            return v;
    return 0;
}

/* Percent of processor time that was not idle since the last call. */
static double metrics__busy(void)
{
    static uint64_t last_all, last_idle;
    uint64_t        v[8], all = 0;
    ABX_UNSET char text[256];
    FILE           *f = fopen("/proc/stat", "re");
    bool            ok = f && fgets(text, sizeof text, f) && str_starts(str_from(text), STR("cpu "));

    if (f)
        fclose(f);
    if (!ok)
        return 0;
    Str line = str_from(text);
    for (size_t i = 0; i < COUNT_OF(v); i++)
        all += v[i] = metrics__number(&line);
    uint64_t idle = v[3] + v[4], d_all = all - last_all, d_idle = idle - last_idle;
    last_all = all;
    last_idle = idle;
    return d_all && d_idle <= d_all ? 100.0 * (double)(d_all - d_idle) / (double)d_all : 0;
}

static void metrics__memory(double *total, double *used)
{
    ABX_UNSET char text[128];
    uint64_t all = 0, available = 0;
    FILE    *f = fopen("/proc/meminfo", "re");

    while (f && fgets(text, sizeof text, f)) {
        Str line = str_from(text);
        if (str_starts(line, STR("MemTotal:")))
            all = metrics__number(&line);
        else if (str_starts(line, STR("MemAvailable:")))
            available = metrics__number(&line);
    }
    if (f)
        fclose(f);
    *total = (double)all / 1024;
    *used = (double)(all - available) / 1024;
}

static void metrics__put(Buf *b)
{
    double total, used, busy = metrics__busy();

    metrics__memory(&total, &used);
    buf_addf(b,
             "{\"cpu_count\":%ld,\"cpu_used_pct\":%.3f,\"mem_total_mib\":%.3f,\"mem_used_mib\":%.3f,"
             "\"timestamp\":%lld}",
             sysconf(_SC_NPROCESSORS_ONLN), busy, total, used, (long long)clock_unix_ms());
}

void metrics_once(HttpdCall *c)
{
    Buf b = buf_make(1024);

    metrics__put(&b);
    answer_json(c, 200, &b);
    buf_free(&b);
}

static void metrics__tick(LoopWatch *w, short revents)
{
    MetricsWatch *m = w->owner;
    Buf           b = buf_make(1024);

    (void)revents;
    w->deadline = clock_after(METRICS_EVERY_MS);
    metrics__put(&b);
    buf_addc(&b, '\n');
    if (httpd_room(m->call))
        httpd_write(m->call, buf_str(&b));
    buf_free(&b);
}

static void metrics__gone(HttpdCall *c, bool whole)
{
    MetricsWatch *m = c->ctx;

    (void)whole;
    loop_remove(&m->daemon->loop, &m->tick);
    mem_free(m);
}

void metrics_watch(HttpdCall *c)
{
    static const HttpdHandler watch = {.gone = metrics__gone};
    static const Header       type = {{"Content-Type", 12}, {"text/event-stream", 17}};
    MetricsWatch *m = mem_new(sizeof *m);

    *m = (MetricsWatch){.daemon = c->ctx, .call = c};
    m->tick = (LoopWatch){.fd = -1, .deadline = clock_after(METRICS_EVERY_MS), .wake = metrics__tick, .owner = m};
    loop_add(&m->daemon->loop, &m->tick);
    c->handler = &watch;
    c->ctx = m;
    httpd_start(c, 200, &type, 1, -1);
}
