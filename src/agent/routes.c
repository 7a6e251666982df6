#include "agent/routes.h"

#include "agent/answer.h"
#include "agent/command.h"
#include "agent/daemon.h"
#include "agent/dirs.h"
#include "agent/download.h"
#include "agent/files.h"
#include "agent/metrics.h"
#include "agent/proxy.h"
#include "agent/query.h"
#include "agent/replace.h"
#include "agent/terminal.h"
#include "agent/upload.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"

typedef struct RoutesRow {
    const char *method, *path;
    void      (*now)(HttpdCall *c);             /* either answers by itself, */
    void      (*then)(HttpdCall *c, Str body);  /* or with the whole body, which is JSON */
} RoutesRow;

static const RoutesRow routes__rows[] = {
    {"GET", "/ping", answer_empty, NULL},
    {"GET", "/metrics", metrics_once, NULL},
    {"GET", "/metrics/watch", metrics_watch, NULL},
    {"POST", "/command", NULL, command_post},
    {"POST", "/pty", NULL, terminal_post},
    {"DELETE", "/command", command_interrupt, NULL},
    {"GET", "/files/info", files_info, NULL},
    {"GET", "/files/download", download_begin, NULL},
    {"GET", "/files/search", dirs_search, NULL},
    {"POST", "/files/upload", upload_begin, NULL},
    {"POST", "/files/mv", NULL, files_move},
    {"POST", "/files/replace", NULL, replace_begin},
    {"POST", "/files/permissions", NULL, files_permissions},
    {"DELETE", "/files", files_delete, NULL},
    {"GET", "/directories/list", dirs_list, NULL},
    {"POST", "/directories", NULL, dirs_make},
    {"DELETE", "/directories", dirs_remove, NULL},
};

/* Calls of the execd API that this daemon does not have. */
static const char *const routes__refused[] = {"/session", "/code", "/v1/isolated", "/mcpproxy"};

static bool routes__under(Str path, const char *head)
{
    Str h = str_from(head);

    return str_starts(path, h) && (path.n == h.n || path.p[h.n] == '/');
}

static void routes__unknown(HttpdCall *c, Str path)
{
    for (size_t i = 0; i < COUNT_OF(routes__refused); i++)
        if (routes__under(path, routes__refused[i])) {
            answer_error(c, 501, "NOT_SUPPORTED", "this daemon has no %s", routes__refused[i]);
            return;
        }
    httpd_answer(c, 404, "text/plain", STR("404 page not found"));
}

/* /command/status/ID and /command/ID/logs */
static bool routes__command(HttpdCall *c, Str path)
{
    Str rest = path, id;

    if (!str_eq(c->head.method, STR("GET")) || !str_starts(path, STR("/command/")))
        return false;
    str_skip(&rest, 9);
    if (str_starts(rest, STR("status/"))) {
        str_skip(&rest, 7);
        if (!rest.n || str_has(rest, '/'))
            return false;
        command_status(c, rest);
        return true;
    }
    if (!str_cut(&rest, '/', &id) || !id.n || !str_eq(rest, STR("logs")))
        return false;
    command_logs(c, id);
    return true;
}

/* Compares in the same time whatever the difference is. */
static bool routes__same_secret(Str a, Str b)
{
    unsigned char differ = a.n != b.n;

    for (size_t i = 0; i < a.n; i++)
        differ |= (unsigned char)(a.p[i] ^ b.p[b.n ? i % b.n : 0]);
    return differ == 0;
}

static bool routes__allowed(const Daemon *d, const HttpdCall *c)
{
    if (d->token.n == 0)
        return true;
    Str given = header_get(c->head.headers, "X-EXECD-ACCESS-TOKEN");
    return given.n > 0 && routes__same_secret(d->token, given);
}

/* /proxy/PORT and what is behind it; port 0: it is none. */
static bool routes__proxy(const HttpdCall *c, int *port, Str *target)
{
    Str      rest = c->head.target;
    uint64_t n;

    if (!str_starts(rest, STR("/proxy/")))
        return false;
    str_skip(&rest, 7);
    size_t end = 0;
    while (end < rest.n && rest.p[end] != '/' && rest.p[end] != '?')
        end++;
    *port = num_u64((Str){rest.p, end}, &n) && n <= 65535 ? (int)n : 0;
    str_skip(&rest, end);
    *target = rest;
    return true;
}

void routes_begin(void *ctx, HttpdCall *c)
{
    Daemon *d = ctx;
    int     port;
    Str     target;

    c->ctx = d;
    if (!routes__allowed(d, c)) {
        httpd_answer(c, 401, "application/json; charset=utf-8",
                     STR("{\"error\":\"Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN\"}"));
        return;
    }
    while (routes__proxy(c, &port, &target)) {
        /* A path that begins with a '?' or is not there at all is "/". */
        if (target.n == 0 || target.p[0] != '/')
            target = arena_fmt(c->arena, "/%.*s", (int)target.n, target.p ? target.p : "");
        if (port == 0) {
            answer_plain(c, 400, "port is required");
            return;
        }
        if (port != d->port) {
            proxy_begin(c, port, target);
            return;
        }
        c->head.target = target;
    }
    Str path = query_path(c->head.target);
    for (size_t i = 0; i < COUNT_OF(routes__rows); i++) {
        const RoutesRow *r = &routes__rows[i];
        if (!str_eq(path, str_from(r->path)) || !str_eq(c->head.method, str_from(r->method)))
            continue;
        if (r->now)
            r->now(c);
        else
            httpd_collect(c, LIMIT_AGENT_JSON, r->then);
        return;
    }
    if (!routes__command(c, path) && !terminal_route(c, path))
        routes__unknown(c, path);
}
