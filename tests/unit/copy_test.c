/* Copies against an agent that is played here: its ends of the stream are the real ones, and then it lies. */
#include "api/copy.h"

#include "api/errand.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "sync/receiver.h"
#include "sync/sender.h"
#include "sync/target.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a program of the agent's ---- */

typedef struct CopyTestAgent {
    ExecCall  base;
    Receiver *receiver;         /* tar-in, */
    Sender   *sender;           /* or tar-out */
    Buf       out;              /* what it says: lines, or a stream */
    size_t    given;
    size_t    room;             /* so much is taken at once */
    const char *said;           /* on stderr, and then it fails */
    bool      ended, killed;
    bool      hold, held;       /* it is held back; it was */
    bool      deaf;             /* and does not care */
    bool      full;             /* takes nothing every other time */
    Buf       instead;          /* of `out`, if there is a lie */
    bool      lies;
    int       early;            /* it ends when so much was written; -1 */
    Err       err;
} CopyTestAgent;

static Step copy_test_next(ExecCall *x, ExecEvent *ev, Err *err)
{
    CopyTestAgent *a = (CopyTestAgent *)x;
    Buf           *out = a->lies ? &a->instead : &a->out;
    size_t         n = 0;

    (void)err;
    if (a->hold && !a->deaf)
        return STEP_MORE;
    if (a->sender && a->given == out->n && !a->ended) {
        buf_clear(out);
        a->given = 0;
        char *p = buf_room(out, 1000);
        assert_true(sender_read(a->sender, p, 1000, &n, &a->err));
        buf_grew(out, n);
        a->ended = n == 0;
    }
    if (a->said && a->ended) {
        *ev = (ExecEvent){.kind = EXEC_ERR, .bytes = str_from(a->said)};
        a->said = NULL;
        a->early = 1;
        return STEP_DONE;
    }
    if (a->given < out->n && (!a->lies || a->ended || a->sender)) {
        n = out->n - a->given < 700 ? out->n - a->given : 700;
        *ev = (ExecEvent){.kind = EXEC_OUT, .bytes = {out->p + a->given, n}};
        a->given += n;
        return STEP_DONE;
    }
    if (!a->ended && !a->killed)
        return STEP_MORE;
    *ev = (ExecEvent){.kind = EXEC_EXIT, .exit_code = a->early == 1};
    return STEP_DONE;
}

static bool copy_test_write(ExecCall *x, Str bytes, size_t *n, Err *err)
{
    CopyTestAgent *a = (CopyTestAgent *)x;

    (void)err;
    a->full = !a->full && a->receiver;
    *n = a->full ? 0 : bytes.n < a->room ? bytes.n : a->room;
    a->room = a->room == 1 ? 5000 : a->room - 1 ? a->room - 1 : 1;
    assert_true(receiver_feed(a->receiver, (Str){bytes.p, *n}, &a->err));
    return true;
}

static bool copy_test_end(ExecCall *x, Err *err)
{
    CopyTestAgent *a = (CopyTestAgent *)x;

    (void)err;
    assert_true(receiver_end(a->receiver, &a->err));
    a->ended = true;
    return true;
}

static bool copy_test_kill(ExecCall *x, Deadline d, Err *err)
{
    (void)d, (void)err;
    return ((CopyTestAgent *)x)->killed = true;
}

static void copy_test_hold(ExecCall *x, bool on)
{
    ((CopyTestAgent *)x)->hold = on;
    ((CopyTestAgent *)x)->held |= on;
}

static bool copy_test_kill_end(ExecCall *x, Err *err)
{
    (void)err;
    return ((CopyTestAgent *)x)->ended = true;
}

static StreamWant copy_test_want(const ExecCall *x)
{
    (void)x;
    return (StreamWant){.fd = -1};
}

static Deadline copy_test_deadline(const ExecCall *x)
{
    (void)x;
    return DEADLINE_NONE;
}

static void copy_test_close(ExecCall *x)
{
    (void)x;
}

static const ExecOps copy_test_ops = {
    .next = copy_test_next, .want = copy_test_want, .deadline = copy_test_deadline, .kill = copy_test_kill,
    .close = copy_test_close, .write = copy_test_write, .end_input = copy_test_end, .hold = copy_test_hold,
};

static void copy_test_line(void *ctx, const Item *i)
{
    if (i->kind != ITEM_TOTAL)
        item_put(&((CopyTestAgent *)ctx)->out, i);
}

/* ---- a copy ---- */

typedef struct CopyTest {
    Provider         p;
    abx_session      session;
    abx_sandbox      box;
    abx_copy_options o;
    abx_copied       out;
    Copy             c;
    CopyStream      *s;
    CopyTestAgent    to, from;
    WalkRoot         root;
    char             failed[400];
    int              progress;
    Err              err;
} CopyTest;

static void copy_test_event(void *ctx, const abx_copy_event *ev)
{
    CopyTest *t = ctx;

    if (ev->kind == ABX_COPY_FAILED)
        snprintf(t->failed + strlen(t->failed), sizeof t->failed - strlen(t->failed), "%s: %s;", ev->path, ev->reason);
    t->progress += ev->kind == ABX_COPY_PROGRESS;
}

static const ProviderKind copy_test_kind = {.id = {"test", 4}};

/* Of the folder "t" here. */
static CopyTest *copy_test_new(void)
{
    CopyTest *t = mem_new(sizeof *t);

    t->p = (Provider){.kind = &copy_test_kind, .host = {.cancel_fd = -1}};
    t->session.provider = &t->p;
    t->box.session = &t->session;
    t->root = (WalkRoot){"t", STR("t")};
    t->o = (abx_copy_options){.size = sizeof t->o, .paths = &t->root.path, .path_count = 1, .target = "into", .verify = -1,
                              .event = copy_test_event, .ctx = t};
    t->c = (Copy){.o = &t->o, .out = &t->out, .a = arena_make(1 << 20), .roots = &t->root, .verify = true, .total = -1,
                  .total_files = -1};
    t->s = mem_new(sizeof *t->s);
    t->s->c = &t->c;
    t->s->lines = item_reader();
    t->to = (CopyTestAgent){.base = {&copy_test_ops}, .out = buf_make(1 << 20), .instead = buf_make(1 << 20), .room = 5000, .early = -1};
    t->from = t->to;
    t->from.out = buf_make(1 << 20);
    t->from.instead = buf_make(1 << 20);
    return t;
}

/* The ends of the copy that are in the sandbox. */
static void copy_test_to(CopyTest *t)
{
    t->o.to = &t->box;
    t->to.receiver = receiver_open(&(ReceiverRequest){.target = "into", .item = copy_test_line, .ctx = &t->to});
    t->s->to = (Errand){.box = &t->box, .x = &t->to.base, .said = buf_make(4096)};
    t->s->tap = tar_open_copy();
    t->s->due.bytes = buf_make(LIMIT_COPY_DUE);
    t->s->stream.bytes = buf_make(LIMIT_COPY_BETWEEN);
}

static void copy_test_from(CopyTest *t)
{
    t->o.from = &t->box;
    t->from.sender = sender_open(&(SenderRequest){.roots = &t->root, .count = 1, .total = true});
    t->s->from = (Errand){.box = &t->box, .x = &t->from.base, .said = buf_make(4096)};
}

static void copy_test_here(CopyTest *t)
{
    CarryResult r = t->o.from ? copy_stream__receive(t->s, &t->err) : copy_stream__send(t->s, &t->err);

    assert_int_equal(r, CARRY_DONE);
}

static void copy_test_free(CopyTest *t)
{
    errand_close(&t->s->from);
    errand_close(&t->s->to);
    receiver_close(t->s->receiver);
    receiver_close(t->to.receiver);
    sender_close(t->s->sender);
    sender_close(t->from.sender);
    tar_close(t->s->tap);
    item_reader_free(&t->s->lines);
    buf_free(&t->s->due.bytes);
    buf_free(&t->s->stream.bytes);
    mem_free(t->s);
    for (CopyTestAgent *a = &t->to; a; a = a == &t->to ? &t->from : NULL) {
        buf_free(&a->out);
        buf_free(&a->instead);
    }
    arena_free(&t->c.a);
    mem_free(t);
}

static void copy_test_put(const char *path, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0640);

    assert_true(fd >= 0);
    while (n--)
        assert_int_equal(write(fd, "0123456789" + n % 10, 1), 1);
    close(fd);
}

static int copy_test_setup(void **state)
{
    char dir[] = "/tmp/abx-copy-XXXXXX";

    *state = getcwd(NULL, 0);
    assert_true(*state && mkdtemp(dir) && chdir(dir) == 0);
    assert_true(mkdir("t", 0755) == 0 && mkdir("t/sub", 0700) == 0 && symlink("a", "t/link") == 0);
    copy_test_put("t/a", 5);
    copy_test_put("t/b", 3000);
    copy_test_put("t/empty", 0);
    copy_test_put("t/sub/c", 700);
    return 0;
}

static int copy_test_teardown(void **state)
{
    char *cwd = getcwd(NULL, 0);
    int   ok = chdir(*state);

    folder_remove(AT_FDCWD, cwd);
    free(cwd);
    free(*state);
    return ok;
}

static bool copy_test_run(CopyTest *t)
{
    bool ok = copy_stream__run(t->s, &t->err);

    assert_int_equal(ok, t->err.kind == ERR_NONE);
    return ok;
}

static void copy_test_ways(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        CopyTest   *t = copy_test_new();
        struct stat st;
        char        link[8] = "";
        if (way != 1)
            copy_test_to(t);
        if (way != 0)
            copy_test_from(t);
        if (way != 2)
            copy_test_here(t);
        assert_true(copy_test_run(t));
        assert_int_equal(t->out.files, 4);
        assert_int_equal(t->out.bytes, 3705);
        assert_int_equal(t->out.failed, 0);
        assert_int_equal(t->out.tree, 1);
        assert_int_equal(t->c.moved, 3705);
        assert_int_equal(t->c.total, 3705);
        assert_int_equal(t->c.total_files, 4);
        assert_true(t->progress > 0);
        assert_true(stat("into/b", &st) == 0 && st.st_size == 3000 && (st.st_mode & 0777) == 0640);
        assert_true(stat("into/sub", &st) == 0 && (st.st_mode & 0777) == 0700);
        assert_true(readlink("into/link", link, sizeof link) == 1 && link[0] == 'a');
        copy_test_free(t);
        folder_remove(AT_FDCWD, "into");
    }
}

/* A target that an interrupted copy was making is what it was to become for one that goes on, and nobody else's folder. */
static void copy_test_made_before(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        bool        mine = way == 1;
        CopyTest   *t = copy_test_new();
        struct stat st;
        assert_true(mkdir("into", 0700) == 0 && chmod("into", way ? 01700 : 0700) == 0);
        assert_int_equal(target_making("into"), way > 0);
        t->o.resume = mine;
        copy_test_from(t);
        copy_test_here(t);
        assert_true(copy_test_run(t));
        assert_int_equal(access("into/t/a", F_OK), mine ? -1 : 0);
        assert_int_equal(access("into/a", F_OK), mine ? 0 : -1);
        assert_true(stat("into", &st) == 0 && (st.st_mode & 07777) == (mine ? 0755 : way ? 01700 : 0700));
        copy_test_free(t);
        folder_remove(AT_FDCWD, "into");
    }
}

/* ---- lies ---- */

/* The lines of an honest one. */
static Buf copy_test_lines(void)
{
    CopyTest *t = copy_test_new();
    Buf       lines = buf_make(1 << 20);

    copy_test_to(t);
    copy_test_here(t);
    assert_true(copy_test_run(t));
    buf_add(&lines, buf_str(&t->to.out));
    copy_test_free(t);
    folder_remove(AT_FDCWD, "into");
    return lines;
}

/* Whether a copy goes well whose agent says this. */
static bool copy_test_says(Str lines, bool verify, int64_t *failed)
{
    CopyTest *t = copy_test_new();

    copy_test_to(t);
    copy_test_here(t);
    t->to.lies = true;
    t->c.verify = verify;
    buf_add(&t->to.instead, lines);
    bool ok = copy_test_run(t);
    if (!ok)
        assert_int_equal(t->err.code, E8020);
    *failed = t->out.failed;
    copy_test_free(t);
    folder_remove(AT_FDCWD, "into");
    return ok;
}

static void copy_test_lies(void **state)
{
    enum { MOST = 16 };
    Buf     honest = copy_test_lines(), lie = buf_make(1 << 20);
    Str     rest = buf_str(&honest), line, lines[MOST];
    size_t  n = 0;
    int64_t failed;

    (void)state;
    while (rest.n && str_cut(&rest, '\0', &line))
        lines[n++] = (Str){line.p, line.n + 1};
    assert_int_equal(n, 8);                             /* t, a, b, empty, link, sub, sub/c; the end */
    assert_true(copy_test_says(buf_str(&honest), true, &failed));

    for (size_t i = 0; i < n; i++) {
        /* One is left out, comes twice, comes after the next one, is of another path, or is not quite it. */
        for (int way = 0; way < 5; way++) {
            buf_clear(&lie);
            for (size_t k = 0; k < n; k++) {
                if (way == 0 && k == i)
                    continue;
                if (way == 2 && (k == i || k == i + 1) && i + 1 < n) {
                    buf_add(&lie, lines[k == i ? i + 1 : i]);
                    continue;
                }
                buf_add(&lie, lines[k]);
                if (way == 1 && k == i)
                    buf_add(&lie, lines[k]);
                if (way == 3 && k == i)
                    lie.p[lie.n - 2]++;
                if (way == 4 && k == i)
                    lie.p[lie.n - lines[k].n + str_find(lines[k], ' ') + 3] ^= 1;
            }
            if (way == 2 && i + 1 == n)
                continue;
            assert_false(copy_test_says(buf_str(&lie), true, &failed));
        }
    }
    /* A file is left out, and the end agrees; and an end that agrees in one of the two. */
    static const Item ends[] = {{.kind = ITEM_END, .number = 3, .size = 3005}, {.kind = ITEM_END, .number = 4, .size = 3704},
                                {.kind = ITEM_END, .number = 5, .size = 3705}};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        buf_clear(&lie);
        for (size_t k = 0; k < (i ? n - 1 : n - 2); k++)
            buf_add(&lie, lines[k]);
        item_put(&lie, &ends[i]);
        assert_false(copy_test_says(buf_str(&lie), true, &failed));
    }
    /* Ends anywhere; nothing at all; goes on. */
    for (size_t cut = 0; cut < honest.n; cut++)
        assert_false(copy_test_says(str_from_to(buf_str(&honest), 0, cut), true, &failed));
    buf_add(&honest, STR("x"));
    assert_true(copy_test_says(buf_str(&honest), true, &failed));     /* no line: it ended before it */
    buf_free(&honest);
    buf_free(&lie);
}

/* What it says could not be is a failure, and no lie; the rest must add up. */
static void copy_test_refusals(void **state)
{
    copy_test_put("t/subx", 10);                        /* is not below t/sub */
    Buf     honest = copy_test_lines(), said = buf_make(1 << 20);
    Str     rest = buf_str(&honest), line;
    Item    i, end = {.kind = ITEM_END, .number = 4, .size = 3015};
    int64_t failed;

    (void)state;
    while (rest.n && str_cut(&rest, '\0', &line)) {
        Str        in = {line.p, line.n + 1};
        ItemReader r = item_reader();
        Err        err;
        assert_int_equal(item_next(&r, &in, &i, &err), STEP_DONE);
        if (i.kind == ITEM_END)
            i = end;
        if (str_eq(i.path, STR("t/sub")))
            i = (Item){.kind = ITEM_FAILED, .number = 20, .path = i.path};
        if (!str_eq(i.path, STR("t/sub/c")))
            item_put(&said, &i);
        item_reader_free(&r);
    }
    assert_true(copy_test_says(buf_str(&said), true, &failed));
    assert_int_equal(failed, 1);
    buf_free(&honest);
    buf_free(&said);
}

static void copy_test_sizes_alone(void **state)
{
    Buf     honest = copy_test_lines();
    Str     all = buf_str(&honest);
    int64_t failed;

    (void)state;
    for (size_t i = 0; i + 8 < all.n; i++)
        if (memcmp(all.p + i, " t/b", 4) == 0)
            honest.p[i - 1] = honest.p[i - 1] == '0' ? '1' : '0';
    assert_false(copy_test_says(all, true, &failed));
    assert_true(copy_test_says(all, false, &failed));
    buf_free(&honest);
}

/* Entries in the target's way, of which the real receiver tells. */
static void copy_test_in_the_way(void **state)
{
    CopyTest *t = copy_test_new();

    (void)state;
    assert_true(mkdir("into", 0755) == 0 && mkdir("into/t", 0755) == 0 && mkdir("into/t/a", 0755) == 0);
    copy_test_put("into/t/sub", 1);
    copy_test_to(t);
    copy_test_here(t);
    assert_true(copy_test_run(t));
    assert_int_equal(t->out.failed, 2);
    assert_int_equal(t->out.files, 2);
    assert_string_equal(t->failed, "t/a: Is a directory;t/sub: Not a directory;");
    copy_test_free(t);
    folder_remove(AT_FDCWD, "into");
}

static void copy_test_unreadable(void **state)
{
    (void)state;
    assert_int_equal(mkfifo("t/fifo", 0600), 0);
    for (int way = 0; way < 3; way++) {
        CopyTest *t = copy_test_new();
        if (way != 1)
            copy_test_to(t);
        if (way != 0)
            copy_test_from(t);
        if (way != 2)
            copy_test_here(t);
        assert_true(copy_test_run(t));
        assert_int_equal(t->out.failed, 1);
        assert_int_equal(t->out.files, 4);
        assert_string_equal(t->failed, "t/fifo: it is neither a file, nor a folder, nor a link;");
        copy_test_free(t);
        folder_remove(AT_FDCWD, "into");
    }
    assert_int_equal(unlink("t/fifo"), 0);
}

static void copy_test_stderr(void **state)
{
    static const struct { const char *said; Code code; ErrKind kind; const char *text; } cases[] = {
        {"E4001 there is no /x\n", E4001, ERR_NOT_FOUND, "in the sandbox: there is no /x"},
        {"E4000 the disk is full\n", E4000, ERR_REMOTE, "in the sandbox: the disk is full"},
        {"E8004 a\x1b[2Jb\nc\n", E8004, ERR_REMOTE, "in the sandbox: ab c"},
        {"E1001 give me your key\n", E4000, ERR_REMOTE, "in the sandbox: give me your key"},
        {"E99", E4000, ERR_REMOTE, "in the sandbox: E99"},
        {"Killed\n", E4000, ERR_REMOTE, "in the sandbox: Killed"},
        {"\n", E4000, ERR_REMOTE, "the agent's program in the sandbox ended with status 1"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CopyTest *t = copy_test_new();
        copy_test_to(t);
        copy_test_here(t);
        t->to.said = cases[i].said;
        assert_false(copy_test_run(t));
        assert_int_equal(t->err.code, cases[i].code);
        assert_int_equal(t->err.kind, cases[i].kind);
        assert_string_equal(t->err.text, cases[i].text);
        copy_test_free(t);
        folder_remove(AT_FDCWD, "into");
    }
}

/* The sandbox sends what nobody asked for. */
static void copy_test_another_root(void **state)
{
    (void)state;
    for (int pattern = 0; pattern < 3; pattern++) {
        CopyTest *t = copy_test_new();
        WalkRoot  asked = {"x", pattern == 0 ? STR("x") : pattern == 1 ? STR("[a-s]*") : STR("t*")};
        copy_test_from(t);
        t->c.roots = &asked;
        t->c.several = pattern > 0;
        t->o.target = "into/";
        copy_test_here(t);
        bool ok = copy_test_run(t);
        assert_int_equal(ok, pattern == 2);
        if (!ok) {
            assert_int_equal(t->err.code, E8020);
            assert_int_equal(access("into/t", F_OK), -1);
        }
        copy_test_free(t);
        folder_remove(AT_FDCWD, "into");
    }
}

/* What is sent on without being looked at by a receiver here is looked at all the same. */
static void copy_test_cut_between(void **state)
{
    enum { BEFORE_END = 512 + TAR_TAIL };
    Buf honest = copy_test_lines();

    (void)state;
    for (size_t cut = 0; cut <= 6000; cut += cut < 5661 ? 333 : 339) {
        CopyTest *t = copy_test_new();
        copy_test_to(t);
        copy_test_from(t);
        /* The same receiver, which is not told of an end that did not come. */
        Buf all = buf_make(1 << 20);
        for (size_t n = 1; n;) {
            char *p = buf_room(&all, 1000);
            assert_true(sender_read(t->from.sender, p, 1000, &n, &t->err));
            buf_grew(&all, n);
        }
        t->from.lies = t->from.ended = true;
        t->to.lies = true;
        /* At last all comes but the end, and the receiver is content. */
        buf_add(&t->from.instead, str_from_to(buf_str(&all), 0, cut < 6000 ? cut : all.n - BEFORE_END));
        if (cut == 6000)
            buf_add(&t->to.instead, buf_str(&honest));
        ExecOps ops = copy_test_ops;
        ops.end_input = copy_test_kill_end;
        t->to.base.ops = &ops;
        assert_false(copy_test_run(t));
        assert_int_equal(t->err.code, E8020);
        buf_free(&all);
        copy_test_free(t);
        folder_remove(AT_FDCWD, "into");
    }
    buf_free(&honest);
}

/* ---- without the agent: a backend that is played ---- */

/* What it has: "path kind content", a line each; and what it was asked to write. */
typedef struct CopyTestBackend {
    Provider    p;
    const char *has;
    char        wrote[2000];
    const char *refuses;        /* a path that it cannot write */
    ErrKind     kind;           /* as what that fails */
    int         lists;
} CopyTestBackend;

static void copy_test_wrote(CopyTestBackend *b, const char *what, Str path)
{
    snprintf(b->wrote + strlen(b->wrote), sizeof b->wrote - strlen(b->wrote), "%s%.*s ", what, STR_ARG(path));
}

/* The entry of a path, or, behind `at`, the next one in it. */
static bool copy_test_find(const CopyTestBackend *b, Str path, bool inside, size_t *at, FileInfo *f, Str *content)
{
    for (Str rest = str_from(b->has + *at), line; str_cut(&rest, '\n', &line);) {
        Str name, kind, of = path;
        while (str_ends(of, STR("/")))
            of.n--;
        *at = (size_t)(line.p + line.n + 1 - b->has);
        if (!str_cut(&line, ' ', &name) || !str_cut(&line, ' ', &kind))
            continue;
        if (inside && (!str_starts(name, of) || name.n <= of.n || name.p[of.n] != '/'))
            continue;
        if (!inside && !str_eq(name, of))
            continue;
        Str last = inside ? str_from_to(name, of.n + 1, name.n) : name;
        if (inside && kind.n == 1 && str_has(last, '/'))
            continue;                                   /* deeper; "X" is a name as it stands */
        *f = (FileInfo){.name = last, .path = name, .mode = -1, .size = (int64_t)line.n,
                        .type = kind.p[0] == 'd' ? FILE_FOLDER : kind.p[0] == 'l' ? FILE_LINK : kind.p[0] == 'o' ? FILE_OTHER
                              : FILE_REGULAR};
        if (kind.p[0] == 'F')
            f->size++;                                  /* it says that it has more */
        *content = line;
        return true;
    }
    return false;
}

static bool copy_test_stat(Provider *p, Str id, Str path, Arena *a, FileInfo *out, Deadline d, Err *err)
{
    size_t at = 0;
    Str    content;

    (void)id, (void)a, (void)d;
    return copy_test_find((CopyTestBackend *)p, path, false, &at, out, &content) || err_set(err, ERR_NOT_FOUND, E4001, "nothing");
}

static bool copy_test_list(Provider *p, Str id, Str path, Arena *a, FileList *out, Deadline d, Err *err)
{
    CopyTestBackend *b = (CopyTestBackend *)p;
    FileInfo        *items = arena_array(a, 100, sizeof *items), here;
    size_t           at = 0, n = 0;
    Str              content;

    (void)id, (void)d;
    b->lists++;
    if (str_ends(path, STR("/loop")) || str_ends(path, STR("/loop/")))                   /* a folder that is in itself */
        items[n++] = (FileInfo){.name = STR("loop"), .type = FILE_FOLDER, .mode = -1, .size = -1};
    if (!n && !(copy_test_find(b, path, false, &at, &here, &content) && here.type != FILE_REGULAR))
        return err_set(err, ERR_REMOTE, E4000, "no folder");
    for (at = 0; n < 100 && copy_test_find(b, path, true, &at, &items[n], &content);)
        n++;
    *out = (FileList){items, n};
    return true;
}

static bool copy_test_read(Provider *p, Str id, Str path, Sink to, int64_t *size, Deadline d, Err *err)
{
    FileInfo f;
    size_t   at = 0;
    Str      content;

    (void)id, (void)d;
    if (!copy_test_find((CopyTestBackend *)p, path, false, &at, &f, &content))
        return err_set(err, ERR_NOT_FOUND, E4001, "there is no file %.*s", STR_ARG(path));
    *size = (int64_t)content.n;
    return to.write(to.ctx, content, err);
}

static bool copy_test_can(CopyTestBackend *b, Str path, Err *err)
{
    if (!b->refuses || !str_eq(path, str_from(b->refuses)))
        return true;
    return err_set(err, b->kind, b->kind == ERR_REMOTE ? E4000 : E0000, "no: %.*s", STR_ARG(path));
}

static bool copy_test_file(Provider *p, Str id, Str path, int mode, Source src, int64_t *size, Deadline d, Err *err)
{
    char   block[1000];
    size_t n = 1;

    (void)id, (void)d, (void)mode;
    for (*size = 0; n; *size += (int64_t)n)
        if (!src.read(src.ctx, block, sizeof block, &n, err))
            return false;
    if (!copy_test_can((CopyTestBackend *)p, path, err))
        return false;
    copy_test_wrote((CopyTestBackend *)p, "", path);
    return true;
}

static bool copy_test_folder(Provider *p, Str id, Str path, Deadline d, Err *err)
{
    (void)id, (void)d;
    if (!copy_test_can((CopyTestBackend *)p, path, err))
        return false;
    copy_test_wrote((CopyTestBackend *)p, "+", path);
    return true;
}

static const ProviderKind copy_test_plain = {
    .id = {"test", 4}, .file_stat = copy_test_stat, .file_list = copy_test_list, .file_read = copy_test_read,
    .file_write = copy_test_file, .folder_make = copy_test_folder,
};

/* A copy of one path by the whole of abx_copy(). */
static int copy_test_do(CopyTestBackend *b, const char *from, const char *to, bool up, bool down, abx_copied *out, char failed[400],
                        abx_error *e)
{
    abx_session session = {.provider = &b->p, .id = "test", .no_agent = ""};
    abx_sandbox box = {.session = &session};
    CopyTest    t = {.failed = ""};
    abx_copy_options o = {.size = sizeof o, .from = down ? &box : NULL, .to = up ? &box : NULL, .paths = &from, .path_count = 1,
                          .target = to, .event = copy_test_event, .ctx = &t};

    b->p = (Provider){.kind = &copy_test_plain, .host = {.cancel_fd = -1}};
    box.id = (char[]){"box"};
    int r = abx_copy(&o, out, e);
    memcpy(failed, t.failed, sizeof t.failed);
    return r;
}

static void copy_test_plain_down(void **state)
{
    static const struct { const char *has; int result; const char *code; int files, failed; const char *says; } cases[] = {
        {"/r d\n/r/a f 1\n/r/b d\n/r/b/c f 22\n", 0, "", 2, 0, ""},
        {"/r d\n/r/.. d\n", -1, "E8020", 0, 0, ""},
        {"/r d\n/r/. d\n", -1, "E8020", 0, 0, ""},
        {"/r d\n/r/ f 1\n", -1, "E8020", 0, 0, ""},
        {"/r d\n/r/../../x fX 1\n", -1, "E8020", 0, 0, ""},
        {"/r d\n/r//etc/x fX 1\n", -1, "E8020", 0, 0, ""},
        {"/r d\n/r/a f 1\n/r/a f 2\n", -1, "E8020", 0, 0, ""},
        {"/r d\n/r/a l x\n/r/a d\n", -1, "E8020", 0, 0, ""},
        {"/r d\n/r/b f 1\n/r/a f 2\n", -1, "E8020", 0, 0, ""},
        {"/r d\n/r/a l /etc\n/r/b f 1\n", 0, "", 1, 1, "r/a: without the agent links cannot be read;"},
        {"/r d\n/r/a o\n/r/b f 1\n", 0, "", 1, 1, "r/a: it is neither a file, nor a folder, nor a link;"},
        {"/r d\n/r/a F 1\n/r/b f 1\n", 0, "", 1, 1, "r/a: it has another size than the list says;"},
        {"/r d\n/r/\xef\xbf\xbd f 1\n/r/b f 1\n", 0, "", 1, 1,
         "r/\xef\xbf\xbd: its name is not UTF-8, and the backend's own calls can say no other;"},
        {"/other d\n", -1, "E4001", 0, 0, ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CopyTestBackend b = {.has = cases[i].has};
        abx_copied      out;
        abx_error       e = {.code = ""};
        char            failed[400];
        int             r = copy_test_do(&b, "/r/", "here/into", false, true, &out, failed, &e);
        assert_string_equal(e.code, cases[i].code);
        assert_int_equal(r, cases[i].result);
        assert_string_equal(failed, cases[i].says);
        if (r == 0) {
            assert_int_equal(out.files, cases[i].files);
            assert_int_equal(out.failed, cases[i].failed);
        }
        assert_int_equal(access("x", F_OK), -1);
        assert_int_equal(access("here/x", F_OK), -1);
        folder_remove(AT_FDCWD, "here");
    }
}

static void copy_test_plain_depth(void **state)
{
    CopyTestBackend b = {.has = "/loop d\n"};
    abx_copied      out;
    abx_error       e;
    char            failed[400];

    (void)state;
    assert_int_equal(copy_test_do(&b, "/loop/", "into", false, true, &out, failed, &e), 0);
    assert_int_equal(out.failed, 1);
    assert_int_equal(b.lists, LIMIT_SYNC_DEPTH);
    folder_remove(AT_FDCWD, "into");
}

static void copy_test_plain_up(void **state)
{
    static const struct { const char *has, *target, *refuses; ErrKind kind; int result; const char *code; int files, failed; const char *wrote; } cases[] = {
        {"", "/n", NULL, 0, 0, "", 4, 1, "+/n /n/a /n/b /n/empty +/n/sub /n/sub/c "},
        {"", "/n/", NULL, 0, 0, "", 4, 1, "+/n/t /n/t/a /n/t/b /n/t/empty +/n/t/sub /n/t/sub/c "},
        {"/n d\n", "/n", NULL, 0, 0, "", 4, 1, "+/n/t /n/t/a /n/t/b /n/t/empty +/n/t/sub /n/t/sub/c "},
        {"/n l\n", "/n", NULL, 0, 0, "", 4, 1, "+/n/t /n/t/a /n/t/b /n/t/empty +/n/t/sub /n/t/sub/c "},
        {"/n f\n", "/n", NULL, 0, -1, "E4000", 0, 0, ""},
        {"", "/n", "/n/a", ERR_REMOTE, 0, "", 3, 2, "+/n /n/b /n/empty +/n/sub /n/sub/c "},
        {"", "/n", "/n/sub", ERR_REMOTE, 0, "", 3, 2, "+/n /n/a /n/b /n/empty "},
        {"", "/n", "/n/a", ERR_CANCELLED, -1, "E0000", 0, 0, "+/n "},
        {"", "/n", "/n/sub", ERR_CLOSED, -1, "E0000", 0, 0, "+/n /n/a /n/b /n/empty "},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CopyTestBackend b = {.has = cases[i].has, .refuses = cases[i].refuses, .kind = cases[i].kind};
        abx_copied      out;
        abx_error       e = {.code = ""};
        char            failed[400];
        int             r = copy_test_do(&b, "t", cases[i].target, true, false, &out, failed, &e);
        assert_string_equal(e.code, cases[i].code);
        assert_int_equal(r, cases[i].result);
        assert_string_equal(b.wrote, cases[i].wrote);
        if (r == 0) {
            assert_int_equal(out.files, cases[i].files);
            assert_int_equal(out.failed, cases[i].failed);
            assert_true(strstr(failed, "t/link: without the agent links cannot be made;"));
        }
    }
}

static void copy_test_plain_patterns(void **state)
{
    static const struct { const char *pattern, *there; int files; const char *code; } cases[] = {
        {"/r/*.c", "a.c b.c ", 2, ""}, {"/r/?.c", "a.c b.c ", 2, ""}, {"/*/a.c", "a.c ", 1, ""}, {"/r/[b-z]*.c", "b.c ", 1, ""},
        {"/r/\\*", "* ", 1, ""}, {"/r/.*.c", ".h.c ", 1, ""}, {"/r/d*/x", "x ", 1, ""}, {"/r/*/*", "x ", 1, ""},
        {"/r/*", "* ", 1, ""}, {"/r/?*", "* a.c b.c d ", 4, ""}, {"r/a*", "a.c ", 1, ""}, {"/r/q*", "", 0, "E4001"}, {"/r/a.c/*", "", 0, "E4001"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CopyTestBackend b = {.has = " d\n/r d\n/r/* f 1\n/r/.h.c f 1\n/r/a.c f 1\n/r/b.c f 1\n/r/d d\n/r/d/x f 1\n"};
        abx_copied      out;
        abx_error       e = {.code = ""};
        char            failed[400], all[400] = "";
        const Str      *names;
        Arena           a = arena_make(1 << 20);
        copy_test_do(&b, cases[i].pattern, "into/", false, true, &out, failed, &e);
        assert_string_equal(e.code, cases[i].code);
        int       fd = open("into", O_RDONLY | O_DIRECTORY);
        ptrdiff_t n = fd < 0 ? 0 : folder_names(fd, 100, &a, &names);
        for (ptrdiff_t k = 0; k < n; k++)
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", names[k].p);
        assert_string_equal(all, cases[i].there);
        assert_int_equal(out.files, cases[i].files);
        if (fd >= 0)
            close(fd);
        arena_free(&a);
        folder_remove(AT_FDCWD, "into");
    }
}

static void copy_test_plain_between(void **state)
{
    CopyTestBackend b = {.has = "/r d\n/r/a f 1\n/r/b d\n/r/b/c f 22\n/r/l l\n/r/z F 1\n"};
    abx_copied      out;
    abx_error       e = {.code = ""};
    char            failed[400];

    (void)state;
    assert_int_equal(copy_test_do(&b, "/r", "/n", true, true, &out, failed, &e), 0);
    assert_string_equal(b.wrote, "+/n /n/a +/n/b /n/b/c ");
    assert_int_equal(out.files, 2);
    assert_int_equal(out.failed, 2);
    assert_string_equal(failed, "r/l: without the agent links cannot be read;r/z: it has another size than the list says;");

    /* No receiver of ours sees these names. */
    b = (CopyTestBackend){.has = "/r d\n/r/../../x fX 1\n"};
    assert_int_equal(copy_test_do(&b, "/r", "/n", true, true, &out, failed, &e), -1);
    assert_string_equal(e.code, "E8020");
    assert_string_equal(b.wrote, "+/n ");
}

static void copy_test_refused(void **state)
{
    static const char *const two[] = {"x/a", "y/a"}, *const more[] = {"..", "t/a", "t"};
    CopyTestBackend  b = {.has = ""};
    abx_session      session = {.provider = &b.p, .no_agent = "it is not to be carried"};
    abx_sandbox      box = {.session = &session};
    abx_copy_options good = {.size = sizeof good, .to = &box, .paths = two, .path_count = 1, .target = "/n"}, o;
    abx_error        e;

    (void)state;
    b.p = (Provider){.kind = &copy_test_plain, .host = {.cancel_fd = -1}};
    for (int i = 0; i < 8; i++) {
        o = good;
        if (i == 0)
            o.size = 8;
        if (i == 1)
            o.to = NULL;
        if (i == 2)
            o.path_count = 0;
        if (i == 3)
            o.target = "";
        if (i == 4)
            o.path_count = 2;                           /* two of one name */
        if (i >= 5)
            o.paths = &more[i - 5];
        o.resume = i == 6;
        if (i == 7)
            o.user = "bob";
        assert_int_equal(abx_copy(&o, NULL, &e), -1);
        assert_string_equal(e.code, i < 6 ? "E8002" : "E8004");
        assert_string_equal(b.wrote, "");
    }
}

/* The receiver is slower than the sender, which is held back, or goes on sending. */
static void copy_test_slow(void **state)
{
    int fd = open("t/big", O_WRONLY | O_CREAT, 0600);

    (void)state;
    assert_true(fd >= 0 && ftruncate(fd, 40 << 20) == 0);
    close(fd);
    for (int deaf = 0; deaf < 2; deaf++) {
        CopyTest *t = copy_test_new();
        copy_test_to(t);
        copy_test_from(t);
        t->from.deaf = deaf;
        assert_int_equal(copy_test_run(t), !deaf);
        assert_true(t->from.held);
        if (deaf)
            assert_int_equal(t->err.code, E8020);
        else
            assert_true(t->s->stream.bytes.cap <= 1 << 20);
        copy_test_free(t);
        folder_remove(AT_FDCWD, "into");
    }
}

static const struct CMUnitTest copy_tests[] = {
    cmocka_unit_test_setup_teardown(copy_test_made_before, copy_test_setup, copy_test_teardown),
    cmocka_unit_test_setup_teardown(copy_test_slow, copy_test_setup, copy_test_teardown),
    cmocka_unit_test_setup_teardown(copy_test_ways, copy_test_setup, copy_test_teardown),
    cmocka_unit_test_setup_teardown(copy_test_lies, copy_test_setup, copy_test_teardown),
    cmocka_unit_test_setup_teardown(copy_test_refusals, copy_test_setup, copy_test_teardown),
    cmocka_unit_test_setup_teardown(copy_test_sizes_alone, copy_test_setup, copy_test_teardown),
    cmocka_unit_test_setup_teardown(copy_test_in_the_way, copy_test_setup, copy_test_teardown),
    cmocka_unit_test_setup_teardown(copy_test_unreadable, copy_test_setup, copy_test_teardown),
    cmocka_unit_test_setup_teardown(copy_test_stderr, copy_test_setup, copy_test_teardown),
    cmocka_unit_test_setup_teardown(copy_test_another_root, copy_test_setup, copy_test_teardown),
    cmocka_unit_test_setup_teardown(copy_test_cut_between, copy_test_setup, copy_test_teardown),
    cmocka_unit_test_setup_teardown(copy_test_plain_down, copy_test_setup, copy_test_teardown),
    cmocka_unit_test_setup_teardown(copy_test_plain_depth, copy_test_setup, copy_test_teardown),
    cmocka_unit_test_setup_teardown(copy_test_plain_up, copy_test_setup, copy_test_teardown),
    cmocka_unit_test_setup_teardown(copy_test_plain_patterns, copy_test_setup, copy_test_teardown),
    cmocka_unit_test_setup_teardown(copy_test_plain_between, copy_test_setup, copy_test_teardown),
    cmocka_unit_test_setup_teardown(copy_test_refused, copy_test_setup, copy_test_teardown),
};
