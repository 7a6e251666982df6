/* derive.h - endpoints that follow from other settings: "https://{region}.host"
 * (specification, 6.6, with row 21 of docs/differences.md).
 *
 * Memory: the result in the arena.
 */
#ifndef ABX_DERIVE_H
#define ABX_DERIVE_H

#include "base/arena.h"

/* What a name in braces stands for; p NULL: nothing. */
typedef Str DeriveLookup(void *ctx, Str name);

/* {name} is replaced, {{ and }} are braces. False: a name stands for nothing,
 * or braces that are neither. */
ABX_FN bool derive_fill(Str template, DeriveLookup *lookup, void *ctx, Arena *a, Str *out) ABX_CHECK;

#endif
