/* vectors.h - the recorded answers of another host, in tests/vectors.
 *
 * A function for each file runs one row of it against the code:
 *
 *     static bool paths_vector(Vector *v)
 *     {
 *         Str path = json_str(json_get(v->row, "path"));
 *         Err err = {0};
 *         if (tree_path_ok(path, &err) != json_bool(json_get(v->row, "ok"), false))
 *             return vector_fail(v, "%.*s: %s", STR_ARG(path), err.text);
 *         return true;
 *     }
 *
 * It stands in tests/unit/NAME_vectors.c, which uses no cmocka, and has a line
 * in vectors_all.c. The unit test of that part runs the whole file with
 * vectors_whole("paths", 85) (vectors_test.c); `tests/vectors/run DIR` runs
 * the files of any folder. So a row may hold anything: what abx answers
 * otherwise on purpose is told from others by rule, not by the texts that
 * happen to be in tests/vectors.
 *
 * A row by whose recorded answer abx does not go names a row of
 * docs/differences.md:
 *     return vector_differs(v, 11);    abx has its own answer, and it was right
 *     return vector_skip(v, 23);       there is nothing here that can be run
 */
#ifndef ABX_TEST_VECTORS_H
#define ABX_TEST_VECTORS_H

#include "data/json.h"

typedef struct Vector {
    const Json *row;
    Arena      *a;              /* for the row alone: 64 MiB */
    int         difference;     /* of docs/differences.md; 0: none */
    bool        skipped;
    char        text[4000];     /* what is wrong */
} Vector;

typedef bool VectorFn(Vector *v);

static bool vector_fail(Vector *v, const char *fmt, ...) ABX_PRINTF(2, 3);     /* false */
static bool vector_differs(Vector *v, int difference);                          /* true */
static bool vector_skip(Vector *v, int difference);                             /* true */

typedef struct VectorFile { const char *name; VectorFn *row; } VectorFile;

/* The files there are functions for, in vectors_all.c; a last one has no name. */
static const VectorFile vectors_files[];

typedef struct VectorCount { size_t rows, passed, failed, skipped, differing; } VectorCount;

/* Called for each row that failed, was skipped or differs; v->text says what.
 * `name`: the file's; i: the row's number from 0. */
typedef void VectorReport(void *ctx, const char *name, size_t i, const Vector *v);

/* Run a whole file. False: it cannot be read, *err says why. */
static bool vectors_run(const char *path, const VectorFile *file, VectorReport *report, void *ctx, VectorCount *count,
                        Err *err);

#endif
