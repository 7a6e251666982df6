#include "agent/init.h"

#include "agent/environ.h"
#include "agent/place.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/poll.h"
#include "os/proc.h"
#include "os/signal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char init__envs[] = "/opt/opensandbox/.env";
static const char init__daemon[] = "/opt/opensandbox/execd";

/* What is handed on. SIGCHLD is ours; KILL and STOP cannot be caught, and a
 * fault of ours is not the main program's. */
static const int init__signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGCHLD};

/* And the real-time ones: images are told to stop by SIGRTMIN+3, too. */
static bool init__catch(int *fd, Err *err)
{
    bool ok = signal_catch(init__signals, COUNT_OF(init__signals), fd, err);

    for (int signo = SIGRTMIN; signo <= SIGRTMAX && ok; signo++)
        ok = signal_catch(&signo, 1, fd, err);
    return ok;
}

/* The file of variables that commands leave for later ones. A sandbox works
 * without it, so what cannot be made is only said. */
static void init__envs_file(void)
{
    ABX_UNSET char path[PATH_MAX];

    setenv("EXECD_ENVS", init__envs, 0);
    const char *name = getenv("EXECD_ENVS");
    const char *slash = strrchr(name, '/');
    if (slash && slash > name && (size_t)(slash - name) < sizeof path) {
        memcpy(path, name, (size_t)(slash - name));
        path[slash - name] = '\0';
        if (!place_folders(path, 0755))
            fprintf(stderr, "abx agent init: cannot make %s: %s\n", path, strerror(errno));
    }
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | O_NOCTTY, 0644);
    if (fd < 0)
        fprintf(stderr, "abx agent init: cannot make %s: %s\n", name, strerror(errno));
    else
        close(fd);
}

static bool init__start(const char *file, const char *const *argv, bool group, pid_t *pid, Err *err)
{
    ProcSpec spec = {.file = file, .argv = argv, .env = (const char *const *)environ, .fd = {0, 1, 2}, .group = group};

    /* The daemon reads nothing. */
    if (group)
        spec.fd[0] = -1;
    return proc_start(&spec, pid, err);
}

static void init__start_daemon(pid_t *pid)
{
    const char *file = getenv("EXECD");
    const char *itself[] = {"execd", NULL};
    ABX_UNSET Err err;

    if (!file || !*file)
        file = access(init__daemon, X_OK) == 0 ? init__daemon : "/proc/self/exe";
    fprintf(stderr, "abx agent init: starting the daemon %s\n", file);
    if (!init__start(file, itself, true, pid, &err))
        fprintf(stderr, "abx agent init: no daemon: %s\n", err.text);
}

/* The main program as words of execve, in `argv`, which has room for two more
 * than argc. NULL: there is no such program. */
static const char *init__main_program(int argc, char **words, const char **argv, Arena *a)
{
    const char *const *env = (const char *const *)environ;
    const char *line = getenv("BOOTSTRAP_CMD"), *file;
    const char *shell = environ_find(env, "bash", a);
    int         n = 0;

    if (!shell)
        shell = environ_find(env, "sh", a);
    if ((!line || !*line) && argc > 0 && strcmp(words[0], "-c") != 0) {
        for (; n < argc; n++)
            argv[n] = words[n];
        argv[n] = NULL;
        file = environ_find(env, argv[0], a);
        return file;
    }
    argv[n++] = shell ? shell : "/bin/sh";
    if (line && *line) {
        argv[n++] = "-c";
        argv[n++] = line;
    } else {
        for (int i = 0; i < argc; i++)
            argv[n++] = words[i];
    }
    argv[n] = NULL;
    return argv[0];
}

static int init__exit_code(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Until the main program ends: its exit code. */
static int init__watch(int fd, pid_t main_pid, pid_t *daemon)
{
    ABX_UNSET Err err;
    int   signo, status;
    pid_t pid;

    for (;;) {
        while ((signo = signal_next()) != 0)
            if (signo != SIGCHLD)
                kill(main_pid, signo);
        while (proc_reap(&pid, &status)) {
            if (pid == main_pid)
                return init__exit_code(status);
            if (pid == *daemon) {
                fprintf(stderr, "abx agent init: the daemon ended with %d\n", init__exit_code(status));
                *daemon = 0;
            }
        }
        if (!poll_one(fd, POLLIN, -1, DEADLINE_NONE, &err)) {
            fprintf(stderr, "abx agent init: %s\n", err.text);
            return 1;
        }
    }
}

int init_main(int argc, char **argv)
{
    Arena        a = arena_make((size_t)1 << 20);
    const char **words = arena_array(&a, (size_t)argc + 4, sizeof *words);
    pid_t        daemon = 0, main_pid;
    int          fd;
    ABX_UNSET Err err;

    proc_std_fds();
    if (!init__catch(&fd, &err)) {
        fprintf(stderr, "abx agent init: %s\n", err.text);
        return 1;
    }
    /* Not the first process of a container: orphans come here all the same. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    init__envs_file();
    init__start_daemon(&daemon);
    const char *file = init__main_program(argc, argv, words, &a);
    int         code = 127;
    if (!file) {
        fprintf(stderr, "abx agent init: %s: not found\n", words[0]);
    } else if (!init__start(file, words, false, &main_pid, &err)) {
        fprintf(stderr, "abx agent init: %s\n", err.text);
        code = err.sys == ENOENT ? 127 : 126;
    } else {
        code = init__watch(fd, main_pid, &daemon);
    }
    if (daemon > 0)
        kill(daemon, SIGTERM);
    arena_free(&a);
    return code;
}
