#include "host/archive.h"

#include <zlib.h>

/* One gzip member of blocks that are stored as they are (RFC 1951, 3.2.4). */
static void archive_test__gzip(Str in, Buf *to)
{
    uint32_t sum = (uint32_t)crc32(crc32(0, NULL, 0), (const unsigned char *)in.p, (unsigned)in.n), size = (uint32_t)in.n;

    buf_add(to, (Str){"\x1f\x8b\x08\0\0\0\0\0\0\xff", 10});
    do {
        uint16_t n = (uint16_t)(in.n < 65535 ? in.n : 65535), not_n = (uint16_t)~n;
        buf_addc(to, n == in.n);
        buf_add(to, (Str){(const char *)&n, 2});
        buf_add(to, (Str){(const char *)&not_n, 2});
        buf_add(to, (Str){in.p, n});
        str_skip(&in, n);
    } while (in.n);
    buf_add(to, (Str){(const char *)&sum, 4});
    buf_add(to, (Str){(const char *)&size, 4});
}

/* A Source that gives a few bytes at a time, then zeros, and may fail. */
typedef struct ArchiveTest { Str rest; size_t piece; int64_t zeros; bool fails; } ArchiveTest;

static bool archive_test__read(void *ctx, char *p, size_t cap, size_t *n, Err *err)
{
    ArchiveTest *t = ctx;

    if (t->rest.n == 0 && t->fails)
        return err_set(err, ERR_CLOSED, E5000, "the line is dead");
    *n = t->piece < cap ? t->piece : cap;
    if (t->rest.n == 0) {
        *n = t->zeros < (int64_t)*n ? (size_t)t->zeros : *n;
        t->zeros -= (int64_t)*n;
        memset(p, 0, *n);
        return true;
    }
    *n = t->rest.n < *n ? t->rest.n : *n;
    memcpy(p, t->rest.p, *n);
    str_skip(&t->rest, *n);
    return true;
}

static bool archive_test__get(Str bytes, size_t piece, ArchiveAsk ask, Tree *out, Err *err)
{
    ArchiveTest t = {bytes, piece, 0, false};

    return archive_read((Source){archive_test__read, &t, -1}, &ask, out, err);
}

/* "path x bytes|" of each file. */
static void archive_test__is(Str bytes, ArchiveAsk ask, const char *want)
{
    static const size_t pieces[] = {1, 1000};
    Buf  zipped = buf_make(1 << 22), got = buf_make(1 << 22);
    Tree t;
    Err  err;

    archive_test__gzip(bytes, &zipped);
    for (size_t i = 0; i < 2 * COUNT_OF(pieces); i++) {
        buf_clear(&got);
        if (!archive_test__get(i % 2 ? buf_str(&zipped) : bytes, pieces[i / 2], ask, &t, &err))
            fail_msg("'%s': %s", want, err.text);
        for (size_t k = 0; k < t.n; k++)
            buf_addf(&got, "%.*s %c %.*s|", STR_ARG(t.v[k].path), t.v[k].executable ? 'x' : '-', STR_ARG(t.v[k].bytes));
        if (!str_eq(buf_str(&got), str_from(want)))
            fail_msg("'%.*s' for '%s'", STR_ARG(buf_str(&got)), want);
        tree_free(&t);
    }
    buf_free(&zipped);
    buf_free(&got);
}

static void archive_test__refused(Str bytes, ArchiveAsk ask, Code code, const char *said)
{
    Buf  zipped = buf_make(1 << 22);
    Tree t;
    Err  err;

    archive_test__gzip(bytes, &zipped);
    for (int i = 0; i < 2; i++) {
        if (archive_test__get(i ? buf_str(&zipped) : bytes, 65536, ask, &t, &err))
            fail_msg("taken, not '%s'", said);
        if (err.code != code || !strstr(err.text, said))
            fail_msg("'%s' (E%d) for '%s'", err.text, err.code, said);
        assert_null(t.v);
        assert_null(t.own.p);
        ask.sha256 = (Str){0};
        if (code == ask.mismatch)
            break;
    }
    buf_free(&zipped);
}

static void archive_test__mode(Buf *b, const char *name, const char *mode)
{
    char *p = tar_test__head(b, name, '0', "0", "ustar");

    memcpy(p + 100, mode, 8);
    tar_test__sum(p);
}

static const ArchiveAsk archive_test__any = {.mismatch = E8011};

static void archive_root_test(void **state)
{
    static const struct { const char *names[8], *subdir, *want; } rows[] = {
        {{"abx-provider.toml", "a", NULL}, "", "a - |abx-provider.toml - |"},
        {{"p/", "p/abx-provider.toml", "p/a/b", NULL}, "", "a/b - |abx-provider.toml - |"},
        {{"p/abx-provider.toml", "README", "p/a", NULL}, "", "a - |abx-provider.toml - |"},     /* a file beside it is no folder */
        {{"p/abx-provider.toml", "abx-provider.toml", "q/", NULL}, "", "abx-provider.toml - |p/abx-provider.toml - |"},
        {{"p/a", "q/b", NULL}, "", "p/a - |q/b - |"},
        {{"p/q/a", NULL}, "", "q/a - |"},                                                       /* one step only */
        {{"a", NULL}, "", "a - |"}, {{NULL}, "", ""}, {{"p/", NULL}, "", ""},
        {{"./", "./abx-provider.toml", "./a/", "./a//b/./c", NULL}, "", "a/b/c - |abx-provider.toml - |"},
        {{"/p/", "//p/abx-provider.toml", NULL}, "", "abx-provider.toml - |"},
        {{"p/", "p/.git/x", "p/.git/", "p/a", "p/a/.git/x2", NULL}, "", NULL},
        {{"p/.git/x", "p/b", "p/s/.git/y", "p/.abx-install.json", NULL}, "", "b - |s/.git/y - |"},
        {{".git/x", "abx-provider.toml", "v/.git/y", NULL}, "", "abx-provider.toml - |v/.git/y - |"},
        {{"v/.git/y", "v/.git/z", "abx-provider.toml", NULL}, "", "abx-provider.toml - |v/.git/y - |v/.git/z - |"},
        {{".git/x", "p/a", NULL}, "", "p/a - |"},
        {{"p/s/a", "p/s/.git/x", "p/b", "p/sx", NULL}, "s", "a - |"},
        {{"s/a", "s/b/c", "t", NULL}, "s", NULL},                                               /* `s` is the plugin, and has no folder `s` */
        {{"s/a", "s/b/c", "t/x", NULL}, "s", "a - |b/c - |"},
        {{"s/t/a", "u/x", NULL}, "s/t", "a - |"},
        {{"data/", "a", NULL}, "", NULL},
        {{"data/x", "abx-provider.toml", NULL}, "", NULL},
    };
    static const char *const said[] = {"unsafe entry a: it is a file and a folder", "no such folder", "", "`data` is for"};
    Buf    b = buf_make(1 << 20);
    size_t refused = 0;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ArchiveAsk ask = {.subdir = str_from(rows[i].subdir), .mismatch = E8011};
        buf_clear(&b);
        for (size_t k = 0; rows[i].names[k]; k++)
            archive_test__mode(&b, rows[i].names[k], "0000644");
        tar_test__end(&b);
        if (rows[i].want)
            archive_test__is(buf_str(&b), ask, rows[i].want);
        else if (*said[refused])
            archive_test__refused(buf_str(&b), ask, E8010, said[refused++]);
        else {
            archive_test__is(buf_str(&b), ask, "");     /* `data` alone with nothing in it is the one folder on top */
            refused++;
        }
    }
    assert_int_equal(refused, COUNT_OF(said));
    buf_free(&b);
}

static void archive_modes_test(void **state)
{
    Buf b = buf_make(1 << 20);

    (void)state;
    archive_test__mode(&b, "a", "0000644");
    archive_test__mode(&b, "b", "0000755");
    archive_test__mode(&b, "c", "0000677");     /* the owner's bit alone */
    archive_test__mode(&b, "d", "0004100");
    archive_test__mode(&b, "e", "0000000");
    tar_test__member(&b, "f", '0', STR("content"));
    tar_test__end(&b);
    archive_test__is(buf_str(&b), archive_test__any, "a - |b x |c - |d x |e - |f x content|");
    buf_free(&b);
}

static void archive_unsafe_test(void **state)
{
    static const struct { const char *name; char type; const char *said; } rows[] = {
        {"p/../../x", '0', "unsafe entry p/../../x: `..`"}, {"..", '5', "`..`"}, {"p/..", '5', "`..`"}, {"../p", '2', "`..`"},
        {"p/l", '2', "unsafe entry l: a link"}, {"p/h", '1', "unsafe entry h: a link"}, {"p/c", '3', "unsafe entry p/c: a device"},
        {"p/b", '4', "a device"}, {"p/f", '6', "a FIFO"}, {"p/.git/f", '6', "a FIFO"}, {"p/s", 'S', "sparse"},
        {"p/con", '0', "unsafe entry con: the name of a device"}, {"p/a\\b", '0', "backslash"}, {"p/\xff", '0', "not UTF-8"},
        {"p/b\x1b[1m.", '0', "unsafe entry b.: a part of the path ends in a dot"}, {"", '0', "a file without a name"},
        {"./", '2', "a file without a name"}, {"p/data/x", '0', "`data`"}, {"p/A", '0', "in case alone"}, {"p/a", '0', "there twice"},
        {"p/a/b", '0', "a file and a folder"},
    };
    Buf b = buf_make(1 << 20);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        buf_clear(&b);
        tar_test__member(&b, "p/a", '0', STR("a"));
        tar_test__member(&b, rows[i].name, rows[i].type, STR(""));
        tar_test__end(&b);
        archive_test__refused(buf_str(&b), archive_test__any, E8010, rows[i].said);
    }
    /* Links that are not the plugin's do no harm. */
    buf_clear(&b);
    tar_test__member(&b, "p/a", '0', STR("a"));
    tar_test__member(&b, "p/.git/l", '2', STR(""));
    tar_test__member(&b, "p/.git", '2', STR(""));
    tar_test__member(&b, "p/.abx-install.json", '2', STR(""));
    tar_test__member(&b, "beside", '2', STR(""));
    tar_test__end(&b);
    archive_test__is(buf_str(&b), archive_test__any, "a x a|");
    buf_free(&b);
}

/* An archive of `files` with `size` bytes each, and `.git` folders that do not count. */
typedef struct ArchiveMany { int files, more; int64_t size; Buf head; size_t at; int64_t zeros; } ArchiveMany;

static bool archive_test__many(void *ctx, char *p, size_t cap, size_t *n, Err *err)
{
    ArchiveMany *m = ctx;
    char         name[40], size[16];

    (void)err;
    if (m->at == m->head.n && m->zeros == 0 && m->files + m->more >= 0) {
        buf_clear(&m->head);
        m->at = 0;
        if (m->files + m->more == 0) {
            m->files = -1, m->more = 0;
            tar_test__end(&m->head);
        } else {
            snprintf(name, sizeof name, m->files ? "p/%d" : "p/.git/%d", m->files ? m->files : m->more);
            snprintf(size, sizeof size, "%011llo", (unsigned long long)m->size);
            tar_test__head(&m->head, name, '0', size, "ustar");
            m->zeros = (m->size + 511) / 512 * 512;
            m->files ? m->files-- : m->more--;
        }
    }
    *n = m->head.n - m->at < cap ? m->head.n - m->at : cap;
    if (*n)
        memcpy(p, m->head.p + m->at, *n);
    m->at += *n;
    if (*n == 0) {
        *n = m->zeros < (int64_t)cap ? (size_t)m->zeros : cap;
        memset(p, 0, *n);
        m->zeros -= (int64_t)*n;
    }
    return true;
}

static void archive_limits_test(void **state)
{
    static const struct { int files, more; int64_t size; const char *said; } rows[] = {
        {LIMIT_TREE_FILES, 0, 0, NULL}, {LIMIT_TREE_FILES + 1, 0, 0, "more than 2000 files"},
        {LIMIT_TREE_FILES, LIMIT_TREE_FILES + 5, 1, NULL},      /* what is passed over is not counted */
        {1, 0, LIMIT_TREE_FILE, NULL}, {1, 0, LIMIT_TREE_FILE + 1, "unsafe entry p/1: larger than 10 MiB"},
        {5, 0, LIMIT_TREE_FILE, NULL}, {5, 6, LIMIT_TREE_FILE, NULL}, {6, 0, LIMIT_TREE_FILE, "more than 50 MiB in all files"},
        {1, 0, INT64_MAX / 2, "larger than 10 MiB"}, {0, 1, INT64_MAX / 2, "the archive has more than 512 MiB"},
        {0, LIMIT_ARCHIVE_NAMES, 0, NULL}, {0, LIMIT_ARCHIVE_NAMES + 1, 0, "more than 65536 entries"},
    };
    Tree t;
    Err  err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ArchiveMany m = {rows[i].files, rows[i].more, rows[i].size, buf_make(4096), 0, 0};
        bool ok = archive_read((Source){archive_test__many, &m, -1}, &archive_test__any, &t, &err);
        if (ok != !rows[i].said || (!ok && !strstr(err.text, rows[i].said)))
            fail_msg("row %zu: %s", i, ok ? "taken" : err.text);
        if (ok)
            assert_int_equal(t.n, rows[i].files);
        tree_free(&t);
        buf_free(&m.head);
    }
    /* What is packed may have 50 MiB, and not a byte more. */
    Buf zipped = buf_make(1 << 20), end = buf_make(4096);
    tar_test__end(&end);
    archive_test__gzip(buf_str(&end), &zipped);
    for (int over = 0; over < 2; over++) {
        ArchiveTest packed = {buf_str(&zipped), 1 << 20, LIMIT_ARCHIVE + over - (int64_t)zipped.n, false};
        assert_int_equal(archive_read((Source){archive_test__read, &packed, -1}, &archive_test__any, &t, &err), !over);
        tree_free(&t);
    }
    assert_string_equal(err.text, "the compressed archive has more than 50 MiB");
    buf_free(&zipped);
    buf_free(&end);
}

static void archive_kinds_test(void **state)
{
    static const struct { Str bytes; const char *said; } rows[] = {
        {{"BZh91AY&SY", 10}, "bzip2"}, {{"\xfd" "7zXZ\0\0", 7}, "xz"}, {{"\x28\xb5\x2f\xfd\0\0", 6}, "Zstandard"},
        {{"PK\3\4aaaa", 8}, "a zip archive"}, {{"LZIP\1", 5}, "lzip"}, {{"\x1f\x9d\x90", 3}, "compress"}, {{"", 0}, "cut short"},
        {{"<html>", 6}, "cut short"}, {{"\x1f", 1}, "cut short"}, {{"\x1f\x8b", 2}, "cut short"},
        {{"\x1f\x8b\x08\0\0\0\0\0\0\xff\x07", 11}, "damaged"},
    };
    char text[2048];
    Tree t;
    Err  err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (size_t piece = 1; piece < 12; piece++) {
            if (archive_test__get(rows[i].bytes, piece, archive_test__any, &t, &err))
                fail_msg("row %zu was taken", i);
            if (err.code != E8010 || !strstr(err.text, rows[i].said))
                fail_msg("row %zu: %s", i, err.text);
        }
    memset(text, 'a', sizeof text);
    assert_false(archive_test__get((Str){text, sizeof text}, 512, archive_test__any, &t, &err));
    assert_non_null(strstr(err.text, "no tar archive"));
}

/* Cut short at every byte, plain and packed, with and without a digest; and a Source that fails there. */
static void archive_short_test(void **state)
{
    Buf        b = buf_make(1 << 20), zipped = buf_make(1 << 20);
    ArchiveAsk ask = archive_test__any, with = {.sha256 = STR("0123"), .mismatch = E8002};
    Tree       t;
    Err        err;

    (void)state;
    tar_test__member(&b, "p/a", '0', STR("hello"));
    size_t whole = b.n + 512;
    tar_test__end(&b);
    archive_test__gzip(buf_str(&b), &zipped);
    for (size_t n = 0; n < b.n; n += n % 512 < 2 || n % 512 > 509 ? 1 : 85) {
        bool ok = archive_test__get((Str){b.p, n}, 300, ask, &t, &err);
        assert_int_equal(ok, n >= whole);
        tree_free(&t);
    }
    for (size_t n = 0; n < zipped.n; n += n < 16 || zipped.n - n < 12 ? 1 : 97) {
        assert_false(archive_test__get((Str){zipped.p, n}, 300, ask, &t, &err));
        assert_int_equal(err.code, E8010);
        assert_false(archive_test__get((Str){zipped.p, n}, 300, with, &t, &err));
        assert_int_equal(err.code, E8002);
        ArchiveTest dead = {{zipped.p, n}, 100, 0, true};
        assert_false(archive_read((Source){archive_test__read, &dead, -1}, n % 2 ? &ask : &with, &t, &err));
        assert_int_equal(err.code, E5000);
    }
    buf_free(&b);
    buf_free(&zipped);
}

static void archive_digest_test(void **state)
{
    ArchiveAsk    ask = {.mismatch = E8002};
    Buf           b = buf_make(1 << 20);
    unsigned char sum[SHA256_SIZE];
    char          hex[65];
    Tree          t;
    Err           err;

    (void)state;
    tar_test__member(&b, "p/l", '2', STR(""));                      /* a link: never to be used */
    tar_test__end(&b);
    for (int wrong = 0; wrong < 2; wrong++) {
        Sha256 h = sha256_make();
        sha256_add(&h, buf_str(&b));
        sha256_end(&h, sum);
        for (size_t i = 0; i < SHA256_SIZE; i++)
            snprintf(hex + 2 * i, 3, "%02x", sum[i] ^ (wrong && i == 31));
        ask.sha256 = str_from(hex);
        assert_false(archive_test__get(buf_str(&b), 1000, ask, &t, &err));
        assert_int_equal(err.code, wrong ? E8002 : E8010);          /* what is wrong in it counts when it is the right one */
    }
    buf_clear(&b);
    tar_test__member(&b, "p/a", '0', STR("x"));
    tar_test__end(&b);
    Sha256 h = sha256_make();
    sha256_add(&h, buf_str(&b));
    sha256_end(&h, sum);
    for (size_t i = 0; i < SHA256_SIZE; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    assert_true(archive_test__get(buf_str(&b), 1000, ask, &t, &err));
    assert_int_equal(t.n, 1);
    tree_free(&t);
    b.p[600] ^= 1;                                                   /* a byte that changes nothing else */
    assert_false(archive_test__get(buf_str(&b), 1000, ask, &t, &err));
    assert_int_equal(err.code, E8002);
    buf_free(&b);
}

static const struct CMUnitTest archive_tests[] = {
    cmocka_unit_test(archive_root_test),
    cmocka_unit_test(archive_modes_test),
    cmocka_unit_test(archive_unsafe_test),
    cmocka_unit_test(archive_limits_test),
    cmocka_unit_test(archive_kinds_test),
    cmocka_unit_test(archive_short_test),
    cmocka_unit_test(archive_digest_test),
};
