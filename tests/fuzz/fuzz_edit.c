/* Edits of TOML: what was asked for is there afterwards, and nothing else has
 * changed. The first byte says what is done. */
#include "data/toml.h"
#include "base/str.h"
#include "host/edit.h"

static const EditPath fuzz_edit__paths[] = {
    {{{"core", 4}, {"provider", 8}}, 2},
    {{{"providers", 9}, {"demo", 4}, {"zone", 4}}, 3},
    {{{"providers", 9}, {"demo", 4}}, 2},
    {{{"a", 1}, {"b", 1}}, 2},
};

static bool fuzz_edit__same(const Toml *a, const Toml *b, const EditPath *path, size_t depth);

/* All of a is in b, but for the end of the path. A table that is not there is
 * as one without members. `missing`: look at what is not in b alone. */
static bool fuzz_edit__within(const Toml *a, const Toml *b, const EditPath *path, size_t depth, bool missing)
{
    for (size_t i = 0; i < a->count; i++) {
        bool        on = path && str_eq(a->keys[i], path->part[depth]);
        const Toml *other = b ? toml_get_str(b, a->keys[i]) : NULL;
        if ((on && depth + 1 == path->n) || (missing && other))
            continue;
        if (!fuzz_edit__same(&a->items[i], other, on ? path : NULL, depth + 1))
            return false;
    }
    return true;
}

static bool fuzz_edit__same(const Toml *a, const Toml *b, const EditPath *path, size_t depth)
{
    if (path && (!b || !a))
        return (a ? a : b)->type == TOML_TABLE && fuzz_edit__within(a ? a : b, NULL, path, depth, false);
    if (!a || !b || a->type != b->type)
        return false;
    if (a->type == TOML_TABLE)
        return fuzz_edit__within(a, b, path, depth, false) && fuzz_edit__within(b, a, path, depth, true);
    if (a->type != TOML_ARRAY)
        return a->boolean == b->boolean && a->integer == b->integer && str_eq(a->text, b->text);
    for (uint32_t i = 0; i < a->count; i++)
        if (a->count != b->count || !fuzz_edit__same(&a->items[i], &b->items[i], NULL, 0))
            return false;
    return a->count == b->count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Arena a = {0};
    const Toml  *before, *after;
    Str          out;
    Err          err;

    if (!a.p)
        a = arena_make((size_t)256 << 20);
    arena_reset(&a);
    if (size == 0)
        return 0;
    const EditPath *path = &fuzz_edit__paths[data[0] % 4];
    bool            cut = (data[0] & 4) != 0;
    Str             text = {(const char *)data + 1, size - 1};
    Str             literal = edit_literal(FIELD_STR, STR("a\"\\\n\x01z"), &a);
    bool            ok = cut ? edit_cut(text, path, &a, &out, &err)
                             : edit_put(text, path, literal, data[0] & 8 ? EDIT_BESIDE : EDIT_AS_HOSTS, &a, &out, &err);
    if (!ok)
        return 0;
    if (!toml_parse(text, &a, &before, &err) || !toml_parse(out, &a, &after, &err) ||
        !fuzz_edit__same(before, after, path, 0))
        __builtin_trap();
    const Toml *v = after;
    for (size_t i = 0; v && i < path->n; i++)
        v = toml_get_str(v, path->part[i]);
    if (cut ? v != NULL : !str_eq(toml_str(v), STR("a\"\\\n\x01z")))
        __builtin_trap();
    return 0;
}
