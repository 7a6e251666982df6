/* registry.h - the providers there are, and names that lead to them.
 *
 * A provider is compiled in, or installed in the store; an installed one takes
 * precedence over one that is compiled in under the same id. To compile one in:
 * write provider/NAME.c with its ProviderKind, and a row here.
 *
 *     RegistryRow row;
 *     if (!registry_find(&store, id, &a, &row, err)) return false;
 *     row.plugin ? plugin_open(...) : row.kind ? row.kind->open(...) : ...
 *
 * Wherever a Store is taken, NULL stands for one in which nothing is installed.
 *
 * Memory: what a row points to is static or in the arena.
 */
#ifndef ABX_REGISTRY_H
#define ABX_REGISTRY_H

#include "host/config.h"
#include "host/store.h"

struct Plugin;

typedef struct RegistryRow {
    Str                 id;         /* "opensandbox" */
    Str                 name;       /* for people: "OpenSandbox" */
    Str                 name_zh;
    const ProviderKind *kind;       /* compiled in; NULL: no backend in this abx, or a plugin */
    const struct Plugin *plugin;    /* installed (host/plugin.h); NULL: compiled in */
    ConfigSchema        schema;
} RegistryRow;

/* Row i of what is compiled in, the built-in first, the others by id, also one
 * that is known but has no backend here; false behind the last. */
ABX_FN bool registry_row(size_t i, Arena *a, RegistryRow *out);

/* The ids of all, compiled in or installed, each once: the built-in first, the
 * others sorted. False: E8010, the store cannot be read. */
ABX_FN bool registry_ids(const Store *s, Arena *a, const Str **ids, size_t *n, Err *err) ABX_CHECK;

/* False: what plugin_load() says of an installed one; E8001, and the hint says
 * what is meant or what there is. */
ABX_FN bool registry_find(const Store *s, Str id, Arena *a, RegistryRow *out, Err *err) ABX_CHECK;

/* Take "ID" or "PROVIDER:ID" apart: the first colon counts, and what is behind
 * it is the id as it is. *provider is empty without a prefix. False: E8002 for
 * a prefix that no provider can have and for an empty id behind one, E8001 for
 * a provider that is not there. Views into ref. */
ABX_FN bool registry_split(const Store *s, Str ref, Str *provider, Str *id, Err *err) ABX_CHECK;

/* The same where the provider was chosen already: E8030 if it is another. */
ABX_FN bool registry_ref(const Store *s, Str ref, Str provider, Str *id, Err *err) ABX_CHECK;

#endif
