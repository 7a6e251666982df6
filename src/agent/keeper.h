/* keeper.h - the process that owns a carried command: in a session of its own,
 * so that nothing outlives what should have ended it.
 *
 * It has visitors: the one who started the command, and, where that is a job or
 * is held, whoever comes to its socket later (agent/job). The one who may send
 * input and signals is the client; the others look on. A client that is lost
 * takes the command with it: HUP to its group, KILL after 2 s.
 *
 * Time is counted while this process is awake: a step of its loop is a second
 * at most, so that a sandbox that was paused for an hour has lost nobody.
 */
#ifndef ABX_KEEPER_H
#define ABX_KEEPER_H

#include "agent/job.h"
#include "agent/program.h"
#include "agent/visitor.h"

struct Keeper {
    Loop      loop;
    LoopWatch signals, tick;
    int64_t   awake, last;      /* ms awake; the clock when that was counted */
    Visitor  *visitors;
    Visitor  *client;           /* NULL: nobody has it */
    Program   program;
    Job       job;
    Str       cwd;              /* where commands start; empty: not known */
    uint32_t  pid;              /* the process that the client knows of */
    int64_t   hold_ms;          /* lives so long without a client */
    int64_t   ended_at;         /* awake, when all of it had ended */
    int64_t   alone_since;      /* 0: it has one */
    bool      ending;           /* SIGTERM came */
};

typedef struct KeeperWish {
    int      fd;                /* the connection */
    bool     web;               /* it carries WebSocket */
    Str      first;             /* the client's first bytes, where they came another way */
    Str      rest;              /* read from fd already, and writable */
    Str      cwd;
    uint32_t pid;
} KeeperWish;

/* Until all that is kept here is over. */
ABX_FN void keeper_run(const KeeperWish *wish);

#endif
