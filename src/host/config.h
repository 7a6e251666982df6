/* config.h - what is configured, and where.
 *
 * A setting is looked for in layers, and the first layer that has a usable
 * value wins:
 *
 *     override   what the caller gave: flags, abx_options.config
 *     environ    the process environment
 *     dotenv     ./.env, then HOME/.env, where HOME is ABX_HOME or ~/.abx
 *     default    the setting's own
 *
 * (HOME/config.toml will stand between dotenv and default.) Within a layer the
 * most specific name comes first: ABX_<PROVIDER>_<KEY> before ABX_<KEY>. A
 * blank value, or one that its type does not allow, is as if it were not there
 * and hides nothing - except in an override, where it is E8002.
 *
 *     Config *c;
 *     if (!config_open(&options, &a, &c, err)) ...
 *     Str id = config_core(c, "provider").value;
 *     if (!registry_find(id, &row, err) || !config_provider(c, row->schema, &settings, err)) ...
 *
 * A hostile ./.env gets nothing: see config_provider(). ABX_HOME,
 * ABX_ALLOW_CWD_ENV, ABX_PROVIDER_REGISTRY, ABX_CA_FILE, SSL_CERT_* and the
 * proxy variables are read from the process environment only (os/env.h).
 *
 * Secrets: no error text holds the value of a secret setting.
 *
 * Memory: everything in the arena that was given to config_open().
 */
#ifndef ABX_CONFIG_H
#define ABX_CONFIG_H

#include "base/arena.h"
#include "base/err.h"
#include "data/dotenv.h"
#include "provider/provider.h"

typedef enum ConfigLayer {
    CONFIG_UNSET, CONFIG_OVERRIDE, CONFIG_ENVIRON, CONFIG_DOTENV, CONFIG_DEFAULT,
} ConfigLayer;

typedef struct ConfigValue {
    Str         value;          /* trimmed, in its type's own spelling; p NULL: unset */
    ConfigLayer layer;
    Str         name;           /* the variable, or the key of the override; empty for a default */
    size_t      file;           /* CONFIG_DOTENV: which of the files, from 0 */
} ConfigValue;

/* ---- what can be set ---- */

typedef struct ConfigField {
    const char *key;
    FieldType   type;
    bool        secret;
    const char *fallback;               /* taken as it is; NULL: none */
    const char *const *env;             /* variables, most specific first, NULL behind the last; NULL: none but
                                         * ABX_<PROVIDER>_<KEY> */
    const char *const *choices;         /* FIELD_ENUM: NULL behind the last. Compared without case */
    bool        plain;                  /* ABX_<PROVIDER>_<KEY> is not read: a core key, or the built-in's */
} ConfigField;

/* The settings of a provider. Of the core keys sandbox_api_key,
 * sandbox_base_url and sandbox_domain it sees those that it inherits. */
typedef struct ConfigSchema {
    const char        *id;
    const ConfigField *fields;
    size_t             count;
    bool               inherit_api_key, inherit_base_url, inherit_domain;
    const char        *base_url, *domain;       /* where it is when nobody says; NULL: not known */
} ConfigSchema;

/* ---- opening ---- */

typedef struct Config Config;

typedef struct ConfigFile {
    Str  path;                  /* for messages */
    Str  text;
    bool cwd;                   /* ./.env, which whoever made the folder wrote */
} ConfigFile;

typedef struct ConfigNotice {
    void (*say)(void *ctx, const char *line);
    void  *ctx;
} ConfigNotice;

typedef struct ConfigInput {
    const Pair        *overrides;       /* views; must live as long as the Config */
    size_t             override_count;
    const char *const *environ;         /* "NAME=value", NULL behind the last; the same */
    const ConfigFile  *files;           /* highest first */
    size_t             file_count;
    bool               allow_cwd_env;   /* as ABX_ALLOW_CWD_ENV=1 in environ */
    ConfigNotice       notice;
} ConfigInput;

/* From what is in the input alone. A file that is no .env file is left out
 * with a notice. */
ABX_FN Config *config_load(const ConfigInput *in, Arena *a);

/* The same for this process: its environment, ./.env and HOME/.env. `home`
 * stands for HOME if p is not NULL; in->environ and in->files are filled in
 * here. A file that cannot be read, or is too large, is left out with a
 * notice; what is no regular file (a folder called .env) without one. */
ABX_FN Config *config_open(const ConfigInput *in, Str home, Arena *a);

/* ---- asking ---- */

/* A core key (specification of the provider host, 6.1): provider,
 * http_timeout, default_template, … BUG for a key that is none. The three
 * that a provider inherits are not asked here. */
ABX_FN ConfigValue config_core(const Config *c, const char *key);

/* What one provider gets: its fields and what it inherits, coerced; unset
 * keys are not there. False:
 *   E8002  an override that nobody knows, or with a value its type does not
 *          allow; or a tuning key (http_timeout, max_connections, …) under 1
 *   E8012  an endpoint (any field of type url, and keys that are or end in
 *          base_url or domain) came from ./.env while a secret came from
 *          another layer, or while the endpoint itself was made with a
 *          variable of the process environment: whoever wrote the working
 *          directory would be sent what is not theirs. Not when allowed. */
ABX_FN bool config_provider(const Config *c, const ConfigSchema *schema, Arena *a, Settings *out, Err *err) ABX_CHECK;

/* One key of it, with where it came from. */
ABX_FN ConfigValue config_field(const Config *c, const ConfigSchema *schema, const char *key, Arena *a);

/* override, environ, dotenv or builtin; for CONFIG_UNSET "". */
ABX_FN Str config_source(ConfigLayer layer);

/* Where a value came from, for a person: "ABX_PROVIDER in ./.env". */
ABX_FN Str config_where(const Config *c, ConfigValue v, Arena *a);

#endif
