#include "vectors.h"

#include "base/base64.h"
#include "guard.h"
#include "host/tree.h"
#include <stdio.h>
#include <stdlib.h>

static bool paths_vector(Vector *v)
{
    Str  path = json_str(json_get(v->row, "path"));
    Err  err = {0};
    bool want = json_bool(json_get(v->row, "ok"), false), ok = tree_path(guard_copy(path), &err);

    if (ok == want && (ok || err.code == E8010))
        return true;
    return vector_fail(v, "%.*s: %s", STR_ARG(path), ok ? "accepted" : err.text);
}

/* Of 1 byte, or as large as the vector says. */
static bool sets_add(Tree *t, Str path, const Json *sizes, size_t i, Err *err)
{
    char *to;

    return tree_add(t, path, false, json_int(json_at(sizes, i), 1), &to, err);
}

static bool sets_tree(const Json *row, Tree *t, Err *err)
{
    const Json *paths = json_get(row, "paths"), *more = json_get(row, "generate");
    size_t      i = 0;

    for (; i < json_count(paths); i++)
        if (!sets_add(t, json_str(json_at(paths, i)), json_get(row, "sizes"), i, err))
            return false;
    for (int64_t k = 0; k < json_int(json_get(more, "count"), 0); k++) {
        char name[200];
        snprintf(name, sizeof name, "%.*s%d%.*s", STR_ARG(json_str(json_get(more, "prefix"))), (int)k,
                 STR_ARG(json_str(json_get(more, "suffix"))));
        if (!sets_add(t, str_from(name), json_get(row, "sizes"), i + (size_t)k, err))
            return false;
    }
    return tree_seal(t, err);
}

/* docs/differences.md, by what is in the list: a name that would not verify
 * (2, 45), a path that is there twice, or is a file and a folder (44); or 0. */
static int sets_row(const Json *paths)
{
    for (size_t i = 0; i < json_count(paths); i++) {
        Str one = json_str(json_at(paths, i));
        if (str_eq(one, STR(".abx-install.json")))
            return 2;
        if (str_eq(one, STR(".git")) || str_starts(one, STR(".git/")) || str_starts(one, STR(".abx-install.json/")))
            return 45;
        for (size_t k = 0; k < json_count(paths); k++) {
            Str other = json_str(json_at(paths, k));
            if (k != i && str_starts(other, one) && (other.n == one.n || other.p[one.n] == '/'))
                return 44;
        }
    }
    return 0;
}

static bool sets_vector(Vector *v)
{
    Tree t = tree_make();
    Err  err = {0};
    bool want = json_bool(json_get(v->row, "ok"), false), ok = sets_tree(v->row, &t, &err);

    tree_free(&t);
    if (ok == want && (ok || err.code == E8010))
        return true;
    int difference = sets_row(json_get(v->row, "paths"));
    if (want && err.code == E8010 && difference)
        return vector_differs(v, difference);
    return vector_fail(v, "%s", ok ? "accepted" : err.text);
}

/* The digest is defined for lists that are no tree, too (the same path twice,
 * `data`), so it is made of the list here; of a tree, by the tree. */
static void tree_digest_list(const Json *files, const Str *bytes, Arena *a, char hex[static TREE_HEX])
{
    size_t    n = json_count(files);
    TreeFile *all = arena_array(a, n + 1, sizeof *all);
    Sha256    outer = sha256_make();

    for (size_t i = 0; i < n; i++) {
        const Json *f = json_at(files, i);
        TreeFile    one = {.path = json_str(json_get(f, "path")), .executable = json_bool(json_get(f, "executable"), false)};
        Sha256      h = sha256_make();
        size_t      k = i;
        sha256_add(&h, bytes[i]);
        sha256_end(&h, one.sha256);
        for (; k > 0 && tree__by_path(&all[k - 1], &one) > 0; k--)    /* those that are alike keep their order */
            all[k] = all[k - 1];
        all[k] = one;
    }
    for (size_t i = 0; i < n; i++)
        tree_digest_file(&outer, all[i].path, all[i].executable, all[i].sha256);
    tree_digest_end(&outer, hex);
}

static bool tree_digest_vector(Vector *v)
{
    const Json *files = json_get(v->row, "files");
    Str         want = json_str(json_get(v->row, "digest"));
    Str        *bytes = arena_array(v->a, json_count(files), sizeof *bytes);
    Tree        t = tree_make();
    char        hex[TREE_HEX];
    bool        ok = true;
    Err         err;

    for (size_t i = 0; i < json_count(files); i++) {
        const Json *f = json_at(files, i);
        char       *to;
        if (!base64_decode(v->a, json_str(json_get(f, "content_b64")), &bytes[i]))
            abort();
        ok = ok && tree_add(&t, json_str(json_get(f, "path")), json_bool(json_get(f, "executable"), false),
                            (int64_t)bytes[i].n, &to, &err);
        if (ok && bytes[i].n)
            memcpy(to, bytes[i].p, bytes[i].n);
    }
    tree_digest_list(files, bytes, v->a, hex);
    bool same = str_eq(str_from(hex), want);
    if (same && ok && tree_seal(&t, &err)) {
        tree_digest(&t, hex);
        same = str_eq(str_from(hex), want);
    }
    tree_free(&t);
    return same || vector_fail(v, "%s", hex);
}
