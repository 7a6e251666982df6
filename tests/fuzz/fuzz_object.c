/* Trees, commits and tags: a tree's names are distinct and fit to be files. */
#include "base/str.h"
#include "data/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Str         all = {(const char *)data, size};
    ObjectTree  t = object_tree(size % 2 ? OBJECT_SHA1 : OBJECT_SHA256, all);
    ObjectEntry e, seen[64];
    ObjectId    id;
    ObjectType  type;
    size_t      n = 0;
    Err         err;

    while (object_tree_next(&t, &e, &err) == STEP_DONE) {
        if (e.name.n == 0 || e.name.n > OBJECT_NAME_MAX || str_has(e.name, '/') || str_has(e.name, '\0') ||
            e.name.p < all.p || e.name.p + e.name.n > all.p + all.n)
            __builtin_trap();
        for (size_t i = 0; i < n; i++)
            if (str_eq(seen[i].name, e.name) &&
                (e.mode == OBJECT_MODE_TREE || seen[i].mode != OBJECT_MODE_TREE || seen[i].mode == e.mode))
                __builtin_trap();
        if (n < 64)
            seen[n++] = e;
    }
    if (object_commit_tree(OBJECT_SHA1, all, &id, &err) && size < 46)
        __builtin_trap();
    if (object_tag_target(OBJECT_SHA1, all, &id, &type, &err) && (type < OBJECT_COMMIT || type > OBJECT_TAG))
        __builtin_trap();
    return 0;
}
