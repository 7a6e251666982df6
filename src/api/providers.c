#include "abx.h"

#include "api/error.h"
#include "api/session.h"
#include "base/limits.h"
#include "base/str.h"
#include "host/plugin.h"
#include "host/registry.h"

#include <stdio.h>

static const abx_options providers__none = {0};

static abx_provider providers__compiled(const RegistryRow *row, Arena *a)
{
    abx_provider p = {
        .id = arena_cstr(a, row->id), .name = arena_cstr(a, row->name),
        .name_zh = row->name_zh.n ? arena_cstr(a, row->name_zh) : NULL, .version = ABX_VERSION, .kind = "builtin",
        .trust = "builtin",
    };

    if (row->kind) {
        p.features = row->kind->features;
        p.feature_count = row->kind->feature_count;
    } else {
        p.error = "[E8004] this abx has no backend for it";
    }
    return p;
}

/* In the order of the registry, whatever order the manifest has. */
static const char *const *providers__features(Strs s, Arena *a)
{
    const char **v = arena_array(a, s.n, sizeof *v);

    for (size_t i = 0; i < s.n; i++) {
        size_t k = i;
        for (; k > 0 && manifest_feature_rank(str_from(v[k - 1])) > manifest_feature_rank(s.v[i]); k--)
            v[k] = v[k - 1];
        v[k] = arena_cstr(a, s.v[i]);
    }
    return v;
}

static abx_provider providers__plugin(const Plugin *p, Arena *a)
{
    const Manifest *m = &p->manifest;

    return (abx_provider){
        .id = arena_cstr(a, m->id), .name = arena_cstr(a, m->name), .name_zh = m->name_zh.n ? arena_cstr(a, m->name_zh) : NULL,
        .version = arena_cstr(a, m->version), .kind = manifest_kind_word(m->kind).p,
        .trust = arena_cstr(a, p->receipt.trust), .features = providers__features(m->features, a),
        .feature_count = m->features.n,
    };
}

/* Installed, and cannot be used: what is known of it, and why. */
static abx_provider providers__unusable(const Store *s, Str id, const Err *err, Arena *a)
{
    Receipt r;
    ABX_UNSET char code[6];
    bool    known = store_receipt(s, id, a, &r);
    Str     hint = str_from(err->hint[0] ? err->hint : code_hint(err->code));

    code_name(err->code, code);
    return (abx_provider){
        .id = arena_cstr(a, id), .version = known ? arena_cstr(a, r.version) : "", .kind = "exec",
        .trust = known ? arena_cstr(a, r.trust) : "",
        .error = arena_fmt(a, "[%s] %s%s%.*s", code, err->text, hint.n ? "\n  Suggestion: " : "", STR_ARG(hint)).p,
    };
}

/* Each in an arena of its own: manifests can be large, and plugins many. */
static void providers__each(const Store *store, const Str *ids, size_t n, Str chosen,
                            int (*each)(void *ctx, const abx_provider *p), void *ctx)
{
    bool go_on = true;

    for (size_t i = 0; i < n && go_on; i++) {
        Arena       a = arena_make(ARENA_COMMAND);
        Store       own = store ? store_make(store->home, &a) : (Store){0};
        RegistryRow row;
        ABX_UNSET Err err;
        bool        ok = registry_find(store ? &own : NULL, ids[i], &a, &row, &err);
        abx_provider p = !ok ? providers__unusable(&own, ids[i], &err, &a) :
                         row.plugin ? providers__plugin(row.plugin, &a) : providers__compiled(&row, &a);
        p.is_default = str_eq(ids[i], chosen);
        go_on = each(ctx, &p) == 0;
        arena_free(&a);
    }
}

int abx_providers(const abx_options *options, int (*each)(void *ctx, const abx_provider *p), void *ctx, abx_error *e)
{
    if (!options)
        options = &providers__none;

    SessionNotice notice = {options->notice, options->notice_ctx};
    Arena         a = arena_make(ARENA_COMMAND);
    const Store  *store = session_store(options, &a);
    const Str    *ids;
    size_t        n;
    ABX_UNSET Err err;
    Config       *c = session_config(options, &notice, &a, &err);
    bool          ok = c && registry_ids(store, &a, &ids, &n, &err);

    if (ok)
        providers__each(store, ids, n, config_core(c, "provider", &a).value, each, ctx);
    arena_free(&a);
    return ok ? 0 : error_give(e, &err);
}

int abx_default_provider(const abx_options *options, char id[64], char source[16], abx_error *e)
{
    if (!options)
        options = &providers__none;

    SessionNotice notice = {options->notice, options->notice_ctx};
    Arena         a = arena_make(ARENA_COMMAND);
    ABX_UNSET Err err;
    Config       *c = session_config(options, &notice, &a, &err);
    bool          ok = c != NULL;

    if (c) {
        ConfigValue v = config_core(c, "provider", &a);
        Str         from = config_source(v.layer);
        ok = v.value.n < 64 || err_set(&err, ERR_NOT_FOUND, E8001, "no provider has a name of %zu bytes", v.value.n);
        snprintf(id, 64, "%.*s", STR_ARG(v.value));
        snprintf(source, 16, "%.*s", STR_ARG(from));
    }
    arena_free(&a);
    return ok ? 0 : error_give(e, &err);
}
