#include "abx.h"

#include "api/error.h"
#include "api/session.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "host/coerce.h"
#include "host/explain.h"
#include "host/keys.h"
#include "host/registry.h"
#include "host/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* One call: what is configured, and where. */
typedef struct Configure {
    Arena         a;
    abx_options   o;
    SessionNotice notice;
    Config       *c;
    Str           home;         /* p NULL: there is none */
    const Store  *store;        /* NULL: there is none */
    RegistryRow   row;          /* the provider in effect; all zero: it cannot be used, */
    Err           why;          /* for this reason, and core keys alone can be asked for */
} Configure;

/* Others can read what is meant for one person. */
static void configure__watch(Configure *x)
{
    ABX_UNSET struct stat st;

    if (!x->home.p)
        return;
    Str path = arena_fmt(&x->a, "%.*s/.env", STR_ARG(x->home));
    if (stat(path.p, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 077) != 0)
        session_notice(&x->notice, arena_fmt(&x->a, "warning: others can read %s: chmod 600 it", path.p));
}

/* Ends with configure__end() either way. */
static bool configure__begin(Configure *x, const abx_options *o, Err *err)
{
    *x = (Configure){.a = arena_make(ARENA_COMMAND), .o = o ? *o : (abx_options){0}};
    x->notice = (SessionNotice){x->o.notice, x->o.notice_ctx};
    x->home = session_home(&x->o, &x->a);
    x->store = session_store(&x->o, &x->a);
    configure__watch(x);
    x->c = session_config(&x->o, &x->notice, &x->a, err);
    if (!x->c)
        return false;
    if (!registry_find(x->store, config_core(x->c, "provider", &x->a).value, &x->a, &x->row, &x->why))
        x->row = (RegistryRow){0};
    return true;
}

static int configure__end(Configure *x, bool ok, abx_error *e, const Err *err)
{
    mem_wipe(x->a.p, x->a.used);
    arena_free(&x->a);
    return ok ? 0 : error_give(e, err);
}

/* ---- looking ---- */

static const char *configure__file(const Configure *x, const ConfigValue *v)
{
    const ConfigInput *in = config_input(x->c);

    if (v->layer == CONFIG_DOTENV)
        return in->files[v->file].path.p;
    return v->layer == CONFIG_TOML ? in->toml.path.p : "";
}

/* `provider`: whose own key it is; empty for a core key. */
static abx_setting configure__setting(Configure *x, const ConfigField *f, const ConfigValue *v, Str provider, int reveal)
{
    Arena      *a = &x->a;
    bool        secret = f->secret || v->secret;
    Str         shown = secret && !reveal && v->value.p ? explain_mask(v->value, a) : v->value;
    abx_setting s = {
        .key = f->key, .full_key = f->key, .source = explain_source(v->layer).p, .name = arena_cstr(a, v->name),
        .file = configure__file(x, v), .secret = secret, .own = provider.n > 0, .settable = provider.n > 0 || f->settable,
    };

    if (provider.n)
        s.full_key = arena_fmt(a, "providers.%.*s.%s", STR_ARG(provider), f->key).p;
    if (!v->value.p)
        return s;
    Buf     text = buf_make(LIMIT_DOCUMENT);
    JsonOut w = json_out(&text, JSON_COMPACT);
    explain_json(&w, secret ? FIELD_STR : v->type, shown);
    s.value = arena_cstr(a, shown);
    s.json = arena_cstr(a, buf_str(&text));
    buf_free(&text);
    return s;
}

int abx_config_list(const abx_options *options, int reveal, int (*each)(void *ctx, const abx_setting *s), void *ctx,
                    abx_error *e)
{
    Configure x;
    ABX_UNSET Err err;
    bool      ok = configure__begin(&x, options, &err);
    size_t    n = 0;

    if (ok && !x.row.id.n)
        session_notice(&x.notice, arena_fmt(&x.a, "warning: %s: no setting of it is shown", x.why.text));
    const ExplainRow *rows = ok ? explain_all(x.c, &x.row.schema, &x.a, &n) : NULL;
    for (size_t i = 0; i < n; i++) {
        abx_setting s = configure__setting(&x, &rows[i].field, &rows[i].v, rows[i].own ? x.row.id : (Str){0}, reveal);
        if (each(ctx, &s) != 0)
            break;
    }
    return configure__end(&x, ok, e, &err);
}

/* ---- what a key names ---- */

typedef struct ConfigureKey {
    ConfigField field;
    RegistryRow row;            /* whose own key it is; id empty: a core key */
} ConfigureKey;

static bool configure__unknown(const RegistryRow *row, Str key, Err *err)
{
    Buf                names = buf_make(1500);
    const ConfigField *core;

    for (size_t i = 0; i < row->schema.count; i++)
        buf_addf(&names, "%s%s", names.n ? ", " : "", row->schema.fields[i].key);
    for (size_t i = 0; (core = keys_core(i)) != NULL; i++)
        if (core->settable)
            buf_addf(&names, "%s%s", names.n ? ", " : "", core->key);
    err_set(err, ERR_USAGE, E8002, "there is no setting \"%.*s\"", STR_ARG(key));
    err_hint(err, "With provider %.*s there are: %.*s. providers.ID.KEY is a setting of another one.", STR_ARG(row->id),
             STR_ARG(buf_str(&names)));
    buf_free(&names);
    return false;
}

/* providers.ID.KEY */
static bool configure__named(Configure *x, Str rest, ConfigureKey *out, Err *err)
{
    Str id;

    str_cut(&rest, '.', &id);
    if (!registry_find(x->store, id, &x->a, &out->row, err))
        return false;
    return config_has(&out->row.schema, rest, &out->field) || configure__unknown(&out->row, rest, err);
}

static bool configure__key(Configure *x, const char *name, ConfigureKey *out, Err *err)
{
    Str    key = str_from(name), rest = key, table;
    size_t i;

    *out = (ConfigureKey){0};
    if (str_starts(key, STR("providers."))) {
        str_skip(&rest, 10);
        return configure__named(x, rest, out, err);
    }
    /* transport.http_timeout, as explain names it */
    if (str_has(key, '.') && str_cut(&rest, '.', &table) && keys_find(rest, &i) && keys_core(i)->table &&
        str_eq(table, str_from(keys_core(i)->table)))
        key = rest;
    if (keys_find(key, &i)) {
        out->field = *keys_core(i);
        return true;
    }
    if (!x->row.id.n) {
        *err = x->why;
        return false;
    }
    out->row = x->row;
    return config_has(&x->row.schema, key, &out->field) || configure__unknown(&x->row, str_from(name), err);
}

/* What a provider that inherits a generic key gets counts for it. */
static ConfigValue configure__value(Configure *x, const ConfigureKey *k)
{
    ConfigField f;
    Str         key = str_from(k->field.key);

    if (k->row.id.n)
        return config_field(x->c, &k->row.schema, key, &x->a);
    return config_has(&x->row.schema, key, &f) ? config_field(x->c, &x->row.schema, key, &x->a)
                                               : config_core(x->c, k->field.key, &x->a);
}

int abx_config_get(const abx_options *options, const char *key, int reveal,
                   int (*each)(void *ctx, const abx_setting *s), void *ctx, abx_error *e)
{
    Configure    x;
    ConfigureKey k;
    ABX_UNSET Err err;
    bool         ok = configure__begin(&x, options, &err) && configure__key(&x, key, &k, &err);

    if (ok) {
        ConfigValue v = configure__value(&x, &k);
        abx_setting s = configure__setting(&x, &k.field, &v, k.row.id, reveal);
        each(ctx, &s);
    }
    return configure__end(&x, ok, e, &err);
}

/* ---- changing ---- */

/* Where a key is kept. */
typedef struct ConfigurePlace {
    Str variable;               /* of HOME/.env; empty: config.toml */
    Str table;
} ConfigurePlace;

static bool configure__place(Configure *x, const ConfigureKey *k, ConfigurePlace *out, Err *err)
{
    const ConfigField *f = &k->field;
    bool               own = k->row.id.n > 0;

    *out = (ConfigurePlace){0};
    if (!own && !f->settable) {
        err_set(err, ERR_USAGE, E8002, "%s is not kept in a file by this command", f->key);
        return err_hint(err, "Set %s in the environment.", f->env[0]);
    }
    if (!x->home.p)
        return err_set(err, ERR_USAGE, E8002, "there is no folder for settings: neither ABX_HOME nor HOME is set");
    if (f->secret || f->no_toml)
        out->variable = own && !f->plain ? config_variable(k->row.id, str_from(f->key), &x->a) : str_from(f->env[0]);
    else if (own && !f->plain)
        out->table = arena_fmt(&x->a, "providers.%.*s", STR_ARG(k->row.id));
    else
        out->table = str_from(f->table);
    return true;
}

static void configure__stored(Configure *x, const ConfigureKey *k, const ConfigurePlace *p, abx_stored *out)
{
    Str path = arena_fmt(&x->a, "%.*s/%s", STR_ARG(x->home), p->variable.n ? ".env" : "config.toml");

    snprintf(out->file, sizeof out->file, "%.*s", STR_ARG(path));
    if (p->variable.n)
        snprintf(out->name, sizeof out->name, "%.*s", STR_ARG(p->variable));
    else
        snprintf(out->name, sizeof out->name, "%.*s.%s", STR_ARG(p->table), k->field.key);
}

/* What is wrong with the files was said before. */
static void configure__silent(void *ctx, const char *line)
{
    (void)ctx;
    (void)line;
}

/* What is there already and comes first makes the change unseen. */
static void configure__hidden(Configure *x, const ConfigureKey *k, const abx_stored *stored)
{
    SessionNotice silent = {configure__silent, NULL};
    ABX_UNSET Err unheard;

    x->c = session_config(&x->o, &silent, &x->a, &unheard);
    ConfigValue v = x->c ? configure__value(x, k) : (ConfigValue){0};
    const char *file = x->c ? configure__file(x, &v) : "";
    if (v.layer == CONFIG_UNSET || v.layer == CONFIG_DEFAULT || v.layer == CONFIG_DERIVED ||
        (str_eq(v.name, str_from(stored->name)) && strcmp(file, stored->file) == 0))
        return;
    session_notice(&x->notice, arena_fmt(&x->a, "%s: %.*s %s%s comes first", k->field.key, STR_ARG(v.name),
                                         *file ? "in " : v.layer == CONFIG_ENVIRON ? "in the environment" : "as an option",
                                         file));
}

static bool configure__check(Configure *x, const ConfigureKey *k, const char *value, int exposed, Str *out, Err *err)
{
    const ConfigField *f = &k->field;

    if (exposed && f->secret) {
        err_set(err, ERR_USAGE, E8002, "%s is a secret, and a command line can be read by others", f->key);
        return err_hint(err, "Write `abx config set %s -` and give it on standard input, or %s @FILE.", f->key, f->key);
    }
    if (utf8_trim(str_from(value)).n == 0)
        return err_set(err, ERR_USAGE, E8002, "%s: there is no value", f->key) ||
               err_hint(err, "`abx config unset` takes a setting out.");
    if (!coerce_text(f->type, f->choices, str_from(value), &x->a, out))
        return err_set(err, ERR_USAGE, E8002, "%s must be %s", f->key, coerce_kind(f->type));
    if (f->least && !(strtod(out->p, NULL) >= f->least))
        return err_set(err, ERR_USAGE, E8002, "%s must be at least %d", f->key, f->least);
    return true;
}

/* The default provider must be one that can be used. */
static bool configure__set_default(Configure *x, Str id, Err *err)
{
    RegistryRow row;

    return registry_find(x->store, id, &x->a, &row, err) && settings_set_default(x->home, id, err);
}

static bool configure__set(Configure *x, const char *key, const char *value, int exposed, abx_stored *out, Err *err)
{
    ConfigureKey   k;
    ConfigurePlace p;
    Str            v;

    if (!configure__key(x, key, &k, err) || !configure__place(x, &k, &p, err) ||
        !configure__check(x, &k, value, exposed, &v, err))
        return false;
    bool ok = p.variable.n ? settings_put_env(x->home, p.variable, v, NULL, err) :
              str_eq(p.table, STR("core")) ? configure__set_default(x, v, err) :
              settings_put_toml(x->home, p.table, str_from(k.field.key), k.field.type, v, NULL, err);
    if (!ok)
        return false;
    configure__stored(x, &k, &p, out);
    configure__hidden(x, &k, out);
    return true;
}

int abx_config_set(const abx_options *options, const char *key, const char *value, int exposed, abx_stored *stored,
                   abx_error *e)
{
    Configure x;
    ABX_UNSET Err err;
    bool      ok = configure__begin(&x, options, &err) && configure__set(&x, key, value, exposed, stored, &err);

    return configure__end(&x, ok, e, &err);
}

static bool configure__unset(Configure *x, const char *key, abx_stored *out, int *removed, Err *err)
{
    ConfigureKey   k;
    ConfigurePlace p;
    bool           there = false;

    if (!configure__key(x, key, &k, err) || !configure__place(x, &k, &p, err) ||
        !(p.variable.n ? settings_put_env(x->home, p.variable, (Str){0}, &there, err)
                       : settings_put_toml(x->home, p.table, str_from(k.field.key), k.field.type, (Str){0}, &there, err)))
        return false;
    *removed = there;
    configure__stored(x, &k, &p, out);
    if (there)
        configure__hidden(x, &k, out);
    return true;
}

int abx_config_unset(const abx_options *options, const char *key, abx_stored *stored, int *removed, abx_error *e)
{
    Configure x;
    ABX_UNSET Err err;
    bool      ok = configure__begin(&x, options, &err) && configure__unset(&x, key, stored, removed, &err);

    return configure__end(&x, ok, e, &err);
}

int abx_config_files(const abx_options *options, abx_config_paths *out, abx_error *e)
{
    abx_options o = options ? *options : (abx_options){0};
    Arena       a = arena_make(1 << 20);
    Str         home = session_home(&o, &a);
    ABX_UNSET Err err;
    bool        ok = home.p && home.n + sizeof "/config.toml" <= sizeof out->config;

    if (ok) {
        snprintf(out->home, sizeof out->home, "%.*s", STR_ARG(home));
        snprintf(out->config, sizeof out->config, "%.*s/config.toml", STR_ARG(home));
        snprintf(out->secrets, sizeof out->secrets, "%.*s/.env", STR_ARG(home));
    } else {
        err_set(&err, ERR_USAGE, E8002, "there is no folder for settings: neither ABX_HOME nor HOME is set");
    }
    arena_free(&a);
    return ok ? 0 : error_give(e, &err);
}
