#include "provider/epp_plugin.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "base/utf8.h"
#include "provider/epp_record.h"
#include "provider/epp_spawn.h"

/* ---- what it may do ---- */

/* Any of the operations, and any of the features; the first is named. */
static const struct { const char *operations[2], *features[2]; } epp_plugin__gates[] = {
    [EPP_GATE_CREATE] = {{"sandbox.create"}, {"sandbox.lifecycle"}},
    [EPP_GATE_LIST] = {{"sandbox.list"}, {"sandbox.lifecycle"}},
    [EPP_GATE_GET] = {{"sandbox.get"}, {"sandbox.lifecycle"}},
    [EPP_GATE_KILL] = {{"sandbox.delete"}, {"sandbox.lifecycle"}},
    [EPP_GATE_TIMEOUT] = {{"sandbox.timeout"}, {"sandbox.timeout"}},
    [EPP_GATE_PAUSE] = {{"sandbox.pause"}, {"sandbox.pause"}},
    [EPP_GATE_RESUME] = {{"sandbox.resume"}, {"sandbox.pause"}},
    [EPP_GATE_PORT] = {{"ports.resolve"}, {"ports.url"}},
    [EPP_GATE_EXEC] = {{"exec.run", "exec.stream"}, {"exec.run", "exec.stream"}},
    [EPP_GATE_READ] = {{"files.read"}, {"files.rw"}},
    [EPP_GATE_WRITE] = {{"files.write"}, {"files.rw"}},
    [EPP_GATE_LIST_FILES] = {{"files.list"}, {"files.rw"}},
    [EPP_GATE_STAT] = {{"files.stat"}, {"files.rw"}},
    [EPP_GATE_REMOVE] = {{"files.remove"}, {"files.rw"}},
    [EPP_GATE_MOVE] = {{"files.move"}, {"files.rw"}},
    [EPP_GATE_PROCESSES] = {{NULL}, {"process.manage"}},
};

static bool epp_plugin__in(Strs list, const char *word)
{
    for (size_t i = 0; word && i < list.n; i++)
        if (str_eq(list.v[i], str_from(word)))
            return true;
    return false;
}

bool epp_plugin_has(const Epp *e, const char *feature)
{
    return epp_plugin__in(e->features, feature);
}

static bool epp_plugin__cannot(const Epp *e, const char *what, Err *err)
{
    err_set(err, ERR_REMOTE, E8004, "provider %.*s has not implemented %s", STR_ARG(e->spec.id), what);
    return err_hint(err, "`abx provider info %.*s` shows what it can do.", STR_ARG(e->spec.id));
}

bool epp_plugin_can(const Epp *e, EppGate gate, Err *err)
{
    const char *const *operations = epp_plugin__gates[gate].operations, *const *features = epp_plugin__gates[gate].features;

    if (operations[0] && !epp_plugin__in(e->spec.cli, operations[0]) && !epp_plugin__in(e->spec.cli, operations[1]))
        return epp_plugin__cannot(e, operations[0], err);
    return epp_plugin_has(e, features[0]) || epp_plugin_has(e, features[1]) || epp_plugin__cannot(e, features[0], err);
}

/* ---- the handshake ---- */

static void epp_plugin__put(JsonOut *w, FieldType type, Str value, Arena scratch)
{
    const Json *tree;
    int64_t     number;
    ABX_UNSET Err none;

    if (type == FIELD_BOOL)
        json_put_bool(w, str_eq(value, STR("true")));
    else if (type == FIELD_INT && num_i64(value, &number))
        json_put_int(w, number);
    else if ((type == FIELD_FLOAT || type == FIELD_JSON) && json_parse(value, &scratch, &tree, &none))
        json_put(w, tree);
    else
        json_put_str(w, value);
}

static void epp_plugin__config(Epp *e, JsonOut *w, Arena scratch)
{
    json_key(w, "config");
    json_begin(w, '{');
    for (size_t i = 0; i < e->spec.field_count; i++) {
        Str value = provider_setting(e->settings, e->spec.fields[i].key);
        if (!value.p)
            continue;
        json_key(w, e->spec.fields[i].key);
        epp_plugin__put(w, e->spec.fields[i].type, value, scratch);
    }
    json_end(w, '}');
    json_key(w, "core");
    json_begin(w, '{');
    for (size_t i = 0; i < e->spec.inherit.n; i++) {
        const char *key = arena_cstr(&scratch, e->spec.inherit.v[i]);
        Str         value = provider_setting(e->settings, key);
        if (!value.p && strcmp(key, "sandbox_api_key") == 0)
            continue;
        json_key(w, key);
        json_put_str(w, value);
    }
    Str timeout = provider_setting(e->settings, "http_timeout");
    json_key(w, "http_timeout");
    epp_plugin__put(w, FIELD_FLOAT, timeout.p ? timeout : STR("30.0"), scratch);
    json_end(w, '}');
}

/* A list in the answer is the manifest's, word by word. */
static bool epp_plugin__same(const Json *list, Strs want)
{
    if (!list || list->type != JSON_ARRAY || list->count != want.n)
        return false;
    for (size_t i = 0; i < want.n; i++)
        if (json_at(list, i)->type != JSON_STRING || !str_eq(json_at(list, i)->text, want.v[i]))
            return false;
    return true;
}

static bool epp_plugin__differs(const Epp *e, const char *what, Err *err)
{
    err_set(err, ERR_INPUT, E8013, "the plugin of provider %.*s says another %s than its manifest", STR_ARG(e->spec.id), what);
    return err_hint(err, "The plugin and its abx-provider.toml do not belong together: install it again.");
}

static void epp_plugin__features(Epp *e, const Json *list)
{
    Str   *kept = arena_array(&e->own, e->spec.features.n, sizeof *kept);
    size_t n = 0, strings = 0;

    for (size_t i = 0; i < json_count(list); i++)
        strings += json_at(list, i) && json_at(list, i)->type == JSON_STRING;
    for (size_t k = 0; k < e->spec.features.n; k++)
        for (size_t i = 0; i < json_count(list); i++)
            if (json_at(list, i) && str_eq(json_str(json_at(list, i)), e->spec.features.v[k])) {
                kept[n++] = e->spec.features.v[k];
                break;
            }
    if (strings)
        e->features = (Strs){kept, n};
}

static bool epp_plugin__hello(Epp *e, const Json *answer, Err *err)
{
    const Json *version = json_get(answer, "operation_contract_version"), *ops = json_get(answer, "operations");

    if (!str_eq(json_str(json_get(answer, "protocol")), STR("epp/1")))
        return epp_plugin__differs(e, "protocol", err);
    if (!version || version->type != JSON_INT || version->integer != 1)
        return epp_plugin__differs(e, "operation_contract_version", err);
    if (json_count(ops) != 2 || !epp_plugin__same(json_get(ops, "cli"), e->spec.cli) ||
        !epp_plugin__same(json_get(ops, "python"), e->spec.python))
        return epp_plugin__differs(e, "set of operations", err);
    if (!epp_plugin__same(json_get(answer, "workflow_inputs"), e->spec.inputs))
        return epp_plugin__differs(e, "set of workflow inputs", err);
    if (!epp_plugin__same(json_get(answer, "startup_modes"), e->spec.startups))
        return epp_plugin__differs(e, "set of startup modes", err);
    epp_plugin__features(e, json_get(answer, "features"));
    e->feeds = json_bool(json_get(answer, "stdin"), false);
    return true;
}

static bool epp_plugin__initialize(Epp *e, Deadline d, Arena scratch, Err *err)
{
    const Json *answer;
    size_t      secret = 0;

    for (size_t i = 0; i < e->settings.n; i++)
        secret += e->settings.v[i].value.n;
    JsonOut *w = epp_call_begin(&e->calls, "initialize");
    epp_call_secret(&e->calls, secret);
    json_key(w, "protocol");
    json_put_str(w, STR("epp/1"));
    json_key(w, "host");
    json_begin(w, '{');
    json_key(w, "name");
    json_put_str(w, STR("abx"));
    json_key(w, "version");
    json_put_str(w, STR(ABX_VERSION));
    json_end(w, '}');
    json_key(w, "provider_id");
    json_put_str(w, e->spec.id);
    epp_plugin__config(e, w, scratch);
    json_key(w, "locale");
    json_put_str(w, STR("en"));
    json_key(w, "data_dir");
    json_put_str(w, str_from(e->spec.data_dir));
    return epp_call_end(&e->calls, clock_sooner(d, clock_after(e->spec.startup_ms)), &answer, err) &&
           epp_plugin__hello(e, answer, err);
}

/* ---- its process ---- */

static void epp_plugin__forget_all(Epp *e)
{
    for (size_t i = 0; i < EPP_KNOWN; i++) {
        mem_free(e->known[i]);
        e->known[i] = NULL;
    }
}

void epp_plugin_stop(Epp *e)
{
    if (e->running)
        epp_call_stop(&e->calls);
    e->running = e->failed = false;
    e->era++;
    epp_plugin__forget_all(e);
}

static bool epp_plugin__start(Epp *e, Deadline d, Err *err)
{
    Arena    a = arena_make(ARENA_COMMAND);
    ProcSpec spec;
    bool     ok = (!e->spec.check || e->spec.check(e->spec.check_ctx, err)) && epp_spawn_spec(&e->spec, &a, &spec, err) &&
              epp_call_start(&e->calls, &spec, &e->voice, &e->base.host, err);

    e->running = ok;
    e->era++;
    e->features = e->spec.features;
    e->no_connect = false;
    if (ok && !epp_plugin__initialize(e, d, a, err)) {
        epp_plugin_stop(e);
        ok = false;
    }
    if (!ok && err->kind != ERR_CANCELLED) {
        e->failed = true;
        e->failure = *err;
    }
    arena_free(&a);
    return ok;
}

static bool epp_plugin__ready(Epp *e, Deadline d, Err *err)
{
    if (!e->running && !e->failed)
        return epp_plugin__start(e, d, err);
    if (e->running && !e->calls.link.failed)
        return true;
    *err = e->running ? e->calls.link.failure : e->failure;
    return false;
}

bool epp_plugin_open(Epp *e, EppGate gate, Deadline d, Err *err)
{
    /* Twice: without a process by the manifest alone, and by what it declares. */
    return epp_plugin_can(e, gate, err) && epp_plugin__ready(e, d, err) && epp_plugin_can(e, gate, err);
}

bool epp_plugin_fresh(Epp *e, Deadline d, Err *err)
{
    if (e->failed || (e->running && (e->calls.link.failed || e->calls.late)))
        epp_plugin_stop(e);
    return epp_plugin__ready(e, d, err);
}

/* ---- calls ---- */

JsonOut *epp_plugin_begin(Epp *e, const char *method, Str sandbox)
{
    JsonOut *w = epp_call_begin(&e->calls, method);

    if (sandbox.p) {
        json_key(w, "sandbox_id");
        json_put_str(w, sandbox);
    }
    return w;
}

bool epp_plugin_call(Epp *e, Deadline d, const Json **result, Err *err)
{
    return epp_call_end(&e->calls, clock_sooner(d, clock_after(e->spec.call_ms)), result, err);
}

bool epp_plugin_utf8(Str s, const char *what, Err *err)
{
    return utf8_valid(s) || err_set(err, ERR_USAGE, E8002, "%s is not UTF-8, and a plugin is told nothing else", what);
}

bool epp_plugin_gone(Str id, Err *err)
{
    if (err->code == E8005) {
        err->code = E2009;
        err->hint[0] = '\0';
        if (!err->text[0])
            err_set(err, ERR_NOT_FOUND, E2009, "there is no sandbox %.*s", STR_ARG(id));
    }
    return false;
}

bool epp_plugin_get(Epp *e, Str id, bool connect, Arena *a, SandboxInfo *out, Deadline d, Err *err)
{
    static const char *const methods[] = {"sandbox.get", "sandbox.connect"};
    const Json *record;
    const char *what;
    bool        first = connect && !e->no_connect, ok;

    epp_plugin_begin(e, methods[first], id);
    ok = epp_plugin_call(e, d, &record, err);
    if (!ok && e->calls.no_method && !e->calls.link.failed) {
        e->no_connect = e->no_connect || first;
        first = !first;
        epp_plugin_begin(e, methods[first], id);
        ok = epp_plugin_call(e, d, &record, err);
    }
    if (!ok)
        return epp_plugin_gone(id, err);
    return epp_record_sandbox(record, a, out, &what) || epp_call_bad(&e->calls, methods[first], what, err);
}

void epp_plugin_know(Epp *e, Str id)
{
    mem_free(e->known[e->known_next]);
    e->known[e->known_next] = mem_str(id);
    e->known_next = (e->known_next + 1) % EPP_KNOWN;
}

static char **epp_plugin__known(Epp *e, Str id)
{
    for (size_t i = 0; i < EPP_KNOWN; i++)
        if (e->known[i] && str_eq(str_from(e->known[i]), id))
            return &e->known[i];
    return NULL;
}

void epp_plugin_unknow(Epp *e, Str id)
{
    char **at = epp_plugin__known(e, id);

    if (at) {
        mem_free(*at);
        *at = NULL;
    }
}

bool epp_plugin_attach(Epp *e, EppGate gate, Str id, Deadline d, Err *err)
{
    ABX_UNSET SandboxInfo info;
    ABX_UNSET Err none;

    if (!epp_plugin_open(e, gate, d, err))
        return false;
    if (epp_plugin__known(e, id) || !epp_plugin_can(e, EPP_GATE_GET, &none))
        return true;
    Arena a = arena_make(ARENA_COMMAND);
    bool  ok = epp_plugin_get(e, id, true, &a, &info, d, err);
    /* A plugin that has neither of the two methods is asked for the thing itself. */
    ok = ok || (e->calls.no_method && !e->calls.link.failed);
    arena_free(&a);
    if (ok)
        epp_plugin_know(e, id);
    return ok;
}
