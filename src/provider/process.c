#include "provider/process.h"

#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include "os/random.h"
#include "provider/execd_command.h"

enum {
    PROCESS_GONE = 20,      /* our commands' exit statuses: no such process, */
    PROCESS_NO_PIPE = 23,   /* standard input is no pipe, */
    PROCESS_NO_PROC = 24,   /* there is no /proc */
    PROCESS_PIECE = 16384,  /* fed by one command: four characters a byte must fit an argument of 128 KiB */
    PROCESS_FEED_MS = 10000,    /* for a process to take a piece when its pipe is full */
};

static bool process__run(Execd *x, ExecdRun *run, const char *what, Arena *a, Deadline d, Err *err)
{
    if (!execd_command_run(x, run, a, d, err))
        return err_wrap(err, "cannot %s", what);
    if (run->exit_code == 0)
        return true;
    if (run->exit_code == PROCESS_NO_PROC)
        return err_set(err, ERR_REMOTE, E8000, "cannot %s: the sandbox has no /proc", what);
    return err_set(err, ERR_REMOTE, E8000, "cannot %s: %.*s", what,
                   STR_ARG(run->said.n ? run->said
                                       : arena_fmt(a, "the sandbox's command ended with status %d", run->exit_code)));
}

/* A number from 1 up; `group` allows "-N", the process group N. 1 is init, and
 * -1 would be everybody. */
static bool process__pid(Str pid, bool group, Err *err)
{
    int64_t n;

    if (num_i64(pid, &n) && n <= INT32_MAX && pid.p[0] != '0' && (n >= 1 || (group && n < -1 && n >= -INT32_MAX)))
        return true;
    return err_set(err, ERR_USAGE, E8002, "\"%.*s\" is no process", STR_ARG(pid));
}

static bool process__gone(Str pid, Err *err)
{
    return err_set(err, ERR_NOT_FOUND, E8005, "there is no process %.*s in the sandbox", STR_ARG(pid));
}

/* ---- listing ---- */

/* The words of a command line are separated by NUL; a process without any has a
 * name in /proc. The listing's own shell is left out, and what has ended. */
static const char process__lister[] =
    "[ -r /proc/self/stat ] || exit 24; for d in /proc/[0-9]*; do p=${d#/proc/}; [ \"$p\" = $$ ] && continue; "
    "{ read -r s <$d/stat; } 2>/dev/null || continue; s=${s##*) }; s=${s%% *}; case $s in Z|X) continue;; esac; "
    "c=$({ tr '\\000\\012\\015' '   ' <$d/cmdline; } 2>/dev/null); "
    "[ -n \"$c\" ] || { { read -r c <$d/comm; } 2>/dev/null && c=\"[$c]\"; }; "
    "printf '%s %s %s\\n' \"$p\" \"$s\" \"$c\"; done";

bool process_list(Lifecycle *l, Str id, Arena *a, ProcessList *out, Deadline d, Err *err)
{
    Execd    x;
    ExecdRun run = {.line = str_from(process__lister)};
    Str      row, pid, state;
    uint64_t number;
    size_t   n = 0, most = 1;

    if (!execd_find(l, id, E8000, a, &x, d, err) || !process__run(&x, &run, "list the processes", a, d, err))
        return false;
    for (size_t i = 0; i < run.out.n; i++)
        most += run.out.p[i] == '\n';
    ProcessInfo *items = arena_array(a, most, sizeof *items);
    while (str_cut(&run.out, '\n', &row)) {
        if (!str_cut(&row, ' ', &pid) || !str_cut(&row, ' ', &state) || !num_u64(pid, &number))
            continue;
        bool stopped = str_eq(state, STR("T")) || str_eq(state, STR("t"));
        items[n++] = (ProcessInfo){pid, str_trim(row), stopped ? STR("stopped") : STR("running")};
    }
    *out = (ProcessList){items, n};
    return true;
}

/* ---- signals ---- */

bool process_signal(Lifecycle *l, Str id, Str pid, int number, Deadline d, Err *err)
{
    Arena a = arena_make(ARENA_COMMAND);
    Execd x;
    bool  ok = process__pid(pid, true, err);

    if (ok && (number < 1 || number > 64))
        ok = err_set(err, ERR_USAGE, E8002, "%d is no signal: 1 to 64 are", number);
    ok = ok && execd_find(l, id, E8000, &a, &x, d, err);
    if (ok) {
        Str      alone = pid.p[0] == '-' ? str_from_to(pid, 1, pid.n) : pid;
        ExecdRun run = {.line = arena_fmt(&a, "kill -%d %.*s || { [ -d /proc/%.*s ] && exit 1; exit %d; }", number,
                                          STR_ARG(pid), STR_ARG(alone), PROCESS_GONE)};
        ok = process__run(&x, &run, "send the signal", &a, d, err);
        if (!ok && run.exit_code == PROCESS_GONE)
            process__gone(alone, err);
    }
    arena_free(&a);
    return ok;
}

/* ---- standard input ---- */

void process_open_stdin(Buf *line)
{
    ABX_UNSET char name[33];

    random_hex(name, 32);
    buf_addf(line, "f=/tmp/.abx-%s; mkfifo -m 600 $f && exec 0<>$f && rm -f $f || exit 126; unset f; ", name);
}

/* The piece as a printf format that every shell writes back as these bytes. */
static Str process__format(Str piece, Arena *a)
{
    char *to = arena_alloc(a, piece.n * 4 + 1), *p = to;

    for (size_t i = 0; i < piece.n; i++) {
        unsigned char c = (unsigned char)piece.p[i];
        if (c >= ' ' && c < 0x7f && c != '\\' && c != '%' && c != '\'' && c != '-') {
            *p++ = (char)c;
        } else {
            *p++ = '\\';
            *p++ = (char)('0' + (c >> 6));
            *p++ = (char)('0' + (c >> 3 & 7));
            *p++ = (char)('0' + (c & 7));
        }
    }
    return (Str){to, (size_t)(p - to)};
}

static bool process__feed(Execd *x, Str pid, Str piece, Arena scratch, Deadline d, Err *err)
{
    Str      format = process__format(piece, &scratch);
    char    *line = arena_alloc(&scratch, format.n + 256);
    Str      head = arena_fmt(&scratch, "[ -d /proc/%.*s ] || exit %d; [ -p /proc/%.*s/fd/0 ] || exit %d; printf '",
                              STR_ARG(pid), PROCESS_GONE, STR_ARG(pid), PROCESS_NO_PIPE);
    Str      tail = arena_fmt(&scratch, "' >/proc/%.*s/fd/0", STR_ARG(pid));

    memcpy(line, head.p, head.n);
    memcpy(line + head.n, format.p, format.n);
    memcpy(line + head.n + format.n, tail.p, tail.n);
    ExecdRun run = {.line = {line, head.n + format.n + tail.n}, .timeout_ms = PROCESS_FEED_MS};
    if (process__run(x, &run, "write to the process", &scratch, d, err))
        return true;
    if (run.exit_code == PROCESS_GONE)
        return process__gone(pid, err);
    if (run.timed_out)
        return err_set(err, ERR_TIMEOUT, E3001, "process %.*s does not read its standard input", STR_ARG(pid)) ||
               err_hint(err, "A part of what was sent may have arrived.");
    if (run.exit_code != PROCESS_NO_PIPE)
        return false;
    err_set(err, ERR_REMOTE, E8000, "the standard input of process %.*s is no pipe: nothing can be written to it",
            STR_ARG(pid));
    return err_hint(err, "OpenSandbox gives a command /dev/null; start one that reads behind a pipe of its own.");
}

bool process_stdin(Lifecycle *l, Str id, Str pid, Str bytes, Deadline d, Err *err)
{
    Arena a = arena_make(ARENA_COMMAND);
    Execd x;
    bool  ok = process__pid(pid, false, err) && execd_find(l, id, E8000, &a, &x, d, err);

    for (bool more = ok; more; more = ok && bytes.n > 0) {
        size_t n = bytes.n < PROCESS_PIECE ? bytes.n : PROCESS_PIECE;
        ok = process__feed(&x, pid, str_from_to(bytes, 0, n), a, d, err);
        str_skip(&bytes, n);
    }
    arena_free(&a);
    return ok;
}
