#include "cli/outbox.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/nowait.h"

enum {
    OUTBOX_HEAD = 4,
    OUTBOX_MOST = INT32_MAX,            /* lengths have 31 bits; one result of LIMIT_DOCUMENT fits */
    OUTBOX_LARGE = 8 << 10,             /* worth a call of its own, and no copy */
    OUTBOX_BLOCK = 64 << 10,            /* as much is written at once, and as much may wait */
};

static const uint32_t outbox__err_bit = 0x80000000u;

Outbox outbox_make(void)
{
    return (Outbox){.queue = buf_make(OUTBOX_MOST)};
}

void outbox_free(Outbox *o)
{
    buf_free(&o->queue);
}

static uint32_t outbox__head(const Outbox *o, size_t at)
{
    uint32_t head;

    memcpy(&head, o->queue.p + at, sizeof head);
    return head;
}

bool outbox_empty(const Outbox *o)
{
    return o->at == o->queue.n;
}

bool outbox_full(const Outbox *o)
{
    return o->queue.n - o->at >= OUTBOX_BLOCK;
}

int outbox_fd(const Outbox *o)
{
    if (outbox_empty(o))
        return -1;
    return outbox__head(o, o->at) & outbox__err_bit ? STDERR_FILENO : STDOUT_FILENO;
}

void outbox_add(Outbox *o, int fd, Str bytes)
{
    uint32_t whose = fd == STDERR_FILENO ? outbox__err_bit : 0;
    uint32_t head = outbox_empty(o) ? ~whose : outbox__head(o, o->last);

    /* What goes wrong here goes wrong again in outbox_flush(), which says so. */
    if (outbox_empty(o) && bytes.n >= OUTBOX_LARGE) {
        ssize_t n = nowait_write(fd, bytes.p, bytes.n);
        str_skip(&bytes, n > 0 ? (size_t)n : 0);
    }
    if (bytes.n == 0)
        return;
    if ((head & outbox__err_bit) != whose) {
        o->last = o->queue.n;
        head = whose;
        buf_add(&o->queue, (Str){(const char *)&head, sizeof head});
    }
    head += (uint32_t)bytes.n;
    buf_add(&o->queue, bytes);
    if (o->queue.over)
        BUG("more output was taken than is held");
    memcpy(o->queue.p + o->last, &head, sizeof head);
}

/* What was written is forgotten when it is more than what is left, so that no
 * byte is moved twice. The rest of a piece gets a new head in front of it. */
static void outbox__forget(Outbox *o)
{
    size_t gone = o->at + o->done;

    if (gone <= o->queue.n / 2)
        return;
    if (o->done) {
        uint32_t head = outbox__head(o, o->at) - (uint32_t)o->done;
        memcpy(o->queue.p + gone, &head, sizeof head);
    }
    o->last = o->last > o->at ? o->last - gone : 0;
    buf_drop(&o->queue, gone);
    o->at = o->done = 0;
}

bool outbox_flush(Outbox *o, Err *err)
{
    while (!outbox_empty(o)) {
        size_t  left = (outbox__head(o, o->at) & ~outbox__err_bit) - o->done;
        int     fd = outbox_fd(o);
        ssize_t n = nowait_write(fd, o->queue.p + o->at + OUTBOX_HEAD + o->done, left);
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n < 0)
            return err_sys(err, errno, E0000, "cannot write to standard %s", fd == STDERR_FILENO ? "error" : "output");
        o->done += (size_t)n;
        if ((size_t)n == left) {
            o->at += OUTBOX_HEAD + o->done;
            o->done = 0;
        }
        outbox__forget(o);
    }
    return true;
}
