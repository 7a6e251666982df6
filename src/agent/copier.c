#include "agent/copier.h"

#include "agent/outlet.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/poll.h"
#include "os/signal.h"
#include "sync/have.h"
#include "sync/receiver.h"
#include "sync/sender.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    COPIER_BLOCK = 256 << 10,           /* what the keeper makes of the pipe to it */
    COPIER_ARENA = 4 * LIMIT_SYNC_NAMES,    /* the paths that one pattern more makes, copied twice */
};

static char copier__block[COPIER_BLOCK];

static bool copier__option(char **argv, char letter)
{
    return strchr(argv[0], letter) != NULL;
}

/* What is on standard input now; the empty Str: its end. */
static bool copier__read(int stop_fd, Str *in, Err *err)
{
    ssize_t n;

    do {
        if (!poll_one(STDIN_FILENO, POLLIN, stop_fd, DEADLINE_NONE, err))
            return false;
        n = read(STDIN_FILENO, copier__block, sizeof copier__block);
    } while (n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n < 0)
        return err_sys(err, errno, E0000, "cannot read standard input");
    *in = (Str){copier__block, (size_t)n};
    return true;
}

/* --- in --- */

static bool copier__receive(Receiver *r, Outlet *o, Err *err)
{
    Str in;

    do {
        /* The lines about what came so far go out before more is waited for. */
        if (!outlet_flush(o, err) || !copier__read(o->stop_fd, &in, err))
            return false;
        if (in.n && !receiver_feed(r, in, err))
            return false;
    } while (in.n);
    return receiver_end(r, err);
}

int copier_in(int argc, char **argv)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
    Outlet o = outlet_make();
    ABX_UNSET Err err, other;

    signal_ignore_writes();
    if (!outlet_words(argc, argv, "sr", 2, 2, &err) || !signal_catch(signals, COUNT_OF(signals), &o.stop_fd, &err))
        return outlet_fail(&err);
    Receiver *r = receiver_open(&(ReceiverRequest){.target = argv[1], .several = copier__option(argv, 's'),
                                                   .resume = copier__option(argv, 'r'), .item = outlet_item, .ctx = &o});
    bool ok = copier__receive(r, &o, &err);
    receiver_close(r);
    if (!outlet_flush(&o, &other) && ok) {
        ok = false;
        err = other;
    }
    outlet_free(&o);
    int number = signal_next();
    if (number) {                       /* what is not whole is gone: now end as it asks for */
        signal(number, SIG_DFL);
        raise(number);
    }
    return ok ? 0 : outlet_fail(&err);
}

/* --- out --- */

typedef struct CopierRoots {
    WalkRoot *v;
    size_t    n;
    Have     *names;            /* each comes once, but what is in a folder may go into one with that of others */
} CopierRoots;

static bool copier__root(CopierRoots *roots, const char *path, Err *err)
{
    Item is = {.kind = ITEM_HAVE}, was;

    if (!walk_name(str_from(path), &is.path, err))
        return false;
    if (have_find(roots->names, ITEM_HAVE, is.path, &was))
        return err_set(err, ERR_USAGE, E8002, "two of what is to be copied are called %.*s", STR_ARG(is.path));
    roots->v[roots->n++] = (WalkRoot){path, is.path};
    return str_eq(is.path, STR(".")) || have_add(roots->names, &is, err);
}

static bool copier__roots(CopierRoots *roots, int argc, char **argv, Arena *a, Err *err)
{
    const char **paths;
    size_t       n;
    ABX_UNSET struct stat st;

    for (int i = 1; i < argc; i++) {
        if (a->used > LIMIT_SYNC_NAMES)
            return err_set(err, ERR_LIMIT, E4003, "too many files match");
        if (!walk_expand(str_from(argv[i]), a, &paths, &n, err))
            return false;
        roots->v = mem_grow(roots->v, roots->n + n, sizeof *roots->v);
        for (size_t k = 0; k < n; k++)
            if (!copier__root(roots, paths[k], err))
                return false;
    }
    /* Of several one that is not there fails alone. */
    if (roots->n == 1 && lstat(roots->v[0].path, &st) != 0 && (errno == ENOENT || errno == ENOTDIR))
        return err_set(err, ERR_NOT_FOUND, E4001, "there is no %s", roots->v[0].path);
    return true;
}

/* STEP_DONE: the list is whole. */
static Step copier__listed(ItemReader *r, Str in, Have *have, Err *err)
{
    Item i;
    Step step;

    while ((step = item_next(r, &in, &i, err)) == STEP_DONE && i.kind != ITEM_END) {
        if (i.kind != ITEM_HAVE && i.kind != ITEM_PART) {
            err_set(err, ERR_INPUT, E8020, "the list of what is there already says something else");
            return STEP_ERR;
        }
        if (!have_add(have, &i, err))
            return STEP_ERR;
    }
    return step;
}

static bool copier__have(Have *have, Err *err)
{
    ItemReader r = item_reader();
    Step       step = STEP_MORE;
    Str        in;

    while (step == STEP_MORE) {
        bool ok = copier__read(-1, &in, err);
        if (ok && !in.n)
            ok = err_set(err, ERR_INPUT, E8020, "the list of what is there already was cut");
        step = ok ? copier__listed(&r, in, have, err) : STEP_ERR;
    }
    item_reader_free(&r);
    return step == STEP_DONE;
}

static bool copier__send(const SenderRequest *rq, Err *err)
{
    Outlet  o = outlet_make();
    Sender *s = sender_open(rq);
    size_t  n = 1;
    bool    ok = true;

    while (ok && n)
        ok = sender_read(s, copier__block, sizeof copier__block, &n, err) &&
             outlet_write(&o, (Str){copier__block, n}, err);
    sender_close(s);
    return ok;
}

int copier_out(int argc, char **argv)
{
    Arena       a = arena_make(COPIER_ARENA);
    Have       *have = NULL;
    CopierRoots roots = {.names = have_make()};
    ABX_UNSET Err err;

    bool ok = outlet_words(argc, argv, "th", 2, INT32_MAX, &err) && copier__roots(&roots, argc, argv, &a, &err);
    if (ok && copier__option(argv, 'h')) {
        have = have_make();
        ok = copier__have(have, &err);
    }
    ok = ok && copier__send(&(SenderRequest){.roots = roots.v, .count = roots.n, .have = have,
                                             .total = copier__option(argv, 't')}, &err);
    have_free(have);
    have_free(roots.names);
    mem_free(roots.v);
    arena_free(&a);
    return ok ? 0 : outlet_fail(&err);
}

/* --- hashes --- */

int copier_hash(int argc, char **argv)
{
    Outlet o = outlet_make();
    ABX_UNSET Err err;

    bool ok = outlet_words(argc, argv, "p", 3, 3, &err) &&
              have_list(argv[2], str_from(argv[1]), copier__option(argv, 'p'), (Sink){outlet_lines, &o}, &err) &&
              outlet_flush(&o, &err);
    outlet_free(&o);
    return ok ? 0 : outlet_fail(&err);
}
