/* json_suite.c - reads each document named, and prints a line for it: "read"
 * or why it was refused. For tests/cli/test_json_suite.py. */
#define ABX_UNITY 1
#include "base/base.c"
#include "base/code.c"
#include "base/err.c"
#include "base/arena.c"
#include "base/buf.c"
#include "base/str.c"
#include "base/num.c"
#include "base/utf8.c"
#include "data/json.c"

#include <stdio.h>

static void suite_one(const char *path, Buf *text, Arena *a)
{
    const Json *doc = NULL;
    FILE       *f = fopen(path, "rb");
    Err         err;
    size_t      n;
    char       *to;

    if (!f)
        BUG("no such case");
    buf_clear(text);
    arena_reset(a);
    while ((to = buf_room(text, 65536)) != NULL && (n = fread(to, 1, 65536, f)) > 0)
        buf_grew(text, n);
    fclose(f);
    puts(json_parse(buf_str(text), a, &doc, &err) ? "read" : err.text);
}

int main(int argc, char **argv)
{
    Buf   text = buf_make(LIMIT_JSON_BYTES);
    Arena a = arena_make(ARENA_COMMAND);

    for (int i = 1; i < argc; i++)
        suite_one(argv[i], &text, &a);
    arena_free(&a);
    buf_free(&text);
    return 0;
}
