/* A git server that says anything, in pieces of any size, over HTTP or a pipe:
 * the advertisement, the names and the pack end in a success or an error. */
#include "base/buf.h"
#include "base/mem.h"
#include "host/gittalk.h"

typedef struct FuzzLink {
    GitLink link;
    Str     left;
    size_t  piece;
    int     sent;
} FuzzLink;

/* Over HTTP a byte 0xff ends an answer. */
static bool fuzz_gittalk__read(GitLink *l, Str *piece, Err *err)
{
    FuzzLink *f = (FuzzLink *)l;

    (void)err;
    *piece = (Str){f->left.p, f->left.n < f->piece ? f->left.n : f->piece};
    for (size_t i = 0; l->http && i < piece->n; i++)
        if ((unsigned char)piece->p[i] == 0xff)
            piece->n = i;
    str_skip(&f->left, piece->n);
    return true;
}

static bool fuzz_gittalk__send(GitLink *l, Str request, Err *err)
{
    FuzzLink *f = (FuzzLink *)l;

    (void)err;
    if (request.n < 8 || ++f->sent > 2)
        __builtin_trap();
    while (l->http && f->left.n && (unsigned char)*f->left.p != 0xff)
        str_skip(&f->left, 1);
    if (l->http && f->left.n)
        str_skip(&f->left, 1);
    return true;
}

static bool fuzz_gittalk__cut(GitLink *l, Err *err)
{
    (void)l;
    return err_set(err, ERR_CLOSED, E8010, "cut");
}

static bool fuzz_gittalk__goes_on(GitLink *l, Err *err)
{
    (void)l, (void)err;
    return true;
}

static void fuzz_gittalk__close(GitLink *l)
{
    (void)l;
}

static bool fuzz_gittalk__write(void *ctx, Str bytes, Err *err)
{
    (void)err;
    buf_add(ctx, bytes);
    return true;
}

static bool fuzz_gittalk__get(void *ctx, uint64_t at, char *p, size_t n, Err *err)
{
    (void)err;
    memcpy(p, ((Buf *)ctx)->p + at, n);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const GitLinkOps ops = {fuzz_gittalk__read, fuzz_gittalk__send, fuzz_gittalk__cut, fuzz_gittalk__goes_on,
                                   fuzz_gittalk__close};
    if (size < 2)
        return 0;
    FuzzLink f = {{&ops, data[0] & 1}, {(const char *)data + 2, size - 2}, (size_t)data[1] + 1, 0};
    Buf      store = buf_make((size_t)1 << 20);
    GitTalk  t;
    GitTip   tip;
    Err      err = {0};
    bool     ok = gittalk_begin(&t, &f.link, (Str){"main", 4}, &err);

    if (ok) {
        Pack *pack = pack_open(t.hash, &(PackStore){{fuzz_gittalk__write, &store}, fuzz_gittalk__get}, 1 << 19, 1 << 20);
        ok = gittalk_find(&t, &tip, &err) &&
             gittalk_fetch(&t, &(GitWant){&tip.id, 1, true, (data[0] & 2) && t.filter}, pack, &err);
        if (ok && !tip.found)
            __builtin_trap();
        gittalk_end(&t);
        pack_free(pack);
    }
    if (!ok && (err.kind == ERR_NONE || err.code != E8010 || !err.text[0]))
        __builtin_trap();
    buf_free(&store);
    return 0;
}
