/* registry.h - the providers there are, and names that lead to them.
 *
 * There is a row for each provider that is compiled in, also for one that is
 * known but has no backend in this abx. To add one: write provider/NAME.c with
 * its ProviderKind, and a row here.
 *
 *     RegistryRow row;
 *     for (size_t i = 0; registry_row(i, &a, &row); i++) ...
 *
 * Memory: what a row points to is static or in the arena.
 */
#ifndef ABX_REGISTRY_H
#define ABX_REGISTRY_H

#include "host/config.h"

typedef struct RegistryRow {
    Str                 id;         /* "opensandbox" */
    Str                 name;       /* for people: "OpenSandbox" */
    Str                 name_zh;
    const ProviderKind *kind;       /* NULL: no backend */
    ConfigSchema        schema;
} RegistryRow;

/* Row i, the built-in first, the others by id; false behind the last. */
ABX_FN bool registry_row(size_t i, Arena *a, RegistryRow *out);

/* False: E8001, and the hint says what is meant or what there is. */
ABX_FN bool registry_find(Str id, Arena *a, RegistryRow *out, Err *err) ABX_CHECK;

/* Take "ID" or "PROVIDER:ID" apart: the first colon counts, and what is behind
 * it is the id as it is. *provider is empty without a prefix. False: E8002 for
 * a prefix that no provider can have and for an empty id behind one, E8001 for
 * a provider that is not there. Views into ref. */
ABX_FN bool registry_split(Str ref, Str *provider, Str *id, Err *err) ABX_CHECK;

/* The same where the provider was chosen already: E8030 if it is another. */
ABX_FN bool registry_ref(Str ref, Str provider, Str *id, Err *err) ABX_CHECK;

#endif
