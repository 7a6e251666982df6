/* daemon.h - what all parts of `abx agent serve` share. */
#ifndef ABX_DAEMON_H
#define ABX_DAEMON_H

#include "agent/command.h"
#include "agent/terminal.h"
#include "base/limits.h"
#include "net/httpd.h"
#include "os/loop.h"
#include <sys/resource.h>

typedef struct Daemon {
    Loop      loop;
    Httpd    *httpd;
    int       port;             /* where it listens: /proxy/PORT is itself */
    Str       token;            /* EXECD_ACCESS_TOKEN; empty: none is asked for */
    struct rlimit files;        /* RLIMIT_NOFILE as it was, for children */
    Commands  commands;
    Terminals terminals;
    Buf       events;           /* written here, then sent together */
    bool      ending;           /* SIGTERM came */
    char      scratch[LIMIT_COPY_BLOCK];    /* for one read, never kept over a call */
} Daemon;

/* `abx agent serve`; the words behind it. */
ABX_FN int daemon_main(int argc, char **argv);

#endif
