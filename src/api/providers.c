#include "abx.h"

#include "api/error.h"
#include "api/session.h"
#include "base/limits.h"
#include "base/str.h"
#include "host/registry.h"

#include <stdio.h>

static const abx_options providers__none = {0};

int abx_providers(const abx_options *options, int (*each)(void *ctx, const abx_provider *p), void *ctx, abx_error *e)
{
    if (!options)
        options = &providers__none;

    SessionNotice notice = {options->notice, options->notice_ctx};
    Arena         a = arena_make(ARENA_COMMAND);
    Err           err;
    Config       *c = session_config(options, &notice, &a, &err);
    RegistryRow   row;

    for (size_t i = 0; c && registry_row(i, &a, &row); i++) {
        abx_provider p = {
            .id = arena_cstr(&a, row.id), .name = arena_cstr(&a, row.name),
            .name_zh = row.name_zh.n ? arena_cstr(&a, row.name_zh) : NULL, .version = ABX_VERSION,
            .kind = "builtin", .trust = "builtin", .is_default = str_eq(row.id, config_core(c, "provider", &a).value),
        };
        if (row.kind) {
            p.features = row.kind->features;
            p.feature_count = row.kind->feature_count;
        } else {
            p.error = "[E8004] this abx has no backend for it";
        }
        if (each(ctx, &p) != 0)
            break;
    }
    arena_free(&a);
    return c ? 0 : error_give(e, &err);
}

int abx_default_provider(const abx_options *options, char id[64], char source[16], abx_error *e)
{
    if (!options)
        options = &providers__none;

    SessionNotice notice = {options->notice, options->notice_ctx};
    Arena         a = arena_make(ARENA_COMMAND);
    Err           err;
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
