#include "agent/daemon.h"

#include "agent/routes.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "os/proc.h"
#include "os/signal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { DAEMON_PORT = 44772 };

typedef struct DaemonOptions {
    const char *host;           /* "": every address */
    int         port;
} DaemonOptions;

static int daemon__usage(const char *what, const char *word)
{
    fprintf(stderr, "abx agent serve: %s%s\nusage: abx agent serve [--host ADDRESS] [--port N]\n", what, word);
    return 2;
}

/* 0, or the exit status of a refusal. */
static int daemon__options(int argc, char **argv, DaemonOptions *o)
{
    for (int i = 0; i < argc; i += 2) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        uint64_t    port;
        if (strcmp(word, "--host") == 0 && value) {
            o->host = value;
        } else if (strcmp(word, "--port") == 0 && value) {
            if (!num_u64(str_from(value), &port) || port > 65535)
                return daemon__usage("--port is not a port: ", value);
            o->port = (int)port;
        } else {
            return daemon__usage("unknown option or missing value: ", word);
        }
    }
    return 0;
}

/* Room for many connections; children get the limit that was there before. */
static void daemon__raise_files(Daemon *d)
{
    struct rlimit more;

    if (getrlimit(RLIMIT_NOFILE, &d->files) != 0)
        d->files = (struct rlimit){1024, 1024};
    more = d->files;
    more.rlim_cur = more.rlim_max < 65536 ? more.rlim_max : 65536;
    if (more.rlim_cur > d->files.rlim_cur)
        setrlimit(RLIMIT_NOFILE, &more);
}

static void daemon__signals(LoopWatch *w, short revents)
{
    Daemon *d = w->owner;
    int     signo, status;
    pid_t   pid;

    (void)revents;
    while ((signo = signal_next()) != 0)
        if (signo == SIGTERM)
            d->ending = true;
    while (proc_reap(&pid, &status))
        command_reaped(d, pid, status), terminal_reaped(d, pid, status);
}

static void daemon__free(Daemon *d)
{
    if (d->httpd)
        httpd_free(d->httpd);
    command_free_all(d);
    terminal_free_all(d);
    loop_free(&d->loop);
    buf_free(&d->events);
    mem_free(d);
}

static bool daemon__serve(Daemon *d, const DaemonOptions *o, Err *err)
{
    static const int signals[] = {SIGCHLD, SIGTERM};
    LoopWatch        watch = {.events = POLLIN, .deadline = DEADLINE_NONE, .wake = daemon__signals, .owner = d};

    signal_ignore_writes();
    if (!signal_catch(signals, COUNT_OF(signals), &watch.fd, err))
        return false;
    loop_add(&d->loop, &watch);
    d->port = o->port;
    d->httpd = httpd_make(&d->loop, routes_begin, d);
    if (!httpd_listen(d->httpd, o->host, &d->port, err))
        return false;
    fprintf(stderr, "abx agent: listening on port %d\n", d->port);
    while (!d->ending) {
        if (!loop_turn(&d->loop, err))
            return false;
        terminal_turn(d);
    }
    return true;
}

int daemon_main(int argc, char **argv)
{
    DaemonOptions o = {.host = "", .port = DAEMON_PORT};
    int           refused = daemon__options(argc, argv, &o);
    ABX_UNSET Err err;

    if (refused)
        return refused;
    Daemon *d = mem_new(sizeof *d);
    proc_std_fds();
    daemon__raise_files(d);
    d->events = buf_make(LIMIT_HTTPD_OUT);
    d->token = str_from(getenv("EXECD_ACCESS_TOKEN"));
    bool ok = daemon__serve(d, &o, &err);
    if (!ok)
        fprintf(stderr, "abx agent: %s\n", err.text);
    daemon__free(d);
    return ok ? 0 : 1;
}
