#include "base/flow.h"

static bool flow__str_read(void *ctx, char *p, size_t cap, size_t *n, Err *err)
{
    Str *view = ctx;

    (void)err;
    *n = view->n < cap ? view->n : cap;
    if (*n)
        memcpy(p, view->p, *n);
    str_skip(view, *n);
    return true;
}

Source flow_from_str(Str *view)
{
    return (Source){.read = flow__str_read, .ctx = view, .size = (int64_t)view->n};
}
