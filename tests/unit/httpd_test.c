#include "net/httpd.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* A server with a few handlers, at the other end of a socket pair. */
typedef struct HttpdTest {
    Loop   loop;
    Httpd *httpd;
    int    client;
    Buf    got;             /* what the client was sent */
    int    entered, gone, whole;
    size_t pieces;          /* of a body */
    bool   ended;           /* the connection was closed by the server */
    bool   deaf;            /* the client does not read */
    size_t flood;           /* bytes of /flood so far */
} HttpdTest;

enum { HTTPD_TEST_FLOOD = 10000000 };

static HttpdTest *httpd_test__now;

static void httpd_test__gone(HttpdCall *c, bool whole)
{
    (void)c;
    httpd_test__now->gone++;
    httpd_test__now->whole += whole;
}

/* Sends a body back, piece by piece, with its own length or chunked. */
static void httpd_test__echo_body(HttpdCall *c, Str piece)
{
    httpd_test__now->pieces++;
    httpd_write(c, piece);
}

static void httpd_test__echo_end(HttpdCall *c)
{
    httpd_finish(c);
}

/* Writes as much as is welcome, up to 10 MB. */
static void httpd_test__flood(HttpdCall *c)
{
    static char block[10000];
    HttpdTest  *t = httpd_test__now;

    while (t->flood < HTTPD_TEST_FLOOD && httpd_room(c)) {
        httpd_write(c, (Str){block, sizeof block});
        t->flood += sizeof block;
    }
    if (t->flood == HTTPD_TEST_FLOOD)
        httpd_finish(c);
}

static void httpd_test__collected(HttpdCall *c, Str body)
{
    httpd_answer(c, 200, "text/plain", body);
}

/* Wants no more of the body, and answers all the same. */
static void httpd_test__enough(HttpdCall *c, Str piece)
{
    (void)piece;
    httpd_pause(c);
    if (!httpd_started(c))
        httpd_answer(c, 200, "text/plain", STR("enough"));
}

static void httpd_test__begin(void *ctx, HttpdCall *c)
{
    static const HttpdHandler enough = {.body = httpd_test__enough, .gone = httpd_test__gone};
    static const HttpdHandler echo = {.body = httpd_test__echo_body, .end = httpd_test__echo_end, .gone = httpd_test__gone};
    static const HttpdHandler flood = {.room = httpd_test__flood, .gone = httpd_test__gone};
    static const HttpdHandler plain = {.gone = httpd_test__gone};
    HttpdTest *t = ctx;

    t->entered++;
    c->handler = &plain;
    if (str_eq(c->head.target, STR("/echo"))) {
        c->handler = &echo;
        httpd_start(c, 200, NULL, 0, httpd_length(c));
    } else if (str_eq(c->head.target, STR("/collect"))) {
        t->gone++;          /* httpd_collect() has a handler of its own */
        httpd_collect(c, 10, httpd_test__collected);
    } else if (str_eq(c->head.target, STR("/flood"))) {
        c->handler = &flood;
        httpd_start(c, 200, NULL, 0, HTTPD_TEST_FLOOD);
        httpd_test__flood(c);
    } else if (str_eq(c->head.target, STR("/short"))) {
        httpd_start(c, 200, NULL, 0, 5);
        httpd_write(c, STR("abc"));
        httpd_finish(c);
    } else if (str_eq(c->head.target, STR("/long"))) {
        httpd_start(c, 200, NULL, 0, 2);
        httpd_write(c, STR("abc"));
        httpd_finish(c);
    } else if (str_eq(c->head.target, STR("/enough"))) {
        c->handler = &enough;
    } else if (str_eq(c->head.target, STR("/file"))) {
        httpd_start(c, 200, NULL, 0, 64);           /* sendfile() cannot send from this one */
        httpd_file(c, open("/proc/self/maps", O_RDONLY | O_CLOEXEC), 0, 64);
    } else if (str_eq(c->head.target, STR("/tunnel"))) {
        c->handler = &echo;
        httpd_tunnel(c, NULL, 0);
    } else if (str_eq(c->head.target, STR("/bad"))) {
        httpd_start(c, 200, &(Header){STR("X-Bad"), STR("a\r\nSet-Cookie: b")}, 1, 0);
        httpd_finish(c);
    } else {
        httpd_answer(c, 200, "text/plain", c->head.target);
    }
}

static void httpd_test__open(HttpdTest *t)
{
    int fds[2];

    *t = (HttpdTest){.got = buf_make(1 << 24)};
    httpd_test__now = t;
    signal_ignore_writes();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    t->httpd = httpd_make(&t->loop, httpd_test__begin, t);
    t->client = fds[0];
    fcntl(t->client, F_SETFL, O_NONBLOCK);
    httpd_adopt(t->httpd, fds[1]);
}

/* Let the server work, and take what it says, until nothing moves. A watch of
 * the test's own, due at once, keeps a turn from waiting. */
static void httpd_test__tick(LoopWatch *w, short revents)
{
    (void)w, (void)revents;
}

static void httpd_test__settle(HttpdTest *t)
{
    LoopWatch tick = {.fd = -1, .deadline = 0, .wake = httpd_test__tick};
    Err       err;

    loop_add(&t->loop, &tick);
    for (int quiet = 0; quiet < 3; quiet++) {
        assert_true(loop_turn(&t->loop, &err));
        ssize_t n = -1;
        errno = 0;
        while (!t->deaf && (n = read(t->client, buf_room(&t->got, 65536), 65536)) > 0) {
            buf_grew(&t->got, (size_t)n);
            quiet = 0;
        }
        t->ended |= n == 0 || (n < 0 && errno == ECONNRESET);
    }
    loop_remove(&t->loop, &tick);
}

static void httpd_test__send(HttpdTest *t, Str s)
{
    while (s.n) {
        ssize_t n = send(t->client, s.p, s.n, MSG_NOSIGNAL);
        if (n > 0)
            str_skip(&s, (size_t)n);
        else if (errno != EAGAIN)
            return;
        httpd_test__settle(t);
    }
    httpd_test__settle(t);
}

static void httpd_test__close(HttpdTest *t)
{
    close(t->client);
    httpd_test__settle(t);
    httpd_free(t->httpd);
    assert_int_equal(t->entered, t->gone);
    loop_free(&t->loop);
    buf_free(&t->got);
}

/* What was got, without Date fields, with "$" for CR LF. */
static Str httpd_test__short(HttpdTest *t, Arena *a)
{
    Str rest = buf_str(&t->got), line;
    Buf b = buf_make(1 << 20);

    while (rest.n && str_cut(&rest, '\n', &line)) {
        bool cr = line.n && line.p[line.n - 1] == '\r';
        if (str_starts(line, STR("Date: ")))
            continue;
        buf_add(&b, (Str){line.p, line.n - cr});
        if (cr)
            buf_addc(&b, '$');
    }
    Str s = arena_str(a, buf_str(&b));
    buf_free(&b);
    return s;
}

#define H "Host: h\r\n"
#define OK_A "HTTP/1.1 200 OK$Content-Type: text/plain$Content-Length: 2$$/a"
#define BAD(status, text, n) "HTTP/1.1 " status "$Content-Type: text/plain; charset=utf-8$Content-Length: " n \
    "$Connection: close$$" text

static void httpd_exchange_test(void **state)
{
    static const struct { const char *in, *want; bool ends; } cases[] = {
        {"GET /a HTTP/1.1\r\n" H "\r\n", OK_A, false},
        {"GET /a HTTP/1.1\r\n" H "\r\nGET /a HTTP/1.1\r\n" H "\r\n", OK_A OK_A, false},
        {"\r\n\r\nGET /a HTTP/1.1\r\n" H "\r\n", OK_A, false},
        {"GET /a HTTP/1.1\r\n" H "Connection: close\r\n\r\nGET /a HTTP/1.1\r\n" H "\r\n",
         "HTTP/1.1 200 OK$Content-Type: text/plain$Content-Length: 2$Connection: close$$/a", true},
        {"GET /a HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK$Content-Type: text/plain$Content-Length: 2$Connection: close$$/a", true},
        {"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
         "HTTP/1.1 200 OK$Content-Type: text/plain$Content-Length: 2$Connection: keep-alive$$/a", false},
        {"HEAD /a HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 200 OK$Content-Type: text/plain$Content-Length: 2$$", false},
        /* bodies */
        {"POST /echo HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabcGET /a HTTP/1.1\r\n" H "\r\n",
         "HTTP/1.1 200 OK$Content-Length: 3$$abc" OK_A, false},
        {"POST /echo HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", "HTTP/1.1 200 OK$Content-Length: 0$$", false},
        {"POST /collect HTTP/1.1\r\n" H "Content-Length: 10\r\n\r\n0123456789",
         "HTTP/1.1 200 OK$Content-Type: text/plain$Content-Length: 10$$0123456789", false},
        {"POST /collect HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n2;x=y\r\n01\r\n8\r\n23456789\r\n0\r\nT: x\r\n\r\n",
         "HTTP/1.1 200 OK$Content-Type: text/plain$Content-Length: 10$$0123456789", false},
        {"POST /collect HTTP/1.1\r\n" H "Content-Length: 11\r\n\r\n0123456789a",
         BAD("413 Content Too Large", "request body too large", "22"), true},
        {"POST /collect HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nb\r\n0123456789a\r\n0\r\n\r\n",
         BAD("413 Content Too Large", "request body too large", "22"), true},
        /* a body that nobody wants is read and dropped, the connection stays */
        {"POST /a HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabcGET /a HTTP/1.1\r\n" H "\r\n", OK_A OK_A, false},
        /* unless it has no known length, or the client waits to be asked for it */
        {"POST /a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n",
         "HTTP/1.1 200 OK$Content-Type: text/plain$Content-Length: 2$Connection: close$$/a", true},
        {"POST /a HTTP/1.1\r\n" H "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n",
         "HTTP/1.1 200 OK$Content-Type: text/plain$Content-Length: 2$Connection: close$$/a", true},
        {"POST /collect HTTP/1.1\r\n" H "Content-Length: 1\r\nExpect: 100-Continue\r\n\r\nx",
         "HTTP/1.1 100 Continue$$HTTP/1.1 200 OK$Content-Type: text/plain$Content-Length: 1$$x", false},
        /* answers that do not keep what they announced cut the connection */
        {"GET /short HTTP/1.1\r\n" H "\r\n", NULL, true},
        {"GET /long HTTP/1.1\r\n" H "\r\n", NULL, true},
        {"GET /bad HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 200 OK$Content-Length: 0$$", false},
        {"GET /tunnel HTTP/1.1\r\n" H "\r\nraw\r\nbytes", "HTTP/1.1 101 Switching Protocols$$raw$bytes", false},
        /* refused */
        {"GET /a HTTP/2.0\r\n" H "\r\n", BAD("505 HTTP Version Not Supported", "505 HTTP Version Not Supported", "30"), true},
        {"GET /a HTTP/1.1\r\n\r\n", BAD("400 Bad Request", "400 Bad Request", "15"), true},
        {"GET /a HTTP/1.1\r\n" H H "\r\n", BAD("400 Bad Request", "400 Bad Request", "15"), true},
        {"GET a HTTP/1.1\r\n" H "\r\n", BAD("400 Bad Request", "400 Bad Request", "15"), true},
        {"GET /a HTTP/1.1\n" H "\n", BAD("400 Bad Request", "400 Bad Request", "15"), true},
        {"GET /a HTTP/1.1\r\n" H "X : y\r\n\r\n", BAD("400 Bad Request", "400 Bad Request", "15"), true},
        {"GET /a HTTP/1.1\r\n" H "X: y\r\n z\r\n\r\n", BAD("400 Bad Request", "400 Bad Request", "15"), true},
        {"POST /a HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
         BAD("400 Bad Request", "400 Bad Request", "15"), true},
        {"POST /a HTTP/1.1\r\n" H "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         BAD("400 Bad Request", "400 Bad Request", "15"), true},
        {"POST /a HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\n", BAD("400 Bad Request", "400 Bad Request", "15"), true},
        {"POST /a HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\n", BAD("501 Not Implemented", "501 Not Implemented", "19"), true},
        {"POST /collect HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
         BAD("400 Bad Request", "400 Bad Request", "15"), true},
        {"GET /a HTTP/1.1\r\n" H "Expect: 200-maybe\r\n\r\n", BAD("417 Expectation Failed", "417 Expectation Failed", "22"), true},
    };
    Arena a = arena_make(1 << 22);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str    all = str_from(cases[i].in);
        size_t step = all.n > 120 ? 3 : 1;
        for (size_t cut = 0; cut <= all.n; cut += step) {
            HttpdTest t;
            httpd_test__open(&t);
            httpd_test__send(&t, str_from_to(all, 0, cut));
            httpd_test__send(&t, str_from_to(all, cut, all.n));
            Str got = httpd_test__short(&t, &a);
            if (cases[i].want && !str_eq(got, str_from(cases[i].want)))
                fail_msg("case %zu cut %zu: %.*s\nnot %s", i, cut, (int)got.n, got.p, cases[i].want);
            if (t.ended != cases[i].ends)
                fail_msg("case %zu cut %zu: closed %d", i, cut, t.ended);
            httpd_test__close(&t);
            arena_reset(&a);
        }
    }
    arena_free(&a);
}

#undef OK_A
#undef BAD

/* A client that closes its sending side is answered; one that goes away in the
 * middle of its request is not entered, or left. */
static void httpd_half_close_test(void **state)
{
    Str       all = STR("POST /collect HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc");
    HttpdTest t;

    (void)state;
    for (size_t cut = 0; cut <= all.n; cut++) {
        httpd_test__open(&t);
        httpd_test__send(&t, str_from_to(all, 0, cut));
        shutdown(t.client, SHUT_WR);
        httpd_test__settle(&t);
        assert_true(t.ended);
        Str got = buf_str(&t.got);
        if (cut == all.n)
            assert_true(str_starts(got, STR("HTTP/1.1 200")) && str_ends(got, STR("\r\n\r\nabc")));
        else if (cut >= all.n - 3)
            assert_true(str_starts(got, STR("HTTP/1.1 400")));
        else
            assert_int_equal(got.n, 0);
        httpd_test__close(&t);
    }
}

/* An answer larger than everything between the two sides waits for a reader
 * that does not read, in the memory that was promised. */
static void httpd_back_pressure_test(void **state)
{
    HttpdTest t;

    (void)state;
    httpd_test__open(&t);
    t.deaf = true;
    httpd_test__send(&t, STR("GET /flood HTTP/1.1\r\n" H "\r\nGET /a HTTP/1.1\r\n" H "\r\n"));
    assert_true(httpd__waiting(t.httpd->conns) >= LIMIT_HTTPD_ROOM);
    assert_true(t.httpd->conns->out.cap <= 4 * LIMIT_HTTPD_ROOM);
    assert_int_equal(t.gone, 0);
    t.deaf = false;
    httpd_test__settle(&t);
    size_t head = t.got.n - HTTPD_TEST_FLOOD - strlen("/a");
    assert_true(head < 400 && str_ends(buf_str(&t.got), STR("\r\n\r\n/a")));
    assert_int_equal(t.whole, 2);
    assert_false(t.ended);
    assert_int_equal(t.httpd->conns->out.cap, 0);
    httpd_test__close(&t);
}

static void httpd_head_limit_test(void **state)
{
    (void)state;
    for (int over = 0; over < 2; over++) {
        HttpdTest t;
        Buf       in = buf_make(1 << 20);
        httpd_test__open(&t);
        buf_add(&in, STR("GET /a HTTP/1.1\r\n" H "X: "));
        while (in.n < LIMIT_HEAD - 4 + (size_t)over)
            buf_addc(&in, 'x');
        buf_add(&in, STR("\r\n\r\n"));
        httpd_test__send(&t, buf_str(&in));
        assert_true(str_starts(buf_str(&t.got), over ? STR("HTTP/1.1 431 ") : STR("HTTP/1.1 200 ")));
        assert_int_equal(t.ended, over);
        httpd_test__close(&t);
        buf_free(&in);
    }
}

/* A file goes out as it is; one that shrinks meanwhile cuts the connection. */
static int httpd_test__fd;

static void httpd_test__file_begin(void *ctx, HttpdCall *c)
{
    HttpdTest *t = ctx;

    (void)t;
    httpd_start(c, 200, NULL, 0, 3000000);
    httpd_file(c, dup(httpd_test__fd), 10, 3000000);
}

static void httpd_file_test(void **state)
{
    (void)state;
    for (int shrinks = 0; shrinks < 2; shrinks++) {
        HttpdTest t;
        char      name[] = "/tmp/abx-httpd-test-XXXXXX";
        httpd_test__open(&t);
        t.httpd->begin = httpd_test__file_begin;
        httpd_test__fd = mkstemp(name);
        unlink(name);
        Buf b = buf_make(1 << 23);
        for (int i = 0; i < 3000010; i++)
            buf_addc(&b, (char)(i / 3));
        assert_int_equal(write(httpd_test__fd, b.p, b.n), (ssize_t)b.n);
        assert_int_equal(send(t.client, "GET / HTTP/1.1\r\n" H "\r\n", 27, 0), 27);
        if (shrinks)
            assert_int_equal(ftruncate(httpd_test__fd, 1000), 0);
        httpd_test__settle(&t);
        assert_int_equal(t.ended, shrinks);
        if (!shrinks)
            assert_true(str_ends(buf_str(&t.got), (Str){b.p + 10, 3000000}));
        close(httpd_test__fd);
        httpd_test__close(&t);
        buf_free(&b);
    }
}

/* The request behind stays what it is while a file is read and sent. */
static void httpd_read_file_test(void **state)
{
    HttpdTest t;

    (void)state;
    httpd_test__open(&t);
    httpd_test__send(&t, STR("GET /file HTTP/1.1\r\n" H "\r\nGET /next HTTP/1.1\r\n" H "\r\n"));
    assert_true(str_ends(buf_str(&t.got), STR("\r\n\r\n/next")));
    httpd_test__close(&t);
}

/* An answer before the body's end, while no more of the body is wanted. */
static void httpd_paused_answer_test(void **state)
{
    HttpdTest t;

    (void)state;
    httpd_test__open(&t);
    httpd_test__send(&t, STR("POST /enough HTTP/1.1\r\n" H "Content-Length: 10\r\n\r\n12345"));
    httpd_test__send(&t, STR("67890GET /next HTTP/1.1\r\n" H "\r\n"));
    assert_true(str_ends(buf_str(&t.got), STR("\r\n\r\n/next")));
    httpd_test__close(&t);
}

#undef H

static const struct CMUnitTest httpd_tests[] = {
    cmocka_unit_test(httpd_exchange_test),
    cmocka_unit_test(httpd_half_close_test),
    cmocka_unit_test(httpd_back_pressure_test),
    cmocka_unit_test(httpd_head_limit_test),
    cmocka_unit_test(httpd_file_test),
    cmocka_unit_test(httpd_read_file_test),
    cmocka_unit_test(httpd_paused_answer_test),
};
