/* coerce.h - what a text means where a number, a choice, a list is wanted
 * (specification of the provider host, 6.4 with amendment S4; rows 6, 37, 41 and
 * 43 of docs/differences.md).
 *
 * The result is text again, in its type's own spelling: see Settings in
 * provider/provider.h.
 *
 * Memory: in the arena, with a NUL behind it.
 */
#ifndef ABX_COERCE_H
#define ABX_COERCE_H

#include "base/arena.h"
#include "data/toml.h"
#include "provider/provider.h"

/* False: blank, or nothing that the type knows. `choices` are for FIELD_ENUM,
 * NULL after the last; a NULL list takes any text. */
ABX_FN bool coerce_text(FieldType type, const char *const *choices, Str raw, Arena *a, Str *out);

/* The same for a value of a TOML document: lists are good for FIELD_CSV alone,
 * tables and integers outside 64 bits for nothing. */
ABX_FN bool coerce_toml(FieldType type, const char *const *choices, const Toml *v, Arena *a, Str *out);

/* A value of a TOML document as it is, whatever a field wants: *type says what
 * *out is. False: an integer outside 64 bits. */
ABX_FN bool coerce_as_is(const Toml *v, Arena *a, FieldType *type, Str *out);

/* "a number", for messages. */
ABX_FN const char *coerce_kind(FieldType type);

#endif
