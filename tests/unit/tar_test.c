#include "data/tar.h"

/* --- writing archives ------------------------------------------------------------ */

static void tar_test__fill(Buf *b)
{
    while (b->n % 512)
        buf_addc(b, 0);
}

static void tar_test__sum(char *block)
{
    unsigned sum = 0;

    memset(block + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
}

static char *tar_test__head(Buf *b, const char *name, char type, const char *size, const char *magic)
{
    char *p = buf_room(b, 512);

    memset(p, 0, 512);
    memcpy(p, name, strnlen(name, 100));
    memcpy(p + 100, "0000755", 8);
    memcpy(p + 124, size, strnlen(size, 12));
    p[156] = type;
    memcpy(p + 257, magic, strlen(magic) + 1);
    tar_test__sum(p);
    buf_grew(b, 512);
    return p;
}

static void tar_test__member(Buf *b, const char *name, char type, Str content)
{
    char size[16];

    snprintf(size, sizeof size, "%011zo", content.n);
    tar_test__head(b, name, type, size, "ustar");
    buf_add(b, content);
    tar_test__fill(b);
}

static void tar_test__end(Buf *b)
{
    for (int i = 0; i < 1024; i++)
        buf_addc(b, 0);
}

/* "LENGTH KEY=VALUE\n" */
static void tar_test__record(Buf *b, const char *key, Str value)
{
    size_t rest = strlen(key) + value.n + 3, n = rest + 1;

    while (n != rest + (size_t)snprintf(NULL, 0, "%zu", n))
        n++;
    buf_addf(b, "%zu %s=", n, key);
    buf_add(b, value);
    buf_addc(b, '\n');
}

/* --- reading them, as lines of text ------------------------------------------------ */

static Step tar_test__feed(TarReader *r, Str in, Buf *out, Err *err)
{
    TarEvent ev;
    Step     step;

    while ((step = tar_next(r, &in, &ev, err)) == STEP_DONE) {
        if (ev.kind == TAR_ENTRY)
            buf_addf(out, "%c %.*s>%.*s %o %lld\n", "fdlhsr"[ev.type], STR_ARG(ev.name), STR_ARG(ev.target), ev.mode,
                     (long long)ev.size);
        else if (ev.kind == TAR_BYTES)
            buf_add(out, ev.bytes);
        else
            buf_add(out, STR("."));
    }
    assert_true(step == STEP_ERR || in.n == 0);
    return step;
}

/* Once whole and once in two parts, cut at every byte of its first and last blocks. */
static void tar_test__same(Str in, const char *want)
{
    Buf out = buf_make(1 << 20);
    Err err;

    for (size_t cut = 0; cut <= in.n; cut += cut < 4096 || in.n - cut < 2048 ? 1 : 511) {
        TarReader *r = tar_open();
        buf_clear(&out);
        Step step = tar_test__feed(r, guard_copy((Str){in.p, cut}), &out, &err);
        if (step == STEP_MORE)
            step = tar_test__feed(r, guard_copy((Str){in.p + cut, in.n - cut}), &out, &err);
        if (step == STEP_ERR)
            fail_msg("cut %zu: %s", cut, err.text);
        assert_true(tar_ended(r, &err));
        if (!str_eq(buf_str(&out), str_from(want)))
            fail_msg("cut %zu: '%.*s' for '%s'", cut, STR_ARG(buf_str(&out)), want);
        tar_close(r);
    }
    buf_free(&out);
}

static void tar_test__refused(Str in, ErrKind kind, const char *said)
{
    TarReader *r = tar_open();
    Buf        out = buf_make(1 << 20);
    Err        err = {0};
    TarEvent   ev;

    if (tar_test__feed(r, guard_copy(in), &out, &err) != STEP_ERR)
        fail_msg("taken, not '%s': '%.*s'", said, STR_ARG(buf_str(&out)));
    assert_int_equal(err.kind, kind);
    if (!strstr(err.text, said))
        fail_msg("'%s' for '%s'", err.text, said);
    assert_false(tar_ended(r, &err));
    err.kind = ERR_NONE;
    assert_int_equal(tar_next(r, &(Str){"", 0}, &ev, &err), STEP_ERR);
    assert_int_equal(err.kind, kind);
    tar_close(r);
    buf_free(&out);
}

/* --- tests ------------------------------------------------------------------------- */

static void tar_kinds_test(void **state)
{
    Buf b = buf_make(1 << 20);

    (void)state;
    tar_test__member(&b, "d/", '5', STR(""));
    tar_test__member(&b, "d/a", '0', STR("hello\n"));
    tar_test__member(&b, "d/old", 0, STR(""));
    tar_test__member(&b, "d/sub/", 0, STR(""));
    tar_test__member(&b, "d/solid", '7', STR("x"));
    char *p = tar_test__head(&b, "l", '2', "00000000000", "ustar");
    memcpy(p + 157, "../x", 4);
    tar_test__sum(p);
    p = tar_test__head(&b, "h", '1', "00000000777", "ustar  ");     /* a link's size means nothing */
    memcpy(p + 157, "d/a", 3);
    tar_test__sum(p);
    tar_test__head(&b, "c", '3', "00000000000", "ustar");
    tar_test__head(&b, "b", '4', "00000000000", "ustar");
    tar_test__head(&b, "p", '6', "00000000000", "ustar");
    tar_test__end(&b);
    tar_test__same(buf_str(&b), "d d/> 755 0\nf d/a> 755 6\nhello\nf d/old> 755 0\nd d/sub/> 755 0\nf d/solid> 755 1\nx"
                                "l l>../x 755 0\nh h>d/a 755 0\ns c> 755 0\ns b> 755 0\ns p> 755 0\n.");
    buf_free(&b);
}

static void tar_names_test(void **state)
{
    Buf  b = buf_make(1 << 20), records = buf_make(1 << 20), want = buf_make(1 << 20), name = buf_make(5000);
    char *p;

    (void)state;
    for (int i = 0; i < 300; i++)
        buf_addf(&name, "%c", "abcdefg/"[i % 8]);
    buf_addc(&name, 0);
    /* POSIX: in two parts; 100 and 155 bytes without a NUL. */
    p = tar_test__head(&b, name.p, '0', "0", "ustar");
    memcpy(p + 345, name.p, 155);
    tar_test__sum(p);
    buf_addf(&want, "f %.155s/%.100s> 755 0\n", name.p, name.p);
    /* GNU: what stands there is no name. */
    p = tar_test__head(&b, "gnu", '0', "0", "ustar  ");
    memcpy(p + 345, "12345670123", 11);
    tar_test__sum(p);
    buf_addf(&want, "f gnu> 755 0\n");
    /* GNU's long names and targets, with the NUL that they end in and without; then none is left over. */
    tar_test__member(&b, "././@LongLink", 'L', (Str){name.p, 301});
    tar_test__member(&b, "././@LongLink", 'K', STR("target"));
    tar_test__member(&b, "short", '2', STR(""));
    tar_test__member(&b, "next", '2', STR(""));
    buf_addf(&want, "l %.300s>target 755 0\nl next> 755 0\n", name.p);
    /* pax, and what it wins over; a global header as `git archive` writes it. */
    tar_test__record(&records, "comment", STR("0123456789012345678901234567890123456789"));
    tar_test__member(&b, "pax_global_header", 'g', buf_str(&records));
    buf_clear(&records);
    tar_test__record(&records, "mtime", STR("1.5"));
    tar_test__record(&records, "path", STR("of\nthe pax\xff"));
    tar_test__record(&records, "linkpath", STR("there"));
    tar_test__member(&b, "L", 'L', STR("not this"));
    tar_test__member(&b, "x", 'x', buf_str(&records));
    tar_test__member(&b, "nor this", '2', STR(""));
    tar_test__member(&b, "again", '2', STR(""));
    buf_addf(&want, "l of\nthe pax\xff>there 755 0\nl again> 755 0\n");
    /* An empty value is none; of two the last counts. */
    buf_clear(&records);
    tar_test__record(&records, "path", STR("first"));
    tar_test__record(&records, "path", STR(""));
    tar_test__member(&b, "x", 'X', buf_str(&records));
    tar_test__member(&b, "its own", '0', STR(""));
    tar_test__member(&b, "x", 'x', STR(""));
    tar_test__member(&b, "x", 'g', STR(""));
    tar_test__member(&b, "last", '0', STR(""));
    buf_addf(&want, "f its own> 755 0\nf last> 755 0\n.");
    tar_test__end(&b);
    buf_addc(&want, 0);
    tar_test__same(buf_str(&b), want.p);
    buf_free(&b);
    buf_free(&records);
    buf_free(&want);
    buf_free(&name);
}

static void tar_sizes_test(void **state)
{
    static const struct { const char *size; size_t n; int64_t is; } rows[] = {
        {"3", 1, 3}, {"  3 ", 4, 3}, {"00000000003", 12, 3}, {"000000000003", 12, 3}, {"", 0, 0}, {"   ", 3, 0},
        {"777777777777", 12, 68719476735}, {"3\0\0 ", 4, 3},
        {"\x80\0\0\0\0\0\0\0\0\0\0\3", 12, 3}, {"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12, INT64_MAX},
        {"\x80\0\0\0\0\0\0\x01\0\0\0\0", 12, 4294967296},
        {"\x80\0\0\0\x80\0\0\0\0\0\0\0", 12, -1}, {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12, -1},
        {"\xbf\0\0\0\0\0\0\0\0\0\0\0", 12, -1}, {"8", 1, -1}, {"3x", 2, -1}, {"-1", 2, -1}, {"3 3", 3, -1}, {"\t3", 2, -1},
    };
    Buf      b = buf_make(1 << 20), records = buf_make(4096);
    TarEvent ev;
    Err      err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        buf_clear(&b);
        char *p = tar_test__head(&b, "n", '0', "", "ustar");
        memcpy(p + 124, rows[i].size, rows[i].n);
        tar_test__sum(p);
        if (rows[i].is < 0) {
            tar_test__refused(buf_str(&b), ERR_INPUT, "a size in the archive is no number");
            continue;
        }
        TarReader *r = tar_open();
        Str in = guard_copy(buf_str(&b));
        assert_int_equal(tar_next(r, &in, &ev, &err), STEP_DONE);
        assert_true(ev.size == rows[i].is);
        tar_close(r);
    }
    /* pax's own. */
    buf_clear(&b);
    tar_test__record(&records, "size", STR("5"));
    tar_test__member(&b, "x", 'x', buf_str(&records));
    tar_test__head(&b, "n", '0', "0", "ustar");
    buf_add(&b, STR("12345"));
    tar_test__fill(&b);
    tar_test__end(&b);
    tar_test__same(buf_str(&b), "f n> 755 5\n12345.");
    static const char *const bad[] = {"-1", "5.0", "0x5", "9223372036854775808", " 5"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        buf_clear(&b);
        buf_clear(&records);
        tar_test__record(&records, "size", str_from(bad[i]));
        tar_test__member(&b, "x", 'x', buf_str(&records));
        tar_test__refused(buf_str(&b), ERR_INPUT, "a size in the archive is no number");
    }
    buf_free(&b);
    buf_free(&records);
}

static void tar_refused_test(void **state)
{
    static const struct { char type; const char *content, *said; } rows[] = {
        {'S', "", "a sparse file"}, {'D', "", "unknown type"}, {'V', "", "unknown type"}, {'M', "", "unknown type"},
        {'N', "", "unknown type"}, {'A', "", "unknown type"}, {'\xff', "", "unknown type"},
        {'x', "19 GNU.sparse.x=1\n", "pax header of the archive is damaged"}, {'x', "18 GNU.sparse.x=1\n", "a sparse file"},
        {'x', "21 SCHILY.realsize=1\n", "a sparse file"}, {'g', "8 path=\n", "all files one name"},
        {'g', "13 linkpath=\n", "all files one name"}, {'g', "9 size=1\n", "all files one name"},
        {'x', "9 path=a", "damaged"}, {'x', "8 path=ab\n", "damaged"}, {'x', "path=a\n", "damaged"}, {'x', "0 a=b\n", "damaged"},
        {'x', "-6 a=b\n", "damaged"}, {'x', "5 a=\n6 =\n", "damaged"}, {'x', "6 abc\n", "damaged"}, {'x', "6 =bc\n", "damaged"},
        {'x', "3 \n", "damaged"}, {'x', "4 =\n", "damaged"}, {'x', "99999999999999999999 a=b\n", "damaged"}, {'x', "\n", "damaged"},
    };
    Buf b = buf_make(1 << 20);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        buf_clear(&b);
        tar_test__member(&b, "n", rows[i].type, str_from(rows[i].content));
        tar_test__refused(buf_str(&b), ERR_INPUT, rows[i].said);
    }
    /* An extra header is as long as it may be, or longer. */
    for (size_t k = 0; k < 4; k++) {
        buf_clear(&b);
        tar_test__head(&b, "n", "xgLK"[k], "00001000001", "ustar");
        tar_test__refused(buf_str(&b), ERR_LIMIT, "too long");
    }
    Buf long_name = buf_make(LIMIT_TAR_EXTRA);
    memset(buf_room(&long_name, LIMIT_TAR_EXTRA), 'n', LIMIT_TAR_EXTRA);
    buf_grew(&long_name, LIMIT_TAR_EXTRA);
    buf_clear(&b);
    tar_test__member(&b, "n", 'L', buf_str(&long_name));
    tar_test__member(&b, "n", '0', STR(""));
    TarReader *r = tar_open();
    TarEvent   ev;
    Err        err;
    Str        in = buf_str(&b);
    assert_int_equal(tar_next(r, &in, &ev, &err), STEP_DONE);
    assert_true(str_eq(ev.name, buf_str(&long_name)));
    tar_close(r);
    buf_free(&long_name);
    /* A checksum of signed bytes counts, another does not. */
    buf_clear(&b);
    char *p = tar_test__head(&b, "\xc3\xa9", '0', "0", "ustar");
    snprintf(p + 148, 8, "%06o", (unsigned)(strtoul(p + 148, NULL, 8) - 512));
    tar_test__end(&b);
    tar_test__same(buf_str(&b), "f \xc3\xa9> 755 0\n.");
    b.p[0] ^= 1;
    tar_test__refused(buf_str(&b), ERR_INPUT, "a checksum is wrong");
    buf_clear(&b);
    p = tar_test__head(&b, "n", '0', "0", "ustar");
    memcpy(p + 100, "rwxr-xr", 8);
    tar_test__sum(p);
    tar_test__refused(buf_str(&b), ERR_INPUT, "a mode in the archive is no number");
    buf_free(&b);
}

static void tar_end_test(void **state)
{
    Buf      b = buf_make(1 << 20);
    TarEvent ev;
    Err      err;

    (void)state;
    tar_test__member(&b, "L", 'L', STR("name\0"));
    tar_test__member(&b, "a", '0', STR("hello"));
    size_t whole = b.n;
    tar_test__end(&b);
    for (size_t n = 0; n < b.n; n++) {                  /* cut short at every byte */
        TarReader *r = tar_open();
        Str        in = guard_copy((Str){b.p, n});
        Step       step;
        while ((step = tar_next(r, &in, &ev, &err)) == STEP_DONE)
            ;
        assert_int_equal(step, STEP_MORE);
        err.text[0] = 0;
        assert_int_equal(tar_ended(r, &err), n >= whole + 512);         /* one block of zeros is an end */
        assert_true(n >= whole + 512 || strcmp(err.text, "the archive is cut short") == 0);
        tar_close(r);
    }
    for (int i = 0; i < 10240; i++)                     /* a tape's filling */
        buf_addc(&b, 0);
    tar_test__same(buf_str(&b), "f name> 755 5\nhello.");
    buf_addc(&b, 'x');
    tar_test__refused(buf_str(&b), ERR_INPUT, "something follows the end");
    buf_clear(&b);
    tar_test__end(&b);
    tar_test__same(buf_str(&b), ".");
    tar_test__member(&b, "a", '0', STR(""));            /* a second archive behind the first */
    tar_test__refused(buf_str(&b), ERR_INPUT, "something follows the end");
    buf_clear(&b);
    tar_test__member(&b, "L", 'L', STR("name\0"));
    tar_test__end(&b);
    tar_test__refused(buf_str(&b), ERR_INPUT, "before the entry that a header belongs to");
    buf_free(&b);
}

/* What was written is read as the same. */
static void tar_test__round(const TarHead *h, size_t blocks)
{
    Buf        b = buf_make(1 << 20);
    TarReader *r = tar_open_copy();
    TarEvent   ev;
    Err        err;

    assert_true(tar_put(&b, h, &err));
    if (b.n != blocks * TAR_BLOCK)
        fail_msg("%zu bytes, not %zu blocks, for a name of %zu, a target of %zu", b.n, blocks, h->name.n, h->target.n);
    Str in = guard_copy(buf_str(&b));
    assert_int_equal(tar_next(r, &in, &ev, &err), STEP_DONE);
    assert_true(ev.kind == TAR_ENTRY && ev.type == h->type && ev.mode == (h->mode & 07777) && ev.size == h->size);
    assert_true(str_eq(ev.name, h->name) && str_eq(ev.target, h->target) && in.n == 0);
    tar_close(r);
    buf_free(&b);
}

/* Blocks of a header: of a pax header in front of it, with these records, too. */
static size_t tar_test__blocks(size_t records)
{
    return records ? 2 + (records + TAR_BLOCK - 1) / TAR_BLOCK : 1;
}

static size_t tar_test__long(const char *key, size_t n)
{
    size_t size = strlen(key) + n + 3, digits = 1;

    while (size + digits != size + (size_t)snprintf(NULL, 0, "%zu", size + digits))
        digits++;
    return n > 100 ? size + digits : 0;
}

static void tar_put_test(void **state)
{
    static char plain[5001], slashes[5001];
    Buf         b = buf_make(1 << 20);
    Err         err = {0};

    (void)state;
    memset(plain, 'n', sizeof plain);
    for (size_t i = 0; i < sizeof slashes; i++)
        slashes[i] = "0123456789/"[i % 11];
    for (size_t n = 1; n <= 5000; n++) {
        TarHead file = {TAR_FILE, {plain, n}, {NULL, 0}, 0644, (int64_t)n},
                link = {TAR_SYMLINK, STR("l"), {plain, n}, 0777, 0},
                folder = {TAR_FOLDER, {slashes, n}, {NULL, 0}, 07755, 0},
                record = {TAR_RECORD, {plain, n}, {slashes, n}, 0, 0};
        tar_test__round(&file, tar_test__blocks(tar_test__long("path", n)));
        tar_test__round(&link, tar_test__blocks(tar_test__long("linkpath", n)));
        /* A slash at 153, and 100 bytes behind it: what the two fields hold is in no pax header. */
        tar_test__round(&folder, n <= 254 ? 1 : tar_test__blocks(tar_test__long("path", n)));
        tar_test__round(&record, tar_test__blocks(tar_test__long("path", n) + tar_test__long("linkpath", n)));
    }
    static const int64_t sizes[] = {0, 1, 511, 512, 513, 8589934591, 8589934592, 8589934593, 1LL << 40, INT64_MAX};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        TarHead h = {TAR_FILE, STR("f"), {NULL, 0}, 0600, sizes[i]};
        tar_test__round(&h, i > 5 ? 3 : 1);
        assert_true(tar_pad(sizes[i]) < TAR_BLOCK && (sizes[i] % TAR_BLOCK + (int64_t)tar_pad(sizes[i])) % TAR_BLOCK == 0);
    }
    /* As long as a reader takes, and longer: then nothing is added. */
    size_t most = LIMIT_TAR_EXTRA - strlen("262144 path=\n");
    char  *name = test_malloc(most + 1);
    memset(name, 'n', most + 1);
    TarHead whole = {TAR_FOLDER, {name, most}, {NULL, 0}, 0755, 0};
    tar_test__round(&whole, 2 + LIMIT_TAR_EXTRA / TAR_BLOCK);
    whole.name.n++;
    assert_false(tar_put(&b, &whole, &err));
    assert_true(err.kind == ERR_LIMIT && err.code == E4003 && b.n == 0);
    test_free(name);
    buf_free(&b);
}

/* A record is one only for who asked, and has no content. */
static void tar_copy_test(void **state)
{
    Buf      b = buf_make(1 << 20);
    TarEvent ev;
    Err      err;

    (void)state;
    for (int i = 0; i < 3; i++) {
        buf_clear(&b);
        if (i == 1)
            tar_test__member(&b, "n", 'x', STR("9 size=1\n"));
        tar_test__head(&b, "n", 'R', i == 2 ? "1" : "0", "ustar");
        if (i == 0)
            tar_test__refused(buf_str(&b), ERR_INPUT, "unknown type");
        TarReader *r = tar_open_copy();
        Str        in = guard_copy(buf_str(&b));
        assert_int_equal(tar_next(r, &in, &ev, &err), i ? STEP_ERR : STEP_DONE);
        assert_true(i || (ev.kind == TAR_ENTRY && ev.type == TAR_RECORD));
        tar_close(r);
    }
    buf_free(&b);
}

static const struct CMUnitTest tar_tests[] = {
    cmocka_unit_test(tar_kinds_test),
    cmocka_unit_test(tar_names_test),
    cmocka_unit_test(tar_sizes_test),
    cmocka_unit_test(tar_refused_test),
    cmocka_unit_test(tar_end_test),
    cmocka_unit_test(tar_put_test),
    cmocka_unit_test(tar_copy_test),
};
