#include "provider/entry.h"

#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include "base/time.h"
#include "base/utf8.h"
#include "data/shell.h"
#include "provider/execd_command.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

bool entry_is_hard(Str path)
{
    return str_has(path, '$') || str_has_control(path);
}

bool entry_is_folder(Str path, Err *err)
{
    err_set(err, ERR_REMOTE, E4000, "%.*s is a folder in the sandbox", STR_ARG(path));
    err->sys = EISDIR;
    return false;
}

bool entry_path(Str path, bool folder_ok, Arena *a, Str *out, Err *err)
{
    if (!path.n)
        return err_set(err, ERR_USAGE, E8002, "the path in the sandbox is empty");
    if (!utf8_valid(path))
        return err_set(err, ERR_USAGE, E8002,
                       "the path in the sandbox is not UTF-8, and OpenSandbox can name no other");
    if (path.n + (path.p[0] != '/') >= ENTRY_PATH)
        return err_set(err, ERR_USAGE, E8002, "the path in the sandbox is longer than %d bytes", ENTRY_PATH - 1);
    if (!folder_ok && path.p[path.n - 1] == '/')
        return err_set(err, ERR_USAGE, E8002, "%.*s names a folder: say the file's name too", STR_ARG(path));
    while (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    *out = path.p[0] == '/' ? path : arena_fmt(a, "/%.*s", STR_ARG(path));
    return true;
}

Str entry_quoted(Str word, Arena *a)
{
    Buf b = buf_make(LIMIT_URL * 4);

    shell_quote(&b, word);
    Str text = arena_str(a, buf_str(&b));
    buf_free(&b);
    return text;
}

Str entry_folder(Str path)
{
    while (path.n > 1 && path.p[path.n - 1] != '/')
        path.n--;
    while (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    return path;
}

static Str entry__name(Str path)
{
    size_t at = path.n;

    while (at > 0 && path.p[at - 1] != '/')
        at--;
    return path.n == 1 ? path : str_from_to(path, at, path.n);
}

static bool entry__succeeded(const ExecdRun *run, const char *what, Str path, Arena *a, Err *err)
{
    switch (run->exit_code) {
    case 0:
        return true;
    case ENTRY_MISSING:
        return err_set(err, ERR_NOT_FOUND, E4001, "there is nothing at %.*s in the sandbox", STR_ARG(path));
    case ENTRY_IS_FOLDER:
        return entry_is_folder(path, err);
    case ENTRY_NO_FOLDER:
        return err_set(err, ERR_REMOTE, E4000, "%.*s is no folder in the sandbox", STR_ARG(path));
    default:
        return err_set(err, ERR_REMOTE, E4000, "cannot %s %.*s: %.*s", what, STR_ARG(path),
                       STR_ARG(run->said.n ? run->said
                                           : arena_fmt(a, "the sandbox's command ended with status %d", run->exit_code)));
    }
}

bool entry_run(Execd *x, Str line, const char *what, Str path, Str *out, Arena *a, Deadline d, Err *err)
{
    ExecdRun run = {.line = line};

    if (!execd_command_run(x, &run, a, d, err))
        return err_wrap(err, "cannot %s %.*s", what, STR_ARG(path));
    *out = run.out;
    return entry__succeeded(&run, what, path, a, err);
}

/* ---- what is told of one ---- */

/* Up to four octal digits; -1: it is something else. */
static int entry__mode_from_digits(int64_t digits)
{
    int mode = 0;

    for (int shift = 0; digits > 0 && digits % 10 < 8 && shift < 12; shift += 3, digits /= 10)
        mode |= (int)(digits % 10) << shift;
    return digits ? -1 : mode;
}

static Str entry__time(int64_t unix_ms, Arena *a)
{
    ABX_UNSET char text[TIME_SIZE];

    return time_text(unix_ms, unix_ms % 1000 != 0, text) ? arena_str(a, str_from(text)) : (Str){0};
}

/* "41ed 4096 1796026150[ 0:0]": what `stat` says of the raw mode, size, time and owner. */
static bool entry__from_command(Str said, Entry *out, Arena *a)
{
    Str      rest = str_trim(said), mode, size, at;
    uint64_t bits;
    int64_t  bytes, seconds;

    if (!str_cut(&rest, ' ', &mode) || !str_cut(&rest, ' ', &size) || !str_cut(&rest, ' ', &at) || !num_hex(mode, &bits) ||
        !num_i64(size, &bytes) || !num_i64(at, &seconds) || seconds > INT64_MAX / 1000 || seconds < INT64_MIN / 1000)
        return false;
    *out = (Entry){
        .there = true,
        .type = S_ISREG(bits) ? FILE_REGULAR : S_ISDIR(bits) ? FILE_FOLDER : S_ISLNK(bits) ? FILE_LINK : FILE_OTHER,
        .mode = (int)(bits & 07777), .size = bytes, .owner = arena_str(a, rest), .modified = entry__time(seconds * 1000, a),
    };
    return true;
}

static bool entry__from_json(const Json *file, Entry *out, Arena *a)
{
    Str     type = json_str(json_get(file, "type"));
    Str     owner = json_str(json_get(file, "owner")), group = json_str(json_get(file, "group"));
    int64_t at;

    if (!file || file->type != JSON_OBJECT)
        return false;
    *out = (Entry){
        .there = true, .size = json_int(json_get(file, "size"), -1),
        .mode = entry__mode_from_digits(json_int(json_get(file, "mode"), -1)),
        .type = str_eq(type, STR("file")) ? FILE_REGULAR : str_eq(type, STR("directory")) ? FILE_FOLDER
              : str_eq(type, STR("symlink")) ? FILE_LINK : FILE_OTHER,
    };
    if (owner.n && group.n && owner.n + group.n < 200)
        out->owner = arena_fmt(a, "%.*s:%.*s", STR_ARG(owner), STR_ARG(group));
    if (time_parse(json_str(json_get(file, "modified_at")), &at))
        out->modified = entry__time(at, a);
    return true;
}

static bool entry__look_by_command(Execd *x, Str path, Entry *out, Arena *a, Deadline d, Err *err)
{
    Str q = entry_quoted(path, a), said;
    Str line = arena_fmt(a, "[ -e %s ] || [ -L %s ] || exit 0; stat -c '%%f %%s %%Y %%u:%%g' -- %s", q.p, q.p, q.p);

    if (!entry_run(x, line, "look at", path, &said, a, d, err))
        return false;
    if (str_trim(said).n && !entry__from_command(said, out, a))
        return err_set(err, ERR_INPUT, E8020, "cannot look at %.*s: the sandbox's stat answers in another form",
                       STR_ARG(path));
    return true;
}

bool entry_look(Execd *x, Str path, Entry *out, Arena *a, Deadline d, Err *err)
{
    *out = (Entry){0};
    if (entry_is_hard(path))
        return entry__look_by_command(x, path, out, a, d, err);

    ExecdCall  call = {.method = "GET", .path = "/files/info", .query = arena_fmt(a, "path=%s", url_encode(path, a).p),
                       .idempotent = true, .what = "look at the file", .code = E4000,
                       .deadline = clock_sooner(d, clock_after(x->server->call_ms))};
    ABX_UNSET ExecdReply reply;
    ABX_UNSET Err no;
    if (!execd_ask(x, &call, a, &reply, &no)) {
        if (no.code == E4001)
            return true;
        *err = no;
        return false;
    }
    if (json_count(reply.json) != 1 || reply.json->type != JSON_OBJECT || !entry__from_json(&reply.json->items[0], out, a))
        return err_set(err, ERR_INPUT, E8020, "the daemon's answer about %.*s describes no file", STR_ARG(path));
    return true;
}

static FileInfo entry__info(const Entry *e, Str name, Str path)
{
    return (FileInfo){.name = name, .path = path, .type = e->type, .size = e->size, .mode = e->mode,
                      .modified = e->modified};
}

bool entry_stat(Lifecycle *l, Str id, Str path, Arena *a, FileInfo *out, Deadline d, Err *err)
{
    Execd x;
    ABX_UNSET Entry e;
    Str   line, to;
    ABX_UNSET Err no;

    if (!entry_path(path, true, a, &path, err) || !execd_near(l, id, &x, d, err) ||
        !entry_look(&x, path, &e, a, d, err))
        return false;
    if (!e.there)
        return err_set(err, ERR_NOT_FOUND, E4001, "there is nothing at %.*s in the sandbox", STR_ARG(path));
    path = arena_str(a, path);
    *out = entry__info(&e, entry__name(path), path);
    if (e.type != FILE_LINK)
        return true;
    /* The daemon does not say it. What has a line feed, or is not UTF-8, does not arrive as it is: it is not told. */
    line = arena_fmt(a, "readlink -n -- %s && echo //", entry_quoted(path, a).p);
    if (entry_run(&x, line, "read", path, &to, a, d, &no) && str_ends(to, STR("//\n")) &&
        !str_has_control((Str){to.p, to.n - 1}) && utf8_valid(to) && !memmem(to.p, to.n, "\xef\xbf\xbd", 3))
        out->target = (Str){to.p, to.n - 3};
    return true;
}

/* ---- a folder's content ---- */

static int entry__by_name(const void *left, const void *right)
{
    const FileInfo *a = left, *b = right;
    size_t          n = a->name.n < b->name.n ? a->name.n : b->name.n;
    int             order = memcmp(a->name.p, b->name.p, n);

    return order ? order : (a->name.n > b->name.n) - (a->name.n < b->name.n);
}

static Str entry__below(Str folder, Str name, Arena *a)
{
    return arena_fmt(a, "%.*s%s%.*s", STR_ARG(folder), folder.n == 1 ? "" : "/", STR_ARG(name));
}

/* `at` is where the daemon finds the folder, `path` what the caller calls it. */
static bool entry__list_by_daemon(Execd *x, Str at, Str path, Arena *a, FileList *out, Deadline d, Err *err)
{
    ExecdCall  call = {.method = "GET", .path = "/directories/list",
                       .query = arena_fmt(a, "depth=1&path=%s", url_encode(at, a).p), .idempotent = true,
                       .what = "list the folder", .most = LIMIT_LISTING, .code = E4000, .deadline = clock_sooner(d, clock_after(x->server->call_ms))};
    ABX_UNSET ExecdReply reply;
    ABX_UNSET Entry e;

    if (!execd_ask(x, &call, a, &reply, err))
        return false;
    if (!reply.json || reply.json->type != JSON_ARRAY)
        return err_set(err, ERR_INPUT, E8020, "the daemon's answer about %.*s lists no files", STR_ARG(path));
    FileInfo *items = arena_array(a, json_count(reply.json), sizeof *items);
    for (size_t i = 0; i < json_count(reply.json); i++) {
        Str name = entry__name(json_str(json_get(json_at(reply.json, i), "path")));
        if (!entry__from_json(json_at(reply.json, i), &e, a) || !name.n || str_has(name, '/'))
            return err_set(err, ERR_INPUT, E8020, "the daemon's answer about %.*s lists what is no file", STR_ARG(path));
        items[i] = entry__info(&e, name, entry__below(path, name, a));
    }
    *out = (FileList){items, json_count(reply.json)};
    return true;
}

/* The name that stands between "./" and "//\n" in *rest; "/r" in it is a CR,
 * which the stock daemon would take for the end of a line. */
static bool entry__cut_name(Str *rest, Arena *a, Str *name)
{
    size_t n = 0;

    if (!str_starts(*rest, STR("./")))
        return false;
    str_skip(rest, 2);
    while (n + 2 < rest->n && memcmp(rest->p + n, "//\n", 3) != 0)
        n++;
    if (n == 0 || n + 2 >= rest->n)
        return false;
    char *to = arena_alloc(a, n + 1);
    name->p = to;
    for (size_t i = 0; i < n; i++) {
        bool cr = rest->p[i] == '/';
        if (cr && rest->p[++i] != 'r')
            return false;
        *to++ = cr ? '\r' : rest->p[i];
    }
    name->n = (size_t)(to - name->p);
    str_skip(rest, n + 3);
    if (!utf8_valid(*name))
        *name = utf8_clean(a, *name);
    return true;
}

static bool entry__list_by_command(Execd *x, Str path, Arena *a, FileList *out, Deadline d, Err *err)
{
    Str  q = entry_quoted(path, a), said, head, name;
    Str  line = arena_fmt(a, "[ -e %s ] || exit %d; [ -d %s ] || exit %d; cd -P -- %s || exit 1; r=$(printf '\\015'); "
                             "for f in * .*; do case $f in .|..) continue;; esac; [ -e \"$f\" ] || [ -L \"$f\" ] || "
                             "continue; printf './%%s\\0' \"$f\"; done | xargs -0 -r stat -c '%%f %%s %%Y %%n//' -- | "
                             "sed \"s/$r/\\/r/g\"",
                          q.p, ENTRY_MISSING, q.p, ENTRY_NO_FOLDER, q.p);
    ABX_UNSET Entry e;
    size_t n = 0, most = 1;

    if (!entry_run(x, line, "list", path, &said, a, d, err))
        return false;
    for (size_t i = 0; i < said.n; i++)
        most += said.p[i] == '\n';
    FileInfo *items = arena_array(a, most, sizeof *items);
    while (said.n) {
        head = (Str){said.p, str_find(said, '/')};      /* "41ed 4096 1796026150 ." */
        head.n -= head.n > 0;
        str_skip(&said, head.n);
        if (!entry__from_command(head, &e, a) || !entry__cut_name(&said, a, &name))
            return err_set(err, ERR_INPUT, E8020, "cannot list %.*s: the sandbox's stat answers in another form",
                           STR_ARG(path));
        items[n++] = entry__info(&e, name, entry__below(path, name, a));
    }
    *out = (FileList){items, n};
    return true;
}

/* The daemon lists no link: what it leads to, then. */
static bool entry__list_link(Execd *x, Str path, Arena *a, FileList *out, Deadline d, Err *err)
{
    ABX_UNSET Entry e;
    ABX_UNSET Err no;
    Str   real;

    if (!entry_look(x, path, &e, a, d, &no) || !e.there)
        return err_wrap(err, "%.*s", STR_ARG(path));
    if (e.type != FILE_LINK)
        return e.type == FILE_FOLDER
                   ? err_wrap(err, "%.*s", STR_ARG(path))
                   : err_set(err, ERR_REMOTE, E4000, "%.*s is no folder in the sandbox", STR_ARG(path));
    if (!entry_run(x, arena_fmt(a, "cd -P -- %s && pwd", entry_quoted(path, a).p), "list", path, &real, a, d, err))
        return false;
    real = str_trim(real);
    if (real.n && real.p[0] == '/' && utf8_valid(real) && !entry_is_hard(real))
        return entry__list_by_daemon(x, real, path, a, out, d, err);
    return entry__list_by_command(x, path, a, out, d, err);
}

bool entry_list(Lifecycle *l, Str id, Str path, Arena *a, FileList *out, Deadline d, Err *err)
{
    Execd x;
    bool  ok;

    if (!entry_path(path, true, a, &path, err) || !execd_near(l, id, &x, d, err))
        return false;
    path = arena_str(a, path);
    if (entry_is_hard(path))
        ok = entry__list_by_command(&x, path, a, out, d, err);
    else
        ok = entry__list_by_daemon(&x, path, path, a, out, d, err);
    if (!ok && err->code == E4001)
        return err_set(err, ERR_NOT_FOUND, E4001, "there is no folder %.*s in the sandbox", STR_ARG(path));
    if (!ok && err->kind == ERR_LIMIT)
        return err_set(err, ERR_LIMIT, E4000, "there is more in %.*s than can be listed", STR_ARG(path));
    if (!ok && err->status == 400)
        ok = entry__list_link(&x, path, a, out, d, err);
    if (ok && out->count)
        qsort((FileInfo *)out->items, out->count, sizeof *out->items, entry__by_name);
    return ok;
}

/* ---- changing ---- */

static bool entry__make_by_daemon(Execd *x, Str path, Arena *a, Deadline d, Err *err)
{
    Buf     json = buf_make(LIMIT_URL * 4);
    JsonOut w = json_out(&json, JSON_COMPACT);

    json_begin(&w, '{');
    json_key_str(&w, path);
    json_begin(&w, '{');
    json_end(&w, '}');
    json_end(&w, '}');
    Str        body = buf_str(&json);
    Source     source = flow_from_str(&body);
    ABX_UNSET ExecdReply reply;
    ExecdCall  call = {.method = "POST", .path = "/directories", .body = &source, .type = STR("application/json"),
                       .what = "make the folder", .code = E4000, .most = LIMIT_ERROR_BODY,
                       .deadline = clock_sooner(d, clock_after(x->server->call_ms))};
    bool       ok = execd_ask(x, &call, a, &reply, err);
    buf_free(&json);
    return ok;
}

bool entry_make_folder(Lifecycle *l, Str id, Str path, Deadline d, Err *err)
{
    Arena a = arena_make(ARENA_COMMAND);
    Execd x;
    Str   none;
    bool  ok = entry_path(path, true, &a, &path, err) && execd_find(l, id, E4000, &a, &x, d, err);

    if (ok && entry_is_hard(path))
        ok = entry_run(&x, arena_fmt(&a, "mkdir -p -- %s", entry_quoted(path, &a).p), "make", path, &none, &a, d, err);
    else if (ok)
        ok = entry__make_by_daemon(&x, path, &a, d, err);
    arena_free(&a);
    return ok;
}

bool entry_move(Lifecycle *l, Str id, Str from, Str to, Deadline d, Err *err)
{
    Arena a = arena_make(ARENA_COMMAND);
    Execd x;
    bool  ok = entry_path(from, true, &a, &from, err) && entry_path(to, true, &a, &to, err) &&
              execd_find(l, id, E4000, &a, &x, d, err);

    if (ok) {
        Str f = entry_quoted(from, &a), t = entry_quoted(to, &a);
        Str line = arena_fmt(&a, "[ -e %s ] || [ -L %s ] || exit %d; [ ! -d %s ] || exit %d; mkdir -p -- %s && mv -f -- %s %s",
                             f.p, f.p, ENTRY_MISSING, t.p, ENTRY_IS_FOLDER, entry_quoted(entry_folder(to), &a).p, f.p, t.p);
        ExecdRun run = {.line = line};
        ok = execd_command_run(&x, &run, &a, d, err) &&
             entry__succeeded(&run, "move", run.exit_code == ENTRY_IS_FOLDER ? to : from, &a, err);
    }
    arena_free(&a);
    return ok;
}

bool entry_remove(Lifecycle *l, Str id, Str path, Deadline d, Err *err)
{
    Arena a = arena_make(ARENA_COMMAND);
    Execd x;
    Str   none;
    bool  ok = entry_path(path, true, &a, &path, err);
    Str   name = ok ? entry__name(path) : (Str){0};

    if (ok && (str_eq(name, STR("/")) || str_eq(name, STR(".")) || str_eq(name, STR(".."))))
        ok = err_set(err, ERR_USAGE, E8002, "%.*s cannot be removed", STR_ARG(path));
    ok = ok && execd_find(l, id, E4000, &a, &x, d, err);
    if (ok) {
        Str q = entry_quoted(path, &a);
        ok = entry_run(&x, arena_fmt(&a, "[ -e %s ] || [ -L %s ] || exit %d; rm -rf -- %s", q.p, q.p, ENTRY_MISSING, q.p),
                       "remove", path, &none, &a, d, err);
    }
    arena_free(&a);
    return ok;
}
