#include "host/registry.h"

#include "base/limits.h"
#include "base/str.h"
#include "data/clean.h"
#include "host/plugin.h"
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

static bool registry__installed(const Store *s, Str id)
{
    Receipt r;

    if (!s || !manifest_is_id(id))
        return false;
    Arena a = arena_make(ARENA_COMMAND);
    Store own = store_make(s->home, &a);    /* what it looks at is not kept */
    bool  is = store_receipt(&own, id, &a, &r);
    arena_free(&a);
    return is;
}

bool registry_ids(const Store *s, Arena *a, const Str **ids, size_t *n, Err *err)
{
    const Str *installed = NULL;
    size_t     count = 0, k = 0;

    if (s && !store_ids(s, &installed, &count, err))
        return false;
    Str *v = arena_array(a, COUNT_OF(registry__entries) + count, sizeof *v);
    *n = 0;
    for (size_t i = 0; i < COUNT_OF(registry__entries); i++) {
        Str id = str_from(registry__entries[i].id);
        while (i > 0 && k < count && strcmp(installed[k].p, id.p) < 0)
            v[(*n)++] = installed[k++];
        if (i > 0 && k < count && str_eq(installed[k], id))
            k++;
        v[(*n)++] = id;
    }
    while (k < count)
        v[(*n)++] = installed[k++];
    *ids = v;
    return true;
}

/* ---- what may have been meant ---- */

/* The letters that two words share, as Ratcliff and Obershelp count them: those
 * of the longest piece that is in both, then the same on its left and right. */
static size_t registry__shared(Str a, Str b)
{
    size_t best = 0, at = 0, bt = 0;

    for (size_t i = 0; i < a.n; i++)
        for (size_t k = 0; k < b.n; k++) {
            size_t n = 0;
            while (i + n < a.n && k + n < b.n && a.p[i + n] == b.p[k + n])
                n++;
            if (n > best) {
                best = n;
                at = i;
                bt = k;
            }
        }
    if (best == 0)
        return 0;
    return best + registry__shared(str_from_to(a, 0, at), str_from_to(b, 0, bt)) +
           registry__shared(str_from_to(a, at + best, a.n), str_from_to(b, bt + best, b.n));
}

/* The id that is most like this one, if any is much like it. */
static Str registry__meant(const Store *s, Str id, Arena *a)
{
    const Str *ids;
    size_t     n, best = 0, of = 1;
    Str        meant = {0};
    ABX_UNSET Err unheard;

    if (id.n > 100 || !registry_ids(s, a, &ids, &n, &unheard))
        return meant;
    for (size_t i = 0; i < n; i++) {
        size_t shared = registry__shared(ids[i], id), all = ids[i].n + id.n;
        if (10 * 2 * shared >= 6 * all && shared * of > best * all) {
            best = shared;
            of = all;
            meant = ids[i];
        }
    }
    return meant;
}

static bool registry__unknown(const Store *s, Str id, Err *err)
{
    static const char *const catalog[] = {"opensandbox", "cubesandbox", "e2b", "alicloud-container"};
    Arena a = arena_make(ARENA_COMMAND);
    Str   meant = registry__meant(s, id, &a);

    err_set(err, ERR_NOT_FOUND, E8001, "there is no provider \"%s\"", clean_message(id, NULL, 0, &a).p);
    if (meant.n)
        err_hint(err, "Is \"%.*s\" meant? `abx provider list` shows all.", STR_ARG(meant));
    else
        err_hint(err, "`abx provider list` shows the providers there are, and `abx provider install` adds one.");
    for (size_t i = 0; i < COUNT_OF(catalog); i++)
        if (str_eq(id, str_from(catalog[i])))
            err_hint(err, "It can be installed: abx provider install registry:%s", catalog[i]);
    arena_free(&a);
    return false;
}

/* ---- finding ---- */

bool registry_find(const Store *s, Str id, Arena *a, RegistryRow *out, Err *err)
{
    const RegistryEntry *e = registry__entry(id);

    if (registry__installed(s, id)) {
        Plugin *p = arena_new(a, Plugin);
        if (!plugin_load(s, id, a, p, err))
            return false;
        *out = (RegistryRow){.id = p->manifest.id, .name = p->manifest.name, .name_zh = p->manifest.name_zh, .plugin = p,
                             .schema = p->schema};
        return true;
    }
    return e ? registry_row((size_t)(e - registry__entries), a, out) : registry__unknown(s, id, err);
}

bool registry_split(const Store *s, Str ref, Str *provider, Str *id, Err *err)
{
    size_t colon = str_find(ref, ':');

    if (colon == ref.n) {
        *provider = (Str){0};
        *id = ref;
        return true;
    }
    Str prefix = {ref.p, colon};
    if (!registry__entry(prefix) && !manifest_is_id(prefix))
        return err_set(err, ERR_USAGE, E8002, "\"%.*s\": what stands before the colon is no provider id", STR_ARG(ref));
    if (colon + 1 == ref.n)
        return err_set(err, ERR_USAGE, E8002, "\"%.*s\": there is no sandbox id behind the colon", STR_ARG(ref));
    if (!registry__entry(prefix) && !registry__installed(s, prefix))
        return registry__unknown(s, prefix, err);
    *provider = prefix;
    *id = str_from_to(ref, colon + 1, ref.n);
    return true;
}

bool registry_ref(const Store *s, Str ref, Str provider, Str *id, Err *err)
{
    Str named, rest;

    if (!registry_split(s, ref, &named, &rest, err))
        return false;
    if (named.n && !str_eq(named, provider)) {
        err_set(err, ERR_USAGE, E8030, "\"%.*s\" belongs to %.*s, not to %.*s", STR_ARG(ref), STR_ARG(named),
                STR_ARG(provider));
        return err_hint(err, "Leave --provider out, or name the same provider twice.");
    }
    *id = rest;
    return true;
}
