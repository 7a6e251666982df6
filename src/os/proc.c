#include "os/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const proc__stages[] = {
    [PROC_FDS] = "descriptors", [PROC_GROUP] = "setpgid", [PROC_TERMINAL] = "terminal", [PROC_USER] = "setuid", [PROC_CWD] = "chdir", [PROC_EXEC] = "exec",
};

/* The limit that proc_no_core() lowered. */
static struct rlimit proc__core = {0, 0};
static bool          proc__core_lowered = false;

typedef struct ProcReport { ProcStage stage; int sys; } ProcReport;

/* --- in the child --- */

static void proc__fail(int to, ProcStage stage)
{
    ProcReport r = {stage, errno};

    if (write(to, &r, sizeof r) < 0)
        _exit(126);
    _exit(127);
}

/* Signals that were ignored stay so over exec, and a mask does too. */
static void proc__signals(void)
{
    unsigned long def[8] = {0};     /* the kernel's struct: SIG_DFL, no flags, no mask */
    sigset_t      none;

    /* The system call, because libc keeps its hands on two of its own. */
    for (int i = 1; i < NSIG; i++)
        syscall(SYS_rt_sigaction, i, def, NULL, (size_t)8);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool proc__fds(const ProcSpec *s)
{
    int fd[3];

    for (int i = 0; i < 3; i++) {
        fd[i] = s->fd[i] < 0 ? open("/dev/null", O_RDWR | O_CLOEXEC) : s->fd[i];
        /* Out of the way of the three before any of them is replaced. */
        if (fd[i] < 0 || (fd[i] < 3 && (fd[i] = fcntl(fd[i], F_DUPFD_CLOEXEC, 3)) < 0))
            return false;
    }
    for (int i = 0; i < 3; i++)
        if (dup2(fd[i], i) < 0)
            return false;
    /* Whoever started this process may have left descriptors open in it. */
    if (syscall(SYS_close_range, 3U, ~0U, 1U << 2 /* CLOSE_RANGE_CLOEXEC */) != 0)
        for (int i = 3; i < 1024; i++)
            fcntl(i, F_SETFD, FD_CLOEXEC);
    return true;
}

static bool proc__user(const ProcSpec *s)
{
    /* Only root may change groups; whoever is that user already needs nothing. */
    if (geteuid() != 0 && s->uid == geteuid() && s->gid == getegid())
        return true;
    return setgroups(s->n_groups, s->groups) == 0 && setgid(s->gid) == 0 && setuid(s->uid) == 0;
}

/* Try the folders of a search list, as execvp(3) does. Room comes from the
 * stack: malloc is not for the time between fork and exec. */
static void proc__search(const ProcSpec *s)
{
    ABX_UNSET char path[PATH_MAX];
    size_t name = strlen(s->file), n;
    int    worst = ENOENT;

    for (const char *at = s->search; at; at = at[n] ? at + n + 1 : NULL) {
        n = strcspn(at, ":");
        if (n + 1 + name >= sizeof path)
            continue;
        memcpy(path, at, n);
        path[n] = '/';
        memcpy(path + n + (n > 0), s->file, name + 1);      /* an empty one is the current folder */
        execve(path, (char *const *)s->argv, (char *const *)s->env);
        if (errno == EACCES)
            worst = EACCES;
        else if (errno != ENOENT && errno != ENOTDIR)
            return;
    }
    errno = worst;
}

/* This program, where it is still to be found: from here on nothing else of its
 * folder or of /proc is needed. */
static int proc__self(void)
{
    int fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);

    return fd >= 0 ? fd : open((const char *)getauxval(AT_EXECFN), O_PATH | O_CLOEXEC);
}

static void proc__child(const ProcSpec *s, int report)
{
    proc__signals();
    if (!proc__fds(s) || (s->files && setrlimit(RLIMIT_NOFILE, s->files) != 0))
        proc__fail(report, PROC_FDS);
    int self = s->file ? -1 : proc__self();
    if (proc__core_lowered)
        setrlimit(RLIMIT_CORE, &proc__core);
    if ((s->session && setsid() < 0) || (s->group && !s->session && setpgid(0, 0) != 0))
        proc__fail(report, PROC_GROUP);
    if (s->terminal && ioctl(0, TIOCSCTTY, 0) != 0)
        proc__fail(report, PROC_TERMINAL);
    if (s->as_user && !proc__user(s))
        proc__fail(report, PROC_USER);
    if (s->dies)
        prctl(PR_SET_PDEATHSIG, SIGKILL);   /* another user takes it away: behind that */
    if (s->cwd && chdir(s->cwd) != 0)
        proc__fail(report, PROC_CWD);
    if (!s->file)
        syscall(SYS_execveat, self, "", s->argv, s->env, AT_EMPTY_PATH);
    else if (s->search && !strchr(s->file, '/'))
        proc__search(s);
    else
        execve(s->file, (char *const *)s->argv, (char *const *)s->env);
    proc__fail(report, PROC_EXEC);
}

/* --- in this process --- */

bool proc_start(const ProcSpec *spec, pid_t *pid, Err *err)
{
    int        report[2];
    ProcReport r;
    ssize_t    n;

    if (pipe2(report, O_CLOEXEC) != 0)
        return err_sys(err, errno, E3005, "pipe");
    /* The child's end must survive the moving of 0, 1 and 2. */
    if (report[1] < 3) {
        int higher = fcntl(report[1], F_DUPFD_CLOEXEC, 3);
        close(report[1]);
        report[1] = higher;
    }
    pid_t child = fork();
    if (child == 0)
        proc__child(spec, report[1]);
    int sys = errno;
    close(report[1]);
    if (child < 0) {
        close(report[0]);
        return err_sys(err, sys, E3005, "fork");
    }
    while ((n = read(report[0], &r, sizeof r)) < 0 && errno == EINTR)
        continue;
    close(report[0]);
    if (n == sizeof r) {
        waitpid(child, NULL, 0);
        if (spec->failed)
            *spec->failed = r.stage;
        const char *what = r.stage == PROC_EXEC ? spec->file ? spec->file : spec->argv[0] : r.stage == PROC_CWD ? spec->cwd : "";
        return err_sys(err, r.sys, E3005, "%s%s%s", proc__stages[r.stage], *what ? " " : "", what);
    }
    *pid = child;
    return true;
}

void proc_no_core(void)
{
    struct rlimit none;

    if (proc__core_lowered || getrlimit(RLIMIT_CORE, &proc__core) != 0)
        return;
    none = (struct rlimit){0, proc__core.rlim_max};     /* the hard limit stays: nobody could raise it again */
    proc__core_lowered = setrlimit(RLIMIT_CORE, &none) == 0;
}

void proc_std_fds(void)
{
    int fd = open("/dev/null", O_RDWR);

    while (fd >= 0 && fd < 3)
        fd = dup(fd);
    if (fd >= 3)
        close(fd);
}

bool proc_reap(pid_t *pid, int *status)
{
    do
        *pid = waitpid(-1, status, WNOHANG);
    while (*pid < 0 && errno == EINTR);
    return *pid > 0;
}
