/* keys.h - the settings that belong to no provider (specification, 6.1).
 *
 * Memory: static.
 */
#ifndef ABX_KEYS_H
#define ABX_KEYS_H

#include "host/config.h"

/* The core keys, in the order in which they are explained: `provider` first,
 * then the generic ones. NULL behind the last. */
ABX_FN const ConfigField *keys_core(size_t i);

/* Its place among them; false: no core key has that name. */
ABX_FN bool keys_find(Str key, size_t *i);

/* Those that reach a provider only if it inherits them are in the places
 * [KEYS_GENERIC, KEYS_GENERIC + CONFIG_GENERIC). */
enum { KEYS_GENERIC = 1 };

#endif
