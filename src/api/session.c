#include "api/session.h"

#include "api/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "host/plugin.h"
#include "host/registry.h"
#include "os/env.h"
#include "os/fs.h"

#include <stdio.h>

void session_notice(void *ctx, Str line)
{
    const SessionNotice *n = ctx;
    ABX_UNSET char text[ERR_TEXT_SIZE];

    snprintf(text, sizeof text, "%.*s", STR_ARG(line));
    if (n->say)
        n->say(n->ctx, text);
    else
        fprintf(stderr, "abx: %s\n", text);
}

bool session_pairs(const abx_pair *pairs, size_t n, const char *what, Arena *a, const Pair **out, Err *err)
{
    Pair *copies = arena_array(a, n, sizeof *copies);

    for (size_t i = 0; i < n; i++) {
        copies[i] = (Pair){str_from(pairs[i].key), str_from(pairs[i].value)};
        if (!copies[i].key.n || !copies[i].value.p)
            return err_set(err, ERR_USAGE, E8002, "%s %zu has no %s", what, i + 1, copies[i].key.n ? "value" : "name");
    }
    *out = copies;
    return true;
}

Arena *session_result(abx_sandbox *b)
{
    arena_reset(&b->result);
    b->known = false;
    return &b->result;
}

bool session_can(const Provider *p, bool can, const char *what, Err *err)
{
    return can || err_set(err, ERR_USAGE, E8004, "provider %.*s does not implement %s", STR_ARG(p->kind->id), what);
}

Config *session_config(const abx_options *o, SessionNotice *notice, Arena *a, Err *err)
{
    const Pair *given;

    if (!session_pairs(o->config, o->config_count, "setting", a, &given, err))
        return NULL;
    Pair  *all = arena_array(a, o->config_count + 1, sizeof *all);
    size_t n = 0;
    for (size_t i = 0; i < o->config_count; i++)
        all[n++] = given[i];
    if (o->provider && o->provider[0])
        all[n++] = (Pair){STR("provider"), str_from(o->provider)};

    ConfigInput in = {.overrides = all, .override_count = n, .exposed = o->exposed, .exposed_count = o->exposed_count,
                      .allow_cwd_env = o->allow_cwd_env != 0,
                      .notice = session_notice, .notice_ctx = notice};
    return o->config_only ? config_load(&in, a) : config_open(&in, str_from(o->home), a);
}

Str session_home(const abx_options *o, Arena *a)
{
    return o->home ? arena_str(a, str_from(o->home)) : env_abx_home(a);
}

const Store *session_store(const abx_options *o, Arena *a)
{
    Str home = o->config_only ? (Str){0} : session_home(o, a);

    if (!home.n)
        return NULL;
    Store *s = arena_new(a, Store);
    *s = store_make(home, a);
    return s;
}

/* The provider that the options, the reference or the configuration name. */
static bool session__choose(abx_session *s, const abx_options *o, const Config *c, RegistryRow *row, Err *err)
{
    Str  from_ref = {0}, id;
    bool chosen = o->provider && o->provider[0];

    if (o->sandbox && !(chosen ? registry_ref(s->store, str_from(o->sandbox), str_from(o->provider), &id, err)
                               : registry_split(s->store, str_from(o->sandbox), &from_ref, &id, err)))
        return false;
    return registry_find(s->store, from_ref.n ? from_ref : config_core(c, "provider", &s->own).value, &s->own, row, err);
}

/* A row that has no backend in this abx. */
static bool session__no_backend(const Config *c, const RegistryRow *row, Arena *a, Err *err)
{
    if (config_field(c, &row->schema, STR("sandbox_api_key"), a).value.n)
        return err_set(err, ERR_USAGE, E8004, "this abx has no backend for provider %.*s", STR_ARG(row->id)) ||
               err_hint(err, "Choose another one with --provider: `abx provider list` shows them.");
    return err_set(err, ERR_DENIED, E1001, "provider %.*s needs an API key, and none is set", STR_ARG(row->id)) ||
           err_hint(err, "Use one that works without a key: --provider opensandbox, with a server of your own.");
}

static bool session__compiled(abx_session *s, const Config *c, const RegistryRow *row, const ProviderHost *host, Err *err)
{
    Settings settings;

    if (!row->kind)
        return session__no_backend(c, row, &s->own, err);
    if (!config_provider(c, &row->schema, &s->own, &settings, err))
        return false;

    /* The keys that tune every provider come along as settings of its own. */
    Pair *all = arena_array(&s->own, settings.n + 1, sizeof *all);
    for (size_t i = 0; i < settings.n; i++)
        all[i] = settings.v[i];
    all[settings.n] = (Pair){STR("http_timeout"), config_core(c, "http_timeout", &s->own).value};
    settings = (Settings){all, settings.n + 1};
    return row->kind->open(settings, host, &s->provider, err);
}

/* An `abx` in the folders of PATH. A relative one could be anybody's. */
static Str session__on_path(Arena *a)
{
    Str path = env_get("PATH"), folder;

    while (str_cut(&path, ':', &folder)) {
        Str file = arena_fmt(a, "%.*s/abx", STR_ARG(folder));
        if (str_starts(folder, STR("/")) && fs_type(file.p) == FS_FILE)
            return file;
    }
    return (Str){0};
}

/* The program that is carried into sandboxes; empty: none, and s->no_agent says
 * why. */
static Str session__agent(abx_session *s, const abx_options *o)
{
    Str path = str_from(o->agent_path);

    s->no_agent = o->agent_never ? "it is not to be carried into sandboxes here" : "";
    if (o->agent_never)
        return (Str){0};
    if (!path.n && !o->config_only)
        path = env_get("ABX_BIN");
    if (!path.n && !o->config_only)
        path = session__on_path(&s->own);
    if (!path.n)
        s->no_agent = "there is no abx to carry: neither ABX_BIN nor PATH names one";
    return arena_str(&s->own, path);
}

static bool session__open(abx_session *s, const abx_options *o, Err *err)
{
    Config     *c = session_config(o, &s->notice, &s->own, err);
    RegistryRow row;

    s->store = session_store(o, &s->own);
    if (!c || !session__choose(s, o, c, &row, err))
        return false;
    s->id = arena_cstr(&s->own, row.id);
    s->default_template = config_core(c, "default_template", &s->own).value;

    ProviderHost host = {
        .cancel_fd = o->cancel_fd_set ? o->cancel_fd : -1, .notice = session_notice, .notice_ctx = &s->notice,
        .trace = o->trace, .trace_ctx = o->trace_ctx, .ca_file = arena_str(&s->own, str_from(o->ca_file)),
        .agent_path = session__agent(s, o),
    };
    if (row.plugin)
        return plugin_open(s->store, row.plugin, c, &host, &s->provider, err);
    return session__compiled(s, c, &row, &host, err);
}

abx_session *abx_open(const abx_options *options, abx_error *e)
{
    static const abx_options none = {0};
    abx_session *s = mem_new(sizeof *s);
    ABX_UNSET Err err;

    if (!options)
        options = &none;
    s->own = arena_make(ARENA_COMMAND);
    s->notice = (SessionNotice){options->notice, options->notice_ctx};
    if (session__open(s, options, &err))
        return s;
    error_give(e, &err);
    abx_close(s);
    return NULL;
}

void abx_close(abx_session *s)
{
    if (!s)
        return;
    if (s->provider)
        s->provider->kind->close(s->provider);
    /* Settings lie in here, a key among them. */
    mem_wipe(s->own.p, s->own.used);
    arena_free(&s->own);
    mem_free(s);
}

const char *abx_session_provider(const abx_session *s)
{
    return s->id;
}

void abx_ignore_cancel(abx_session *s)
{
    s->provider->kind->ignore_cancel(s->provider);
}

int abx_require(const abx_session *s, const char *feature, abx_error *e)
{
    const ProviderKind *kind = s->provider->kind;
    ABX_UNSET Err err;

    for (size_t i = 0; i < kind->feature_count; i++)
        if (strcmp(kind->features[i], feature) == 0)
            return 0;
    session_can(s->provider, false, feature, &err);
    return error_give(e, &err);
}
