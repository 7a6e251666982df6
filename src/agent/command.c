#include "agent/command.h"

#include "agent/answer.h"
#include "agent/daemon.h"
#include "agent/environ.h"
#include "agent/event.h"
#include "agent/query.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "data/json.h"
#include "os/proc.h"
#include "os/random.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the table of commands --- */

static Command *command__find(Daemon *d, Str id)
{
    for (Command *x = d->commands.first; x; x = x->next)
        if (str_eq(str_from(x->id), id))
            return x;
    return NULL;
}

static void command__drop_log(Command *x)
{
    if (x->log >= 0)
        close(x->log);
    x->log = -1;
}

static void command__free(Command *x)
{
    command__drop_log(x);
    mem_free(x->text);
    mem_free(x->fault);
    mem_free(x);
}

/* Forget the oldest of those that ended, when there are too many; their output
 * before that. */
static void command__prune(Daemon *d)
{
    size_t ended = 0, logs = 0, bytes = 0;

    for (Command **at = &d->commands.first; *at;) {
        Command *x = *at;
        bool     done = x->told && !x->running && !x->call && x->out[0].fd < 0 && x->out[1].fd < 0;
        ended += done;
        logs += done && x->log >= 0;
        bytes += strlen(x->text);
        if (done && logs > LIMIT_AGENT_LOGS)
            command__drop_log(x);
        if (done && (ended > LIMIT_AGENT_ENDED || bytes > LIMIT_AGENT_TEXTS)) {
            *at = x->next;
            command__free(x);
        } else {
            at = &x->next;
        }
    }
}

/* --- output --- */

/* All of it was handed on. */
static void command__end_out(CommandOut *o)
{
    o->over = true;
    lines_free(&o->lines);
    buf_free(&o->rest);
}

static void command__close_out(Command *x, CommandOut *o)
{
    command__end_out(o);
    loop_remove(&x->daemon->loop, &o->watch);
    if (o->fd >= 0)
        close(o->fd);
    o->fd = -1;
}

void command_free_all(Daemon *d)
{
    for (Command *x = d->commands.first, *next; x; x = next) {
        next = x->next;
        for (size_t i = 0; i < COUNT_OF(x->out); i++)
            command__close_out(x, &x->out[i]);
        loop_remove(&d->loop, &x->timeout);
        command__free(x);
    }
    d->commands.first = NULL;
}

/* Send what was written to d->events. */
static void command__send(Command *x)
{
    Buf *events = &x->daemon->events;

    httpd_write(x->call, buf_str(events));
    if (events->cap > LIMIT_HTTPD_ROOM * 2)
        buf_free(events);
    buf_clear(events);
}

/* Turn bytes into events while there is room; false when there is none left. */
static bool command__emit(Command *x, CommandOut *o, Str *in, bool last)
{
    Buf       *events = &x->daemon->events;
    size_t     room = httpd_room(x->call);
    ABX_UNSET char stamp[EVENT_STAMP];
    LinesPiece piece;
    Step       step = STEP_DONE;

    event_stamp(stamp);
    while (events->n < room && (step = lines_next(&o->lines, in, last, &piece)) == STEP_DONE)
        event_output(events, o->type, &piece, stamp, *x->call->arena);
    if (events->n)
        command__send(x);
    return room && step == STEP_MORE;
}

/* One read: bytes, 0 at the end of the pipe, -1 when there are none now. */
static ssize_t command__read(Command *x, CommandOut *o)
{
    size_t  want = sizeof x->daemon->scratch;
    ssize_t n;

    if (o->drain == 0)
        return 0;
    if (o->drain > 0 && (uint64_t)o->drain < want)
        want = (size_t)o->drain;
    do
        n = read(o->fd, x->daemon->scratch, want);
    while (n < 0 && errno == EINTR);
    /* Somebody else has read what was still in the pipe. */
    if (n < 0 && (errno != EAGAIN || o->drain > 0))
        return 0;
    if (n > 0 && o->drain > 0)
        o->drain -= n;
    return n;
}

/* Move what there is. True: nothing more can be done now. False: it is over. */
static bool command__pump_one(Command *x, CommandOut *o)
{
    /* Others wait, too; but nothing wakes us again for what is left of a process. */
    for (int turns = 0; turns < 16 || o->drain >= 0; turns++) {
        Str in = buf_str(&o->rest);
        if (x->call && in.n) {
            bool went = command__emit(x, o, &in, false);
            buf_drop(&o->rest, o->rest.n - in.n);
            if (!went)
                break;
        }
        if (x->call && !httpd_room(x->call))
            break;
        ssize_t n = command__read(x, o);
        if (n < 0) {
            o->watch.fd = o->fd;
            return true;
        }
        in = (Str){x->daemon->scratch, (size_t)n};
        if (x->call && !command__emit(x, o, &in, n == 0)) {
            buf_add(&o->rest, in);
            if (n == 0)
                break;                  /* what `lines` still holds goes out when there is room */
        } else if (n == 0) {
            return false;
        }
    }
    /* Until there is room again the pipe is not looked at: that stops the command. */
    o->watch.fd = x->call && !httpd_room(x->call) ? -1 : o->fd;
    return true;
}

/* Children that the command left behind may go on writing, heard by nobody,
 * until they end: a closed pipe would kill them. */
static void command__discard(Command *x, CommandOut *o)
{
    ssize_t n;
    int     turns = 0;

    do
        n = read(o->fd, x->daemon->scratch, sizeof x->daemon->scratch);
    while ((n > 0 && ++turns < 16) || (n < 0 && errno == EINTR));
    o->watch.fd = o->fd;
    if (n == 0 || (n < 0 && errno != EAGAIN))
        command__close_out(x, o);
}

static void command__conclude(Command *x);

static void command__pump(Command *x)
{
    for (size_t i = 0; i < COUNT_OF(x->out); i++) {
        CommandOut *o = &x->out[i];
        if (!o->over && !command__pump_one(x, o))
            command__end_out(o);
        if (o->over && o->fd >= 0)
            command__discard(x, o);
    }
    command__conclude(x);
}

static void command__readable(LoopWatch *w, short revents)
{
    (void)revents;
    command__pump(w->owner);
}

static void command__room(HttpdCall *c)
{
    command__pump(c->ctx);
}

/* Say the result, when the process is gone and all of its output was said. */
static void command__conclude(Command *x)
{
    char text[EVENT_RESULT], value[16];
    int  code;

    if (x->running || x->told || !x->out[0].over || !x->out[1].over)
        return;
    x->told = true;
    loop_remove(&x->daemon->loop, &x->ping);
    if (!x->call) {
        command__prune(x->daemon);
        return;
    }
    event_result(x->status, &code, text);
    snprintf(value, sizeof value, "%d", code);
    if (code == 0)
        event_complete(&x->daemon->events, clock_mono_ms() - x->began_ms);
    else
        event_error(&x->daemon->events, value, text, WIFSIGNALED(x->status) ? WTERMSIG(x->status) : 0, x->timed_out);
    command__send(x);
    httpd_finish(x->call);
}

/* The listener is gone, or has heard everything: the command runs on. */
static void command__gone(HttpdCall *c, bool whole)
{
    Command *x = c->ctx;

    (void)whole;
    x->call = NULL;
    loop_remove(&x->daemon->loop, &x->ping);
    if (x->told)
        command__prune(x->daemon);
    else
        command__pump(x);
}

static void command__ping(LoopWatch *w, short revents)
{
    Command *x = w->owner;

    (void)revents;
    w->deadline = clock_after(LIMIT_AGENT_PING_MS);
    if (!x->call || !httpd_room(x->call))
        return;
    event_text(&x->daemon->events, "ping", STR("pong"));
    command__send(x);
}

/* --- the end of a process --- */

static void command__timeout(LoopWatch *w, short revents)
{
    Command *x = w->owner;

    (void)revents;
    loop_remove(&x->daemon->loop, w);
    x->timed_out = true;
    kill(-x->pid, SIGKILL);
}

void command_reaped(Daemon *d, pid_t pid, int status)
{
    Command *x = d->commands.first;

    while (x && !(x->running && x->pid == pid))
        x = x->next;
    if (!x)
        return;
    x->running = false;
    x->status = status;
    clock_gettime(CLOCK_REALTIME, &x->ended);
    loop_remove(&d->loop, &x->timeout);
    /* What is in the pipes now is the command's; what comes later is of
     * children it left behind, who may hold them open for ever. */
    for (size_t i = 0; i < COUNT_OF(x->out); i++) {
        int n = 0;
        if (x->out[i].fd >= 0 && ioctl(x->out[i].fd, FIONREAD, &n) == 0)
            x->out[i].drain = n;
    }
    command__pump(x);
}

/* --- what is asked for --- */

typedef struct CommandWish {
    const char *text;           /* "command", or the words of argv as one text */
    const char **argv;
    const char *const *env;
    const char *cwd;
    int64_t     timeout_ms;
    bool        background, exact, as_user;
    uid_t       uid;
    gid_t       gid;
} CommandWish;

static bool command__refuse(HttpdCall *c, const char *why)
{
    answer_error(c, 400, "INVALID_REQUEST_BODY", "invalid request, validation error %s", why);
    return false;
}

static bool command__is_text(const Json *v)
{
    return v && v->type == JSON_STRING && !str_has(json_str(v), '\0');
}

/* An argv as the client gave it. */
static bool command__wish_argv(HttpdCall *c, const Json *list, Arena *a, CommandWish *wish)
{
    size_t       n = json_count(list);
    const char **argv = arena_array(a, n + 1, sizeof *argv);

    if (list->type != JSON_ARRAY || n == 0)
        return command__refuse(c, "argv must be a list of texts that is not empty");
    Buf text = buf_make(LIMIT_AGENT_JSON);
    for (size_t i = 0; i < n; i++) {
        if (!command__is_text(&list->items[i]) || (i == 0 && json_str(&list->items[i]).n == 0)) {
            buf_free(&text);
            return command__refuse(c, "argv must be a list of texts that is not empty");
        }
        argv[i] = arena_cstr(a, json_str(&list->items[i]));
        buf_addf(&text, "%s%s", i ? " " : "", argv[i]);
    }
    wish->argv = argv;
    wish->text = arena_cstr(a, buf_str(&text));
    buf_free(&text);
    return true;
}

/* A shell line: by bash where there is one. */
static bool command__wish_line(HttpdCall *c, const Json *line, Arena *a, CommandWish *wish)
{
    const char **argv = arena_array(a, 4, sizeof *argv);

    if (!command__is_text(line) || json_str(line).n == 0)
        return command__refuse(c, "Key: 'RunCommandRequest.Command' Error:Field validation for 'Command' failed on the "
                                  "'required' tag");
    argv[0] = "bash";
    argv[1] = "-c";
    argv[2] = arena_cstr(a, json_str(line));
    wish->argv = argv;
    wish->text = argv[2];
    return true;
}

static bool command__wish_user(HttpdCall *c, const Json *doc, CommandWish *wish)
{
    const Json *uid = json_get(doc, "uid"), *gid = json_get(doc, "gid");
    int64_t     u = json_int(uid, -1), g = json_int(gid, -1);
    bool        has_uid = uid && uid->type != JSON_NULL, has_gid = gid && gid->type != JSON_NULL;

    if (has_gid && !has_uid)
        return command__refuse(c, "uid is required when gid is provided");
    if ((has_uid && (u < 0 || u >= UINT32_MAX)) || (has_gid && (g < 0 || g >= UINT32_MAX)))
        return command__refuse(c, "uid and gid must be numbers from 0 on");
    if (!has_uid)
        return true;
    /* Somebody who is in no passwd file gets his own number as group, never 0. */
    struct passwd *pw = has_gid ? NULL : getpwuid((uid_t)u);
    wish->as_user = true;
    wish->uid = (uid_t)u;
    wish->gid = has_gid ? (gid_t)g : pw ? pw->pw_gid : (gid_t)u;
    return true;
}

static bool command__wish_cwd(HttpdCall *c, const Json *cwd, Arena *a, CommandWish *wish)
{
    ABX_UNSET struct stat st;

    if (!cwd || cwd->type == JSON_NULL || (cwd->type == JSON_STRING && json_str(cwd).n == 0))
        return true;
    wish->cwd = command__is_text(cwd) ? query_file(json_str(cwd), a) : NULL;
    if (!wish->cwd)
        return command__refuse(c, "cwd must be a path");
    int sys = stat(wish->cwd, &st) != 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
    if (sys == 0)
        return true;
    answer_error(c, 400, "INVALID_REQUEST_BODY",
                 "invalid request, validation error working directory does not exist: %s: stat %s: %s", wish->cwd,
                 wish->cwd, strerror(sys));
    return false;
}

static bool command__wish(HttpdCall *c, const Json *doc, Arena *a, CommandWish *wish)
{
    const Json *timeout = json_get(doc, "timeout"), *envs = json_get(doc, "envs"), *argv = json_get(doc, "argv");
    const Json *line = json_get(doc, "command");
    const char *fault = NULL;

    if (argv && argv->type != JSON_NULL) {
        if (line && json_str(line).n)
            return command__refuse(c, "command and argv exclude each other");
        if (!command__wish_argv(c, argv, a, wish))
            return false;
    } else if (!command__wish_line(c, line, a, wish)) {
        return false;
    }
    wish->timeout_ms = json_int(timeout, timeout && timeout->type != JSON_NULL ? -1 : 0);
    if (wish->timeout_ms < 0)
        return command__refuse(c, "Key: 'RunCommandRequest.TimeoutMs' Error:Field validation for 'TimeoutMs' failed on "
                                  "the 'gte' tag");
    wish->background = json_bool(json_get(doc, "background"), false);
    wish->exact = json_bool(json_get(doc, "exact"), false);
    if (!command__wish_user(c, doc, wish) || !command__wish_cwd(c, json_get(doc, "cwd"), a, wish))
        return false;
    if (envs && envs->type != JSON_OBJECT && envs->type != JSON_NULL)
        return command__refuse(c, "envs must be an object of names and texts");
    wish->env = environ_make(envs && envs->type == JSON_OBJECT ? envs : NULL, a, &fault);
    return wish->env ? true : command__refuse(c, fault);
}

/* --- starting --- */

/* A file for the output of a background command. It has no name, so nobody
 * else opens it and nothing is left behind; memory where no folder takes it. */
static int command__log_file(void)
{
    const char *dirs[] = {getenv("TMPDIR"), "/tmp", "/var/tmp"};
    char        path[4200], name[24];

    for (size_t i = 0; i < COUNT_OF(dirs); i++) {
        if (!dirs[i] || !*dirs[i])
            continue;
        int fd = open(dirs[i], O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC | O_EXCL, 0600);
        if (fd >= 0)
            return fd;
        random_hex(name, 16);
        snprintf(path, sizeof path, "%s/.abx-log-%s", dirs[i], name);
        fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0) {
            unlink(path);
            return fd;
        }
    }
    int fd = memfd_create("log", MFD_CLOEXEC);
    if (fd >= 0)
        fcntl(fd, F_SETFL, O_APPEND);
    return fd;
}

/* The pipe for one output; `child` is its other end. */
static bool command__pipe(Command *x, int which, bool exact, int *child, Err *err)
{
    CommandOut *o = &x->out[which];
    int         fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0)
        return err_sys(err, errno, E3005, "pipe");
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    *child = fds[1];
    o->fd = fds[0];
    o->over = false;
    o->type = which == 0 ? "stdout" : "stderr";
    o->lines = lines_make(exact);
    o->rest = buf_make(LIMIT_COPY_BLOCK);
    o->watch = (LoopWatch){.fd = o->fd, .events = POLLIN, .deadline = DEADLINE_NONE, .wake = command__readable,
                           .owner = x};
    loop_add(&x->daemon->loop, &o->watch);
    return true;
}

/* The program of a wish, found. A line goes to sh where there is no bash, and
 * under that name: busybox looks at it. */
static const char *command__program(const CommandWish *wish, Arena *a, Err *err)
{
    const char **argv = wish->argv, *file = environ_find(wish->env, argv[0], a);

    if (!file && argv[1] && strcmp(argv[0], "bash") == 0 && strcmp(argv[1], "-c") == 0) {
        argv[0] = "sh";
        file = environ_find(wish->env, "sh", a);
        return file ? file : "/bin/sh";
    }
    if (!file)
        err_set(err, ERR_NOT_FOUND, E3005, "exec: \"%s\": executable file not found in $PATH", argv[0]);
    return file;
}

static bool command__spawn(Command *x, const CommandWish *wish, Arena *a, Err *err)
{
    int         child[2] = {-1, -1};
    const char *file = command__program(wish, a, err);
    bool        ok = file != NULL;

    if (ok && x->background) {
        x->log = command__log_file();
        child[0] = child[1] = x->log;
        ok = x->log >= 0 || err_sys(err, errno, E3005, "no file for the output");
    } else if (ok) {
        ok = command__pipe(x, 0, wish->exact, &child[0], err) && command__pipe(x, 1, wish->exact, &child[1], err);
    }
    if (ok) {
        ProcSpec spec = {.file = file, .argv = wish->argv, .env = wish->env, .cwd = wish->cwd,
                         .fd = {-1, child[0], child[1]},
                         .group = true, .as_user = wish->as_user, .uid = wish->uid, .gid = wish->gid,
                         .files = &x->daemon->files};
        ok = proc_start(&spec, &x->pid, err);
    }
    for (int i = 0; i < 2 && !x->background; i++)
        if (child[i] >= 0)
            close(child[i]);
    return ok;
}

static void command__start_stream(Command *x, HttpdCall *c)
{
    static const HttpdHandler stream = {.room = command__room, .gone = command__gone};
    static const Header       fields[] = {
        {{"Content-Type", 12}, {"text/event-stream", 17}},
        {{"Cache-Control", 13}, {"no-cache", 8}},
        {{"X-Accel-Buffering", 17}, {"no", 2}},
    };

    c->handler = &stream;
    c->ctx = x;
    x->call = c;
    httpd_start(c, 200, fields, COUNT_OF(fields), -1);
    event_text(&x->daemon->events, "init", str_from(x->id));
    event_text(&x->daemon->events, "ping", STR("pong"));
    command__send(x);
}

/* It runs: watch it. */
static void command__started(Command *x, const CommandWish *wish)
{
    x->running = true;
    if (wish->timeout_ms) {
        x->timeout = (LoopWatch){.fd = -1, .deadline = clock_after(wish->timeout_ms), .wake = command__timeout,
                                 .owner = x};
        loop_add(&x->daemon->loop, &x->timeout);
    }
    if (x->background) {
        x->told = true;
        event_complete(&x->daemon->events, clock_mono_ms() - x->began_ms);
        command__send(x);
        httpd_finish(x->call);
        return;
    }
    x->ping = (LoopWatch){.fd = -1, .deadline = clock_after(LIMIT_AGENT_PING_MS), .wake = command__ping, .owner = x};
    loop_add(&x->daemon->loop, &x->ping);
}

static void command__failed(Command *x, const Err *err)
{
    ABX_UNSET char text[1024];

    for (size_t i = 0; i < COUNT_OF(x->out); i++)
        command__close_out(x, &x->out[i]);
    x->ended = x->started;
    x->told = true;
    x->status = 255 << 8;
    snprintf(text, sizeof text, "fork/%.900s", err->text);
    x->fault = mem_str(str_from(err->kind == ERR_NOT_FOUND ? err->text : text));
    event_error(&x->daemon->events, x->fault, x->fault, 0, false);
    command__send(x);
    httpd_finish(x->call);
}

static void command__begin(HttpdCall *c, Daemon *d, const CommandWish *wish, Arena *a)
{
    Command *x = mem_new(sizeof *x);
    ABX_UNSET Err err;

    *x = (Command){.next = d->commands.first, .daemon = d, .background = wish->background, .log = -1,
                   .began_ms = clock_mono_ms(), .text = mem_str(str_from(wish->text))};
    for (size_t i = 0; i < COUNT_OF(x->out); i++)
        x->out[i] = (CommandOut){.fd = -1, .drain = -1, .over = true};
    d->commands.first = x;
    random_hex(x->id, 32);
    clock_gettime(CLOCK_REALTIME, &x->started);
    bool ok = command__spawn(x, wish, a, &err);
    command__start_stream(x, c);
    if (ok)
        command__started(x, wish);
    else
        command__failed(x, &err);
}

void command_post(HttpdCall *c, Str body)
{
    Daemon     *d = c->ctx;
    Arena       a = arena_make(LIMIT_AGENT_ARENA);
    const Json *doc;
    CommandWish wish = {0};
    ABX_UNSET Err err;

    if (!json_parse(body, &a, &doc, &err))
        answer_error(c, 400, "INVALID_REQUEST_BODY", "error parsing request, MAYBE invalid body format. %s", err.text);
    else if (doc->type != JSON_OBJECT)
        answer_error(c, 400, "INVALID_REQUEST_BODY", "error parsing request, MAYBE invalid body format. not an object");
    else if (command__wish(c, doc, &a, &wish))
        command__begin(c, d, &wish, &a);
    arena_free(&a);
}

/* --- interrupt: TERM, then KILL, answered when the group is gone --- */

typedef struct CommandKill {
    Daemon    *daemon;
    LoopWatch  tick;
    pid_t      group;
    Deadline   kill_at, give_up;
    HttpdCall *call;            /* NULL: nobody waits for it any more */
} CommandKill;

static void command__kill_tick(LoopWatch *w, short revents)
{
    CommandKill *k = w->owner;
    bool         alive = kill(-k->group, 0) == 0;

    (void)revents;
    w->deadline = clock_after(10);
    if (alive && clock_passed(k->kill_at))
        kill(-k->group, SIGKILL);
    if (alive && !clock_passed(k->give_up))
        return;
    loop_remove(&k->daemon->loop, w);
    if (k->call) {
        k->call->ctx = NULL;
        answer_empty(k->call);
    }
    mem_free(k);
}

static void command__kill_gone(HttpdCall *c, bool whole)
{
    CommandKill *k = c->ctx;

    (void)whole;
    if (k)
        k->call = NULL;
}

void command_interrupt(HttpdCall *c)
{
    static const HttpdHandler waits = {.gone = command__kill_gone};
    Daemon      *d = c->ctx;
    Command     *x;
    CommandKill *k;
    Str          id;

    if (!query_get(c->head.target, "id", c->arena, &id)) {
        answer_error(c, 400, "MISSING_QUERY", "missing query parameter 'id'");
    } else if (!(x = command__find(d, id))) {
        answer_error(c, 500, "RUNTIME_ERROR", "error interruptting code context. no such session");
    } else if (!x->running) {
        answer_error(c, 500, "RUNTIME_ERROR", "error interruptting code context. command session %s is not running",
                     x->id);
    } else {
        k = mem_new(sizeof *k);
        *k = (CommandKill){.daemon = d, .group = x->pid, .kill_at = clock_after(LIMIT_AGENT_TERM_MS),
                           .give_up = clock_after(LIMIT_AGENT_TERM_MS + 2000), .call = c};
        k->tick = (LoopWatch){.fd = -1, .deadline = clock_after(5), .wake = command__kill_tick, .owner = k};
        loop_add(&d->loop, &k->tick);
        c->handler = &waits;
        c->ctx = k;
        kill(-x->pid, SIGTERM);
    }
}

/* --- status and logs --- */

void command_status(HttpdCall *c, Str id)
{
    Daemon  *d = c->ctx;
    Command *x = command__find(d, id);
    Buf      body = buf_make(LIMIT_HTTPD_OUT);
    JsonOut  w = json_out(&body, JSON_COMPACT);
    char     time[ANSWER_TIME], text[EVENT_RESULT];
    int      code;

    if (!x) {
        answer_error(c, 404, "INVALID_REQUEST_BODY", "command not found: %.*s", STR_ARG(id));
        return;
    }
    json_begin(&w, '{');
    json_key(&w, "id");
    json_put_str(&w, str_from(x->id));
    json_key(&w, "content");
    json_put_str(&w, str_from(x->text));
    json_key(&w, "running");
    json_put_bool(&w, x->running);
    if (!x->running) {
        event_result(x->status, &code, text);
        json_key(&w, "exit_code");
        json_put_int(&w, code);
        if (code) {
            json_key(&w, "error");
            json_put_str(&w, str_from(x->fault ? x->fault : text));
        }
    }
    answer_time(x->started, time);
    json_key(&w, "started_at");
    json_put_str(&w, str_from(time));
    if (!x->running) {
        answer_time(x->ended, time);
        json_key(&w, "finished_at");
        json_put_str(&w, str_from(time));
    }
    json_end(&w, '}');
    answer_json(c, 200, &body);
    buf_free(&body);
}

void command_logs(HttpdCall *c, Str id)
{
    Daemon     *d = c->ctx;
    Command    *x = command__find(d, id);
    ABX_UNSET struct stat st;
    Str         text;
    int64_t     cursor = 0;
    ABX_UNSET char next[24];

    if (!x) {
        answer_error(c, 400, "INVALID_REQUEST_BODY", "command not found: %.*s", STR_ARG(id));
        return;
    }
    if (!x->background || x->log < 0 || fstat(x->log, &st) != 0) {
        answer_error(c, 400, "INVALID_REQUEST_BODY", "command %s %s", x->id,
                     x->background ? "is over, and its output is no longer kept" : "is not running in background");
        return;
    }
    if (query_get(c->head.target, "cursor", c->arena, &text) && text.n && (!num_i64(text, &cursor) || cursor < 0)) {
        answer_error(c, 400, "INVALID_REQUEST_BODY", "cursor is not a number of bytes");
        return;
    }
    if (cursor > st.st_size)
        cursor = st.st_size;
    int fd = fcntl(x->log, F_DUPFD_CLOEXEC, 3);
    if (fd < 0) {
        answer_sys(c, errno, "log of %s", x->id);
        return;
    }
    Header fields[] = {
        {STR("Content-Type"), STR("text/plain; charset=utf-8")},
        {STR("EXECD-COMMANDS-TAIL-CURSOR"), {next, (size_t)snprintf(next, sizeof next, "%lld", (long long)st.st_size)}},
    };
    httpd_start(c, 200, fields, COUNT_OF(fields), st.st_size - cursor);
    httpd_file(c, fd, cursor, st.st_size - cursor);
}
