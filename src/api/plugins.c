#include "api/plugins.h"

#include "api/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

static const char *plugins__copy(abx_host *h, const char *s)
{
    return s ? arena_cstr(&h->own, str_from(s)) : NULL;
}

abx_host *abx_host_open(const abx_options *options, abx_error *e)
{
    abx_host   *h = mem_new(sizeof *h);
    const Pair *checked;
    Err         err;

    h->own = arena_make(ARENA_COMMAND);
    h->result = arena_make(ARENA_COMMAND);
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
    mem_free(h);
}

Arena *plugins_begin(abx_host *h)
{
    mem_wipe(h->result.p, h->result.used);
    arena_reset(&h->result);
    return &h->result;
}
