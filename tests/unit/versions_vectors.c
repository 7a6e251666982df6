#include "vectors.h"

#include "base/str.h"
#include "data/pep440.h"
#include "guard.h"

static bool versions_vector(Vector *v)
{
    Str         version = json_str(json_get(v->row, "version")), spec = json_str(json_get(v->row, "spec")), bad;
    const Json *result = json_get(v->row, "result");
    Version     have = {0};
    bool        yes = false, read = pep440_parse(arena_str(v->a, version), &have);

    read = read && pep440_list(guard_copy(spec), &have, *v->a, &yes, &bad);
    if (result && (result->type == JSON_BOOL ? read && yes == result->boolean : !read))
        return true;
    if (!json_bool(result, true) && !read)
        return vector_differs(v, 4);
    if (!json_bool(result, true) && yes && str_has(spec, '~') && str_has(spec, '!'))
        return vector_differs(v, 5);
    return vector_fail(v, "\"%.*s\" with \"%.*s\": %s", STR_ARG(version), STR_ARG(spec),
                       !read ? "error" : yes ? "true" : "false");
}
