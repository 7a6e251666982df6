/* edit.h - one change to a TOML text, everything else byte for byte as it was.
 *
 * A value is found by the parsed document, so keys may be written in any way:
 * below a header, dotted, quoted, in an inline table. What is added is written
 * with the line ends of the text.
 *
 * Memory: the new text in the arena.
 */
#ifndef ABX_EDIT_H
#define ABX_EDIT_H

#include "base/arena.h"
#include "base/err.h"
#include "provider/provider.h"

typedef struct EditPath { Str part[3]; size_t n; } EditPath;    /* "providers", "demo", "zone" */

/* A value in TOML: numbers and booleans bare, all else as a string. */
ABX_FN Str edit_literal(FieldType type, Str value, Arena *a);

typedef enum EditWhere {
    EDIT_BESIDE,        /* an old value is replaced in its line; a new key goes behind the last one of its table */
    EDIT_AS_HOSTS,      /* as the other hosts set the default: an old line anew, a new one at the end of its table */
} EditWhere;

/* Set a key. False: E8002, the text is not TOML, or something else than a table
 * is in the way. */
ABX_FN bool edit_put(Str text, const EditPath *path, Str literal, EditWhere where, Arena *a, Str *out, Err *err) ABX_CHECK;

/* Take out a key, or a table with all that belongs to it, wherever it stands.
 * What is not there is no failure. A table's header stays when its last key
 * goes. False: E8002, the text is not TOML. */
ABX_FN bool edit_cut(Str text, const EditPath *path, Arena *a, Str *out, Err *err) ABX_CHECK;

#endif
