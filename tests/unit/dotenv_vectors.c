#include "vectors.h"

#include "data/dotenv.h"
#include "guard.h"

static Str dotenv_vector_env(void *ctx, Str name)
{
    (void)ctx;
    (void)name;
    return (Str){0};
}

static bool dotenv_vector(Vector *v)
{
    Str         text = json_str(json_get(v->row, "text"));
    const Json *map = json_get(v->row, "map");
    Dotenv      d = {0};
    Err         err;

    if (!map || map->type != JSON_OBJECT)
        return vector_fail(v, "no map");
    if (!dotenv_parse(guard_copy(text), (DotenvLookup){dotenv_vector_env, NULL}, v->a, &d, &err))
        return vector_fail(v, "%.*s: %s", STR_ARG(text), err.text);
    if (d.n != map->count)
        return vector_fail(v, "%.*s: %zu keys, not %u", STR_ARG(text), d.n, (unsigned)map->count);
    for (size_t k = 0; k < map->count; k++) {
        const DotenvEntry *e = dotenv_get(&d, map->keys[k]);
        Str want = json_str(&map->items[k]);
        if (!e || !str_eq(e->value, want) || !e->value.p != !want.p)
            return vector_fail(v, "%.*s: %.*s is <%.*s>, not <%.*s>", STR_ARG(text), STR_ARG(map->keys[k]),
                               STR_ARG(e ? e->value : STR("missing")), STR_ARG(want));
    }
    return true;
}
