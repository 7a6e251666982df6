/* describe.h - what is said of providers: `list` and `info` (specification, 7.2
 * and 7.3).
 *
 * Memory: the arena's.
 */
#ifndef ABX_DESCRIBE_H
#define ABX_DESCRIBE_H

#include "data/json.h"
#include "host/store.h"

typedef struct DescribeRow {
    Str        id, name, name_zh, version;
    Str        kind;            /* builtin, exec, rest, node */
    Str        trust;           /* builtin, or the receipt's */
    const Str *features;        /* in the order of 2.5, unknown ones last */
    size_t     feature_count;
    Str        error;           /* why it cannot be used: "[CODE] message", a second line for the suggestion; p NULL: it can */
} DescribeRow;

/* One row for each provider there is: the built-in first, the others by id. A
 * provider that cannot be used is a row as well. False: the store itself
 * cannot be read (E8010). */
ABX_FN bool describe_list(const Store *s, Arena *a, const DescribeRow **out, size_t *n, Err *err) ABX_CHECK;

/* The document of `info`, as an object into w. False: what registry_find() says. */
ABX_FN bool describe_info(const Store *s, Str id, JsonOut *w, Err *err) ABX_CHECK;

#endif
