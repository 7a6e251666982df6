#include "host/plugin.h"

#include "base/limits.h"
#include "base/str.h"
#include "host/keys.h"
#include "os/fs.h"
#include "provider/epp.h"

/* ---- loading ---- */

static bool plugin__read(const char *files, Arena *a, Str *text, const char **where, Err *err)
{
    Buf all = buf_make(LIMIT_MANIFEST);

    *where = arena_fmt(a, "%s/%s", files, MANIFEST_FILE).p;
    bool ok = fs_read(*where, &all, err);
    if (ok)
        *text = arena_str(a, buf_str(&all));
    else
        err->code = E8014;
    buf_free(&all);
    return ok;
}

/* What was declared, as far as the person agreed to it. */
static Strs plugin__consented(const Manifest *m, const Receipt *r, Arena *a)
{
    const Json *agreed = json_get(r->consented, "inherit");
    Str        *v = arena_array(a, m->inherit.n, sizeof *v);
    size_t      n = 0;

    for (size_t i = 0; i < m->inherit.n; i++)
        for (size_t k = 0; k < json_count(agreed); k++)
            if (str_eq(json_str(json_at(agreed, k)), m->inherit.v[i])) {
                v[n++] = m->inherit.v[i];
                break;
            }
    return (Strs){v, n};
}

bool plugin_load(const Store *s, Str id, Arena *a, Plugin *out, Err *err)
{
    const char *where;
    Str         text;
    Plugin      p = {0};

    if (!manifest_is_id(id) || !store_receipt(s, id, a, &p.receipt))
        return err_set(err, ERR_NOT_FOUND, E8001, "provider \"%.*s\" is not installed", STR_ARG(id));
    p.files = store_files(s, &p.receipt);
    if (!plugin__read(p.files, a, &text, &where, err) || !manifest_parse(text, str_from(where), a, &p.manifest, err) ||
        !manifest_supported(&p.manifest, err))
        return false;
    if (!str_eq(p.manifest.id, id))
        return err_set(err, ERR_NOT_FOUND, E8001, "%s is the manifest of \"%.*s\", not of \"%.*s\"", where,
                       STR_ARG(p.manifest.id), STR_ARG(id));
    if (p.manifest.kind != MANIFEST_EXEC && !store_check(s, id, err))
        return false;
    p.inherit = plugin__consented(&p.manifest, &p.receipt, a);
    plugin_schema(&p.manifest, p.inherit, a, &p.schema);
    *out = p;
    return true;
}

/* ---- its settings ---- */

static const char *const *plugin__cstrs(Strs s, Arena *a)
{
    const char **v = arena_array(a, s.n + 1, sizeof *v);

    for (size_t i = 0; i < s.n; i++)
        v[i] = arena_cstr(a, s.v[i]);
    return v;
}

static bool plugin__has(Strs s, const char *word)
{
    for (size_t i = 0; i < s.n; i++)
        if (str_eq(s.v[i], str_from(word)))
            return true;
    return false;
}

void plugin_schema(const Manifest *m, Strs inherit, Arena *a, ConfigSchema *out)
{
    ConfigField *fields = arena_array(a, m->field_count, sizeof *fields);

    for (size_t i = 0; i < m->field_count; i++) {
        const ManifestField *f = &m->fields[i];
        fields[i] = (ConfigField){
            .key = arena_cstr(a, f->key), .type = f->type, .secret = f->secret, .own_default = f->fallback,
            .env = plugin__cstrs(f->env, a), .choices = f->choices.n ? plugin__cstrs(f->choices, a) : NULL,
        };
    }
    *out = (ConfigSchema){
        .id = m->id, .fields = fields, .count = m->field_count,
        .inherits_api_key = plugin__has(inherit, "sandbox_api_key"),
        .inherits_base_url = plugin__has(inherit, "sandbox_base_url"),
        .inherits_domain = plugin__has(inherit, "sandbox_domain"),
        .base_url = m->base_url.n ? arena_cstr(a, m->base_url) : NULL,
        .domain = m->domain.n ? arena_cstr(a, m->domain) : NULL,
        .derive = m->derive, .derive_count = m->derive_count,
    };
}

/* There is a value, and the plugin sees it. */
static bool plugin__set(const Plugin *p, Settings settings, Str key)
{
    ConfigField f;

    if (!config_has(&p->schema, key, &f))
        return false;
    return provider_setting(settings, f.key).n > 0;
}

/* "ABX_DEMO_TOKEN, BOX_TOKEN": the variables that a key is read from. */
static void plugin__variables(const Plugin *p, Str key, Arena scratch, Buf *to)
{
    ConfigField f;

    buf_add(to, config_variable(p->manifest.id, key, &scratch));
    if (config_has(&p->schema, key, &f))
        for (size_t i = 0; f.env && f.env[i]; i++)
            buf_addf(to, ", %s", f.env[i]);
}

static bool plugin__required(const Plugin *p, const ManifestField *f, Err *err)
{
    Arena a = arena_make(1 << 20);
    Buf   names = buf_make(1000);

    plugin__variables(p, f->key, a, &names);
    err_set(err, f->credential ? ERR_DENIED : ERR_USAGE, f->credential ? E1003 : E8002,
            "provider %.*s needs the setting %.*s, and it is not set", STR_ARG(p->manifest.id), STR_ARG(f->key));
    err_hint(err, "Set %.*s in the environment, or `abx config set providers.%.*s.%.*s`.", STR_ARG(buf_str(&names)),
             STR_ARG(p->manifest.id), STR_ARG(f->key));
    buf_free(&names);
    arena_free(&a);
    return false;
}

static bool plugin__group(const Plugin *p, Strs group, Settings settings)
{
    for (size_t i = 0; i < group.n; i++)
        if (!plugin__set(p, settings, group.v[i]))
            return false;
    return true;
}

/* One group of credentials must be there, whole. */
static bool plugin__any_of(const Plugin *p, Settings settings, Err *err)
{
    const Manifest *m = &p->manifest;

    for (size_t i = 0; i < m->any_of_count; i++)
        if (plugin__group(p, m->any_of[i], settings))
            return true;
    if (m->any_of_count == 0)
        return true;
    Arena a = arena_make(1 << 20);
    Buf   names = buf_make(1000);
    for (size_t i = 0; i < m->any_of_count; i++)
        for (size_t k = 0; k < m->any_of[i].n; k++) {
            buf_add(&names, k ? STR(" with ") : i ? STR("; or ") : STR(""));
            plugin__variables(p, m->any_of[i].v[k], a, &names);
        }
    err_set(err, ERR_DENIED, E1003, "provider %.*s needs credentials, and none of these are set: %.*s", STR_ARG(m->id),
            STR_ARG(buf_str(&names)));
    buf_free(&names);
    arena_free(&a);
    return false;
}

bool plugin_validate(const Plugin *p, Settings settings, Err *err)
{
    const Manifest *m = &p->manifest;

    for (size_t i = 0; i < m->field_count; i++)
        if (m->fields[i].required && !plugin__set(p, settings, m->fields[i].key))
            return plugin__required(p, &m->fields[i], err);
    if (!plugin__any_of(p, settings, err))
        return false;
    if (m->kind != MANIFEST_REST || plugin__set(p, settings, STR("api_key")) ||
        plugin__set(p, settings, STR("sandbox_api_key")))
        return true;
    return err_set(err, ERR_DENIED, E1001, "provider %.*s needs an API key, and none is set", STR_ARG(m->id));
}

/* ---- opening ---- */

/* What epp_open() is told to call before each start. */
typedef struct PluginCheck { const Store *store; Str id; } PluginCheck;

static bool plugin__check(void *ctx, Err *err)
{
    const PluginCheck *c = ctx;

    return store_check(c->store, c->id, err);
}

/* The settings with their types: a default keeps its own. */
static const ProviderField *plugin__fields(const Plugin *p, const Config *c, Arena *a)
{
    ProviderField *v = arena_array(a, p->schema.count, sizeof *v);

    for (size_t i = 0; i < p->schema.count; i++) {
        const ConfigField *f = &p->schema.fields[i];
        v[i] = (ProviderField){.key = f->key, .type = config_field(c, &p->schema, str_from(f->key), a).type,
                               .secret = f->secret};
    }
    return v;
}

/* The variable to name when a key is refused. */
static Str plugin__credential(const Plugin *p, Arena *a)
{
    for (size_t i = 0; i < p->manifest.field_count; i++)
        if (p->manifest.fields[i].credential && p->manifest.fields[i].secret)
            return config_variable(p->manifest.id, p->manifest.fields[i].key, a);
    return p->schema.inherits_api_key ? config_variable(p->manifest.id, STR("sandbox_api_key"), a) : (Str){0};
}

/* With the key that tunes every provider, which comes along as one more. */
static Settings plugin__settings(const Config *c, Settings own, Arena *a)
{
    Pair *v = arena_array(a, own.n + 1, sizeof *v);

    if (own.n)
        memcpy(v, own.v, own.n * sizeof *v);
    v[own.n] = (Pair){STR("http_timeout"), config_core(c, "http_timeout", a).value};
    return (Settings){v, own.n + 1};
}

static bool plugin__open(const Store *s, const Plugin *p, const Config *c, const ProviderHost *host, Provider **out,
                         Err *err)
{
    const Manifest *m = &p->manifest;
    const char     *data = NULL;
    Settings        settings;

    if (!config_provider(c, &p->schema, s->a, &settings, err) || !plugin_validate(p, settings, err) ||
        !store_data(s, m->id, &data, err))
        return false;
    PluginCheck *check = arena_new(s->a, PluginCheck);
    *check = (PluginCheck){s, m->id};
    EppSpec spec = {
        .id = m->id, .name = m->name, .files = p->files, .data_dir = data, .command = m->command,
        .env_passthrough = m->env_passthrough, .startup_ms = m->startup_ms, .call_ms = m->call_ms,
        .features = m->features, .cli = m->cli, .python = m->python,
        .inputs = m->inputs, .startups = m->startups,
        .fields = plugin__fields(p, c, s->a), .field_count = p->schema.count, .inherit = p->inherit,
        .credential = plugin__credential(p, s->a), .environ = config_input(c)->environ,
        .check = plugin__check, .check_ctx = check,
    };
    return epp_open(&spec, plugin__settings(c, settings, s->a), host, out, err);
}

bool plugin_open(const Store *s, const Plugin *p, const Config *c, const ProviderHost *host, Provider **out, Err *err)
{
    if (p->manifest.kind == MANIFEST_EXEC)
        return plugin__open(s, p, c, host, out, err);
    Str kind = manifest_kind_word(p->manifest.kind);
    err_set(err, ERR_USAGE, E8021, "provider %.*s is a plugin of kind %.*s, which this abx does not run",
            STR_ARG(p->manifest.id), STR_ARG(kind));
    return err_hint(err, "It runs plugins of kind exec.");
}
