/* proc.h - starting a program, and learning how it ended.
 *
 *     ProcSpec spec = {.file = "/bin/sh", .argv = argv, .env = env, .fd = {-1, out, err}, .group = true};
 *     if (!proc_start(&spec, &pid, err)) ...
 *     on SIGCHLD: while (proc_reap(&pid, &status)) ...
 *
 * A child begins with every signal at its default and none blocked, whatever
 * this process was started with, with no descriptor but 0, 1 and 2, and with
 * the limit for core files that this process had before proc_no_core().
 * What fails between fork and exec is reported as an error of proc_start(),
 * with its errno in err->sys, so that "started" means that the program runs.
 */
#ifndef ABX_PROC_H
#define ABX_PROC_H

#include "base/err.h"
#include <sys/resource.h>
#include <sys/types.h>

typedef enum ProcStage { PROC_FDS, PROC_GROUP, PROC_TERMINAL, PROC_USER, PROC_CWD, PROC_EXEC } ProcStage;

typedef struct ProcSpec {
    const char        *file;    /* the program; NULL: this very one, whoever may see its path */
    const char        *search;  /* folders, as PATH has them, in which a `file` without a slash is looked
                                 * for, relative ones from cwd; NULL: it is used as it is */
    const char *const *argv;    /* ends with NULL */
    const char *const *env;     /* ends with NULL; its PATH is not looked at */
    const char        *cwd;     /* NULL: where this process is */
    int                fd[3];   /* what becomes 0, 1 and 2; -1: /dev/null. They stay open here */
    bool               group;   /* it leads a process group of its own, numbered as it is */
    bool               session; /* the same, in a session of its own, without a terminal */
    bool               terminal; /* with session: what becomes 0 is its controlling terminal */
    bool               dies;    /* it is killed when this process ends before it, unless it gains rights (sudo) */
    bool               as_user; /* it runs as uid and gid, and in these other groups alone */
    uid_t              uid;
    gid_t              gid;
    const gid_t       *groups;
    size_t             n_groups;
    const struct rlimit *files; /* its RLIMIT_NOFILE; NULL: this process's */
    ProcStage         *failed;  /* NULL, or where to say what could not be done in the child */
} ProcSpec;

/* ERR_SYSTEM, E3005: the text names what could not be done ("exec /bin/sh"). */
ABX_FN bool proc_start(const ProcSpec *spec, pid_t *pid, Err *err) ABX_CHECK;

/* No core file of this process: it holds keys from now on. */
ABX_FN void proc_no_core(void);

/* Open 0, 1 and 2 on /dev/null where this process was started without them:
 * any descriptor could become one of them otherwise. */
ABX_FN void proc_std_fds(void);

/* A child that ended since, with its status as wait(2) gives it. False: none. */
ABX_FN bool proc_reap(pid_t *pid, int *status);

#endif
