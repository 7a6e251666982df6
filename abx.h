/* abx.h - the C API of abx: sandboxes on any backend.
 *
 *     abx_error e;
 *     abx_session *s = abx_open(&(abx_options){.provider = "opensandbox"}, &e);
 *     abx_sandbox *box = s ? abx_create(s, &(abx_create_options){.template_name = "base"}, &e) : NULL;
 *     abx_exec *x = box ? abx_exec_start(box, &(abx_exec_options){.argv = argv, .argc = 2}, &e) : NULL;
 *     ...
 *     abx_sandbox_free(box);
 *     abx_close(s);
 *
 * The command line program makes, uses and ends sandboxes by this header alone.
 *
 * Building. `make build/lib/abx.o` makes the library for musl; link it with
 * build/vendor/libvendor.a. For another C library, without TLS, and with that
 * library's zlib to link, after `make TLS=none`:
 *
 *     gcc -O2 -D_GNU_SOURCE -DABX_LIBRARY -DABX_TLS_NONE -DABX_VERSION='"0.1.0"' -I. -Isrc
 *         -isystem build-notls/gen -isystem vendor/src/zlib -c abx.c            (one line)
 *
 * Errors. A call that can fail takes `abx_error *` last (never NULL) and says
 * so by NULL or -1; then the error is filled in, otherwise it is untouched.
 *
 * Memory. Handles are freed by the function named with them. Strings that come
 * back belong to the handle they came from: each says how long they are good.
 * Strings that go in are copied where they are kept. Text is UTF-8.
 *
 * Manners. Nothing here prints, exits (but for lack of memory: one line on
 * stderr, status 1), changes the working directory, handles a signal or starts
 * a thread. Notices for people go to `notice`. A session is used by one thread
 * at a time; several sessions do not know of each other. SIGPIPE is the
 * program's to ignore when it writes to pipes itself; abx's own sockets never
 * raise it.
 *
 * Waiting. Calls block until they are done, their time-out has passed, or
 * `cancel_fd` has become readable, which ends every call of the session with
 * ABX_CANCELLED. The time-outs: creating 5 minutes, pausing and resuming 2
 * minutes, ending a command 5 seconds; every other exchange with a server the
 * setting http_timeout (30 seconds); moving a file 60 seconds in which not a
 * byte comes, 5 minutes in which not a byte is taken; a running command none
 * but its own, and a daemon that says nothing for 20 seconds is given up. A
 * running command can also be stepped from somebody's own poll loop:
 * abx_exec_next(), abx_exec_want().
 *
 * ABX_API marks the functions: external in the library (-DABX_LIBRARY), static
 * in the program's one unit (-DABX_PROGRAM), where they alone may go unused.
 */
#ifndef ABX_H
#define ABX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef ABX_PROGRAM
#define ABX_API static __attribute__((unused))
#else
#define ABX_API
#endif

/* ---- errors and notices ---- */

typedef enum abx_kind {
    ABX_OK,
    ABX_USAGE,          /* what was asked for is wrong in itself */
    ABX_FAILED,
    ABX_NOT_FOUND,
    ABX_DENIED,
    ABX_TIMED_OUT,
    ABX_CANCELLED,      /* cancel_fd became readable */
} abx_kind;

typedef struct abx_error {
    abx_kind kind;
    char     code[8];               /* "E2009" */
    int      exit_status;           /* what the program exits with for this code */
    char     message[2048];         /* one line for a person, without the code */
    char     suggestion[2048];      /* what to do about it, or "" */
    int      retryable;             /* the same call may work in a while */
    int      command_status;        /* E3005 of a command: 127, the sandbox has no such program; 126, it has one that
                                       cannot be run. Else 0 */
    char     request_id[80];        /* the server's name for the exchange, or "" */
} abx_error;

/* What the program exits with for a code such as "E2009"; 1 for what is none. */
ABX_API int abx_code_exit(const char *code);

/* ---- sessions ---- */

typedef struct abx_session abx_session;
typedef struct abx_sandbox abx_sandbox;

typedef struct abx_pair { const char *key, *value; } abx_pair;

typedef struct abx_options {
    const char *provider;           /* NULL: ABX_PROVIDER, ./.env, ~/.abx/.env, ~/.abx/config.toml, then alicloud-express */
    const char *sandbox;            /* NULL, or a reference as abx_attach() takes it: "PROVIDER:ID" chooses the provider too */
    const abx_pair *config;         /* settings that win over every other layer, such as {"base_url", …} */
    size_t      config_count;
    const char *const *exposed;     /* keys in config whose values others could read, as on a command line: */
    size_t      exposed_count;      /* a secret among them is refused, E8002 */
    int         config_only;        /* nothing but `config` and what is compiled in counts: no environment, no file, no store */
    const char *home;               /* NULL: ABX_HOME, else ~/.abx */
    const char *ca_file;            /* NULL: ABX_CA_FILE, SSL_CERT_FILE, …, the embedded roots */
    int         cancel_fd_set;      /* 0: no cancel fd, whatever cancel_fd says */
    int         cancel_fd;
    int         allow_cwd_env;      /* an endpoint from ./.env may meet a key from elsewhere */
    int         agent_never;        /* do not carry this program into sandboxes: the backend's own calls alone */
    const char *agent_path;         /* the abx that is carried; NULL: ABX_BIN, else `abx` in an absolute folder of PATH,
                                       else (and with config_only at once) as agent_never */
    void      (*notice)(void *ctx, const char *line);   /* NULL: "abx: line" on stderr */
    void       *notice_ctx;
    void      (*trace)(void *ctx, const char *line);    /* NULL: none. Never holds a secret */
    void       *trace_ctx;
} abx_options;

/* Resolves provider and configuration; goes nowhere near the network. `options`
 * may be NULL. E8001 unknown provider, E8002 a bad setting, E8012 a hostile
 * ./.env, E1001 or E8004 a provider without a backend in this abx; of a plugin
 * E8013 or E8014 for its manifest, E1003 for credentials that are missing, E8021
 * for a kind that is not run here. */
ABX_API abx_session *abx_open(const abx_options *options, abx_error *e);
ABX_API void abx_close(abx_session *s);             /* NULL is fine; its sandboxes and commands must be freed before */

ABX_API const char *abx_session_provider(const abx_session *s);    /* its id; good until abx_close() */

/* The provider declares this feature, such as "files.watch": 0. Otherwise -1 and
 * E8004, which every call says that needs one that is not declared. */
ABX_API int abx_require(const abx_session *s, const char *feature, abx_error *e);

/* From now on wait without a cancel fd: for cleaning up after ABX_CANCELLED. */
ABX_API void abx_ignore_cancel(abx_session *s);

/* ---- sandboxes ---- */

typedef struct abx_info {
    const char *sandbox_id;
    const char *provider;
    const char *template_name;      /* NULL where a thing is not known, here and below */
    const char *status;             /* running, paused, creating, stopped, error, … */
    const char *reason;             /* the backend's sentence about it */
    const abx_pair *metadata;
    size_t      metadata_count;
    const char *started_at;         /* RFC 3339, UTC */
    const char *end_at;
    int64_t     timeout_s;          /* -1: not known */
    const char *region;
} abx_info;

typedef struct abx_create_options {
    const char *template_name;      /* NULL: the setting default_template, else "base" */
    int64_t     timeout_s;          /* 0: 300; -1: never expires. Below the backend's minimum it is raised, with a notice */
    const abx_pair *env;
    size_t      env_count;
    const abx_pair *metadata;
    size_t      metadata_count;
    const char *const *entrypoint;  /* NULL: the provider's choice */
    size_t      entrypoint_count;
    const char *cpu, *memory;       /* "500m", "512Mi"; NULL: as configured */
} abx_create_options;

/* Creates a sandbox and waits until commands can be run in it; `o` may be NULL,
 * which no other options here may be but abx_open()'s. When that fails
 * after the backend made one, it is removed again, or its id is in the message
 * if it could not be. Cancelled: the same. */
ABX_API abx_sandbox *abx_create(abx_session *s, const abx_create_options *o, abx_error *e);

/* A handle on a sandbox that exists already: "ID" or "PROVIDER:ID". No network.
 * E8030: the reference names another provider than the session's. E8002: no id
 * can look like that. */
ABX_API abx_sandbox *abx_attach(abx_session *s, const char *ref, abx_error *e);
ABX_API void abx_sandbox_free(abx_sandbox *b);      /* NULL is fine; does not end the sandbox */
ABX_API const char *abx_sandbox_id(const abx_sandbox *b);

/* What was last known, without asking: after abx_create() and every call that
 * answers with it; NULL after abx_attach() alone. Good until the next call on
 * the handle. */
ABX_API const abx_info *abx_last_info(const abx_sandbox *b);

/* Each asks the backend; NULL on failure. Good until the next call on the handle. */
ABX_API const abx_info *abx_get_info(abx_sandbox *b, abx_error *e);
ABX_API const abx_info *abx_pause(abx_sandbox *b, abx_error *e);
ABX_API const abx_info *abx_resume(abx_sandbox *b, abx_error *e);
/* The sandbox ends `seconds` (1 or more) from now, sooner or later than before. */
ABX_API const abx_info *abx_set_timeout(abx_sandbox *b, int64_t seconds, abx_error *e);

/* Ends it. *killed (may be NULL) is 0 when it was gone already, which is no
 * failure. A second call on the same handle does not go to the network. */
ABX_API int abx_kill(abx_sandbox *b, int *killed, abx_error *e);

typedef struct abx_url {
    const char *url;
    const abx_pair *headers;        /* to be sent with every request to it */
    size_t      header_count;
} abx_url;

/* Where a port of the sandbox can be reached. Good until the next call on the handle. */
ABX_API const abx_url *abx_port_url(abx_sandbox *b, int port, abx_error *e);

typedef struct abx_list_options {
    const abx_pair *metadata;       /* all of these must match */
    size_t      metadata_count;
    int64_t     limit;              /* stop after so many; 0: no limit */
} abx_list_options;

/* Calls `each` for every sandbox, page by page; the info is good during the
 * call. `each` returning nonzero ends the listing early, which is no failure.
 * *more (may be NULL): there are others behind `limit`. */
ABX_API int abx_list(abx_session *s, const abx_list_options *o,
                     int (*each)(void *ctx, const abx_info *info), void *ctx, int *more, abx_error *e);

/* ---- commands ----
 *
 * Where the backend has a way, a command is run by a program that abx carries
 * into the sandbox (docs/agent.md): itself, abx_options.agent_path. Such a
 * command is exact: words, output, input, signals, timeouts. Where that cannot
 * be, the backend's own calls run it; a notice says so once for each command,
 * and what is then not exact, and what those calls cannot do is refused with
 * E8004, with the reason why nothing could be carried. Under agent_never, or
 * without an agent_path, the same holds without a notice. */

typedef struct abx_exec abx_exec;

typedef struct abx_exec_options {
    const char *const *argv;        /* one word is a shell line; two or more are an argv that arrives exactly */
    size_t      argc;
    const abx_pair *env;
    size_t      env_count;
    const char *cwd;                /* NULL: the backend's own */
    int64_t     timeout_ms;         /* 0: none. At its end the whole process group is killed */
    int         tell_pid;           /* abx_exec_pid() will be asked */
    int         open_stdin;         /* abx_process_stdin() is to work; without it the command finds the end of input at once */
    const char *user;               /* a name or a number in the sandbox; NULL: the backend's own */
    int         input;              /* abx_exec_write() will feed its standard input; without it that is /dev/null */
    int         tty;                /* it gets a terminal of this size, and input; what it prints is ABX_STDOUT */
    int         cols, rows;         /* 1 to 65535; 0: not known */
    int         job;                /* it goes on without this handle: abx_exec_job() */
    int64_t     hold_s;             /* tty: it lives on for so long when the connection is lost; 0: it ends then */
    int         tell_start;         /* ABX_STARTED is given */
} abx_exec_options;

typedef enum abx_event_kind {
    ABX_STDOUT, ABX_STDERR, ABX_EXIT,
    ABX_STARTED,        /* with tell_start, and of abx_job_attach(): it runs; abx_exec_pid() and abx_exec_job() are known.
                           Backends that run it by their own calls do not tell */
    ABX_REPLAY,         /* of abx_job_attach(): what follows begins at `offset`; what was asked for before that is gone */
    ABX_DETACHED,       /* it was left by abx_exec_detach(), and goes on */
} abx_event_kind;

typedef struct abx_event {
    abx_event_kind kind;
    const char *bytes;              /* ABX_STDOUT, ABX_STDERR: not NUL-terminated; good until the next call */
    size_t      size;
    int         exit_code;          /* ABX_EXIT: 0 … 255, or -1 when a signal ended it */
    int         signal;             /* ABX_EXIT: its number, 0: none, -1: the backend does not say which */
    int         timed_out;          /* ABX_EXIT: timeout_ms ended it */
    int64_t     duration_ms;        /* ABX_EXIT */
    uint64_t    offset;             /* ABX_REPLAY: how much it had printed before, stdout and stderr together */
} abx_event;

typedef struct abx_want {
    int     fd;                     /* -1: call abx_exec_next() at once */
    short   events;                 /* POLLIN, POLLOUT */
    int64_t wait_ms;                /* call again after this time even if the fd is silent; -1: no such time */
} abx_want;

/* Starts a command. A sandbox that is not running is refused before anything
 * is sent, for what is sent to a paused one runs when it is resumed. What the
 * sandbox finds wrong comes from here or from the first abx_exec_next(): E3005
 * with command_status for the program, E4001 or E4002 for cwd, E8002 for a user
 * that is not there, E8004 for one that the agent may not become. Nothing ran. */
ABX_API abx_exec *abx_exec_start(abx_sandbox *b, const abx_exec_options *o, abx_error *e);

/* The next event: 1, *event is filled. 0: nothing yet (wait = 0 only). -1: the
 * result is unknown, and the error says why; never a made-up exit code. With
 * wait != 0 it waits, and cancel_fd ends the wait; a poll loop of one's own
 * watches that descriptor itself. After ABX_EXIT, ABX_DETACHED, or a failure
 * but ABX_CANCELLED, nothing follows: E8002.
 *
 * What the last event held counts as used, and the command may print as much
 * more. The connection is looked after by this call alone: it should be made
 * after each wake-up of abx_exec_want(), also by whoever has no room for output
 * (abx_exec_hold()); 20 seconds without it, and the agent ends a command that is
 * not held. */
ABX_API int abx_exec_next(abx_exec *x, int wait, abx_event *event, abx_error *e);
ABX_API abx_want abx_exec_want(const abx_exec *x);

/* Ends the remote process group: TERM (by the agent: HUP), and KILL when it
 * does not go within 2 seconds or so. How the command ended comes from
 * abx_exec_next() as ever. Before the command's name or number came, and after
 * ABX_EXIT, this may fail. */
ABX_API int abx_exec_kill(abx_exec *x, abx_error *e);

/* The command's process, for abx_process_signal() and abx_process_stdin(). NULL
 * as long as it is not known: it comes with the first events of a command that
 * was started with tell_pid. Good until abx_exec_free(). */
ABX_API const char *abx_exec_pid(const abx_exec *x);

/* These say what is to be said and do not wait; it goes out while events are
 * asked for. E8004: the command runs by the backend's own calls, which cannot
 * do it. abx_exec_write: how many bytes were taken, 0 when there is no room
 * now: abx_exec_want() wakes when there may be. */
ABX_API ptrdiff_t abx_exec_write(abx_exec *x, const void *p, size_t size, abx_error *e);
ABX_API int abx_exec_end_input(abx_exec *x, abx_error *e);
/* To its process group. What is left of that when the command has ended is
 * ended too, with TERM, and KILL after 2 seconds. */
ABX_API int abx_exec_signal(abx_exec *x, int number, abx_error *e);
ABX_API int abx_exec_resize(abx_exec *x, int cols, int rows, abx_error *e);
/* For a loop whose reader takes nothing now. 1: no more output is asked for
 * until `on` is 0; what is on its way already still comes, some MiB at most, so
 * go on calling abx_exec_next(), which keeps the connection alive. 0: this way of
 * running cannot do it; do not call abx_exec_next() as long as there is no room. */
ABX_API int abx_exec_hold(abx_exec *x, int on);
/* Leaves it running, a job or a terminal: abx_exec_job() says under which name.
 * ABX_DETACHED follows, or ABX_EXIT if it was over. */
ABX_API int abx_exec_detach(abx_exec *x, abx_error *e);
ABX_API const char *abx_exec_job(const abx_exec *x);    /* NULL: none, or it is not known yet. Good until abx_exec_free() */
/* NULL is fine. The agent ends a command whose handle is freed before ABX_EXIT,
 * but for jobs and what is held; the backend's own calls let it run on. */
ABX_API void abx_exec_free(abx_exec *x);

/* ---- jobs ----
 *
 * Commands that go on in a sandbox without a handle: those started with `job`,
 * and terminals that were left by abx_exec_detach(), or lost their connection
 * and are held. A job keeps the last MiB of what it printed and, when it has
 * ended, its result, until it is forgotten. All this is the agent's: E8004
 * where it cannot be carried. E8005: there is no such job. */

typedef struct abx_job {
    const char *id;
    const char *state;              /* running, ended, lost: it is gone, and nobody saw how it ended */
    const char *command;            /* its words, shortened */
    const char *pid;                /* its process and group; NULL: not running */
    const char *started_at;         /* RFC 3339, UTC; NULL: not known, here and below */
    const char *ended_at;
    int         tty;
    int         attached;           /* somebody has it */
    int         exit_code;          /* ended: as in abx_event; else -1 */
    int         signal;
    int         timed_out;
    uint64_t    printed;            /* how many bytes, stdout and stderr together, */
    uint64_t    kept_from;          /* and the first of them that is still there */
} abx_job;

/* Calls `each` for every job; the job is good during the call, nonzero from it
 * ends this early. */
ABX_API int abx_jobs(abx_sandbox *b, int (*each)(void *ctx, const abx_job *j), void *ctx, abx_error *e);

typedef struct abx_attach_options {
    uint64_t    offset;             /* how much of what it printed is not wanted again */
    int         take;               /* whoever has it now loses it; otherwise that is E8003 */
    int         watch;              /* look on: whoever has it keeps it, and there is no input, signal or resizing */
    int         cols, rows;         /* a terminal gets this size; 0: it keeps its own */
} abx_attach_options;

/* Goes on with a job, also with one that has ended: ABX_STARTED, ABX_REPLAY,
 * what it printed from there on, ABX_EXIT. abx_exec_write() and the others work
 * as on a new command. Freeing the handle leaves it running. */
ABX_API abx_exec *abx_job_attach(abx_sandbox *b, const char *id, const abx_attach_options *o, abx_error *e);

/* To its process group (1 to 64). E8005, too, when it has ended. */
ABX_API int abx_job_signal(abx_sandbox *b, const char *id, int number, abx_error *e);
/* Its result and output go. E8003: it is still running. */
ABX_API int abx_job_forget(abx_sandbox *b, const char *id, abx_error *e);

/* Takes what was carried out of the sandbox again: *removed (may be NULL) is how
 * many folders went. E8003: a job lives there that has not been forgotten; with
 * `force` it is ended first. */
ABX_API int abx_remove_agent(abx_sandbox *b, int force, int *removed, abx_error *e);

/* ---- forwarded ports ----
 *
 * Ports of this machine that lead to ports in a sandbox, by the agent, which
 * connects to 127.0.0.1 there (or ::1). An end of either side goes through by
 * itself, a reset too.
 *
 *     abx_forward_port p = {.local = 8080, .remote = 80};
 *     abx_forward *f = abx_forward_open(b, &(abx_forward_options){.ports = &p, .count = 1}, &e);
 *     while (f && abx_forward_step(f, 1, &e) == 0)
 *         continue;
 *     abx_forward_close(f); */

typedef struct abx_forward abx_forward;

typedef struct abx_forward_port {
    const char *address;            /* to listen at, an address; NULL: 127.0.0.1, and ::1 where there is one */
    int         local;              /* 0: a free one */
    int         remote;
} abx_forward_port;

typedef enum abx_forward_kind { ABX_FORWARD_OPENED, ABX_FORWARD_REFUSED, ABX_FORWARD_CLOSED } abx_forward_kind;

typedef struct abx_forward_event {
    abx_forward_kind kind;
    int         local, remote;      /* the ports of the connection */
    const char *reason;             /* why it was refused, or cut; NULL: it ended by itself */
} abx_forward_event;

typedef struct abx_forward_options {
    const abx_forward_port *ports;
    size_t      count;
    void      (*event)(void *ctx, const abx_forward_event *ev);     /* may be NULL */
    void       *ctx;
} abx_forward_options;

/* Listens at all of them, or at none: E5000, the port is taken; E8002. E8004:
 * the agent cannot be carried there, and why. */
ABX_API abx_forward *abx_forward_open(abx_sandbox *b, const abx_forward_options *o, abx_error *e);
/* The port that i listens at. */
ABX_API int abx_forward_local(const abx_forward *f, size_t i);
/* Lets everything go as far as it goes; with wait != 0 after waiting for something
 * to happen. 0, or -1: nothing is forwarded any more. When the link to the
 * sandbox is lost, all connections are reset, and it is made anew (a notice says
 * so; about a minute is tried). Every 20 seconds at least it must be called. */
ABX_API int abx_forward_step(abx_forward *f, int wait, abx_error *e);
/* What a poll loop of one's own waits for: how many there are; `room` of them, at
 * most, are written to `v`. */
ABX_API size_t abx_forward_want(const abx_forward *f, abx_want *v, size_t room);
ABX_API void abx_forward_close(abx_forward *f);         /* NULL is fine */

/* ---- files ---- */

/* Up to `size` bytes into p: how many, 0 at the end, -1 on failure (errno set). */
typedef ptrdiff_t abx_reader(void *ctx, void *p, size_t size);
/* All of the bytes: 0, or -1 on failure (errno set). */
typedef int abx_writer(void *ctx, const void *p, size_t size);

/* Writes a file in the sandbox, whole or not at all. `size` is how much the
 * reader will give, or -1; one that gives more or less fails. mode -1: an
 * existing file keeps its own, a new one gets 0644. Result: the size of what
 * lies there now, or -1. */
ABX_API int64_t abx_write_file(abx_sandbox *b, const char *path, int mode, int64_t size,
                               abx_reader *reader, void *ctx, abx_error *e);
/* Result: how many bytes were written, or -1. */
ABX_API int64_t abx_read_file(abx_sandbox *b, const char *path, abx_writer *writer, void *ctx, abx_error *e);

/* The same between the sandbox and a local file. Download writes a temporary
 * file beside `local` and renames it: nothing half-written is ever seen under
 * that name. Upload sends the local file's mode. */
ABX_API int64_t abx_upload(abx_sandbox *b, const char *local, const char *path, abx_error *e);
ABX_API int64_t abx_download(abx_sandbox *b, const char *path, const char *local, abx_error *e);

/* ---- copying: files and trees, here, there, and between sandboxes ---- */

/* How it goes, and what came of a single entry. */
typedef enum abx_copy_kind {
    ABX_COPY_PROGRESS,              /* now and then, at most ten times a second, and once at the end */
    ABX_COPY_DONE,                  /* one entry is there */
    ABX_COPY_SAME,                  /* it was there already (resume) */
    ABX_COPY_FAILED,                /* it is not; the rest goes on */
} abx_copy_kind;

typedef struct abx_copy_event {
    abx_copy_kind kind;
    const char   *path;             /* of the entry: its source's last part, and what is below it; "" for PROGRESS. As it
                                       is: any bytes. Like `reason` good until the function returns */
    const char   *reason;           /* ABX_COPY_FAILED: what is wrong, in one line, cleaned */
    int64_t       bytes, total;     /* so many of file content have moved, of so many; total -1: not known */
    int64_t       files, total_files;
    const char   *sha256;           /* ABX_COPY_DONE, ABX_COPY_SAME of a file that was verified: in hex; NULL */
} abx_copy_event;

typedef struct abx_copy_options {
    size_t       size;              /* sizeof(abx_copy_options) */
    abx_sandbox *from, *to;         /* NULL: this machine. Not both NULL; two sandboxes of one session, or of two */
    const char *const *paths;       /* in a sandbox: patterns (`*`, `?`, `[...]`, `\x`), unless there is one by that name */
    size_t       path_count;
    const char  *target;
    const char  *user;              /* as whom files are read or written in the sandbox: by the agent. NULL: the daemon's own */
    int          verify;            /* SHA-256 of each file compared. -1: of trees; 0; 1 */
    int          resume;            /* go on where an interrupted copy was, and pass over what is there already: by the agent */
    void       (*event)(void *ctx, const abx_copy_event *ev);   /* NULL: nobody listens */
    void        *ctx;
} abx_copy_options;

typedef struct abx_copied {
    int64_t files, bytes;           /* that were copied, or were there already */
    int64_t failed;                 /* entries that were not */
    int     tree;                   /* a folder was among them */
    char    path[4096];             /* of one file: where it lies now, */
    char    sha256[65];             /* and its hash in hex; "": it was not verified */
} abx_copied;

/* Copies by the rules of `cp -R` (a table is in `abx help copying`): a file, a
 * folder with all that is in it, or "DIR/.", what is in a folder. A pattern counts
 * as several sources, however many it matches. Every file is there whole or not
 * at all; links stay links and are never followed below a path that was named. A
 * single file goes by the backend's own calls, a tree by the carried agent as one
 * stream, and without it file by file: then links are not copied. 0 when something
 * was copied, or there was nothing to copy: out->failed says how many were not.
 * -1: nothing more could be done; what is whole by then stays. E4001: no such
 * path. E4000: a target of another kind, a full disk. E8002: two sources of one
 * name. E8004: what only the agent can do. E8020: what came from the sandbox, or
 * what it says that it has, was none of what an agent sends. */
ABX_API int abx_copy(const abx_copy_options *options, abx_copied *out, abx_error *e);

/* The SHA-256 of a file in the sandbox, in hex; read there by the agent, or all of it here. */
ABX_API int abx_hash_file(abx_sandbox *b, const char *path, char hex[65], abx_error *e);

/* ---- files, one by one ---- */

typedef enum abx_file_type { ABX_FILE, ABX_FOLDER, ABX_LINK, ABX_OTHER } abx_file_type;

typedef struct abx_file_info {
    const char   *name;             /* the last part of its path */
    const char   *path;
    abx_file_type type;
    int64_t       size;             /* -1: not known */
    int           mode;             /* permission bits; -1: not known. The daemon of OpenSandbox tells no set-id and sticky ones */
    const char   *modified;         /* RFC 3339, UTC; NULL: not known */
    const char   *target;           /* where a link leads; NULL: not known, as in a list it never is */
} abx_file_info;

/* NULL on failure, E4001 where there is nothing. Good until the next call on
 * the handle. Links are not followed, here and below. */
ABX_API const abx_file_info *abx_stat(abx_sandbox *b, const char *path, abx_error *e);

/* Calls `each` for what is in a folder, in byte order of names; nonzero from it
 * ends the listing early, which is no failure. The path itself may be a link
 * to a folder. A name that is not UTF-8 has U+FFFD in it and cannot be named. */
ABX_API int abx_list_files(abx_sandbox *b, const char *path, int (*each)(void *ctx, const abx_file_info *f), void *ctx,
                           abx_error *e);
ABX_API int abx_make_folder(abx_sandbox *b, const char *path, abx_error *e);    /* with its parents; one that is there is fine */
/* `to` is the new name, not a folder to move into: a file there is replaced, a
 * folder refused; missing folders are made. */
ABX_API int abx_move(abx_sandbox *b, const char *from, const char *to, abx_error *e);
ABX_API int abx_remove(abx_sandbox *b, const char *path, abx_error *e);         /* a folder with all that is in it */
/* `mode` is octal, up to four digits, or symbolic: "u+x,go-w"; the chmod of the
 * sandbox does it. A link is followed. `deep`: with all that is in a folder. */
ABX_API int abx_chmod(abx_sandbox *b, const char *path, const char *mode, int deep, abx_error *e);

/* What happens to a file or in a folder, told by the agent (E8004 without it).
 * `deep`: in all that is below, too. */
typedef struct abx_watch abx_watch;

typedef enum abx_change { ABX_CREATED, ABX_CHANGED, ABX_REMOVED, ABX_LOST_TRACK, ABX_WATCHING } abx_change;

typedef struct abx_watch_event {
    abx_change  change;             /* a move is REMOVED and CREATED. LOST_TRACK: too much happened, look again.
                                       WATCHING: the first one; what happens from now on is told */
    const char *path;               /* good until the next call */
} abx_watch_event;

ABX_API abx_watch *abx_watch_start(abx_sandbox *b, const char *path, int deep, abx_error *e);
/* 1: *ev is the next one. 0: none now (wait 0). -1: it ended, *e says why. */
ABX_API int abx_watch_next(abx_watch *w, int wait, abx_watch_event *ev, abx_error *e);
ABX_API void abx_watch_close(abx_watch *w);             /* NULL is fine */

/* ---- processes ---- */

typedef struct abx_process {
    const char *pid;                /* what the two calls below take */
    const char *command;
    const char *status;             /* running, stopped */
} abx_process;

/* Calls `each` for every process of the sandbox; nonzero from it ends this early. */
ABX_API int abx_processes(abx_sandbox *b, int (*each)(void *ctx, const abx_process *p), void *ctx, abx_error *e);

/* Writes to the standard input of a process. E8005: there is no such process.
 * E8000: its standard input cannot be written to, as that of a command that was
 * started without open_stdin. E3001: it reads no more, and a part may have
 * arrived. The end of input cannot be said this way. */
ABX_API int abx_process_stdin(abx_sandbox *b, const char *pid, const void *p, size_t size, abx_error *e);

/* Sends signal `number` (1 to 64). "-123" is the process group 123: the pid of
 * a command is the number of its group, too. E8005: there is no such process. */
ABX_API int abx_process_signal(abx_sandbox *b, const char *pid, int number, abx_error *e);

/* ---- providers ---- */

typedef struct abx_provider {
    const char *id;
    const char *name;               /* for people; NULL: as the id */
    const char *name_zh;            /* NULL: as the name */
    const char *version;
    const char *kind;               /* builtin (compiled in), exec, rest, node */
    const char *trust;              /* builtin, local, pinned, unpinned, link */
    const char *const *features;    /* "exec.run", …, in the order of the registry */
    size_t      feature_count;
    const char *error;              /* why it cannot be used; NULL: it can */
    int         is_default;
} abx_provider;

/* Calls `each` for every provider there is, compiled in or installed, each once:
 * the built-in first, the others sorted. Nonzero from it ends this early. */
ABX_API int abx_providers(const abx_options *options, int (*each)(void *ctx, const abx_provider *p), void *ctx,
                          abx_error *e);

/* The default provider's id into id[64], and where it was set: override,
 * environ, dotenv, toml or builtin, into source[16]. */
ABX_API int abx_default_provider(const abx_options *options, char id[64], char source[16], abx_error *e);

/* ---- provider management ----
 *
 * What `abx provider …` does: looking at providers, and putting plugins into
 * HOME/providers, which this abx shares with the other hosts to the byte.
 *
 *     abx_host *h = abx_host_open(NULL, &e);
 *     const abx_details *d = h ? abx_provider_details(h, "opensandbox", &e) : NULL;
 *     ...
 *     abx_host_close(h);
 *
 * What a call on the handle gives out belongs to the handle and is good until
 * the next call on it (also a failing one). Pointers to text in it are never
 * NULL unless said so, and text that comes from a plugin may hold anything but
 * NUL: whoever shows it to a person filters it first.
 *
 * Codes: E8001 no such provider, or not installed; E8002 a setting; E8003 the
 * id is taken or is not to be removed; E8010 source, size, path, lock, a failed
 * verification; E8011 what is there is not what was pinned or installed; E8012
 * policy: consent, pin, transport; E8013 and E8014 the manifest. */

typedef struct abx_host abx_host;

typedef struct abx_strings { const char *const *v; size_t n; } abx_strings;

/* `options` may be NULL; provider, sandbox and their settings are for the calls
 * that resolve a configuration: doctor, and the verification of an install.
 * Goes nowhere near the disk or the network. E8002: options that contradict
 * themselves. */
ABX_API abx_host *abx_host_open(const abx_options *options, abx_error *e);
ABX_API void abx_host_close(abx_host *h);           /* NULL is fine */

/* A setting that a provider declares. */
typedef struct abx_field {
    const char *key;                /* "base_url" */
    const char *type;               /* str int float bool enum path url csv */
    int         secret;             /* never printed, never in argv, never in config.toml */
    int         credential;
    int         required;
    const char *fallback;           /* what it is when nobody sets it, as JSON; "null": nothing */
    const char *variable;           /* "ABX_OPENSANDBOX_BASE_URL" */
    abx_strings aliases;            /* variables that are looked at after that one */
    abx_strings choices;            /* of an enum */
    const char *description, *description_zh;
} abx_field;

/* What a provider says that it is and can do. */
typedef struct abx_details {
    const char *id, *name, *name_zh, *version;
    const char *kind;               /* builtin (compiled in), exec, rest, node */
    const char *trust;              /* builtin, local, pinned, unpinned, link */
    abx_strings features;           /* alphabetical */
    abx_strings cli, python;        /* operations that a command line, an SDK may use: "sandbox.create", … */
    abx_strings inputs, startups;   /* alphabetical */
    const abx_field *fields;        /* in the order in which they are declared */
    size_t      field_count;
    abx_strings inherit;            /* core keys that it sees: declared and agreed to */
    const char *receipt;            /* the text of its receipt, a JSON object; NULL for what is compiled in */
} abx_details;

/* The same for what is compiled in and for what is installed, which wins where
 * both are there. id NULL: the default provider. */
ABX_API const abx_details *abx_provider_details(abx_host *h, const char *id, abx_error *e);

/* Where a plugin comes from. NULL: it has no such thing. */
typedef struct abx_source {
    const char *type;               /* local, link, git, catalog */
    const char *path;               /* local, link */
    const char *url, *ref, *commit, *subdir;            /* git; ref "HEAD" where none was named */
    const char *id, *registry, *archive_sha256;         /* catalog */
} abx_source;

/* A command of its own that a plugin brings along. */
typedef struct abx_plugin_command {
    const char *id, *description;
    const char *effect;             /* read, write, delete */
} abx_plugin_command;

/* What a person is asked before a plugin is put in or replaced: all that it
 * will be allowed to, and all that is known of where it comes from. */
typedef struct abx_plan {
    const char *id, *name, *name_zh, *version;
    const char *kind;               /* exec, rest, node */
    const char *trust;              /* local, pinned, unpinned, link */
    abx_source  source;
    const char *tree_sha256;        /* the strong pin: it proves every byte; "" for a link */
    abx_strings runtime;            /* the command that will run; node: "node" and a file; rest: "rest" and an address */
    abx_strings features, cli, python;
    abx_strings inputs, startups;
    const abx_plugin_command *commands;
    size_t      command_count;
    abx_strings network, filesystem;    /* what it says it reaches and reads: nobody holds it to that */
    abx_strings env_passthrough;    /* variables of this process that it gets */
    int         spawns_processes;
    const abx_field *fields;        /* settings that it gets, secrets among them */
    size_t      field_count;
    abx_strings inherit;            /* core keys that it gets: sandbox_api_key, … */
    abx_strings changes;            /* runtime, security, features, …: what is not as it was agreed to */
    const char *old_version, *old_trust;    /* of what is replaced; NULL: nothing is */
    const char *old_receipt;        /* its text, a JSON object; NULL */
    const char *json;               /* the plan as the other hosts print it, two blanks a level */
} abx_plan;

/* Nonzero for yes. Nothing of the plugin has run, or lies on the disk. */
typedef int abx_consent(void *ctx, const abx_plan *plan);

typedef struct abx_install_options {
    const char *source;             /* a folder, an archive, OWNER/REPO, a git URL, registry:ID */
    const char *ref;                /* git: what to fetch; a full commit id is a pin. It proves the content, not
                                       that the commit is on a branch there, and is as strong as git's SHA-1 */
    const char *subdir;             /* the folder in it */
    const char *sha256;             /* what tree_sha256 must be: the strong pin */
    const char *archive_sha256;     /* what the archive file must hash to */
    int         link;               /* do not copy: run it where it is */
    int         force;              /* replace what is installed under that id */
    int         yes;                /* agreed to; nobody is asked */
    int         allow_unpinned;     /* a branch or a tag is agreed to as well */
    int         allow_insecure_transport;   /* http: and file: */
    int         allow_unverified;   /* what cannot be proved to be the commit is agreed to */
    int         no_verify;          /* do not start it once to see that it works */
    abx_consent *consent;           /* NULL: nobody can be asked, which is a no unless `yes` */
    void       *consent_ctx;
} abx_install_options;

typedef struct abx_installed {
    const char *id, *version, *trust;
    const char *receipt;            /* as the other hosts print it: a JSON object */
} abx_installed;

/* Fetches, checks, asks, puts in, starts it once, and takes it back if that
 * fails. On failure the store is as it was. */
ABX_API const abx_installed *abx_install(abx_host *h, const abx_install_options *o, abx_error *e);

typedef struct abx_update_options {
    const char *ref;                /* NULL: the recorded one */
    int         check;              /* look, but change nothing */
    int         yes, allow_unpinned, allow_insecure_transport, allow_unverified, no_verify;     /* as above */
    abx_consent *consent;
    void       *consent_ctx;
} abx_update_options;

typedef struct abx_updated {
    const char *id;
    const char *status;             /* bundled, pinned, up-to-date, available, updated */
    const char *installed;          /* before: a commit, or a version */
    const char *available;          /* NULL: nobody looked */
    abx_strings changes;            /* as in the plan */
    const char *message;            /* NULL: none */
    const char *receipt;            /* the new one, of a plugin from a catalog; NULL */
} abx_updated;

/* One provider, or with id NULL every installed one in the order of the list;
 * the first failure ends it, and what was done before stays done. *n results. */
ABX_API const abx_updated *abx_update(abx_host *h, const char *id, const abx_update_options *o, size_t *n,
                                      abx_error *e);

/* Back to the tree and receipt before the last change. Its data stays as it is. */
ABX_API const abx_installed *abx_rollback(abx_host *h, const char *id, int no_verify, abx_error *e);

typedef struct abx_uninstalled {
    const char *id;
    int         purged;             /* its data and its settings went, too */
    int         default_reset;      /* it was the default in config.toml; now alicloud-express is */
} abx_uninstalled;

ABX_API const abx_uninstalled *abx_uninstall(abx_host *h, const char *id, int purge, abx_error *e);

/* The default provider, in config.toml; alicloud-express takes the entry out. A
 * provider that is compiled in but not installed gets a notice: other hosts
 * will not find it. */
ABX_API int abx_set_default_provider(abx_host *h, const char *id, abx_error *e);

typedef struct abx_check {
    const char *name;               /* installed, integrity, config, handshake */
    int         ok;
    const char *detail;
    const char *suggestion;         /* what to do, or what the plugin said on its stderr; "" */
} abx_check;

typedef struct abx_report {
    const char *id;
    int         ok;
    const abx_check *checks;
    size_t      count;
} abx_report;

/* Whether a provider can be used (id NULL: the default one). What is wrong with
 * it is in the report; NULL only for what is wrong with the question. */
ABX_API const abx_report *abx_doctor(abx_host *h, const char *id, int handshake, abx_error *e);

typedef struct abx_verified {
    const char *id;
    int         ok;
    const char *trust;
    const char *tree_sha256;        /* what the files must hash to; "" for a link, of which nothing is recorded */
    const char *detail;             /* why it is not ok, in a sentence; "" */
    int         named;              /* the three lists are known; 0: whoever installed it kept no list of its files */
    abx_strings changed, added, missing;
} abx_verified;

/* Whether the files are those that were installed, and which are not. */
ABX_API const abx_verified *abx_verify(abx_host *h, const char *id, abx_error *e);

/* ---- configuration ----
 *
 * What `abx config …` does: looking at settings, and changing HOME/config.toml
 * and, for secrets, HOME/.env, which the other hosts read too. All else in
 * these files stays as it is, comments included.
 *
 * A key is that of a setting of the host ("http_timeout", "provider"), or of
 * the provider in effect ("base_url"), or "providers.ID.KEY" of any provider. */

typedef struct abx_setting {
    const char *key;                /* "base_url" */
    const char *full_key;           /* "providers.opensandbox.base_url": means the same with every provider */
    const char *value;              /* NULL: unset. A secret as stars, but where `reveal` was asked for */
    const char *json;               /* the same in JSON; NULL: unset */
    const char *source;             /* override, environ, dotenv, toml, derived, default; "": unset */
    const char *name;               /* the variable, or "table.key"; "" for the last two */
    const char *file;               /* of dotenv and toml: the file; else "" */
    int         secret;
    int         own;                /* it is the provider's */
    int         settable;           /* abx_config_set() takes it */
} abx_setting;

/* Calls `each` for every setting that there is with the provider in effect, set
 * or not, `provider` first; nonzero from it ends this early. */
ABX_API int abx_config_list(const abx_options *options, int reveal, int (*each)(void *ctx, const abx_setting *s),
                            void *ctx, abx_error *e);

/* Calls `each` once. E8002: there is no such setting. */
ABX_API int abx_config_get(const abx_options *options, const char *key, int reveal,
                           int (*each)(void *ctx, const abx_setting *s), void *ctx, abx_error *e);

typedef struct abx_stored {
    char file[4096];                /* where it is kept */
    char name[256];                 /* the variable, or "table.key" */
} abx_stored;

/* `exposed`: the value stood where others can read it, as on a command line; a
 * secret is refused then. What comes first all the same (the environment, …) is
 * said by a notice. E8002: no such setting, a value that its type does not
 * allow, a file that is not understood and stays as it is. E8001 and others:
 * the default provider must be one that can be used. */
ABX_API int abx_config_set(const abx_options *options, const char *key, const char *value, int exposed,
                           abx_stored *stored, abx_error *e);
/* *removed: it was there. */
ABX_API int abx_config_unset(const abx_options *options, const char *key, abx_stored *stored, int *removed,
                             abx_error *e);

typedef struct abx_config_paths {
    char home[4096];                /* ABX_HOME, else ~/.abx */
    char config[4096];              /* config.toml in it */
    char secrets[4096];             /* .env in it */
} abx_config_paths;

ABX_API int abx_config_files(const abx_options *options, abx_config_paths *out, abx_error *e);

/* ---- version ---- */

typedef struct abx_build {
    const char *version;            /* "0.1.0" */
    int         output_version;     /* of the JSON documents */
    const char *commit;             /* "unknown" without git, "…-dirty" */
    const char *tls;                /* "Mbed TLS 3.6.7", "none" */
    const char *zlib;               /* "1.3.1" */
    const char *libc;
    const char *target;
    const char *ca_date;            /* of the embedded roots; "none" */
} abx_build;

ABX_API const abx_build *abx_build_info(void);

#ifdef __cplusplus
}
#endif

#endif
