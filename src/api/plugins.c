#include "api/plugins.h"

#include "api/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "host/registry.h"
#include "host/settings.h"
#include "os/env.h"

#include <stdlib.h>

/* ---- the handle ---- */

static const char *plugins__copy(abx_host *h, const char *s)
{
    return s ? arena_cstr(&h->own, str_from(s)) : NULL;
}

abx_host *abx_host_open(const abx_options *options, abx_error *e)
{
    abx_host   *h = mem_new(sizeof *h);
    const Pair *checked;
    ABX_UNSET Err err;

    h->own = arena_make(ARENA_COMMAND);
    h->result = arena_make(ARENA_COMMAND);
    h->paths = arena_make(ARENA_COMMAND);
    if (!options)
        return h;
    h->options = *options;
    h->notice = (SessionNotice){options->notice, options->notice_ctx};
    if (!session_pairs(options->config, options->config_count, "setting", &h->own, &checked, &err)) {
        error_give(e, &err);
        abx_host_close(h);
        return NULL;
    }
    h->options.provider = plugins__copy(h, options->provider);
    h->options.home = plugins__copy(h, options->home);
    h->options.ca_file = plugins__copy(h, options->ca_file);
    abx_pair *pairs = arena_array(&h->own, options->config_count, sizeof *pairs);
    for (size_t i = 0; i < options->config_count; i++)
        pairs[i] = (abx_pair){plugins__copy(h, options->config[i].key), plugins__copy(h, options->config[i].value)};
    h->options.config = pairs;
    const char **exposed = arena_array(&h->own, options->exposed_count, sizeof *exposed);
    for (size_t i = 0; i < options->exposed_count; i++)
        exposed[i] = plugins__copy(h, options->exposed[i]);
    h->options.exposed = exposed;
    return h;
}

void abx_host_close(abx_host *h)
{
    if (!h)
        return;
    /* Settings lie in both, keys among them. */
    mem_wipe(h->own.p, h->own.used);
    mem_wipe(h->result.p, h->result.used);
    arena_free(&h->own);
    arena_free(&h->result);
    arena_free(&h->paths);
    mem_free(h);
}

Arena *plugins_begin(abx_host *h)
{
    mem_wipe(h->result.p, h->result.used);
    arena_reset(&h->result);
    arena_reset(&h->paths);
    return &h->result;
}

bool plugins_store(abx_host *h, Store *out, Err *err)
{
    Str home = h->options.home ? str_from(h->options.home) : env_abx_home(&h->paths);

    if (h->options.config_only)
        return err_set(err, ERR_USAGE, E8002, "no store counts where nothing but the given configuration does");
    if (!home.n) {
        err_set(err, ERR_USAGE, E8010, "there is no folder for plugins: neither ABX_HOME nor HOME is set");
        return err_hint(err, "Set ABX_HOME to the folder to use.");
    }
    *out = store_make(home, &h->paths);
    return true;
}

const Store *plugins_store_or_none(abx_host *h, Store *out)
{
    ABX_UNSET Err unheard;

    return plugins_store(h, out, &unheard) ? out : NULL;
}

bool plugins_installed(abx_host *h, Str id, Store *s, Receipt *out)
{
    ABX_UNSET Err unheard;

    return manifest_is_id(id) && plugins_store(h, s, &unheard) && store_receipt(s, id, &h->result, out);
}

bool plugins_id(abx_host *h, const char *id, Str *out, Err *err)
{
    Config *c;

    *out = str_from(id);
    if (id)
        return true;
    if (!(c = session_config(&h->options, &h->notice, &h->result, err)))
        return false;
    *out = config_core(c, "provider", &h->result).value;
    return true;
}

abx_strings plugins_strings(const Str *v, size_t n, Arena *a)
{
    const char **out = arena_array(a, n, sizeof *out);

    for (size_t i = 0; i < n; i++)
        out[i] = arena_cstr(a, v[i]);
    return (abx_strings){out, n};
}

static int plugins__order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

abx_strings plugins_sorted(abx_strings s, Arena *a)
{
    const char **v = arena_array(a, s.n, sizeof *v);

    if (s.n) {
        memcpy(v, s.v, s.n * sizeof *v);
        qsort(v, s.n, sizeof *v, plugins__order);
    }
    return (abx_strings){v, s.n};
}

/* ---- the default ---- */

static bool plugins__set_default(abx_host *h, Str id, Err *err)
{
    Store       store;
    RegistryRow row;

    plugins_begin(h);
    if (!plugins_store(h, &store, err) || !registry_find(&store, id, &h->result, &row, err))
        return false;
    bool builtin = !row.plugin && !row.kind;
    if (!settings_set_default(store.home, builtin ? (Str){0} : id, err))
        return false;
    if (!row.plugin && !builtin)
        session_notice(&h->notice, arena_fmt(&h->result,
            "warning: %.*s is compiled into this abx and not installed: the other hosts will not find it; for them, "
            "`abx provider export %.*s DIR` and `abx provider install DIR`", STR_ARG(id), STR_ARG(id)));
    return true;
}

int abx_set_default_provider(abx_host *h, const char *id, abx_error *e)
{
    ABX_UNSET Err err;

    return plugins__set_default(h, str_from(id), &err) ? 0 : error_give(e, &err);
}
