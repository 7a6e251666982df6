#include "cli/console.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"
#include "os/poll.h"
#include "os/signal.h"

/* Why the pump stopped. */
typedef enum ConsoleStop {
    CONSOLE_RUNS,           /* it did not */
    CONSOLE_ENDED,          /* c->exit */
    CONSOLE_DETACHED,
    CONSOLE_TOLD,           /* run->signal; or this terminal is gone */
    CONSOLE_LOST,           /* c->error */
    CONSOLE_MUTE,           /* c->error: this terminal cannot be used or printed to */
    CONSOLE_GONE,           /* the same, and nobody is there to be told */
} ConsoleStop;

enum { CONSOLE_PIECE = 4096 };      /* what poll() calls writable takes as much without blocking */

static const int console__signals[] = {SIGWINCH, SIGCONT, SIGTSTP};

static void console__say(const Console *c, const char *line)
{
    output_notice(&c->run->out, line);
}

/* ---- signals ---- */

static bool console__listen(Err *err)
{
    int    wanted[COUNT_OF(console__signals)], fd;
    size_t n = 0;

    for (size_t i = 0; i < COUNT_OF(console__signals); i++) {
        struct sigaction was;
        if (sigaction(console__signals[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            wanted[n++] = console__signals[i];
    }
    return signal_catch(wanted, n, &fd, err);
}

static bool console__ends(int signo)
{
    return signo != SIGWINCH && signo != SIGCONT && signo != SIGTSTP;
}

/* From here on the pipe means "stop" again, to every wait that looks at it. */
static void console__deaf(Console *c)
{
    for (size_t i = 0; i < COUNT_OF(console__signals); i++) {
        struct sigaction was;
        if (sigaction(console__signals[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            signal(console__signals[i], SIG_DFL);
    }
    for (int signo; (signo = signal_next()) != 0;)
        if (c->run->signal && console__ends(signo))
            c->second = signo;
        else if (console__ends(signo))
            c->run->signal = signo;
}

static ConsoleStop console__raw(Console *c)
{
    ABX_UNSET Err err;

    if (!c->input || tty_raw(STDIN_FILENO, &err))
        return CONSOLE_RUNS;
    output_own(&c->error, &err);
    return CONSOLE_MUTE;
}

static void console__resize(Console *c)
{
    TtySize   now = tty_size();
    ABX_UNSET abx_error e;

    if (now.cols == c->size.cols && now.rows == c->size.rows)
        return;
    c->size = now;
    if (abx_exec_resize(c->x, now.cols, now.rows, &e) != 0)
        console__say(c, e.message);
}

static ConsoleStop console__signalled(Console *c)
{
    ConsoleStop stop = CONSOLE_RUNS;

    for (int signo; !stop && (signo = signal_next()) != 0;) {
        if (signo == SIGTSTP)
            tty_stop();
        if (console__ends(signo)) {
            c->run->signal = signo;
            return CONSOLE_TOLD;
        }
        /* Whoever continues a process may have had the terminal meanwhile. */
        if (signo != SIGWINCH && c->on)
            stop = console__raw(c);
        console__resize(c);
    }
    return stop;
}

/* ---- what the command prints ---- */

static size_t console__waiting(const Console *c)
{
    return c->out.n - c->printed;
}

/* As much as the terminal takes now. */
static ConsoleStop console__print(Console *c)
{
    while (console__waiting(c)) {
        size_t want = console__waiting(c);
        ABX_UNSET Err err;
        if (c->own_fd < 0) {
            if (!poll_one(c->out_fd, POLLOUT, -1, clock_after(0), &err))
                break;
            want = want < CONSOLE_PIECE ? want : CONSOLE_PIECE;
        }
        ssize_t n = write(c->out_fd, c->out.p + c->printed, want);
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0 && errno != EINTR) {
            err_sys(&err, errno, E0000, "cannot write to standard output");
            output_own(&c->error, &err);
            return err.sys == EPIPE ? CONSOLE_GONE : CONSOLE_MUTE;
        }
        c->printed += n > 0 ? (size_t)n : 0;
    }
    if (console__waiting(c) == 0 || c->printed > LIMIT_CONSOLE_OUT) {
        buf_drop(&c->out, c->printed);
        c->printed = 0;
    }
    return CONSOLE_RUNS;
}

/* All of it: the command has ended, and only a signal ends the wait. */
static ConsoleStop console__drain(Console *c)
{
    ConsoleStop stop;
    ABX_UNSET Err err;

    while (!(stop = console__print(c)) && console__waiting(c))
        if (!poll_one(c->out_fd, POLLOUT, c->run->out.cancel_fd, DEADLINE_NONE, &err))
            break;
    return stop;
}

/* A terminal that takes nothing must not make this process grow, nor the
 * connection fall silent. */
static bool console__has_room(Console *c)
{
    bool full = console__waiting(c) >= LIMIT_CONSOLE_OUT;

    if (full != c->held) {
        int can = abx_exec_hold(c->x, full);
        c->held = full && can;
    }
    return !full || (c->held && console__waiting(c) < LIMIT_CONSOLE_HELD);
}

static ConsoleStop console__started(Console *c)
{
    const char *job = abx_exec_job(c->x);

    c->job = job ? arena_cstr(c->run->a, str_from(job)) : NULL;
    if (c->on)
        return CONSOLE_RUNS;
    console__say(c, c->doubtful ? "connected again; what was typed last may not have arrived" : "connected again");
    c->doubtful = false;
    c->on = true;
    return console__raw(c);
}

static void console__replays(Console *c, uint64_t offset)
{
    if (offset > c->got && c->got)
        console__say(c, arena_fmt(c->run->a, "%llu bytes of output were not kept", (unsigned long long)(offset - c->got)).p);
    c->got = offset;
}

static ConsoleStop console__event(Console *c, const abx_event *event)
{
    switch (event->kind) {
    case ABX_STDOUT:
    case ABX_STDERR:
        buf_add(&c->out, (Str){event->bytes, event->size});
        c->got += event->size;
        c->doubtful = false;
        return CONSOLE_RUNS;
    case ABX_STARTED:
        return console__started(c);
    case ABX_REPLAY:
        console__replays(c, event->offset);
        return CONSOLE_RUNS;
    case ABX_EXIT:
        c->exit = *event;
        return CONSOLE_ENDED;
    case ABX_DETACHED:
        return CONSOLE_DETACHED;
    }
    BUG("no such event");
}

/* All that is there and can be held; *more: it may not be all. */
static ConsoleStop console__events(Console *c, bool *more)
{
    ConsoleStop stop = CONSOLE_RUNS;
    abx_event   event;

    while (!stop && (*more = console__has_room(c))) {
        int got = abx_exec_next(c->x, 0, &event, &c->error);
        *more = got > 0;
        if (got == 0)
            break;
        stop = got < 0 ? CONSOLE_LOST : console__event(c, &event);
    }
    return stop;
}

/* ---- what is typed ---- */

/* *more: something went, which the next look for events sends off. */
static ConsoleStop console__send(Console *c, bool *more)
{
    while (c->typed.n) {
        ptrdiff_t n = abx_exec_write(c->x, c->typed.p, c->typed.n, &c->error);
        if (n < 0)
            return CONSOLE_LOST;
        if (n == 0)
            break;
        buf_drop(&c->typed, (size_t)n);
        c->doubtful = *more = true;
    }
    return CONSOLE_RUNS;
}

static ConsoleStop console__typed(Console *c)
{
    ABX_UNSET char piece[CONSOLE_PIECE];
    ABX_UNSET abx_error e;
    ssize_t   n = read(STDIN_FILENO, piece, sizeof piece);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return CONSOLE_RUNS;
    if (n <= 0) {
        /* A raw terminal has no end but its hanging up. */
        c->run->signal = SIGHUP;
        return CONSOLE_TOLD;
    }
    if (detach_scan(&c->keys, (Str){piece, (size_t)n}, &c->typed)) {
        c->leaving = abx_exec_detach(c->x, &e) == 0;
        if (!c->leaving)
            console__say(c, e.message);
    }
    return CONSOLE_RUNS;
}

/* ---- the pump ---- */

static ConsoleStop console__wait(Console *c, bool more)
{
    enum { KEYS, OUT, LINK, SIGNALS, COUNT };
    console__has_room(c);       /* what was just made is worth a word to the agent, which waits for one */
    abx_want w = abx_exec_want(c->x);
    bool     asks = more || w.fd < 0 || console__waiting(c) < LIMIT_CONSOLE_OUT || c->held;
    bool     reads = c->input && c->on && !c->leaving && c->typed.n < LIMIT_CONSOLE_OUT;
    Deadline until = more || w.fd < 0 ? clock_after(0) : w.wait_ms < 0 ? DEADLINE_NONE : clock_after(w.wait_ms);
    struct pollfd fds[COUNT + 1] = {
        [KEYS] = {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN},
        [OUT] = {.fd = console__waiting(c) ? c->out_fd : -1, .events = POLLOUT},
        [LINK] = {.fd = asks ? w.fd : -1, .events = w.events},
        [SIGNALS] = {.fd = c->run->out.cancel_fd, .events = POLLIN},
    };
    ABX_UNSET Err err;

    if (!poll_wait(fds, COUNT, -1, asks ? until : DEADLINE_NONE, &err) && err.kind != ERR_TIMEOUT) {
        output_own(&c->error, &err);
        return CONSOLE_MUTE;
    }
    ConsoleStop stop = fds[SIGNALS].revents ? console__signalled(c) : CONSOLE_RUNS;
    return !stop && fds[KEYS].revents ? console__typed(c) : stop;
}

static ConsoleStop console__pump(Console *c)
{
    ConsoleStop stop = CONSOLE_RUNS;

    while (!stop) {
        bool more = false;
        if ((stop = console__send(c, &more)))
            break;
        stop = console__events(c, &more);
        ConsoleStop printed = console__print(c);
        stop = printed ? printed : stop;
        /* An event may have made room for what is typed. */
        if (!stop)
            stop = console__send(c, &more);
        if (!stop)
            stop = console__wait(c, more && console__waiting(c) < LIMIT_CONSOLE_OUT);
    }
    return stop;
}

/* ---- a lost connection ---- */

/* The connection, and not the command or what was asked for. */
static bool console__is_cut(const Console *c)
{
    return c->job && (strcmp(c->error.code, "E5000") == 0 || strcmp(c->error.code, "E5001") == 0);
}

static void console__tell_how(const Console *c, const char *what)
{
    if (c->job)
        console__say(c, arena_fmt(c->run->a, "%s; `abx job attach %s:%s %s` goes on with it", what,
                                  abx_session_provider(c->run->session), abx_sandbox_id(c->box), c->job).p);
}

/* Someone who can read it should be told where the cursor stands now. */
static void console__new_line(const Console *c)
{
    if (c->input && c->on && c->run->out.err_terminal)
        output_say(&c->run->out, STR("\n"));
}

/* Attach once more, for a minute from the first loss on; Ctrl-C ends that. */
static ConsoleStop console__again(Console *c)
{
    abx_attach_options o = {.offset = c->got, .take = 1, .cols = c->size.cols, .rows = c->size.rows};
    ABX_UNSET Err err;

    console__deaf(c);
    tty_restore();
    if (c->on) {
        console__new_line(c);
        console__say(c, arena_fmt(c->run->a, "%s; trying for %d s to connect again", c->error.message,
                                  LIMIT_CONSOLE_AGAIN_MS / 1000).p);
        c->until = clock_after(LIMIT_CONSOLE_AGAIN_MS);
        c->pause_ms = 100;
    }
    c->on = c->held = false;
    c->keys.held = 0;
    while (!c->run->signal && console__is_cut(c) && !clock_passed(c->until)) {
        abx_exec_free(c->x);
        c->x = NULL;
        if (!poll_sleep(c->pause_ms, c->run->out.cancel_fd, &err))
            break;
        c->pause_ms = c->pause_ms < 3000 ? c->pause_ms * 2 : 5000;
        c->x = abx_job_attach(c->box, c->job, &o, &c->error);
        if (c->x && console__listen(&err))
            return CONSOLE_RUNS;
    }
    return run_signal(c->run) ? CONSOLE_TOLD : CONSOLE_LOST;
}

/* ---- the ends ---- */

/* The signal goes to the command, which is ended if it does not end by itself. */
static void console__hang_up(Console *c)
{
    Deadline  until = clock_after(LIMIT_CONSOLE_LEAVE_MS);
    abx_event event;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;
    int       signo = c->run->signal ? c->run->signal : SIGHUP;
    int       got = abx_exec_signal(c->x, signo, &e) == 0 ? 0 : -1;

    for (bool asked = false; got >= 0 && !(got > 0 && event.kind == ABX_EXIT);) {
        got = abx_exec_next(c->x, 0, &event, &e);
        abx_want w = abx_exec_want(c->x);
        if (got == 0 && !asked && clock_passed(until)) {
            asked = true;
            until = clock_after(LIMIT_CLEANUP_MS);
            got = abx_exec_kill(c->x, &e);
        } else if (got == 0 && w.fd >= 0 && !poll_one(w.fd, w.events, -1, until, &err) && asked) {
            break;
        }
    }
    if (got <= 0)
        console__say(c, "the command may still run");
}

static int console__fail(Console *c)
{
    int status = run_fail(c->run, &c->error);

    if (console__is_cut(c))
        console__tell_how(c, "it may still run, alone");
    return status;
}

static int console__end(Console *c, ConsoleStop stop)
{
    console__deaf(c);
    if (stop == CONSOLE_ENDED || stop == CONSOLE_DETACHED || stop == CONSOLE_LOST) {
        ConsoleStop printed = console__drain(c);
        stop = printed ? printed : stop;
    }
    tty_restore();
    if (stop != CONSOLE_ENDED)
        console__new_line(c);
    switch (stop) {
    case CONSOLE_RUNS:
        break;
    case CONSOLE_ENDED:
        return run_ended(c->run, &c->exit);
    case CONSOLE_DETACHED:
        console__tell_how(c, "left running");
        return 0;
    case CONSOLE_TOLD:
    case CONSOLE_MUTE:
    case CONSOLE_GONE:
        run_release(c->run);
        /* One that came while the first was looked at leaves at once, too. */
        while (c->second || (c->second = signal_next()) != 0)
            raise(c->second);
        if (!c->on)
            console__tell_how(c, "it may still run, alone");
        else
            console__hang_up(c);
        return stop == CONSOLE_MUTE ? run_fail(c->run, &c->error) : stop == CONSOLE_GONE ? 128 + SIGPIPE : 0;
    case CONSOLE_LOST:
        return console__fail(c);
    }
    BUG("no such end");
}

int console_run(Console *c)
{
    ConsoleStop stop;
    ABX_UNSET Err err;

    c->typed = buf_make(LIMIT_CONSOLE_OUT + 2 * CONSOLE_PIECE);
    c->out = buf_make(2 * LIMIT_CONSOLE_HELD);
    c->own_fd = tty_patient(STDOUT_FILENO);
    c->out_fd = c->own_fd < 0 ? STDOUT_FILENO : c->own_fd;
    c->on = true;
    stop = console__raw(c);
    if (!stop && !console__listen(&err)) {
        output_own(&c->error, &err);
        stop = CONSOLE_MUTE;
    }
    /* It may have changed since it was asked for. */
    if (!stop)
        console__resize(c);
    while (!stop && (stop = console__pump(c)) == CONSOLE_LOST && c->input && console__is_cut(c))
        stop = console__again(c);
    int status = console__end(c, stop);
    abx_exec_free(c->x);
    buf_free(&c->typed);
    buf_free(&c->out);
    if (c->own_fd >= 0)
        close(c->own_fd);
    return status;
}

/* ---- before it ---- */

/* Without a terminal here nobody types, and what reads a pipe knows its end. */
static bool console__can(const Console *c, Err *err)
{
    if (c->run->out.json)
        return err_set(err, ERR_USAGE, E8002, "a command with a terminal has no JSON form");
    if (!c->input || tty_is(STDIN_FILENO))
        return true;
    err_set(err, ERR_USAGE, E8002, "standard input is not a terminal");
    return err_hint(err, c->attaches ? "`abx job logs` shows what it printed, `abx job wait` waits for its end."
                                     : "`abx exec` without -t sends a pipe or a file; -t without -i sends nothing.");
}

/* TERM, unless it is given. */
static void console__env(const Console *c, abx_exec_options *o)
{
    const char *term = getenv("TERM");
    abx_pair   *env = arena_array(c->run->a, o->env_count + 1, sizeof *env);

    for (size_t i = 0; i < o->env_count; i++) {
        env[i] = o->env[i];
        if (strcmp(env[i].key, "TERM") == 0)
            return;
    }
    env[o->env_count++] = (abx_pair){"TERM", term && *term && utf8_valid(str_from(term)) ? term : "xterm"};
    o->env = env;
}

bool console_options(Console *c, abx_exec_options *o, const char *keys, Err *err)
{
    if (!console__can(c, err) || !detach_parse(keys ? keys : "ctrl-p,ctrl-q", &c->keys, err))
        return false;
    console__env(c, o);
    c->size = tty_size();
    o->tty = o->tell_start = 1;
    o->input = c->input;
    o->cols = c->size.cols;
    o->rows = c->size.rows;
    o->hold_s = c->input ? LIMIT_CONSOLE_HOLD_S : 0;
    return true;
}
