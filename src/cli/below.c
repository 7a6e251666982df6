#include "cli/below.h"

#include "base/limits.h"
#include "base/str.h"

/* The last one, taken off; good until something is added. */
static Str below__pop(Buf *b)
{
    size_t end = b->n - 1, at = end;

    while (at > 0 && b->p[at - 1])
        at--;
    b->n = at;
    return (Str){b->p + at, end - at};
}

static void below__push(Buf *b, Str path)
{
    buf_add(b, path);
    buf_addc(b, '\0');
}

static void below__refuse(Below *b, const char *what)
{
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    err_set(&err, ERR_LIMIT, E4000, "%s: %s below %.*s", b->root, what, STR_ARG(buf_str(&b->at)));
    output_own(&e, &err);
    b->stop = !run_fail_one(b->run, &e, &b->status);
}

static int below__one(void *ctx, const abx_file_info *f)
{
    Below *b = ctx;

    buf_clear(&b->path);
    buf_add(&b->path, buf_str(&b->at));
    if (b->at.n)
        buf_addc(&b->path, '/');
    buf_add(&b->path, str_from(f->name));
    if (f->type == ABX_FOLDER && (b->depth < b->deepest || b->deepest == LIMIT_SYNC_DEPTH))
        below__push(&b->found, buf_str(&b->path));
    b->stop = !b->each(b->ctx, buf_str(&b->path), f);
    return b->stop;
}

/* What was found is looked into in its own order, before all that waits. */
static void below__turn(Below *b)
{
    while (b->found.n)
        below__push(&b->waiting, below__pop(&b->found));
    if (!b->waiting.over && !b->found.over)
        return;
    below__refuse(b, "there are too many folders");
    b->stop = true;
}

static void below__next(Below *b)
{
    ABX_UNSET abx_error e;
    Arena       a = *b->run->a;
    const char *slash = str_ends(str_from(b->root), STR("/")) ? "" : "/";

    buf_clear(&b->at);
    buf_add(&b->at, below__pop(&b->waiting));
    b->depth = 2;
    for (size_t i = 0; i < b->at.n; i++)
        b->depth += b->at.p[i] == '/';
    if (b->depth > LIMIT_SYNC_DEPTH || b->at.over)
        below__refuse(b, "folders go too deep");
    else if (abx_list_files(b->box, arena_fmt(&a, "%s%s%.*s", b->root, slash, STR_ARG(buf_str(&b->at))).p, below__one, b, &e))
        b->stop = !run_fail_one(b->run, &e, &b->status);
}

int below_list(Below *b, abx_error *e)
{
    b->waiting = buf_make(LIMIT_LIST_FOLDERS);
    b->found = buf_make(LIMIT_LIST_FOLDERS);
    b->at = buf_make(LIMIT_SYNC_PATH);
    b->path = buf_make(2 * LIMIT_SYNC_PATH);
    b->depth = 1;
    int listed = abx_list_files(b->box, b->root, below__one, b, e);
    for (below__turn(b); listed == 0 && b->waiting.n && !b->stop; below__turn(b))
        below__next(b);
    buf_free(&b->waiting);
    buf_free(&b->found);
    buf_free(&b->at);
    buf_free(&b->path);
    return listed;
}
