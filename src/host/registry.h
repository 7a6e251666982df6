/* registry.h - the providers there are, and names that lead to them.
 *
 * One row for each provider that is compiled in. To add one: write
 * provider/NAME.c with its ProviderKind, and a row here.
 */
#ifndef ABX_REGISTRY_H
#define ABX_REGISTRY_H

#include "host/config.h"

typedef struct RegistryRow {
    Str                 id, name;
    const ProviderKind *kind;       /* NULL: known, but without a backend in this abx */
    ConfigSchema        schema;
} RegistryRow;

ABX_FN size_t             registry_count(void);
/* Row i, its schema in the arena. */
ABX_FN RegistryRow registry_row(size_t i, Arena *a);

/* False: E8001, with the ids there are; E8002 when no id can look like that. */
ABX_FN bool registry_find(Str id, Arena *a, RegistryRow *out, Err *err) ABX_CHECK;

/* "ID" or "PROVIDER:ID" (the first colon counts, what follows is the id as it
 * is). `provider` is the one that was chosen, or empty when none was: then
 * *provider_out is what the reference names, empty without a prefix. False:
 * E8002 for an empty id behind a colon or a prefix that no provider can have,
 * E8001 for an unknown provider, E8030 when it is another than the chosen one. */
ABX_FN bool registry_ref(Str ref, Str provider, Str *provider_out, Str *id, Err *err) ABX_CHECK;

#endif
