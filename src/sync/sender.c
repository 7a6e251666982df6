#include "sync/sender.h"

#include "base/limits.h"
#include "base/mem.h"
#include "data/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SENDER_COUNTED = 4096,      /* entries looked at in one call, of which nothing goes out */
    SENDER_HASHED = 64,         /* and blocks */
    SENDER_LEAST = 4096,        /* no less of a file is read for what is left of the caller's room */
};

typedef enum SenderState {
    SENDER_COUNT,               /* the walk is the first of two, for ITEM_TOTAL */
    SENDER_NEXT,                /* the next entry is to be looked at */
    SENDER_CHECK,               /* the receiver may have a part of the file: that much of it is hashed */
    SENDER_CONTENT,             /* bytes of the file go out, from `at` to `end` */
    SENDER_ENDED,
} SenderState;

struct Sender {
    SenderRequest rq;
    SenderState state;
    Walk     *walk;
    Buf       out;              /* headers and records, `out_at` bytes of which went out */
    size_t    out_at;
    bool      pause;            /* this call took its time */
    char     *block;            /* LIMIT_COPY_BLOCK bytes; NULL: were not needed yet */
    Item      total, sum;       /* ITEM_TOTAL; ITEM_END */

    WalkEntry e;                /* the file in hand, */
    int64_t   from, at, end;    /* its content in the stream, */
    Sha256    hash;             /* of all before `at`, */
    int       sys;              /* and what went wrong with it; 0 */
    int64_t   edge;             /* sparse: up to here it is what it is at `at`, */
    bool      hole;             /* a hole */
    Item      have;             /* SENDER_CHECK */
};

Sender *sender_open(const SenderRequest *rq)
{
    Sender *s = mem_new(sizeof *s);

    s->rq = *rq;
    s->walk = walk_open(rq->roots, rq->count);
    s->out = buf_make(4 * LIMIT_COPY_BLOCK);
    s->total.kind = ITEM_TOTAL;
    s->sum.kind = ITEM_END;
    s->state = rq->total ? SENDER_COUNT : SENDER_NEXT;
    if (rq->total)
        walk_unopened(s->walk);
    return s;
}

void sender_close(Sender *s)
{
    if (!s)
        return;
    walk_close(s->walk);
    buf_free(&s->out);
    mem_free(s->block);
    mem_free(s);
}

static bool sender__say(Sender *s, const Item *i, Err *err)
{
    ABX_UNSET char words[ITEM_WORDS];
    TarHead h = {.type = TAR_RECORD, .name = i->path, .target = item_words(i, words)};

    if (s->rq.item)
        s->rq.item(s->rq.ctx, i);
    return tar_put(&s->out, &h, err);
}

/* So that who waits for bytes, or for a chance to give up, gets one. */
static bool sender__pause(Sender *s)
{
    tar_put_nothing(&s->out);
    return s->pause = true;
}

static bool sender__count(Sender *s, Err *err)
{
    WalkEntry e;

    for (int i = 0; i < SENDER_COUNTED; i++) {
        if (!walk_next(s->walk, &e)) {
            walk_close(s->walk);
            s->walk = walk_open(s->rq.roots, s->rq.count);
            s->state = SENDER_NEXT;
            return sender__say(s, &s->total, err);
        }
        if (e.kind == WALK_FILE) {
            s->total.number++;
            s->total.size += e.size;
        }
    }
    return sender__pause(s);
}

/* --- a file ---------------------------------------------------------------------- */

static ssize_t sender__pread(Sender *s, char *p, size_t n, int64_t at)
{
    ssize_t got;

    do
        got = pread(s->e.fd, p, n, at);
    while (got < 0 && errno == EINTR);
    return got;
}

/* Its headers; all before `from` is hashed, and the receiver's already. */
static bool sender__head(Sender *s, int64_t from, int64_t end, Err *err)
{
    Item    before = {.kind = ITEM_FROM, .size = from, .path = s->e.path}, sparse = {.kind = ITEM_SPARSE, .path = s->e.path};
    TarHead h = {.type = TAR_FILE, .name = s->e.path, .mode = s->e.mode, .size = end - from};

    s->state = SENDER_CONTENT;
    s->from = s->at = from;
    s->end = end;
    s->edge = 0;
    if (end - from > (int64_t)LIMIT_COPY_BLOCK)
        (void)posix_fadvise(s->e.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return (!from || sender__say(s, &before, err)) && (!s->e.sparse || sender__say(s, &sparse, err))
        && tar_put(&s->out, &h, err);
}

static char *sender__block(Sender *s)
{
    if (!s->block)
        s->block = mem_new(LIMIT_COPY_BLOCK);
    return s->block;
}

static bool sender__failed(Sender *s, int sys, Err *err)
{
    Item i = {.kind = ITEM_FAILED, .number = (uint32_t)sys, .path = s->e.path};

    s->state = SENDER_NEXT;
    return sender__say(s, &i, err);
}

/* A file of no bytes may have some, in /proc. */
static bool sender__empty(Sender *s, Err *err)
{
    char   *p = sender__block(s);
    int64_t have = 0;
    ssize_t n;

    while ((n = sender__pread(s, p + have, LIMIT_COPY_BLOCK - (size_t)have, have)) > 0)
        have += n;
    if (n < 0 || have == (int64_t)LIMIT_COPY_BLOCK)
        return sender__failed(s, n < 0 ? errno : EFBIG, err);
    if (!sender__head(s, 0, have, err))
        return false;
    sha256_add(&s->hash, (Str){p, (size_t)have});
    buf_add(&s->out, (Str){p, (size_t)have});
    s->at = have;
    if (have && s->rq.moved)
        s->rq.moved(s->rq.ctx, have);
    return true;
}

static bool sender__whole(Sender *s, Err *err)
{
    s->hash = sha256_make();
    return s->e.size ? sender__head(s, 0, s->e.size, err) : sender__empty(s, err);
}

/* --- what the receiver has ---------------------------------------------------------- */

/* It may have all of the file, or a part. */
static bool sender__check_begins(Sender *s, ItemKind kind)
{
    if (!s->rq.have || !s->e.size || !have_find(s->rq.have, kind, s->e.path, &s->have) ||
        (kind == ITEM_HAVE && s->have.size != s->e.size))
        return false;
    s->hash = sha256_make();
    s->at = 0;
    s->state = SENDER_CHECK;
    return true;
}

static bool sender__check(Sender *s, Err *err)
{
    Item    kept = {.kind = ITEM_KEPT, .hashed = true, .size = s->e.size, .path = s->e.path};
    char   *p = sender__block(s);
    Sha256  sum;

    for (int i = 0; i < SENDER_HASHED && s->at < s->have.size; i++) {
        int64_t left = s->have.size - s->at;
        ssize_t n = sender__pread(s, p, left < (int64_t)LIMIT_COPY_BLOCK ? (size_t)left : LIMIT_COPY_BLOCK, s->at);
        if (n <= 0)
            return sender__whole(s, err);
        sha256_add(&s->hash, (Str){p, (size_t)n});
        s->at += n;
    }
    if (s->at < s->have.size)
        return sender__pause(s);
    sum = s->hash;
    sha256_end(&sum, kept.sha256);
    if (memcmp(kept.sha256, s->have.sha256, SHA256_SIZE) != 0)
        return (s->have.kind == ITEM_HAVE && sender__check_begins(s, ITEM_PART)) || sender__whole(s, err);
    if (s->have.kind == ITEM_PART)
        return sender__head(s, s->at, s->e.size, err);
    s->state = SENDER_NEXT;
    return sender__say(s, &kept, err);
}

static bool sender__file(Sender *s, Err *err)
{
    s->sys = 0;
    return sender__check_begins(s, ITEM_HAVE) || sender__check_begins(s, ITEM_PART) || sender__whole(s, err);
}

/* --- its content --------------------------------------------------------------------- */

/* Whether there is a hole at `at`, and how far it goes; or the same of data. */
static void sender__edge(Sender *s)
{
    int64_t data = lseek(s->e.fd, s->at, SEEK_DATA);

    s->hole = data > s->at || (data < 0 && errno == ENXIO);
    s->edge = s->hole ? data : data < 0 ? -1 : lseek(s->e.fd, s->at, SEEK_HOLE);
    if (s->edge <= s->at || s->edge > s->end)
        s->edge = s->end;
}

static size_t sender__content(Sender *s, char *p, size_t room)
{
    ssize_t n;

    if ((int64_t)room > s->end - s->at)
        room = (size_t)(s->end - s->at);
    if (s->e.sparse && s->at >= s->edge)
        sender__edge(s);
    if (s->e.sparse && (int64_t)room > s->edge - s->at)
        room = (size_t)(s->edge - s->at);
    if (s->sys || (s->e.sparse && s->hole)) {
        memset(p, 0, room);
        n = (ssize_t)room;
    } else if ((n = sender__pread(s, p, room, s->at)) <= 0) {
        s->sys = n < 0 ? errno : ESTALE;
        return 0;
    }
    if (!s->sys)
        sha256_add(&s->hash, (Str){p, (size_t)n});
    s->at += n;
    if (s->rq.moved)
        s->rq.moved(s->rq.ctx, n);
    return (size_t)n;
}

/* All of its content went out. */
static bool sender__end(Sender *s, Err *err)
{
    static const char zeros[TAR_BLOCK];
    Item        i = {.kind = ITEM_HASH, .hashed = true, .size = s->end, .path = s->e.path};
    ABX_UNSET struct stat st;

    buf_add(&s->out, (Str){zeros, tar_pad(s->end - s->from)});
    if (!s->sys && fstat(s->e.fd, &st) != 0)
        s->sys = errno;
    if (!s->sys && (st.st_size != s->e.size || walk_changed(&st) != s->e.changed))
        s->sys = ESTALE;
    if (s->sys)
        return sender__failed(s, s->sys, err);
    sha256_end(&s->hash, i.sha256);
    s->sum.number++;
    s->sum.size += s->end - s->from;
    s->state = SENDER_NEXT;
    return sender__say(s, &i, err);
}

/* --- the stream -------------------------------------------------------------------- */

static bool sender__next(Sender *s, Err *err)
{
    static const char tail[TAR_TAIL];
    TarHead           h = {.type = TAR_FOLDER};

    if (!walk_next(s->walk, &s->e)) {
        s->state = SENDER_ENDED;
        bool ok = sender__say(s, &s->sum, err);
        buf_add(&s->out, (Str){tail, TAR_TAIL});
        return ok;
    }
    switch (s->e.kind) {
    case WALK_LINK:
        h.type = TAR_SYMLINK;
        /* fall through */
    case WALK_FOLDER:
        h.name = s->e.path;
        h.target = s->e.target;
        h.mode = s->e.mode;
        return tar_put(&s->out, &h, err);
    case WALK_FILE:
        return sender__file(s, err);
    case WALK_FAILED:
        return sender__failed(s, s->e.sys, err);
    case WALK_LEAVE:
        break;
    }
    return true;
}

static bool sender__step(Sender *s, Err *err)
{
    switch (s->state) {
    case SENDER_COUNT:
        return sender__count(s, err);
    case SENDER_NEXT:
        return sender__next(s, err);
    case SENDER_CHECK:
        return sender__check(s, err);
    case SENDER_CONTENT:
        return sender__end(s, err);
    case SENDER_ENDED:
        break;
    }
    return true;
}

bool sender_read(Sender *s, char *p, size_t cap, size_t *n, Err *err)
{
    for (*n = 0, s->pause = false; *n < cap;) {
        size_t room = cap - *n, ready = s->out.n - s->out_at;
        if (ready) {
            size_t part = ready < room ? ready : room;
            memcpy(p + *n, s->out.p + s->out_at, part);
            s->out_at += part;
            *n += part;
            continue;
        }
        buf_clear(&s->out);
        s->out_at = 0;
        if (s->state == SENDER_ENDED || s->pause)
            break;
        if (s->state == SENDER_CONTENT && s->at < s->end) {
            if (*n && room < SENDER_LEAST && (int64_t)room < s->end - s->at)
                break;
            *n += sender__content(s, p + *n, room);
        } else if (!sender__step(s, err)) {
            return false;
        }
    }
    return true;
}
