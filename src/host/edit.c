#include "host/edit.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"
#include "data/toml.h"

static bool edit__parse(Str text, Arena *a, const Toml **doc, Err *err)
{
    if (text.n > LIMIT_CONFIG)
        return err_set(err, ERR_LIMIT, E8002, "more than %zu bytes", LIMIT_CONFIG);
    if (toml_parse(text, a, doc, err))
        return true;
    err->code = E8002;
    return err_hint(err, "The file was left as it is. Correct it, and try again.");
}

/* ---- places ---- */

static size_t edit__line_start(Str text, size_t at)
{
    while (at > 0 && text.p[at - 1] != '\n')
        at--;
    return at;
}

/* Behind the line end that follows. */
static size_t edit__line_end(Str text, size_t at)
{
    while (at < text.n && text.p[at] != '\n')
        at++;
    return at < text.n ? at + 1 : at;
}

static Str edit__eol(Str text)
{
    size_t n = str_find(text, '\n');

    return n > 0 && n < text.n && text.p[n - 1] == '\r' ? STR("\r\n") : STR("\n");
}

/* text with [from, to) replaced by the pieces of `with`. */
static Str edit__splice(Str text, size_t from, size_t to, Str with, Arena *a)
{
    char *p = arena_alloc(a, text.n - (to - from) + with.n + 1);
    Str   out = {p, text.n - (to - from) + with.n};

    if (from)
        memcpy(p, text.p, from);
    if (with.n)
        memcpy(p + from, with.p, with.n);
    if (to < text.n)
        memcpy(p + from + with.n, text.p + to, text.n - to);
    return out;
}

/* A table that was written in several places: by dotted keys, by headers of
 * what is in it, or by [[headers]]. */
static bool edit__scattered(const Toml *v)
{
    return (v->type == TOML_TABLE || v->type == TOML_ARRAY) && !v->inlined && !v->header;
}

typedef struct EditNear { size_t before, after; } EditNear;

/* Of the keys in an inline table: where the one before [from, to) ends, and
 * where the one behind it begins; SIZE_MAX: none. */
static void edit__near(const Toml *table, size_t from, size_t to, EditNear *near)
{
    for (size_t i = 0; i < table->count; i++) {
        const Toml *v = &table->items[i];
        if (edit__scattered(v))
            edit__near(v, from, to, near);
        else if (v->end <= from && (near->before == SIZE_MAX || v->end > near->before))
            near->before = v->end;
        else if (v->key_at >= to && v->key_at < near->after)
            near->after = v->key_at;
    }
}

/* Where the last key of this table's own lines ends: its own, and those of the
 * tables that dotted keys in them make. */
static size_t edit__last(const Toml *table, size_t end)
{
    for (size_t i = 0; i < table->count; i++) {
        const Toml *v = &table->items[i];
        if (v->type == TOML_TABLE && v->dotted)
            end = edit__last(v, end);
        else if (!v->header && !edit__scattered(v) && v->end > end)
            end = v->end;
    }
    return end;
}

/* ---- cutting ---- */

/* Of all that v is made of, what stands last: what goes from the back leaves a
 * document behind, where a header without the one it builds on would not. */
static const Toml *edit__latest(const Toml *v)
{
    const Toml *last = edit__scattered(v) ? NULL : v;

    for (size_t i = 0; (v->header || edit__scattered(v)) && i < v->count; i++) {
        const Toml *one = edit__latest(&v->items[i]);
        if (!last || (one->key_at > last->key_at && (one->header || !v->header)))
            last = one;
    }
    return last;
}

/* Without that; `box` is the inline table around it, or NULL. */
static Str edit__cut_one(Str text, const Toml *v, const Toml *box, Arena *a)
{
    v = edit__latest(v);
    if (v->header)
        return edit__splice(text, edit__line_start(text, v->key_at), v->end, STR(""), a);
    if (!box)
        return edit__splice(text, edit__line_start(text, v->key_at), edit__line_end(text, v->end), STR(""), a);
    EditNear near = {SIZE_MAX, SIZE_MAX};
    edit__near(box, v->key_at, v->end, &near);
    if (near.after != SIZE_MAX)
        return edit__splice(text, v->key_at, near.after, STR(""), a);
    return edit__splice(text, near.before != SIZE_MAX ? near.before : v->key_at, v->end, STR(""), a);
}

bool edit_cut(Str text, const EditPath *path, Arena *a, Str *out, Err *err)
{
    Buf  now = buf_make(LIMIT_CONFIG + 1);
    bool ok;

    buf_add(&now, text);
    for (;;) {
        Arena       scratch = *a;       /* anew for each place */
        const Toml *v, *box = NULL;
        ok = edit__parse(now.over ? text : buf_str(&now), &scratch, &v, err);
        for (size_t i = 0; ok && v && i < path->n; i++) {
            if (v->type == TOML_TABLE && v->inlined)
                box = v;
            v = toml_get_str(v, path->part[i]);
        }
        if (!ok || !v)
            break;
        Str next = edit__cut_one(buf_str(&now), v, box, &scratch);
        buf_clear(&now);
        buf_add(&now, next);
    }
    if (ok)
        *out = arena_str(a, buf_str(&now));
    buf_free(&now);
    return ok;
}

/* ---- putting ---- */

Str edit_literal(FieldType type, Str value, Arena *a)
{
    if (type == FIELD_INT || type == FIELD_FLOAT || type == FIELD_BOOL)
        return value;
    Buf b = buf_make(LIMIT_CONFIG);
    buf_addc(&b, '"');
    for (size_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];
        if (c == '"' || c == '\\')
            buf_addf(&b, "\\%c", c);
        else if (c == '\n' || c == '\t' || c == '\r')
            buf_addf(&b, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
        else if (c < 0x20 || c == 0x7f)
            buf_addf(&b, "\\u%04X", c);
        else
            buf_addc(&b, (char)c);
    }
    buf_addc(&b, '"');
    Str out = arena_str(a, buf_str(&b));
    buf_free(&b);
    return out;
}

/* "demo.zone": the parts from `from` on, as far as `to`. */
static Str edit__dotted(const EditPath *path, size_t from, size_t to, Arena *a)
{
    Str all = path->part[from];

    for (size_t i = from + 1; i < to; i++)
        all = arena_fmt(a, "%.*s.%.*s", STR_ARG(all), STR_ARG(path->part[i]));
    return all;
}

static Str edit__join(Arena *a, Str x, Str y, Str z)
{
    return edit__splice(edit__splice(x, x.n, x.n, y, a), x.n + y.n, x.n + y.n, z, a);
}

static Str edit__statement(const EditPath *path, size_t from, Str literal, Arena *a)
{
    return edit__join(a, edit__dotted(path, from, path->n, a), STR(" = "), literal);
}

/* A line of its own at `at`, which is the start of a line, or the end of the text. */
static Str edit__line(Str text, size_t at, Str line, Arena *a)
{
    Str  eol = edit__eol(text);
    bool open = at > 0 && text.p[at - 1] != '\n';

    return edit__splice(text, at, at, edit__join(a, open ? eol : STR(""), line, eol), a);
}

/* A new [table] at the end, with a blank line in front of it. */
static Str edit__table(Str text, const EditPath *path, Str line, Arena *a)
{
    Str    head = edit__join(a, STR("["), edit__dotted(path, 0, path->n - 1, a), STR("]"));
    size_t last = edit__line_start(text, text.n ? text.n - 1 : 0);

    if (str_trim(str_from_to(text, last, text.n)).n > 0) {
        if (text.p[text.n - 1] != '\n')
            text = edit__splice(text, text.n, text.n, edit__eol(text), a);
        text = edit__line(text, text.n, STR(""), a);
    }
    text = edit__line(text, text.n, head, a);
    return edit__line(text, text.n, line, a);
}

/* Where a key that is not there yet can go. */
typedef struct EditParent {
    const Toml *table;          /* the deepest table on the path that is there */
    size_t      depth;          /* how much of the path leads to it */
    const Toml *box;            /* the inline table that it is or is in; NULL: none */
    size_t      box_depth;
    size_t      base;           /* how much of the path leads to the nearest table with lines of its own */
} EditParent;

static bool edit__parent(const Toml *doc, const EditPath *path, EditParent *p, Err *err)
{
    *p = (EditParent){.table = doc};
    while (p->depth + 1 < path->n) {
        const Toml *next = toml_get_str(p->table, path->part[p->depth]);
        if (!next)
            return true;
        if (next->type != TOML_TABLE)
            return err_set(err, ERR_USAGE, E8002, "%.*s is no table there", STR_ARG(path->part[p->depth]));
        p->table = next;
        p->depth++;
        if (next->inlined) {
            p->box = next;
            p->box_depth = p->depth;
        }
        if (next->header)
            p->base = p->depth;
    }
    return true;
}

static Str edit__add(Str text, const EditParent *p, const EditPath *path, Str literal, EditWhere where, Arena *a)
{
    const Toml *t = p->table;

    if (p->box) {
        EditNear near = {SIZE_MAX, SIZE_MAX};
        Str      line = edit__statement(path, p->box_depth, literal, a);
        edit__near(p->box, p->box->end, p->box->end, &near);
        if (near.before != SIZE_MAX)
            return edit__splice(text, near.before, near.before, edit__join(a, STR(", "), line, STR("")), a);
        return edit__splice(text, p->box->at, p->box->end, edit__join(a, STR("{ "), line, STR(" }")), a);
    }
    if (p->depth + 1 < path->n || !(t->header || t->dotted))
        return edit__table(text, path, edit__statement(path, path->n - 1, literal, a), a);
    Str    line = edit__statement(path, t->header ? path->n - 1 : p->base, literal, a);
    size_t at = t->header && where == EDIT_AS_HOSTS ? t->end : edit__last(t, t->header ? t->at : 0);
    if (at != t->end && at != t->at)
        at = edit__line_end(text, at);
    return edit__line(text, at, line, a);
}

bool edit_put(Str text, const EditPath *path, Str literal, EditWhere where, Arena *a, Str *out, Err *err)
{
    const Toml *doc, *old;
    EditParent  p;

    if (!edit__parse(text, a, &doc, err) || !edit__parent(doc, path, &p, err))
        return false;
    Str key = path->part[path->n - 1];
    old = p.depth + 1 == path->n ? toml_get_str(p.table, key) : NULL;
    if (old && (old->header || edit__scattered(old)))
        return err_set(err, ERR_USAGE, E8002, "%.*s is a table there", STR_ARG(key));
    if (!old) {
        *out = edit__add(text, &p, path, literal, where, a);
    } else if (where == EDIT_AS_HOSTS && p.table->header) {
        size_t end = edit__line_end(text, old->end);
        *out = edit__splice(text, edit__line_start(text, old->key_at), end, STR(""), a);
        *out = edit__line(*out, edit__line_start(text, old->key_at), edit__statement(path, path->n - 1, literal, a), a);
    } else {
        *out = edit__splice(text, old->at, old->end, literal, a);
    }
    if (edit__parse(*out, a, &doc, err))
        return true;
    return err_set(err, ERR_USAGE, E8002, "%.*s cannot be added to what is there", STR_ARG(key));
}
