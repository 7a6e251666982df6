#include "provider/epp.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "provider/epp_carrier.h"
#include "provider/epp_exec.h"
#include "provider/epp_file.h"
#include "provider/epp_plugin.h"
#include "provider/epp_record.h"

enum {
    EPP_PAGE = 100,             /* what the other hosts ask for when nobody says how many */
    EPP_PAGES = 2000,           /* as many as of a server */
};

/* ---- opening ---- */

static Strs epp__strs(Strs from, Arena *a)
{
    Str *v = arena_array(a, from.n, sizeof *v);

    for (size_t i = 0; i < from.n; i++)
        v[i] = arena_str(a, from.v[i]);
    return (Strs){v, from.n};
}

static bool epp__inherits(Strs inherit, const char *key)
{
    for (size_t i = 0; i < inherit.n; i++)
        if (str_eq(inherit.v[i], str_from(key)))
            return true;
    return false;
}

/* In the order in which they are looked for: as the manifest has them, then the
 * inherited key. */
static void epp__secrets(Epp *e)
{
    Str   *v = arena_array(&e->own, e->spec.field_count + 1, sizeof *v);
    size_t n = 0;

    for (size_t i = 0; i < e->spec.field_count; i++)
        if (e->spec.fields[i].secret)
            v[n++] = provider_setting(e->settings, e->spec.fields[i].key);
    if (epp__inherits(e->spec.inherit, "sandbox_api_key"))
        v[n++] = provider_setting(e->settings, "sandbox_api_key");
    e->voice = (EppVoice){e->spec.id, e->spec.credential, v, n};
}

static void epp__copy(Epp *e, const EppSpec *spec, Settings s)
{
    Arena *a = &e->own;
    Pair  *pairs = arena_array(a, s.n, sizeof *pairs);

    e->spec = *spec;
    e->spec.id = arena_str(a, spec->id);
    e->spec.name = arena_str(a, spec->name);
    e->spec.files = arena_cstr(a, str_from(spec->files));
    e->spec.data_dir = arena_cstr(a, str_from(spec->data_dir));
    e->spec.credential = arena_str(a, spec->credential);
    Strs *lists[] = {&e->spec.command, &e->spec.env_passthrough, &e->spec.features, &e->spec.cli,
                        &e->spec.python,  &e->spec.inputs,          &e->spec.startups, &e->spec.inherit};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        *lists[i] = epp__strs(*lists[i], a);
    ProviderField *fields = arena_array(a, spec->field_count, sizeof *fields);
    for (size_t i = 0; i < spec->field_count; i++) {
        fields[i] = spec->fields[i];
        fields[i].key = arena_cstr(a, str_from(spec->fields[i].key));
    }
    e->spec.fields = fields;
    for (size_t i = 0; i < s.n; i++)
        pairs[i] = (Pair){arena_str(a, s.v[i].key), s.v[i].value.p ? arena_str(a, s.v[i].value) : (Str){0}};
    e->settings = (Settings){pairs, s.n};
    e->features = e->spec.features;
    epp__secrets(e);
}

static void epp__close(Provider *p)
{
    Epp *e = (Epp *)p;

    epp_plugin_stop(e);
    mem_free(e->cursor);
    mem_wipe(e->own.p, e->own.used);
    arena_free(&e->own);
    mem_free(e);
}

static void epp__ignore_cancel(Provider *p)
{
    p->host.cancel_fd = -1;
}

bool epp_handshake(Provider *p, Deadline d, Err *err)
{
    Epp *e = (Epp *)p;
    bool ok = epp_plugin_fresh(e, d, err);

    epp_plugin_stop(e);
    return ok;
}

/* ---- what the requests say ---- */

static void epp__pairs(JsonOut *w, const char *key, const Pair *v, size_t n)
{
    json_key(w, key);
    json_begin(w, '{');
    for (size_t i = 0; i < n; i++) {
        json_key_str(w, v[i].key);
        json_put_str(w, v[i].value);
    }
    json_end(w, '}');
}

static bool epp__pairs_ok(const Pair *v, size_t n, const char *what, Err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!epp_plugin_utf8(v[i].key, what, err) || !epp_plugin_utf8(v[i].value, what, err))
            return false;
    return true;
}

/* Whole CPUs and megabytes are all that the protocol can say; -1: nothing was said. */
static bool epp__amount(Str text, bool memory, int64_t *out, Err *err)
{
    static const struct { const char *unit; int64_t factor; } units[] = {{"Mi", 1}, {"M", 1}, {"Gi", 1024}, {"G", 1000}};
    Str     digits = text;
    int64_t factor = 1;

    *out = -1;
    if (!text.n)
        return true;
    for (size_t i = 0; memory && i < COUNT_OF(units); i++)
        if (str_ends(text, str_from(units[i].unit))) {
            digits.n -= strlen(units[i].unit);
            factor = units[i].factor;
            break;
        }
    if (memory && digits.n == text.n)
        digits.n = 0;           /* plain bytes */
    if (num_i64(digits, out) && *out > 0 && *out < INT32_MAX) {
        *out *= factor;
        return true;
    }
    return err_set(err, ERR_USAGE, E8002, "%s %.*s: a plugin is told whole %s alone", memory ? "memory" : "cpu",
                   STR_ARG(text), memory ? "megabytes (512Mi, 2Gi)" : "CPUs (1, 2)");
}

static void epp__number(JsonOut *w, const char *key, int64_t v)
{
    json_key(w, key);
    if (v < 0)
        json_put_null(w);
    else
        json_put_int(w, v);
}

/* An entrypoint has no place of its own: a plugin that has a setting of this
 * name is told it as a provider option, as words with blanks between. */
static bool epp__entrypoint(const Epp *e, const CreateRequest *rq, Buf *out, Err *err)
{
    bool known = rq->entrypoint_count == 0;

    for (size_t i = 0; i < e->spec.field_count; i++)
        known = known || (strcmp(e->spec.fields[i].key, "entrypoint") == 0 && !e->spec.fields[i].secret);
    if (!known)
        return err_set(err, ERR_USAGE, E8002, "provider %.*s takes no entrypoint", STR_ARG(e->spec.id));
    for (size_t i = 0; i < rq->entrypoint_count; i++) {
        Str word = rq->entrypoint[i];
        if (word.n == 0 || str_has(word, ' ') || str_has_control(word))
            return err_set(err, ERR_USAGE, E8002, "a plugin takes an entrypoint of words without blanks");
        if (!epp_plugin_utf8(word, "a word of the entrypoint", err))
            return false;
        buf_add(out, i ? STR(" ") : STR(""));
        buf_add(out, word);
    }
    return !out->over || err_set(err, ERR_LIMIT, E8002, "the entrypoint is too long");
}

static bool epp__create_request(Epp *e, const CreateRequest *rq, Str entrypoint, Err *err)
{
    int64_t cpu, memory;

    if (rq->timeout_s == 0)
        return err_set(err, ERR_USAGE, E8002, "sandboxes of provider %.*s always expire: after %d s at most",
                       STR_ARG(e->spec.id), LIMIT_EPP_TIMEOUT_S);
    if (rq->timeout_s > LIMIT_EPP_TIMEOUT_S)
        return err_set(err, ERR_USAGE, E8002, "a sandbox of provider %.*s lives for %d s at most, not %lld",
                       STR_ARG(e->spec.id), LIMIT_EPP_TIMEOUT_S, (long long)rq->timeout_s);
    if (!epp__amount(rq->cpu, false, &cpu, err) || !epp__amount(rq->memory, true, &memory, err) ||
        !epp_plugin_utf8(rq->template, "the template's name", err) ||
        !epp__pairs_ok(rq->metadata, rq->metadata_count, "metadata", err) ||
        !epp__pairs_ok(rq->env, rq->env_count, "an environment variable", err))
        return false;
    JsonOut *w = epp_plugin_begin(e, "sandbox.create", (Str){0});
    json_key(w, "template");
    json_put_str(w, rq->template);
    json_key(w, "timeout");
    json_put_int(w, rq->timeout_s);
    epp__pairs(w, "metadata", rq->metadata, rq->metadata_count);
    epp__pairs(w, "envs", rq->env, rq->env_count);
    epp__number(w, "cpu", cpu);
    epp__number(w, "memory", memory);
    epp__number(w, "disk", -1);
    epp__number(w, "gpu", -1);
    epp__number(w, "request_timeout", -1);
    if (entrypoint.n) {
        Pair option = {STR("entrypoint"), entrypoint};
        epp__pairs(w, "options", &option, 1);
    }
    return true;
}

/* ---- sandboxes ---- */

/* E2009 and E8005 say what was wanted. */
static bool epp__kill_once(Epp *e, Str id, bool *killed, Deadline d, Err *err)
{
    const Json *result;

    epp_plugin_begin(e, "sandbox.kill", id);
    *killed = epp_plugin_call(e, d, &result, err);
    if (*killed || err->code == E8005 || err->code == E2009)
        epp_plugin_unknow(e, id);
    return *killed || err->code == E8005 || err->code == E2009;
}

static bool epp__kill_fresh(Epp *e, Str id, bool *killed, Deadline d, Err *err)
{
    if (!epp_plugin_fresh(e, d, err))
        return false;
    if (epp__kill_once(e, id, killed, d, err))
        return true;
    /* It died over it: killing twice does no harm, a sandbox that stays does. */
    return e->calls.link.failed && err->code != E8022 && epp_plugin_fresh(e, d, err) &&
           epp__kill_once(e, id, killed, d, err);
}

/* Create failed behind its answer: take the sandbox away again. Returns false. */
static bool epp__undo(Epp *e, Str id, Err *err)
{
    int  cancel_fd = e->base.host.cancel_fd;
    bool killed;
    ABX_UNSET Err no;

    e->base.host.cancel_fd = -1;
    if (epp__kill_fresh(e, id, &killed, clock_after(e->spec.startup_ms + LIMIT_CLEANUP_MS), &no))
        err_wrap(err, "sandbox %.*s (removed again)", STR_ARG(id));
    else
        err_wrap(err, "sandbox %.*s (it could not be removed: %s)", STR_ARG(id), no.text);
    e->base.host.cancel_fd = cancel_fd;
    return false;
}

static bool epp__created(Epp *e, const Json *record, Arena *a, SandboxInfo *out, Err *err)
{
    const char *what;
    Str         id = epp_record_id(record, a);

    if (epp_record_sandbox(record, a, out, &what)) {
        epp_plugin_know(e, out->id);
        return true;
    }
    epp_call_bad(&e->calls, "sandbox.create", what, err);
    return id.n ? epp__undo(e, id, err) : false;
}

/* Somebody does not want it any more, but it may be made all the same. */
static bool epp__abandoned(Epp *e, EppWait *w, Arena *a, Err *err)
{
    const Json *record;
    Deadline    d = clock_after(LIMIT_CLEANUP_MS);
    Step        step;
    ABX_UNSET Err none;

    epp_call_cancel(&e->calls, w);
    while ((step = epp_call_poll(&e->calls, w, &record, &none)) == STEP_MORE)
        if (!epp_link_turn(&e->calls.link, -1, d, &none) && none.kind == ERR_TIMEOUT)
            break;
    Str id = step == STEP_DONE ? epp_record_id(record, a) : (Str){0};
    epp_call_forget(&e->calls, w, false);
    return id.n ? epp__undo(e, id, err) : false;
}

static bool epp__create(Provider *p, const CreateRequest *rq, Arena *a, SandboxInfo *out, Deadline d, Err *err)
{
    Epp        *e = (Epp *)p;
    Buf         words = buf_make(LIMIT_SETTING);
    const Json *record;
    EppWait     w;

    bool ok = epp_plugin_can(e, EPP_GATE_CREATE, err) && epp__entrypoint(e, rq, &words, err) &&
              epp_plugin_open(e, EPP_GATE_CREATE, d, err) && epp__create_request(e, rq, buf_str(&words), err);
    buf_free(&words);
    d = clock_sooner(d, clock_after(e->spec.call_ms));
    if (!ok || !epp_call_send(&e->calls, &w, d, err))
        return false;
    if (epp_call_wait(&e->calls, &w, "sandbox.create", d, &record, err)) {
        epp_call_forget(&e->calls, &w, false);
        return epp__created(e, record, a, out, err);
    }
    if (err->kind == ERR_CANCELLED)
        return epp__abandoned(e, &w, a, err);
    epp_call_forget(&e->calls, &w, true);
    return false;
}

static bool epp__get(Provider *p, Str id, Arena *a, SandboxInfo *out, Deadline d, Err *err)
{
    return epp_plugin_open((Epp *)p, EPP_GATE_GET, d, err) && epp_plugin_get((Epp *)p, id, false, a, out, d, err);
}

static bool epp__has_all(const SandboxInfo *info, const Pair *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool has = false;
        for (size_t k = 0; k < info->metadata_count && !has; k++)
            has = str_eq(info->metadata[k].key, want[i].key) && str_eq(info->metadata[k].value, want[i].value);
        if (!has)
            return false;
    }
    return true;
}

typedef struct EppQuery { const Pair *metadata; size_t metadata_count; int64_t limit; } EppQuery;

/* One page from the plugin; *next is its cursor, a view into the answer. */
static bool epp__page(Epp *e, const EppQuery *q, Str cursor, Arena *a, ListPage *out, Str *next, Deadline d, Err *err)
{
    const Json *result;
    const char *what;
    JsonOut    *w = epp_plugin_begin(e, "sandbox.list", (Str){0});

    json_key(w, "limit");
    json_put_int(w, q->limit);
    if (cursor.n) {
        json_key(w, "cursor");
        json_put_str(w, cursor);
    }
    if (!epp_plugin_call(e, d, &result, err))
        return false;
    const Json *list = json_get(result, "sandboxes"), *more = json_get(result, "next");
    if (!list || list->type != JSON_ARRAY)
        return epp_call_bad(&e->calls, "sandbox.list", "sandboxes is no array", err);
    if (more && more->type != JSON_STRING && more->type != JSON_NULL)
        return epp_call_bad(&e->calls, "sandbox.list", "next is no text", err);
    SandboxInfo *items = arena_array(a, list->count, sizeof *items);
    out->count = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (!epp_record_sandbox(json_at(list, i), a, &items[out->count], &what))
            return epp_call_bad(&e->calls, "sandbox.list", what, err);
        out->count += epp__has_all(&items[out->count], q->metadata, q->metadata_count);
    }
    out->items = items;
    *next = json_str(more);
    /* A cursor that leads nowhere would lead there for ever. */
    out->more = next->n > 0 && !(list->count == 0 && str_eq(*next, cursor));
    if (out->more && str_eq(*next, cursor))
        return epp_call_bad(&e->calls, "sandbox.list", "next is where it began", err);
    return true;
}

/* So would one that is always another, and fill the memory on the way. */
static bool epp__ends(Epp *e, int number, size_t bytes, Err *err)
{
    e->listed = (number > 1 ? e->listed : 0) + bytes;
    return (number <= EPP_PAGES && e->listed <= LIMIT_EPP_LIST) ||
           epp_call_bad(&e->calls, "sandbox.list", "there is no end to it", err);
}

static bool epp__list(Provider *p, const Pair *metadata, size_t metadata_count, int page, int64_t wanted, Arena *a,
                      ListPage *out, Deadline d, Err *err)
{
    Epp     *e = (Epp *)p;
    /* Of those that a filter leaves, nobody knows how many come to that many. */
    EppQuery q = {metadata, metadata_count, wanted > 0 && metadata_count == 0 ? wanted : EPP_PAGE};
    Arena    kept = *a;
    Str      next;

    if (!epp_plugin_open(e, EPP_GATE_LIST, d, err))
        return false;
    /* Pages can only be had one after the other. */
    int number = page > 1 && e->cursor_page == page ? page : 1;
    for (bool more = true; more; number++) {
        Str cursor = number > 1 ? str_from(e->cursor) : (Str){0};
        *a = kept;
        if (!epp__page(e, &q, cursor, a, out, &next, d, err) || !epp__ends(e, number, a->used - kept.used, err))
            return false;
        char *copy = mem_str(next);
        mem_free(e->cursor);
        e->cursor = copy;
        e->cursor_page = number + 1;
        if (number == page)
            return true;
        more = out->more;
    }
    *out = (ListPage){0};
    return true;
}

static bool epp__kill(Provider *p, Str id, bool *killed, Deadline d, Err *err)
{
    return epp_plugin_can((Epp *)p, EPP_GATE_KILL, err) && epp__kill_fresh((Epp *)p, id, killed, d, err);
}

/* What became of a sandbox after a change. The change is done, whatever the
 * plugin can say about it. */
static bool epp__after(Epp *e, Str id, SandboxState state, Arena *a, SandboxInfo *out, Deadline d)
{
    ABX_UNSET Err none;

    if (epp_plugin_can(e, EPP_GATE_GET, &none) && epp_plugin_get(e, id, false, a, out, d, &none))
        return true;
    *out = (SandboxInfo){.id = arena_str(a, id), .state = state, .timeout_s = -1};
    if (state != SANDBOX_UNKNOWN)
        out->status = provider_state_word(state);
    return true;
}

static bool epp__set_timeout(Provider *p, Str id, int64_t seconds, Arena *a, SandboxInfo *out, Deadline d, Err *err)
{
    Epp        *e = (Epp *)p;
    const Json *result;

    if (seconds > LIMIT_EPP_TIMEOUT_S)
        return err_set(err, ERR_USAGE, E8002, "a sandbox of provider %.*s lives for %d s at most, not %lld",
                       STR_ARG(e->spec.id), LIMIT_EPP_TIMEOUT_S, (long long)seconds);
    if (!epp_plugin_attach(e, EPP_GATE_TIMEOUT, id, d, err))
        return false;
    JsonOut *w = epp_plugin_begin(e, "sandbox.set_timeout", id);
    json_key(w, "timeout");
    json_put_int(w, seconds);
    return epp_plugin_call(e, d, &result, err) ? epp__after(e, id, SANDBOX_UNKNOWN, a, out, d) : epp_plugin_gone(id, err);
}

static bool epp__pause(Provider *p, Str id, Arena *a, SandboxInfo *out, Deadline d, Err *err)
{
    Epp        *e = (Epp *)p;
    const Json *result;

    if (!epp_plugin_attach(e, EPP_GATE_PAUSE, id, d, err))
        return false;
    epp_plugin_begin(e, "sandbox.pause", id);
    if (!epp_plugin_call(e, d, &result, err))
        return epp_plugin_gone(id, err);
    epp_plugin_unknow(e, id);       /* to be connected to again, which may resume it */
    return epp__after(e, id, SANDBOX_PAUSED, a, out, d);
}

static bool epp__resume(Provider *p, Str id, Arena *a, SandboxInfo *out, Deadline d, Err *err)
{
    Epp        *e = (Epp *)p;
    const Json *result;

    if (!epp_plugin_open(e, EPP_GATE_RESUME, d, err))
        return false;
    epp_plugin_begin(e, "sandbox.resume", id);
    return epp_plugin_call(e, d, &result, err) ? epp__after(e, id, SANDBOX_RUNNING, a, out, d) : epp_plugin_gone(id, err);
}

static const ProviderKind epp__kind = {
    .any_id = true, .close = epp__close, .ignore_cancel = epp__ignore_cancel, .create = epp__create, .get = epp__get, .list = epp__list,
    .kill = epp__kill, .set_timeout = epp__set_timeout, .pause = epp__pause, .resume = epp__resume,
    .port_url = epp_file_port, .exec = epp_exec_start,
    .file_write = epp_file_write, .file_read = epp_file_read, .file_stat = epp_file_stat, .file_list = epp_file_list,
    .folder_make = epp_file_make_folder, .file_move = epp_file_move, .file_remove = epp_file_remove,
    .file_max = LIMIT_EPP_FILE,
    .process_list = epp_file_processes, .process_stdin = epp_file_stdin, .process_signal = epp_file_signal,
};

bool epp_open(const EppSpec *spec, Settings s, const ProviderHost *host, Provider **out, Err *err)
{
    Epp *e = mem_new(sizeof *e);

    (void)err;          /* nothing can fail before the plugin is started */
    e->own = arena_make(ARENA_COMMAND);
    epp__copy(e, spec, s);
    const char **features = arena_array(&e->own, e->spec.features.n, sizeof *features);
    for (size_t i = 0; i < e->spec.features.n; i++)
        features[i] = e->spec.features.v[i].p;
    e->kind = epp__kind;
    e->kind.carrier = epp_carrier_ops();
    e->kind.id = e->spec.id;
    e->kind.name = e->spec.name;
    e->kind.fields = e->spec.fields;
    e->kind.field_count = e->spec.field_count;
    e->kind.features = features;
    e->kind.feature_count = e->spec.features.n;
    e->base = (Provider){.kind = &e->kind, .host = *host};
    *out = &e->base;
    return true;
}
