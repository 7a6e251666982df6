/* descriptor.h - the commands that a plugin says it has (`provider-commands/1`):
 * [commands] of its manifest, specification of the provider host, 2.10.
 *
 * Each entry says what it is called, what it does, and which JSON goes in and
 * comes out, as a schema of JSON Schema's draft 7, without the words that reach
 * outside of it or make matching slow.
 *
 * Memory: what is checked stays in the manifest's tree.
 */
#ifndef ABX_DESCRIPTOR_H
#define ABX_DESCRIPTOR_H

#include "base/arena.h"
#include "base/err.h"
#include "data/json.h"
#include "data/toml.h"

/* The value of `commands` (not NULL); `kind_may` whether the plugin's kind may
 * have entries. False: E8014, the text begins with the key. */
ABX_FN bool descriptor_check(const Toml *commands, bool kind_may, Arena scratch, Err *err) ABX_CHECK;

/* The checked entries as a JSON array, sorted by id, each with its keys in the
 * order of the specification. `commands` may be NULL: an empty array. */
ABX_FN void descriptor_put(JsonOut *w, const Toml *commands, Arena scratch);

/* Any value as JSON, but dates, which have no word in it: null. */
ABX_FN void descriptor_put_value(JsonOut *w, const Toml *v);

#endif
