#include "host/descriptor.h"

#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"
#include <stdlib.h>

static const char *const descriptor__keys[] = {
    "id", "description", "description_zh", "input_schema", "output_schema", "effect", "idempotent",
};

typedef struct DescriptorCheck {
    Str  name;          /* "commands.entries[3]" */
    Err *err;
} DescriptorCheck;

static bool descriptor__bad(const DescriptorCheck *c, const char *key, const char *what)
{
    return err_set(c->err, ERR_INPUT, E8014, "%.*s%s%s %s", STR_ARG(c->name), *key ? "." : "", key, what);
}

static bool descriptor__in(Str s, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(s, str_from(words[i])))
            return true;
    return false;
}

/* ---- what a schema may hold ---- */

/* Recursion is as deep as descriptor__safe() allows. */
static bool descriptor__schema(const DescriptorCheck *c, const char *key, const Toml *node);

static bool descriptor__schemas(const DescriptorCheck *c, const char *key, const Toml *v)
{
    for (uint32_t i = 0; i < v->count; i++)
        if (!descriptor__schema(c, key, &v->items[i]))
            return false;
    return true;
}

static bool descriptor__schema(const DescriptorCheck *c, const char *key, const Toml *node)
{
    static const char *const refused[] = {"$ref", "$dynamicRef", "$recursiveRef", "$id", "$async", "pattern",
                                          "patternProperties", "format"};
    static const char *const maps[] = {"properties", "definitions", "$defs", "dependencies", "allOf", "anyOf", "oneOf"};
    static const char *const one[] = {"items", "additionalItems", "additionalProperties", "propertyNames", "contains", "not",
                                      "if", "then", "else"};

    if (node->type != TOML_TABLE)
        return true;
    for (uint32_t i = 0; i < node->count; i++) {
        Str         word = node->keys[i];
        const Toml *v = &node->items[i];
        if (descriptor__in(word, refused, COUNT_OF(refused)))
            return err_set(c->err, ERR_INPUT, E8014, "%.*s.%s holds \"%.*s\", which no schema here may use", STR_ARG(c->name), key,
                           STR_ARG(word));
        if (str_eq(word, STR("$schema")) && !str_eq(toml_str(v), STR("http://json-schema.org/draft-07/schema#")))
            return descriptor__bad(c, key, "names a $schema that is not draft 7");
        if (descriptor__in(word, maps, COUNT_OF(maps)) && !descriptor__schemas(c, key, v))
            return false;
        if (descriptor__in(word, one, COUNT_OF(one)) &&
            !(v->type == TOML_ARRAY ? descriptor__schemas(c, key, v) : descriptor__schema(c, key, v)))
            return false;
    }
    return true;
}

/* ---- what JSON can say of it ---- */

static bool descriptor__safe(const DescriptorCheck *c, const Toml *v, int level)
{
    static const char *const names[] = {"__proto__", "prototype", "constructor"};

    if (level > LIMIT_DESCRIPTOR_DEPTH)
        return descriptor__bad(c, "", "is nested deeper than 16 levels");
    if (v->type == TOML_DATE)
        return descriptor__bad(c, "", "holds a date, which JSON has no word for");
    if (v->type == TOML_FLOAT && v->real - v->real != 0)
        return descriptor__bad(c, "", "holds a number that is not finite");
    for (uint32_t i = 0; (v->type == TOML_TABLE || v->type == TOML_ARRAY) && i < v->count; i++) {
        if (v->type == TOML_TABLE && descriptor__in(v->keys[i], names, COUNT_OF(names)))
            return err_set(c->err, ERR_INPUT, E8014, "%.*s holds the key \"%.*s\"", STR_ARG(c->name), STR_ARG(v->keys[i]));
        if (!descriptor__safe(c, &v->items[i], level + 1))
            return false;
    }
    return true;
}

void descriptor_put_value(JsonOut *w, const Toml *v)
{
    switch (v->type) {
    case TOML_STRING:
        json_put_str(w, v->text);
        break;
    case TOML_INT:
        json_put_int(w, v->integer);
        break;
    case TOML_BIG:
        json_put_digits(w, v->text);
        break;
    case TOML_FLOAT:
        json_put_real(w, v->real);
        break;
    case TOML_BOOL:
        json_put_bool(w, v->boolean);
        break;
    case TOML_DATE:
        json_put_null(w);
        break;
    case TOML_ARRAY:
    case TOML_TABLE:
        json_begin(w, v->type == TOML_ARRAY ? '[' : '{');
        for (uint32_t i = 0; i < v->count; i++) {
            if (v->type == TOML_TABLE)
                json_key_str(w, v->keys[i]);
            descriptor_put_value(w, &v->items[i]);
        }
        json_end(w, v->type == TOML_ARRAY ? ']' : '}');
    }
}

static bool descriptor__small(const DescriptorCheck *c, const Toml *entry)
{
    Buf     text = buf_make(LIMIT_DESCRIPTOR);
    JsonOut w = json_out(&text, JSON_COMPACT);

    descriptor_put_value(&w, entry);
    bool over = text.over;
    buf_free(&text);
    return !over || descriptor__bad(c, "", "is more than 65536 bytes of JSON");
}

/* ---- an entry ---- */

/* Words of small letters and digits, the first with a letter in front, joined
 * by single points or hyphens. */
static bool descriptor__is_id(Str id)
{
    char before = '.';

    for (size_t i = 0; i < id.n; i++) {
        char c = id.p[i];
        bool lower = c >= 'a' && c <= 'z', joint = c == '.' || c == '-';
        if (!lower && !(c >= '0' && c <= '9' && i > 0) && !(joint && before != '.' && before != '-'))
            return false;
        before = c;
    }
    return id.n <= 80 && before != '.' && before != '-';
}

static bool descriptor__text(const DescriptorCheck *c, const Toml *entry, const char *key)
{
    return utf8_trim(toml_str(toml_get(entry, key))).n > 0 || descriptor__bad(c, key, "must be text that is not blank");
}

static bool descriptor__rules(const DescriptorCheck *c, const Toml *entry)
{
    static const char *const effects[] = {"read", "write", "delete"};
    const Toml *idempotent = toml_get(entry, "idempotent"), *in = toml_get(entry, "input_schema"),
               *out = toml_get(entry, "output_schema"), *open = toml_get(in, "additionalProperties");

    if (!descriptor__in(toml_str(toml_get(entry, "effect")), effects, COUNT_OF(effects)))
        return descriptor__bad(c, "effect", "must be \"read\", \"write\" or \"delete\"");
    if (!idempotent || idempotent->type != TOML_BOOL)
        return descriptor__bad(c, "idempotent", "must be true or false");
    if (!descriptor__text(c, entry, "description") || !descriptor__text(c, entry, "description_zh"))
        return false;
    if (!in || in->type != TOML_TABLE || !str_eq(toml_str(toml_get(in, "type")), STR("object")) || !open ||
        open->type != TOML_BOOL || open->boolean)
        return descriptor__bad(c, "input_schema", "must be a table with type = \"object\" and additionalProperties = false");
    if (!out || out->type != TOML_TABLE)
        return descriptor__bad(c, "output_schema", "must be a table");
    return descriptor__schema(c, "input_schema", in) && descriptor__schema(c, "output_schema", out);
}

static bool descriptor__entry(const DescriptorCheck *c, const Toml *entries, uint32_t at)
{
    const Toml *entry = &entries->items[at];

    if (entry->type != TOML_TABLE)
        return descriptor__bad(c, "", "must be a table");
    for (uint32_t i = 0; i < entry->count; i++)
        if (!descriptor__in(entry->keys[i], descriptor__keys, COUNT_OF(descriptor__keys)))
            return err_set(c->err, ERR_INPUT, E8014, "%.*s: the key \"%.*s\" is none of an entry", STR_ARG(c->name),
                           STR_ARG(entry->keys[i]));
    if (!descriptor__safe(c, entry, 0) || !descriptor__small(c, entry))
        return false;
    Str id = toml_str(toml_get(entry, "id"));
    if (!descriptor__is_id(id))
        return descriptor__bad(c, "id", "must be words of small letters and digits, joined by points or hyphens, 80 characters at most");
    for (uint32_t i = 0; i < at; i++)
        if (str_eq(toml_str(toml_get(&entries->items[i], "id")), id))
            return descriptor__bad(c, "id", "is that of another entry");
    return descriptor__rules(c, entry);
}

bool descriptor_check(const Toml *commands, bool kind_may, Arena scratch, Err *err)
{
    DescriptorCheck c = {.name = STR("commands"), .err = err};
    const Toml     *entries = toml_get(commands, "entries");

    if (commands->type != TOML_TABLE)
        return descriptor__bad(&c, "", "must be a table");
    if (!str_eq(toml_str(toml_get(commands, "protocol")), STR("provider-commands/1")))
        return descriptor__bad(&c, "protocol", "must be \"provider-commands/1\"");
    if (!entries || entries->type != TOML_ARRAY || entries->count > LIMIT_DESCRIPTORS)
        return descriptor__bad(&c, "entries", "must be an array of at most 128 tables");
    if (entries->count && !kind_may)
        return descriptor__bad(&c, "entries", "must be empty: a provider of this kind has no commands");
    for (uint32_t i = 0; i < entries->count; i++) {
        c.name = arena_fmt(&scratch, "commands.entries[%u]", (unsigned)i);
        if (!descriptor__entry(&c, entries, i))
            return false;
    }
    return true;
}

/* ---- printing ---- */

static int descriptor__by_id(const void *left, const void *right)
{
    return str_order(toml_str(toml_get(*(const Toml *const *)left, "id")), toml_str(toml_get(*(const Toml *const *)right, "id")));
}

void descriptor_put(JsonOut *w, const Toml *commands, Arena scratch)
{
    const Toml  *entries = toml_get(commands, "entries");
    size_t       n = entries ? entries->count : 0;
    const Toml **sorted = arena_array(&scratch, n + 1, sizeof *sorted);

    for (size_t i = 0; i < n; i++)
        sorted[i] = &entries->items[i];
    qsort(sorted, n, sizeof *sorted, descriptor__by_id);
    json_begin(w, '[');
    for (size_t i = 0; i < n; i++) {
        json_begin(w, '{');
        for (size_t k = 0; k < COUNT_OF(descriptor__keys); k++) {
            json_key(w, descriptor__keys[k]);
            descriptor_put_value(w, toml_get(sorted[i], descriptor__keys[k]));
        }
        json_end(w, '}');
    }
    json_end(w, ']');
}
