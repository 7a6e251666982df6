#include "host/config.h"

#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/dotenv.h"
#include "os/env.h"
#include "os/fs.h"
#include <stdlib.h>

struct Config {
    ConfigInput in;
    Dotenv     *files;          /* what in.files hold, in their order; empty for one left out */
    bool        allowed;
};

#define CONFIG_ENV(...) (const char *const[]){__VA_ARGS__, NULL}

static const ConfigField config__core[] = {
    {.key = "provider", .fallback = "alicloud-express", .env = CONFIG_ENV("ABX_PROVIDER")},
    {.key = "http_timeout", .type = FIELD_FLOAT, .fallback = "30.0", .env = CONFIG_ENV("ABX_HTTP_TIMEOUT"), .least = 1},
    {.key = "http2", .type = FIELD_BOOL, .fallback = "true", .env = CONFIG_ENV("ABX_HTTP2")},
    {.key = "max_connections", .type = FIELD_INT, .fallback = "100", .env = CONFIG_ENV("ABX_MAX_CONNECTIONS"), .least = 1},
    {.key = "max_keepalive_connections", .type = FIELD_INT, .fallback = "20",
     .env = CONFIG_ENV("ABX_MAX_KEEPALIVE_CONNECTIONS"), .least = 1},
    {.key = "keepalive_expiry", .type = FIELD_FLOAT, .fallback = "30.0", .env = CONFIG_ENV("ABX_KEEPALIVE_EXPIRY"),
     .least = 1},
    {.key = "ws_ping_interval", .type = FIELD_FLOAT, .fallback = "30.0", .env = CONFIG_ENV("ABX_WS_PING_INTERVAL"),
     .least = 1},
    {.key = "log_level", .type = FIELD_ENUM, .fallback = "WARNING", .env = CONFIG_ENV("ABX_LOG_LEVEL"),
     .choices = CONFIG_ENV("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")},
    {.key = "default_template", .fallback = "base", .env = CONFIG_ENV("ABX_DEFAULT_TEMPLATE")},
    {.key = "github_token", .secret = true, .env = CONFIG_ENV("GITHUB_TOKEN")},
    {.key = "template_index_url", .type = FIELD_URL, .env = CONFIG_ENV("ABX_TEMPLATE_INDEX_URL")},
    {.key = "template_dir", .env = CONFIG_ENV("ABX_TEMPLATE_DIR")},
    {.key = "mcp_auth_token", .secret = true, .env = CONFIG_ENV("ABX_MCP_AUTH_TOKEN")},
    {.key = "mcp_allowed_origins", .env = CONFIG_ENV("ABX_MCP_ALLOWED_ORIGINS")},
    {.key = "mcp_runtime_dir", .env = CONFIG_ENV("ABX_MCP_RUNTIME_DIR")},
};

/* The core keys that reach a provider only if it inherits them. */
enum { CONFIG_GENERIC = 3 };

static const ConfigField config__generic[CONFIG_GENERIC] = {
    {.key = "sandbox_api_key", .secret = true, .env = CONFIG_ENV("ABX_SANDBOX_API_KEY")},
    {.key = "sandbox_base_url", .type = FIELD_URL, .env = CONFIG_ENV("ABX_SANDBOX_BASE_URL")},
    {.key = "sandbox_domain", .env = CONFIG_ENV("ABX_SANDBOX_DOMAIN")},
};

#undef CONFIG_ENV

/* ---- coercion: text as its type writes it ---- */

/* Digits, with single underscores between them: how many bytes. */
static size_t config__digits(Str s)
{
    size_t n = 0;

    while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') ||
                       (s.p[n] == '_' && n > 0 && n + 1 < s.n && s.p[n + 1] >= '0' && s.p[n + 1] <= '9')))
        n++;
    return n;
}

/* A copy without underscores and without a plus in front. */
static Str config__plain(Str s, Arena *a)
{
    char *p = arena_alloc(a, s.n + 1);
    Str   out = {p, 0};

    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != '_' && !(i == 0 && s.p[i] == '+'))
            p[out.n++] = s.p[i];
    return out;
}

static bool config__sign(Str *s)
{
    if (s->n == 0 || (s->p[0] != '+' && s->p[0] != '-'))
        return false;
    str_skip(s, 1);
    return true;
}

static bool config__int(Str s, Arena *a, Str *out)
{
    Str     rest = s;
    int64_t v;

    config__sign(&rest);
    size_t digits = config__digits(rest);
    size_t whole = s.n - rest.n + digits;
    str_skip(&rest, digits);
    if (rest.n && rest.p[0] == '.' && !str_has((Str){s.p, whole}, '_')) {
        str_skip(&rest, 1);
        while (rest.n && rest.p[0] == '0')
            str_skip(&rest, 1);
    }
    if (digits == 0 || rest.n || !num_i64(config__plain((Str){s.p, whole}, a), &v))
        return false;
    *out = arena_fmt(a, "%lld", (long long)v);
    return true;
}

static bool config__float(Str s, Arena *a, Str *out)
{
    static const Str words[] = {{"inf", 3}, {"infinity", 8}, {"nan", 3}};
    Str rest = s;

    config__sign(&rest);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (str_eq_nocase(rest, words[i])) {
            *out = arena_fmt(a, "%s%s", s.p[0] == '-' ? "-" : "", i == 1 ? "inf" : words[i].p);
            return true;
        }
    size_t digits = config__digits(rest);
    str_skip(&rest, digits);
    if (rest.n && rest.p[0] == '.') {
        str_skip(&rest, 1);
        size_t more = config__digits(rest);
        str_skip(&rest, more);
        digits += more;
    }
    if (digits == 0)
        return false;
    if (rest.n && (rest.p[0] == 'e' || rest.p[0] == 'E')) {
        str_skip(&rest, 1);
        config__sign(&rest);
        digits = config__digits(rest);
        str_skip(&rest, digits);
    }
    if (digits == 0 || rest.n)
        return false;
    *out = config__plain(s, a);
    return true;
}

static bool config__bool(Str s, Str *out)
{
    static const char *const words[] = {"true", "1", "yes", "on", "false", "0", "no", "off"};

    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (str_eq_nocase(s, str_from(words[i]))) {
            *out = i < 4 ? STR("true") : STR("false");
            return true;
        }
    return false;
}

static bool config__choice(Str s, const char *const *choices, Str *out)
{
    for (size_t i = 0; choices && choices[i]; i++)
        if (str_eq_nocase(s, str_from(choices[i]))) {
            *out = str_from(choices[i]);
            return true;
        }
    *out = s;
    return !choices;
}

/* False: blank, or nothing that the field's type knows. */
static bool config__coerce(const ConfigField *f, Str raw, Arena *a, Str *out)
{
    Str s = utf8_trim(raw);

    if (s.n == 0)
        return false;
    switch (f->type) {
    case FIELD_INT:
        return config__int(s, a, out);
    case FIELD_FLOAT:
        return config__float(s, a, out);
    case FIELD_BOOL:
        return config__bool(s, out);
    case FIELD_ENUM:
        return config__choice(s, f->choices, out);
    case FIELD_STR:
    case FIELD_URL:
    case FIELD_PATH:
    case FIELD_CSV:
    case FIELD_JSON:
        break;
    }
    *out = arena_str(a, s);
    return true;
}

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
        return config__coerce(f, o->value, a, &v->value);
    }
    return false;
}

/* A layer of variables: the environment, or the file of that number. */
static bool config__variable(const Config *c, const ConfigField *f, const ConfigValue *layer, Str name, Arena *a,
                             ConfigValue *v)
{
    *v = *layer;
    v->name = name;
    if (layer->layer == CONFIG_ENVIRON)
        return config__coerce(f, config__environ((void *)c->in.environ, name), a, &v->value);
    const DotenvEntry *e = dotenv_get(&c->files[layer->file], name);
    if (!e)
        return false;
    v->outside = e->outside;
    return config__coerce(f, e->value, a, &v->value);
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

/* ABX_<PROVIDER>_<KEY> */
static Str config__name(Str provider, const char *key, Arena *a)
{
    Str   name = arena_fmt(a, "ABX_%.*s_%s", STR_ARG(provider), key);
    char *p = (char *)name.p;

    for (size_t i = 0; i < name.n; i++)
        p[i] = p[i] == '-' ? '_' : p[i] >= 'a' && p[i] <= 'z' ? (char)(p[i] - 'a' + 'A') : p[i];
    return name;
}

/* `specific`: the variable that comes first, or empty. */
static ConfigValue config__resolve(const Config *c, const ConfigField *f, Str specific, Arena *a)
{
    ConfigValue v = {0};

    if (config__override(c, f, a, &v))
        return v;
    if (config__variables(c, f, &(ConfigValue){.layer = CONFIG_ENVIRON}, specific, a, &v))
        return v;
    for (size_t i = 0; i < c->in.file_count; i++)
        if (config__variables(c, f, &(ConfigValue){.layer = CONFIG_DOTENV, .file = i}, specific, a, &v))
            return v;
    /* config.toml is looked at here, once it is read. */
    v = (ConfigValue){0};
    if (f->fallback && *f->fallback) {
        v.layer = CONFIG_DEFAULT;
        v.value = str_from(f->fallback);
    }
    return v;
}

/* ---- opening ---- */

static void config__notice(const Config *c, Arena scratch, const Err *err)
{
    if (c->in.notice)
        c->in.notice(c->in.notice_ctx, arena_fmt(&scratch, "warning: %s; the file is left out", err->text));
}

Config *config_load(const ConfigInput *in, Arena *a)
{
    Config *c = arena_new(a, Config);
    Err     err;

    c->in = *in;
    c->files = arena_array(a, in->file_count, sizeof *c->files);
    DotenvLookup lookup = {config__environ, (void *)in->environ};
    for (size_t i = 0; i < in->file_count; i++)
        if (!dotenv_parse(in->files[i].text, lookup, a, &c->files[i], &err)) {
            err_wrap(&err, "%.*s", STR_ARG(in->files[i].path));
            config__notice(c, *a, &err);
        }
    c->allowed = in->allow_cwd_env || str_eq(config__environ((void *)in->environ, STR("ABX_ALLOW_CWD_ENV")), STR("1"));
    return c;
}

/* False: there is no such file to speak of. */
static bool config__read(const Config *c, const char *path, Arena *a, ConfigFile *out)
{
    Buf  text = buf_make(LIMIT_DOTENV);
    Err  err;
    bool ok = fs_read(path, &text, &err);

    if (ok)
        *out = (ConfigFile){.path = str_from(path), .text = arena_str(a, buf_str(&text))};
    else if (err.kind != ERR_NOT_FOUND && err.kind != ERR_INPUT)
        config__notice(c, *a, &err);
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
    if (config__read(&before, "./.env", a, files))
        files[all.file_count++].cwd = true;
    if (!home.p)
        home = env_abx_home(a);
    if (home.p && config__read(&before, arena_fmt(a, "%.*s/.env", STR_ARG(home)).p, a, &files[all.file_count]))
        all.file_count++;
    return config_load(&all, a);
}

/* ---- asking ---- */

static const ConfigField *config__find(const ConfigField *fields, size_t n, Str key)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(str_from(fields[i].key), key))
            return &fields[i];
    return NULL;
}

ConfigValue config_core(const Config *c, const char *key, Arena *a)
{
    const ConfigField *f = config__find(config__core, COUNT_OF(config__core), str_from(key));

    if (!f)
        BUG("no such core key");
    return config__resolve(c, f, (Str){0}, a);
}

/* The core key of that number, as this provider sees it. False: it does not. */
static bool config__inherited(const ConfigSchema *s, size_t i, ConfigField *f)
{
    const bool        inherits[CONFIG_GENERIC] = {s->inherits_api_key, s->inherits_base_url, s->inherits_domain};
    const char *const fallback[CONFIG_GENERIC] = {NULL, s->base_url, s->domain};

    *f = config__generic[i];
    f->fallback = fallback[i];
    return inherits[i];
}

/* Field i of all that the provider has: its own, then what it inherits. */
static bool config__nth(const ConfigSchema *s, size_t i, ConfigField *f)
{
    if (i >= s->count)
        return config__inherited(s, i - s->count, f);
    *f = s->fields[i];
    return true;
}

static ConfigValue config__of(const Config *c, const ConfigSchema *s, const ConfigField *f, Arena *a)
{
    return config__resolve(c, f, f->plain ? (Str){0} : config__name(s->id, f->key, a), a);
}

ConfigValue config_field(const Config *c, const ConfigSchema *schema, const char *key, Arena *a)
{
    ConfigField f;

    for (size_t i = 0; i < schema->count + CONFIG_GENERIC; i++)
        if (config__nth(schema, i, &f) && strcmp(f.key, key) == 0)
            return config__of(c, schema, &f, a);
    return (ConfigValue){0};
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
    case CONFIG_DEFAULT:
        return STR("builtin");
    case CONFIG_UNSET:
        break;
    }
    return STR("");
}

/* ---- checks ---- */

static const char *config__kind(FieldType type)
{
    switch (type) {
    case FIELD_INT:
        return "a whole number of 64 bits";
    case FIELD_FLOAT:
        return "a number";
    case FIELD_BOOL:
        return "true or false";
    case FIELD_ENUM:
        return "one of its choices";
    case FIELD_STR:
    case FIELD_URL:
    case FIELD_PATH:
    case FIELD_CSV:
    case FIELD_JSON:
        break;
    }
    return "text";
}

/* "ABX_PROVIDER in ./.env" */
static const char *config__where(const Config *c, const ConfigValue *v, Arena *a)
{
    if (v->layer == CONFIG_ENVIRON)
        return arena_fmt(a, "%.*s in the environment", STR_ARG(v->name)).p;
    if (v->layer == CONFIG_DOTENV)
        return arena_fmt(a, "%.*s in %.*s", STR_ARG(v->name), STR_ARG(c->in.files[v->file].path)).p;
    return v->layer == CONFIG_OVERRIDE ? "an explicit option" : "its default";
}

static bool config__list_hint(const ConfigSchema *s, Err *err)
{
    Buf         names = buf_make(1000);
    ConfigField f;

    for (size_t i = 0; i < s->count + CONFIG_GENERIC; i++)
        if (config__nth(s, i, &f))
            buf_addf(&names, "%s%s", names.n ? ", " : "", f.key);
    err_hint(err, "Its settings are: %.*s.", STR_ARG(buf_str(&names)));
    buf_free(&names);
    return false;
}

static bool config__check_override(const ConfigSchema *s, const Pair *o, Arena scratch, Err *err)
{
    const ConfigField *f = config__find(config__core, COUNT_OF(config__core), o->key);
    ConfigField        own;
    Str                value;

    for (size_t i = 0; !f && i < s->count + CONFIG_GENERIC; i++)
        if (config__nth(s, i, &own) && str_eq(str_from(own.key), o->key))
            f = &own;
    if (!f) {
        err_set(err, ERR_USAGE, E8002, "%.*s has no setting \"%.*s\"", STR_ARG(s->id), STR_ARG(o->key));
        return config__list_hint(s, err);
    }
    if (utf8_trim(o->value).n == 0 || config__coerce(f, o->value, &scratch, &value))
        return true;
    if (f->secret)
        return err_set(err, ERR_USAGE, E8002, "%s must be %s", f->key, config__kind(f->type));
    return err_set(err, ERR_USAGE, E8002, "%s must be %s, not \"%.*s\"", f->key, config__kind(f->type), STR_ARG(o->value));
}

static bool config__check_least(const Config *c, const ConfigField *f, const ConfigValue *v, Arena scratch, Err *err)
{
    /* What is no number in its own spelling (NaN) is not at least anything. */
    if (f->least == 0 || !v->value.p || strtod(arena_cstr(&scratch, v->value), NULL) >= f->least)
        return true;
    return err_set(err, ERR_USAGE, E8002, "%s must be at least %d, and %s is %.*s", f->key, f->least,
                   config__where(c, v, &scratch), STR_ARG(v->value));
}

static bool config__endpoint(const ConfigField *f)
{
    Str key = str_from(f->key);

    return f->type == FIELD_URL || str_eq(key, STR("base_url")) || str_eq(key, STR("domain")) ||
           str_ends(key, STR("_base_url")) || str_ends(key, STR("_domain"));
}

static bool config__from_cwd(const Config *c, const ConfigValue *v)
{
    return v->layer == CONFIG_DOTENV && c->in.files[v->file].cwd;
}

static bool config__allow_hint(Err *err, const ConfigValue *endpoint)
{
    return err_hint(err, "If that is meant, set %.*s in the environment, or allow it with --allow-cwd-env or "
                         "ABX_ALLOW_CWD_ENV=1 in the environment.", STR_ARG(endpoint->name));
}

/* An endpoint from ./.env, and a secret that ./.env does not have. */
static bool config__check_pair(const Config *c, const ConfigField *endpoint, const ConfigValue *ev,
                               const ConfigField *secret, const ConfigValue *sv, Arena scratch, Err *err)
{
    if (!sv->value.p || config__from_cwd(c, sv))
        return true;
    err_set(err, ERR_USAGE, E8012, "%s comes from %s, but %s from %s: a working directory does not decide where keys go",
            endpoint->key, config__where(c, ev, &scratch), secret->key, config__where(c, sv, &scratch));
    return config__allow_hint(err, ev);
}

static bool config__check_cwd(const Config *c, const ConfigSchema *s, const ConfigField *endpoint, Arena scratch, Err *err)
{
    ConfigValue ev = config__of(c, s, endpoint, &scratch);
    ConfigField f;

    if (!config__from_cwd(c, &ev))
        return true;
    if (ev.outside) {
        err_set(err, ERR_USAGE, E8012, "%s comes from %s, with something of the environment in it: a working directory "
                                       "does not decide where that goes", endpoint->key, config__where(c, &ev, &scratch));
        return config__allow_hint(err, &ev);
    }
    for (size_t i = 0; i < s->count + CONFIG_GENERIC; i++) {
        if (!config__nth(s, i, &f) || !f.secret)
            continue;
        ConfigValue sv = config__of(c, s, &f, &scratch);
        if (!config__check_pair(c, endpoint, &ev, &f, &sv, scratch, err))
            return false;
    }
    return true;
}

static bool config__check(const Config *c, const ConfigSchema *s, Arena scratch, Err *err)
{
    ConfigField f;

    for (size_t i = 0; i < c->in.override_count; i++)
        if (!config__check_override(s, &c->in.overrides[i], scratch, err))
            return false;
    for (size_t i = 0; i < COUNT_OF(config__core); i++) {
        ConfigValue v = config__resolve(c, &config__core[i], (Str){0}, &scratch);
        if (!config__check_least(c, &config__core[i], &v, scratch, err))
            return false;
    }
    for (size_t i = 0; !c->allowed && i < s->count + CONFIG_GENERIC; i++)
        if (config__nth(s, i, &f) && config__endpoint(&f) && !config__check_cwd(c, s, &f, scratch, err))
            return false;
    return true;
}

bool config_provider(const Config *c, const ConfigSchema *schema, Arena *a, Settings *out, Err *err)
{
    ConfigField f;

    if (!config__check(c, schema, *a, err))
        return false;
    Pair  *v = arena_array(a, schema->count + CONFIG_GENERIC, sizeof *v);
    size_t n = 0;
    for (size_t i = 0; i < schema->count + CONFIG_GENERIC; i++) {
        if (!config__nth(schema, i, &f))
            continue;
        Str value = config__of(c, schema, &f, a).value;
        if (value.p)
            v[n++] = (Pair){str_from(f.key), value};
    }
    *out = (Settings){v, n};
    return true;
}
