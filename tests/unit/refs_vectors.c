#include "vectors.h"

#include "guard.h"
#include "host/registry.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A store in a folder of its own, in which so many ids have a receipt. `make`
 * false: all of it goes again. */
static void refs_vector_store(const char *home, const Json *ids, bool make, Arena *a)
{
    Str root = arena_fmt(a, "%s/providers", home);

    if (make)
        mkdir(root.p, 0700);
    for (size_t i = 0; i < json_count(ids); i++) {
        Str   folder = arena_fmt(a, "%s/%s", root.p, json_str(json_at(ids, i)).p);
        Str   receipt = arena_fmt(a, "%s/%s", folder.p, RECEIPT_FILE);
        FILE *f = make && mkdir(folder.p, 0700) == 0 ? fopen(receipt.p, "w") : NULL;
        if (f)
            fputs("{}\n", f), fclose(f);
        if (!make)
            unlink(receipt.p), rmdir(folder.p);
    }
    if (!make)
        rmdir(root.p), rmdir(home);
}

static bool refs_vector_same(Vector *v, const Store *s)
{
    Str  ref = json_str(json_get(v->row, "ref")), provider = {0}, id = {0}, code = json_str(json_get(v->row, "code"));
    Str  want = json_str(json_get(v->row, "provider"));
    char name[6] = "";
    Err  err = {0};
    bool ok = registry_split(s, guard_copy(ref), &provider, &id, &err);

    code_name(err.code, name);
    if (ok == !code.p && (!ok || (str_eq(provider, want) && str_eq(id, json_str(json_get(v->row, "id"))))) &&
        (ok || str_eq(code, str_from(name))))
        return true;
    if (str_starts(ref, STR("opensandbox:")) && ok && str_eq(provider, STR("opensandbox")) &&
        str_eq(id, str_from_to(ref, 12, ref.n)))
        return vector_differs(v, 35);
    return vector_fail(v, "%.*s: <%.*s> <%.*s> %s %s", STR_ARG(ref), STR_ARG(provider), STR_ARG(id), name, err.text);
}

static bool refs_vector(Vector *v)
{
    char        home[] = "/tmp/abx-refs-XXXXXX";
    const Json *installed = json_get(v->row, "installed");

    if (!mkdtemp(home))
        return vector_fail(v, "no temporary folder");
    refs_vector_store(home, installed, true, v->a);
    Store s = store_make(str_from(home), v->a);
    bool  ok = refs_vector_same(v, &s);
    refs_vector_store(home, installed, false, v->a);
    return ok;
}
