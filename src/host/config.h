/* config.h - what is configured, and where.
 *
 * A setting is looked for in layers, and the first layer that has a usable
 * value wins:
 *
 *     override   what the caller gave: flags, abx_options.config
 *     environ    the process environment
 *     dotenv     ./.env, then HOME/.env, where HOME is ABX_HOME or ~/.abx
 *     toml       HOME/config.toml
 *     derived    what follows from other settings (host/derive.h)
 *     default    the setting's own
 *
 * Within a layer the most specific name comes first: ABX_<PROVIDER>_<KEY>
 * before ABX_<KEY>, [providers.<id>] before the key's own table. A blank value,
 * or one that its type does not allow, is as if it were not there and hides
 * nothing - except in an override, where it is E8002.
 *
 *     Config *c = config_open(&(ConfigInput){.notice = ...}, (Str){0}, &a);
 *     Str id = config_core(c, "provider", &a).value;
 *     if (!registry_find(&store, id, &a, &row, err) || !config_provider(c, &row.schema, &a, &settings, err)) ...
 *
 * A hostile ./.env gets nothing: see config_provider(). ABX_HOME,
 * ABX_ALLOW_CWD_ENV, ABX_PROVIDER_REGISTRY, ABX_CA_FILE, SSL_CERT_* and the
 * proxy variables are no settings: they are read from the process environment
 * alone (os/env.h), and a ./.env that has them changes nothing.
 *
 * Secrets: they are never read from config.toml, and no error text holds the
 * value of one.
 *
 * Memory: all in the arena, which is as large as ARENA_COMMAND. What was given
 * out is good as long as it.
 */
#ifndef ABX_CONFIG_H
#define ABX_CONFIG_H

#include "base/arena.h"
#include "base/err.h"
#include "data/toml.h"
#include "provider/provider.h"

/* ---- what can be set ---- */

typedef struct ConfigField {
    const char *key;
    FieldType   type;
    bool        secret;
    const char *fallback;               /* taken as it is; NULL or "": none */
    const Toml *own_default;            /* a manifest's, which keeps its own type; NULL: `fallback` counts */
    const char *const *env;             /* variables behind ABX_<PROVIDER>_<KEY>, NULL after the last; NULL: none */
    const char *const *choices;         /* FIELD_ENUM: NULL after the last. Compared without case */
    const char *table;                  /* of config.toml, looked at behind [providers.<id>]; NULL: none */
    bool        plain;                  /* ABX_<PROVIDER>_<KEY> is not read */
    bool        no_toml;                /* not read from config.toml, as secrets are not */
    bool        settable;               /* a core key: `abx config set` may write it */
    int         least;                  /* a smaller number is E8002; 0: any */
} ConfigField;

/* How many core keys reach a provider only if it inherits them:
 * sandbox_api_key, sandbox_base_url and sandbox_domain. */
enum { CONFIG_GENERIC = 3 };

/* The settings of a provider. */
typedef struct ConfigSchema {
    Str                id;
    const ConfigField *fields;
    size_t             count;
    bool               inherits_api_key, inherits_base_url, inherits_domain;
    const char        *base_url, *domain;       /* of those two when no layer has them; NULL: none */
    const Pair        *derive;                  /* the same two: key and template */
    size_t             derive_count;
} ConfigSchema;

/* ---- opening ---- */

typedef struct Config Config;

typedef struct ConfigFile {
    Str  path;                  /* for messages */
    Str  text;
    bool cwd;                   /* ./.env, which whoever made the folder wrote */
} ConfigFile;

typedef struct ConfigInput {
    const Pair        *overrides;       /* of the same key twice the last counts */
    size_t             override_count;
    const char *const *exposed;         /* keys of overrides that others could read: no secret may come so */
    size_t             exposed_count;
    const char *const *environ;         /* "NAME=value", NULL after the last */
    const ConfigFile  *files;           /* .env: highest first */
    size_t             file_count;
    ConfigFile         toml;            /* config.toml; text.p NULL: none */
    bool               allow_cwd_env;   /* as ABX_ALLOW_CWD_ENV=1 in environ */
    void             (*notice)(void *ctx, Str line);    /* NULL: nobody listens */
    void              *notice_ctx;
} ConfigInput;

/* From what is in the input alone, which must outlive the Config. A file that
 * cannot be understood at all is left out with a notice. */
ABX_FN Config *config_load(const ConfigInput *in, Arena *a);

/* The same for this process: its environment, ./.env, HOME/.env and
 * HOME/config.toml, instead of in->environ, in->files and in->toml. `home`
 * stands for HOME unless its p is NULL. A file that cannot be read, or is
 * larger than LIMIT_DOTENV or LIMIT_CONFIG, is left out with a notice; one that
 * is not there, or no regular file (a folder called .env), without. */
ABX_FN Config *config_open(const ConfigInput *in, Str home, Arena *a);

/* ---- asking ---- */

typedef enum ConfigLayer {
    CONFIG_UNSET, CONFIG_OVERRIDE, CONFIG_ENVIRON, CONFIG_DOTENV, CONFIG_TOML, CONFIG_DERIVED, CONFIG_DEFAULT,
} ConfigLayer;

typedef struct ConfigValue {
    Str         value;          /* trimmed, in its type's own spelling; p NULL: unset */
    FieldType   type;           /* the field's, or that of a manifest's default */
    ConfigLayer layer;
    Str         name;           /* the variable, "table.key", the key of the override; empty for the last two layers */
    size_t      file;           /* CONFIG_DOTENV: which file, from 0 */
    bool        outside;        /* CONFIG_DOTENV: a ${NAME} in it took a part from the process environment */
    bool        secret;         /* it is one, or CONFIG_DERIVED from one */
    Str         cwd;            /* the variable of ./.env that it is, or is derived from; p NULL: none */
} ConfigValue;

/* A core key (specification of the provider host, 6.1), such as provider,
 * http_timeout or default_template; BUG for a key that is none. Those that a
 * provider inherits are answered without any provider's own variables, tables
 * and defaults. */
ABX_FN ConfigValue config_core(const Config *c, const char *key, Arena *a);

/* One key of a provider, a field or an inherited one; unset for any other. */
ABX_FN ConfigValue config_field(const Config *c, const ConfigSchema *schema, Str key, Arena *a);

/* Key i of all that a provider can have: its fields, then the generic ones,
 * which it may have without inheriting them where they are derived. False
 * behind the last. */
ABX_FN bool config_key(const ConfigSchema *schema, size_t i, ConfigField *out);

/* It has it as a setting: a field, or an inherited one. */
ABX_FN bool config_has(const ConfigSchema *schema, Str key, ConfigField *out);

/* All that one provider gets: its fields and what it inherits or derives; unset
 * keys are not there. False:
 *   E8002  an override that neither the provider nor the core knows, or with a
 *          value that its type does not allow, or a secret that others could
 *          read; a number under its least value
 *   E8012  an endpoint (a field of type url, and keys that are or end in
 *          base_url or domain) came from ./.env, or was derived from what did,
 *          while a secret came from another layer, or while a part of the
 *          endpoint came from the process environment: whoever wrote the
 *          working directory would be sent what is not theirs. Not when that is
 *          allowed. */
ABX_FN bool config_provider(const Config *c, const ConfigSchema *schema, Arena *a, Settings *out, Err *err) ABX_CHECK;

/* ABX_<PROVIDER>_<KEY> */
ABX_FN Str config_variable(Str provider, Str key, Arena *a);

/* override, environ, dotenv, toml, derived or builtin; "" for CONFIG_UNSET. */
ABX_FN Str config_source(ConfigLayer layer);

/* What it was opened with, the files that it found included; allow_cwd_env says
 * whether it is allowed, wherever that was said. */
ABX_FN const ConfigInput *config_input(const Config *c);

#endif
