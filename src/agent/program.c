#include "agent/program.h"

#include "agent/environ.h"
#include "agent/kin.h"
#include "agent/person.h"
#include "base/limits.h"
#include "base/str.h"
#include "os/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum {
    PROGRAM_PIPE = 256 << 10,           /* for one that has much in it */
    PROGRAM_BLOCK = 4 * (FRAME_PAYLOAD - FRAME_HEAD),       /* in one read: some whole messages of a client's */
};

static void program__close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* --- starting --- */

/* Both ends of what becomes its descriptors; its[i] is closed by the caller. */
static bool program__pipes(Program *p, bool input, int its[static 3])
{
    for (int i = input ? 0 : 1; i < 3; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0)
            return false;
        its[i] = ends[i != 0];
        *(i == 0 ? &p->in_fd : &p->out_fd[i - 1]) = ends[i == 0];
        fcntl(ends[i == 0], F_SETFL, O_NONBLOCK);
    }
    return true;
}

static bool program__terminal(Program *p, const FrameStart *s, const Person *who, int its[static 3])
{
    struct winsize size = {.ws_col = s->cols, .ws_row = s->rows};
    struct termios mode;
    ABX_UNSET char name[64];
    int            fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

    p->tty = true;
    p->out_fd[0] = fd;
    if (fd < 0 || unlockpt(fd) != 0)
        return false;
    /* Also where /dev/pts is another one's. */
    its[0] = ioctl(fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (its[0] < 0 && ptsname_r(fd, name, sizeof name) == 0)
        its[0] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (its[0] < 0 || (p->in_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)) < 0)
        return false;
    its[1] = its[2] = its[0];
    if (tcgetattr(its[0], &mode) == 0) {
        mode.c_iflag |= IUTF8;
        tcsetattr(its[0], TCSANOW, &mode);
    }
    if (s->cols && s->rows)
        ioctl(fd, TIOCSWINSZ, &size);
    return !who->changes || fchown(its[0], who->uid, (gid_t)-1) == 0;
}

static bool program__environment(const FrameStart *s, const Person *who, Arena *a, EnvironList *env)
{
    Str  value = {0}, name;
    bool fits = true;

    *env = environ_own(a);
    if (s->user.n)
        fits = environ_put(env, a, STR("HOME"), who->home) && environ_put(env, a, STR("USER"), who->name) &&
               environ_put(env, a, STR("LOGNAME"), who->name) && environ_put(env, a, STR("SHELL"), who->shell);
    for (size_t i = 0; i < s->env.n && fits; i++) {
        value = s->env.v[i];
        /* What has no name can be in no environment. */
        if (str_find(value, '=') > 0 && str_cut(&value, '=', &name) && value.p)
            fits = environ_put(env, a, name, value);
    }
    return fits;
}

/* The word behind `abx agent` that does what START asks for; NULL: it names a program itself. */
static const char *program__own(FrameKind kind)
{
    static const char *const words[FRAME_KINDS] = {
        [FRAME_TAR_IN] = "tar-in", [FRAME_TAR_OUT] = "tar-out", [FRAME_HASH] = "hash", [FRAME_WATCH] = "watch",
    };

    return words[kind];
}

static const char **program__words(const FrameStart *s, Arena *a)
{
    const char **argv = arena_array(a, s->argv.n + 4, sizeof *argv);
    size_t       n = 0;

    if (program__own(s->kind)) {
        argv[n++] = "abx";
        argv[n++] = "agent";
        argv[n++] = program__own(s->kind);
    } else if (s->argv.n == 1) {
        argv[0] = "sh";
        argv[1] = "-c";
        argv[2] = "--";             /* a line may begin with a sign */
        argv[3] = arena_cstr(a, s->argv.v[0]);
        return argv;
    }
    for (size_t i = 0; i < s->argv.n; i++)
        argv[n++] = arena_cstr(a, s->argv.v[i]);
    return argv;
}

static const char *program__search(const EnvironList *env)
{
    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->v[i], "PATH=", 5) == 0)
            return env->v[i] + 5;
    return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

static const char *program__folder(const FrameStart *s, Str cwd, Arena *a)
{
    if (s->cwd.n == 0 || (s->cwd.p[0] != '/' && cwd.n == 0))
        return cwd.n ? arena_cstr(a, cwd) : "/";
    if (s->cwd.p[0] == '/')
        return arena_cstr(a, s->cwd);
    char *path = arena_alloc(a, cwd.n + s->cwd.n + 2);
    memcpy(path, cwd.p, cwd.n);
    path[cwd.n] = '/';
    memcpy(path + cwd.n + 1, s->cwd.p, s->cwd.n);
    return path;
}

static bool program__failed(FrameFail *fail, FrameStage stage, int sys, Str text)
{
    *fail = (FrameFail){stage, (uint32_t)sys, text};
    return false;
}

static bool program__run(Program *p, const FrameStart *s, const Person *who, Str cwd, int its[static 3], Arena *a,
                         FrameFail *fail)
{
    static char text[FRAME_FAIL_TEXT];
    static const FrameStage stages[] = {
        [PROC_FDS] = FRAME_AT_START, [PROC_GROUP] = FRAME_AT_START, [PROC_TERMINAL] = FRAME_AT_TTY,
        [PROC_USER] = FRAME_AT_USER, [PROC_CWD] = FRAME_AT_CWD, [PROC_EXEC] = FRAME_AT_EXEC,
    };
    ProcStage   failed = PROC_FDS;
    EnvironList env;
    ABX_UNSET Err err;

    if (!program__environment(s, who, a, &env))
        return program__failed(fail, FRAME_AT_START, E2BIG, STR("too many environment variables"));
    const char **argv = program__words(s, a);
    const char  *file = program__own(s->kind) ? NULL : s->argv.n == 1 ? "/bin/sh" : argv[0];
    /* The agent's own programs see the end of their input, and clean up. */
    ProcSpec     spec = {.file = file, .search = program__search(&env), .argv = argv,
                         .env = env.v, .cwd = program__folder(s, cwd, a), .fd = {its[0], its[1], its[2]},
                         .session = true, .dies = file != NULL, .terminal = p->tty, .as_user = who->changes, .uid = who->uid,
                         .gid = who->gid, .groups = who->groups, .n_groups = who->n_groups, .failed = &failed};
    bool ok = proc_start(&spec, &p->pid, &err);
    if (!ok && failed == PROC_CWD && s->cwd.n == 0) {
        spec.cwd = "/";             /* where the agent was started may be closed to this user, or gone */
        ok = proc_start(&spec, &p->pid, &err);
    }
    if (ok)
        return true;
    size_t n = strlen(err.text) < sizeof text ? strlen(err.text) : sizeof text;
    memcpy(text, err.text, n);
    return program__failed(fail, stages[failed], err.sys, (Str){text, n});
}

static void program__in(LoopWatch *w, short revents);
static void program__out(LoopWatch *w, short revents);

bool program_start(Program *p, Loop *loop, const FrameStart *s, Str cwd, Arena scratch, FrameFail *fail)
{
    int    its[3] = {-1, -1, -1};
    Person who = {0};

    *p = (Program){.loop = loop, .in_fd = -1, .out_fd = {-1, -1}, .queue = buf_make(4 * LIMIT_CARRY_INPUT), .now = 1};
    if (s->argv.n == 0 || s->argv.v[0].n == 0)
        return program__failed(fail, FRAME_AT_EXEC, ENOENT, STR("an empty name is no program"));
    if (s->user.n && !person_find(s->user, &scratch, &who, fail))
        return false;
    bool ok = s->kind == FRAME_PTY ? program__terminal(p, s, &who, its)
                                   : program__pipes(p, (s->flags & FRAME_START_INPUT) != 0, its);
    if (!ok)
        program__failed(fail, FRAME_AT_TTY, errno, s->kind == FRAME_PTY ? STR("no terminal") : STR("no pipe"));
    ok = ok && program__run(p, s, &who, cwd, its, &scratch, fail);
    for (int i = p->tty ? 2 : 0; i < 3; i++)
        program__close(&its[i]);
    if (!ok) {
        program__close(&p->in_fd);
        program__close(&p->out_fd[0]);
        program__close(&p->out_fd[1]);
        return false;
    }
    p->ring = ring_make();
    p->in = (LoopWatch){.fd = -1, .events = POLLOUT, .deadline = DEADLINE_NONE, .wake = program__in, .owner = p};
    loop_add(loop, &p->in);
    for (int i = 0; i < 2; i++) {
        p->out[i] = (LoopWatch){.fd = -1, .events = POLLIN, .deadline = DEADLINE_NONE, .wake = program__out, .owner = p};
        loop_add(loop, &p->out[i]);
    }
    if (s->timeout_ms)
        p->timeout_at = s->timeout_ms < INT64_MAX / 2 ? (int64_t)s->timeout_ms : INT64_MAX / 2;
    return true;
}

void program_free(Program *p)
{
    ring_free(&p->ring);
    if (!p->pid)
        return;
    loop_remove(p->loop, &p->in);
    program__close(&p->in_fd);
    for (int i = 0; i < 2; i++) {
        loop_remove(p->loop, &p->out[i]);
        program__close(&p->out_fd[i]);
    }
    buf_free(&p->queue);
}

/* --- input --- */

static size_t program__queued(const Program *p)
{
    return p->queue.n - p->queue_at;
}

/* It reads no more: what is there, and what comes, counts as taken. */
static void program__no_input(Program *p)
{
    p->taken += program__queued(p);
    buf_free(&p->queue);
    p->queue_at = 0;
    program__close(&p->in_fd);
    p->in.fd = -1;
}

/* How many went; those that did not stay with the caller. */
static size_t program__give(Program *p, Str bytes)
{
    ssize_t n;

    while ((n = write(p->in_fd, bytes.p, bytes.n)) < 0 && errno == EINTR)
        continue;
    if (n < 0 && errno != EAGAIN)
        program__no_input(p);
    else if (n < (ssize_t)bytes.n && !p->in_wide)
        p->in_wide = fcntl(p->in_fd, F_SETPIPE_SZ, PROGRAM_PIPE) != 0;      /* of a terminal it fails, once */
    if (n > 0)
        p->taken += (uint64_t)n;
    return n > 0 ? (size_t)n : 0;
}

void program_write(Program *p, Str bytes)
{
    if (p->in_fd >= 0 && program__queued(p) == 0)
        str_skip(&bytes, program__give(p, bytes));
    if (p->in_fd >= 0)
        buf_add(&p->queue, bytes);
    else
        p->taken += bytes.n;
}

static void program__in(LoopWatch *w, short revents)
{
    Program *p = w->owner;

    if (revents == POLLERR || (revents & POLLNVAL)) {
        program__no_input(p);
        return;
    }
    p->queue_at += program__queued(p) ? program__give(p, (Str){p->queue.p + p->queue_at, program__queued(p)}) : 0;
    if (program__queued(p) == 0 || p->queue_at >= LIMIT_CARRY_INPUT) {
        buf_drop(&p->queue, p->queue_at);
        p->queue_at = 0;
    }
}

void program_end_input(Program *p)
{
    /* A terminal has no end: the character that says so to whoever reads lines. */
    if (p->tty && !p->in_end) {
        program_write(p, STR("\x04"));
        p->taken--;
    }
    p->in_end = !p->tty;
}

void program_resize(Program *p, uint16_t cols, uint16_t rows)
{
    struct winsize size = {.ws_col = cols, .ws_row = rows};

    if (p->tty && p->out_fd[0] >= 0 && cols && rows)
        ioctl(p->out_fd[0], TIOCSWINSZ, &size);
}

/* --- output --- */

static void program__over(Program *p, int i)
{
    p->out[i].fd = -1;
    p->left[i] = 0;
    program__close(&p->out_fd[i]);
}

/* STEP_MORE: nothing there, or no room. STEP_ERR: nothing will come. */
static Step program__read(Program *p, int i)
{
    static char nowhere[4096];
    char       *to = nowhere;
    size_t      cap = p->forgotten ? sizeof nowhere : ring_space(&p->ring, p->keep, &to);
    ssize_t     n;

    if (cap > PROGRAM_BLOCK)
        cap = PROGRAM_BLOCK;
    if (p->ended && !p->forgotten && cap > p->left[i])
        cap = p->left[i];
    if (!cap)
        return STEP_MORE;
    while ((n = read(p->out_fd[i], to, cap)) < 0 && errno == EINTR)
        continue;
    if (n < 0 && errno == EAGAIN) {
        if (p->ended && p->tty)
            p->left[i] = 0;         /* hung up and empty: somebody has opened it anew */
        return STEP_MORE;
    }
    if (n <= 0) {
        program__over(p, i);        /* of a terminal EIO: nobody has it open */
        return STEP_ERR;
    }
    /* A pipe that was full gets more room: fewer turns for much output. */
    if (n >= (ssize_t)LIMIT_COPY_BLOCK && !p->tty && !p->wide[i])
        p->wide[i] = fcntl(p->out_fd[i], F_SETPIPE_SZ, PROGRAM_PIPE) > 0;
    if (!p->forgotten)
        ring_grew(&p->ring, i == 1, (size_t)n);
    if (p->ended && !p->forgotten)
        p->left[i] -= (size_t)n;
    return STEP_DONE;
}

static void program__out(LoopWatch *w, short revents)
{
    Program *p = w->owner;

    (void)revents;
    program__read(p, w == &p->out[1]);
}

/* --- the end --- */

static void program__send(Program *p, int number)
{
    if (p->tty)
        kin_signal(p->pid, number);
    else
        kill(-p->pid, number);
}

/* What is in its pipes now still belongs to it. */
static void program__last(Program *p)
{
    for (int i = 0; i < 2; i++) {
        int n = 0;
        if (p->out_fd[i] < 0)
            continue;
        if (p->tty)
            n = 4 * (int)LIMIT_COPY_BLOCK;      /* to its hang-up; somebody may have opened it anew */
        else if (ioctl(p->out_fd[i], FIONREAD, &n) != 0)
            n = 0;
        p->left[i] = (size_t)n;
    }
}

static bool program__by_signal(const Program *p)
{
    return p->signalled_at &&
           (WIFSIGNALED(p->status) || p->now - p->signalled_at <= LIMIT_CARRY_SIGNALLED_MS);
}

void program_reaped(Program *p, pid_t pid, int status)
{
    if (!p->pid || pid != p->pid || p->ended)
        return;
    p->ended = true;
    p->status = status;
    program__no_input(p);
    program__last(p);
    /* Shells start what is in the background with INT and QUIT ignored. */
    if (!p->kill_at && program__by_signal(p) && kin_alive(p->pid, p->tty)) {
        program__send(p, SIGTERM);
        p->kill_at = p->now + LIMIT_CARRY_KILL_MS;
    }
}

void program_signal(Program *p, int number, FrameTarget to)
{
    static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGKILL, SIGABRT};

    if (!p->pid || p->ended)
        return;
    for (size_t i = 0; i < COUNT_OF(ending); i++)
        if (number == ending[i])
            p->signalled_at = p->now;
    if (to == FRAME_TO_SESSION)
        kin_signal(p->pid, number);
    else
        kill(to == FRAME_TO_GROUP ? -p->pid : p->pid, number);
}

void program_kill(Program *p)
{
    if (!p->pid || p->kill_at || p->give_up_at || program_done(p))
        return;
    program__send(p, SIGHUP);
    program__send(p, SIGCONT);          /* what is stopped hears nothing */
    p->kill_at = p->now + LIMIT_CARRY_KILL_MS;
}

/* The way from the first signal to the end of the group. */
static void program__kill_step(Program *p)
{
    bool alive = !p->ended || kin_alive(p->pid, p->tty);

    if (alive && p->kill_at && p->now >= p->kill_at) {
        program__send(p, SIGKILL);
        p->kill_at = 0;
        p->give_up_at = p->now + LIMIT_CARRY_KILL_MS;
    }
    if (p->ended && (!alive || (p->give_up_at && p->now >= p->give_up_at))) {
        p->kill_at = p->give_up_at = 0;
        program__last(p);               /* last words of the others */
    }
}

static bool program__ending(const Program *p)
{
    return p->kill_at || p->give_up_at;
}

static void program__watch(Program *p)
{
    p->in.fd = program__queued(p) ? p->in_fd : -1;
    if (p->in_end && program__queued(p) == 0 && p->in_fd >= 0)
        program__no_input(p);
    for (int i = 0; i < 2; i++) {
        bool wants = p->out_fd[i] >= 0 && (p->forgotten || (!p->hold && (!p->ended || p->left[i])));
        if (wants && p->tty && p->ended && !p->forgotten)
            while (program__read(p, i) == STEP_DONE)
                continue;
        p->out[i].fd = wants && p->out_fd[i] >= 0 ? p->out_fd[i] : -1;
    }
}

int64_t program_step(Program *p, int64_t now)
{
    int64_t next = DEADLINE_NONE;

    if (!p->pid)
        return next;
    p->now = now;
    if (p->timeout_at && !p->ended && now >= p->timeout_at) {
        p->timeout_at = 0;
        p->timed_out = true;
        p->kill_at = 0;
        p->give_up_at = now + LIMIT_CARRY_KILL_MS;
        program__send(p, SIGKILL);
    }
    if (program__ending(p))
        program__kill_step(p);
    if (!p->ended && p->timeout_at)
        next = p->timeout_at;
    if (program__ending(p))
        next = now + 10;
    program__watch(p);
    return next;
}

void program_said(Program *p, Str text, int code)
{
    char *to;

    p->ring = ring_make();
    p->ended = true;
    p->status = code << 8;
    for (size_t n; text.n && (n = ring_space(&p->ring, 0, &to)) > 0; str_skip(&text, n)) {
        n = n < text.n ? n : text.n;
        memcpy(to, text.p, n);
        ring_grew(&p->ring, false, n);
    }
}

bool program_done(const Program *p)
{
    return p->ended && !program__ending(p) && p->left[0] == 0 && p->left[1] == 0;
}

void program_exit(const Program *p, FrameExit *x)
{
    bool signal = WIFSIGNALED(p->status);

    *x = (FrameExit){p->timed_out ? FRAME_ENDED_TIMEOUT : signal ? FRAME_ENDED_SIGNAL : FRAME_ENDED_CODE,
                     p->timed_out ? SIGKILL : (uint32_t)(signal ? WTERMSIG(p->status) : WEXITSTATUS(p->status)),
                     p->ring.total[0], p->ring.total[1]};
}

bool program_forget(Program *p)
{
    struct pollfd fd;
    bool          held = false;

    p->forgotten = true;
    for (int i = 0; i < 2 && p->pid; i++) {
        fd = (struct pollfd){.fd = p->out_fd[i], .events = 0};
        if (p->tty || (fd.fd >= 0 && poll(&fd, 1, 0) == 1 && (fd.revents & POLLHUP)))
            program__over(p, i);
        held = held || p->out_fd[i] >= 0;
    }
    if (p->pid)
        program__watch(p);
    return held;
}
