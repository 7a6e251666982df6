#include "api/consent.h"

#include "api/details.h"
#include "api/plugins.h"
#include "base/limits.h"
#include "base/str.h"

static const char *consent__maybe(Str s, Arena *a)
{
    return s.n ? arena_cstr(a, s) : NULL;
}

static abx_strings consent__strings(Strs s, Arena *a)
{
    return plugins_strings(s.v, s.n, a);
}

static abx_source consent__source(const ReceiptSource *s, Arena *a)
{
    static const char *const types[] = {
        [RECEIPT_LOCAL] = "local", [RECEIPT_GIT] = "git", [RECEIPT_LINK] = "link", [RECEIPT_CATALOG] = "catalog",
    };

    return (abx_source){
        .type = types[s->type], .path = consent__maybe(s->path, a), .url = consent__maybe(s->url, a),
        .ref = consent__maybe(s->ref, a), .commit = consent__maybe(s->commit, a),
        .subdir = consent__maybe(s->subdir, a), .id = consent__maybe(s->id, a), .registry = consent__maybe(s->registry, a),
        .archive_sha256 = consent__maybe(s->archive_sha256, a),
    };
}

/* What will run, in the form in which it is consented to (1.3, `runtime`). */
static abx_strings consent__runtime(const Manifest *m, Arena *a)
{
    const Str node[] = {STR("node"), m->command.n ? m->command.v[0] : STR("")}, rest[] = {STR("rest"), m->base_url};

    switch (m->kind) {
    case MANIFEST_EXEC: return consent__strings(m->command, a);
    case MANIFEST_NODE: return plugins_strings(node, COUNT_OF(node), a);
    case MANIFEST_REST: return plugins_strings(rest, COUNT_OF(rest), a);
    }
    return (abx_strings){0};
}

static void consent__commands(const Manifest *m, Arena *a, abx_plan *out)
{
    size_t              n = m->commands ? m->commands->count : 0;
    abx_plugin_command *v = arena_array(a, n, sizeof *v);

    for (size_t i = 0; i < n; i++) {
        const Toml *c = &m->commands->items[i];
        v[i] = (abx_plugin_command){arena_cstr(a, toml_str(toml_get(c, "id"))),
                                    arena_cstr(a, toml_str(toml_get(c, "description"))),
                                    arena_cstr(a, toml_str(toml_get(c, "effect")))};
    }
    out->commands = v;
    out->command_count = n;
}

static const char *consent__json(const InstallPlan *p, Arena *a)
{
    Buf     b = buf_make(LIMIT_ANSWER);
    JsonOut w = json_out(&b, JSON_PRETTY);

    install_plan(p, &w);
    const char *text = arena_cstr(a, buf_str(&b));
    buf_free(&b);
    return text;
}

static abx_plan consent__plan(const InstallPlan *p, Arena *a)
{
    const Manifest *m = p->manifest;
    abx_plan        out = {
        .id = arena_cstr(a, m->id), .name = arena_cstr(a, m->name), .name_zh = arena_cstr(a, m->name_zh),
        .version = arena_cstr(a, m->version), .kind = arena_cstr(a, manifest_kind_word(m->kind)),
        .trust = arena_cstr(a, receipt_trust_word(p->trust)), .source = consent__source(&p->source, a),
        .tree_sha256 = arena_cstr(a, p->tree_sha256), .runtime = consent__runtime(m, a),
        .features = consent__strings(m->features, a), .cli = consent__strings(m->cli, a),
        .python = consent__strings(m->python, a), .inputs = consent__strings(m->inputs, a),
        .startups = consent__strings(m->startups, a), .network = consent__strings(m->network, a),
        .filesystem = consent__strings(m->filesystem, a), .env_passthrough = consent__strings(m->env_passthrough, a),
        .spawns_processes = m->spawns_processes, .fields = details_fields(m, a), .field_count = m->field_count,
        .inherit = consent__strings(m->inherit, a), .changes = plugins_strings(p->changes, p->change_count, a),
        .json = consent__json(p, a),
    };

    consent__commands(m, a, &out);
    if (p->old) {
        out.old_version = arena_cstr(a, p->old->version);
        out.old_trust = arena_cstr(a, p->old->trust);
        out.old_receipt = arena_cstr(a, p->old->text);
    }
    return out;
}

bool consent_ask(void *ctx, const InstallPlan *plan)
{
    const Consent *c = ctx;
    Arena          a = arena_make(ARENA_COMMAND);
    abx_plan       shown = consent__plan(plan, &a);
    bool           yes = c->ask(c->ctx, &shown) != 0;

    arena_free(&a);
    return yes;
}
