#include "agent/job.h"

#include "agent/keeper.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/clean.h"
#include "data/json.h"
#include "os/folder.h"
#include "os/poll.h"
#include "os/random.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { JOB_LINE = 4096 };

void job_name(Job *j, const FrameStart *s, Arena scratch)
{
    Buf b = buf_make(LIMIT_CARRY_COMMAND);

    for (size_t i = 0; i < s->argv.n && b.n < b.limit; i++) {
        Str word = s->argv.v[i];
        if (i)
            buf_addc(&b, ' ');
        buf_add(&b, word.n < b.limit - b.n ? word : (Str){word.p, b.limit - b.n});
    }
    Str text = clean_message(buf_str(&b), NULL, 0, &scratch);
    if (text.n > LIMIT_CARRY_COMMAND)
        text.n = utf8_good((Str){text.p, LIMIT_CARRY_COMMAND});
    memcpy(j->command, text.p, text.n);
    j->command[text.n] = '\0';
    j->started = clock_unix_ms() / 1000;
    buf_free(&b);
}

/* --- its socket --- */

static void job__address(const char *kind, Str id, struct sockaddr_un *to)
{
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(to->sun_path, sizeof to->sun_path, "%s-%.*s", kind, STR_ARG(id));
}

static void job__knock(LoopWatch *w, short revents)
{
    Keeper *k = w->owner;
    size_t  n = 0;
    int     fd;

    for (Visitor *v = k->visitors; v; v = v->next)
        n++;
    while (revents && (fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        if (n++ < 2 * LIMIT_CARRY_WATCHERS)
            visitor_make(k, fd, false, true, (Str){0}, (Str){0});
        else
            close(fd);
    }
}

int job_open(Job *j, Keeper *k)
{
    struct sockaddr_un early, at;
    int                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    random_hex(j->id, JOB_ID);
    job__address("n", str_from(j->id), &early);
    job__address("j", str_from(j->id), &at);
    mode_t mask = umask(0177);
    /* It gets its name when it listens: before, it would look like a dead one. */
    bool ok = fd >= 0 && bind(fd, (const struct sockaddr *)&early, sizeof early) == 0 && listen(fd, 8 * LIMIT_CARRY_WATCHERS) == 0 &&
              rename(early.sun_path, at.sun_path) == 0;
    int sys = ok ? 0 : errno;
    umask(mask);
    if (!ok) {
        j->id[0] = '\0';
        if (fd >= 0) {
            unlink(early.sun_path);
            close(fd);
        }
        return sys;
    }
    j->loop = &k->loop;
    j->listen = (LoopWatch){.fd = fd, .events = POLLIN, .deadline = DEADLINE_NONE, .wake = job__knock, .owner = k};
    loop_add(j->loop, &j->listen);
    return 0;
}

void job_close(Job *j)
{
    struct sockaddr_un at;

    if (!j->id[0])
        return;
    job__address("j", str_from(j->id), &at);
    unlink(at.sun_path);
    loop_remove(j->loop, &j->listen);
    close(j->listen.fd);
    j->id[0] = '\0';
}

int job_connect(Str id)
{
    struct sockaddr_un at;
    int                fd = -1;

    for (size_t i = 0; i < id.n; i++)
        if (!((id.p[i] >= '0' && id.p[i] <= '9') || (id.p[i] >= 'a' && id.p[i] <= 'f')))
            id.n = 0;
    job__address("j", id, &at);
    if (id.n != JOB_ID)
        errno = ENOENT;
    else
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    int sys = errno;
    close(fd);
    if (sys == ECONNREFUSED) {
        unlink(at.sun_path);
        sys = ENOENT;
    }
    errno = sys;
    return -1;
}

/* --- the list --- */

void job_line(const Keeper *k, Buf *to)
{
    const Program *p = &k->program;
    JsonOut        w = json_out(to, JSON_COMPACT);
    FrameExit      x;

    program_exit(p, &x);
    json_begin(&w, '{');
    json_key(&w, "id");
    json_put_str(&w, str_from(k->job.id));
    json_key(&w, "pid");
    json_put_int(&w, p->pid);
    json_key(&w, "command");
    json_put_str(&w, str_from(k->job.command));
    json_key(&w, "tty");
    json_put_bool(&w, p->tty);
    json_key(&w, "state");
    json_put_str(&w, program_done(p) ? STR("ended") : STR("running"));
    json_key(&w, "attached");
    json_put_bool(&w, k->client != NULL);
    json_key(&w, "started");
    json_put_int(&w, k->job.started);
    json_key(&w, "printed");
    json_put_int(&w, (int64_t)p->ring.end);
    json_key(&w, "from");
    json_put_int(&w, (int64_t)p->ring.base);
    if (program_done(p)) {
        json_key(&w, "ended");
        json_put_int(&w, k->job.ended);
        json_key(&w, x.how == FRAME_ENDED_CODE ? "exit_code" : "signal");
        json_put_int(&w, x.number);
        if (x.how == FRAME_ENDED_TIMEOUT) {
            json_key(&w, "timed_out");
            json_put_bool(&w, true);
        }
    }
    json_end(&w, '}');
    buf_addc(to, '\n');
}

/* Ask the keeper behind fd; it need not hear more. */
static void job__ask(int fd)
{
    static const unsigned char run[FRAME_RUN];
    static const FrameStart    jobs = {.kind = FRAME_JOBS, .flags = FRAME_START_NO_ACK};
    static const FrameHello    hello = {.window = JOB_LINE};
    Buf b = buf_make(512);
    ABX_UNSET Err err;

    frame_put_preamble(&b, run);
    frame_put_hello(&b, &hello);
    /* It is small, and a new connection has room for it. */
    if (!frame_put_start(&b, 0, &jobs, &err) || send(fd, b.p, b.n, MSG_NOSIGNAL) < 0)
        shutdown(fd, SHUT_RDWR);
    buf_free(&b);
}

/* What a keeper says, up to its line. True: nothing more is to be read. */
static bool job__answer(int fd, FrameReader *r, Buf *to)
{
    ABX_UNSET char bytes[JOB_LINE];
    ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    Str     in = {bytes, n > 0 ? (size_t)n : 0};
    Frame   f;
    Step    step = STEP_MORE;
    ABX_UNSET Err err;

    while (n > 0 && (step = frame_next(r, &in, &f, &err)) == STEP_DONE)
        if (f.type == FRAME_OUT)
            buf_add(to, f.payload);
        else if (f.type == FRAME_EXIT)
            return true;
    return step == STEP_ERR || n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* False: some cannot be asked. */
static bool job__connect_all(struct pollfd *fds, size_t *count)
{
    Arena      a = arena_make((size_t)1 << 20);
    const Str *names;
    int        here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ptrdiff_t  found = here < 0 ? 0 : folder_names(here, 4 * LIMIT_CARRY_JOBS, &a, &names);
    bool       whole = here >= 0 && found >= 0 && found < 4 * LIMIT_CARRY_JOBS;
    size_t     n = 0;

    for (ptrdiff_t i = 0; i < found; i++) {
        if (!str_starts(names[i], STR("j-")))
            continue;
        int fd = n < LIMIT_CARRY_JOBS ? job_connect(str_from_to(names[i], 2, names[i].n)) : -1;
        if (fd < 0) {
            whole = whole && n < LIMIT_CARRY_JOBS && errno == ENOENT;
            continue;
        }
        job__ask(fd);
        fds[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    if (here >= 0)
        close(here);
    arena_free(&a);
    *count = n;
    return whole;
}

bool job_list(Buf *to)
{
    struct pollfd fds[LIMIT_CARRY_JOBS + 1];
    FrameReader   readers[LIMIT_CARRY_JOBS];
    size_t        n, waits;
    bool          whole = job__connect_all(fds, &n);
    Deadline      until = clock_after(LIMIT_CARRY_LIST_MS);
    ABX_UNSET Err err;

    waits = n;
    for (size_t i = 0; i < n; i++) {
        readers[i] = frame_reader_agent();
        readers[i].began = true;        /* at a job's socket there is no preamble */
    }
    while (waits && poll_wait(fds, n, -1, until, &err))
        for (size_t i = 0; i < n; i++)
            if (fds[i].fd >= 0 && fds[i].revents && job__answer(fds[i].fd, &readers[i], to)) {
                close(fds[i].fd);
                fds[i].fd = -1;
                waits--;
            }
    for (size_t i = 0; i < n; i++) {
        frame_reader_free(&readers[i]);
        if (fds[i].fd >= 0)
            close(fds[i].fd);
    }
    return whole && !waits;
}
