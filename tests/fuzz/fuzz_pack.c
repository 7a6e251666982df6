/* Packs. Bytes as they are get the right trailer, cut in two; or they say what
 * objects a pack is made of, so that deltas and their bases are met, too. What
 * was taken must read again as what has its id, whatever way it was cut. */
#include "base/buf.h"
#include "base/mem.h"
#include "data/pack.h"

static bool fuzz_pack__write(void *ctx, Str bytes, Err *err)
{
    (void)err;
    buf_add(ctx, bytes);
    return true;
}

static bool fuzz_pack__get(void *ctx, uint64_t at, char *p, size_t n, Err *err)
{
    const Buf *b = ctx;

    (void)err;
    if (at > b->n || n > b->n - at)
        __builtin_trap();
    memcpy(p, b->p + at, n);
    return true;
}

static void fuzz_pack__zlib(Buf *b, Str data)
{
    uint32_t one = 1, two = 0;

    for (size_t i = 0; i < data.n; i++) {
        one = (one + (unsigned char)data.p[i]) % 65521;
        two = (two + one) % 65521;
    }
    unsigned char head[] = {0x78, 1, 1, (unsigned char)data.n, 0, (unsigned char)~data.n, 0xff};
    unsigned char tail[] = {(unsigned char)(two >> 8), (unsigned char)two, (unsigned char)(one >> 8), (unsigned char)one};
    buf_add(b, (Str){(const char *)head, sizeof head});
    buf_add(b, data);
    buf_add(b, (Str){(const char *)tail, sizeof tail});
}

/* One object from *in: its kind, its base among those before, its content. */
static void fuzz_pack__object(Buf *b, Str *in, size_t *starts, ObjectId *ids, size_t n)
{
    unsigned char kind = (unsigned char)in->p[0] & 7, base = (unsigned char)in->p[1];
    size_t        size = (unsigned char)in->p[2];

    str_skip(in, 3);
    size = size < in->n ? size : in->n;
    starts[n] = b->n;
    buf_addc(b, (char)(kind << 4 | (size & 15) | (size > 15 ? 128 : 0)));
    if (size > 15)
        buf_addc(b, (char)(size >> 4));
    if (kind == 6) {
        size_t distance = n ? starts[n] - starts[base % n] : 1;
        if (distance > 127)
            buf_addc(b, (char)(128 | ((distance >> 7) - 1)));
        buf_addc(b, (char)(distance & 127));
    } else if (kind == 7) {
        buf_add(b, (Str){(const char *)ids[base % 64].b, SHA1_SIZE});
    }
    Str content = {in->p, size};
    object_id_of(OBJECT_SHA1, kind >= 1 && kind <= 4 ? (ObjectType)kind : OBJECT_BLOB, content, &ids[n]);
    fuzz_pack__zlib(b, content);
    str_skip(in, size);
}

static void fuzz_pack__make(Buf *b, Str in)
{
    size_t   starts[64] = {0}, n = 0, at = b->n + 11;
    ObjectId ids[64] = {{{0}}};

    buf_add(b, (Str){"PACK\0\0\0\2\0\0\0\0", 12});
    while (in.n > 3 && n < 63)
        fuzz_pack__object(b, &in, starts, ids, n++);
    b->p[at] = (char)n;
}

static Step fuzz_pack__read(Str pack, size_t cut, const ObjectId *some)
{
    Buf      store = buf_make((size_t)1 << 20);
    Pack    *p = pack_open(OBJECT_SHA1, &(PackStore){{fuzz_pack__write, &store}, fuzz_pack__get}, 1 << 19, 1 << 20);
    ObjectId is;
    Err      err;
    Step     step = pack_feed(p, (Str){pack.p, cut}, &err);

    if (step == STEP_MORE)
        step = pack_feed(p, (Str){pack.p + cut, pack.n - cut}, &err);
    if (step == STEP_DONE)
        while ((step = pack_resolve(p, &err)) == STEP_MORE)
            continue;
    const PackObject *o = step == STEP_DONE ? pack_find(p, some) : NULL;
    if (o) {
        char *content = mem_new(o->size);
        if (!pack_read(p, o, content, &err) && err.kind != ERR_LIMIT)
            __builtin_trap();
        object_id_of(OBJECT_SHA1, (ObjectType)o->type, (Str){content, o->size}, &is);
        if (object_id_cmp(&is, some) != 0)
            __builtin_trap();
        mem_free(content);
    }
    pack_free(p);
    buf_free(&store);
    return step;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Buf          b = buf_make((size_t)1 << 20);
    ObjectDigest d = object_digest(OBJECT_SHA1);
    ObjectId     id, some;

    if (size < 2 || size > 1 << 16) {
        buf_free(&b);
        return 0;
    }
    Str in = {(const char *)data + 2, size - 2};
    if (data[0] & 1)
        fuzz_pack__make(&b, in);
    else
        buf_add(&b, in);
    object_digest_add(&d, buf_str(&b));
    object_digest_end(&d, &id);
    buf_add(&b, (Str){(const char *)id.b, SHA1_SIZE});
    object_id_of(OBJECT_SHA1, OBJECT_BLOB, (Str){in.p, in.n > 3 ? (size_t)data[1] % (in.n - 3) : 0}, &some);
    if (fuzz_pack__read(buf_str(&b), b.n, &some) != fuzz_pack__read(buf_str(&b), data[1] % (b.n + 1), &some))
        __builtin_trap();
    buf_free(&b);
    return 0;
}
