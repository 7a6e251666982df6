#include "api/copy.h"

#include "api/errand.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/clean.h"
#include "data/glob.h"
#include "data/tar.h"
#include "sync/have.h"
#include "sync/receiver.h"
#include "sync/sender.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

enum {
    COPY_STREAM_TURN = 16,              /* events of one side before the other is looked at */
    COPY_STREAM_LASTING = 1 << 20,      /* a flush for each small file costs more than all of them */
    COPY_STREAM_HOLD = 256 << 10,       /* what waits for the receiver before the sender is held back */
};

/* Bytes that wait to be written: behind `at`. */
typedef struct CopyQueue { Buf bytes; size_t at; } CopyQueue;

typedef struct CopyStream {
    Copy      *c;
    Errand     from, to;        /* x NULL: that end is on this machine */
    Sender    *sender;
    Receiver  *receiver;
    TarReader *tap;             /* of what goes to a sandbox, to know what is to arrive there */
    bool       all;             /* its own end was seen */
    CopyQueue  stream;          /* for `to` */
    bool       read, given;     /* all of it was read, and written */
    ItemReader lines;           /* what `to` says */
    CopyQueue  due;             /* what it has yet to say, as such lines */
    char       refused[LIMIT_SYNC_PATH + 1];    /* it said of this that it cannot be, and nothing of what is below */
    uint32_t   files;           /* that it has, by what it said, */
    int64_t    bytes;
    bool       ended;           /* and that this is all */
    Have      *have;            /* resume: what the receiver has, for a sender here, */
    CopyQueue  had;             /* or for one there */
} CopyStream;

/* ---- what is to arrive, and what did ---- */

static void copy_stream__put(const CopyStream *s, Buf *to, ItemKind kind, const Item *i)
{
    Item due = {.kind = kind, .path = i->path};

    if (kind != ITEM_FAILED) {
        due.hashed = s->c->verify && i->hashed;
        due.size = i->size;
        memcpy(due.sha256, i->sha256, SHA256_SIZE);
    }
    item_put(to, &due);
}

/* What the sender says of its files. */
static void copy_stream__sent(CopyStream *s, const Item *i)
{
    switch ((int)i->kind) {
    case ITEM_TOTAL:
        s->c->total = i->size;
        s->c->total_files = i->number;
        break;
    case ITEM_FAILED:
        copy_failed(s->c, i->path, copy_reason((int)i->number));
        copy_stream__put(s, &s->due.bytes, ITEM_FAILED, i);
        break;
    case ITEM_HASH:
        copy_stream__put(s, &s->due.bytes, ITEM_DONE, i);
        break;
    case ITEM_KEPT:
        copy_stream__put(s, &s->due.bytes, ITEM_KEPT, i);
        break;
    case ITEM_FROM:
        s->c->moved += i->size;
        break;
    case ITEM_END:
        s->all = true;
        break;
    default:
        break;
    }
}

static void copy_stream__moved(void *ctx, int64_t bytes)
{
    copy_moved(((CopyStream *)ctx)->c, bytes);
}

/* Of the next line that is due. */
static Str copy_stream__due(const CopyStream *s, Str *path)
{
    Str rest = {s->due.bytes.p + s->due.at, s->due.bytes.n - s->due.at}, line, word;

    *path = (Str){0};
    if (!rest.n || !str_cut(&rest, '\0', &line))
        return (Str){0};
    *path = line;
    for (int i = 0; i < 4; i++)
        (void)str_cut(path, ' ', &word);
    return (Str){line.p, line.n + 1};
}

static void copy_stream__pop(CopyStream *s, Str line)
{
    s->due.at += line.n;
    if (s->due.at < s->due.bytes.n / 2)
        return;
    buf_drop(&s->due.bytes, s->due.at);
    s->due.at = 0;
}

/* Of what was refused, and of all that is below, nothing is said any more. */
static void copy_stream__pass(CopyStream *s)
{
    Str refused = str_from(s->refused), path, line;

    while (refused.n && (line = copy_stream__due(s, &path)).n && str_starts(path, refused) &&
           (path.n == refused.n || path.p[refused.n] == '/'))
        copy_stream__pop(s, line);
}

static bool copy_stream__lie(Err *err, Str path, const char *what)
{
    ABX_UNSET char room[4096 + 64];
    Arena a = {.p = room, .size = sizeof room};

    return err_set(err, ERR_INPUT, E8020, "the sandbox is not to be trusted with this copy: %s%s%.*s", what, path.n ? ": " : "",
                   STR_ARG(clean_path(path, &a)));
}

/* A line that says what became of one entry. */
static bool copy_stream__arrived(CopyStream *s, const Item *i, Err *err)
{
    Buf one = buf_make(ITEM_WORDS + LIMIT_SYNC_PATH + 1);
    Str path, due;

    copy_stream__pass(s);
    due = copy_stream__due(s, &path);
    copy_stream__put(s, &one, i->kind, i);
    bool same = str_eq(buf_str(&one), due), here = due.n && str_eq(path, i->path), file = i->hashed || i->kind == ITEM_KEPT;
    buf_free(&one);
    if (i->kind == ITEM_FAILED) {
        if (!same)
            copy_failed(s->c, i->path, copy_reason((int)i->number));
        snprintf(s->refused, sizeof s->refused, "%.*s", (int)i->path.n, i->path.p);
    } else if (!same) {
        return copy_stream__lie(err, i->path, here ? "it has another content than what was sent"
                                                   : "it has what was not sent, or not then");
    } else {
        copy_done(s->c, i->kind == ITEM_DONE ? ABX_COPY_DONE : ABX_COPY_SAME, i->path, file ? i->size : -1,
                  i->hashed ? i->sha256 : NULL);
        s->files += file && i->kind == ITEM_DONE;
        s->bytes += file && i->kind == ITEM_DONE ? i->size : 0;
    }
    if (here)
        copy_stream__pop(s, due);
    return true;
}

/* What the receiver in the sandbox says. */
static bool copy_stream__lines(CopyStream *s, Str bytes, Err *err)
{
    Item i;
    Step step;

    while ((step = item_next(&s->lines, &bytes, &i, err)) == STEP_DONE) {
        if (s->ended)
            return copy_stream__lie(err, i.path, "it goes on behind its end");
        switch ((int)i.kind) {
        case ITEM_DONE:
        case ITEM_KEPT:
        case ITEM_FAILED:
            if (!copy_stream__arrived(s, &i, err))
                return false;
            break;
        case ITEM_TOTAL:
            break;
        case ITEM_END:
            s->ended = true;
            if (i.number != s->files || (!s->c->o->resume && i.size != s->bytes))
                return copy_stream__lie(err, (Str){0}, "what it has does not add up");
            break;
        default:
            return copy_stream__lie(err, i.path, "it says what no receiver says");
        }
    }
    return step != STEP_ERR;
}

/* What the receiver here says. */
static void copy_stream__here(void *ctx, const Item *i)
{
    CopyStream *s = ctx;

    if (i->kind == ITEM_TOTAL)
        copy_stream__sent(s, i);
    else
        copy_item(s->c, i, (Str){0});
}

/* The sandbox may send what was asked for, and nothing else. */
static bool copy_stream__root(void *ctx, Str name)
{
    const Copy *c = ((CopyStream *)ctx)->c;

    for (size_t i = 0; i < c->o->path_count; i++)
        if (str_eq(c->roots[i].name, name) || (c->several && glob_name(c->roots[i].name, name)))
            return true;
    return false;
}

/* What goes to a sandbox is looked at on its way. */
static bool copy_stream__look(CopyStream *s, Str bytes, Err *err)
{
    ABX_UNSET TarEvent ev;
    Item     i;
    Step     step;

    while ((step = tar_next(s->tap, &bytes, &ev, err)) == STEP_DONE) {
        if (ev.kind == TAR_BYTES)
            copy_moved(s->c, (int64_t)ev.bytes.n);
        if (ev.kind != TAR_ENTRY || ev.type == TAR_FILE)
            continue;
        i = (Item){.kind = ITEM_HASH};      /* of a folder or a link there is none */
        if (ev.type == TAR_RECORD && !item_parse(ev.target, &i))
            return copy_stream__lie(err, ev.name, "it sends a record that is none");
        i.path = ev.name;
        copy_stream__sent(s, &i);
    }
    if (step == STEP_MORE)
        return true;
    err->kind = ERR_INPUT;
    err->code = E8020;
    return err_wrap(err, "the stream of the copy");
}

/* ---- going on with an interrupted copy ---- */

/* One line of what the receiver has. */
static bool copy_stream__has(CopyStream *s, const Item *i, Err *err)
{
    if (s->have)
        return have_add(s->have, i, err);
    item_put(&s->had.bytes, i);
    return !s->had.bytes.over || err_set(err, ERR_LIMIT, E4003, "the target has more files than can be compared");
}

typedef struct CopyHad { CopyStream *s; bool end; } CopyHad;

static bool copy_stream__had(void *ctx, Str bytes, Err *err)
{
    CopyHad *h = ctx;
    Item     i;
    Step     step;

    while ((step = item_next(&h->s->lines, &bytes, &i, err)) == STEP_DONE) {
        if (h->end || (i.kind != ITEM_HAVE && i.kind != ITEM_PART && i.kind != ITEM_END))
            return copy_stream__lie(err, i.path, "it has what nobody asked for");
        h->end = i.kind == ITEM_END;
        if (!h->end && !copy_stream__has(h->s, &i, err))
            return false;
    }
    return step != STEP_ERR;
}

/* The same of a target in a sandbox. */
static CarryResult copy_stream__ask(CopyStream *s, Str name, Str target, Err *err)
{
    const abx_copy_options *o = s->c->o;
    Errand     *one = &s->to;
    CopyHad     had = {.s = s};
    Str         bytes;
    Step        step = STEP_MORE;
    CarryResult r = errand_start(o->to, FRAME_HASH, (Str[]){STR("-p"), name, target}, 3, str_from(o->user), false,
                                 one, err);
    bool ok = r == CARRY_DONE;

    while (ok && (step = errand_next(one, &bytes, err)) != STEP_ERR && (step == STEP_DONE || !one->over))
        ok = step == STEP_DONE ? copy_stream__had(&had, bytes, err) : errand_wait(&one, 1, false, err);
    ok = ok && step != STEP_ERR && (had.end || copy_stream__lie(err, (Str){0}, "its list of files was cut"));
    errand_close(one);
    return ok ? CARRY_DONE : r == CARRY_CANNOT ? r : CARRY_FAILED;
}

static CarryResult copy_stream__resume(CopyStream *s, Err *err)
{
    Copy       *c = s->c;
    CarryResult r = CARRY_DONE;
    Str         target = arena_fmt(&c->a, "%s%s", c->o->target, c->several ? "/" : "");     /* as have_list() wants it */

    if (!c->o->from)
        s->have = have_make();
    else
        s->had.bytes = buf_make(LIMIT_COPY_HAD);
    for (size_t i = 0; r == CARRY_DONE && i < c->o->path_count; i++) {
        CopyHad had = {.s = s};
        Str     name = c->roots[i].name;
        if (c->o->to)
            r = copy_stream__ask(s, name, target, err);
        else if (!have_list(target.p, name, true, (Sink){copy_stream__had, &had}, err))
            r = CARRY_FAILED;
    }
    if (s->had.bytes.limit)
        item_put(&s->had.bytes, &(Item){.kind = ITEM_END});
    return r;
}

/* ---- the stream ---- */

static CarryResult copy_stream__send(CopyStream *s, Err *err)
{
    const abx_copy_options *o = s->c->o;
    Str   *words = arena_array(&s->c->a, o->path_count + 1, sizeof *words);
    size_t n = 0;

    if (!o->from) {
        s->sender = sender_open(&(SenderRequest){.roots = s->c->roots, .count = o->path_count, .have = s->have,
                                                 .total = o->event != NULL});
        return CARRY_DONE;
    }
    words[n++] = arena_fmt(&s->c->a, "-%s%s", o->event ? "t" : "", o->resume ? "h" : "");
    for (size_t i = 0; i < o->path_count; i++)
        words[n++] = str_from(o->paths[i]);
    return errand_start(o->from, FRAME_TAR_OUT, words, n, str_from(o->user), o->resume != 0, &s->from, err);
}

static CarryResult copy_stream__receive(CopyStream *s, Err *err)
{
    const abx_copy_options *o = s->c->o;

    if (!o->to) {
        s->receiver = receiver_open(&(ReceiverRequest){.target = o->target, .several = s->c->several, .resume = o->resume != 0,
                                                       .lasting = COPY_STREAM_LASTING, .root = copy_stream__root,
                                                       .item = copy_stream__here, .moved = copy_stream__moved, .ctx = s});
        return CARRY_DONE;
    }
    Str words[] = {arena_fmt(&s->c->a, "-%s%s", s->c->several ? "s" : "", o->resume ? "r" : ""), str_from(o->target)};
    s->tap = tar_open_copy();
    s->due.bytes = buf_make(LIMIT_COPY_DUE);
    s->stream.bytes = buf_make(LIMIT_COPY_BETWEEN);
    return errand_start(o->to, FRAME_TAR_IN, words, 2, str_from(o->user), true, &s->to, err);
}

/* As much as there is room for. */
static bool copy_stream__push(Errand *e, CopyQueue *q, bool *busy, Err *err)
{
    size_t n = 1;

    while (q->at < q->bytes.n && n && !e->over) {
        if (!e->x->ops->write(e->x, str_from_to(buf_str(&q->bytes), q->at, q->bytes.n), &n, err))
            return false;
        q->at += n;
        *busy |= n > 0;
    }
    if (q->at >= q->bytes.n / 2) {
        buf_drop(&q->bytes, q->at);
        q->at = 0;
    }
    return true;
}

/* What the sandbox sends. */
static bool copy_stream__from(CopyStream *s, bool *busy, Err *err)
{
    const ExecOps *ops = s->from.x->ops;
    Str  bytes;
    Step step = STEP_MORE;

    if (s->to.x && ops->hold && !s->from.over)
        ops->hold(s->from.x, s->stream.bytes.n - s->stream.at > COPY_STREAM_HOLD);
    for (int i = 0; i < COPY_STREAM_TURN && (step = errand_next(&s->from, &bytes, err)) == STEP_DONE; i++) {
        *busy = true;
        if (!s->to.x ? !receiver_feed(s->receiver, bytes, err) : !copy_stream__look(s, bytes, err))
            return false;
        if (s->to.x)
            buf_add(&s->stream.bytes, bytes);
    }
    if (s->stream.bytes.over)
        return copy_stream__lie(err, (Str){0}, "it sends more than it was given room for");
    s->read = s->from.over;
    return step != STEP_ERR && (!s->had.bytes.n || copy_stream__push(&s->from, &s->had, busy, err));
}

static bool copy_stream__to(CopyStream *s, bool *busy, Err *err)
{
    Str    bytes;
    Step   step = STEP_MORE;
    size_t n;

    for (int i = 0; i < COPY_STREAM_TURN && (step = errand_next(&s->to, &bytes, err)) == STEP_DONE; i++) {
        *busy = true;
        if (!copy_stream__lines(s, bytes, err))
            return false;
    }
    if (step == STEP_ERR)
        return false;
    if (s->sender && !s->read && !s->stream.bytes.n) {
        if (!sender_read(s->sender, buf_room(&s->stream.bytes, COPY_STREAM_HOLD), COPY_STREAM_HOLD, &n, err))
            return false;
        if (!copy_stream__look(s, (Str){s->stream.bytes.p, n}, err))
            return false;
        buf_grew(&s->stream.bytes, n);
        s->read = n == 0;
    }
    if (!copy_stream__push(&s->to, &s->stream, busy, err))
        return false;
    if (s->read && !s->stream.bytes.n && !s->given && !s->to.over) {
        s->given = *busy = true;
        return s->to.x->ops->end_input(s->to.x, err);
    }
    return !s->due.bytes.over || copy_stream__lie(err, (Str){0}, "it does not say what became of what it was sent");
}

/* All that was sent is there, or was said not to be. */
static bool copy_stream__whole(CopyStream *s, Err *err)
{
    Str path;

    if (!s->to.x)
        return receiver_end(s->receiver, err);
    copy_stream__pass(s);
    return (s->given && s->all && s->ended && !copy_stream__due(s, &path).n) ||
           copy_stream__lie(err, (Str){0}, "it ended before all that was sent was there");
}

static bool copy_stream__run(CopyStream *s, Err *err)
{
    Errand *v[2];
    size_t  n = 0;

    if (s->from.x)
        v[n++] = &s->from;
    if (s->to.x)
        v[n++] = &s->to;
    for (;;) {
        bool busy = false;
        if ((s->from.x && !copy_stream__from(s, &busy, err)) || (s->to.x && !copy_stream__to(s, &busy, err)))
            return false;
        if (s->to.x ? s->to.over : s->from.over)
            return copy_stream__whole(s, err);
        if (!errand_wait(v, n, busy, err))
            return false;
    }
}

CarryResult copy_stream_all(Copy *c, Err *err)
{
    CopyStream *s = mem_new(sizeof *s);

    s->c = c;
    s->lines = item_reader();
    CarryResult r = c->o->resume ? copy_stream__resume(s, err) : CARRY_DONE;
    if (r == CARRY_DONE)
        r = copy_stream__send(s, err);
    if (r == CARRY_DONE)
        r = copy_stream__receive(s, err);
    if (r == CARRY_DONE && !copy_stream__run(s, err))
        r = CARRY_FAILED;
    errand_close(&s->from);
    errand_close(&s->to);
    receiver_close(s->receiver);
    sender_close(s->sender);
    tar_close(s->tap);
    have_free(s->have);
    item_reader_free(&s->lines);
    buf_free(&s->due.bytes);
    buf_free(&s->had.bytes);
    buf_free(&s->stream.bytes);
    mem_free(s);
    return r;
}
