/* toml.h - TOML 1.0.0, one whole document to a tree in an arena.
 *
 *     const Toml *doc;
 *     if (!toml_parse(text, &a, &doc, err)) return false;
 *     Str id = toml_str(toml_get(toml_get(doc, "provider"), "id"));
 *
 * To the letter of the standard: UTF-8 only, no byte order mark, no control
 * character but TAB and the line ends LF and CR LF, duplicate keys and
 * redefined tables refused, dates and times that exist. Inside a multi-line
 * string a line end counts as LF. Integers that fit int64_t are TOML_INT, all
 * others TOML_BIG. At most LIMIT_TOML_BYTES, LIMIT_TOML_DEPTH levels and
 * LIMIT_TOML_VALUES values.
 *
 * Getters take NULL and the wrong type calmly.
 *
 * Where things stand, for an editor that changes one value and leaves every
 * other byte. All positions are byte positions in the text; [from, to) is the
 * bytes from `from` up to, not with, `to`.
 *   a value        [at, end), with its quotes or brackets: to change it,
 *                  replace these bytes. [key_at, end) is the whole `key = value`,
 *                  key_at being where its key begins: for `core.provider = "x"`
 *                  at `core`. It begins its line (behind blanks) unless it
 *                  stands inside an inline table. An element of a literal
 *                  array has key_at == at.
 *   a table with a [header] of its own, or an element of [[array]] (`header`)
 *                  key_at is the bracket that opens the header; [at, end) is
 *                  the body: from the line behind the header to the start of
 *                  the line with the next header, or the end of the text. A
 *                  body's last lines can be comments that belong to the next
 *                  header; a new key goes behind the last member of the body
 *                  (the largest `end` of a key in it), or to `at`.
 *   the document   `header` too: its body [0, end) is what stands before the
 *                  first header; key_at is 0.
 *   a table that only dotted keys made (`dotted`), one that is there because
 *   a header named a table in it, and the array of [[headers]] itself
 *                  have no place of their own: key_at, at and end are all
 *                  where the first key or header that names them begins. Its
 *                  members have places, and can be far apart.
 * A table's sub-tables with headers lie outside its body.
 *
 * Memory: the tree lives in the arena, about 200 bytes a value, strings
 * copied; `text` may go, positions stay valid numbers.
 */
#ifndef ABX_TOML_H
#define ABX_TOML_H

#include "base/arena.h"
#include "base/err.h"

typedef enum TomlType {
    TOML_STRING, TOML_INT, TOML_BIG, TOML_FLOAT, TOML_BOOL, TOML_DATE, TOML_ARRAY, TOML_TABLE,
} TomlType;

typedef enum TomlDate {
    TOML_OFFSET_DATETIME, TOML_LOCAL_DATETIME, TOML_LOCAL_DATE, TOML_LOCAL_TIME,
} TomlDate;

typedef struct Toml Toml;
struct Toml {
    TomlType type;
    TomlDate date;              /* TOML_DATE: which of the four */
    bool     boolean;
    bool     inlined;           /* an inline table or a literal array: written in one place */
    bool     dotted;            /* a table that only dotted keys made */
    bool     header;            /* a table with a body: a [header], an element of [[array]], the document */
    uint32_t count;             /* members of an array or table */
    int64_t  integer;           /* TOML_INT */
    double   real;              /* TOML_FLOAT */
    Str      text;              /* TOML_STRING: its characters; TOML_BIG: in decimal, no sign but '-'; other
                                 * numbers and dates: as written */
    const Str  *keys;           /* TOML_TABLE: names in file order, beside the values */
    const Toml *items;          /* values */
    size_t   key_at;            /* see above */
    size_t   at, end;
};

/* False: ERR_INPUT or ERR_LIMIT, "line L, column C: what". The code is E0000. */
ABX_FN bool toml_parse(Str text, Arena *a, const Toml **out, Err *err) ABX_CHECK;

ABX_FN const Toml *toml_get(const Toml *table, const char *key);    /* NULL: no table, or no such key */
ABX_FN const Toml *toml_get_str(const Toml *table, Str key);
ABX_FN Str  toml_str(const Toml *v);                                /* p NULL when it is no string */

/* A byte position as line and column (from 1, columns in characters). */
ABX_FN void toml_position(Str text, size_t at, size_t *line, size_t *column);

#endif
