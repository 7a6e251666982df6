#include "host/registry.h"

#include "base/str.h"
#include "host/manifest.h"
#include "provider/opensandbox.h"

/* The built-in provider of all hosts. Its backend is not a part of this abx;
 * what is configured for it is understood, so that it can be said what to do. */
static const ConfigField registry__express[] = {
    {.key = "region", .fallback = "cn-hangzhou", .table = "transport", .plain = true,
     .env = (const char *const[]){"ALIBABA_CLOUD_REGION_ID", NULL}},
    {.key = "access_key_id", .plain = true, .no_toml = true, .env = (const char *const[]){"ALICLOUD_ACCESS_KEY_ID", NULL}},
    {.key = "access_key_secret", .secret = true, .plain = true,
     .env = (const char *const[]){"ALICLOUD_ACCESS_KEY_SECRET", NULL}},
};

static const Pair registry__derive[] = {
    {{"sandbox_base_url", 16}, {"https://api.{region}.e2b.fc.aliyuncs.com", 40}},
    {{"sandbox_domain", 14}, {"{region}.e2b.fc.aliyuncs.com", 28}},
};

typedef struct RegistryEntry {
    const char *id, *name, *name_zh;
    const ProviderKind *(*kind)(void);
    ConfigSchema schema;        /* without a kind: its settings */
} RegistryEntry;

static const RegistryEntry registry__entries[] = {
    {.id = "alicloud-express", .name = "Alibaba Cloud Express Edition",
     .name_zh = "\xe9\x98\xbf\xe9\x87\x8c\xe4\xba\x91\xe6\x9e\x81\xe9\x80\x9f\xe7\x89\x88",
     .schema = {.fields = registry__express, .count = COUNT_OF(registry__express), .inherits_api_key = true,
                .inherits_base_url = true, .inherits_domain = true,
                .base_url = "https://api.cn-hangzhou.e2b.fc.aliyuncs.com", .domain = "cn-hangzhou.e2b.fc.aliyuncs.com",
                .derive = registry__derive, .derive_count = COUNT_OF(registry__derive)}},
    {.id = "opensandbox", .name = "OpenSandbox", .name_zh = "OpenSandbox", .kind = opensandbox_kind},
};

bool registry_row(size_t i, Arena *a, RegistryRow *out)
{
    if (i >= COUNT_OF(registry__entries))
        return false;
    const RegistryEntry *e = &registry__entries[i];
    *out = (RegistryRow){.id = str_from(e->id), .name = str_from(e->name), .name_zh = str_from(e->name_zh),
                         .kind = e->kind ? e->kind() : NULL, .schema = e->schema};
    out->schema.id = out->id;
    if (!out->kind)
        return true;
    ConfigField *fields = arena_array(a, out->kind->field_count, sizeof *fields);
    for (size_t k = 0; k < out->kind->field_count; k++) {
        const ProviderField *f = &out->kind->fields[k];
        fields[k] = (ConfigField){.key = f->key, .type = f->type, .secret = f->secret, .fallback = f->fallback};
    }
    out->schema.fields = fields;
    out->schema.count = out->kind->field_count;
    return true;
}

static const RegistryEntry *registry__entry(Str id)
{
    for (size_t i = 0; i < COUNT_OF(registry__entries); i++)
        if (str_eq(str_from(registry__entries[i].id), id))
            return &registry__entries[i];
    return NULL;
}

/* How alike two ids are: the letters they share, counted each as often as both
 * have it. Enough to see a slip of the finger. */
static bool registry__alike(Str a, Str b)
{
    size_t left[256] = {0}, same = 0;

    for (size_t i = 0; i < a.n; i++)
        left[(unsigned char)a.p[i]]++;
    for (size_t i = 0; i < b.n; i++)
        if (left[(unsigned char)b.p[i]] && left[(unsigned char)b.p[i]]--)
            same++;
    return a.n <= 40 && 10 * same >= 8 * (a.n > b.n ? a.n : b.n);
}

static bool registry__unknown(Str id, Err *err)
{
    err_set(err, ERR_NOT_FOUND, E8001, "there is no provider \"%.*s\"", STR_ARG(id));
    for (size_t i = 0; i < COUNT_OF(registry__entries); i++)
        if (registry__alike(id, str_from(registry__entries[i].id)))
            return err_hint(err, "Is \"%s\" meant? `abx provider list` shows all.", registry__entries[i].id);
    return false;
}

bool registry_find(Str id, Arena *a, RegistryRow *out, Err *err)
{
    const RegistryEntry *e = registry__entry(id);

    return e ? registry_row((size_t)(e - registry__entries), a, out) : registry__unknown(id, err);
}

/* What can stand in front of a colon: the built-in's own name is kept for it. */
static bool registry__is_id(Str id)
{
    return registry__entry(id) || manifest_is_id(id);
}

bool registry_split(Str ref, Str *provider, Str *id, Err *err)
{
    size_t colon = str_find(ref, ':');

    if (colon == ref.n) {
        *provider = (Str){0};
        *id = ref;
        return true;
    }
    Str prefix = {ref.p, colon};
    if (!registry__is_id(prefix))
        return err_set(err, ERR_USAGE, E8002, "\"%.*s\": what stands before the colon is no provider id", STR_ARG(ref));
    if (colon + 1 == ref.n)
        return err_set(err, ERR_USAGE, E8002, "\"%.*s\": there is no sandbox id behind the colon", STR_ARG(ref));
    if (!registry__entry(prefix))
        return registry__unknown(prefix, err);
    *provider = prefix;
    *id = str_from_to(ref, colon + 1, ref.n);
    return true;
}

bool registry_ref(Str ref, Str provider, Str *id, Err *err)
{
    Str named, rest;

    if (!registry_split(ref, &named, &rest, err))
        return false;
    if (named.n && !str_eq(named, provider)) {
        err_set(err, ERR_USAGE, E8030, "\"%.*s\" belongs to %.*s, not to %.*s", STR_ARG(ref), STR_ARG(named),
                STR_ARG(provider));
        return err_hint(err, "Leave --provider out, or name the same provider twice.");
    }
    *id = rest;
    return true;
}
