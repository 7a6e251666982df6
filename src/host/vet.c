#include "host/vet.h"

#include "base/str.h"
#include "base/utf8.h"
#include "host/coerce.h"
#include "host/keys.h"
#include <stdlib.h>

/* "ABX_PROVIDER in ./.env" */
static const char *vet__where(const Config *c, const ConfigValue *v, Arena *a)
{
    const ConfigInput *in = config_input(c);
    const char        *head = v->layer == CONFIG_DERIVED ? "what is derived from " : "";

    if (v->cwd.p || v->layer == CONFIG_DOTENV)
        return arena_fmt(a, "%s%.*s in %.*s", head, STR_ARG(v->cwd.p ? v->cwd : v->name), STR_ARG(in->files[v->file].path)).p;
    if (v->layer == CONFIG_ENVIRON)
        return arena_fmt(a, "%.*s in the environment", STR_ARG(v->name)).p;
    if (v->layer == CONFIG_TOML)
        return arena_fmt(a, "%.*s in %.*s", STR_ARG(v->name), STR_ARG(in->toml.path)).p;
    return v->layer == CONFIG_OVERRIDE ? "an explicit option" : "its default";
}

static bool vet__list_hint(const ConfigSchema *s, Err *err)
{
    Buf         names = buf_make(1000);
    ConfigField f;

    for (size_t i = 0; config_key(s, i, &f); i++)
        if (config_has(s, str_from(f.key), &f))
            buf_addf(&names, "%s%s", names.n ? ", " : "", f.key);
    if (names.n)
        err_hint(err, "Its settings are: %.*s.", STR_ARG(buf_str(&names)));
    buf_free(&names);
    return false;
}

static bool vet__exposed(const ConfigInput *in, Str key)
{
    for (size_t i = 0; i < in->exposed_count; i++)
        if (str_eq(str_from(in->exposed[i]), key))
            return true;
    return false;
}

static bool vet__override(const ConfigInput *in, const ConfigSchema *s, const Pair *o, Arena scratch, Err *err)
{
    ConfigField f;
    Str         value;
    size_t      i;

    if (keys_find(o->key, &i) && (i < KEYS_GENERIC || i >= KEYS_GENERIC + CONFIG_GENERIC)) {
        f = *keys_core(i);
    } else if (!config_has(s, o->key, &f)) {
        err_set(err, ERR_USAGE, E8002, "%.*s has no setting \"%.*s\"", STR_ARG(s->id), STR_ARG(o->key));
        return vet__list_hint(s, err);
    }
    if (f.secret && vet__exposed(in, o->key)) {
        err_set(err, ERR_USAGE, E8002, "%s is a secret, and a command line can be read by others", f.key);
        return err_hint(err, "Write %s=@FILE, or %s=- for standard input, or set it in the environment.", f.key, f.key);
    }
    if (utf8_trim(o->value).n == 0 || coerce_text(f.type, f.choices, o->value, &scratch, &value))
        return true;
    if (f.secret)
        return err_set(err, ERR_USAGE, E8002, "%s must be %s", f.key, coerce_kind(f.type));
    return err_set(err, ERR_USAGE, E8002, "%s must be %s, not \"%.*s\"", f.key, coerce_kind(f.type), STR_ARG(o->value));
}

static bool vet__least(const Config *c, const ConfigField *f, Arena scratch, Err *err)
{
    if (f->least == 0)
        return true;
    /* What is no number in its own spelling (NaN) is not at least anything. */
    ConfigValue v = config_core(c, f->key, &scratch);
    if (!v.value.p || strtod(arena_cstr(&scratch, v.value), NULL) >= f->least)
        return true;
    return err_set(err, ERR_USAGE, E8002, "%s must be at least %d, and %s is %.*s", f->key, f->least,
                   vet__where(c, &v, &scratch), STR_ARG(v.value));
}

static bool vet__is_endpoint(const ConfigField *f)
{
    Str key = str_from(f->key);

    return f->type == FIELD_URL || str_eq(key, STR("base_url")) || str_eq(key, STR("domain")) ||
           str_ends(key, STR("_base_url")) || str_ends(key, STR("_domain"));
}

static bool vet__allow_hint(Err *err, const ConfigValue *endpoint)
{
    return err_hint(err, "If that is meant, set %.*s in the environment, or allow it with --allow-cwd-env or "
                         "ABX_ALLOW_CWD_ENV=1 in the environment.", STR_ARG(endpoint->cwd));
}

static bool vet__endpoint(const Config *c, const ConfigSchema *s, const ConfigField *endpoint, Arena scratch, Err *err)
{
    ConfigValue ev = config_field(c, s, str_from(endpoint->key), &scratch);
    ConfigField f;

    if (!ev.cwd.p)
        return true;
    if (ev.outside) {
        err_set(err, ERR_USAGE, E8012, "%s comes from %s, with something of the environment in it: a working directory "
                                       "does not decide where that goes", endpoint->key, vet__where(c, &ev, &scratch));
        return vet__allow_hint(err, &ev);
    }
    for (size_t i = 0; config_key(s, i, &f); i++) {
        ConfigValue sv = f.secret ? config_field(c, s, str_from(f.key), &scratch) : (ConfigValue){0};
        if (!sv.value.p || sv.cwd.p)
            continue;
        err_set(err, ERR_USAGE, E8012, "%s comes from %s, but %s from %s: a working directory does not decide where "
                                       "keys go", endpoint->key, vet__where(c, &ev, &scratch), f.key,
                vet__where(c, &sv, &scratch));
        return vet__allow_hint(err, &ev);
    }
    return true;
}

bool vet_provider(const Config *c, const ConfigSchema *s, Arena scratch, Err *err)
{
    const ConfigInput *in = config_input(c);
    const ConfigField *core;
    ConfigField        f;

    for (size_t i = 0; i < in->override_count; i++)
        if (!vet__override(in, s, &in->overrides[i], scratch, err))
            return false;
    for (size_t i = 0; (core = keys_core(i)) != NULL; i++)
        if (!vet__least(c, core, scratch, err))
            return false;
    for (size_t i = 0; !in->allow_cwd_env && config_key(s, i, &f); i++)
        if (vet__is_endpoint(&f) && !vet__endpoint(c, s, &f, scratch, err))
            return false;
    return true;
}
