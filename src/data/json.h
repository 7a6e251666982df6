/* json.h - JSON (RFC 8259), read and written.
 *
 * Reading: one whole document in memory to a tree in an arena.
 *
 *     const Json *doc;
 *     if (!json_parse(text, &a, &doc, err)) return false;
 *     Str id = json_str(json_get(doc, "id"));
 *
 * To the letter of the RFC: UTF-8 only, no byte order mark, no comments, no
 * trailing commas, no NaN, nothing but white space behind the value. Of a key
 * given twice the last value counts. Integers that fit int64_t are exact
 * (JSON_INT); every other number is JSON_REAL, with its own text kept. A
 * surrogate pair becomes one character; a lone surrogate is refused. "\u0000"
 * is a NUL byte in the Str. At most LIMIT_JSON_BYTES, LIMIT_JSON_DEPTH levels
 * and LIMIT_JSON_VALUES values.
 *
 * Looking: the getters take NULL and the wrong type calmly and answer with
 * nothing (NULL, the empty Str, the default), so a path is a chain of calls.
 *
 * Writing: a JsonOut over a Buf puts in commas and, if asked, line breaks.
 *
 *     JsonOut w = json_out(&buf, JSON_PRETTY);
 *     json_begin(&w, '{'); json_key(&w, "id"); json_put_str(&w, id); json_end(&w, '}');
 *
 * Non-ASCII text is written as it is; what is not UTF-8 becomes U+FFFD; of the
 * control characters those with a short form are written in it (\b \f \n \r
 * \t), the others as \u00xx; DEL is written as it is, but in JSON_ASCII.
 *
 * Memory: the tree and its strings live in the arena: one copy of the text, 32
 * bytes for each value and 16 more for each key: at most 50 MB beside the copy,
 * so the largest document fits into ARENA_COMMAND. `text` may go once
 * json_parse() is back. Behind each string and key, and only there, is a NUL.
 */
#ifndef ABX_JSON_H
#define ABX_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

typedef enum JsonType {
    JSON_NULL, JSON_BOOL, JSON_INT, JSON_REAL, JSON_STRING, JSON_ARRAY, JSON_OBJECT,
} JsonType;

typedef struct Json {
    JsonType type;
    uint32_t count;             /* JSON_ARRAY, JSON_OBJECT: members */
    union {
        int64_t integer;        /* JSON_INT */
        bool    boolean;        /* JSON_BOOL */
        const Str *keys;        /* JSON_OBJECT: the names, beside the values; each once */
    };
    union {
        Str text;               /* JSON_STRING: its characters. JSON_INT and JSON_REAL: as it was written */
        const struct Json *items;   /* JSON_ARRAY, JSON_OBJECT: the values, in file order. Of a key given
                                     * twice the first place and the last value */
    };
} Json;

/* False: ERR_INPUT or ERR_LIMIT, with the byte position (from 0) in the text.
 * The code is E0000: the caller knows what kind of thing was malformed. */
ABX_FN bool json_parse(Str text, Arena *a, const Json **out, Err *err) ABX_CHECK;

ABX_FN const Json *json_get(const Json *object, const char *key);   /* NULL: not an object, or no such key */
ABX_FN const Json *json_at(const Json *array, size_t i);           /* NULL: not an array, or past its end */
ABX_FN Str     json_str(const Json *v);                             /* empty, with p NULL, when it is no string */
ABX_FN int64_t json_int(const Json *v, int64_t otherwise);          /* JSON_INT, or a whole JSON_REAL up to 2^53 */
ABX_FN double json_real(const Json *v, double otherwise);          /* any number; infinite when it is too large */
ABX_FN bool    json_bool(const Json *v, bool otherwise);
ABX_FN size_t  json_count(const Json *v);                           /* members of an array or object; else 0 */

typedef enum JsonStyle {
    JSON_COMPACT,       /* {"a":1} */
    JSON_SPACED,        /* {"a": 1, "b": 2}: one line, as errors are printed */
    JSON_ASCII,         /* the same, all but printable ASCII as \u escapes, pairs of surrogates included */
    JSON_PRETTY,        /* two spaces a level; empty ones stay {} and [] */
} JsonStyle;

typedef struct JsonOut {
    Buf      *to;       /* look at to->over when all is written */
    JsonStyle style;
    int       depth;
    bool      comma;    /* a value was written at this level */
    bool      keyed;    /* a key was written, its value comes */
} JsonOut;

ABX_FN JsonOut json_out(Buf *to, JsonStyle style);
ABX_FN void json_begin(JsonOut *w, char open);          /* '{' or '[' */
ABX_FN void json_end(JsonOut *w, char close);           /* '}' or ']' */
ABX_FN void json_key(JsonOut *w, const char *key);
ABX_FN void json_key_str(JsonOut *w, Str key);          /* for keys that come from outside */
ABX_FN void json_put_str(JsonOut *w, Str s);
ABX_FN void json_put_int(JsonOut *w, int64_t v);
ABX_FN void json_put_bool(JsonOut *w, bool v);
ABX_FN void json_put_null(JsonOut *w);
ABX_FN void json_put(JsonOut *w, const Json *v);       /* a whole tree; numbers as they were written */

/* As Python prints it: the fewest digits that read back as the same number,
 * always with a '.' or an exponent: 1.5, 100.0, 1e-05, 1e+16; NaN, Infinity. */
ABX_FN void json_put_real(JsonOut *w, double v);

/* The digits of an integer of any size, as they are. */
ABX_FN void json_put_digits(JsonOut *w, Str digits);

/* A whole tree as Python prints it with sorted keys: names by code point at
 * every level, numbers as above. */
ABX_FN void json_put_sorted(JsonOut *w, const Json *v);

/* The order of json_put_sorted(), for qsort() of `const Str *`; of equal ones
 * the earlier in memory first. */
ABX_FN int  json_order(const void *left, const void *right);

#endif
