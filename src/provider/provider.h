/* provider.h - the contract that every backend fulfils.
 *
 * A Provider is one table of functions over one backend, made with settings
 * that were resolved for it: it reads no configuration, no environment, no
 * store. Everything that abx does with a sandbox goes through here, whether
 * the backend is compiled in or a plugin.
 *
 * To add a backend: write provider/NAME.c with a `const ProviderKind`, list it
 * in host/registry.c, give its configuration fields there, and it is there
 * for the CLI, the library and the plugin server alike.
 *
 * Every call takes a deadline and an Err. An operation that the kind does not
 * declare (NULL in the table) is refused by provider_can() with E8004 before
 * anything is sent. Codes: E2009 for a sandbox that is not there, E1001 for a
 * refused key, E5000/E5001 for the way there, E4001 for a missing file.
 *
 * Memory: results live in the arena that is handed in.
 */
#ifndef ABX_PROVIDER_H
#define ABX_PROVIDER_H

#include "base/arena.h"
#include "base/err.h"
#include "base/flow.h"
#include "net/header.h"
#include "net/stream.h"
#include "os/clock.h"

typedef struct Provider Provider;

typedef struct Pair { Str key, value; } Pair;

typedef enum SandboxState {
    SANDBOX_UNKNOWN, SANDBOX_CREATING, SANDBOX_RUNNING, SANDBOX_PAUSING, SANDBOX_PAUSED,
    SANDBOX_RESUMING, SANDBOX_STOPPING, SANDBOX_STOPPED, SANDBOX_ERROR,
} SandboxState;

/* What is known of a sandbox; empty, 0 or -1 where it is not. */
typedef struct SandboxInfo {
    Str          id;
    Str          template;      /* as the backend names it: the image */
    SandboxState state;
    Str          status;        /* our word for the state, or the backend's own in lower case */
    Str          reason;        /* the backend's sentence about the state */
    const Pair  *metadata;
    size_t       metadata_count;
    Str          started_at;    /* RFC 3339, UTC, as the backend gave it */
    Str          end_at;
    int64_t      timeout_s;     /* the lifetime that was asked for: known after create alone; -1 */
    Str          region;
} SandboxInfo;

typedef struct CreateRequest {
    Str         template;       /* "base" is the provider's own default image */
    int64_t     timeout_s;      /* 0: the sandbox does not expire */
    const Pair *env;
    size_t      env_count;
    const Pair *metadata;
    size_t      metadata_count;
    const Str  *entrypoint;     /* NULL: automatic */
    size_t      entrypoint_count;
    Str         cpu, memory;    /* "500m", "512Mi"; empty: the configured ones */
} CreateRequest;

typedef struct ExecRequest {
    const Str  *argv;           /* one word is a shell line, two or more are an argv that arrives exactly */
    size_t      argc;
    const Pair *env;
    size_t      env_count;
    Str         cwd;            /* empty: the daemon's own */
    int64_t     timeout_ms;     /* 0: none; at its end the process group is killed */
    bool        tell_pid;       /* exec_pid() will be asked */
    bool        open_stdin;     /* process_stdin() is to work: without it the command finds the end of input at once */
    /* What follows asks for the carried agent (provider/carry.h), or for a
     * backend that can do it by itself; others refuse it with E8004. */
    Str         user;           /* a name or a number; empty: the daemon's own */
    bool        input;          /* exec_write() will feed its stdin, exec_end_input() end it */
    bool        tty;            /* a terminal of this size; what it prints is EXEC_OUT, and it takes input */
    int         cols, rows;
    bool        job;            /* goes on without this call, under the name that exec_job() tells */
    int64_t     hold_s;         /* tty: lives on so long when the connection is lost */
    bool        tell_start;     /* EXEC_STARTED is wanted */
} ExecRequest;

typedef enum ExecEventKind {
    EXEC_OUT,           /* bytes for stdout */
    EXEC_ERR,           /* bytes for stderr */
    EXEC_EXIT,          /* the result; nothing follows */
    EXEC_STARTED,       /* `pid` and `job` are known */
    EXEC_REPLAY,        /* attached again: what follows begins at `offset` of its output */
    EXEC_DETACHED,      /* it goes on without this call; nothing follows */
} ExecEventKind;

typedef struct ExecEvent {
    ExecEventKind kind;
    Str           bytes;        /* EXEC_OUT, EXEC_ERR: good until the next call */
    int           exit_code;    /* EXEC_EXIT: 0 ... 255; -1 when a signal ended it */
    int           signal;       /* its number, 0: none, -1: the backend does not say which */
    bool          timed_out;    /* the request's timeout ended it */
    int64_t       duration_ms;
    uint64_t      offset;       /* EXEC_REPLAY */
} ExecEvent;

typedef struct ExecCall ExecCall;

/* What can be done with a running command. Those that are NULL the backend
 * cannot do. */
typedef struct ExecOps {
    /* STEP_DONE: *ev is the next event. STEP_MORE: nothing there; wait as `want`
     * says, at most until `deadline`, and call again. STEP_ERR: the stream
     * broke, or fell silent: the result is unknown. */
    Step (*next)(ExecCall *x, ExecEvent *ev, Err *err);
    StreamWant (*want)(const ExecCall *x);
    Deadline (*deadline)(const ExecCall *x);
    /* Ends the remote process group (TERM, then KILL). */
    bool (*kill)(ExecCall *x, Deadline d, Err *err);
    /* The command's process, as process_stdin and process_signal take it; empty
     * as long as it is not known. Good until `close`. */
    Str (*pid)(const ExecCall *x);
    void (*close)(ExecCall *x);             /* does not stop the command of a backend that lets it run on */

    /* These never wait: what they say is on its way, and flows while `next` is
     * called. write: *n of the bytes were taken, 0 when there is no room now. */
    bool (*write)(ExecCall *x, Str bytes, size_t *n, Err *err);
    bool (*end_input)(ExecCall *x, Err *err);
    bool (*signal)(ExecCall *x, int number, Err *err);      /* to the group; what is left of it when the command ends goes, too */
    bool (*resize)(ExecCall *x, int cols, int rows, Err *err);
    /* `on`: no credit is given for output any more, until it is off; `next` goes on. NULL: there are no credits. */
    void (*hold)(ExecCall *x, bool on);
    bool (*detach)(ExecCall *x, Err *err);  /* it goes on, under the name that `job` tells; nothing follows but its end here */
    Str (*job)(const ExecCall *x);          /* empty: it cannot be attached to again */
} ExecOps;

/* A running command; first member of each backend's own struct. */
struct ExecCall { const ExecOps *ops; };

typedef struct PortUrl {
    Str     url;                /* with scheme */
    Headers headers;            /* to be sent with every request to it */
} PortUrl;

typedef enum FileType { FILE_REGULAR, FILE_FOLDER, FILE_LINK, FILE_OTHER } FileType;

typedef struct FileInfo {
    Str      name;              /* the last part of its path */
    Str      path;
    FileType type;
    int64_t  size;              /* -1: not known */
    int      mode;              /* permission bits; -1: not known */
    Str      modified;          /* RFC 3339, UTC; empty: not known */
    Str      target;            /* where a link leads; empty: not known */
} FileInfo;

typedef struct FileList { const FileInfo *items; size_t count; } FileList;

typedef struct ProcessInfo {
    Str pid;                    /* what process_stdin and process_signal take */
    Str command;
    Str status;                 /* "running" */
} ProcessInfo;

typedef struct ProcessList { const ProcessInfo *items; size_t count; } ProcessList;

typedef struct ListPage {
    const SandboxInfo *items;
    size_t             count;
    bool               more;    /* there is another page behind this one */
} ListPage;

/* A setting of a backend, as it declares it. The host resolves it through the
 * layers (environment variable ABX_<ID>_<KEY>) and checks it against its type. */
typedef enum FieldType {
    FIELD_STR, FIELD_URL, FIELD_PATH, FIELD_INT, FIELD_FLOAT, FIELD_BOOL, FIELD_CSV, FIELD_ENUM,
    FIELD_JSON,                 /* no field is declared so: the default of a manifest that is a list or a table */
} FieldType;

typedef struct ProviderField {
    const char *key;            /* "base_url" */
    FieldType   type;
    bool        secret;         /* never printed, never in argv */
    const char *fallback;       /* the value when no layer has one; NULL: none */
    const char *help;
} ProviderField;

/* Settings that were resolved: values in their type's own spelling; unset keys
 * are not there. Integers are decimal and fit 64 bits, booleans "true" and
 * "false", FIELD_JSON is JSON in one line. Floats are the shortest text that is
 * the same number and is JSON: "1.5", "100.0", "1e-05", "1e+16"; "inf", "-inf"
 * and "nan" are the three that JSON has no word for. */
typedef struct Settings { const Pair *v; size_t n; } Settings;

ABX_FN Str provider_setting(Settings s, const char *key);  /* p NULL: unset */

typedef struct ProviderHost ProviderHost;

typedef struct ProviderKind {
    Str id;                     /* "opensandbox" */
    Str name;                   /* "OpenSandbox" */
    const ProviderField *fields;
    size_t field_count;
    const char *const *features;    /* what it can do, in the words and the order of the specification (2.5) */
    size_t feature_count;
    bool any_id;                /* an id of a sandbox never becomes a part of a path: `/` may be in it */

    /* Copies what it keeps. False: E8002, a setting that cannot be used. */
    bool (*open)(Settings s, const ProviderHost *host, Provider **out, Err *err);

    bool (*create)(Provider *p, const CreateRequest *rq, Arena *a, SandboxInfo *out, Deadline d, Err *err);
    bool (*get)(Provider *p, Str id, Arena *a, SandboxInfo *out, Deadline d, Err *err);
    /* page counts from 1; `wanted` is how many the caller wants of all pages
     * together, 0 is all: a page may be as large as that, or of another size */
    bool (*list)(Provider *p, const Pair *metadata, size_t metadata_count, int page, int64_t wanted, Arena *a,
                 ListPage *out, Deadline d, Err *err);
    /* *killed is false when it was gone already: that is no failure */
    bool (*kill)(Provider *p, Str id, bool *killed, Deadline d, Err *err);
    bool (*set_timeout)(Provider *p, Str id, int64_t seconds, Arena *a, SandboxInfo *out, Deadline d, Err *err);
    bool (*pause)(Provider *p, Str id, Arena *a, SandboxInfo *out, Deadline d, Err *err);
    bool (*resume)(Provider *p, Str id, Arena *a, SandboxInfo *out, Deadline d, Err *err);
    bool (*port_url)(Provider *p, Str id, int port, Arena *a, PortUrl *out, Deadline d, Err *err);

    /* Starts a command; the call must be closed. `d` is for starting alone. */
    bool (*exec)(Provider *p, Str id, const ExecRequest *rq, ExecCall **out, Deadline d, Err *err);
    /* How this program is carried into a sandbox; NULL: it cannot be. */
    const struct CarrierOps *carrier;

    /* Writes all of src to path, whole or not at all: what was there before
     * stays until the new content is complete. mode -1: an existing file keeps
     * its own, a new one gets 0644. *size is what lies there now. Where a folder
     * is, both fail with ERR_REMOTE E4000, sys EISDIR. */
    bool (*file_write)(Provider *p, Str id, Str path, int mode, Source src, int64_t *size, Deadline d, Err *err);
    bool (*file_read)(Provider *p, Str id, Str path, Sink to, int64_t *size, Deadline d, Err *err);

    /* Files and folders; links are not followed but by file_read and, where the
     * path itself is one, by file_list. E4001 where there is none. file_list
     * answers in byte order of names; folder_make makes the parents too and is
     * content with one that is there; file_move replaces a file, makes missing
     * folders, and moves nothing onto a folder; file_remove removes a folder with
     * all that is in it. */
    bool (*file_stat)(Provider *p, Str id, Str path, Arena *a, FileInfo *out, Deadline d, Err *err);
    bool (*file_list)(Provider *p, Str id, Str path, Arena *a, FileList *out, Deadline d, Err *err);
    bool (*folder_make)(Provider *p, Str id, Str path, Deadline d, Err *err);
    bool (*file_move)(Provider *p, Str id, Str from, Str to, Deadline d, Err *err);
    bool (*file_remove)(Provider *p, Str id, Str path, Deadline d, Err *err);

    int64_t file_max;           /* no larger file can go through file_write and file_read; 0: any */

    bool (*process_list)(Provider *p, Str id, Arena *a, ProcessList *out, Deadline d, Err *err);
    /* Bytes to the standard input of a process. E8005: there is none with this
     * number. E8000: its standard input is not one that can be written to. */
    bool (*process_stdin)(Provider *p, Str id, Str pid, Str bytes, Deadline d, Err *err);
    /* A pid behind a '-' means the process group of that number. */
    bool (*process_signal)(Provider *p, Str id, Str pid, int number, Deadline d, Err *err);

    /* From now on wait without the cancel fd: cleaning up. */
    void (*ignore_cancel)(Provider *p);
    void (*close)(Provider *p);             /* frees it */
} ProviderKind;

/* What a provider is given besides its settings. */
struct ProviderHost {
    int   cancel_fd;            /* -1: none */
    void (*notice)(void *ctx, Str line);    /* something the person should know, such as a raised TTL */
    void  *notice_ctx;
    void (*trace)(void *ctx, const char *line);     /* NULL: nobody listens */
    void  *trace_ctx;
    Str    ca_file;
    Str    agent_path;          /* the program that is carried into sandboxes (provider/carry.h); empty: none */
};

/* First member of each backend's own struct. */
struct Provider {
    const ProviderKind *kind;
    ProviderHost        host;
};

/* For a kind that runs commands by its own calls and has none for any of this:
 * false, E8004, if the request asks for what the carried agent does. */
ABX_FN bool provider_plain(const ExecRequest *rq, Err *err);

/* The words of the interface: "running", "paused", ... */
ABX_FN Str provider_state_word(SandboxState state);

#endif
