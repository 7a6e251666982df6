/* Packs: those that git made of one commit, with ofs-deltas and with ref-deltas,
 * and others made here, whose objects are stored rather than deflated. */
#include "data/delta.h"
#include "data/pack.h"

static const unsigned char pack_ofs[] = {
    80,65,67,75,0,0,0,2,0,0,0,7,150,7,120,156,43,41,74,77,85,176,72,54,52,53,50,54,
    74,52,73,50,79,53,78,54,73,180,76,75,54,55,50,55,176,48,48,54,77,54,49,180,52,74,51,79,
    51,73,77,53,182,224,74,44,45,201,200,47,82,112,84,176,73,116,168,176,83,48,52,55,128,2,5,109,
    16,201,149,156,159,155,155,89,82,146,138,71,9,87,126,94,42,23,0,117,220,30,145,174,3,120,156,51,
    49,0,2,133,130,156,210,116,134,140,222,152,79,66,203,166,135,197,238,188,20,244,238,147,219,183,61,146,
    139,147,13,13,12,204,77,77,21,138,74,243,24,164,84,90,85,101,140,151,179,24,89,250,76,254,221,105,
    204,247,73,100,255,73,0,234,117,24,12,163,6,120,156,51,52,48,48,51,49,81,72,212,43,169,40,97,
    104,123,251,230,171,170,253,166,19,215,44,147,124,221,194,23,236,146,154,81,181,222,16,162,32,9,172,32,
    102,81,190,61,207,234,3,223,159,127,247,58,118,114,190,224,173,228,62,247,13,80,5,201,96,5,165,76,
    79,243,143,250,196,127,180,50,82,17,45,73,154,80,144,170,56,229,22,0,195,117,40,94,179,32,120,156,
    101,81,65,14,195,32,12,187,231,21,124,101,135,73,123,64,63,0,106,212,30,202,134,10,39,94,191,6,
    3,73,183,3,85,72,108,227,184,185,248,179,208,202,71,241,142,83,118,129,165,184,206,242,122,46,15,183,
    249,24,125,107,82,155,248,35,237,152,11,24,55,144,171,96,164,169,148,134,193,180,243,82,38,237,1,40,
    119,57,194,199,67,117,88,176,48,212,101,239,178,20,238,30,134,74,95,68,172,244,57,79,154,21,26,78,
    192,54,171,205,23,80,193,140,101,134,187,59,160,116,239,105,190,42,166,254,196,167,105,27,201,6,210,72,
    224,3,120,124,53,160,25,151,25,204,94,147,32,46,127,191,64,55,235,144,247,74,241,115,50,125,1,164,
    122,181,123,225,2,128,47,120,156,107,102,249,194,44,145,146,154,83,146,168,144,90,80,172,144,148,10,98,
    0,113,73,6,144,220,40,119,135,17,0,199,6,12,1,104,128,87,120,156,107,102,249,193,188,145,237,7,
    35,0,14,226,3,51,58,120,156,83,86,212,79,202,204,211,47,206,224,2,0,14,66,2,193,146,248,233,
    3,87,213,79,177,205,160,245,184,145,44,230,235,193,175,74,217,
};

static const unsigned char pack_ref[] = {
    80,65,67,75,0,0,0,2,0,0,0,7,150,7,120,156,43,41,74,77,85,176,72,54,52,53,50,54,
    74,52,73,50,79,53,78,54,73,180,76,75,54,55,50,55,176,48,48,54,77,54,49,180,52,74,51,79,
    51,73,77,53,182,224,74,44,45,201,200,47,82,112,84,176,73,116,168,176,83,48,52,55,128,2,5,109,
    16,201,149,156,159,155,155,89,82,146,138,71,9,87,126,94,42,23,0,117,220,30,145,174,3,120,156,51,
    49,0,2,133,130,156,210,116,134,140,222,152,79,66,203,166,135,197,238,188,20,244,238,147,219,183,61,146,
    139,147,13,13,12,204,77,77,21,138,74,243,24,164,84,90,85,101,140,151,179,24,89,250,76,254,221,105,
    204,247,73,100,255,73,0,234,117,24,12,163,6,120,156,51,52,48,48,51,49,81,72,212,43,169,40,97,
    104,123,251,230,171,170,253,166,19,215,44,147,124,221,194,23,236,146,154,81,181,222,16,162,32,9,172,32,
    102,81,190,61,207,234,3,223,159,127,247,58,118,114,190,224,173,228,62,247,13,80,5,201,96,5,165,76,
    79,243,143,250,196,127,180,50,82,17,45,73,154,80,144,170,56,229,22,0,195,117,40,94,179,32,120,156,
    101,81,65,14,195,32,12,187,231,21,124,101,135,73,123,64,63,0,106,212,30,202,134,10,39,94,191,6,
    3,73,183,3,85,72,108,227,184,185,248,179,208,202,71,241,142,83,118,129,165,184,206,242,122,46,15,183,
    249,24,125,107,82,155,248,35,237,152,11,24,55,144,171,96,164,169,148,134,193,180,243,82,38,237,1,40,
    119,57,194,199,67,117,88,176,48,212,101,239,178,20,238,30,134,74,95,68,172,244,57,79,154,21,26,78,
    192,54,171,205,23,80,193,140,101,134,187,59,160,116,239,105,190,42,166,254,196,167,105,27,201,6,210,72,
    224,3,120,124,53,160,25,151,25,204,94,147,32,46,127,191,64,55,235,144,247,74,241,115,50,125,1,164,
    122,181,123,241,2,117,2,229,111,197,76,95,241,58,50,36,21,116,98,144,112,101,33,148,218,120,156,107,
    102,249,194,44,145,146,154,83,146,168,144,90,80,172,144,148,10,98,0,113,73,6,144,220,40,119,135,17,
    0,199,6,12,1,120,117,2,229,111,197,76,95,241,58,50,36,21,116,98,144,112,101,33,148,218,120,156,
    107,102,249,193,188,145,237,7,35,0,14,226,3,51,58,120,156,83,86,212,79,202,204,211,47,206,224,2,
    0,14,66,2,193,64,12,214,220,203,132,169,25,219,131,194,248,96,140,114,60,147,114,67,243,
};

/* What is in both: commit, two trees, four blobs. */
static const char *const pack_ids[] = {
    "98fd6470164bb71c53a2a2c647413f1bff5b9226", "8c15232a4b7e3c4a9fc72708035c4192f7f4ee38",
    "688d5cf212a697565db9d252eef246f6bc19a363", "7502e56fc54c5ff13a32241574629070652194da",
    "86edecf5253fb2c8d639624d4657a0ba1a987aaf", "5ca26f3f0cabc0f7e7f74ac6c99f11da638e47b0",
    "1a2485251c33a70432394c93fb89330ef214bfc9",
};

/* --- a store in memory, and packs to put into it ---------------------------------- */

static bool pack_test__write(void *ctx, Str bytes, Err *err)
{
    Buf *b = ctx;

    (void)err;
    buf_add(b, bytes);
    assert_false(b->over);
    return true;
}

static bool pack_test__get(void *ctx, uint64_t at, char *p, size_t n, Err *err)
{
    Buf *b = ctx;

    (void)err;
    assert_true(at <= b->n && n <= b->n - at);
    memcpy(p, b->p + at, n);
    return true;
}

typedef struct PackTest {
    Buf   store;
    Pack *p;
    Err   err;
} PackTest;

static PackTest *pack_test__open(uint64_t bytes, uint64_t inflated)
{
    PackTest *t = calloc(1, sizeof *t);

    t->store = buf_make((size_t)64 << 20);
    t->p = pack_open(OBJECT_SHA1, &(PackStore){{pack_test__write, &t->store}, pack_test__get}, bytes, inflated);
    return t;
}

static void pack_test__close(PackTest *t)
{
    pack_free(t->p);
    buf_free(&t->store);
    free(t);
}

static Step pack_test__resolve(PackTest *t)
{
    Step step;

    while ((step = pack_resolve(t->p, &t->err)) == STEP_MORE)
        continue;
    if (step == STEP_ERR)
        assert_int_equal(t->err.code, E8010);
    return step;
}

/* Fed at once and resolved: STEP_DONE when all went well. */
static Step pack_test__all(PackTest *t, Str pack)
{
    Step step = pack_feed(t->p, pack, &t->err);

    return step == STEP_DONE ? pack_test__resolve(t) : step;
}

/* A zlib stream of stored blocks. */
static void pack_test__zlib(Buf *b, Str data)
{
    uint32_t one = 1, two = 0;

    buf_add(b, STR("\x78\x01"));
    for (size_t i = 0; i < data.n; i++) {
        one = (one + (unsigned char)data.p[i]) % 65521;
        two = (two + one) % 65521;
    }
    do {
        size_t n = data.n < 65535 ? data.n : 65535;
        buf_addc(b, n == data.n);
        buf_addc(b, (char)(n & 255)), buf_addc(b, (char)(n >> 8));
        buf_addc(b, (char)(~n & 255)), buf_addc(b, (char)(~n >> 8 & 255));
        buf_add(b, (Str){data.p, n});
        str_skip(&data, n);
    } while (data.n);
    for (int i = 1; i >= 0; i--)
        buf_addc(b, (char)(two >> (8 * i)));
    for (int i = 1; i >= 0; i--)
        buf_addc(b, (char)(one >> (8 * i)));
}

static void pack_test__begin(Buf *b, unsigned count)
{
    *b = buf_make((size_t)64 << 20);
    buf_add(b, (Str){"PACK\0\0\0\2", 8});
    for (int i = 3; i >= 0; i--)
        buf_addc(b, (char)(count >> (8 * i)));
}

/* The head of an object; where it began. */
static size_t pack_test__head(Buf *b, int kind, uint64_t size)
{
    size_t at = b->n;

    buf_addc(b, (char)(kind << 4 | (int)(size & 15) | (size >> 4 ? 128 : 0)));
    for (size >>= 4; size; size >>= 7)
        buf_addc(b, (char)((size & 127) | (size >> 7 ? 128 : 0)));
    return at;
}

static size_t pack_test__put(Buf *b, int kind, Str data)
{
    size_t at = pack_test__head(b, kind, data.n);

    pack_test__zlib(b, data);
    return at;
}

static size_t pack_test__ofs(Buf *b, size_t base, Str delta)
{
    size_t        at = pack_test__head(b, 6, delta.n), n = 0;
    uint64_t      distance = at - base;
    unsigned char digits[10];

    digits[n++] = distance & 127;
    while (distance >>= 7)
        digits[n++] = (unsigned char)(128 | (--distance & 127));
    while (n)
        buf_addc(b, (char)digits[--n]);
    pack_test__zlib(b, delta);
    return at;
}

static size_t pack_test__ref(Buf *b, const ObjectId *base, Str delta)
{
    size_t at = pack_test__head(b, 7, delta.n);

    buf_add(b, (Str){(const char *)base->b, SHA1_SIZE});
    pack_test__zlib(b, delta);
    return at;
}

static Str pack_test__end(Buf *b)
{
    ObjectDigest d = object_digest(OBJECT_SHA1);
    ObjectId     id;

    object_digest_add(&d, buf_str(b));
    object_digest_end(&d, &id);
    buf_add(b, (Str){(const char *)id.b, SHA1_SIZE});
    return buf_str(b);
}

static ObjectId pack_test__id(ObjectType type, Str content)
{
    ObjectId id;

    object_id_of(OBJECT_SHA1, type, content, &id);
    return id;
}

/* It is there, and reads as what has its id. */
static bool pack_test__has(PackTest *t, const ObjectId *id)
{
    const PackObject *o = pack_find(t->p, id);
    ObjectId          is;

    if (!o)
        return false;
    char *p = malloc(o->size + 1);
    assert_true(pack_read(t->p, o, p, &t->err));
    object_id_of(OBJECT_SHA1, (ObjectType)o->type, (Str){p, o->size}, &is);
    assert_int_equal(object_id_cmp(&is, id), 0);
    free(p);
    return true;
}

/* --- what git made ----------------------------------------------------------------- */

static void pack_test__real(PackTest *t)
{
    assert_int_equal(pack_test__resolve(t), STEP_DONE);
    for (size_t i = 0; i < COUNT_OF(pack_ids); i++) {
        ObjectId id;
        assert_true(object_id_read(OBJECT_SHA1, str_from(pack_ids[i]), &id));
        assert_true(pack_test__has(t, &id));
        id.b[19] ^= 1;
        assert_null(pack_find(t->p, &id));
    }
}

static const Str pack_real[] = {{(const char *)pack_ofs, sizeof pack_ofs}, {(const char *)pack_ref, sizeof pack_ref}};

static void pack_cut_test(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pack_real); i++) {
        Str whole = pack_real[i];
        for (size_t cut = 1; cut < whole.n; cut++) {
            PackTest *t = pack_test__open(whole.n, 4096);
            assert_int_equal(pack_feed(t->p, guard_copy((Str){whole.p, cut}), &t->err), STEP_MORE);
            assert_int_equal(pack_feed(t->p, guard_copy((Str){whole.p + cut, whole.n - cut}), &t->err), STEP_DONE);
            pack_test__real(t);
            pack_test__close(t);
        }
        PackTest *t = pack_test__open(whole.n, 4096);
        for (size_t at = 0; at < whole.n; at++)
            assert_int_equal(pack_feed(t->p, guard_copy((Str){whole.p + at, 1}), &t->err), at + 1 < whole.n ? STEP_MORE : STEP_DONE);
        assert_int_equal(pack_feed(t->p, (Str){"", 0}, &t->err), STEP_DONE);
        pack_test__real(t);
        assert_int_equal(pack_feed(t->p, STR("x"), &t->err), STEP_ERR);
        pack_test__close(t);
    }
}

/* One byte changed anywhere, and cut anywhere: never a pack. */
static void pack_damage_test(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pack_real); i++) {
        char *p = malloc(pack_real[i].n);
        for (size_t at = 0; at < pack_real[i].n; at++) {
            for (int bit = 0; bit < 8; bit++) {
                PackTest *t = pack_test__open(4096, 4096);
                memcpy(p, pack_real[i].p, pack_real[i].n);
                p[at] = (char)(p[at] ^ 1 << bit);
                assert_int_not_equal(pack_feed(t->p, guard_copy((Str){p, pack_real[i].n}), &t->err), STEP_DONE);
                pack_test__close(t);
            }
            PackTest *t = pack_test__open(4096, 4096);
            assert_int_equal(pack_feed(t->p, guard_copy((Str){pack_real[i].p, at}), &t->err), STEP_MORE);
            pack_test__close(t);
        }
        free(p);
    }
}

/* --- deltas ------------------------------------------------------------------------ */

#define PACK_S(lit) {lit, sizeof lit - 1}

static void pack_delta_test(void **state)
{
    static const struct { Str base, delta, want; } cases[] = {
        {PACK_S("hello"), PACK_S("\5\5\x90\5"), PACK_S("hello")},
        {PACK_S("hello"), PACK_S("\5\7\x91\1\4\3, x"), PACK_S("ello, x")},
        {PACK_S("hello"), PACK_S("\5\0"), PACK_S("")},
        {PACK_S(""), PACK_S("\0\1\1x"), PACK_S("x")},
        {PACK_S("hello"), PACK_S("\5\5\xff\0\0\0\0\5\0\0"), PACK_S("hello")},       /* all seven bytes */
        /* wrong */
        {PACK_S("hello"), PACK_S("\5\5\x90\6"), {0}},
        {PACK_S("hello"), PACK_S("\5\5\x91\1\5"), {0}},
        {PACK_S("hello"), PACK_S("\5\5\x91\6\1"), {0}},
        {PACK_S("hello"), PACK_S("\5\5\xff\xff\xff\xff\xff\xff\xff\xff"), {0}},
        {PACK_S("hello"), PACK_S("\5\5\x80"), {0}},             /* 65,536 bytes */
        {PACK_S("hello"), PACK_S("\5\5\x90\4"), {0}},           /* too little */
        {PACK_S("hello"), PACK_S("\5\4\x90\5"), {0}},           /* too much */
        {PACK_S("hello"), PACK_S("\5\5\x90"), {0}},
        {PACK_S("hello"), PACK_S("\5\5\0"), {0}},
        {PACK_S("hello"), PACK_S("\5\5\5hell"), {0}},
        {PACK_S("hello"), PACK_S("\5"), {0}},
        {PACK_S("hello"), PACK_S(""), {0}},
        {PACK_S("hello"), PACK_S("\x85"), {0}},
        {PACK_S("hello"), PACK_S("\5\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"), {0}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str      delta = guard_copy(cases[i].delta);
        uint64_t from, size;
        char     out[16];
        Err      err = {0};
        bool     ok = delta_sizes(&delta, &from, &size, &err);
        if (ok) {
            assert_int_equal(from, cases[i].base.n);
            assert_true(size <= sizeof out);
            ok = delta_apply(cases[i].base, delta, out, (size_t)size, &err);
        }
        if (ok != (cases[i].want.p != NULL) || (ok && !str_eq((Str){out, (size_t)size}, cases[i].want)))
            fail_msg("delta %zu: %s", i, ok ? "taken" : err.text);
        assert_int_equal(err.code, ok ? E0000 : E8010);
    }
}

/* Bases that come later, deltas of deltas, one base for several, one object twice. */
static void pack_bases_test(void **state)
{
    PackTest *t = pack_test__open(4096, 4096);
    Str       a = STR("hello"), b = STR("hello, x"), c = STR("hello, x."), d = STR("ello");
    ObjectId  ida = pack_test__id(OBJECT_BLOB, a), idb = pack_test__id(OBJECT_BLOB, b), idc = pack_test__id(OBJECT_BLOB, c),
              idd = pack_test__id(OBJECT_BLOB, d);
    Buf       pack;

    (void)state;
    pack_test__begin(&pack, 6);
    pack_test__ref(&pack, &idb, STR("\x08\x09\x90\x08\1."));
    pack_test__ref(&pack, &ida, STR("\5\x08\x90\5\3, x"));
    size_t at = pack_test__put(&pack, OBJECT_BLOB, a);
    pack_test__ofs(&pack, at, STR("\5\4\x91\1\4"));
    pack_test__put(&pack, OBJECT_BLOB, a);
    pack_test__put(&pack, OBJECT_TREE, STR(""));
    assert_int_equal(pack_test__all(t, pack_test__end(&pack)), STEP_DONE);
    assert_true(pack_test__has(t, &ida) && pack_test__has(t, &idb) && pack_test__has(t, &idc) && pack_test__has(t, &idd));
    assert_int_equal(pack_find(t->p, &idc)->size, 9);
    buf_free(&pack);
    pack_test__close(t);
}

static void pack_none_test(void **state)
{
    PackTest *t = pack_test__open(4096, 4096);
    ObjectId  id = {{0}};
    Buf       pack;

    (void)state;
    pack_test__begin(&pack, 0);
    assert_int_equal(pack_test__all(t, pack_test__end(&pack)), STEP_DONE);
    assert_null(pack_find(t->p, &id));
    buf_free(&pack);
    pack_test__close(t);
}

/* --- what no pack may be ------------------------------------------------------------ */

typedef struct PackBad { const char *name; void (*make)(Buf *b); } PackBad;

static void pack_bad_version(Buf *b)    { pack_test__begin(b, 0); b->p[7] = 4; }
static void pack_bad_magic(Buf *b)      { pack_test__begin(b, 0); b->p[0] = 'p'; }
static void pack_bad_kind_0(Buf *b)     { pack_test__begin(b, 1); pack_test__put(b, 0, STR("x")); }
static void pack_bad_kind_5(Buf *b)     { pack_test__begin(b, 1); pack_test__put(b, 5, STR("x")); }
static void pack_bad_many(Buf *b)       { pack_test__begin(b, LIMIT_PACK_OBJECTS + 1); }
static void pack_bad_fewer(Buf *b)      { pack_test__begin(b, 1); pack_test__put(b, 3, STR("x")); pack_test__put(b, 3, STR("y")); }
static void pack_bad_longer(Buf *b)     { pack_test__begin(b, 1); pack_test__head(b, 3, 2); pack_test__zlib(b, STR("x")); }
static void pack_bad_shorter(Buf *b)    { pack_test__begin(b, 1); pack_test__head(b, 3, 1); pack_test__zlib(b, STR("xy")); }
static void pack_bad_nothing(Buf *b)    { pack_test__begin(b, 1); pack_test__head(b, 3, 0); pack_test__zlib(b, STR("x")); }
static void pack_bad_huge(Buf *b)       { pack_test__begin(b, 1); pack_test__head(b, 3, (uint64_t)1 << 40); pack_test__zlib(b, STR("x")); }
static void pack_bad_endless(Buf *b)    { pack_test__begin(b, 1); for (int i = 0; i < 99; i++) buf_addc(b, '\xb0'); }
static void pack_bad_no_base(Buf *b)    { ObjectId id = {{1}}; pack_test__begin(b, 1); pack_test__ref(b, &id, STR("\1\1\x90\1")); }
static void pack_bad_self(Buf *b)       { pack_test__begin(b, 1); pack_test__ofs(b, b->n, STR("\1\1\x90\1")); }
static void pack_bad_header(Buf *b)     { pack_test__begin(b, 1); pack_test__ofs(b, 0, STR("\1\1\x90\1")); }

static void pack_bad_before(Buf *b)
{
    pack_test__begin(b, 1);
    pack_test__head(b, 6, 4);
    buf_addc(b, 127);
    pack_test__zlib(b, STR("\1\1\x90\1"));
}

static void pack_bad_distance(Buf *b)
{
    pack_test__begin(b, 1);
    pack_test__head(b, 6, 4);
    for (int i = 0; i < 20; i++)
        buf_addc(b, '\xff');
}

static void pack_bad_middle(Buf *b)
{
    pack_test__begin(b, 2);
    size_t at = pack_test__put(b, 3, STR("x"));
    pack_test__ofs(b, at + 1, STR("\1\1\x90\1"));
}

static void pack_bad_source_size(Buf *b)
{
    pack_test__begin(b, 2);
    size_t at = pack_test__put(b, 3, STR("x"));
    pack_test__ofs(b, at, STR("\2\1\x90\1"));
}

static void pack_bad_instruction(Buf *b)
{
    pack_test__begin(b, 2);
    size_t at = pack_test__put(b, 3, STR("x"));
    pack_test__ofs(b, at, STR("\1\2\x90\1"));
}

/* Two that stand on each other, as far as they say. */
static void pack_bad_loop(Buf *b)
{
    ObjectId x = pack_test__id(OBJECT_BLOB, STR("x")), y = pack_test__id(OBJECT_BLOB, STR("y"));

    pack_test__begin(b, 3);
    pack_test__ref(b, &x, STR("\1\1\1y"));
    pack_test__ref(b, &y, STR("\1\1\1x"));
    pack_test__put(b, 3, STR("z"));
}

/* 6,000 times a small delta that makes 1 MiB of 64 KiB: more than may come out. */
static void pack_bad_bomb(Buf *b)
{
    char   base[65536];
    char   delta[6 + 16] = "\x80\x80\x04\x80\x80\x40";

    pack_test__begin(b, 6001);
    memset(base, 0, sizeof base);
    size_t at = pack_test__put(b, 3, (Str){base, sizeof base});
    memset(delta + 6, '\x80', 16);
    for (int i = 0; i < 6000; i++)
        pack_test__ofs(b, at, (Str){delta, sizeof delta});
}

static const PackBad pack_bad[] = {
    {"version", pack_bad_version}, {"magic", pack_bad_magic}, {"kind 0", pack_bad_kind_0}, {"kind 5", pack_bad_kind_5},
    {"too many", pack_bad_many}, {"fewer than there are", pack_bad_fewer}, {"longer", pack_bad_longer},
    {"shorter", pack_bad_shorter}, {"nothing", pack_bad_nothing}, {"huge", pack_bad_huge}, {"endless head", pack_bad_endless},
    {"no base", pack_bad_no_base}, {"itself", pack_bad_self}, {"base in the header", pack_bad_header},
    {"base before the pack", pack_bad_before}, {"distance", pack_bad_distance}, {"base in the middle", pack_bad_middle},
    {"source size", pack_bad_source_size}, {"instruction", pack_bad_instruction}, {"loop", pack_bad_loop},
    {"bomb", pack_bad_bomb},
};

static void pack_bad_test(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pack_bad); i++) {
        PackTest *t = pack_test__open((uint64_t)64 << 20, (uint64_t)64 << 20);
        Buf       b;
        pack_bad[i].make(&b);
        if (pack_test__all(t, pack_test__end(&b)) != STEP_ERR)
            fail_msg("%s: taken", pack_bad[i].name);
        assert_int_equal(t->err.code, E8010);
        buf_free(&b);
        pack_test__close(t);
    }
}

/* --- limits ------------------------------------------------------------------------- */

static void pack_limit_test(void **state)
{
    (void)state;
    for (int over = 0; over < 2; over++) {
        PackTest *t = pack_test__open(sizeof pack_ofs - (unsigned)over, 4096);
        assert_int_equal(pack_feed(t->p, pack_real[0], &t->err), over ? STEP_ERR : STEP_DONE);
        assert_int_equal(t->err.kind, over ? ERR_LIMIT : ERR_NONE);
        pack_test__close(t);
    }
    /* What comes out while it is fed, and while deltas are made: 845 and then some. */
    uint64_t least = 0;
    for (uint64_t most = 700; most < 4096 && !least; most++) {
        PackTest *t = pack_test__open(4096, most);
        if (pack_test__all(t, pack_real[0]) == STEP_DONE)
            least = most;
        else
            assert_int_equal(t->err.kind, ERR_LIMIT);
        pack_test__close(t);
    }
    assert_in_range(least, 845 + 2 * 500, 845 + 3 * 600);
}

/* Chains as long as git makes them, and one longer. */
static void pack_chain_test(void **state)
{
    (void)state;
    for (unsigned n = LIMIT_PACK_CHAIN; n <= LIMIT_PACK_CHAIN + 2; n += 2) {
        PackTest *t = pack_test__open((uint64_t)1 << 20, (uint64_t)64 << 20);
        Buf       b;
        char      delta[8] = {4, 4, '\x91', 0, 0, 4};
        pack_test__begin(&b, n + 1);
        size_t    at = pack_test__put(&b, OBJECT_BLOB, STR("base"));
        for (unsigned i = 0; i < n; i++) {      /* each says another number */
            memcpy(delta + 2, (char[]){4, (char)i, (char)(i >> 8), 'x', 'y'}, 5);
            at = pack_test__ofs(&b, at, (Str){delta, 7});
        }
        assert_int_equal(pack_test__all(t, pack_test__end(&b)), n > LIMIT_PACK_CHAIN ? STEP_ERR : STEP_DONE);
        if (n <= LIMIT_PACK_CHAIN) {
            ObjectId id = pack_test__id(OBJECT_BLOB, (Str){(char[]){(char)(n - 1), (char)((n - 1) >> 8), 'x', 'y'}, 4});
            assert_true(pack_test__has(t, &id));
        }
        buf_free(&b);
        pack_test__close(t);
    }
}

static void pack_test__number(Buf *b, uint64_t v)
{
    for (; v >> 7; v >>= 7)
        buf_addc(b, (char)(v | 128));
    buf_addc(b, (char)v);
}

/* A delta: all of a base of n bytes, and one byte more. */
static void pack_test__grow(Buf *delta, size_t n, char more)
{
    *delta = buf_make(1024);
    pack_test__number(delta, n);
    pack_test__number(delta, n + 1);
    for (size_t at = 0; at < n; at += 0xffffff) {
        size_t size = n - at < 0xffffff ? n - at : 0xffffff;
        buf_addc(delta, '\xff');
        for (int i = 0; i < 4; i++)
            buf_addc(delta, (char)(at >> (8 * i)));
        for (int i = 0; i < 3; i++)
            buf_addc(delta, (char)(size >> (8 * i)));
    }
    buf_addc(delta, 1);
    buf_addc(delta, more);
}

/* Contents that are not all kept: each link of a chain has a second delta on
 * it, which is resolved after the longer branch. */
static void pack_keep_test(void **state)
{
    enum { DEPTH = 5, SIZE = 3 << 20 };
    PackTest *t = pack_test__open((uint64_t)16 << 20, (uint64_t)300 << 20);
    Buf       b, delta;
    char     *content = malloc(SIZE + DEPTH + 1);
    size_t    at, next;

    (void)state;
    assert_true(SIZE * (DEPTH - 1) > LIMIT_PACK_KEEP);
    memset(content, 'a', SIZE + DEPTH + 1);
    pack_test__begin(&b, 1 + 2 * DEPTH);
    at = pack_test__put(&b, OBJECT_BLOB, (Str){content, SIZE});
    for (size_t i = 0; i < DEPTH; i++) {
        /* The last one that names a base is the first to be resolved. */
        pack_test__grow(&delta, SIZE + i, 'b');
        pack_test__ofs(&b, at, buf_str(&delta));
        buf_free(&delta);
        pack_test__grow(&delta, SIZE + i, 'a');
        next = pack_test__ofs(&b, at, buf_str(&delta));
        buf_free(&delta);
        at = next;
    }
    assert_int_equal(pack_test__all(t, pack_test__end(&b)), STEP_DONE);
    for (size_t i = 0; i < DEPTH; i++) {
        ObjectId id = pack_test__id(OBJECT_BLOB, (Str){content, SIZE + i + 1});
        assert_true(pack_test__has(t, &id));
        content[SIZE + i] = 'b';
        id = pack_test__id(OBJECT_BLOB, (Str){content, SIZE + i + 1});
        content[SIZE + i] = 'a';
        assert_true(pack_test__has(t, &id));
    }
    free(content);
    buf_free(&b);
    pack_test__close(t);
}

/* A result of the most bytes is made; one byte more, and it is as if it were not there. */
static void pack_large_test(void **state)
{
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        PackTest *t = pack_test__open((uint64_t)16 << 20, (uint64_t)300 << 20);
        size_t    n = LIMIT_PACK_OBJECT - 1 + over;
        char     *content = calloc(1, n + 1);
        ObjectId  base = pack_test__id(OBJECT_BLOB, (Str){content, n}), made, other = pack_test__id(OBJECT_BLOB, STR("x"));
        Buf       b, delta;
        pack_test__begin(&b, 3);
        size_t at = pack_test__put(&b, OBJECT_BLOB, (Str){content, n});
        pack_test__grow(&delta, n, 'b');
        pack_test__ofs(&b, at, buf_str(&delta));
        pack_test__put(&b, OBJECT_BLOB, STR("x"));
        assert_int_equal(pack_test__all(t, pack_test__end(&b)), STEP_DONE);
        content[n] = 'b';
        made = pack_test__id(OBJECT_BLOB, (Str){content, n + 1});
        assert_true(pack_test__has(t, &base) && pack_test__has(t, &other));
        assert_int_equal(pack_test__has(t, &made), !over);
        buf_free(&delta);
        buf_free(&b);
        free(content);
        pack_test__close(t);
    }
}

static const struct CMUnitTest pack_tests[] = {
    cmocka_unit_test(pack_cut_test),
    cmocka_unit_test(pack_damage_test),
    cmocka_unit_test(pack_delta_test),
    cmocka_unit_test(pack_bases_test),
    cmocka_unit_test(pack_none_test),
    cmocka_unit_test(pack_bad_test),
    cmocka_unit_test(pack_limit_test),
    cmocka_unit_test(pack_chain_test),
    cmocka_unit_test(pack_keep_test),
    cmocka_unit_test(pack_large_test),
};
