#include "sync/receiver.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/clean.h"
#include "data/tar.h"
#include "sync/draft.h"
#include "sync/nest.h"
#include "sync/order.h"
#include "sync/target.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECEIVER_SHOWN = 4096 };     /* what clean_path() takes */

typedef enum ReceiverState {
    RECEIVER_ENTRY,             /* the next entry is to come */
    RECEIVER_CONTENT,           /* a file's content, up to its hash */
    RECEIVER_ENDED,             /* all that was sent came */
    RECEIVER_OVER,              /* nothing more is taken */
} ReceiverState;

struct Receiver {
    ReceiverRequest rq;
    ReceiverState   state;
    Order           order;
    Target          target;     /* once the first root came */
    Nest            open;       /* the path of the innermost one has as many parts */
    size_t          passed;     /* parts of a folder that cannot be entered: what is in it is passed over; 0: none */
    TarReader      *tar;        /* NULL: no stream came */
    bool            began;      /* the stream's total, or anything behind it, came */
    bool            announced;  /* FROM or SPARSE came, and the file did not */
    bool            sparse;
    int64_t         from;
    Draft           draft;      /* RECEIVER_CONTENT */
    bool            silent;     /* it is in a folder that is passed over */
    int             sys;        /* why the file cannot be; 0 */
    unsigned        mode;
    int64_t         size;       /* what its content was to be; -1 */
    int64_t         came;
    char            name[NAME_MAX + 1];
    uint32_t        files;
    int64_t         bytes;
};

/* Where an entry goes. */
typedef struct ReceiverPlace {
    int    folder;              /* and r->name in it */
    int    sys;                 /* it cannot be there */
    bool   passed;              /* nothing is done or said */
    size_t depth;
} ReceiverPlace;

Receiver *receiver_open(const ReceiverRequest *rq)
{
    Receiver *r = mem_new(sizeof *r);

    r->rq = *rq;
    r->order = order_make(rq->several);
    r->target.fd = r->draft.fd = -1;
    return r;
}

/* ---- what is said ---- */

static void receiver__say(const Receiver *r, const Item *i)
{
    if (r->rq.item)
        r->rq.item(r->rq.ctx, i);
}

static bool receiver__done(const Receiver *r, Str path)
{
    receiver__say(r, &(Item){.kind = ITEM_DONE, .path = path});
    return true;
}

/* No other entry could be, either. */
static bool receiver__fatal(int sys)
{
    return sys == ENOSPC || sys == EDQUOT || sys == EMFILE || sys == ENFILE || sys == ENOMEM;
}

/* One entry cannot be. False: that ends the copy. */
static bool receiver__failed(const Receiver *r, Str path, int sys, Err *err)
{
    if (receiver__fatal(sys)) {
        ABX_UNSET char room[RECEIVER_SHOWN];
        Arena a = {.p = room, .size = sizeof room};
        Str   shown = clean_path(path, &a);
        return err_sys(err, sys, E4000, "cannot write %.*s", STR_ARG(shown));
    }
    receiver__say(r, &(Item){.kind = ITEM_FAILED, .number = sys > 0 ? (uint32_t)sys : EIO, .path = path});
    return true;
}

/* After a failure nothing more is taken. */
static bool receiver__settle(Receiver *r, bool ok)
{
    if (!ok)
        r->state = RECEIVER_OVER;
    return ok;
}

/* ---- folders ---- */

/* The path of the innermost open folder. */
static Str receiver__inmost(const Receiver *r)
{
    Str path = buf_str(&r->order.last), rest = path, part;

    for (size_t i = 0; i < r->open.n; i++)
        (void)str_cut(&rest, '/', &part);
    return (Str){path.p, rest.p ? path.n - rest.n - 1 : path.n};
}

/* Out of the folders that have `depth` parts and more. */
static bool receiver__leave(Receiver *r, size_t depth, Err *err)
{
    bool ok = true;

    while (r->open.n && r->open.n >= depth) {
        Str path = receiver__inmost(r);
        int sys = nest_leave(&r->open);
        if (sys && ok)
            ok = receiver__failed(r, path, sys, err);
    }
    return ok;
}

static TargetKind receiver__kind(const Receiver *r, Str root, bool folder)
{
    return r->rq.several ? TARGET_SEVERAL : str_eq(root, STR(".")) ? TARGET_INSIDE : folder ? TARGET_FOLDER : TARGET_FILE;
}

/* The entry's turn has come, or it is refused. */
static bool receiver__turn(Receiver *r, Str path, bool folder, ReceiverPlace *p, Err *err)
{
    *p = (ReceiverPlace){.folder = -1};
    if (r->state != RECEIVER_ENTRY)
        return order_refuse(err, path, "it comes where nothing can");
    if (!order_next(&r->order, path, &p->depth, err) || !receiver__leave(r, p->depth, err))
        return false;
    if (p->depth == 1 && r->rq.root && !r->rq.root(r->rq.ctx, path))
        return order_refuse(err, path, "nobody asked for it");
    if (p->depth <= r->passed)
        r->passed = 0;
    p->passed = r->passed > 0;
    order_took(&r->order, path, folder);
    return true;
}

static bool receiver__place(Receiver *r, Str path, bool folder, ReceiverPlace *p, Err *err)
{
    if (!receiver__turn(r, path, folder, p, err) || p->passed)
        return p->passed;
    Str name = order_name(path);
    if (!folder && str_eq(path, STR(".")))
        return order_refuse(err, path, "it is no folder");
    if (p->depth > 1) {
        p->folder = r->open.v[p->depth - 2].fd;
    } else {
        if (r->target.fd < 0 && !target_open(r->rq.target, receiver__kind(r, path, folder), r->rq.resume, &r->target, err))
            return false;
        p->folder = r->target.fd;
        name = r->target.name ? str_from(r->target.name) : name;
    }
    if (name.n > NAME_MAX) {
        p->sys = ENAMETOOLONG;
        return true;
    }
    memcpy(r->name, name.p, name.n);
    r->name[name.n] = '\0';
    return true;
}

bool receiver_folder(Receiver *r, Str path, unsigned mode, Err *err)
{
    ReceiverPlace p;

    if (!receiver__place(r, path, true, &p, err))
        return receiver__settle(r, false);
    if (p.passed)
        return true;
    /* Where it goes on, all that is in it may be there. */
    int sys = p.sys ? p.sys : nest_enter(&r->open, p.folder, r->name, mode, !r->rq.resume);
    if (!sys)
        return receiver__done(r, path);
    r->passed = p.depth;
    return receiver__settle(r, receiver__failed(r, path, sys, err));
}

/* ---- links ---- */

/* In place of whatever there is but a folder. */
static int receiver__link(const Receiver *r, int at, const char *to)
{
    ABX_UNSET char temp[DRAFT_NAME];

    if (symlinkat(to, at, r->name) == 0)
        return 0;
    if (errno != EEXIST)
        return errno;
    draft_temp_name(temp);
    if (symlinkat(to, at, temp) != 0)
        return errno;
    int sys = renameat(at, temp, at, r->name) == 0 ? 0 : errno;
    if (sys)
        (void)unlinkat(at, temp, 0);
    return sys;
}

bool receiver_link(Receiver *r, Str path, Str target, Err *err)
{
    ReceiverPlace p;

    if (str_has(target, '\0'))
        return receiver__settle(r, order_refuse(err, path, "a link cannot lead there"));
    if (!receiver__place(r, path, false, &p, err))
        return receiver__settle(r, false);
    if (p.passed)
        return true;
    if (!p.sys) {
        char *to = mem_str(target);
        p.sys = receiver__link(r, p.folder, to);
        mem_free(to);
    }
    return p.sys ? receiver__settle(r, receiver__failed(r, path, p.sys, err)) : receiver__done(r, path);
}

/* ---- files ---- */

static bool receiver__file(Receiver *r, Str path, unsigned mode, int64_t size, Err *err)
{
    ReceiverPlace p;

    if (!receiver__place(r, path, false, &p, err))
        return false;
    r->state = RECEIVER_CONTENT;
    r->silent = p.passed;
    r->mode = mode;
    r->size = size;
    r->came = 0;
    r->sys = p.sys;
    if (!p.passed && !p.sys)
        r->sys = draft_open(&r->draft, p.folder, str_from(r->name), r->rq.resume, r->from);
    r->draft.sparse = r->sparse;
    r->draft.lasting = r->rq.lasting;
    r->from = 0;
    r->sparse = r->announced = false;
    return !receiver__fatal(r->sys) || receiver__failed(r, path, r->sys, err);
}

bool receiver_file(Receiver *r, Str path, unsigned mode, int64_t size, Err *err)
{
    return receiver__settle(r, receiver__file(r, path, mode, size, err));
}

/* What was written goes; the next entry can come. */
static bool receiver__drop(Receiver *r, int sys, Err *err)
{
    draft_drop(&r->draft, false);
    r->state = RECEIVER_ENTRY;
    return r->silent || receiver__failed(r, buf_str(&r->order.last), sys, err);
}

bool receiver_bytes(Receiver *r, Str bytes, Err *err)
{
    if (r->state != RECEIVER_CONTENT)
        return receiver__settle(r, order_refuse(err, buf_str(&r->order.last), "it has no content"));
    r->came += (int64_t)bytes.n;
    if (r->rq.moved)
        r->rq.moved(r->rq.ctx, (int64_t)bytes.n);
    if (r->silent || r->sys)
        return true;
    if (r->size >= 0 && r->came > r->size)
        r->sys = EIO;
    else
        r->sys = draft_write(&r->draft, bytes);
    return !receiver__fatal(r->sys) || receiver__settle(r, receiver__failed(r, buf_str(&r->order.last), r->sys, err));
}

bool receiver_whole(Receiver *r, const unsigned char hash[SHA256_SIZE], Err *err)
{
    Item done = {.kind = ITEM_DONE, .hashed = true, .size = r->draft.at, .path = buf_str(&r->order.last)};

    if (r->state != RECEIVER_CONTENT)
        return receiver__settle(r, order_refuse(err, done.path, "a hash comes where nothing can"));
    if (r->silent || r->sys)
        return receiver__settle(r, receiver__drop(r, r->sys, err));
    sha256_end(&r->draft.sum, done.sha256);
    if ((r->size >= 0 && r->came != r->size) || (hash && memcmp(hash, done.sha256, SHA256_SIZE) != 0))
        r->sys = EIO;
    else
        r->sys = draft_done(&r->draft, r->name, r->mode);
    if (r->sys)
        return receiver__settle(r, receiver__drop(r, r->sys, err));
    draft_drop(&r->draft, false);
    r->state = RECEIVER_ENTRY;
    r->files++;
    r->bytes += r->came;
    receiver__say(r, &done);
    return true;
}

bool receiver_failed(Receiver *r, Str path, int sys, Err *err)
{
    ReceiverPlace p;

    if (r->state == RECEIVER_CONTENT) {
        if (!str_eq(path, buf_str(&r->order.last)))
            return receiver__settle(r, order_refuse(err, path, "it is not what came last"));
        return receiver__settle(r, receiver__drop(r, r->sys ? r->sys : sys, err));
    }
    /* Of a folder it can be said when some of what is in it came. */
    if (r->state != RECEIVER_ENTRY || !order_inside(&r->order, path)) {
        if (!receiver__turn(r, path, false, &p, err))
            return receiver__settle(r, false);
    }
    if (!r->passed)
        receiver__say(r, &(Item){.kind = ITEM_FAILED, .number = sys > 0 ? (uint32_t)sys : EIO, .path = path});
    return true;
}

/* ---- the stream ---- */

static bool receiver__refuse(Err *err, const char *what)
{
    return err_set(err, ERR_INPUT, E8020, "the sender of the copy is not to be trusted: %s", what);
}

/* What the sender has to say about the file that just came. */
static bool receiver__hash(Receiver *r, const Item *i, Err *err)
{
    if (!i->hashed || !str_eq(i->path, buf_str(&r->order.last)))
        return order_refuse(err, i->path, "a hash that is none of what came");
    if (r->state == RECEIVER_CONTENT && !r->silent && !r->sys && i->size != r->draft.at)
        r->sys = EIO;
    return receiver_whole(r, i->sha256, err);
}

/* It is believed only of a file that is there: it may be gone by now, or never have been. */
static bool receiver__kept(Receiver *r, const Item *i, Err *err)
{
    ReceiverPlace p;
    ABX_UNSET struct stat st;

    if (!receiver__place(r, i->path, false, &p, err))
        return false;
    if (p.passed)
        return true;
    if (!p.sys && fstatat(p.folder, r->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        p.sys = errno;
    else if (!p.sys && (!S_ISREG(st.st_mode) || st.st_size != i->size))
        p.sys = ESTALE;
    if (p.sys)
        return receiver__failed(r, i->path, p.sys, err);
    receiver__say(r, i);
    return true;
}

static bool receiver__record(Receiver *r, const Item *i, Err *err)
{
    bool between = r->state == RECEIVER_ENTRY;

    switch ((int)i->kind) {
    case ITEM_TOTAL:
        if (r->began)
            break;
        receiver__say(r, i);
        return true;
    case ITEM_FROM:
        if (!between)
            break;
        r->from = i->size;
        r->announced = true;
        return true;
    case ITEM_SPARSE:
        if (!between)
            break;
        r->sparse = r->announced = true;
        return true;
    case ITEM_HASH:
        return receiver__hash(r, i, err);
    case ITEM_FAILED:
        return receiver_failed(r, i->path, i->number <= INT_MAX ? (int)i->number : EIO, err);
    case ITEM_KEPT:
        return receiver__kept(r, i, err);
    case ITEM_END:
        if (!between)
            break;
        r->state = RECEIVER_ENDED;
        return true;
    default:
        break;
    }
    return order_refuse(err, i->path, "a record of it comes where none can");
}

static bool receiver__entry(Receiver *r, const TarEvent *ev, Err *err)
{
    Item i = {.path = ev->name};
    bool record = ev->type == TAR_RECORD;

    if (record && !item_parse(ev->target, &i))
        return order_refuse(err, ev->name, "a record of it is none");
    if (r->announced && ev->type != TAR_FILE && !(record && i.kind == ITEM_SPARSE))
        return order_refuse(err, ev->name, "a file was to come");
    switch (ev->type) {
    case TAR_FOLDER:
        return receiver_folder(r, ev->name, ev->mode, err);
    case TAR_SYMLINK:
        return receiver_link(r, ev->name, ev->target, err);
    case TAR_FILE:
        return receiver_file(r, ev->name, ev->mode, ev->size, err);
    case TAR_RECORD:
        return receiver__record(r, &i, err);
    case TAR_HARDLINK:
    case TAR_SPECIAL:
        break;
    }
    return order_refuse(err, ev->name, "it is neither file, folder nor link");
}

static bool receiver__event(Receiver *r, const TarEvent *ev, Err *err)
{
    if (ev->kind == TAR_BYTES)
        return receiver_bytes(r, ev->bytes, err);
    if (ev->kind == TAR_END)                /* receiver_end() asks whether it was time */
        return true;
    if (r->state == RECEIVER_ENDED)
        return receiver__refuse(err, "something follows the end of the copy");
    bool ok = receiver__entry(r, ev, err);
    r->began = true;
    return ok;
}

bool receiver_feed(Receiver *r, Str bytes, Err *err)
{
    ABX_UNSET TarEvent ev;
    Step     step;

    if (r->state == RECEIVER_OVER)
        return receiver__refuse(err, "something follows the end of the copy");
    if (!r->tar)
        r->tar = tar_open_copy();
    while ((step = tar_next(r->tar, &bytes, &ev, err)) == STEP_DONE)
        if (!receiver__event(r, &ev, err))
            return receiver__settle(r, false);
    if (step == STEP_MORE)
        return true;
    err->kind = ERR_INPUT;
    err->code = E8020;
    return receiver__settle(r, err_wrap(err, "the stream of the copy"));
}

bool receiver_end(Receiver *r, Err *err)
{
    bool whole = r->tar ? r->state == RECEIVER_ENDED && tar_ended(r->tar, err) : r->state == RECEIVER_ENTRY && r->order.last.n;

    if (!whole)
        return receiver__settle(r, receiver__refuse(err, "the stream was cut"));
    bool ok = receiver__leave(r, 1, err);
    r->state = RECEIVER_OVER;
    if (ok)
        receiver__say(r, &(Item){.kind = ITEM_END, .number = r->files, .size = r->bytes});
    return ok;
}

void receiver_close(Receiver *r)
{
    if (!r)
        return;
    draft_drop(&r->draft, r->rq.resume);
    nest_abandon(&r->open, r->rq.resume);
    target_close(&r->target);
    tar_close(r->tar);
    order_free(&r->order);
    mem_free(r);
}
