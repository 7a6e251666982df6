#include "host/config.h"

#include "base/limits.h"
#include "base/str.h"
#include "data/dotenv.h"
#include "host/coerce.h"
#include "host/derive.h"
#include "host/keys.h"
#include "host/vet.h"
#include "os/env.h"
#include "os/fs.h"

struct Config {
    ConfigInput in;
    Dotenv     *files;          /* what in.files hold, in their order; empty for one left out */
    const Toml *toml;           /* NULL: none, or left out */
};

/* ---- layers ---- */

static Str config__environ(void *ctx, Str name)
{
    for (const char *const *e = ctx; e && *e; e++)
        if (strncmp(*e, name.p, name.n) == 0 && (*e)[name.n] == '=')
            return str_from(*e + name.n + 1);
    return (Str){0};
}

static bool config__override(const Config *c, const ConfigField *f, Arena *a, ConfigValue *v)
{
    for (size_t i = c->in.override_count; i-- > 0;) {
        const Pair *o = &c->in.overrides[i];
        if (!str_eq(o->key, str_from(f->key)))
            continue;
        v->layer = CONFIG_OVERRIDE;
        v->name = o->key;
        return coerce_text(f->type, f->choices, o->value, a, &v->value);
    }
    return false;
}

/* A layer of variables: the environment, or the file of that number. */
static bool config__variable(const Config *c, const ConfigField *f, const ConfigValue *layer, Str name, Arena *a,
                             ConfigValue *v)
{
    Str raw;

    *v = *layer;
    v->name = name;
    if (layer->layer == CONFIG_ENVIRON) {
        raw = config__environ((void *)c->in.environ, name);
    } else {
        const DotenvEntry *e = dotenv_get(&c->files[layer->file], name);
        if (!e)
            return false;
        raw = e->value;
        v->outside = e->outside;
        if (c->in.files[layer->file].cwd)
            v->cwd = name;
    }
    return coerce_text(f->type, f->choices, raw, a, &v->value);
}

static bool config__variables(const Config *c, const ConfigField *f, const ConfigValue *layer, Str specific, Arena *a,
                              ConfigValue *v)
{
    if (specific.n && config__variable(c, f, layer, specific, a, v))
        return true;
    for (size_t i = 0; f->env && f->env[i]; i++)
        if (config__variable(c, f, layer, str_from(f->env[i]), a, v))
            return true;
    return false;
}

/* config.toml: [providers.<id>] where there is an id, then the key's own table. */
static bool config__toml(const Config *c, const ConfigField *f, Str provider, Arena *a, ConfigValue *v)
{
    Str key = str_from(f->key);

    if (!c->toml || f->secret || f->no_toml)
        return false;
    *v = (ConfigValue){.layer = CONFIG_TOML};
    const Toml *own = provider.n ? toml_get_str(toml_get(c->toml, "providers"), provider) : NULL;
    if (coerce_toml(f->type, f->choices, toml_get_str(own, key), a, &v->value)) {
        v->name = arena_fmt(a, "providers.%.*s.%s", STR_ARG(provider), f->key);
        return true;
    }
    if (!f->table || !coerce_toml(f->type, f->choices, toml_get_str(toml_get(c->toml, f->table), key), a, &v->value))
        return false;
    v->name = arena_fmt(a, "%s.%s", f->table, f->key);
    return true;
}

static ConfigValue config__default(const ConfigField *f, Arena *a)
{
    ConfigValue v = {.type = f->type};

    if (f->own_default ? !coerce_as_is(f->own_default, a, &v.type, &v.value) : !f->fallback)
        v.value = (Str){0};
    else if (!f->own_default)
        v.value = str_from(f->fallback);
    if (v.value.n == 0)
        return (ConfigValue){.type = f->type};
    v.layer = CONFIG_DEFAULT;
    return v;
}

/* `provider`: whose tables and variables come first, or empty. */
static ConfigValue config__resolve(const Config *c, const ConfigField *f, Str provider, Arena *a)
{
    ConfigValue v = {0};
    Str         specific = provider.n && !f->plain ? config_variable(provider, str_from(f->key), a) : (Str){0};
    bool        found = config__override(c, f, a, &v) ||
                        config__variables(c, f, &(ConfigValue){.layer = CONFIG_ENVIRON}, specific, a, &v);

    for (size_t i = 0; !found && i < c->in.file_count; i++)
        found = config__variables(c, f, &(ConfigValue){.layer = CONFIG_DOTENV, .file = i}, specific, a, &v);
    found = found || config__toml(c, f, provider, a, &v);
    if (!found)
        v = config__default(f, a);
    else
        v.type = f->type;
    v.secret = f->secret;
    return v;
}

/* ---- a provider's keys ---- */

static bool config__inherits(const ConfigSchema *s, size_t i)
{
    const bool inherits[CONFIG_GENERIC] = {s->inherits_api_key, s->inherits_base_url, s->inherits_domain};

    return inherits[i];
}

bool config_key(const ConfigSchema *s, size_t i, ConfigField *out)
{
    const char *const fallback[CONFIG_GENERIC] = {NULL, s->base_url, s->domain};

    if (i < s->count) {
        *out = s->fields[i];
        return true;
    }
    if (i - s->count >= CONFIG_GENERIC)
        return false;
    *out = *keys_core(KEYS_GENERIC + i - s->count);
    out->fallback = fallback[i - s->count];
    return true;
}

bool config_has(const ConfigSchema *s, Str key, ConfigField *out)
{
    for (size_t i = 0; config_key(s, i, out); i++)
        if (str_eq(str_from(out->key), key))
            return i < s->count || config__inherits(s, i - s->count);
    return false;
}

typedef struct ConfigDerive {
    const Config       *c;
    const ConfigSchema *s;
    Arena              *a;
    size_t              before;     /* templates from here on do not count yet */
    ConfigValue        *v;
} ConfigDerive;

static ConfigValue config__of(const Config *c, const ConfigSchema *s, size_t i, size_t before, Arena *a);

/* What a name in a template stands for: a key of the provider, or a core key
 * that is no secret (a manifest could put any secret into an address else). */
static Str config__derive_name(void *ctx, Str name)
{
    ConfigDerive *d = ctx;
    ConfigField   f;
    ConfigValue   v = {0};
    size_t        i = 0;

    while (config_key(d->s, i, &f) && !str_eq(str_from(f.key), name))
        i++;
    if (i < d->s->count + CONFIG_GENERIC)
        v = config__of(d->c, d->s, i, d->before, d->a);
    else if (keys_find(name, &i) && i > 0 && !keys_core(i)->secret)
        v = config__resolve(d->c, keys_core(i), (Str){0}, d->a);
    if (v.layer == CONFIG_UNSET || v.layer == CONFIG_DEFAULT)
        return (Str){0};
    d->v->secret |= v.secret;
    d->v->outside |= v.outside;
    if (v.cwd.p) {
        d->v->cwd = v.cwd;
        d->v->file = v.file;
    }
    return v.value;
}

/* No endpoint is derived where the address was given by an option or in the
 * environment: what it goes with is known there. */
static bool config__derives(const Config *c, const ConfigSchema *s, Arena *a)
{
    ConfigField f;

    if (s->derive_count == 0 || !s->inherits_base_url)
        return s->derive_count > 0;
    if (!config_has(s, STR("sandbox_base_url"), &f))
        BUG("an inherited key is there");
    ConfigLayer layer = config__resolve(c, &f, s->id, a).layer;
    return layer != CONFIG_OVERRIDE && layer != CONFIG_ENVIRON;
}

/* Key i of the provider; of its templates the first `before` count. */
static ConfigValue config__of(const Config *c, const ConfigSchema *s, size_t i, size_t before, Arena *a)
{
    ConfigField f;
    ConfigValue v = {0};

    if (!config_key(s, i, &f))
        BUG("no such key");
    if (i < s->count || config__inherits(s, i - s->count))
        v = config__resolve(c, &f, s->id, a);
    if (i < s->count || (v.layer != CONFIG_UNSET && v.layer != CONFIG_DEFAULT) || !config__derives(c, s, a))
        return v;
    for (size_t t = 0; t < before; t++) {
        ConfigValue  derived = {.layer = CONFIG_DERIVED, .type = f.type};
        ConfigDerive d = {c, s, a, t, &derived};
        if (str_eq(s->derive[t].key, str_from(f.key)) &&
            derive_fill(s->derive[t].value, config__derive_name, &d, a, &derived.value))
            return derived;
    }
    return v;
}

ConfigValue config_field(const Config *c, const ConfigSchema *schema, Str key, Arena *a)
{
    ConfigField f;

    for (size_t i = 0; config_key(schema, i, &f); i++)
        if (str_eq(str_from(f.key), key))
            return config__of(c, schema, i, schema->derive_count, a);
    return (ConfigValue){0};
}

bool config_provider(const Config *c, const ConfigSchema *schema, Arena *a, Settings *out, Err *err)
{
    ConfigField f;

    if (!vet_provider(c, schema, *a, err))
        return false;
    Pair  *v = arena_array(a, schema->count + CONFIG_GENERIC, sizeof *v);
    size_t n = 0;
    for (size_t i = 0; config_key(schema, i, &f); i++) {
        Str value = config__of(c, schema, i, schema->derive_count, a).value;
        if (value.p)
            v[n++] = (Pair){str_from(f.key), value};
    }
    *out = (Settings){v, n};
    return true;
}

ConfigValue config_core(const Config *c, const char *key, Arena *a)
{
    size_t i;

    if (!keys_find(str_from(key), &i))
        BUG("no such core key");
    return config__resolve(c, keys_core(i), (Str){0}, a);
}

Str config_variable(Str provider, Str key, Arena *a)
{
    Str   name = arena_fmt(a, "ABX_%.*s_%.*s", STR_ARG(provider), STR_ARG(key));
    char *p = (char *)name.p;

    for (size_t i = 0; i < name.n; i++)
        p[i] = p[i] == '-' ? '_' : p[i] >= 'a' && p[i] <= 'z' ? (char)(p[i] - 'a' + 'A') : p[i];
    return name;
}

Str config_source(ConfigLayer layer)
{
    switch (layer) {
    case CONFIG_OVERRIDE:
        return STR("override");
    case CONFIG_ENVIRON:
        return STR("environ");
    case CONFIG_DOTENV:
        return STR("dotenv");
    case CONFIG_TOML:
        return STR("toml");
    case CONFIG_DERIVED:
        return STR("derived");
    case CONFIG_DEFAULT:
        return STR("builtin");
    case CONFIG_UNSET:
        break;
    }
    return STR("");
}

const ConfigInput *config_input(const Config *c)
{
    return &c->in;
}

/* ---- opening ---- */

static void config__notice(const Config *c, Arena scratch, const char *text)
{
    if (c->in.notice)
        c->in.notice(c->in.notice_ctx, arena_fmt(&scratch, "warning: %s; the file is left out", text));
}

static void config__load_toml(Config *c, Arena *a)
{
    Str line, column, what;
    ABX_UNSET Err err;

    if (!c->in.toml.text.p || toml_parse(c->in.toml.text, a, &c->toml, &err))
        return;
    /* The place as every tool writes it: FILE:LINE:COLUMN: what. */
    what = str_from(err.text);
    if (str_starts(what, STR("line ")) && str_cut(&what, ',', &line) && str_cut(&what, ':', &column) &&
        str_starts(column, STR(" column "))) {
        str_skip(&line, sizeof "line " - 1);
        str_skip(&column, sizeof " column " - 1);
        config__notice(c, *a, arena_fmt(a, "%.*s:%.*s:%.*s:%.*s", STR_ARG(c->in.toml.path), STR_ARG(line), STR_ARG(column),
                                        STR_ARG(what)).p);
    } else {
        config__notice(c, *a, arena_fmt(a, "%.*s: %s", STR_ARG(c->in.toml.path), err.text).p);
    }
}

Config *config_load(const ConfigInput *in, Arena *a)
{
    Config *c = arena_new(a, Config);
    ABX_UNSET Err err;

    c->in = *in;
    c->files = arena_array(a, in->file_count, sizeof *c->files);
    DotenvLookup lookup = {config__environ, (void *)in->environ};
    for (size_t i = 0; i < in->file_count; i++)
        if (!dotenv_parse(in->files[i].text, lookup, a, &c->files[i], &err)) {
            err_wrap(&err, "%.*s", STR_ARG(in->files[i].path));
            config__notice(c, *a, err.text);
        }
    config__load_toml(c, a);
    c->in.allow_cwd_env |= str_eq(config__environ((void *)in->environ, STR("ABX_ALLOW_CWD_ENV")), STR("1"));
    return c;
}

/* False: there is no such file to speak of. */
static bool config__read(const Config *c, const char *path, size_t limit, Arena *a, ConfigFile *out)
{
    Buf  text = buf_make(limit);
    ABX_UNSET Err err;
    bool ok = fs_read(path, &text, &err);

    if (ok)
        *out = (ConfigFile){.path = str_from(path), .text = arena_str(a, buf_str(&text))};
    else if (err.kind != ERR_NOT_FOUND && err.kind != ERR_INPUT)
        config__notice(c, *a, err.text);
    buf_free(&text);
    return ok;
}

Config *config_open(const ConfigInput *in, Str home, Arena *a)
{
    Config      before = {.in = *in};
    ConfigInput all = *in;
    ConfigFile *files = arena_array(a, 2, sizeof *files);

    all.environ = env_all();
    all.files = files;
    all.file_count = 0;
    all.toml = (ConfigFile){0};
    if (config__read(&before, "./.env", LIMIT_DOTENV, a, files))
        files[all.file_count++].cwd = true;
    if (!home.p)
        home = env_abx_home(a);
    if (!home.p)
        return config_load(&all, a);
    if (config__read(&before, arena_fmt(a, "%.*s/.env", STR_ARG(home)).p, LIMIT_DOTENV, a, &files[all.file_count]))
        all.file_count++;
    config__read(&before, arena_fmt(a, "%.*s/config.toml", STR_ARG(home)).p, LIMIT_CONFIG, a, &all.toml);
    return config_load(&all, a);
}
