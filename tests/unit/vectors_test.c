#include "vectors.h"

#include <stdio.h>

static void vectors_test_report(void *ctx, const char *name, size_t i, const Vector *v)
{
    (void)ctx;
    if (!v->skipped && !v->difference)
        print_error("%s: row %zu: %s\n", name, i, v->text);
}

/* The whole of tests/vectors/NAME.json, which has this many rows. */
static void vectors_whole(const char *name, size_t rows)
{
    const VectorFile *f = vectors_files;
    VectorCount       count;
    char              path[200];
    Err               err;

    while (f->name && strcmp(f->name, name) != 0)
        f++;
    if (!f->name)
        fail_msg("%s is not in vectors_all.c", name);
    snprintf(path, sizeof path, "tests/vectors/%s.json", name);
    if (!vectors_run(path, f, vectors_test_report, NULL, &count, &err))
        fail_msg("%s (run the tests in the project's folder)", err.text);
    if (count.failed || count.rows != rows)
        fail_msg("%s: %zu rows, %zu failed", path, count.rows, count.failed);
}
