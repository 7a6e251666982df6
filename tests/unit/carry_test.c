#include "provider/carry.h"

#include "provider/carry_file.h"
#include "provider/carry_lines.h"
#include "provider/carry_place.h"

#include <elf.h>
#include <unistd.h>

/* ---- the program's file ---- */

typedef struct CarryElf {
    Elf64_Ehdr head;
    Elf64_Phdr segments[2];
    Elf64_Nhdr note[2];
    char       bytes[64];
} CarryElf;

static CarryElf carry_test_elf(void)
{
    CarryElf e = {.head = {.e_machine = EM_X86_64, .e_phoff = offsetof(CarryElf, segments), .e_phentsize = sizeof(Elf64_Phdr),
                           .e_phnum = 2},
                  .segments = {{.p_type = PT_LOAD}, {.p_type = PT_NOTE, .p_offset = offsetof(CarryElf, note), .p_filesz = 80}},
                  .note = {{4, 20, NT_GNU_BUILD_ID}}};

    memcpy(e.head.e_ident, ELFMAG "\2\1\1", 7);
    memcpy(&e.note[1], "GNU\0\x01\x23\x45\x67\x89\xab\xcd\xef\1\2\3\4", 16);
    return e;
}

static void carry_test_write(char path[static 32], const void *bytes, size_t n)
{
    strcpy(path, "/tmp/abx-carry-XXXXXX");
    int fd = mkstemp(path);
    assert_int_equal(write(fd, bytes, n), n);
    close(fd);
}

static const char *carry_test_open(const void *bytes, size_t n, CarryFile *f, Err *err)
{
    char path[32];

    carry_test_write(path, bytes, n);
    bool ok = carry_file_open(f, str_from(path), err);
    unlink(path);
    if (!ok)
        assert_int_equal(err->code, E8004);
    return ok ? NULL : err->text + strlen(path);
}

static void carry_file_test(void **state)
{
    CarryElf  e = carry_test_elf();
    CarryFile f;
    Err       err;
    char      read[sizeof e + 8];
    size_t    n;

    (void)state;
    assert_null(carry_test_open(&e, sizeof e, &f, &err));
    assert_string_equal(f.name, "abx-" ABX_VERSION "-0123456789abcdef");
    for (int i = 0; i < 2; i++) {       /* from the beginning, each time */
        Source s = carry_file_source(&f);
        assert_int_equal(s.size, sizeof e);
        assert_true(s.read(s.ctx, read, sizeof read, &n, &err) && n == sizeof e);
        assert_true(s.read(s.ctx, read, sizeof read, &n, &err) && n == 0);
    }
    carry_file_close(&f);
    /* A file that was cut anywhere is none, and none is read beyond its end. */
    for (size_t cut = 0; cut < offsetof(CarryElf, note) + 80; cut++)
        assert_non_null(carry_test_open(&e, cut, &f, &err));

    e.head.e_machine = EM_AARCH64;
    assert_string_equal(carry_test_open(&e, sizeof e, &f, &err), " is not a program for Linux on x86_64");
    e = carry_test_elf(), e.head.e_ident[EI_CLASS] = ELFCLASS32;
    assert_string_equal(carry_test_open(&e, sizeof e, &f, &err), " is not a program for Linux on x86_64");
    e = carry_test_elf(), e.segments[0].p_type = PT_INTERP;
    assert_non_null(strstr(carry_test_open(&e, sizeof e, &f, &err), "not linked statically"));
    e = carry_test_elf(), e.note[0].n_type = NT_GNU_ABI_TAG;
    assert_string_equal(carry_test_open(&e, sizeof e, &f, &err), " has no build id");
    e = carry_test_elf(), e.note[0].n_descsz = 7;
    assert_string_equal(carry_test_open(&e, sizeof e, &f, &err), " has no build id");
    e = carry_test_elf(), e.note[0].n_namesz = UINT32_MAX;
    assert_string_equal(carry_test_open(&e, sizeof e, &f, &err), " has no build id");
    e = carry_test_elf(), e.note[0].n_descsz = UINT32_MAX;
    assert_string_equal(carry_test_open(&e, sizeof e, &f, &err), " has no build id");
    e = carry_test_elf(), e.segments[1].p_offset = UINT64_MAX - 3;
    assert_string_equal(carry_test_open(&e, sizeof e, &f, &err), " has no build id");
    e = carry_test_elf(), e.segments[1].p_filesz = UINT64_MAX;
    assert_string_equal(carry_test_open(&e, sizeof e, &f, &err), " has no build id");
    e = carry_test_elf(), e.head.e_phoff = UINT64_MAX - 70;
    assert_string_equal(carry_test_open(&e, sizeof e, &f, &err), " is cut short");
    e = carry_test_elf(), e.head.e_phnum = UINT16_MAX;
    assert_string_equal(carry_test_open(&e, sizeof e, &f, &err), " is not a program that is understood");
    e = carry_test_elf(), e.head.e_phnum = 0;
    assert_string_equal(carry_test_open(&e, sizeof e, &f, &err), " has no build id");
    assert_false(carry_file_open(&f, STR("/nonexistent"), &err));
    assert_false(carry_file_open(&f, STR("/tmp"), &err));
    assert_false(carry_file_open(&f, STR("/dev/zero"), &err));
}

/* ---- markers ---- */

static void carry_mark_test(void **state)
{
    static const struct { int base; const char *own, *line; CarryMark want; } rows[] = {
        {0, "", "ABX1 need /tmp/.abx-0", CARRY_MARK_NEED}, {0, "", "ABX1 need /tmp/.abx-4294967295\r", CARRY_MARK_NEED},
        {0, "", "ABX1 unsafe /tmp/.abx-1000", CARRY_MARK_UNSAFE}, {0, "", "ABX1 nodir /tmp/.abx-0", CARRY_MARK_NODIR},
        {0, "", "ABX1 noexec /tmp/.abx-0", CARRY_MARK_NOEXEC}, {1, "", "ABX1 nowrite /var/tmp/.abx-0", CARRY_MARK_NOWRITE},
        {2, "", "ABX1 need /root/.abx-0", CARRY_MARK_NEED}, {2, "", "ABX1 need /home/a b/.abx-7", CARRY_MARK_NEED},
        {2, "", "ABX1 need /.abx-0", CARRY_MARK_NEED}, {3, "", "ABX1 need /run/.abx-0", CARRY_MARK_NEED},
        {0, "0123456789abcdef", "ABX1 need /tmp/.abx-0123456789abcdef", CARRY_MARK_NEED},
        {0, "", "ABX1 port 1", CARRY_MARK_PORT}, {0, "", "ABX1 port 65535", CARRY_MARK_PORT},
        {0, "", "", CARRY_MARK_NONE}, {0, "", "hello", CARRY_MARK_NONE}, {0, "", "ABX1", CARRY_MARK_NONE},
        {0, "", " ABX1 need /tmp/.abx-0", CARRY_MARK_NONE}, {0, "", "abx1 need /tmp/.abx-0", CARRY_MARK_NONE},
        {0, "", "ABX1 port 0", CARRY_MARK_LIE}, {0, "", "ABX1 port 70000", CARRY_MARK_LIE}, {0, "", "ABX1 port", CARRY_MARK_LIE},
        {0, "", "ABX1 port 080", CARRY_MARK_LIE}, {0, "", "ABX1 port -1", CARRY_MARK_LIE}, {0, "", "ABX1 port 80 ", CARRY_MARK_LIE},
        {0, "", "ABX1 port 99999999999999999999", CARRY_MARK_LIE}, {0, "", "ABX1 ", CARRY_MARK_LIE},
        {0, "", "ABX1 need", CARRY_MARK_LIE}, {0, "", "ABX1 need ", CARRY_MARK_LIE}, {0, "", "ABX1 NEED /tmp/.abx-0", CARRY_MARK_LIE},
        {0, "", "ABX1 need /etc/.abx-0", CARRY_MARK_LIE}, {0, "", "ABX1 need /tmp/.abx-", CARRY_MARK_LIE},
        {0, "", "ABX1 need /tmp/.abx-0/..", CARRY_MARK_LIE}, {0, "", "ABX1 need /tmp/.abx-0 ", CARRY_MARK_LIE},
        {0, "", "ABX1 need /tmp//.abx-0", CARRY_MARK_LIE}, {0, "", "ABX1 need /tmp/x/.abx-0", CARRY_MARK_LIE},
        {0, "", "ABX1 need tmp/.abx-0", CARRY_MARK_LIE}, {0, "", "ABX1 need /tmp/.abx-4294967296", CARRY_MARK_LIE},
        {0, "", "ABX1 need /var/tmp/.abx-0", CARRY_MARK_LIE}, {0, "", "ABX1 need /tmp/.abx-0123456789abcdef", CARRY_MARK_LIE},
        {2, "", "ABX1 need /home/$HOME/.abx-0", CARRY_MARK_LIE}, {2, "", "ABX1 need /a/../etc/.abx-0", CARRY_MARK_LIE},
        {2, "", "ABX1 need ~/.abx-0", CARRY_MARK_LIE}, {2, "", "ABX1 need /home/\t/.abx-0", CARRY_MARK_LIE},
        {0, "0123456789abcdef", "ABX1 need /tmp/.abx-0", CARRY_MARK_LIE},
        {0, "0123456789abcdef", "ABX1 need /tmp/.abx-1123456789abcdef", CARRY_MARK_LIE},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        CarryPlace at = {.base = rows[i].base};
        Str        folder = {0};
        int        port = -1;
        memcpy(at.own, rows[i].own, strlen(rows[i].own));
        if (carry_place_mark(&at, guard_copy(str_from(rows[i].line)), &folder, &port) != rows[i].want)
            fail_msg("row %zu: %s", i, rows[i].line);
        assert_int_equal(folder.n != 0, rows[i].want >= CARRY_MARK_NEED && rows[i].want <= CARRY_MARK_UNSAFE);
    }
    /* A path of any length, all of which could be a home. */
    Buf        long_one = buf_make(4096);
    CarryPlace home = {.base = 2};
    Str        folder;
    int        port;
    buf_add(&long_one, STR("ABX1 need /"));
    while (long_one.n < CARRY_PLACE_PATH + 10 - 7)
        buf_addc(&long_one, 'x');
    buf_add(&long_one, STR("/.abx-0"));
    assert_int_equal(carry_place_mark(&home, buf_str(&long_one), &folder, &port), CARRY_MARK_NEED);
    assert_int_equal(folder.n, CARRY_PLACE_PATH);
    buf_addc(&long_one, '0');
    assert_int_equal(carry_place_mark(&home, buf_str(&long_one), &folder, &port), CARRY_MARK_LIE);
    buf_free(&long_one);
}

/* ---- a sandbox made of a list ---- */

typedef struct CarryStep {
    char        op;             /* what is expected: Line, Upload, Dial, Pipe */
    const char *out;            /* L: what it prints, HELLO standing for the agent's, tagged. U, D, P: the refusal; NULL: none */
    const char *said;           /* L: on stderr. D, P: how the stream ends instead of a HELLO */
    int         code;           /* L: its exit code, -n a signal; DO_RUNS */
} CarryStep;

enum { DO_RUNS = 1000, CARRY_TEST_LINE = 8192 };

typedef struct CarryFake {
    Provider         base;
    ProviderKind     kind;
    CarrierOps       ops;
    Carrier          carrier;
    const CarryStep *steps;
    size_t           n, at;
    Buf              lines, notices, fed;
    char             upload[100];       /* where the last one went */
    size_t           uploaded, early;   /* its bytes; what was written before the agent's HELLO */
    int              open;              /* calls and streams that were not closed */
    unsigned char    run[FRAME_RUN];
    size_t           start;             /* bytes of the argument in START */
    bool             deaf;
} CarryFake;

typedef struct CarryFakeCall {
    ExecCall   base;
    CarryFake *fake;
    Buf        out;
    const CarryStep *step;
    int        given;
} CarryFakeCall;

typedef struct CarryFakeStream {
    Stream     base;
    CarryFake *fake;
    const CarryStep *step;
    Buf        written, answer;
    size_t     at;
} CarryFakeStream;

static const CarryStep *carry_fake_step(CarryFake *f, char op)
{
    if (f->at == f->n || f->steps[f->at].op != op)
        fail_msg("step %zu is a %c", f->at, op);
    return &f->steps[f->at++];
}

static void carry_fake_hello(CarryFake *f, Buf *to)
{
    frame_put_preamble(to, f->run);
    frame_put_agent_hello(to, &(FrameHello){.window = 1, .pid = 77, .text = STR("linux x86_64 abx")});
}

static Step carry_fake_next(ExecCall *x, ExecEvent *ev, Err *err)
{
    CarryFakeCall *c = (CarryFakeCall *)x;

    (void)err;
    c->given++;
    *ev = (ExecEvent){.kind = c->given == 1 ? EXEC_OUT : c->given == 2 ? EXEC_ERR : EXEC_EXIT};
    if (c->given == 1)
        ev->bytes = buf_str(&c->out);
    else if (c->given == 2)
        ev->bytes = str_from(c->step->said);
    else if (c->step->code == DO_RUNS)
        return STEP_MORE;
    else if (c->step->code < 0)
        ev->exit_code = -1, ev->signal = -c->step->code;
    else
        ev->exit_code = c->step->code;
    return STEP_DONE;
}

static StreamWant carry_fake_call_want(const ExecCall *x)
{
    (void)x;
    return (StreamWant){.fd = -1};
}

static Deadline carry_fake_deadline(const ExecCall *x)
{
    (void)x;
    return DEADLINE_NONE;
}

static void carry_fake_call_close(ExecCall *x)
{
    CarryFakeCall *c = (CarryFakeCall *)x;

    c->fake->open--;
    buf_free(&c->out);
    mem_free(c);
}

static bool carry_fake_line(Carrier *carrier, Str line, const Pair *env, size_t n, bool input, ExecCall **out, Deadline d, Err *err)
{
    static const ExecOps ops = {.next = carry_fake_next, .want = carry_fake_call_want, .deadline = carry_fake_deadline,
                                .close = carry_fake_call_close};
    CarryFake     *f = (CarryFake *)((char *)carrier - offsetof(CarryFake, carrier));
    CarryFakeCall *c = mem_new(sizeof *c);
    Armor          armor = {0};
    Buf            hello = buf_make(4096);

    (void)input, (void)d, (void)err;
    buf_add(&f->lines, line);
    for (size_t i = 0; i < n; i++)
        buf_addf(&f->lines, " [%.*s=%zu]", STR_ARG(env[i].key), env[i].value.n);
    buf_addc(&f->lines, '\n');
    *c = (CarryFakeCall){.base = {&ops}, .fake = f, .step = carry_fake_step(f, 'L'), .out = buf_make(1 << 20)};
    const char *at = strstr(c->step->out, "HELLO");
    buf_addf(&c->out, "%.*s", (int)(at ? at - c->step->out : (long)strlen(c->step->out)), c->step->out);
    if (at) {
        char tag[ARMOR_TAG + 1] = "";
        assert_true(n == 2 && str_eq(env[0].key, STR("ABX_AGENT_TAG")) && env[0].value.n == ARMOR_TAG);
        memcpy(tag, env[0].value.p, ARMOR_TAG);
        armor = armor_make(tag);
        carry_fake_hello(f, &hello);
        armor_put(&armor, &c->out, buf_str(&hello), 11);
        buf_add(&c->out, str_from(at + 5));
        armor_free(&armor);
    }
    buf_free(&hello);
    f->open++;
    *out = &c->base;
    return true;
}

static bool carry_fake_put(Carrier *carrier, Str path, Source src, Deadline d, Err *err)
{
    CarryFake       *f = (CarryFake *)((char *)carrier - offsetof(CarryFake, carrier));
    const CarryStep *step = carry_fake_step(f, 'U');
    char             piece[1000];
    size_t           n;

    (void)d;
    assert_true(path.n < sizeof f->upload);
    memcpy(f->upload, path.p, path.n);
    f->upload[path.n] = 0;
    for (f->uploaded = 0; src.read(src.ctx, piece, sizeof piece, &n, err) && n; f->uploaded += n)
        ;
    return !step->out || err_set(err, step->code == 1 ? ERR_CLOSED : ERR_REMOTE, E4000, "%s", step->out);
}

static Step carry_fake_read(Stream *stream, char *p, size_t cap, size_t *n, Err *err)
{
    CarryFakeStream *s = (CarryFakeStream *)stream;

    *n = 0;
    if (s->step->said && s->step->said[0]) {
        err_set(err, s->step->code == 1 ? ERR_CLOSED : ERR_REMOTE, E5000, "%s", s->step->said);
        return STEP_ERR;
    }
    if (s->step->said)
        return STEP_DONE;
    if (s->at == 0) {
        s->fake->early = s->written.n;
        if (s->step->code == 2)
            buf_add(&s->answer, STR("ABX1 is not what is here, but a server of somebody\n"));
        else
            carry_fake_hello(s->fake, &s->answer);
        if (s->step->code == 3)
            s->answer.p[10] ^= 1;
    }
    if (s->at == s->answer.n)
        return STEP_MORE;
    *n = cap < 7 ? cap : 7;
    *n = *n < s->answer.n - s->at ? *n : s->answer.n - s->at;
    memcpy(p, s->answer.p + s->at, *n);
    s->at += *n;
    return STEP_DONE;
}

static Step carry_fake_write(Stream *stream, const char *p, size_t len, size_t *n, Err *err)
{
    CarryFakeStream *s = (CarryFakeStream *)stream;

    (void)err;
    *n = len < 1000 ? len : 1000;
    buf_add(&s->written, (Str){p, *n});
    return STEP_DONE;
}

static StreamWant carry_fake_want(const Stream *stream, StreamSide side)
{
    (void)stream, (void)side;
    return (StreamWant){.fd = -1};
}

static void carry_fake_close(Stream *stream)
{
    CarryFakeStream *s = (CarryFakeStream *)stream;

    s->fake->open--;
    buf_free(&s->written);
    buf_free(&s->answer);
    mem_free(s);
}

static bool carry_fake_stream(Carrier *carrier, char op, Str text, Stream **out, Err *err)
{
    static const StreamOps ops = {carry_fake_read, carry_fake_write, carry_fake_want, carry_fake_close};
    CarryFake       *f = (CarryFake *)((char *)carrier - offsetof(CarryFake, carrier));
    const CarryStep *step = carry_fake_step(f, op);

    buf_addf(&f->lines, "%c %.*s\n", op, STR_ARG(text));
    if (step->out)
        return err_set(err, ERR_REMOTE, E3000, "%s", step->out);
    CarryFakeStream *s = mem_new(sizeof *s);
    *s = (CarryFakeStream){.base = {&ops}, .fake = f, .step = step, .written = buf_make(1 << 20), .answer = buf_make(4096)};
    f->open++;
    *out = &s->base;
    return true;
}

static bool carry_fake_dial(Carrier *carrier, int port, Str path, Stream **out, Deadline d, Err *err)
{
    (void)d;
    assert_int_equal(port, 4711);
    assert_int_equal(path.n, 1 + ARMOR_TAG);
    return carry_fake_stream(carrier, 'D', path, out, err);
}

static bool carry_fake_pipe(Carrier *carrier, Str line, Stream **out, Deadline d, Err *err)
{
    (void)d;
    return carry_fake_stream(carrier, 'P', line, out, err);
}

static Step carry_fake_feed(Carrier *carrier, ExecCall *x, uint32_t pid, Str bytes, Err *err)
{
    CarryFake *f = (CarryFake *)((char *)carrier - offsetof(CarryFake, carrier));

    (void)x, (void)err;
    assert_int_equal(pid, 77);
    assert_true(bytes.n <= 200);
    if (f->fed.n % 2 == 0) {        /* the one before is on its way */
        buf_addc(&f->fed, '.');
        return STEP_MORE;
    }
    buf_add(&f->fed, bytes);
    if (f->fed.n % 2)
        buf_addc(&f->fed, '.');
    return STEP_DONE;
}

static bool carry_fake_open(Provider *p, Str id, Carrier **out, Deadline d, Err *err)
{
    CarryFake *f = (CarryFake *)p;

    (void)id, (void)d, (void)err;
    f->open++;
    f->carrier.ops = p->kind->carrier;
    *out = &f->carrier;
    return true;
}

static void carry_fake_carrier_close(Carrier *carrier)
{
    ((CarryFake *)((char *)carrier - offsetof(CarryFake, carrier)))->open--;
}

static void carry_fake_notice(void *ctx, Str line)
{
    buf_addf(ctx, "%.*s\n", STR_ARG(line));
}

static bool carry_fake_first(void *ctx, CarryWay way, bool deaf, Buf *to, Err *err)
{
    CarryFake *f = ctx;
    char      *big = mem_new(f->start + 1);
    Str        argv[] = {{big, f->start}};
    FrameStart start = {.kind = FRAME_EXEC, .argv = {argv, 1}, .flags = deaf ? FRAME_START_NO_ACK : 0};

    (void)way;
    memset(big, 'x', f->start);
    f->deaf = deaf;
    frame_put_preamble(to, f->run);
    frame_put_hello(to, &(FrameHello){.window = 5});
    bool ok = frame_put_start(to, 0, &start, err);
    mem_free(big);
    return ok;
}

typedef struct CarryWays { bool dial, pipe, feed, input; size_t start; } CarryWays;

/* One carry_open() over these steps, all of which must be taken. */
static CarryResult carry_test_run(CarryFake *f, const CarryStep *steps, size_t n, CarryWays w, Carried *out, Err *err)
{
    CarrierOps   use = {.open = carry_fake_open, .close = carry_fake_carrier_close, .line = carry_fake_line, .put = carry_fake_put,
                        .dial = w.dial ? carry_fake_dial : NULL, .pipe = w.pipe ? carry_fake_pipe : NULL,
                        .feed = w.feed ? carry_fake_feed : NULL, .feed_bytes = 200};
    CarryRequest rq = {.input = w.input, .first = carry_fake_first, .ctx = f};
    CarryElf     e = carry_test_elf();
    char         path[32];

    carry_test_write(path, &e, sizeof e);
    *f = (CarryFake){.base = {&f->kind, {.cancel_fd = -1, .notice = carry_fake_notice, .notice_ctx = &f->notices,
                                      .agent_path = str_from(path)}},
                     .kind = {.carrier = &f->ops}, .ops = use, .steps = steps, .n = n, .lines = buf_make(1 << 20), .notices = buf_make(1 << 16), .fed = buf_make(1 << 16),
                     .start = w.start ? w.start : 4, .run = "0123456789abcde"};
    CarryResult r = carry_open(&f->base, STR("box"), &rq, out, clock_after(60000), err);
    unlink(path);
    if (f->at != n)
        fail_msg("%zu of %zu steps were taken: %s", f->at, n, err->text);
    buf_addc(&f->lines, 0);
    buf_addc(&f->notices, 0);
    if (r == CARRY_DONE) {      /* HELLO is what the stream gives first, whole */
        FrameReader reader = frame_reader_client(f->run, out->noisy);
        Frame       frame;
        char        block[16];
        size_t      got;
        Step        step = STEP_MORE;
        while (step == STEP_MORE) {
            assert_int_equal(stream_read(out->stream, block, sizeof block, &got, err), STEP_DONE);
            step = frame_next(&reader, &(Str){block, got}, &frame, err);
        }
        assert_true(step == STEP_DONE && frame.type == FRAME_AGENT_HELLO);
        frame_reader_free(&reader);
    }
    return r;
}

static void carry_test_end(CarryFake *f, Carried *c)
{
    if (c->stream)
        carry_close(c);
    assert_int_equal(f->open, 0);
    buf_free(&f->lines);
    buf_free(&f->notices);
    buf_free(&f->fed);
}

#define DO_NEED(where) "ABX1 need " where "/.abx-0\n"
#define DO_LINE(o, s, c) {.op = 'L', .out = (o), .said = (s), .code = (c)}
#define DO_PORT        DO_LINE("ABX1 port 4711\n", "", DO_RUNS)
#define DO_UP          {.op = 'U'}
#define DO_NO_UP(o, c) {.op = 'U', .out = (o), .code = (c)}
#define DO_DIAL        {.op = 'D'}
#define DO_NO_DIAL(o)  {.op = 'D', .out = (o)}
#define DO_CUT_DIAL(s, c)  {.op = 'D', .said = (s), .code = (c)}
#define DO_PIPE        {.op = 'P'}
#define DO_NO_PIPE(o)  {.op = 'P', .out = (o)}
#define DO_CUT_PIPE(s) {.op = 'P', .said = (s)}
#define CARRY_ALL   {.dial = true, .pipe = true}

static void carry_ways_test(void **state)
{
    static const struct {
        CarryWays   ways;
        CarryStep   steps[12];
        CarryResult want;
        CarryWay    way;
        const char *text;       /* in the error, or in the notice */
    } rows[] = {
        /* there, and not there yet */
        {CARRY_ALL, {DO_PORT, DO_DIAL}, CARRY_DONE, CARRY_LISTEN, NULL},
        {CARRY_ALL, {DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_PORT, DO_DIAL}, CARRY_DONE, CARRY_LISTEN, NULL},
        {CARRY_ALL, {DO_LINE("welcome\nABX1\n" DO_NEED("/tmp"), "x", 0), DO_UP, DO_LINE("hi\nABX1 port 4711", "", 0), DO_DIAL}, CARRY_DONE,
            CARRY_LISTEN, NULL},
        /* an upload that does not stay: once more, then not again */
        {CARRY_ALL, {DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_PORT, DO_DIAL}, CARRY_DONE, CARRY_LISTEN, NULL},
        {CARRY_ALL, {DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_LINE(DO_NEED("/tmp"), "", 0)}, CARRY_CANNOT,
            CARRY_LISTEN, "/tmp: the program was put there twice"},
        /* what lies there does not start: the folder is asked for, then as above */
        {CARRY_ALL, {DO_LINE("", "bash: Exec format error", 126), DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_PORT, DO_DIAL}, CARRY_DONE, CARRY_LISTEN, NULL},
        {CARRY_ALL, {DO_LINE("", "", 127), DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_PORT, DO_DIAL}, CARRY_DONE, CARRY_LISTEN, NULL},
        {CARRY_ALL, {DO_LINE("", "", -11), DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_LINE("", "", -11), DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_LINE("", "", -11)},
            CARRY_CANNOT, CARRY_LISTEN, "/tmp: it does not start there (signal 11)"},
        {CARRY_ALL, {DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_LINE("", "cannot execute: Exec format error\n", 126)}, CARRY_CANNOT, CARRY_LISTEN,
            "another architecture (exit code 126: cannot execute: Exec format error)"},
        {CARRY_ALL, {DO_LINE("", "", 0), DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_PORT, DO_DIAL}, CARRY_DONE, CARRY_LISTEN, NULL},
        {CARRY_ALL, {DO_LINE("", "", 127), DO_LINE("", "", 127), DO_LINE("", "", 127), DO_LINE("", "", 0), DO_LINE("", "", -9), DO_LINE("", "", 1),
                     DO_LINE("", "", 2), DO_LINE("", "", 3)}, CARRY_CANNOT, CARRY_LISTEN, "/run: the sandbox's shell does not say"},
        /* noexec: the next folders, in their order */
        {CARRY_ALL, {DO_LINE("", "Permission denied", 126), DO_LINE(DO_NEED("/var/tmp"), "", 0), DO_UP, DO_PORT, DO_DIAL}, CARRY_DONE, CARRY_LISTEN, NULL},
        {CARRY_ALL, {DO_LINE("ABX1 noexec /tmp/.abx-0\n", "", 0), DO_LINE("ABX1 nowrite /var/tmp/.abx-0\n", "", 0),
                     DO_LINE("ABX1 nodir /root/.abx-0\n", "", 0), DO_PORT, DO_DIAL}, CARRY_DONE, CARRY_LISTEN, NULL},
        {CARRY_ALL, {DO_LINE("ABX1 noexec /tmp/.abx-0\n", "", 0), DO_LINE("ABX1 nowrite /var/tmp/.abx-0\n", "", 0),
                     DO_LINE("ABX1 nodir /root/.abx-0\n", "", 0), DO_LINE("ABX1 noexec /run/.abx-0\n", "", 0)}, CARRY_CANNOT, CARRY_LISTEN,
            "/tmp: nothing can be started there (mounted noexec); /var/tmp: nothing can be written there; $HOME: no folder can be "
            "made there; /run: nothing can be started"},
        {CARRY_ALL, {DO_LINE(DO_NEED("/tmp"), "", 0), DO_NO_UP("no space left", 0), DO_LINE(DO_NEED("/var/tmp"), "", 0), DO_UP, DO_PORT, DO_DIAL}, CARRY_DONE,
            CARRY_LISTEN, NULL},
        {CARRY_ALL, {DO_LINE(DO_NEED("/tmp"), "", 0), DO_NO_UP("the connection was lost", 1)}, CARRY_FAILED, CARRY_LISTEN, "connection was lost"},
        /* lies */
        {CARRY_ALL, {DO_LINE(DO_NEED("/etc"), "", 0)}, CARRY_CANNOT, CARRY_LISTEN, "not asked for"},
        {CARRY_ALL, {DO_LINE("ABX1 port 4711\nABX1 port 4712\n", "", DO_RUNS)}, CARRY_CANNOT, CARRY_LISTEN, "not asked for"},
        {CARRY_ALL, {DO_LINE(DO_NEED("/tmp") DO_NEED("/tmp"), "", 0)}, CARRY_CANNOT, CARRY_LISTEN, "not asked for"},
        {CARRY_ALL, {DO_LINE("ABX1 port 0\n", "", DO_RUNS)}, CARRY_CANNOT, CARRY_LISTEN, "not asked for"},
        {CARRY_ALL, {DO_LINE("ABX1 port 70000\n", "", DO_RUNS)}, CARRY_CANNOT, CARRY_LISTEN, "not asked for"},
        /* an agent that speaks where it was to listen: nothing it says counts */
        {CARRY_ALL, {DO_PORT, DO_CUT_DIAL(NULL, 2), DO_PIPE}, CARRY_DONE, CARRY_PIPE, "another version"},
        {CARRY_ALL, {DO_PORT, DO_CUT_DIAL(NULL, 3), DO_PIPE}, CARRY_DONE, CARRY_PIPE, "another run"},
        /* the ways, one after the other */
        {CARRY_ALL, {DO_PORT, DO_NO_DIAL("cannot reach the agent: 404"), DO_PIPE}, CARRY_DONE, CARRY_PIPE, "reached by a pipe: it cannot be reached where it listens: cannot reach the agent: 404"},
        {CARRY_ALL, {DO_PORT, DO_CUT_DIAL("closed (1008)", 0), DO_PIPE}, CARRY_DONE, CARRY_PIPE, "closed (1008)"},
        {CARRY_ALL, {DO_PORT, DO_CUT_DIAL("", 0), DO_PIPE}, CARRY_DONE, CARRY_PIPE, "closed before the agent answered"},
        {CARRY_ALL, {DO_PORT, DO_CUT_DIAL("reset", 1), DO_PIPE}, CARRY_DONE, CARRY_PIPE, "reset"},
        {CARRY_ALL, {DO_PORT, DO_NO_DIAL("502"), DO_NO_PIPE("no bash"), DO_LINE("HELLO", "", DO_RUNS)}, CARRY_DONE, CARRY_LINES, "nor by a pipe: no bash"},
        {CARRY_ALL, {DO_PORT, DO_NO_DIAL("502"), DO_CUT_PIPE("START_FAILED"), DO_LINE("HELLO", "", DO_RUNS)}, CARRY_DONE, CARRY_LINES, "START_FAILED"},
        {CARRY_ALL, {DO_PORT, DO_NO_DIAL("502"), DO_CUT_PIPE(""), DO_LINE("noise\nHELLO", "", 0)}, CARRY_DONE, CARRY_LINES, "lines of a command"},
        {{.dial = true}, {DO_PORT, DO_NO_DIAL("502"), DO_LINE("HELLO", "", DO_RUNS)}, CARRY_DONE, CARRY_LINES, "lines of a command"},
        {{.dial = true, .pipe = true, .input = true}, {DO_PORT, DO_NO_DIAL("502"), DO_NO_PIPE("no bash")}, CARRY_CANNOT, CARRY_LISTEN, "cannot be given input: it cannot"},
        {CARRY_ALL, {DO_PORT, DO_NO_DIAL("502"), DO_NO_PIPE("no bash"), DO_LINE(DO_NEED("/etc"), "", 0)}, CARRY_CANNOT, CARRY_LINES,
            "tried before: it cannot be reached where it listens: 502; nor by a pipe: no bash"},
        /* lines alone */
        {{.feed = true, .input = true}, {DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_LINE("HELLO", "", DO_RUNS)}, CARRY_DONE, CARRY_LINES, NULL},
        {{0}, {DO_LINE("HELLO", "", 0)}, CARRY_DONE, CARRY_LINES, NULL},
        {{.input = true}, {{0}}, CARRY_CANNOT, CARRY_LINES, "cannot be given input"},
        {{0}, {DO_LINE("ABX1 port 4711\n", "", 0)}, CARRY_CANNOT, CARRY_LINES, "not asked for"},
        {{0}, {DO_LINE("", "", 0)}, CARRY_FAILED, CARRY_LINES, "without a word"},
        /* what no variable holds goes as a file, once the folder is known */
        {{.start = 80000}, {DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_LINE("HELLO", "", DO_RUNS)}, CARRY_DONE, CARRY_LINES, NULL},
        {{.start = 80000}, {DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_LINE("HELLO", "", DO_RUNS)}, CARRY_DONE, CARRY_LINES, NULL},
        {{.start = 80000}, {DO_LINE("ABX1 noexec /tmp/.abx-0\n", "", 0), DO_LINE(DO_NEED("/var/tmp"), "", 0), DO_UP, DO_LINE("HELLO", "", DO_RUNS)}, CARRY_DONE,
            CARRY_LINES, NULL},
        {{.start = 80000}, {DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_LINE("", "", 127), DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_LINE("HELLO", "", DO_RUNS)},
            CARRY_DONE, CARRY_LINES, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        CarryFake f;
        Carried   c;
        Err       err = {0};
        size_t    n = 0;
        while (n < COUNT_OF(rows[i].steps) && rows[i].steps[n].op)
            n++;
        CarryResult r = carry_test_run(&f, rows[i].steps, n, rows[i].ways, &c, &err);
        const char *text = r == CARRY_DONE ? f.notices.p : err.text;
        if (r != rows[i].want || (r == CARRY_DONE && (c.way != rows[i].way || err.kind != ERR_NONE)))
            fail_msg("row %zu: result %d, way %d, %s", i, r, c.way, err.text);
        if (rows[i].text ? !strstr(text, rows[i].text) : *text)
            fail_msg("row %zu: %s", i, text);
        if (r == CARRY_CANNOT)
            assert_int_equal(err.code, E8004);
        if (r == CARRY_DONE && c.way != CARRY_LINES)      /* START waits for the agent */
            assert_int_equal(f.early, FRAME_PREAMBLE + FRAME_HEAD + 8);
        if (r == CARRY_DONE)
            assert_int_equal(c.deaf, c.way == CARRY_LINES && !rows[i].ways.feed);
        carry_test_end(&f, &c);
    }
}

/* What is asked of the sandbox, to the letter. */
static void carry_place_test(void **state)
{
    static const CarryStep unsafe[] = {DO_LINE("ABX1 unsafe /tmp/.abx-7\n", "", 0)};
    static const CarryStep cold[] = {DO_LINE(DO_NEED("/tmp"), "", 0), DO_UP, DO_PORT, DO_DIAL};
    CarryFake f;
    Carried   c;
    Err       err;
    CarryWays all = CARRY_ALL;

    (void)state;
    assert_int_equal(carry_test_run(&f, cold, COUNT_OF(cold), all, &c, &err), CARRY_DONE);
    assert_int_equal(f.uploaded, sizeof(CarryElf));
    assert_true(str_starts(str_from(f.upload), STR("/tmp/.abx-0/")));
    const char *name = f.upload + strlen("/tmp/.abx-0/");
    assert_int_equal(strlen(name), CARRY_PLACE_HEX);
    assert_non_null(strstr(f.lines.p, "exec ./abx-" ABX_VERSION "-0123456789abcdef agent listen; "));
    assert_non_null(strstr(f.lines.p, " [ABX_AGENT_TOKEN=32]\nd=/tmp/.abx-${EUID:-$(id -u)}; "));
    char want[512];
    snprintf(want, sizeof want, "[ $(wc -c <./%s) -eq %zu ]; then chmod 755 ./%s && mv -f ./%s ./abx-" ABX_VERSION, name,
             sizeof(CarryElf), name, name);
    assert_non_null(strstr(f.lines.p, want));
    carry_test_end(&f, &c);

    /* A folder that is not safe is left alone; an own one is made in its place, and its program not kept. */
    static CarryStep own[5];
    static char      marker[64] = "";
    own[0] = unsafe[0];
    own[1] = (CarryStep)DO_LINE(marker, "", 0);
    /* its name is not known before: a marker for another one is a lie */
    strcpy(marker, "ABX1 need /tmp/.abx-0123456789abcdef\n");
    assert_int_equal(carry_test_run(&f, own, 2, all, &c, &err), CARRY_CANNOT);
    assert_non_null(strstr(f.lines.p, "agent listen && { rm -f ./abx-"));
    const char *second = strstr(f.lines.p, "\nd=/tmp/.abx-");
    assert_non_null(second);
    assert_true(strspn(second + 13, "0123456789abcdef") == CARRY_PLACE_HEX && second[13 + CARRY_PLACE_HEX] == ';');
    carry_test_end(&f, &c);
}

/* What the client sends later reaches a command's input as lines, in order. */
static void carry_feed_test(void **state)
{
    static const CarryStep steps[] = {DO_LINE("HELLO", "", DO_RUNS)};
    CarryWays ways = {.feed = true, .input = true};
    CarryFake f;
    Carried   c;
    Err       err;
    Buf       got = buf_make(4096), sent = buf_make(4096);
    size_t    n;
    Str       piece, all;

    (void)state;
    assert_int_equal(carry_test_run(&f, steps, 1, ways, &c, &err), CARRY_DONE);
    for (int i = 0; i < 1000; i++)
        buf_addc(&sent, (char)(i * 7));
    for (size_t at = 0; at < sent.n;) {
        Step step = stream_write(c.stream, sent.p + at, sent.n - at, &n, &err);
        assert_int_not_equal(step, STEP_ERR);
        at += step == STEP_DONE ? n : 0;
    }
    char block[10];
    for (int i = 0; i < 4; i++)     /* reading sends what is left */
        assert_int_equal(stream_read(c.stream, block, sizeof block, &n, &err), STEP_MORE);
    all = buf_str(&f.fed);
    char        tag[ARMOR_TAG + 1] = "";
    const char *at = strstr(f.fed.p, " 0 ");
    memcpy(tag, at - ARMOR_TAG, ARMOR_TAG);
    Armor armor = armor_make(tag);
    Buf   lines = buf_make(1 << 16);
    for (size_t i = 0; i < all.n; i++)
        if (all.p[i] != '.')
            buf_addc(&lines, all.p[i]);
    Str in = buf_str(&lines);
    while (armor_next(&armor, &in, &piece, &err) == STEP_DONE)
        buf_add(&got, piece);
    assert_true(str_eq(buf_str(&got), buf_str(&sent)));
    armor_free(&armor);
    buf_free(&lines);
    buf_free(&got);
    buf_free(&sent);
    carry_test_end(&f, &c);
}

/* A sandbox that prints without end does not hold us, and is not believed. */
static void carry_noise_test(void **state)
{
    static char noise[CARRY_LINES_TEXT + 100];
    CarryStep   steps[] = {DO_LINE(noise, "", DO_RUNS)};
    CarryWays   all = CARRY_ALL;
    CarryFake   f;
    Carried     c;
    Err         err;

    (void)state;
    memset(noise, 'n', sizeof noise - 1);
    assert_int_equal(carry_test_run(&f, steps, 1, all, &c, &err), CARRY_FAILED);
    assert_non_null(strstr(err.text, "prints more than"));
    carry_test_end(&f, &c);
    noise[FRAME_NOISE - 40] = 0;
    strcpy(noise + 100, "\nABX1 need /tmp/.abx-0 \n");
    assert_int_equal(carry_test_run(&f, steps, 1, all, &c, &err), CARRY_CANNOT);
    carry_test_end(&f, &c);
}

/* Many lines in one notification, the agent's first: what is behind is no noise. */
static void carry_burst_test(void **state)
{
    static char burst[CARRY_LINES_TEXT + 100];
    CarryStep   steps[] = {DO_LINE(burst, "", DO_RUNS)};
    CarryFake   f;
    Carried     c;
    Err         err;

    (void)state;
    memset(burst, 'n', sizeof burst - 1);
    memcpy(burst, "HELLO", 5);
    assert_int_equal(carry_test_run(&f, steps, 1, (CarryWays){0}, &c, &err), CARRY_DONE);
    carry_test_end(&f, &c);
}

static const struct CMUnitTest carry_tests[] = {
    cmocka_unit_test(carry_file_test), cmocka_unit_test(carry_mark_test), cmocka_unit_test(carry_ways_test),
    cmocka_unit_test(carry_place_test), cmocka_unit_test(carry_feed_test), cmocka_unit_test(carry_noise_test),
    cmocka_unit_test(carry_burst_test),
};
