#include "host/manifest.h"

#include "base/hex.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/clean.h"
#include "data/pep440.h"
#include "host/derive.h"
#include "host/descriptor.h"
#include "host/keys.h"
#include <stdio.h>
#include <stdlib.h>

/* The Python host that this one answers for where a plugin asks for `sdk`. */
#define MANIFEST_SDK "0.4.0a6"

/* Room for the tree of a summary, of which a manifest of LIMIT_MANIFEST bytes
 * makes no more than it has values. */
enum { MANIFEST_ARENA = 32 << 20 };

static const char *const manifest__features[] = {
    "sandbox.lifecycle", "sandbox.timeout", "sandbox.pause", "exec.run", "exec.stream", "process.manage", "pty", "files.rw",
    "files.watch", "files.transfer", "templates.read", "templates.build", "templates.deploy", "ports.url", "ports.domain",
    "storage.mount", "network.vpc", "sessions",
};

static const char *const manifest__operations[] = {
    "sandbox.create", "sandbox.get", "sandbox.list", "sandbox.delete", "sandbox.timeout", "sandbox.pause", "sandbox.resume",
    "template.prepare", "exec.run", "exec.stream", "files.read", "files.write", "files.list", "files.stat", "files.remove",
    "files.move", "ports.resolve", "code.execute", "code.context.create", "code.context.execute", "code.context.list",
    "code.context.restart", "code.context.delete", "code.default-context.execute", "code.stream", "code.results.structured",
};

static const struct { const char *word, *protocol; } manifest__kinds[] = {
    [MANIFEST_EXEC] = {"exec", "epp/1"}, [MANIFEST_REST] = {"rest", "e2b-rest/1"}, [MANIFEST_NODE] = {"node", "node/1"},
};

typedef struct ManifestReader {
    const Toml *doc;
    Arena      *a;
    Manifest   *m;
    Err        *err;
} ManifestReader;

/* ---- ids ---- */

static bool manifest__lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool manifest__digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool manifest__in(Str s, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(s, str_from(words[i])))
            return true;
    return false;
}

static bool manifest__starts(Str s, const char *const *heads, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_starts(s, str_from(heads[i])))
            return true;
    return false;
}

bool manifest_is_id(Str id)
{
    static const char *const catalog[] = {"opensandbox", "cubesandbox", "e2b", "alicloud-container"};
    static const char *const kept[] = {"alicloud-express", "default", "all", "none", "builtin", "shortcuts", "core", "transport",
                                       "providers"};
    static const char *const heads[] = {"abx-", "alicloud-", "shortcuts"};

    if (manifest__in(id, catalog, COUNT_OF(catalog)))
        return true;
    if (id.n < 2 || id.n > 40 || !manifest__lower(id.p[0]) || id.p[id.n - 1] == '-')
        return false;
    for (size_t i = 0; i < id.n; i++)
        if (!manifest__lower(id.p[i]) && !manifest__digit(id.p[i]) && !(id.p[i] == '-' && id.p[i - 1] != '-'))
            return false;
    return !manifest__in(id, kept, COUNT_OF(kept)) && !manifest__starts(id, heads, COUNT_OF(heads));
}

Str manifest_kind_word(ManifestKind kind)
{
    return str_from(manifest__kinds[kind].word);
}

int manifest_feature_rank(Str feature)
{
    for (size_t i = 0; i < COUNT_OF(manifest__features); i++)
        if (str_eq(feature, str_from(manifest__features[i])))
            return (int)i;
    return -1;
}

/* ---- values ---- */

/* `table` and `key` as "provider" and "id"; either may be empty. */
static bool manifest__bad(ManifestReader *r, const char *table, const char *key, const char *what)
{
    return err_set(r->err, ERR_INPUT, E8014, "%s%s%s %s", table, *table && *key ? "." : "", key, what);
}

static bool manifest__bad_value(ManifestReader *r, const char *table, const char *key, Str value, const char *what)
{
    return err_set(r->err, ERR_INPUT, E8014, "%s.%s: \"%.*s\" %s", table, key, STR_ARG(value), what);
}

static bool manifest__truthy(const Toml *v)
{
    if (!v)
        return false;
    switch (v->type) {
    case TOML_STRING:
        return v->text.n > 0;
    case TOML_INT:
        return v->integer != 0;
    case TOML_FLOAT:
        return v->real != 0;
    case TOML_BOOL:
        return v->boolean;
    case TOML_ARRAY:
    case TOML_TABLE:
        return v->count > 0;
    case TOML_BIG:
    case TOML_DATE:
        break;
    }
    return true;
}

/* *out is NULL where it may be and is missing. */
static bool manifest__table(ManifestReader *r, const Toml *in, const char *name, const char *key, bool required,
                            const Toml **out)
{
    *out = toml_get(in, key);
    if (*out ? (*out)->type == TOML_TABLE : !required)
        return true;
    return manifest__bad(r, name, key, *out ? "must be a table" : "is missing: it must be a table");
}

static bool manifest__string(ManifestReader *r, const Toml *in, const char *name, const char *key, Str otherwise, Str *out)
{
    const Toml *v = toml_get(in, key);

    *out = v ? toml_str(v) : otherwise;
    return !v || v->type == TOML_STRING || manifest__bad(r, name, key, "must be a string");
}

static bool manifest__needed(ManifestReader *r, const Toml *in, const char *name, const char *key, Str *out)
{
    *out = toml_str(toml_get(in, key));
    return utf8_trim(*out).n > 0 || manifest__bad(r, name, key, "is required: it must be a string that is not blank");
}

static bool manifest__strs(ManifestReader *r, const Toml *v, const char *name, const char *key, Strs *out)
{
    size_t n = v && v->type == TOML_ARRAY ? v->count : 0;
    Str   *all = arena_array(r->a, n, sizeof *all);

    *out = (Strs){all, n};
    if (v && v->type != TOML_ARRAY)
        return manifest__bad(r, name, key, "must be an array of strings");
    for (size_t i = 0; i < n; i++) {
        all[i] = toml_str(&v->items[i]);
        if (v->items[i].type != TOML_STRING)
            return manifest__bad(r, name, key, "must be an array of strings");
    }
    return true;
}

/* The same, each of them one of the words; `once`: none of them twice. */
static bool manifest__words(ManifestReader *r, const Toml *in, const char *name, const char *key, const char *const *words,
                            size_t n, bool once, Strs *out)
{
    if (!manifest__strs(r, toml_get(in, key), name, key, out))
        return false;
    for (size_t i = 0; i < out->n; i++) {
        if (!manifest__in(out->v[i], words, n))
            return manifest__bad_value(r, name, key, out->v[i], "is none of the words that it may hold");
        for (size_t k = 0; once && k < i; k++)
            if (str_eq(out->v[i], out->v[k]))
                return manifest__bad_value(r, name, key, out->v[i], "is there twice");
    }
    return true;
}

static bool manifest__has(Strs list, Str s)
{
    for (size_t i = 0; i < list.n; i++)
        if (str_eq(list.v[i], s))
            return true;
    return false;
}

/* No key but these. */
static bool manifest__closed(ManifestReader *r, const Toml *in, const char *name, const char *const *keys, size_t n)
{
    for (uint32_t i = 0; i < in->count; i++)
        if (!manifest__in(in->keys[i], keys, n))
            return manifest__bad_value(r, name, "*", in->keys[i], "is no key of this table");
    return true;
}

static bool manifest__one(ManifestReader *r, const char *key)
{
    const Toml *v = toml_get(r->doc, key);

    return (v && v->type == TOML_INT && v->integer == 1) || manifest__bad(r, "", key, "must be the number 1");
}

/* Names that plugins may not take for variables of their own. */
static bool manifest__reserved(Str variable)
{
    static const Str heads[] = {{"ABX_", 4}, {"E2B_", 4}, {"ALICLOUD_", 9}};

    for (size_t i = 0; i < COUNT_OF(heads); i++)
        if (variable.n >= heads[i].n && str_eq_nocase((Str){variable.p, heads[i].n}, heads[i]))
            return true;
    return false;
}

/* ---- [provider], [runtime], [compat], [endpoint] ---- */

static bool manifest__provider(ManifestReader *r, const Toml **provider)
{
    Manifest *m = r->m;
    Version   version;

    if (!manifest__table(r, r->doc, "", "provider", true, provider) || !manifest__needed(r, *provider, "provider", "id", &m->id))
        return false;
    if (!manifest_is_id(m->id))
        return manifest__bad_value(r, "provider", "id", m->id,
                                   "is no id: words of small letters and digits, joined by single hyphens, 2 to 40 characters, "
                                   "none of the names that are kept for hosts");
    if (!manifest__needed(r, *provider, "provider", "version", &m->version))
        return false;
    return pep440_parse(m->version, &version) ||
           manifest__bad_value(r, "provider", "version", m->version, "is no version (PEP 440), such as 1.2.0");
}

static bool manifest__kind(ManifestReader *r, const Toml **runtime)
{
    Str word;

    if (!manifest__table(r, r->doc, "", "runtime", true, runtime) || !manifest__needed(r, *runtime, "runtime", "kind", &word))
        return false;
    for (size_t i = 0; i < COUNT_OF(manifest__kinds); i++)
        if (str_eq(word, str_from(manifest__kinds[i].word))) {
            r->m->kind = (ManifestKind)i;
            return true;
        }
    if (str_eq(word, STR("python")))
        return manifest__bad(r, "runtime", "kind", "is \"python\", a kind that hosts no longer run: make it \"exec\"");
    return manifest__bad_value(r, "runtime", "kind", word, "is none of exec, rest and node");
}

static bool manifest__compat(ManifestReader *r)
{
    const char *protocol = manifest__kinds[r->m->kind].protocol;
    const Toml *compat, *needs;
    Version     zero;
    bool        yes, ok = pep440_parse(STR("0"), &zero);
    Str         said, bad;

    if (!manifest__table(r, r->doc, "", "compat", false, &compat) ||
        !manifest__string(r, compat, "compat", "protocol", str_from(protocol), &said))
        return false;
    if (!str_eq(said, str_from(protocol)))
        return err_set(r->err, ERR_INPUT, E8013, "compat.protocol is \"%.*s\": this host speaks %s with a provider of kind %s",
                       STR_ARG(said), protocol, manifest__kinds[r->m->kind].word);
    if (!manifest__table(r, compat, "compat", "requires", false, &needs))
        return false;
    Pair *pairs = arena_array(r->a, needs ? needs->count : 0, sizeof *pairs);
    for (uint32_t i = 0; ok && needs && i < needs->count; i++) {
        pairs[i] = (Pair){needs->keys[i], toml_str(&needs->items[i])};
        if (needs->items[i].type != TOML_STRING)
            return err_set(r->err, ERR_INPUT, E8014, "compat.requires.%.*s must be a string", STR_ARG(needs->keys[i]));
        if (!pep440_list(pairs[i].value, &zero, *r->a, &yes, &bad))
            return err_set(r->err, ERR_INPUT, E8014, "compat.requires.%.*s: \"%.*s\" is no comparison with a version, such as >=1.2",
                           STR_ARG(needs->keys[i]), STR_ARG(bad));
    }
    r->m->requires_ = pairs;
    r->m->requires_count = needs ? needs->count : 0;
    return true;
}

/* A relative path as POSIX writes it, without "." and, as far as they go, "..";
 * a backslash counts as a slash. */
static Str manifest__normal(Str path, Arena *a)
{
    char  *text = arena_cstr(a, path), *out = arena_alloc(a, path.n + 1);
    size_t n = 0, up = 0;       /* up: the length of the leading "../.." */
    Str    rest = {text, path.n}, part;

    for (size_t i = 0; i < path.n; i++)
        if (text[i] == '\\')
            text[i] = '/';
    while (str_cut(&rest, '/', &part)) {
        bool parent = str_eq(part, STR(".."));
        if (part.n == 0 || str_eq(part, STR(".")))
            continue;
        if (parent && n > up) {
            do
                n--;
            while (n > up && out[n] != '/');
            continue;
        }
        if (n)
            out[n++] = '/';
        memcpy(out + n, part.p, part.n);
        n += part.n;
        up = parent ? n : up;
    }
    return n ? (Str){out, n} : STR(".");
}

static bool manifest__outside(Str path, Arena *a)
{
    Str normal = manifest__normal(path, a);

    return str_eq(normal, STR("..")) || str_starts(normal, STR("../"));
}

static bool manifest__command(ManifestReader *r, const Toml *runtime)
{
    static const char *const scripts[] = {".bat", ".cmd", ".ps1"}, *const heads[] = {"./", "../", ".\\", "..\\"};
    Strs *command = &r->m->command;

    if (!manifest__strs(r, toml_get(runtime, "command"), "runtime", "command", command))
        return false;
    if (command->n == 0)
        return manifest__bad(r, "runtime", "command", "is required: it must be an array that is not empty");
    for (size_t i = 0; i < command->n; i++)
        if (command->v[i].n == 0 || str_has(command->v[i], '\0'))
            return manifest__bad(r, "runtime", "command", "holds an empty word, or one with a NUL in it");
    Str first = command->v[0];
    for (size_t i = 0; i < COUNT_OF(scripts); i++)
        if (first.n >= 4 && str_eq_nocase(str_from_to(first, first.n - 4, first.n), str_from(scripts[i])))
            return manifest__bad_value(r, "runtime", "command", first, "is a script that is not started without a shell");
    if (manifest__starts(first, heads, COUNT_OF(heads)) && manifest__outside(first, r->a))
        return manifest__bad_value(r, "runtime", "command", first, "leads out of the plugin's folder");
    return true;
}

static bool manifest__entry(ManifestReader *r, const Toml *runtime)
{
    Str  entry = toml_str(toml_get(runtime, "entry"));
    Str *command = arena_new(r->a, Str);

    if (!str_ends(entry, STR(".mjs")) && !str_ends(entry, STR(".js")))
        return manifest__bad(r, "runtime", "entry", "is required: it must name a .mjs or .js file");
    if (str_has(entry, '\0') || entry.p[0] == '/' || entry.p[0] == '\\' || manifest__outside(entry, r->a))
        return manifest__bad_value(r, "runtime", "entry", entry, "is no path in the plugin's folder");
    *command = manifest__normal(entry, r->a);
    r->m->command = (Strs){command, 1};
    return true;
}

/* Any name that a setting can have stands for something while it is only looked at. */
static Str manifest__any(void *ctx, Str name)
{
    bool good = name.n && !manifest__digit(name.p[0]);

    (void)ctx;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        good = good && (manifest__lower(c) || manifest__digit(c) || c == '_' || (c >= 'A' && c <= 'Z'));
    }
    return good ? STR("x") : (Str){0};
}

static bool manifest__derive(ManifestReader *r, const Toml *endpoint)
{
    static const char *const keys[] = {"sandbox_base_url", "sandbox_domain"};
    const Toml *derive;
    Str         filled;

    if (!manifest__table(r, endpoint, "endpoint", "derive", false, &derive))
        return false;
    if (!derive)
        return true;
    if (!manifest__closed(r, derive, "endpoint.derive", keys, COUNT_OF(keys)))
        return false;
    Pair *pairs = arena_array(r->a, derive->count, sizeof *pairs);
    for (uint32_t i = 0; i < derive->count; i++) {
        const char *key = str_eq(derive->keys[i], STR("sandbox_domain")) ? keys[1] : keys[0];
        pairs[i] = (Pair){derive->keys[i], toml_str(&derive->items[i])};
        if (derive->items[i].type != TOML_STRING)
            return manifest__bad(r, "endpoint.derive", key, "must be a string");
        if (!derive_fill(pairs[i].value, manifest__any, NULL, r->a, &filled))
            return manifest__bad_value(r, "endpoint.derive", key, pairs[i].value, "holds braces that are neither {name} nor doubled");
    }
    r->m->derive = pairs;
    r->m->derive_count = derive->count;
    return true;
}

/* Of a value that is not false, its text. */
static Str manifest__text(const Toml *v)
{
    return !manifest__truthy(v) || v->type == TOML_ARRAY || v->type == TOML_TABLE ? STR("") : v->text;
}

static bool manifest__endpoint(ManifestReader *r)
{
    static const char *const schemes[] = {"bearer", "header"}, *const heads[] = {"http://", "https://"};
    const Toml *endpoint, *auth;
    Manifest   *m = r->m;

    if (!manifest__table(r, r->doc, "", "endpoint", true, &endpoint) ||
        !manifest__string(r, endpoint, "endpoint", "base_url", STR(""), &m->base_url))
        return false;
    if (toml_get(endpoint, "base_url") && !manifest__starts(m->base_url, heads, COUNT_OF(heads)))
        return manifest__bad(r, "endpoint", "base_url", "must begin with http:// or https://");
    m->domain = manifest__text(toml_get(endpoint, "domain"));
    if (!manifest__table(r, endpoint, "endpoint", "auth", false, &auth) ||
        !manifest__string(r, auth, "endpoint.auth", "scheme", STR("bearer"), &m->auth_scheme))
        return false;
    if (!manifest__in(m->auth_scheme, schemes, COUNT_OF(schemes)))
        return manifest__bad(r, "endpoint.auth", "scheme", "must be \"bearer\" or \"header\"");
    if (!manifest__string(r, auth, "endpoint.auth", "name", STR("X-API-Key"), &m->auth_header))
        return false;
    return manifest__derive(r, endpoint);
}

static bool manifest__runtime(ManifestReader *r, const Toml *runtime)
{
    bool ok = r->m->kind == MANIFEST_EXEC   ? manifest__command(r, runtime)
              : r->m->kind == MANIFEST_NODE ? manifest__entry(r, runtime)
                                            : manifest__endpoint(r);

    return ok && manifest__strs(r, toml_get(runtime, "platforms"), "runtime", "platforms", &r->m->platforms);
}

/* ---- [features], [operations], [workflow], [security], [core] ---- */

static bool manifest__operation_list(ManifestReader *r, const Toml *operations, const char *key, Strs *out)
{
    if (!manifest__words(r, operations, "operations", key, manifest__operations, COUNT_OF(manifest__operations), true, out))
        return false;
    if (strcmp(key, "python") == 0 && manifest__has(*out, STR("template.prepare")))
        return manifest__bad(r, "operations", key, "holds \"template.prepare\", which command lines alone can offer");
    for (size_t i = 0; i < out->n; i++)
        if (r->m->kind != MANIFEST_NODE && str_starts(out->v[i], STR("code.")))
            return manifest__bad_value(r, "operations", key, out->v[i], "is for providers of kind node alone");
    return true;
}

static bool manifest__operations_table(ManifestReader *r)
{
    static const char *const keys[] = {"cli", "python"};
    const Toml *operations;

    if (!manifest__one(r, "operation_contract_version") || !manifest__table(r, r->doc, "", "operations", true, &operations) ||
        !manifest__closed(r, operations, "operations", keys, COUNT_OF(keys)))
        return false;
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (!toml_get(operations, keys[i]))
            return manifest__bad(r, "operations", keys[i], "is required: it must be an array of operations");
    return manifest__operation_list(r, operations, "cli", &r->m->cli) &&
           manifest__operation_list(r, operations, "python", &r->m->python);
}

static bool manifest__workflow(ManifestReader *r)
{
    static const char *const keys[] = {"inputs", "startups", "source_placeholders"};
    static const char *const inputs[] = {"source", "image", "managed", "service"}, *const startups[] = {"exec", "entrypoint", "none"};
    static const char *const placeholders[] = {"<region>", "<tag>"};
    const Toml *workflow;
    Manifest   *m = r->m;

    if (!manifest__table(r, r->doc, "", "workflow", true, &workflow) ||
        !manifest__closed(r, workflow, "workflow", keys, COUNT_OF(keys)))
        return false;
    for (size_t i = 0; i < 2; i++)
        if (!toml_get(workflow, keys[i]))
            return manifest__bad(r, "workflow", keys[i], "is required: it must be an array of strings");
    if (!manifest__words(r, workflow, "workflow", keys[0], inputs, COUNT_OF(inputs), true, &m->inputs) ||
        !manifest__words(r, workflow, "workflow", keys[1], startups, COUNT_OF(startups), true, &m->startups) ||
        !manifest__words(r, workflow, "workflow", keys[2], placeholders, COUNT_OF(placeholders), true, &m->placeholders))
        return false;
    if (m->placeholders.n && (!manifest__has(m->cli, STR("template.prepare")) || !manifest__has(m->inputs, STR("source"))))
        return manifest__bad(r, "workflow", keys[2], "needs template.prepare in operations.cli, and source in workflow.inputs");
    return true;
}

static bool manifest__security(ManifestReader *r)
{
    static const char *const places[] = {"data_dir", "cwd", "home", "any"};
    const Toml *security;
    Manifest   *m = r->m;

    if (!manifest__table(r, r->doc, "", "security", false, &security) ||
        !manifest__strs(r, toml_get(security, "network"), "security", "network", &m->network) ||
        !manifest__words(r, security, "security", "filesystem", places, COUNT_OF(places), false, &m->filesystem) ||
        !manifest__strs(r, toml_get(security, "env_passthrough"), "security", "env_passthrough", &m->env_passthrough))
        return false;
    for (size_t i = 0; i < m->env_passthrough.n; i++) {
        Str  name = m->env_passthrough.v[i];
        bool ok = name.n > 0 && !manifest__digit(name.p[0]) && !manifest__reserved(name);
        for (size_t k = 0; k < name.n; k++)
            ok = ok && (manifest__lower(name.p[k]) || manifest__digit(name.p[k]) || name.p[k] == '_' ||
                        (name.p[k] >= 'A' && name.p[k] <= 'Z'));
        if (!ok)
            return manifest__bad_value(r, "security", "env_passthrough", name, "is no name of a variable, or one that hosts keep");
    }
    m->spawns_processes = manifest__truthy(toml_get(security, "spawns_processes"));
    return true;
}

static const char *const manifest__generic[] = {"sandbox_api_key", "sandbox_base_url", "sandbox_domain"};

static bool manifest__core(ManifestReader *r)
{
    const Toml *core;

    return manifest__table(r, r->doc, "", "core", false, &core) &&
           manifest__words(r, core, "core", "inherit", manifest__generic, COUNT_OF(manifest__generic), false, &r->m->inherit);
}

/* ---- [config.fields.*], [auth] ---- */

static bool manifest__field_key(Str key)
{
    size_t core;

    if (key.n == 0 || !manifest__lower(key.p[0]) || str_starts(key, STR("shortcuts")) || keys_find(key, &core))
        return false;
    for (size_t i = 0; i < key.n; i++)
        if (!manifest__lower(key.p[i]) && !manifest__digit(key.p[i]) && key.p[i] != '_')
            return false;
    return true;
}

static bool manifest__field_type(Str word, FieldType *out)
{
    static const struct { const char *word; FieldType type; } types[] = {
        {"string", FIELD_STR}, {"int", FIELD_INT}, {"float", FIELD_FLOAT}, {"bool", FIELD_BOOL},
        {"enum", FIELD_ENUM}, {"path", FIELD_PATH}, {"url", FIELD_URL}, {"csv", FIELD_CSV},
    };

    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (str_eq(word, str_from(types[i].word))) {
            *out = types[i].type;
            return true;
        }
    return false;
}

static bool manifest__field(ManifestReader *r, Str key, const Toml *in, ManifestField *f)
{
    const char *name = arena_fmt(r->a, "config.fields.%.*s", STR_ARG(key)).p;
    const Toml *fallback = toml_get(in, "default");
    Str         type;

    f->key = key;
    if (!manifest__field_key(key))
        return manifest__bad(r, name, "", "is no key of a setting: small letters, digits and _, no name of a setting of the host");
    if (in->type != TOML_TABLE)
        return manifest__bad(r, name, "", "must be a table");
    if (!manifest__string(r, in, name, "type", STR("string"), &type))
        return false;
    if (!manifest__field_type(type, &f->type))
        return manifest__bad_value(r, name, "type", type, "is none of string, int, float, bool, enum, path, url and csv");
    f->required = manifest__truthy(toml_get(in, "required"));
    f->secret = manifest__truthy(toml_get(in, "secret"));
    f->credential = manifest__truthy(toml_get(in, "credential"));
    f->fallback = fallback && !(fallback->type == TOML_STRING && fallback->text.n == 0) ? fallback : NULL;
    if (f->secret && f->fallback)
        return manifest__bad(r, name, "default", "is not allowed: a secret has none");
    if (!manifest__string(r, in, name, "description", STR(""), &f->description) ||
        !manifest__string(r, in, name, "description_zh", STR(""), &f->description_zh) ||
        !manifest__strs(r, toml_get(in, "env"), name, "env", &f->env) ||
        !manifest__strs(r, toml_get(in, "choices"), name, "choices", &f->choices))
        return false;
    for (size_t i = 0; i < f->env.n; i++)
        if (manifest__reserved(f->env.v[i]))
            return manifest__bad_value(r, name, "env", f->env.v[i], "is a variable that hosts keep");
    return f->type != FIELD_ENUM || f->choices.n > 0 || manifest__bad(r, name, "choices", "is required for an enum");
}

static bool manifest__config(ManifestReader *r)
{
    const Toml *config, *fields;

    if (!manifest__table(r, r->doc, "", "config", false, &config) ||
        !manifest__table(r, config, "config", "fields", false, &fields))
        return false;
    size_t         n = fields ? fields->count : 0;
    ManifestField *all = arena_array(r->a, n, sizeof *all);
    for (size_t i = 0; i < n; i++)
        if (!manifest__field(r, fields->keys[i], &fields->items[i], &all[i]))
            return false;
    r->m->fields = all;
    r->m->field_count = n;
    return true;
}

static bool manifest__declared(const Manifest *m, Str name)
{
    for (size_t i = 0; i < m->field_count; i++)
        if (str_eq(m->fields[i].key, name))
            return true;
    return manifest__in(name, manifest__generic, COUNT_OF(manifest__generic));
}

static bool manifest__auth(ManifestReader *r)
{
    const Toml *auth, *groups;

    if (!manifest__table(r, r->doc, "", "auth", false, &auth))
        return false;
    groups = toml_get(auth, "any_of");
    size_t        n = groups && groups->type == TOML_ARRAY ? groups->count : 0;
    Strs *all = arena_array(r->a, n, sizeof *all);
    if (groups && groups->type != TOML_ARRAY)
        return manifest__bad(r, "auth", "any_of", "must be an array of arrays of strings");
    for (size_t i = 0; i < n; i++) {
        if (!manifest__strs(r, &groups->items[i], "auth", "any_of", &all[i]))
            return false;
        for (size_t k = 0; k < all[i].n; k++)
            if (!manifest__declared(r->m, all[i].v[k]))
                return manifest__bad_value(r, "auth", "any_of", all[i].v[k], "is no setting of this provider");
    }
    r->m->any_of = all;
    r->m->any_of_count = n;
    return true;
}

/* ---- the whole ---- */

static bool manifest__names(ManifestReader *r, const Toml *provider)
{
    Manifest *m = r->m;

    if (!manifest__string(r, provider, "provider", "name", m->id, &m->name) ||
        !manifest__string(r, provider, "provider", "name_zh", STR(""), &m->name_zh) ||
        !manifest__string(r, provider, "provider", "description", STR(""), &m->description) ||
        !manifest__string(r, provider, "provider", "license", STR(""), &m->license) ||
        !manifest__string(r, provider, "provider", "homepage", STR(""), &m->homepage))
        return false;
    if (m->name.n == 0)
        m->name = m->id;
    return true;
}

static bool manifest__timeout(ManifestReader *r, const Toml *runtime, const char *key, int64_t otherwise, int64_t *ms)
{
    const Toml *v = toml_get(runtime, key);

    *ms = v ? v->integer : otherwise;
    return !v || (v->type == TOML_INT && v->integer >= 100 && v->integer <= 3600000) ||
           manifest__bad(r, "runtime", key, "must be a whole number of milliseconds from 100 to 3600000");
}

static bool manifest__all(ManifestReader *r)
{
    const Toml *provider, *runtime, *features;
    Manifest   *m = r->m;

    if (!manifest__one(r, "manifest_version") || !manifest__provider(r, &provider) || !manifest__kind(r, &runtime) ||
        !manifest__compat(r) || !manifest__runtime(r, runtime) || !manifest__table(r, r->doc, "", "features", true, &features) ||
        !manifest__words(r, features, "features", "supported", manifest__features, COUNT_OF(manifest__features), false, &m->features) ||
        !manifest__operations_table(r) || !manifest__workflow(r) || !manifest__security(r) || !manifest__core(r) ||
        !manifest__config(r) || !manifest__auth(r) || !manifest__names(r, provider) ||
        !manifest__timeout(r, runtime, "startup_timeout_ms", 10000, &m->startup_ms) ||
        !manifest__timeout(r, runtime, "call_timeout_ms", 60000, &m->call_ms))
        return false;
    m->commands = toml_get(r->doc, "commands");
    return !m->commands || descriptor_check(m->commands, m->kind != MANIFEST_REST, *r->a, r->err);
}

bool manifest_parse(Str text, Str where, Arena *a, Manifest *out, Err *err)
{
    Manifest       m = {0};
    ManifestReader r = {.a = a, .m = &m, .err = err};
    unsigned char  digest[SHA256_SIZE];
    Sha256         h = sha256_make();
    bool           ok = true;

    if (text.n > LIMIT_MANIFEST)
        ok = err_set(err, ERR_LIMIT, E8014, "%zu bytes, more than %zu", text.n, LIMIT_MANIFEST);
    if (!ok || !toml_parse(text, a, &r.doc, err) || !manifest__all(&r)) {
        if (err->code == E0000)
            err->code = E8014;
        /* keys and values of the file are in the text */
        Str said = clean_message(arena_fmt(a, "%.*s: %s", STR_ARG(where), err->text), NULL, 0, a);
        ErrKind kind = err->kind;
        return err_set(err, kind, err->code, "%.*s", STR_ARG(said));
    }
    sha256_add(&h, text);
    sha256_end(&h, digest);
    memcpy(m.sha256, hex_encode(a, (Str){(const char *)digest, sizeof digest}).p, sizeof m.sha256);
    *out = m;
    return true;
}

bool manifest_supported(const Manifest *m, Err *err)
{
    static const struct { const char *component, *version; } hosts[] = {{"sdk", MANIFEST_SDK}, {"abx", ABX_VERSION}};
    Arena   a = arena_make(MANIFEST_ARENA);
    Version have;
    bool    yes = true;
    Str     bad;

    for (size_t i = 0; yes && i < m->requires_count; i++)
        for (size_t k = 0; k < COUNT_OF(hosts); k++) {
            const Pair *p = &m->requires_[i];
            if (!str_eq(p->key, str_from(hosts[k].component)))
                continue;
            yes = pep440_parse(str_from(hosts[k].version), &have) && pep440_list(p->value, &have, a, &yes, &bad) && yes;
            if (!yes)
                err_set(err, ERR_INPUT, E8013, "provider %.*s needs %s %.*s: this host answers for %s %s", STR_ARG(m->id),
                        hosts[k].component, STR_ARG(p->value), hosts[k].component, hosts[k].version);
        }
    arena_free(&a);
    return yes;
}
