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
 *     Config *c = config_open(&(ConfigInput){.notice = ...}, (Str){0}, &a);
 *     Str id = config_core(c, "provider", &a).value;
 *     if (!registry_find(id, &a, &row, err) || !config_provider(c, &row.schema, &a, &settings, err)) ...
 *
 * A hostile ./.env gets nothing: see config_provider(). ABX_HOME,
 * ABX_ALLOW_CWD_ENV, ABX_PROVIDER_REGISTRY, ABX_CA_FILE, SSL_CERT_* and the
 * proxy variables are no settings: they are read from the process environment
 * alone (os/env.h), and a ./.env that has them changes nothing.
 *
 * Secrets: no error text holds the value of a secret setting.
 *
 * Memory: all in the arena, which is as large as ARENA_COMMAND. What was given
 * out is good as long as it.
 */
#ifndef ABX_CONFIG_H
#define ABX_CONFIG_H

#include "base/arena.h"
#include "base/err.h"
#include "provider/provider.h"

/* ---- what can be set ---- */

typedef struct ConfigField {
    const char *key;
    FieldType   type;
    bool        secret;
    const char *fallback;               /* taken as it is; NULL or "": none */
    const char *const *env;             /* variables behind ABX_<PROVIDER>_<KEY>, NULL after the last; NULL: none */
    const char *const *choices;         /* FIELD_ENUM: NULL after the last. Compared without case */
    bool        plain;                  /* ABX_<PROVIDER>_<KEY> is not read */
    int         least;                  /* a smaller number is E8002; 0: any */
} ConfigField;

/* The settings of a provider. Of the core keys sandbox_api_key,
 * sandbox_base_url and sandbox_domain it sees those that it inherits. */
typedef struct ConfigSchema {
    Str                id;
    const ConfigField *fields;
    size_t             count;
    bool               inherits_api_key, inherits_base_url, inherits_domain;
    const char        *base_url, *domain;       /* of those two when no layer has them; NULL: none */
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
    const char *const *environ;         /* "NAME=value", NULL after the last */
    const ConfigFile  *files;           /* highest first */
    size_t             file_count;
    bool               allow_cwd_env;   /* as ABX_ALLOW_CWD_ENV=1 in environ */
    void             (*notice)(void *ctx, Str line);    /* NULL: nobody listens */
    void              *notice_ctx;
} ConfigInput;

/* From what is in the input alone, which must outlive the Config. A file that
 * cannot be understood at all is left out with a notice. */
ABX_FN Config *config_load(const ConfigInput *in, Arena *a);

/* The same for this process: its environment, ./.env and HOME/.env, instead of
 * in->environ and in->files. `home` stands for HOME unless its p is NULL. A
 * file that cannot be read, or is larger than LIMIT_DOTENV, is left out with a
 * notice; one that is not there, or no regular file (a folder called .env),
 * without. */
ABX_FN Config *config_open(const ConfigInput *in, Str home, Arena *a);

/* ---- asking ---- */

typedef enum ConfigLayer {
    CONFIG_UNSET, CONFIG_OVERRIDE, CONFIG_ENVIRON, CONFIG_DOTENV, CONFIG_DEFAULT,
} ConfigLayer;

typedef struct ConfigValue {
    Str         value;          /* trimmed, in its type's own spelling; p NULL: unset */
    ConfigLayer layer;
    Str         name;           /* the variable, or the key of the override; empty for a default */
    size_t      file;           /* CONFIG_DOTENV: which file, from 0 */
    bool        outside;        /* CONFIG_DOTENV: a ${NAME} in it took a part from the process environment */
} ConfigValue;

/* A core key (specification of the provider host, 6.1), such as provider,
 * http_timeout or default_template; BUG for a key that is none, and for those
 * that a provider inherits. */
ABX_FN ConfigValue config_core(const Config *c, const char *key, Arena *a);

/* One key of a provider, a field or an inherited one; unset for any other. */
ABX_FN ConfigValue config_field(const Config *c, const ConfigSchema *schema, const char *key, Arena *a);

/* All that one provider gets: its fields and what it inherits; unset keys are
 * not there. False:
 *   E8002  an override that neither the provider nor the core knows, or with a
 *          value that its type does not allow; a number under its least value
 *   E8012  an endpoint (a field of type url, and keys that are or end in
 *          base_url or domain) came from ./.env while a secret came from
 *          another layer, or while a part of the endpoint came from the
 *          process environment: whoever wrote the working directory would be
 *          sent what is not theirs. Not when that is allowed. */
ABX_FN bool config_provider(const Config *c, const ConfigSchema *schema, Arena *a, Settings *out, Err *err) ABX_CHECK;

/* override, environ, dotenv or builtin; "" for CONFIG_UNSET. */
ABX_FN Str config_source(ConfigLayer layer);

#endif
