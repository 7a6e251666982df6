#include "vectors.h"

#include "base/limits.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static bool vector_fail(Vector *v, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(v->text, sizeof v->text, fmt, args);
    va_end(args);
    return false;
}

static bool vector_differs(Vector *v, int difference)
{
    v->difference = difference;
    return true;
}

static bool vector_skip(Vector *v, int difference)
{
    v->difference = difference;
    v->skipped = true;
    return true;
}

static bool vectors__read(const char *path, Arena *a, const Json **doc, Err *err)
{
    Buf    text = buf_make(LIMIT_JSON_BYTES);
    FILE  *f = fopen(path, "rb");
    char  *to;
    size_t n;

    if (!f)
        return err_set(err, ERR_NOT_FOUND, E0000, "cannot open %s", path);
    while ((to = buf_room(&text, 65536)) != NULL && (n = fread(to, 1, 65536, f)) > 0)
        buf_grew(&text, n);
    fclose(f);
    bool ok = json_parse(buf_str(&text), a, doc, err) || err_wrap(err, "%s", path);
    buf_free(&text);
    if (ok && (*doc)->type != JSON_ARRAY)
        return err_set(err, ERR_INPUT, E0000, "%s: no array", path);
    return ok;
}

static bool vectors_run(const char *path, const VectorFile *file, VectorReport *report, void *ctx, VectorCount *count,
                        Err *err)
{
    Arena       a = arena_make((size_t)256 << 20), own = arena_make((size_t)64 << 20);
    const Json *rows = NULL;
    bool        read = vectors__read(path, &a, &rows, err);

    *count = (VectorCount){.rows = json_count(rows)};
    for (size_t i = 0; i < count->rows; i++) {
        Vector v = {.row = json_at(rows, i), .a = &own};
        arena_reset(&own);
        bool ok = file->row(&v);
        if (!ok) {              /* whatever one part of the row was */
            v.difference = 0;
            v.skipped = false;
        }
        count->passed += ok && !v.skipped;
        count->skipped += ok && v.skipped;
        count->differing += ok && v.difference && !v.skipped;
        count->failed += !ok;
        if (!ok || v.skipped || v.difference)
            report(ctx, file->name, i, &v);
    }
    arena_free(&own);
    arena_free(&a);
    return read;
}
