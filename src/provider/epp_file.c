#include "provider/epp_file.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include "provider/epp_plugin.h"
#include "provider/epp_record.h"

static bool epp_file__begin(Epp *e, EppGate gate, const char *method, Str id, Str path, JsonOut **w, Deadline d, Err *err)
{
    if (!epp_plugin_utf8(path, "a path", err) || !epp_plugin_attach(e, gate, id, d, err))
        return false;
    *w = epp_plugin_begin(e, method, id);
    json_key(*w, gate == EPP_GATE_MOVE ? "source" : "path");
    json_put_str(*w, path);
    return true;
}

static bool epp_file__too_large(Str path, int64_t size, Err *err)
{
    if (size >= 0)
        err_set(err, ERR_LIMIT, E4003, "%.*s has %lld bytes, and a message of a plugin holds no more than %d",
                STR_ARG(path), (long long)size, LIMIT_EPP_FILE);
    else
        err_set(err, ERR_LIMIT, E4003, "%.*s is larger than the %d bytes that a message to a plugin holds", STR_ARG(path),
                LIMIT_EPP_FILE);
    return err_hint(err, "Larger ones go by the agent: `abx upload` and `abx download` without --agent never.");
}

/* ---- content ---- */

static bool epp_file__is_folder(Str path, Err *err)
{
    err_set(err, ERR_REMOTE, E4000, "%.*s is a folder in the sandbox", STR_ARG(path));
    err->sys = EISDIR;
    return false;
}

/* Why a plugin wrote no file there: it has no word for this one reason. */
static void epp_file__why(Epp *e, Str id, Str path, Deadline d, Err *err)
{
    ABX_UNSET FileInfo info;
    ABX_UNSET Err no;
    Arena    a = arena_make(ARENA_COMMAND);

    if (!e->calls.link.failed && err->kind != ERR_CANCELLED && epp_plugin_can(e, EPP_GATE_STAT, &no) &&
        epp_file_stat(&e->base, id, path, &a, &info, d, &no) && info.type == FILE_FOLDER)
        epp_file__is_folder(path, err);
    arena_free(&a);
}

/* All of the source, if it is not too much. */
static bool epp_file__gather(Source src, Str path, Buf *to, Err *err)
{
    if (src.size > (int64_t)to->limit)
        return epp_file__too_large(path, src.size, err);
    for (size_t n = 1; n > 0; buf_grew(to, n)) {
        size_t room = to->limit - to->n < LIMIT_COPY_BLOCK ? to->limit - to->n : LIMIT_COPY_BLOCK;
        char   more;
        char  *into = room ? buf_room(to, room) : &more;
        if (!src.read(src.ctx, into, room ? room : 1, &n, err))
            return false;
        if (!room && n)
            return epp_file__too_large(path, -1, err);
    }
    return src.size < 0 || (int64_t)to->n == src.size ||
           err_set(err, ERR_INPUT, E4000, "what is to be written has another size than it should have");
}

bool epp_file_write(Provider *p, Str id, Str path, int mode, Source src, int64_t *size, Deadline d, Err *err)
{
    Epp        *e = (Epp *)p;
    Buf         bytes = buf_make(LIMIT_EPP_FILE);
    const Json *result;
    JsonOut    *w;

    (void)mode;         /* the protocol knows none */
    bool ok = epp_plugin_can(e, EPP_GATE_WRITE, err) && epp_file__gather(src, path, &bytes, err) &&
              epp_file__begin(e, EPP_GATE_WRITE, "files.write", id, path, &w, d, err);
    if (ok) {
        Arena a = arena_make(2 * bytes.n + 64);
        json_key(w, "content_b64");
        json_put_str(w, base64_encode(&a, buf_str(&bytes)));
        arena_free(&a);
        ok = epp_plugin_call(e, d, &result, err);
        if (!ok)
            epp_file__why(e, id, path, d, err);
    }
    *size = (int64_t)bytes.n;
    buf_free(&bytes);
    return ok;
}

/* Is it known to be too large? A plugin that cannot say is asked for the file. */
static bool epp_file__fits(Epp *e, Str id, Str path, Deadline d, Err *err)
{
    ABX_UNSET FileInfo info;
    ABX_UNSET Err no;
    bool     ok = true;

    if (!epp_plugin_can(e, EPP_GATE_STAT, &no))
        return true;
    Arena a = arena_make(ARENA_COMMAND);
    if (epp_file_stat(&e->base, id, path, &a, &info, d, &no)) {
        ok = info.type == FILE_FOLDER ? epp_file__is_folder(path, err)
                                      : info.size <= LIMIT_EPP_FILE || epp_file__too_large(path, info.size, err);
    } else if (!e->calls.no_method) {
        *err = no;
        ok = false;
    }
    arena_free(&a);
    return ok;
}

bool epp_file_read(Provider *p, Str id, Str path, Sink to, int64_t *size, Deadline d, Err *err)
{
    Epp        *e = (Epp *)p;
    const Json *result;
    JsonOut    *w;
    Str         bytes;

    if (!epp_plugin_can(e, EPP_GATE_READ, err) || !epp_file__fits(e, id, path, d, err) ||
        !epp_file__begin(e, EPP_GATE_READ, "files.read", id, path, &w, d, err) || !epp_plugin_call(e, d, &result, err))
        return false;
    const Json *content = json_get(result, "content_b64");
    if (!content || content->type != JSON_STRING)
        return epp_call_bad(&e->calls, "files.read", "content_b64 is no text", err);
    Arena a = arena_make(content->text.n + 64);
    bool  ok = base64_decode(&a, content->text, &bytes) ||
              epp_call_bad(&e->calls, "files.read", "content_b64 is no base64", err);
    ok = ok && (bytes.n == 0 || to.write(to.ctx, bytes, err));
    if (ok)
        *size = (int64_t)bytes.n;
    arena_free(&a);
    return ok;
}

/* ---- names ---- */

bool epp_file_stat(Provider *p, Str id, Str path, Arena *a, FileInfo *out, Deadline d, Err *err)
{
    Epp        *e = (Epp *)p;
    const Json *result;
    const char *what;
    JsonOut    *w;

    return epp_file__begin(e, EPP_GATE_STAT, "files.stat", id, path, &w, d, err) && epp_plugin_call(e, d, &result, err) &&
           (epp_record_entry(result, path, false, a, out, &what) || epp_call_bad(&e->calls, "files.stat", what, err));
}

static int epp_file__order(const void *left, const void *right)
{
    return str_order(((const FileInfo *)left)->name, ((const FileInfo *)right)->name);
}

bool epp_file_list(Provider *p, Str id, Str path, Arena *a, FileList *out, Deadline d, Err *err)
{
    Epp        *e = (Epp *)p;
    const Json *result;
    const char *what;
    JsonOut    *w;

    if (!epp_file__begin(e, EPP_GATE_LIST_FILES, "files.list", id, path, &w, d, err) || !epp_plugin_call(e, d, &result, err))
        return false;
    const Json *entries = json_get(result, "entries");
    if (!entries || entries->type != JSON_ARRAY)
        return epp_call_bad(&e->calls, "files.list", "entries is no array", err);
    FileInfo *items = arena_array(a, entries->count, sizeof *items);
    for (size_t i = 0; i < entries->count; i++)
        if (!epp_record_entry(json_at(entries, i), path, true, a, &items[i], &what))
            return epp_call_bad(&e->calls, "files.list", what, err);
    qsort(items, entries->count, sizeof *items, epp_file__order);
    *out = (FileList){items, entries->count};
    return true;
}

static bool epp_file__do(Provider *p, EppGate gate, const char *method, Str id, Str path, Deadline d, Err *err)
{
    const Json *result;
    JsonOut    *w;

    return epp_file__begin((Epp *)p, gate, method, id, path, &w, d, err) && epp_plugin_call((Epp *)p, d, &result, err);
}

bool epp_file_make_folder(Provider *p, Str id, Str path, Deadline d, Err *err)
{
    return epp_file__do(p, EPP_GATE_WRITE, "files.mkdir", id, path, d, err);
}

bool epp_file_remove(Provider *p, Str id, Str path, Deadline d, Err *err)
{
    return epp_file__do(p, EPP_GATE_REMOVE, "files.remove", id, path, d, err);
}

bool epp_file_move(Provider *p, Str id, Str from, Str to, Deadline d, Err *err)
{
    const Json *result;
    JsonOut    *w;

    if (!epp_plugin_utf8(to, "a path", err) ||
        !epp_file__begin((Epp *)p, EPP_GATE_MOVE, "files.move", id, from, &w, d, err))
        return false;
    json_key(w, "destination");
    json_put_str(w, to);
    return epp_plugin_call((Epp *)p, d, &result, err);
}

/* ---- processes ---- */

bool epp_file_processes(Provider *p, Str id, Arena *a, ProcessList *out, Deadline d, Err *err)
{
    Epp        *e = (Epp *)p;
    const Json *result;
    const char *what;

    if (!epp_plugin_attach(e, EPP_GATE_PROCESSES, id, d, err))
        return false;
    epp_plugin_begin(e, "process.list", id);
    if (!epp_plugin_call(e, d, &result, err))
        return false;
    const Json *list = json_get(result, "processes");
    if (!list || list->type != JSON_ARRAY)
        return epp_call_bad(&e->calls, "process.list", "processes is no array", err);
    ProcessInfo *items = arena_array(a, list->count, sizeof *items);
    for (size_t i = 0; i < list->count; i++)
        if (!epp_record_process(json_at(list, i), a, &items[i], &what))
            return epp_call_bad(&e->calls, "process.list", what, err);
    *out = (ProcessList){items, list->count};
    return true;
}

/* What a person types is a number where it looks like one. */
static bool epp_file__process(Epp *e, const char *method, Str id, Str pid, JsonOut **w, Deadline d, Err *err)
{
    uint64_t number;

    if (!epp_plugin_utf8(pid, "a process id", err) || !epp_plugin_attach(e, EPP_GATE_PROCESSES, id, d, err))
        return false;
    *w = epp_plugin_begin(e, method, id);
    json_key(*w, "pid");
    if (num_u64(pid, &number) && number <= INT64_MAX && !(pid.n > 1 && pid.p[0] == '0'))
        json_put_int(*w, (int64_t)number);
    else
        json_put_str(*w, pid);
    return true;
}

bool epp_file_stdin(Provider *p, Str id, Str pid, Str bytes, Deadline d, Err *err)
{
    const Json *result;
    JsonOut    *w;

    if (!epp_plugin_utf8(bytes, "what is to be typed", err) ||
        !epp_file__process((Epp *)p, "process.stdin", id, pid, &w, d, err))
        return false;
    json_key(w, "data");
    json_put_str(w, bytes);
    return epp_plugin_call((Epp *)p, d, &result, err);
}

static bool epp_file__signal(Provider *p, Str id, Str pid, int number, Deadline d, Err *err)
{
    const Json *result;
    JsonOut    *w;

    if (!epp_file__process((Epp *)p, "process.signal", id, pid, &w, d, err))
        return false;
    json_key(w, "signal");
    json_put_int(w, number);
    return epp_plugin_call((Epp *)p, d, &result, err);
}

/* A group has no name in the protocol: one that knows none gets its leader's. */
bool epp_file_signal(Provider *p, Str id, Str pid, int number, Deadline d, Err *err)
{
    if (!pid.n || pid.p[0] != '-')
        return epp_file__signal(p, id, pid, number, d, err);
    return epp_file__signal(p, id, pid, number, d, err) ||
           (!((Epp *)p)->calls.link.failed && epp_file__signal(p, id, str_from_to(pid, 1, pid.n), number, d, err));
}

bool epp_file_port(Provider *p, Str id, int port, Arena *a, PortUrl *out, Deadline d, Err *err)
{
    Epp        *e = (Epp *)p;
    const Json *result;
    const char *what;

    if (!epp_plugin_attach(e, EPP_GATE_PORT, id, d, err))
        return false;
    JsonOut *w = epp_plugin_begin(e, "ports.url", id);
    json_key(w, "port");
    json_put_int(w, port);
    return epp_plugin_call(e, d, &result, err) &&
           (epp_record_port(result, a, out, &what) || epp_call_bad(&e->calls, "ports.url", what, err));
}
