/* explain.h - every setting with the layer and the name that won (specification,
 * 6.7).
 *
 * Memory: the arena's.
 */
#ifndef ABX_EXPLAIN_H
#define ABX_EXPLAIN_H

#include "data/json.h"
#include "host/config.h"

typedef struct ExplainRow {
    ConfigField field;
    ConfigValue v;              /* CONFIG_UNSET: no layer has it */
    bool        own;            /* the provider's own, not a core key */
} ExplainRow;

/* The core keys in their order, `provider` first, of the generic ones those
 * that the provider has; then the provider's own. Unset ones too. */
ABX_FN const ExplainRow *explain_all(const Config *c, const ConfigSchema *s, Arena *a, size_t *n);

/* A secret as it may be shown: stars, and of a long one its last four
 * characters. */
ABX_FN Str explain_mask(Str secret, Arena *a);

/* The value in JSON: numbers and booleans as such. */
ABX_FN void explain_json(JsonOut *w, FieldType type, Str value);

/* override, environ, dotenv, toml, derived, default; "" for CONFIG_UNSET. */
ABX_FN Str explain_source(ConfigLayer layer);

#endif
