/* command.h - POST /command and what belongs to it.
 *
 * A command is a process group. Foreground: its output goes to the request
 * that started it as a stream of events, with the stream's own back-pressure:
 * a client that does not read stops the command at its pipe, a client that is
 * gone lets it run on unheard. Background: its output goes into a file that
 * has no name, read with a cursor.
 *
 * A command ends when its process does: what is in the pipe then is still
 * sent, what a background child of it writes later is read and dropped.
 */
#ifndef ABX_COMMAND_H
#define ABX_COMMAND_H

#include "agent/lines.h"
#include "net/httpd.h"
#include <time.h>

struct Daemon;

typedef struct CommandOut {
    LoopWatch   watch;
    int         fd;             /* our end of the pipe, -1 when nobody holds the other any more */
    const char *type;           /* "stdout", "stderr" */
    Lines       lines;
    Buf         rest;           /* read, but there was no room for its events */
    int64_t     drain;          /* the process is gone: so many bytes are still in the pipe; -1 before */
    bool        over;           /* all of it was handed on */
} CommandOut;

typedef struct Command {
    struct Command *next;
    struct Daemon  *daemon;
    char            id[33];
    char           *text;       /* what was asked for, for the status */
    pid_t           pid;        /* its process group, too; 0 when it could not be started */
    bool            running, background, timed_out, told;
    int             status;     /* as wait(2) gives it */
    char           *fault;      /* why it could not be started */
    struct timespec started, ended;
    int64_t         began_ms;   /* monotonic */
    LoopWatch       timeout, ping;
    HttpdCall      *call;       /* who listens, NULL: nobody */
    CommandOut      out[2];
    int             log;        /* background: the file with its output, -1: none */
} Command;

typedef struct Commands {
    Command *first;             /* newest first */
} Commands;

ABX_FN void command_post(HttpdCall *c, Str body);       /* POST /command, its body gathered */
ABX_FN void command_interrupt(HttpdCall *c);            /* DELETE /command?id= */
ABX_FN void command_status(HttpdCall *c, Str id);       /* GET /command/status/ID */
ABX_FN void command_logs(HttpdCall *c, Str id);         /* GET /command/ID/logs */

/* The daemon ends: forget all of them; what runs, runs on. */
ABX_FN void command_free_all(struct Daemon *d);

/* A child ended. */
ABX_FN void command_reaped(struct Daemon *d, pid_t pid, int status);

#endif
