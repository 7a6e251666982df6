#include "host/consented.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "host/descriptor.h"
#include <stdlib.h>

enum { CONSENTED_ARENA = 32 << 20 };

static void consented__put_strs(JsonOut *w, const char *key, Strs list, bool sorted)
{
    Str *v = mem_new((list.n + 1) * sizeof *v);

    for (size_t i = 0; i < list.n; i++)
        v[i] = list.v[i];
    if (sorted)
        qsort(v, list.n, sizeof *v, str_by_bytes);
    json_key(w, key);
    json_begin(w, '[');
    for (size_t i = 0; i < list.n; i++)
        json_put_str(w, v[i]);
    json_end(w, ']');
    mem_free(v);
}

static void consented__put_runtime(const Manifest *m, JsonOut *w)
{
    json_key(w, "runtime");
    json_begin(w, '[');
    if (m->kind != MANIFEST_EXEC)
        json_put_str(w, manifest_kind_word(m->kind));
    if (m->kind == MANIFEST_REST)
        json_put_str(w, m->base_url);
    for (size_t i = 0; i < m->command.n; i++)
        json_put_str(w, m->command.v[i]);
    json_end(w, ']');
}

static void consented__all(const Manifest *m, JsonOut *w, Arena scratch)
{
    Str *keys = arena_array(&scratch, m->field_count, sizeof *keys);

    for (size_t i = 0; i < m->field_count; i++)
        keys[i] = m->fields[i].key;
    json_begin(w, '{');
    consented__put_runtime(m, w);
    json_key(w, "security");
    json_begin(w, '{');
    consented__put_strs(w, "network", m->network, false);
    consented__put_strs(w, "filesystem", m->filesystem, false);
    consented__put_strs(w, "env_passthrough", m->env_passthrough, false);
    json_key(w, "spawns_processes");
    json_put_bool(w, m->spawns_processes);
    json_end(w, '}');
    consented__put_strs(w, "features", m->features, true);
    json_key(w, "operation_contract_version");
    json_put_int(w, 1);
    json_key(w, "operations");
    json_begin(w, '{');
    consented__put_strs(w, "cli", m->cli, true);
    consented__put_strs(w, "python", m->python, true);
    json_end(w, '}');
    consented__put_strs(w, "workflow_inputs", m->inputs, true);
    consented__put_strs(w, "startup_modes", m->startups, true);
    consented__put_strs(w, "inherit", m->inherit, true);
    consented__put_strs(w, "fields", (Strs){keys, m->field_count}, true);
    json_key(w, "commands");
    descriptor_put(w, m->commands, scratch);
    json_end(w, '}');
}

void consented_put(const Manifest *m, JsonOut *w, bool sorted)
{
    Arena       a = arena_make(CONSENTED_ARENA);
    Buf         text = buf_make(LIMIT_RECEIPT);
    JsonOut     plain = json_out(&text, JSON_COMPACT);
    const Json *tree = NULL;
    ABX_UNSET Err err;

    if (!sorted) {
        consented__all(m, w, a);
    } else {
        consented__all(m, &plain, a);
        if (!json_parse(buf_str(&text), &a, &tree, &err))
            BUG("a summary is no JSON");
        json_put_sorted(w, tree);
    }
    buf_free(&text);
    arena_free(&a);
}
