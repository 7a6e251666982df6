/* toml_suite.c - reads each document named, and prints a line for it: its tree
 * as JSON with the type beside each value, as the toml-test data has it, or
 * why it was refused. For tests/cli/test_toml_suite.py. */
#define ABX_UNITY 1
#include "base/base.c"
#include "base/code.c"
#include "base/err.c"
#include "base/arena.c"
#include "base/buf.c"
#include "base/str.c"
#include "base/num.c"
#include "base/utf8.c"
#include "data/clean.c"
#include "data/json.c"
#include "data/toml.c"

#include <stdio.h>

static void suite_value(const Toml *v, JsonOut *w)
{
    static const char *const types[] = {"string", "integer", "integer", "float", "bool"};
    static const char *const dates[] = {"datetime", "datetime-local", "date-local", "time-local"};
    char number[40];

    if (v->type == TOML_TABLE || v->type == TOML_ARRAY) {
        json_begin(w, v->type == TOML_TABLE ? '{' : '[');
        for (uint32_t i = 0; i < v->count; i++) {
            if (v->type == TOML_TABLE)
                json_key_str(w, v->keys[i]);
            suite_value(&v->items[i], w);
        }
        json_end(w, v->type == TOML_TABLE ? '}' : ']');
        return;
    }
    json_begin(w, '{');
    json_key(w, "type");
    json_put_str(w, str_from(v->type == TOML_DATE ? dates[v->date] : types[v->type]));
    json_key(w, "value");
    if (v->type == TOML_INT)
        snprintf(number, sizeof number, "%lld", (long long)v->integer);
    else if (v->type == TOML_FLOAT)
        snprintf(number, sizeof number, "%.17g", v->real);
    json_put_str(w, v->type == TOML_INT || v->type == TOML_FLOAT ? str_from(number) : v->text);
    json_end(w, '}');
}

static void suite_one(const char *path, Buf *text, Buf *out, Arena *a)
{
    const Toml *doc = NULL;
    FILE       *f = fopen(path, "rb");
    JsonOut     w = json_out(out, JSON_COMPACT);
    Err         err;
    size_t      n;
    char       *to;

    if (!f)
        BUG("no such case");
    buf_clear(text);
    buf_clear(out);
    arena_reset(a);
    while ((to = buf_room(text, 65536)) != NULL && (n = fread(to, 1, 65536, f)) > 0)
        buf_grew(text, n);
    fclose(f);
    if (!toml_parse(buf_str(text), a, &doc, &err)) {
        puts(err.text);
        return;
    }
    suite_value(doc, &w);
    printf("%.*s\n", (int)out->n, out->p);
}

int main(int argc, char **argv)
{
    Buf   text = buf_make(LIMIT_JSON_BYTES), out = buf_make(LIMIT_JSON_BYTES);
    Arena a = arena_make(ARENA_COMMAND);

    for (int i = 1; i < argc; i++)
        suite_one(argv[i], &text, &out, &a);
    arena_free(&a);
    buf_free(&out);
    buf_free(&text);
    return 0;
}
