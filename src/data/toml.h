/* toml.h - TOML 1.0.0, one whole document to a tree in an arena.
 *
 *     const Toml *doc;
 *     if (!toml_parse(text, &a, &doc, err)) return false;
 *     const Toml *v = toml_get(toml_get(doc, "provider"), "id");
 *
 * To the letter of the standard: UTF-8 only, no byte order mark, 64-bit
 * integers (a literal outside them is kept as TOML_BIG), duplicate keys and
 * redefined tables refused. The position of each value and each table header
 * in the text is kept, so that an editor can change one and leave the rest.
 *
 * Getters take NULL and the wrong type calmly.
 *
 * Memory: the tree lives in the arena; `text` may go, positions stay valid
 * numbers.
 */
#ifndef ABX_TOML_H
#define ABX_TOML_H

#include "base/arena.h"
#include "base/err.h"

typedef enum TomlType {
    TOML_STRING, TOML_INT, TOML_BIG, TOML_FLOAT, TOML_BOOL, TOML_DATE, TOML_ARRAY, TOML_TABLE,
} TomlType;

typedef struct Toml Toml;
struct Toml {
    TomlType type;
    bool     boolean;
    bool     inlined;           /* an inline table or a literal array: written in one place */
    bool     dotted;            /* a table that only dotted keys made */
    uint32_t count;             /* members of an array or table */
    int64_t  integer;           /* TOML_INT */
    double   real;              /* TOML_FLOAT */
    Str      text;              /* TOML_STRING: its characters; numbers and dates: as written */
    const Str  *keys;           /* TOML_TABLE: names in file order, beside the values */
    const Toml *items;          /* values */
    size_t   key_at;            /* where the key (or the [header]) of it begins in the text */
    size_t   at, end;           /* where the value itself stands: [at, end); a table by header: its body up to the next header */
};

/* False: ERR_INPUT or ERR_LIMIT, "line L, column C: what". The code is E0000. */
ABX_FN bool toml_parse(Str text, Arena *a, const Toml **out, Err *err) ABX_CHECK;

ABX_FN const Toml *toml_get(const Toml *table, const char *key);    /* NULL: no table, or no such key */
ABX_FN const Toml *toml_get_str(const Toml *table, Str key);
ABX_FN Str  toml_str(const Toml *v);                                /* p NULL when it is no string */

/* A byte position as line and column (from 1, columns in characters). */
ABX_FN void toml_position(Str text, size_t at, size_t *line, size_t *column);

#endif
