#include "vectors.h"

#include "guard.h"
#include "host/registry.h"

/* Nothing can be installed yet, so what is said of demo-box is not run. */
static bool refs_vector(Vector *v)
{
    Str  ref = json_str(json_get(v->row, "ref")), provider = {0}, id = {0}, code = json_str(json_get(v->row, "code"));
    Str  want = json_str(json_get(v->row, "provider"));
    char name[6] = "";
    Err  err = {0};

    if (want.p && !str_eq(want, STR("alicloud-express")))
        return vector_skip(v, 0);
    bool ok = registry_split(guard_copy(ref), &provider, &id, &err);
    code_name(err.code, name);
    if (ok == !code.p && (!ok || (str_eq(provider, want) && str_eq(id, json_str(json_get(v->row, "id"))))) &&
        (ok || str_eq(code, str_from(name))))
        return true;
    if (str_starts(ref, STR("opensandbox:")) && ok && str_eq(provider, STR("opensandbox")) &&
        str_eq(id, str_from_to(ref, 12, ref.n)))
        return vector_differs(v, 35);
    return vector_fail(v, "%.*s: <%.*s> <%.*s> %s %s", STR_ARG(ref), STR_ARG(provider), STR_ARG(id), name, err.text);
}
