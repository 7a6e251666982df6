#include "vectors.h"

#include "base/limits.h"
#include <stdio.h>
#include <stdlib.h>

static const Json *vectors_open(const char *name, Arena *a)
{
    char        path[200];
    Buf         text = buf_make(LIMIT_JSON_BYTES);
    const Json *doc = NULL;
    Err         err;
    char       *to;
    size_t      n;

    snprintf(path, sizeof path, "tests/vectors/%s.json", name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s: run the tests in the project's folder", path);
    while ((to = buf_room(&text, 65536)) != NULL && (n = fread(to, 1, 65536, f)) > 0)
        buf_grew(&text, n);
    fclose(f);
    if (!json_parse(buf_str(&text), a, &doc, &err))
        fail_msg("%s: %s", path, err.text);
    buf_free(&text);
    return doc;
}
