#include "host/gitpipe.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "data/clean.h"
#include "os/child.h"
#include "os/poll.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { GITPIPE_LEAVE_MS = 1000, GITPIPE_PROBE_MS = 20 };

typedef struct GitPipe {
    GitLink     link;
    Child       child;
    const char *program;        /* what errors begin with */
    int         cancel_fd;
    Deadline    deadline;
    bool        any;            /* it said something */
    Buf         said;           /* the end of its stderr */
    char        in[LIMIT_COPY_BLOCK];
} GitPipe;

static void gitpipe__drop(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* --- what it says on stderr --------------------------------------------------------- */

static void gitpipe__listen(GitPipe *g)
{
    ABX_UNSET char p[1024];
    ssize_t n;

    while (g->child.err >= 0 && (n = child_read(g->child.err, p, sizeof p)) > 0) {
        if (g->said.n + (size_t)n > LIMIT_GIT_STDERR)
            buf_drop(&g->said, g->said.n + (size_t)n - LIMIT_GIT_STDERR);
        buf_add(&g->said, (Str){p, (size_t)n});
    }
}

/* Its last words: at most so many bytes, from the begin of a line where that is near. */
static Str gitpipe__words(const GitPipe *g, Arena *a)
{
    Str said = str_trim(buf_str(&g->said));

    if (said.n > 600) {
        str_skip(&said, said.n - 600);
        size_t line = str_find(said, '\n');
        str_skip(&said, line < 300 ? line + 1 : 0);
    }
    return clean_message(said, NULL, 0, a);
}

/* --- waiting ------------------------------------------------------------------------ */

static bool gitpipe__late(const GitPipe *g, Err *err)
{
    if (clock_passed(g->deadline))
        return err_set(err, ERR_TIMEOUT, E8010, "%s: it took more than %d s", g->program, LIMIT_GIT_MS / 1000);
    return err_set(err, ERR_TIMEOUT, E8010, "%s: not a byte came for %d s", g->program, LIMIT_GIT_SILENCE_MS / 1000);
}

/* Until `fd` is ready, the program has ended, or `until` is reached: that is
 * true as well, and *late. False: cancelled, or the system's error. */
static bool gitpipe__poll(GitPipe *g, int fd, short events, Deadline until, bool *late, Err *err)
{
    bool          blind = g->child.watch < 0;
    struct pollfd fds[4] = {{.fd = fd, .events = events}, {.fd = g->child.err, .events = POLLIN},
                            {.fd = g->child.ended ? -1 : g->child.watch, .events = POLLIN}};
    ABX_UNSET Err why;

    *late = false;
    if (!poll_wait(fds, 3, g->cancel_fd, blind ? clock_sooner(until, clock_after(GITPIPE_PROBE_MS)) : until, &why)) {
        *late = why.kind == ERR_TIMEOUT && clock_passed(until);
        if (why.kind == ERR_TIMEOUT)
            return true;
        *err = why;
        if (why.kind != ERR_CANCELLED)
            err->code = E8010;
        return false;
    }
    if (fds[1].revents) {
        gitpipe__listen(g);
        /* A stderr that was closed would be ready for ever. */
        if (fds[1].revents & (POLLHUP | POLLERR) && !(fds[1].revents & POLLIN))
            gitpipe__drop(&g->child.err);
    }
    return true;
}

static bool gitpipe__wait(GitPipe *g, int fd, short events, Err *err)
{
    bool late;

    if (!gitpipe__poll(g, fd, events, clock_sooner(g->deadline, clock_after(LIMIT_GIT_SILENCE_MS)), &late, err))
        return false;
    return !late || gitpipe__late(g, err);
}

/* --- the link ----------------------------------------------------------------------- */

static bool gitpipe__read(GitLink *l, Str *piece, Err *err)
{
    GitPipe *g = (GitPipe *)l;

    for (;;) {
        /* Asked before the read: what it wrote before it ended is there then. A
         * process that it left behind may hold the pipe open. */
        bool    ended = child_ended(&g->child);
        ssize_t n = child_read(g->child.out, g->in, sizeof g->in);
        if (n > 0 || n == 0 || (errno == EAGAIN && ended)) {
            g->any = g->any || n > 0;
            *piece = (Str){g->in, n > 0 ? (size_t)n : 0};
            return true;
        }
        if (errno != EAGAIN)
            return err_sys(err, errno, E8010, "%s: reading from it", g->program);
        if (!gitpipe__wait(g, g->child.out, POLLIN, err))
            return false;
    }
}

static bool gitpipe__send(GitLink *l, Str request, Err *err)
{
    GitPipe *g = (GitPipe *)l;

    g->deadline = clock_after(LIMIT_GIT_MS);
    while (request.n) {
        ssize_t n = child_write(g->child.in, request.p, request.n);
        if (n > 0)
            str_skip(&request, (size_t)n);
        else if (n < 0 && errno == EPIPE)
            return gitlink_cut(l, err);
        else if (n < 0 && errno != EAGAIN)
            return err_sys(err, errno, E8010, "%s: writing to it", g->program);
        else if (!gitpipe__wait(g, g->child.in, POLLOUT, err))
            return false;
    }
    return true;
}

/* Until it has ended, no longer than `ms`. */
static bool gitpipe__ends(GitPipe *g, int64_t ms)
{
    Deadline until = clock_after(ms);
    bool     late = false;
    ABX_UNSET Err err;

    g->cancel_fd = -1;
    while (!child_ended(&g->child) && !late)
        if (!gitpipe__poll(g, -1, 0, until, &late, &err))
            break;
    gitpipe__listen(g);
    return child_ended(&g->child);
}

static bool gitpipe__cut(GitLink *l, Err *err)
{
    GitPipe *g = (GitPipe *)l;
    Arena    scratch = arena_make(64 << 10);
    char     how[64] = "stopped in the middle of its answer";

    if (gitpipe__ends(g, GITPIPE_LEAVE_MS) && g->child.status > 0)
        snprintf(how, sizeof how, "ended with status %d", g->child.status);
    else if (g->child.ended && g->child.status < 0)
        snprintf(how, sizeof how, "was ended by signal %d", -g->child.status);
    else if (!g->any)
        snprintf(how, sizeof how, "ended without an answer");
    Str words = gitpipe__words(g, &scratch);
    err_set(err, ERR_CLOSED, E8010, "%s %s%s%.*s", g->program, how, words.n ? ": " : "", STR_ARG(words));
    arena_free(&scratch);
    return false;
}

static bool gitpipe__goes_on(GitLink *l, Err *err)
{
    GitPipe      *g = (GitPipe *)l;
    struct pollfd none[1];
    ABX_UNSET Err seen;

    if (!poll_wait(none, 0, g->cancel_fd, 0, &seen) && seen.kind == ERR_CANCELLED) {
        *err = seen;
        return false;
    }
    return !clock_passed(g->deadline) || gitpipe__late(g, err);
}

/* It ends by itself when it can read no more; what does not is ended. */
static void gitpipe__close(GitLink *l)
{
    GitPipe *g = (GitPipe *)l;

    if (g->child.pid) {
        gitpipe__drop(&g->child.in);
        gitpipe__drop(&g->child.out);
        gitpipe__ends(g, GITPIPE_LEAVE_MS);
        child_signal(&g->child, SIGKILL);
        gitpipe__ends(g, GITPIPE_LEAVE_MS);
        child_close(&g->child);
    }
    buf_free(&g->said);
    mem_free(g);
}

/* --- starting it -------------------------------------------------------------------- */

static Str gitpipe__env(const SourceHost *host, const char *name)
{
    size_t n = strlen(name);

    for (const char *const *e = host->environ; e && *e; e++)
        if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
            return str_from(*e);
    return (Str){0};
}

/* Every variable it gets; `own` are those of this process that it keeps. */
static const char *const *gitpipe__environ(const SourceHost *host, const char *const *own, Arena *a)
{
    static const char *const fixed[] = {"LC_ALL=C", "GIT_PROTOCOL=version=2", "GIT_CONFIG_NOSYSTEM=1",
                                        "GIT_CONFIG_GLOBAL=/dev/null", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0"};
    const char **env = arena_array(a, COUNT_OF(fixed) + 8, sizeof *env);
    size_t       n = 0;

    for (size_t i = 0; i < COUNT_OF(fixed); i++)
        env[n++] = fixed[i];
    for (; *own; own++) {
        Str e = gitpipe__env(host, *own);
        if (e.n)
            env[n++] = arena_cstr(a, e);
    }
    return env;
}

static bool gitpipe__start(const char *const *argv, const char *const *own, const SourceHost *host, Arena *a,
                           GitLink **out, Err *err)
{
    static const GitLinkOps ops = {gitpipe__read, gitpipe__send, gitpipe__cut, gitpipe__goes_on, gitpipe__close};
    Str      path = gitpipe__env(host, "PATH");
    ProcSpec spec = {.file = argv[0], .argv = argv, .env = gitpipe__environ(host, own, a), .cwd = "/",
                     .search = path.n ? path.p + 5 : "/usr/local/bin:/usr/bin:/bin"};
    GitPipe *g = mem_new(sizeof *g);

    *g = (GitPipe){.link = {&ops, false}, .program = argv[0], .cancel_fd = host->cancel_fd,
                   .deadline = clock_after(LIMIT_GIT_MS), .said = buf_make(LIMIT_GIT_STDERR)};
    if (child_start(&spec, &g->child, err)) {
        *out = &g->link;
        return true;
    }
    err->code = E8010;
    if (err->sys == ENOENT) {
        err_set(err, ERR_NOT_FOUND, E8010, "`%s` is needed for this source, and is not in PATH", argv[0]);
        err_hint(err, strcmp(argv[0], "ssh") == 0 ? "Install an ssh client, or use https."
                                                  : "Install git, or use https.");
    }
    gitpipe__close(&g->link);
    return false;
}

/* --- checking what it is started with -------------------------------------------------- */

static bool gitpipe__option(Err *err, const char *what, Str value)
{
    Arena scratch = arena_make(64 << 10);

    value.n = value.n < 1000 ? value.n : 1000;
    err_set(err, ERR_DENIED, E8012, "the %s '%s' begins with '-': a program could take it for an option", what,
            clean_message(value, NULL, 0, &scratch).p);
    arena_free(&scratch);
    return false;
}

static bool gitpipe__decode(Str text, Arena *a, Str *out, Err *err)
{
    char    *p = arena_alloc(a, text.n + 1);
    size_t   n = 0;
    uint64_t v;

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '%') {
            if (text.n - i < 3 || !num_hex((Str){text.p + i + 1, 2}, &v))
                return err_set(err, ERR_USAGE, E8010, "a git URL with a '%%' that two hexadecimal digits do not follow");
            c = (char)v;
            i += 2;
        }
        p[n++] = c;
    }
    *out = (Str){p, n};
    return !str_has_control(*out) || err_set(err, ERR_USAGE, E8010, "a git URL with a control character");
}

/* Letters, digits and what else a host or a user may have. */
static bool gitpipe__word(Str s, const char *more, const char *what, Err *err)
{
    if (s.n && s.p[0] == '-')
        return gitpipe__option(err, what, s);
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c && strchr(more, c))))
            return err_set(err, ERR_USAGE, E8010, "a git URL with a %s that has other characters than may be", what);
    }
    return s.n > 0 || err_set(err, ERR_USAGE, E8010, "a git URL without a %s", what);
}

/* One word for a shell, as git writes it. */
static void gitpipe__quote(Buf *b, Str path)
{
    buf_addc(b, '\'');
    for (size_t i = 0; i < path.n; i++)
        if (path.p[i] == '\'' || path.p[i] == '!')
            buf_addf(b, "'\\%c'", path.p[i]);
        else
            buf_addc(b, path.p[i]);
    buf_addc(b, '\'');
}

typedef struct GitPlace { Str user, host, port, path; } GitPlace;      /* user and port may be empty */

static bool gitpipe__remote(const GitPlace *at, const SourceHost *host, Arena *a, GitLink **out, Err *err)
{
    static const char *const own[] = {"PATH", "HOME", "SSH_AUTH_SOCK", "SSH_AGENT_PID", NULL};
    const char *argv[11] = {"ssh", "-o", "BatchMode=yes", "-o", "SendEnv=GIT_PROTOCOL"};
    size_t      n = 5;
    uint64_t    port;
    Buf         command = buf_make(4 * LIMIT_URL);

    if (at->user.n && !gitpipe__word(at->user, "._-+", "user", err))
        return false;
    if (!gitpipe__word(at->host, "._-:", "host", err))
        return false;
    if (at->port.n && (!num_u64(at->port, &port) || port == 0 || port > 65535))
        return err_set(err, ERR_USAGE, E8010, "a git URL with a port that is none");
    if (at->path.n == 0)
        return err_set(err, ERR_USAGE, E8010, "a git URL without a path");
    if (at->path.p[0] == '-')
        return gitpipe__option(err, "path", at->path);
    if (str_has_control(at->path))
        return err_set(err, ERR_USAGE, E8010, "a git URL with a control character");
    if (at->port.n) {
        argv[n++] = "-p";
        argv[n++] = arena_cstr(a, at->port);
    }
    argv[n++] = "--";
    argv[n++] = at->user.n ? arena_fmt(a, "%.*s@%.*s", STR_ARG(at->user), STR_ARG(at->host)).p : arena_cstr(a, at->host);
    buf_add(&command, STR("git-upload-pack "));
    gitpipe__quote(&command, at->path);
    argv[n] = arena_cstr(a, buf_str(&command));
    bool ok = command.over ? err_set(err, ERR_LIMIT, E8010, "a git URL that is too long")
                           : gitpipe__start(argv, own, host, a, out, err);
    buf_free(&command);
    return ok;
}

static bool gitpipe__ssh(Str rest, const SourceHost *host, Arena *a, GitLink **out, Err *err)
{
    size_t   slash = str_find(rest, '/'), n;
    Str      authority = str_from_to(rest, 0, slash), path;
    GitPlace at = {.host = authority};

    if (!gitpipe__decode(str_from_to(rest, slash, rest.n), a, &path, err))
        return false;
    /* git's own: "/~user/x" is "~user/x". */
    at.path = str_starts(path, STR("/~")) ? str_from_to(path, 1, path.n) : path;
    if ((n = str_find(authority, '@')) < authority.n) {
        at.user = str_from_to(authority, 0, n);
        at.host = str_from_to(authority, n + 1, authority.n);
        if (at.user.n == 0)
            return err_set(err, ERR_USAGE, E8010, "a git URL without a user before the '@'");
    }
    if (at.host.n && at.host.p[0] == '[' && (n = str_find(at.host, ']')) < at.host.n) {
        at.port = str_from_to(at.host, n + 1, at.host.n);
        at.host = str_from_to(at.host, 1, n);
        if (at.port.n && at.port.p[0] != ':')
            return err_set(err, ERR_USAGE, E8010, "a git URL with something between host and path");
        str_skip(&at.port, at.port.n > 0);
    } else if ((n = str_find(at.host, ':')) < at.host.n) {
        at.port = str_from_to(at.host, n + 1, at.host.n);
        at.host = str_from_to(at.host, 0, n);
        if (str_has(at.port, ':'))
            return err_set(err, ERR_USAGE, E8010, "a git URL with an IPv6 address that is not in brackets");
    }
    return gitpipe__remote(&at, host, a, out, err);
}

bool gitpipe_ssh(Str rest, const SourceHost *host, GitLink **out, Err *err)
{
    Arena a = arena_make(8 * LIMIT_URL);
    bool  ok = rest.n <= LIMIT_URL ? gitpipe__ssh(rest, host, &a, out, err)
                                   : err_set(err, ERR_LIMIT, E8010, "a git URL that is too long");

    arena_free(&a);
    return ok;
}

bool gitpipe_scp(Str source, const SourceHost *host, GitLink **out, Err *err)
{
    Arena    a = arena_make(8 * LIMIT_URL);
    size_t   colon = str_find(source, ':');
    GitPlace at = {.host = str_from_to(source, 0, colon), .path = str_from_to(source, colon + 1, source.n)};
    size_t   n = str_find(at.host, '@');
    bool     ok;

    if (n < at.host.n) {
        at.user = str_from_to(at.host, 0, n);
        at.host = str_from_to(at.host, n + 1, at.host.n);
    }
    ok = source.n <= LIMIT_URL ? gitpipe__remote(&at, host, &a, out, err)
                               : err_set(err, ERR_LIMIT, E8010, "a git URL that is too long");
    arena_free(&a);
    return ok;
}

bool gitpipe_local(Str rest, const SourceHost *host, GitLink **out, Err *err)
{
    static const char *const own[] = {"PATH", NULL};
    const char *argv[] = {"git-upload-pack", "--", NULL, NULL};
    Arena       a = arena_make(8 * LIMIT_URL);
    Str         path;
    bool        ok;

    if (rest.n > LIMIT_URL)
        ok = err_set(err, ERR_LIMIT, E8010, "a git URL that is too long");
    else if (rest.n && rest.p[0] == '-')
        ok = gitpipe__option(err, "path", rest);
    else if (!rest.n || rest.p[0] != '/')
        ok = err_set(err, ERR_USAGE, E8010, "a file: URL must be file:///PATH, with an absolute path");
    else if ((ok = gitpipe__decode(rest, &a, &path, err))) {
        argv[2] = arena_cstr(&a, path);
        ok = gitpipe__start(argv, own, host, &a, out, err);
    }
    arena_free(&a);
    return ok;
}
