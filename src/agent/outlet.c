#include "agent/outlet.h"

#include "base/str.h"
#include "data/clean.h"
#include "os/nowait.h"
#include "os/poll.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { OUTLET_LINES = 64 << 10 };

Outlet outlet_make(void)
{
    return (Outlet){.lines = buf_make(2 * OUTLET_LINES), .stop_fd = -1};
}

void outlet_free(Outlet *o)
{
    buf_free(&o->lines);
}

bool outlet_words(int argc, char **argv, const char *letters, int least, int most, Err *err)
{
    if (argc >= least && argc <= most && argv[0][0] == '-' && strspn(argv[0] + 1, letters) == strlen(argv[0] + 1))
        return true;
    return err_set(err, ERR_USAGE, E8002, "the options are -[%s], and the words %d or more", letters, least);
}

bool outlet_write(const Outlet *o, Str bytes, Err *err)
{
    ssize_t n;

    while (bytes.n) {
        /* What cannot be stopped may wait in the kernel: that is faster. */
        if (o->stop_fd >= 0 && !poll_one(STDOUT_FILENO, POLLOUT, o->stop_fd, DEADLINE_NONE, err))
            return false;
        n = o->stop_fd < 0 ? write(STDOUT_FILENO, bytes.p, bytes.n) : nowait_write(STDOUT_FILENO, bytes.p, bytes.n);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return err_sys(err, errno, E0000, "cannot write to standard output");
        str_skip(&bytes, n > 0 ? (size_t)n : 0);
    }
    return true;
}

bool outlet_flush(Outlet *o, Err *err)
{
    if (!outlet_write(o, buf_str(&o->lines), err))
        return false;
    buf_clear(&o->lines);
    return true;
}

void outlet_item(void *ctx, const Item *i)
{
    Outlet *o = ctx;
    ABX_UNSET Err err;

    if (o->lines.n < OUTLET_LINES || outlet_flush(o, &err))
        item_put(&o->lines, i);
}

bool outlet_lines(void *ctx, Str lines, Err *err)
{
    Outlet *o = ctx;

    if (o->lines.n + lines.n > OUTLET_LINES && !outlet_flush(o, err))
        return false;
    if (lines.n > OUTLET_LINES)
        return outlet_write(o, lines, err);
    buf_add(&o->lines, lines);
    return true;
}

int outlet_fail(const Err *err)
{
    Arena a = arena_make(OUTLET_LINES);
    ABX_UNSET char name[6];

    code_name(err->code, name);
    fprintf(stderr, "%s %s\n", name, clean_message(str_from(err->text), NULL, 0, &a).p);
    arena_free(&a);
    return 1;
}
