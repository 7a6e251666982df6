#include "os/proc.h"
#include "os/signal.h"

#include <poll.h>
#include <sys/wait.h>

/* Run a shell line, its output into `out`; the wait status. */
static int proc_test__run(const char *line, ProcSpec spec, char *out, size_t cap)
{
    const char *argv[] = {"sh", "-c", line, NULL}, *env[] = {"PATH=/usr/bin:/bin", "A=b c", NULL};
    int         fds[2], status = -1;
    pid_t       pid = 0;
    size_t      n = 0;
    ssize_t     got;
    Err         err;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    spec.file = "/bin/sh";
    spec.argv = argv;
    spec.env = env;
    spec.fd[0] = -1;
    spec.fd[1] = spec.fd[2] = fds[1];
    assert_true(proc_start(&spec, &pid, &err));
    close(fds[1]);
    while ((got = read(fds[0], out + n, cap - 1 - n)) > 0)
        n += (size_t)got;
    out[n] = '\0';
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void proc_start_test(void **state)
{
    char out[4096];

    (void)state;
    assert_int_equal(proc_test__run("echo \"$A\"; echo e >&2; cat; exit 7", (ProcSpec){0}, out, sizeof out), 7 << 8);
    assert_string_equal(out, "b c\ne\n");
    proc_test__run("pwd", (ProcSpec){.cwd = "/usr"}, out, sizeof out);
    assert_string_equal(out, "/usr\n");
    proc_test__run("[ $(ps -o pgid= -p $$) = $$ ] && echo leads", (ProcSpec){.group = true}, out, sizeof out);
    assert_string_equal(out, "leads\n");
    assert_int_equal(proc_test__run("kill -9 $$", (ProcSpec){0}, out, sizeof out), SIGKILL);
}

/* Whatever this process ignores, blocks or has open, the child does not. */
static void proc_clean_test(void **state)
{
    char     out[4096];
    sigset_t all, before;
    int      fd = open("/dev/null", O_RDONLY);      /* without O_CLOEXEC on purpose */

    (void)state;
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    proc_test__run("grep -E '^Sig(Ign|Blk)' /proc/self/status; ls /proc/self/fd | wc -l", (ProcSpec){0}, out, sizeof out);
    sigprocmask(SIG_SETMASK, &before, NULL);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    close(fd);
    /* 0, 1, 2 and the folder that ls itself opens */
    assert_string_equal(out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n4\n");
}

static void proc_fault_test(void **state)
{
    const char *argv[] = {"x", NULL}, *env[] = {NULL};
    pid_t       pid;
    Err         err;

    (void)state;
    ProcSpec spec = {.file = "/nope", .argv = argv, .env = env, .fd = {-1, -1, -1}};
    assert_false(proc_start(&spec, &pid, &err));
    assert_int_equal(err.sys, ENOENT);
    assert_string_equal(err.text, "exec /nope: No such file or directory");
    spec = (ProcSpec){.file = "/bin/sh", .argv = argv, .env = env, .fd = {-1, -1, -1}, .cwd = "/nope"};
    assert_false(proc_start(&spec, &pid, &err));
    assert_string_equal(err.text, "chdir /nope: No such file or directory");
    spec = (ProcSpec){.file = "/etc", .argv = argv, .env = env, .fd = {-1, -1, -1}};
    assert_false(proc_start(&spec, &pid, &err));
    assert_int_equal(err.sys, EACCES);
    spec = (ProcSpec){.file = "/bin/sh", .argv = argv, .env = env, .fd = {-1, 999, -1}};
    assert_false(proc_start(&spec, &pid, &err));
    assert_int_equal(err.sys, EBADF);
    int status;
    assert_false(proc_reap(&pid, &status));         /* none of them was left behind */
}

static void signal_test(void **state)
{
    int fd = -1, signals[] = {SIGUSR1, SIGUSR2};
    Err err;

    (void)state;
    assert_true(signal_catch(signals, 2, &fd, &err));
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0);
    assert_int_equal(signal_next(), 0);
    raise(SIGUSR2);
    raise(SIGUSR1);
    assert_int_equal(poll(&p, 1, 0), 1);
    assert_int_equal(signal_next(), SIGUSR2);
    assert_int_equal(poll(&p, 1, 0), 1);
    assert_int_equal(signal_next(), SIGUSR1);
    assert_int_equal(signal_next(), 0);
    signal(SIGUSR1, SIG_DFL);
    signal(SIGUSR2, SIG_DFL);
}

/* Which step failed, and whose the child is. */
static void proc_stage_test(void **state)
{
    static const gid_t groups[] = {7, 4242};
    const char *argv[] = {"x", NULL}, *env[] = {NULL};
    ProcStage   failed = PROC_FDS;
    pid_t       pid;
    Err         err;
    char        out[256];
    ProcSpec    spec = {.file = "/nosuch", .argv = argv, .env = env, .fd = {-1, -1, -1}, .failed = &failed};

    (void)state;
    assert_false(proc_start(&spec, &pid, &err));
    assert_true(failed == PROC_EXEC && err.sys == ENOENT);
    spec.cwd = "/nosuch";
    assert_false(proc_start(&spec, &pid, &err));
    assert_true(failed == PROC_CWD && err.sys == ENOENT);
    spec.session = spec.terminal = true;        /* /dev/null is none */
    assert_false(proc_start(&spec, &pid, &err));
    assert_true(failed == PROC_TERMINAL && err.sys == ENOTTY);
    if (geteuid() != 0)
        return;
    proc_test__run("id -u; id -g; id -G",
                   (ProcSpec){.as_user = true, .uid = 4241, .gid = 4242, .groups = groups, .n_groups = 2}, out, sizeof out);
    assert_string_equal(out, "4241\n4242\n4242 7\n");
}

static const struct CMUnitTest proc_tests[] = {
    cmocka_unit_test(proc_start_test),
    cmocka_unit_test(proc_clean_test),
    cmocka_unit_test(proc_stage_test),
    cmocka_unit_test(proc_fault_test),
    cmocka_unit_test(signal_test),
};
