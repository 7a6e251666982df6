#include "abx.h"

#include "api/errand.h"
#include "api/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "sync/item.h"

enum { WATCH_SCRATCH = 64 << 10 };

struct abx_watch {
    Errand     run;
    ItemReader lines;
    Str        rest;            /* of what came last */
    Arena      path;            /* of the last event */
};

abx_watch *abx_watch_start(abx_sandbox *b, const char *path, int deep, abx_error *e)
{
    abx_watch *w = mem_new(sizeof *w);
    ABX_UNSET Err err;

    *w = (abx_watch){.lines = item_reader(), .path = arena_make(WATCH_SCRATCH)};
    if (errand_start(b, FRAME_WATCH, (Str[]){deep ? STR("-d") : STR("-"), str_from(path)}, 2, (Str){0}, false, &w->run, &err) ==
        CARRY_DONE)
        return w;
    error_give(e, &err);
    abx_watch_close(w);
    return NULL;
}

void abx_watch_close(abx_watch *w)
{
    if (!w)
        return;
    errand_close(&w->run);
    item_reader_free(&w->lines);
    arena_free(&w->path);
    mem_free(w);
}

/* False: E8020, the agent has no reason to say this. */
static bool watch__event(abx_watch *w, const Item *i, abx_watch_event *ev, Err *err)
{
    static const struct { ItemKind item; abx_change change; } changes[] = {
        {ITEM_CREATED, ABX_CREATED}, {ITEM_CHANGED, ABX_CHANGED}, {ITEM_REMOVED, ABX_REMOVED}, {ITEM_LOST, ABX_LOST_TRACK},
        {ITEM_READY, ABX_WATCHING},
    };

    arena_reset(&w->path);
    for (size_t k = 0; k < COUNT_OF(changes); k++)
        if (changes[k].item == i->kind) {
            *ev = (abx_watch_event){changes[k].change, arena_cstr(&w->path, i->path)};
            return true;
        }
    return err_set(err, ERR_INPUT, E8020, "what the agent says of changes is none");
}

/* STEP_DONE: an event. STEP_MORE: wait. */
static Step watch__next(abx_watch *w, abx_watch_event *ev, Err *err)
{
    Item i;
    Step step;

    for (;;) {
        if ((step = item_next(&w->lines, &w->rest, &i, err)) != STEP_MORE)
            return step == STEP_DONE && watch__event(w, &i, ev, err) ? STEP_DONE : STEP_ERR;
        if ((step = errand_next(&w->run, &w->rest, err)) != STEP_DONE)
            break;
    }
    if (step == STEP_MORE && w->run.over) {
        err_set(err, ERR_CLOSED, E5000, "the agent in the sandbox watches no more");
        return STEP_ERR;
    }
    return step;
}

int abx_watch_next(abx_watch *w, int wait, abx_watch_event *ev, abx_error *e)
{
    Errand *one = &w->run;
    ABX_UNSET Err err;
    Step    step;

    while ((step = watch__next(w, ev, &err)) == STEP_MORE && wait)
        if (!errand_wait(&one, 1, false, &err))
            return error_give(e, &err);
    return step == STEP_ERR ? error_give(e, &err) : step;
}
