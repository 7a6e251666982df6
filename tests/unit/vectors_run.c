/* vectors_run.c - runs every file of vectors in a folder against the code, and
 * says which rows failed, which differ on purpose (with the row of
 * docs/differences.md), and how many passed. tests/vectors/run builds it. */
#define ABX_TEST 1
#include "abx.c"

#include "guard.c"
#include "vectors_all.c"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

/* A row has a name, or is known by its first member (of refs, the second). */
static void vectors_run_label(const Json *row)
{
    Str     name = json_str(json_get(row, "name"));
    Buf     text = buf_make(1 << 20);
    JsonOut w = json_out(&text, JSON_ASCII);
    size_t  i = json_get(row, "installed") != NULL;

    if (!name.n && row->type == JSON_OBJECT && row->count > i)
        json_put(&w, &row->items[i]);
    else
        json_put_str(&w, name);
    printf("%.*s%s", text.n > 100 ? 100 : (int)text.n, text.p, text.n > 100 ? "..." : "");
    buf_free(&text);
}

static void vectors_run_report(void *ctx, const char *name, size_t i, const Vector *v)
{
    (void)ctx;
    printf("%s: row %zu, ", name, i + 1);
    vectors_run_label(v->row);
    if (v->skipped)
        printf(": skipped, row %d of docs/differences.md\n", v->difference);
    else if (v->difference)
        printf(": abx answers otherwise, row %d of docs/differences.md\n", v->difference);
    else
        printf(": FAILED: %s\n", v->text);
}

static int vectors_run_json(const struct dirent *e)
{
    return str_ends(str_from(e->d_name), STR(".json"));
}

int main(int argc, char **argv)
{
    struct dirent **names;
    VectorCount     all = {0};
    size_t          files = 0;

    if (argc != 2)
        return fprintf(stderr, "usage: %s DIR\n", argv[0]), 2;
    int n = scandir(argv[1], &names, vectors_run_json, alphasort);
    if (n <= 0)
        return fprintf(stderr, "%s: no folder with vectors\n", argv[1]), 2;
    for (int i = 0; i < n; i++) {
        const VectorFile *f = vectors_files;
        VectorCount       count = {0};
        Err               err = {.text = "nothing is known of such vectors"};
        char              path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[1], names[i]->d_name);
        names[i]->d_name[strlen(names[i]->d_name) - 5] = '\0';
        while (f->name && strcmp(f->name, names[i]->d_name) != 0)
            f++;
        bool ran = f->name && vectors_run(path, f, vectors_run_report, NULL, &count, &err);
        if (ran)
            printf("%s: %zu rows, %zu passed (%zu of them otherwise), %zu skipped, %zu failed\n", f->name, count.rows, count.passed,
                   count.differing, count.skipped, count.failed);
        else
            printf("%s: FAILED: %s\n", path, err.text);
        all.passed += count.passed;
        all.failed += count.failed + !ran;
        all.skipped += count.skipped;
        files += ran;
        free(names[i]);
    }
    free(names);
    printf("%zu files, %zu rows skipped\n%zu passed, %zu failed\n", files, all.skipped, all.passed, all.failed);
    return all.failed != 0;
}
