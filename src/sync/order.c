#include "sync/order.h"

#include "base/limits.h"
#include "base/str.h"
#include "data/clean.h"

enum { ORDER_SHOWN = 4096 };    /* what clean_path() takes */

Order order_make(bool several)
{
    return (Order){.last = buf_make(LIMIT_SYNC_PATH), .several = several, .roots = several ? have_make() : NULL};
}

void order_free(Order *o)
{
    buf_free(&o->last);
    have_free(o->roots);
}

bool order_refuse(Err *err, Str path, const char *what)
{
    ABX_UNSET char room[ORDER_SHOWN];
    Arena a = {.p = room, .size = sizeof room};
    Str   shown = clean_path(path, &a);

    return err_set(err, ERR_INPUT, E8020, "the sender of the copy is not to be trusted: %.*s: %s", STR_ARG(shown), what);
}

Str order_name(Str path)
{
    const char *slash = path.n ? memrchr(path.p, '/', path.n) : NULL;

    return slash ? str_from_to(path, (size_t)(slash - path.p) + 1, path.n) : path;
}

/* How many parts a path has; 0: it is none that may come. */
static size_t order__parts(Str path)
{
    size_t n = 0;
    Str    part;

    if (path.n > LIMIT_SYNC_PATH || str_has(path, '\0'))
        return 0;
    for (Str rest = path; str_cut(&rest, '/', &part); n++)
        if (part.n == 0 || str_eq(part, STR("..")) || (n > 0 && str_eq(part, STR("."))))
            return 0;
    return n;
}

static bool order__root(Order *o, Str path, Err *err)
{
    Item is = {.kind = ITEM_HAVE, .path = path}, was;

    if (str_has(path, '/'))
        return order_refuse(err, path, "its folder did not come");
    if (o->last.n && !o->several)
        return order_refuse(err, path, "one thing was to come, and this is a second one");
    if (!o->several || str_eq(path, STR(".")))      /* what is in several folders may come, all of it into one */
        return true;
    if (have_find(o->roots, ITEM_HAVE, path, &was))
        return order_refuse(err, path, "it came before");
    return have_add(o->roots, &is, err);
}

bool order_next(Order *o, Str path, size_t *depth, Err *err)
{
    Str    last = buf_str(&o->last), now, then;
    size_t same = 0, from;

    *depth = order__parts(path);
    if (*depth == 0)
        return order_refuse(err, path, "no name of this form can be in a copy");
    while (same < path.n && same < last.n && path.p[same] == last.p[same])
        same++;
    if (same && same == last.n && same < path.n && path.p[same] == '/') {   /* below what came last */
        if (!o->folder)
            return order_refuse(err, path, "what it is in did not come as a folder");
        from = same + 1;
    } else {
        for (from = same; from && path.p[from - 1] != '/'; from--) {}
        if (from == 0)
            return order__root(o, path, err);
    }
    now = str_from_to(path, from, path.n);
    then = str_from_to(last, from < last.n ? from : last.n, last.n);
    then.n = str_find(then, '/');
    if (str_has(now, '/'))
        return order_refuse(err, path, "its folder did not come");
    return str_order(now, then) > 0 || order_refuse(err, path, "it is out of order, or came before");
}

void order_took(Order *o, Str path, bool folder)
{
    buf_clear(&o->last);
    buf_add(&o->last, path);
    o->folder = folder;
}

bool order_inside(const Order *o, Str path)
{
    Str last = buf_str(&o->last);

    return path.n && (str_eq(path, last) ? o->folder : str_starts(last, path) && last.p[path.n] == '/');
}
