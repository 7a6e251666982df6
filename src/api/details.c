#include "api/details.h"

#include "api/error.h"
#include "api/plugins.h"
#include "base/limits.h"
#include "base/str.h"
#include "data/json.h"
#include "host/plugin.h"
#include "host/registry.h"

/* ---- what is compiled in ---- */

/* The built-in provider of all hosts: its backend is not a part of this abx,
 * but what it declares is known. */
static const char *const details__express_features[] = {
    "exec.run", "exec.stream", "files.rw", "files.transfer", "files.watch", "ports.url", "process.manage", "pty",
    "sandbox.lifecycle", "sandbox.timeout", "sessions", "templates.build", "templates.read",
};
static const char *const details__express_operations[] = {
    "exec.run", "exec.stream", "files.list", "files.move", "files.read", "files.remove", "files.stat", "files.write",
    "ports.resolve", "sandbox.create", "sandbox.delete", "sandbox.get", "sandbox.list", "sandbox.timeout",
};
static const char *const details__all_startups[] = {"entrypoint", "exec", "none"};
static const char *const details__generic[] = {"sandbox_api_key", "sandbox_base_url", "sandbox_domain"};

typedef struct DetailsText { const char *key, *text, *text_zh; bool credential; } DetailsText;

static const DetailsText details__express_texts[] = {
    {"region", "region, which leads to the address and the domain",
     "\xe5\x9c\xb0\xe5\x9f\x9f\xef\xbc\x8c\xe5\x86\xb3\xe5\xae\x9a API "
     "\xe5\x9c\xb0\xe5\x9d\x80\xe5\x92\x8c\xe5\x9f\x9f\xe5\x90\x8d", false},
    {"access_key_id", "AccessKey ID of Alibaba Cloud", "\xe9\x98\xbf\xe9\x87\x8c\xe4\xba\x91 AccessKey ID", true},
    {"access_key_secret", "AccessKey secret of Alibaba Cloud", "\xe9\x98\xbf\xe9\x87\x8c\xe4\xba\x91 AccessKey Secret", true},
};

#define DETAILS_STRINGS(list) ((abx_strings){list, COUNT_OF(list)})

static bool details__has(const ProviderKind *k, const char *feature)
{
    for (size_t i = 0; i < k->feature_count; i++)
        if (strcmp(k->features[i], feature) == 0)
            return true;
    return false;
}

/* The operations that a backend's table has functions for, in the order of the
 * specification (2.6). */
static abx_strings details__operations(const ProviderKind *k, Arena *a)
{
    const bool   run = k->exec && details__has(k, "exec.run"), stream = k->exec && details__has(k, "exec.stream");
    const struct { bool there; const char *id; } all[] = {
        {k->create != NULL, "sandbox.create"}, {k->get != NULL, "sandbox.get"}, {k->list != NULL, "sandbox.list"},
        {k->kill != NULL, "sandbox.delete"}, {k->set_timeout != NULL, "sandbox.timeout"},
        {k->pause != NULL, "sandbox.pause"}, {k->resume != NULL, "sandbox.resume"},
        {run, "exec.run"}, {stream, "exec.stream"},
        {k->file_read != NULL, "files.read"}, {k->file_write != NULL, "files.write"},
        {k->file_list != NULL, "files.list"}, {k->file_stat != NULL, "files.stat"},
        {k->file_remove != NULL, "files.remove"}, {k->file_move != NULL, "files.move"},
        {k->port_url != NULL, "ports.resolve"},
    };
    const char **v = arena_array(a, COUNT_OF(all), sizeof *v);
    size_t       n = 0;

    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (all[i].there)
            v[n++] = all[i].id;
    return (abx_strings){v, n};
}

static const char *details__type(FieldType type)
{
    static const char *const words[] = {
        [FIELD_STR] = "str", [FIELD_URL] = "url", [FIELD_PATH] = "path", [FIELD_INT] = "int", [FIELD_FLOAT] = "float",
        [FIELD_BOOL] = "bool", [FIELD_CSV] = "csv", [FIELD_ENUM] = "enum",
    };

    return words[type];
}

/* A fallback as the value in JSON that a manifest would hold. */
static const char *details__fallback(FieldType type, const char *text, Arena *a)
{
    if (!text || !text[0])
        return "null";
    if (type == FIELD_INT || type == FIELD_FLOAT || type == FIELD_BOOL)
        return arena_cstr(a, str_from(text));
    Buf     b = buf_make(4096);
    JsonOut w = json_out(&b, JSON_COMPACT);
    json_put_str(&w, str_from(text));
    const char *out = arena_cstr(a, buf_str(&b));
    buf_free(&b);
    return out;
}

/* ABX_<ID>_<KEY> */
static const char *details__variable(Str id, Str key, Arena *a)
{
    char *name = arena_cstr(a, arena_fmt(a, "ABX_%.*s_%.*s", STR_ARG(id), STR_ARG(key)));

    for (char *p = name; *p; p++)
        *p = *p == '-' ? '_' : *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
    return name;
}

static const char *details__help(const ProviderKind *k, const char *key)
{
    for (size_t i = 0; k && i < k->field_count; i++)
        if (strcmp(k->fields[i].key, key) == 0)
            return k->fields[i].help;
    return "";
}

static void details__compiled_fields(const RegistryRow *row, Arena *a, abx_details *out)
{
    abx_field *f = arena_array(a, row->schema.count, sizeof *f);

    for (size_t i = 0; i < row->schema.count; i++) {
        const ConfigField *c = &row->schema.fields[i];
        f[i] = (abx_field){
            .key = c->key, .type = details__type(c->type), .secret = c->secret, .credential = c->secret,
            .fallback = details__fallback(c->type, c->fallback, a),
            .variable = details__variable(row->id, str_from(c->key), a),
            .description = details__help(row->kind, c->key), .description_zh = "",
        };
        for (size_t k = 0; !row->kind && k < COUNT_OF(details__express_texts); k++) {
            const DetailsText *t = &details__express_texts[k];
            if (strcmp(t->key, c->key) == 0) {
                f[i].description = t->text;
                f[i].description_zh = t->text_zh;
                f[i].credential = t->credential;
            }
        }
    }
    out->fields = f;
    out->field_count = row->schema.count;
}

static void details__compiled(const RegistryRow *row, Arena *a, abx_details *out)
{
    static const char *const image[] = {"image"}, *const managed[] = {"managed"};
    const ProviderKind *k = row->kind;

    *out = (abx_details){
        .id = arena_cstr(a, row->id), .name = arena_cstr(a, row->name), .name_zh = arena_cstr(a, row->name_zh),
        .version = ABX_VERSION, .kind = "builtin", .trust = "builtin",
        .startups = DETAILS_STRINGS(details__all_startups), .inputs = k ? DETAILS_STRINGS(image) : DETAILS_STRINGS(managed),
    };
    if (k) {
        out->features = plugins_sorted((abx_strings){k->features, k->feature_count}, a);
        out->cli = details__operations(k, a);
        out->python = plugins_sorted(out->cli, a);
    } else {
        out->features = DETAILS_STRINGS(details__express_features);
        out->python = DETAILS_STRINGS(details__express_operations);
        out->inherit = DETAILS_STRINGS(details__generic);
    }
    details__compiled_fields(row, a, out);
}

/* ---- what is installed ---- */

/* A value of TOML as JSON; a number that JSON has no word for as its text. */
static void details__value(JsonOut *w, const Toml *v)
{
    switch (v->type) {
    case TOML_BOOL:
        json_put_bool(w, v->boolean);
        break;
    case TOML_INT:
        json_put_int(w, v->integer);
        break;
    case TOML_FLOAT:
        json_put_real(w, v->real);
        break;
    case TOML_ARRAY:
        json_begin(w, '[');
        for (size_t i = 0; i < v->count; i++)
            details__value(w, &v->items[i]);
        json_end(w, ']');
        break;
    case TOML_TABLE:
        json_begin(w, '{');
        for (size_t i = 0; i < v->count; i++) {
            json_key_str(w, v->keys[i]);
            details__value(w, &v->items[i]);
        }
        json_end(w, '}');
        break;
    case TOML_BIG:
        json_put_digits(w, v->text);
        break;
    case TOML_STRING:
    case TOML_DATE:
        json_put_str(w, v->text);
        break;
    }
}

static const char *details__default(const Toml *v, Arena *a)
{
    Buf     b = buf_make(LIMIT_CONSENT);
    JsonOut w = json_out(&b, JSON_COMPACT);

    if (!v)
        return "null";
    details__value(&w, v);
    const char *out = arena_cstr(a, buf_str(&b));
    buf_free(&b);
    return out;
}

const abx_field *details_fields(const Manifest *m, Arena *a)
{
    abx_field *out = arena_array(a, m->field_count, sizeof *out);

    for (size_t i = 0; i < m->field_count; i++) {
        const ManifestField *f = &m->fields[i];
        out[i] = (abx_field){
            .key = arena_cstr(a, f->key), .type = details__type(f->type), .secret = f->secret,
            .credential = f->credential, .required = f->required, .fallback = details__default(f->fallback, a),
            .variable = details__variable(m->id, f->key, a), .aliases = plugins_strings(f->env.v, f->env.n, a),
            .choices = plugins_strings(f->choices.v, f->choices.n, a), .description = arena_cstr(a, f->description),
            .description_zh = arena_cstr(a, f->description_zh),
        };
    }
    return out;
}

static abx_strings details__words(Strs s, Arena *a, bool sorted)
{
    abx_strings out = plugins_strings(s.v, s.n, a);

    return sorted ? plugins_sorted(out, a) : out;
}

static void details__installed(const Plugin *p, Arena *a, abx_details *out)
{
    const Manifest *m = &p->manifest;

    *out = (abx_details){
        .id = arena_cstr(a, m->id), .name = arena_cstr(a, m->name), .name_zh = arena_cstr(a, m->name_zh),
        .version = arena_cstr(a, m->version), .kind = arena_cstr(a, manifest_kind_word(m->kind)),
        .trust = arena_cstr(a, p->receipt.trust), .features = details__words(m->features, a, true),
        .cli = details__words(m->cli, a, false), .python = details__words(m->python, a, true),
        .inputs = details__words(m->inputs, a, true), .startups = details__words(m->startups, a, true),
        .fields = details_fields(m, a), .field_count = m->field_count, .inherit = details__words(p->inherit, a, true),
        .receipt = arena_cstr(a, p->receipt.text),
    };
}

/* ---- the call ---- */

static bool details__find(abx_host *h, const char *id, abx_details *out, Err *err)
{
    Arena      *a = plugins_begin(h);
    Store       store;
    RegistryRow row;
    Str         which;

    if (!plugins_id(h, id, &which, err) || !registry_find(plugins_store_or_none(h, &store), which, a, &row, err))
        return false;
    if (row.plugin)
        details__installed(row.plugin, a, out);
    else
        details__compiled(&row, a, out);
    return true;
}

const abx_details *abx_provider_details(abx_host *h, const char *id, abx_error *e)
{
    abx_details found;
    ABX_UNSET Err err;

    if (!details__find(h, id, &found, &err)) {
        error_give(e, &err);
        return NULL;
    }
    abx_details *out = arena_alloc(&h->result, sizeof *out);
    *out = found;
    return out;
}
