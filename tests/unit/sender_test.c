#include "sync/sender.h"

#include "data/tar.h"
#include "sync/draft.h"
#include "sync/have.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the stream, as lines ---------------------------------------------------------- */

/* Entries, short contents as they are, records with the words of theirs; hashes are
 * compared with the content's and stand as "ok". */
typedef struct SenderTest {
    TarReader *r;
    Buf        out;
    Sha256     sum, before;     /* of the content that came; of what ITEM_FROM passed over */
    bool       from, ended;
    int64_t    size, shown, moved;
    size_t     items;
} SenderTest;

static SenderTest sender_test__begin(void)
{
    return (SenderTest){.r = tar_open_copy(), .out = buf_make(4 << 20)};
}

static void sender_test__record(SenderTest *t, const TarEvent *ev)
{
    unsigned char is[SHA256_SIZE];
    Item          i = {.path = ev->name};

    assert_true(item_parse(ev->target, &i));
    buf_addf(&t->out, "%s %u %lld", item__names[i.kind], i.number, (long long)i.size);
    if (i.kind == ITEM_HASH) {
        sha256_end(&t->sum, is);
        assert_memory_equal(is, i.sha256, SHA256_SIZE);
        assert_int_equal(i.size, t->size);
        buf_add(&t->out, STR(" ok"));
    }
    if (i.kind == ITEM_FROM) {
        t->from = true;
        t->size = i.size;
    }
    t->ended |= i.kind == ITEM_END;
    buf_addf(&t->out, " %.*s\n", STR_ARG(i.path));
}

static void sender_test__feed(SenderTest *t, Str in)
{
    TarEvent ev;
    Err      err;
    Step     step;

    while ((step = tar_next(t->r, &in, &ev, &err)) == STEP_DONE) {
        assert_true(!t->ended || ev.kind == TAR_END);
        if (ev.kind == TAR_BYTES) {
            sha256_add(&t->sum, ev.bytes);
            for (size_t k = 0; k < ev.bytes.n && t->shown < 16; k++, t->shown++)
                buf_addc(&t->out, ev.bytes.p[k] ? ev.bytes.p[k] : '0');
        } else if (ev.kind == TAR_ENTRY && ev.type == TAR_RECORD) {
            if (t->shown)
                buf_addc(&t->out, '\n');
            t->shown = 0;
            sender_test__record(t, &ev);
        } else if (ev.kind == TAR_ENTRY) {
            buf_addf(&t->out, "%c %.*s", "fdl"[ev.type], STR_ARG(ev.name));
            if (ev.type == TAR_SYMLINK)
                buf_addf(&t->out, ">%.*s\n", STR_ARG(ev.target));
            else if (ev.type == TAR_FOLDER)
                buf_addf(&t->out, " %o\n", ev.mode);
            else
                buf_addf(&t->out, " %o %lld\n", ev.mode, (long long)ev.size);
            t->sum = t->from ? t->before : sha256_make();
            t->size = ev.size + (t->from ? t->size : 0);
            t->from = false;
        } else {
            buf_add(&t->out, STR("."));
        }
    }
    if (step == STEP_ERR)
        fail_msg("%s", err.text);
}

static const char *sender_test__end(SenderTest *t)
{
    Err err;

    assert_true(tar_ended(t->r, &err));
    tar_close(t->r);
    buf_addc(&t->out, 0);
    return t->out.p;
}

static void sender_test__item(void *ctx, const Item *i)
{
    SenderTest *t = ctx;

    t->items++;
    t->ended = i->kind == ITEM_END;
}

static void sender_test__moved(void *ctx, int64_t bytes)
{
    SenderTest *t = ctx;

    t->moved += bytes;
}

/* All of it, as much as there is room for at a time. `change` is called once, when `when` bytes came. */
static Buf sender_test__all(const SenderRequest *rq, size_t cap, size_t when, void (*change)(void))
{
    static char *p;
    Buf     all = buf_make(64 << 20);
    Sender *s = sender_open(rq);
    size_t  n;
    Err     err;

    p = test_malloc(cap);
    for (;;) {
        assert_true(sender_read(s, p, cap, &n, &err));
        if (!n)
            break;
        assert_true(n <= cap);
        buf_add(&all, (Str){p, n});
        if (change && all.n >= when) {
            change();
            change = NULL;
        }
    }
    assert_true(sender_read(s, p, cap, &n, &err) && n == 0);
    test_free(p);
    sender_close(s);
    assert_false(all.over);
    return all;
}

static void sender_test__is(const SenderRequest *rq, size_t cap, size_t when, void (*change)(void), const char *want)
{
    SenderTest t = sender_test__begin();
    Buf        all = sender_test__all(rq, cap, when, change);

    sender_test__feed(&t, buf_str(&all));
    if (strcmp(sender_test__end(&t), want) != 0)
        fail_msg("%s\nfor\n%s", t.out.p, want);
    buf_free(&t.out);
    buf_free(&all);
}

/* --- tests ------------------------------------------------------------------------- */

static void sender_tree_test(void **state)
{
    static const char want[] =
        "total 5 270138 \nd t 700\nf t/a 644 5\nhello\nhash 0 5 ok t/a\nd t/b 755\nf t/b/big 600 270123\n0000000000000000\n"
        "hash 0 270123 ok t/b/big\nf t/b/none 644 0\nhash 0 0 ok t/b/none\nl t/link>../\xff\nfailed 95 0 t/p\n"
        "f t/\xff 644 5\nworld\nhash 0 5 ok t/\xff\nfailed 2 0 gone\nf one 644 5\nhello\nhash 0 5 ok one\nend 5 270138 \n.";
    static const size_t caps[] = {512, 513, 4095, 4097, 65536, 1 << 20};
    const WalkRoot roots[] = {{"t", STR("t")}, {"gone", STR("gone")}, {"t/a", STR("one")}};
    SenderTest     heard = {0};
    SenderRequest  rq = {.roots = roots, .count = 3, .total = true, .item = sender_test__item, .moved = sender_test__moved,
                         .ctx = &heard};

    (void)state;
    assert_int_equal(mkdir("t", 0700), 0);
    assert_int_equal(mkdir("t/b", 0755), 0);
    walk_test__file("t/a", STR("hello"));
    walk_test__file("t/\xff", STR("world"));
    walk_test__file("t/b/none", STR(""));
    walk_test__file("t/b/big", STR(""));
    assert_int_equal(chmod("t/b/big", 0600), 0);
    int fd = open("t/b/big", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 270123; i += 9)                     /* 30014 pieces, the last of them too long */
        assert_int_equal(pwrite(fd, "\0\0\0\0x\xff\n\0\0", 9, i), 9);
    for (int i = 0; i < 16; i++)
        assert_int_equal(pwrite(fd, "", 1, i), 1);
    assert_int_equal(ftruncate(fd, 270123), 0);
    close(fd);
    assert_int_equal(symlink("../\xff", "t/link"), 0);
    assert_int_equal(mkfifo("t/p", 0600), 0);
    Buf first = sender_test__all(&rq, 65536, 0, NULL);
    for (size_t i = 0; i < COUNT_OF(caps); i++) {
        heard = (SenderTest){0};
        sender_test__is(&rq, caps[i], 0, NULL, want);
        assert_true(heard.ended && heard.items == 9 && heard.moved == 270138);
        Buf again = sender_test__all(&rq, caps[i], 0, NULL);
        assert_true(str_eq(buf_str(&first), buf_str(&again)));      /* whatever room there is */
        buf_free(&again);
    }
    /* Cut anywhere it is read as the same. */
    SenderTest t = sender_test__begin();
    for (size_t at = 0, n = 1; at < first.n; at += n, n = n % 1000 + 7)
        sender_test__feed(&t, str_from_to(buf_str(&first), at, at + n < first.n ? at + n : first.n));
    assert_string_equal(sender_test__end(&t), want);
    buf_free(&t.out);
    buf_free(&first);
    /* Nothing to send. */
    rq.count = 0;
    sender_test__is(&rq, 512, 0, NULL, "total 0 0 \nend 0 0 \n.");
}

/* A file that changes while it is read. */
static void sender_test__grow(void) { assert_int_equal(truncate("f", 300001), 0); }
static void sender_test__shrink(void) { assert_int_equal(truncate("f", 100000), 0); }
static void sender_test__clear(void) { assert_int_equal(truncate("f", 0), 0); }
static void sender_test__gone(void) { assert_int_equal(unlink("f"), 0); }

static void sender_test__write(void)
{
    int fd = open("f", O_WRONLY | O_CLOEXEC);

    assert_int_equal(pwrite(fd, "changed", 7, 0), 7);
    close(fd);
}

static void sender_test__turn_back(void)        /* the time of the content is set back, as some programs do */
{
    struct stat st;

    assert_int_equal(stat("f", &st), 0);
    sender_test__write();
    assert_int_equal(utimensat(AT_FDCWD, "f", (struct timespec[]){st.st_atim, st.st_mtim}, 0), 0);
}

static void sender_changes_test(void **state)
{
    static const struct { void (*change)(void); int64_t after; const char *begins; } rows[] = {
        {sender_test__grow, 300001, "ffffffffffffffff\n"}, {sender_test__shrink, 100000, "ffffffffffffffff\n"},
        {sender_test__clear, 0, ""}, {sender_test__write, 300000, "changedfffffffff\n"},
        {sender_test__turn_back, 300000, "changedfffffffff\n"},
    };
    const WalkRoot roots[] = {{"f", STR("f")}, {"g", STR("g")}};
    SenderRequest  rq = {.roots = roots, .count = 2};
    char          *big = test_malloc(300000), want[200];

    (void)state;
    memset(big, 'f', 300000);
    walk_test__file("g", STR("g"));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        walk_test__file("f", (Str){big, 300000});
        usleep(20000);                                      /* times of files are as coarse as the kernel's tick */
        sender_test__is(&rq, 512, 1024, rows[i].change, "f f 644 300000\nffffffffffffffff\nfailed 116 0 f\nf g 644 1\ng\n"
                                                        "hash 0 1 ok g\nend 1 1 \n.");
        long long after = (long long)rows[i].after;         /* and now it is whole */
        snprintf(want, sizeof want, "f f 644 %lld\n%shash 0 %lld ok f\nf g 644 1\ng\nhash 0 1 ok g\nend 2 %lld \n.", after,
                 rows[i].begins, after, after + 1);
        sender_test__is(&rq, 65536, 0, NULL, want);
    }
    /* Removed under its name it is there until it was read; its time of change is that of the removal. */
    walk_test__file("f", (Str){big, 300000});
    usleep(20000);
    sender_test__is(&rq, 512, 1024, sender_test__gone, "f f 644 300000\nffffffffffffffff\nfailed 116 0 f\nf g 644 1\ng\n"
                                                       "hash 0 1 ok g\nend 1 1 \n.");
    test_free(big);
}

/* /proc says 0 bytes. */
static void sender_proc_test(void **state)
{
    const WalkRoot roots[] = {{"/proc/self/mounts", STR("m")}, {"/proc/self/mem", STR("mem")}, {"/proc/self/maps", STR("maps")}};
    SenderRequest  rq = {.roots = roots, .count = 1};
    SenderTest     t = sender_test__begin();
    char           want[100], some[4096];
    int64_t        size = 0, n;

    (void)state;
    int fd = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);
    while ((n = read(fd, some, sizeof some)) > 0)
        size += n;
    close(fd);
    assert_true(size > 0 && size < (int64_t)LIMIT_COPY_BLOCK);
    snprintf(want, sizeof want, "f m 444 %lld\n", (long long)size);
    Buf all = sender_test__all(&rq, 65536, 0, NULL);
    sender_test__feed(&t, buf_str(&all));
    assert_ptr_equal(strstr(sender_test__end(&t), want), t.out.p);
    snprintf(want, sizeof want, "hash 0 %lld ok m\n", (long long)size);
    assert_non_null(strstr(t.out.p, want));
    buf_free(&t.out);
    buf_free(&all);
    /* What cannot be read at 0: an error of the file alone. */
    rq.roots = roots + 1;
    sender_test__is(&rq, 512, 0, NULL, "failed 5 0 mem\nend 0 0 \n.");
    /* More than is read of such: a line for each page, as no two neighbours are alike. */
    enum { PAGES = 3000 };
    long  page = sysconf(_SC_PAGESIZE);
    char *room = mmap(NULL, (size_t)(PAGES * page), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(room != MAP_FAILED);
    for (long i = 0; i < PAGES; i += 2)
        assert_int_equal(mprotect(room + i * page, (size_t)page, PROT_NONE), 0);
    rq.roots = roots + 2;
    sender_test__is(&rq, 512, 0, NULL, "failed 27 0 maps\nend 0 0 \n.");
    munmap(room, (size_t)(PAGES * page));
}

static int64_t sender_test__reads(void)
{
    char    text[4096];
    int     fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);

    close(fd);
    assert_true(n > 0);
    text[n] = 0;
    return strtoll(strstr(text, "rchar: ") + 7, NULL, 10);
}

static void sender_sparse_test(void **state)
{
    const WalkRoot root = {"s", STR("s")};
    SenderRequest  rq = {.roots = &root, .count = 1};
    struct stat    st;

    (void)state;
    walk_test__file("s", STR(""));
    int fd = open("s", O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "one", 3, 8 << 20), 3);
    assert_int_equal(pwrite(fd, "two", 3, (16 << 20) + 5), 3);
    assert_int_equal(ftruncate(fd, 20 << 20), 0);
    close(fd);
    assert_int_equal(stat("s", &st), 0);
    assert_true(st.st_blocks * 512 < 1 << 20);              /* or the test says nothing */
    int64_t before = sender_test__reads();
    Buf     all = sender_test__all(&rq, 65536, 0, NULL);
    assert_true(sender_test__reads() - before < 1 << 20);   /* the holes were not read */
    SenderTest t = sender_test__begin();
    sender_test__feed(&t, buf_str(&all));
    assert_string_equal(sender_test__end(&t), "sparse 0 0 s\nf s 644 20971520\n0000000000000000\nhash 0 20971520 ok s\nend 1 20971520 \n.");
    Str in = buf_str(&all);
    assert_memory_equal(in.p + 1024 + (8 << 20), "one", 4);
    assert_memory_equal(in.p + 1024 + (16 << 20) + 4, "\0two", 5);
    buf_free(&t.out);
    buf_free(&all);
    /* A hole and nothing else; cut off while it is read. */
    assert_int_equal(truncate("s", 0), 0);
    assert_int_equal(truncate("s", 100000), 0);
    sender_test__is(&rq, 512, 0, NULL, "sparse 0 0 s\nf s 644 100000\n0000000000000000\nhash 0 100000 ok s\nend 1 100000 \n.");
}

static void sender_test__has(Have *h, ItemKind kind, const char *path, Str content)
{
    Item   i = {.kind = kind, .hashed = true, .size = (int64_t)content.n, .path = str_from(path)};
    Sha256 sum = sha256_make();
    Err    err;

    sha256_add(&sum, content);
    sha256_end(&sum, i.sha256);
    assert_true(have_add(h, &i, &err));
}

/* The name under which a part of `path` lies. */
static const char *sender_test__part(const char *path)
{
    static char name[DRAFT_NAME];

    draft_part_name(str_from(path), name);
    return name;
}

/* What the receiver has is passed over, if it is the same. */
static void sender_have_test(void **state)
{
    enum { BIG = 9 << 20 };
    const WalkRoot roots[] = {{"big", STR("big")}, {"e", STR("e")}, {"f", STR("f")}};
    static const struct { ItemKind kind; size_t size, came; bool other; const char *want; } rows[] = {
        {ITEM_HAVE, BIG, 0, false, "kept 0 9437184 big\n"},
        {ITEM_HAVE, BIG, BIG, true, "f big 644 9437184\nbbbbbbbbbbbbbbbb\nhash 0 9437184 ok big\n"},
        {ITEM_HAVE, BIG - 1, BIG, false, "f big 644 9437184\nbbbbbbbbbbbbbbbb\nhash 0 9437184 ok big\n"},
        {ITEM_PART, BIG, 0, false, "from 0 9437184 big\nf big 644 0\nhash 0 9437184 ok big\n"},
        {ITEM_PART, BIG - 7, 7, false, "from 0 9437177 big\nf big 644 7\nbbbbbbb\nhash 0 9437184 ok big\n"},
        {ITEM_PART, 1, BIG - 1, false, "from 0 1 big\nf big 644 9437183\nbbbbbbbbbbbbbbbb\nhash 0 9437184 ok big\n"},
        {ITEM_PART, 0, BIG, false, "f big 644 9437184\nbbbbbbbbbbbbbbbb\nhash 0 9437184 ok big\n"},
        {ITEM_PART, 1000, BIG, true, "f big 644 9437184\nbbbbbbbbbbbbbbbb\nhash 0 9437184 ok big\n"},
        {ITEM_PART, BIG + 1, BIG, false, "f big 644 9437184\nbbbbbbbbbbbbbbbb\nhash 0 9437184 ok big\n"},
    };
    char *big = test_malloc(BIG + 1);

    (void)state;
    memset(big, 'b', BIG + 1);
    walk_test__file("big", (Str){big, BIG});
    walk_test__file("e", STR(""));
    walk_test__file("f", STR("f"));
    for (size_t k = 0; k < 2 * COUNT_OF(rows); k++) {       /* and once more with a whole one that is another */
        size_t i = k / 2;
        Have  *h = have_make();
        SenderTest t = sender_test__begin();
        t.before = sha256_make();
        sha256_add(&t.before, (Str){big, rows[i].size});
        big[0] = rows[i].other ? 'x' : 'b';
        sender_test__has(h, rows[i].kind, rows[i].kind == ITEM_PART ? sender_test__part("big") : "big", (Str){big, rows[i].size});
        if (k % 2 && rows[i].kind == ITEM_PART) {
            big[0] = 'y';
            sender_test__has(h, ITEM_HAVE, "big", (Str){big, BIG});
        }
        sender_test__has(h, ITEM_HAVE, "e", STR(""));
        sender_test__has(h, ITEM_HAVE, "g", STR("f"));
        big[0] = 'b';
        SenderRequest rq = {.roots = roots, .count = 3, .have = h};
        Buf all = sender_test__all(&rq, 65536, 0, NULL);
        sender_test__feed(&t, buf_str(&all));
        sender_test__end(&t);
        size_t n = strlen(rows[i].want);
        assert_true(strncmp(t.out.p, rows[i].want, n) == 0);
        char rest[100];
        snprintf(rest, sizeof rest, "f e 644 0\nhash 0 0 ok e\nf f 644 1\nf\nhash 0 1 ok f\nend %d %zu \n.", i ? 3 : 2,
                 rows[i].came + 1);
        if (strcmp(t.out.p + n, rest) != 0)
            fail_msg("%s", t.out.p);
        have_free(h);
        buf_free(&t.out);
        buf_free(&all);
    }
    /* While it is hashed and counted, calls come back all the same: every 4 MiB, every 4096 entries. */
    Have *h = have_make();
    sender_test__has(h, ITEM_HAVE, "big", (Str){big, BIG});
    Sender *s = sender_open(&(SenderRequest){.roots = roots, .count = 1, .have = h});
    size_t  n, calls = 0;
    Err     err;
    while (assert_true(sender_read(s, big, BIG, &n, &err)), n)
        assert_true(++calls > 2 || n == TAR_BLOCK);
    assert_int_equal(calls, 3);
    sender_close(s);
    have_free(h);
    test_free(big);
}

static const struct CMUnitTest sender_tests[] = {
    cmocka_unit_test_setup_teardown(sender_tree_test, walk_test__begin, walk_test__end),
    cmocka_unit_test_setup_teardown(sender_changes_test, walk_test__begin, walk_test__end),
    cmocka_unit_test_setup_teardown(sender_proc_test, walk_test__begin, walk_test__end),
    cmocka_unit_test_setup_teardown(sender_sparse_test, walk_test__begin, walk_test__end),
    cmocka_unit_test_setup_teardown(sender_have_test, walk_test__begin, walk_test__end),
};
