#include "net/client.h"
#include "script_stream.h"

#include <unistd.h>

typedef struct ClientTest {
    Script     scripts[3];
    ScriptDial dial;
    Client    *client;
    Arena      a;
    Buf        got;         /* "200 body" or "kind: text" */
    Buf        trace;
} ClientTest;

static void client_test__trace(void *ctx, const char *line)
{
    buf_addf(ctx, "%s\n", line);
}

static void client_test__begin(ClientTest *t)
{
    t->dial = (ScriptDial){t->scripts, COUNT_OF(t->scripts), 0};
    t->a = arena_make(1 << 20);
    t->got = buf_make((size_t)8 << 20);
    t->trace = buf_make((size_t)1 << 20);
    t->client = client_make(&(ClientOptions){.dial = script_dial, .dial_ctx = &t->dial, .cancel_fd = -1,
                                             .agent = STR("abx/test"), .trace = client_test__trace, .trace_ctx = &t->trace});
}

static void client_test__end(ClientTest *t)
{
    client_free(t->client);
    for (size_t i = 0; i < COUNT_OF(t->scripts); i++) {
        assert_true(i >= t->dial.used || t->scripts[i].closed);
        script_free(&t->scripts[i]);
    }
    buf_free(&t->got);
    buf_free(&t->trace);
    arena_free(&t->a);
    *t = (ClientTest){0};
}

static ClientRequest client_test__request(ClientTest *t, const char *method)
{
    ClientRequest r = {.method = method, .deadline = clock_after(60000)};
    Err           err;

    assert_true(url_parse(STR("http://h:8080/p?q=1"), &t->a, &r.url, &err));
    r.idempotent = strcmp(method, "POST") != 0;
    return r;
}

/* One exchange to its end, read in pieces of `cap`; what came is in t->got. */
static const char *client_test__run(ClientTest *t, const ClientRequest *r, size_t cap)
{
    Exchange *x = NULL;
    Err       err = {0};
    char     *p = malloc(cap);
    size_t    n;

    buf_clear(&t->got);
    bool ok = client_open(t->client, r, &x, &err);
    if (ok) {
        buf_addf(&t->got, "%d ", client_status(x));
        while ((ok = client_read(x, p, cap, &n, clock_after(60000), &err)) && n)
            buf_add(&t->got, (Str){p, n});
    } else {
        assert_null(x);
    }
    if (!ok)
        buf_addf(&t->got, "|%d: %s", err.kind, err.text);
    client_close(x);
    free(p);
    buf_addc(&t->got, 0);
    return t->got.p;
}

#define CLIENT_HEAD "\r\n\r\n"
#define CLIENT_OK   "HTTP/1.1 200 OK\r\n"

static void client_get_test(void **state)
{
    static const struct { const char *method, *answer, *want; ScriptEnd end; bool kept; } cases[] = {
        {"GET", CLIENT_OK "Content-Length: 5\r\n\r\nhello", "200 hello", SCRIPT_OPEN, true},
        {"GET", CLIENT_OK "Content-Length: 5\r\nConnection: close\r\n\r\nhello", "200 hello", SCRIPT_OPEN, false},
        {"GET", CLIENT_OK "Content-Length: 5\r\n\r\nhello!", "200 hello", SCRIPT_OPEN, false},
        {"GET", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", "200 hello", SCRIPT_OPEN, false},
        {"GET", CLIENT_OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x\r\nlo\r\n0\r\nT: u\r\n\r\n", "200 hello",
            SCRIPT_OPEN, true},
        {"GET", CLIENT_OK "\r\nhello", "200 hello", SCRIPT_EOF, false},
        {"HEAD", CLIENT_OK "Content-Length: 5\r\n\r\n", "200 ", SCRIPT_OPEN, true},
        {"GET", "HTTP/1.1 204 No Content\r\n\r\n", "204 ", SCRIPT_OPEN, true},
        {"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", "304 ", SCRIPT_OPEN, true},
        {"GET", "HTTP/1.1 302 Found\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n", "302 ", SCRIPT_OPEN, true},
        {"GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" CLIENT_OK "Content-Length: 1\r\n\r\nx",
            "200 x", SCRIPT_OPEN, true},
        {"GET", "HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno", "500 no", SCRIPT_OPEN, true},
        {"GET", "HTTP/1.1 101 Switching\r\n\r\n", "|2: h:8080: bad HTTP: the server changes to a protocol that was not asked for",
            SCRIPT_OPEN, false},
        {"GET", "", "|8: h:8080: the connection was closed without an answer", SCRIPT_EOF, false},
        {"GET", "", "|9: h:8080: the connection was reset", SCRIPT_RESET, false},
        {"GET", "HTTP/1.1 200", "|9: h:8080: the connection ended in the middle of the answer's head", SCRIPT_EOF, false},
        {"GET", CLIENT_OK "Content-Length: 6\r\n\r\nhello",
            "200 hello|9: h:8080: the connection ended after 5 of 6 bytes of the body", SCRIPT_EOF, false},
        {"GET", CLIENT_OK "Content-Length: 6\r\n\r\nhello", "200 hello|9: h:8080: the connection was reset", SCRIPT_RESET, false},
        {"GET", CLIENT_OK "\r\nhello", "200 hello|9: h:8080: the connection was reset", SCRIPT_RESET, false},
        {"GET", CLIENT_OK "Content-Length: 6\r\nContent-Length: 7\r\n\r\n",
            "|2: h:8080: bad HTTP: two different Content-Length", SCRIPT_OPEN, false},
        {"GET", "SSH-2.0-OpenSSH\r\n", "|2: h:8080: bad HTTP: the answer does not begin with HTTP/1.1 or HTTP/1.0",
            SCRIPT_OPEN, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t piece = 0; piece < 4; piece++)
            for (int hiccups = 0; hiccups < 2; hiccups++) {
                ScriptAnswer answer = {CLIENT_HEAD, cases[i].answer, 0};
                ClientTest   t = {.scripts[0] = {.answers = &answer, .count = 1, .end = cases[i].end, .piece = piece,
                                                 .hiccups = hiccups}};
                client_test__begin(&t);
                ClientRequest r = client_test__request(&t, cases[i].method);
                const char   *got = client_test__run(&t, &r, piece == 3 ? 1 : 100000);
                /* closed before an answer, and some of the request was sent */
                const char *want = cases[i].want[0] == '|' && cases[i].want[1] == '8' ? cases[i].want + 2 : cases[i].want;
                if (want != cases[i].want ? strcmp(got + 2, want) != 0 || got[1] != '9' : strcmp(got, want) != 0)
                    fail_msg("row %zu piece %zu: %s", i, piece, got);
                if (piece == 0 && !hiccups && t.scripts[0].closed == cases[i].kept)
                    fail_msg("row %zu piece %zu: kept %d", i, piece, !cases[i].kept);
                client_test__end(&t);
            }
}

/* An answer cut after any byte is never taken for a whole one. */
static void client_cut_test(void **state)
{
    static const char *const answers[] = {
        CLIENT_OK "Content-Length: 5\r\nX-A: b\r\n\r\nhello",
        "HTTP/1.1 100 Continue\r\n\r\n" CLIENT_OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nT: u\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(answers); i++)
        for (int end = SCRIPT_EOF; end <= SCRIPT_RESET; end++)
            for (size_t cut = 1; cut < strlen(answers[i]); cut++) {
                ScriptAnswer answer = {CLIENT_HEAD, answers[i], 0};
                ClientTest   t = {.scripts[0] = {.answers = &answer, .count = 1, .end = (ScriptEnd)end, .cut = cut}};
                client_test__begin(&t);
                ClientRequest r = client_test__request(&t, "GET");
                const char   *got = client_test__run(&t, &r, 4096);
                if (!strstr(got, "|9: h:8080: the connection "))
                    fail_msg("answer %zu cut at %zu: %s", i, cut, got);
                assert_int_equal(t.dial.used, 1);
                client_test__end(&t);
            }
}

static void client_request_test(void **state)
{
    ScriptAnswer  answers[] = {{CLIENT_HEAD, "HTTP/1.1 204 No\r\n\r\n", 0}, {CLIENT_HEAD, "HTTP/1.1 204 No\r\n\r\n", 0}};
    ClientTest    t = {.scripts[0] = {.answers = answers, .count = 2}};
    const Header  headers[] = {{STR("X-Key"), STR("geheim")}, {STR("Accept"), STR("*/*")}};
    const Header  forged[] = {{STR("content-length"), STR("7")}};
    const Header  broken[] = {{STR("X-Key"), STR("geheim\r\nX: y")}};
    ClientRequest r;

    (void)state;
    client_test__begin(&t);
    r = client_test__request(&t, "POST");
    r.headers = (Headers){headers, 2};
    assert_string_equal(client_test__run(&t, &r, 100), "204 ");
    buf_addc(&t.scripts[0].written, 0);
    assert_string_equal(t.scripts[0].written.p,
                        "POST /p?q=1 HTTP/1.1\r\nHost: h:8080\r\nUser-Agent: abx/test\r\nAccept-Encoding: identity\r\n"
                        "Content-Length: 0\r\nX-Key: geheim\r\nAccept: */*\r\n\r\n");
    r = client_test__request(&t, "GET");
    r.url.query = (Str){0};
    assert_string_equal(client_test__run(&t, &r, 100), "204 ");     /* on the same connection */
    buf_addc(&t.scripts[0].written, 0);
    assert_non_null(strstr(t.scripts[0].written.p + strlen(t.scripts[0].written.p) + 1,
                           "GET /p HTTP/1.1\r\nHost: h:8080\r\nUser-Agent: abx/test\r\nAccept-Encoding: identity\r\n\r\n"));
    assert_int_equal(t.dial.used, 1);

    buf_addc(&t.trace, 0);
    assert_non_null(strstr(t.trace.p, "> X-Key: ***\n> Accept: */*\n"));
    assert_non_null(strstr(t.trace.p, "> POST /p?***\n"));
    assert_non_null(strstr(t.trace.p, "< 204 No\n"));
    assert_null(strstr(t.trace.p, "geheim"));

    r.headers = (Headers){forged, 1};
    assert_non_null(strstr(client_test__run(&t, &r, 100), "|1: the header content-length cannot"));
    r.headers = (Headers){broken, 1};
    assert_non_null(strstr(client_test__run(&t, &r, 100), "|1: the value of the header X-Key"));
    assert_null(strstr(t.got.p, "geheim"));
    client_test__end(&t);
}

/* A source that gives `real` bytes 'a'..'z' in pieces, whatever it announced. */
typedef struct ClientSource { size_t real, piece, at; int rewound; bool fails; } ClientSource;

static bool client_test__read(void *ctx, char *p, size_t cap, size_t *n, Err *err)
{
    ClientSource *s = ctx;

    if (s->fails && s->at > 0)
        return err_set(err, ERR_CLOSED, E4000, "the disk is gone");
    *n = s->real - s->at < cap ? s->real - s->at : cap;
    if (s->piece && *n > s->piece)
        *n = s->piece;
    for (size_t i = 0; i < *n; i++)
        p[i] = (char)('a' + (s->at + i) % 26);
    s->at += *n;
    return true;
}

static bool client_test__rewind(void *ctx, Err *err)
{
    ClientSource *s = ctx;

    (void)err;
    s->at = 0;
    s->rewound++;
    return true;
}

/* The body that a script was sent, without chunks, and whether it was whole. */
static bool client_test__sent(ClientTest *t, const Script *s, Buf *body)
{
    HttpHeadReader reader = http_head_reader(HTTP_REQUEST);
    HttpHead       head;
    HttpBody       b;
    Str            in = buf_str(&s->written), piece;
    Err            err;

    buf_clear(body);
    assert_int_equal(http_head_next(&reader, &in, &t->a, &head, &err), STEP_DONE);
    http_head_free(&reader);
    assert_true(http_body_of(HTTP_REQUEST, head.method, &head, &b, &err));
    Step step;
    while ((step = http_body_next(&b, &in, &piece, &err)) == STEP_DONE && piece.n)
        buf_add(body, piece);
    return step == STEP_DONE && in.n == 0;
}

static void client_body_test(void **state)
{
    static const size_t sizes[] = {0, 1, 25, 32000, 65535, 65536, 65537, 200000};
    Buf body = buf_make((size_t)1 << 20);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (int chunked = 0; chunked < 2; chunked++)
            for (size_t piece = 0; piece < 8000; piece = piece ? piece * 10 + 6 : 7) {
                char         end[30];
                ClientSource src = {.real = sizes[i], .piece = piece};
                Source       source = {client_test__read, &src, chunked ? -1 : (int64_t)sizes[i]};
                /* the last bytes of the body, or of its framing */
                snprintf(end, sizeof end, "%s", "0\r\n\r\n");
                if (!chunked)
                    snprintf(end, sizeof end, sizes[i] ? "%c" : CLIENT_HEAD, (int)('a' + (sizes[i] - 1) % 26));
                ScriptAnswer answer = {end, "HTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n", 0};
                bool         exact = chunked || sizes[i] == 0;
                ClientTest   t = {.scripts[0] = {.answers = &answer, .count = 1, .piece = exact ? 4093 : 0, .hiccups = exact}};
                client_test__begin(&t);
                ClientRequest r = client_test__request(&t, "PUT");
                r.body = &source;
                const char *got = client_test__run(&t, &r, 100);
                if (exact && (strcmp(got, "201 ") != 0 || !client_test__sent(&t, &t.scripts[0], &body) || body.n != sizes[i]))
                    fail_msg("size %zu chunked %d piece %zu: %s, %zu", sizes[i], chunked, piece, got, body.n);
                for (size_t k = 0; exact && k < body.n; k++)
                    if (body.p[k] != (char)('a' + k % 26))
                        fail_msg("byte %zu", k);
                client_test__end(&t);
            }
    buf_free(&body);
}

/* A body of known size arrives whole, however the connection takes it. */
static void client_sized_body_test(void **state)
{
    static const size_t sizes[] = {1, 25, 65000, 65536, 65537, 200000};
    Buf body = buf_make((size_t)1 << 20);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (size_t piece = 0; piece < 20000; piece = piece ? piece * 10 + 3 : 100) {
            /* The answer comes when all was taken: after a marker behind the alphabet. */
            Str          text = {mem_new(sizes[i]), sizes[i]}, view = text;
            memset((char *)text.p, 'x', text.n);
            ((char *)text.p)[text.n - 1] = '$';
            Source       source = flow_from_str(&view);
            ScriptAnswer answer = {"$", "HTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n", 0};
            ClientTest   t = {.scripts[0] = {.answers = &answer, .count = 1, .piece = piece, .hiccups = piece > 0}};
            client_test__begin(&t);
            ClientRequest r = client_test__request(&t, "PUT");
            r.body = &source;
            const char *got = client_test__run(&t, &r, 100);
            if (strcmp(got, "201 ") != 0 || !client_test__sent(&t, &t.scripts[0], &body) || !str_eq(buf_str(&body), text))
                fail_msg("size %zu piece %zu: %s, %zu", sizes[i], piece, got, body.n);
            assert_false(t.scripts[0].closed);
            client_test__end(&t);
            mem_free((char *)text.p);
        }
    buf_free(&body);
}

static void client_wrong_size_test(void **state)
{
    static const struct { size_t real; int64_t said; bool fails; const char *want; } cases[] = {
        {5, 6, false, "|2: what is sent ended after 5 of its 6 bytes"},
        {0, 6, false, "|2: what is sent ended after 0 of its 6 bytes"},
        {7, 6, false, "|2: what is sent grew beyond its 6 bytes meanwhile"},
        {1, 0, false, "|2: what is sent grew beyond its 0 bytes meanwhile"},
        {100000, 100001, false, "|2: what is sent ended after 100000 of its 100001 bytes"},
        {100001, 100000, false, "|2: what is sent grew beyond its 100000 bytes meanwhile"},
        {100000, 100000, true, "|9: the disk is gone"},
        {100000, -1, true, "|9: the disk is gone"},
    };
    Buf body = buf_make((size_t)1 << 20);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ClientSource src = {.real = cases[i].real, .piece = 30000, .fails = cases[i].fails};
        Source       source = {client_test__read, &src, cases[i].said};
        ClientTest   t = {0};
        client_test__begin(&t);
        ClientRequest r = client_test__request(&t, "PUT");
        r.body = &source;
        r.rewind = client_test__rewind;
        if (strcmp(client_test__run(&t, &r, 100), cases[i].want) != 0)
            fail_msg("row %zu: %s", i, t.got.p);
        assert_int_equal(t.dial.used, 1);
        if (t.scripts[0].written.n)     /* never a whole message */
            assert_false(client_test__sent(&t, &t.scripts[0], &body));
        client_test__end(&t);
    }
    buf_free(&body);
}

/* An answer in the middle of the body ends the sending; an interim one does not. */
static void client_early_test(void **state)
{
    static const char refusal[] = "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno";
    static const struct { const char *first, *after; size_t takes; ScriptEnd full; const char *want; } cases[] = {
        {refusal, CLIENT_HEAD, 100000, SCRIPT_OPEN, "413 no"},
        {refusal, CLIENT_HEAD, 100000, SCRIPT_RESET, "413 no"},
        {refusal, CLIENT_HEAD, 120, SCRIPT_RESET, "413 no"},         /* seen only when sending failed */
        {refusal, CLIENT_HEAD, 0, SCRIPT_OPEN, "413 no"},
        {"HTTP/1.1 100 Continue\r\n\r\n", CLIENT_HEAD, 0, SCRIPT_OPEN, "200 "},
        {NULL, "never", 100000, SCRIPT_RESET, "|9: h:8080: the connection was reset"},
        {NULL, "never", 100000, SCRIPT_OPEN, "|6: h:8080: no answer came in time"},
        {NULL, "never", 100000, SCRIPT_OPEN, "|6: h:8080: not a byte moved for 0.05 s"},
        {NULL, "never", 0, SCRIPT_OPEN, "|6: h:8080: not a byte moved for 0.294 s"},     /* it may be storing them */
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ScriptAnswer answers[] = {{cases[i].after, cases[i].first ? cases[i].first : "x", 0},
                                  {"0\r\n\r\n", CLIENT_OK "Content-Length: 0\r\n\r\n", 0}};
        ClientSource src = {.real = 1000000};
        Source       source = {client_test__read, &src, -1};
        ClientTest   t = {.scripts[0] = {.answers = answers, .count = 2, .takes = cases[i].takes, .full = cases[i].full}};
        client_test__begin(&t);
        ClientRequest r = client_test__request(&t, "POST");
        r.body = &source;
        r.deadline = clock_after(strstr(cases[i].want, "in time") ? 300 : 60000);
        r.idle_ms = strstr(cases[i].want, "moved") ? 50 : 0;
        if (strcmp(client_test__run(&t, &r, 100), cases[i].want) != 0)
            fail_msg("row %zu: %s", i, t.got.p);
        bool whole = strcmp(cases[i].want, "200 ") == 0;
        assert_int_equal(t.scripts[0].closed, !whole);      /* never kept with half a request on it */
        assert_int_equal(src.at == 1000000, whole || strstr(cases[i].want, "0.294"));
        client_test__end(&t);
    }
}

static void client_interim_limit_test(void **state)
{
    (void)state;
    for (int extra = 0; extra < 2; extra++) {
        Buf b = buf_make(4096);
        for (int i = 0; i < LIMIT_INTERIM + extra; i++)
            buf_add(&b, STR("HTTP/1.1 102 Processing\r\n\r\n"));
        buf_add(&b, STR("HTTP/1.1 204 No\r\n\r\n"));
        ScriptAnswer answer = {CLIENT_HEAD, b.p, b.n};
        ClientTest   t = {.scripts[0] = {.answers = &answer, .count = 1}};
        client_test__begin(&t);
        ClientRequest r = client_test__request(&t, "GET");
        assert_string_equal(client_test__run(&t, &r, 100), extra ? "|3: h:8080: more than 16 interim answers" : "204 ");
        client_test__end(&t);
        buf_free(&b);
    }
}

/* What happens when a kept connection is gone by the time of the second request. */
static void client_repeat_test(void **state)
{
    static const char no[] = "HTTP/1.1 204 No\r\n\r\n";
    enum { NONE, ONCE, AGAIN };             /* no body; one that can be read once; one that can be read again */
    static const struct {
        const char *method;
        int         body;
        ScriptEnd   end;        /* of the first connection, after its first answer and the second request */
        size_t      takes;      /* bytes of it all */
        const char *part;       /* of an answer that came before the end */
        const char *want;
        size_t      dials;
    } cases[] = {
        {"GET", NONE, SCRIPT_EOF, 0, "", "204 ", 2},
        {"GET", NONE, SCRIPT_RESET, 0, "", "204 ", 2},
        {"GET", NONE, SCRIPT_EOF, 0, "H", "|9: h:8080: the connection ended in the middle of the answer's head", 1},
        {"POST", NONE, SCRIPT_EOF, 0, "", "|9: h:8080: the connection was closed without an answer", 1},
        {"POST", NONE, SCRIPT_EOF, 1, "", "204 ", 2},                   /* not a byte was sent */
        {"POST", ONCE, SCRIPT_EOF, 1, "", "204 ", 2},
        {"PUT", ONCE, SCRIPT_EOF, 0, "", "|9: h:8080: the connection was closed without an answer", 1},
        {"PUT", AGAIN, SCRIPT_EOF, 0, "", "204 ", 2},
        {"POST", AGAIN, SCRIPT_EOF, 0, "", "|9: h:8080: the connection was closed without an answer", 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char         end[] = "$";
        const char  *last = cases[i].body ? end : CLIENT_HEAD;
        ScriptAnswer first[] = {{CLIENT_HEAD, no, 0}, {last, cases[i].part, 0}}, second[] = {{last, no, 0}};
        ClientTest   t = {.scripts = {{.answers = first, .count = 2, .end = cases[i].end}, {.answers = second, .count = 1}}};
        char         text[] = "body$";
        Str          view = str_from(text);
        Source       source = flow_from_str(&view);
        ClientSource src = {.real = 5};

        client_test__begin(&t);
        ClientRequest r = client_test__request(&t, "GET");
        assert_string_equal(client_test__run(&t, &r, 100), "204 ");
        assert_false(t.scripts[0].closed);
        t.scripts[0].takes = cases[i].takes ? t.scripts[0].written.n : 0;
        t.scripts[0].full = SCRIPT_RESET;
        r = client_test__request(&t, cases[i].method);
        if (cases[i].body == AGAIN) {
            source = (Source){client_test__read, &src, 5};
            r.rewind = client_test__rewind;
            second[0].after = "abcde";
            first[1].after = "abcde";
        }
        r.body = cases[i].body ? &source : NULL;
        if (strcmp(client_test__run(&t, &r, 100), cases[i].want) != 0 || t.dial.used != cases[i].dials)
            fail_msg("row %zu: %s, %zu connections", i, t.got.p, t.dial.used);
        assert_int_equal(src.rewound, cases[i].body == AGAIN && cases[i].dials == 2);
        client_test__end(&t);
    }
}

/* The second connection fails, too: once only, and "unsent" is not promised. */
static void client_repeat_once_test(void **state)
{
    static const char no[] = "HTTP/1.1 204 No\r\n\r\n";
    ScriptAnswer first[] = {{CLIENT_HEAD, no, 0}, {CLIENT_HEAD, "", 0}};

    (void)state;
    for (size_t dials = 1; dials < 3; dials++) {
        ClientTest t = {.scripts = {{.answers = first, .count = 2, .end = SCRIPT_EOF}, {.end = SCRIPT_EOF}}};
        client_test__begin(&t);
        t.dial.count = dials;
        ClientRequest r = client_test__request(&t, "GET");
        assert_string_equal(client_test__run(&t, &r, 100), "204 ");
        assert_string_equal(client_test__run(&t, &r, 100), dials == 1 ? "|9: cannot connect to h:8080: refused"
                                                           : "|9: h:8080: the connection was closed without an answer");
        assert_int_equal(t.dial.used, dials);
        client_test__end(&t);
    }
}

static void client_unsent_test(void **state)
{
    ClientTest t = {.scripts[0] = {.takes = 1, .full = SCRIPT_RESET}};

    (void)state;
    client_test__begin(&t);
    t.dial.count = 1;
    ClientRequest r = client_test__request(&t, "GET");
    assert_string_equal(client_test__run(&t, &r, 100), "|9: h:8080: the connection was reset");     /* one byte was */
    assert_string_equal(client_test__run(&t, &r, 100), "|8: cannot connect to h:8080: refused");
    client_test__end(&t);
}

/* A kept connection is not handed out when it was closed or has spoken. */
static void client_stale_test(void **state)
{
    static const char no[] = "HTTP/1.1 204 No\r\n\r\n";
    static const struct { const char *extra; ScriptEnd end; size_t dials; } cases[] = {
        {NULL, SCRIPT_OPEN, 1}, {NULL, SCRIPT_EOF, 2}, {NULL, SCRIPT_RESET, 2}, {"HTTP/1.1 408 x\r\n\r\n", SCRIPT_OPEN, 2},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ScriptAnswer first[] = {{CLIENT_HEAD, no, 0}, {NULL, cases[i].extra ? cases[i].extra : "", 0}};
        ScriptAnswer same[] = {{CLIENT_HEAD, no, 0}, {CLIENT_HEAD, no, 0}}, second[] = {{CLIENT_HEAD, no, 0}};
        ClientTest   t = {.scripts = {{.answers = first, .count = 2}, {.answers = second, .count = 1}}};
        if (cases[i].dials == 1)
            t.scripts[0].answers = same;
        /* What comes unasked comes later than the first answer is read. */
        t.scripts[0].piece = strlen(no);
        client_test__begin(&t);
        ClientRequest r = client_test__request(&t, "POST");
        assert_string_equal(client_test__run(&t, &r, 100), "204 ");
        t.scripts[0].end = cases[i].end;
        if (strcmp(client_test__run(&t, &r, 100), "204 ") != 0 || t.dial.used != cases[i].dials)
            fail_msg("row %zu: %s, %zu connections", i, t.got.p, t.dial.used);
        client_test__end(&t);
    }
}

/* Other hosts, ports and schemes have connections of their own; old ones go. */
static void client_pool_test(void **state)
{
    static const char *const urls[] = {"http://h:8080/", "http://h:8081/", "http://i:8080/", "https://h:8080/"};
    Pool   pool = {0};
    Script scripts[POOL_KEPT + 2] = {0};
    Err    err;

    (void)state;
    for (size_t i = 0; i < POOL_KEPT + 2; i++)
        pool_keep(&pool, pool_conn(script_open(&scripts[i]), i % 2 ? "tcp://a:1" : "tcp://b:1"));
    assert_true(scripts[0].closed && scripts[1].closed && !scripts[2].closed);
    PoolConn *k = pool_take(&pool, "tcp://b:1");
    assert_true(k && k->stream == &scripts[POOL_KEPT].stream && k->reused);
    k->until = clock_after(-1);
    assert_null(pool_take(&pool, "tcp://c:1"));
    pool_keep(&pool, k);
    pool.first->until = clock_after(0);         /* too old */
    PoolConn *other = pool_take(&pool, "tcp://b:1");
    assert_true(scripts[POOL_KEPT].closed && other && other->stream == &scripts[POOL_KEPT - 2].stream);
    pool_drop(other);
    pool_free(&pool);
    for (size_t i = 0; i < POOL_KEPT + 2; i++)
        assert_true(scripts[i].closed);

    ScriptAnswer answers[] = {{CLIENT_HEAD, "HTTP/1.1 204 No\r\n\r\n", 0}};
    for (size_t i = 1; i < COUNT_OF(urls); i++) {
        ClientTest t = {.scripts = {{.answers = answers, .count = 1}, {.answers = answers, .count = 1}}};
        client_test__begin(&t);
        ClientRequest r = client_test__request(&t, "GET");
        assert_string_equal(client_test__run(&t, &r, 100), "204 ");
        assert_true(url_parse(str_from(urls[i]), &t.a, &r.url, &err));
        assert_string_equal(client_test__run(&t, &r, 100), "204 ");
        assert_int_equal(t.dial.used, 2);
        client_test__end(&t);
    }
}

static void client_waiting_test(void **state)
{
    ScriptAnswer half[] = {{CLIENT_HEAD, CLIENT_OK "Content-Length: 5\r\n\r\nhel", 0}};
    int          cancel[2];

    (void)state;
    assert_int_equal(pipe(cancel), 0);
    for (int i = 0; i < 6; i++) {
        bool       in_body = i >= 3;
        ClientTest t = {.scripts[0] = {.answers = half, .count = in_body}};
        Exchange  *x;
        Err        err;
        char       p[100];
        size_t     n;
        client_test__begin(&t);
        ClientRequest r = client_test__request(&t, "GET");
        int64_t    began = clock_mono_ms();
        Deadline   until = clock_after(i % 3 == 0 ? 50 : 60000);
        if (!in_body)
            r.deadline = until;
        r.idle_ms = i % 3 == 1 ? 50 : 0;
        if (i % 3 == 2 && !in_body)
            client_cancel_fd(t.client, cancel[0]);
        if (i == 2)
            assert_int_equal(write(cancel[1], "x", 1), 1);
        bool ok = client_open(t.client, &r, &x, &err);
        assert_int_equal(ok, in_body);
        if (in_body) {
            assert_true(client_read(x, p, sizeof p, &n, until, &err) && n == 3);
            if (i == 5)
                client_cancel_fd(t.client, cancel[0]);
            assert_false(client_read(x, p, sizeof p, &n, until, &err));
            client_close(x);
        }
        assert_int_equal(err.kind, i % 3 == 2 ? ERR_CANCELLED : ERR_TIMEOUT);
        assert_string_equal(err.text, i % 3 == 2 ? "interrupted" : i % 3 == 1 ? "h:8080: not a byte moved for 0.05 s"
                                      : in_body ? "h:8080: the answer did not come to its end in time"
                                                : "h:8080: no answer came in time");
        assert_in_range(clock_mono_ms() - began, i % 3 == 2 ? 0 : 50, 30000);
        assert_true(t.scripts[0].closed);
        client_test__end(&t);
    }
    close(cancel[0]);
    close(cancel[1]);
}

/* Within its grace an answer still counts; a silent server has no more than it. */
static void client_grace_test(void **state)
{
    ScriptAnswer answer = {CLIENT_HEAD, CLIENT_OK "Content-Length: 0\r\n\r\n", 0};
    int          cancel[2];

    (void)state;
    assert_int_equal(pipe(cancel), 0);
    assert_int_equal(write(cancel[1], "x", 1), 1);
    for (size_t answers = 0; answers < 2; answers++) {
        ClientTest t = {.scripts[0] = {.answers = &answer, .count = answers}};
        Exchange  *x;
        Err        err;
        client_test__begin(&t);
        ClientRequest r = client_test__request(&t, "GET");
        int64_t       began = clock_mono_ms();
        r.deadline = clock_after(60000);
        client_cancel_fd(t.client, cancel[0]);
        client_cancel_grace(t.client, 80);
        assert_int_equal(client_open(t.client, &r, &x, &err), answers);
        client_close(x);
        if (!answers) {
            assert_int_equal(err.kind, ERR_CANCELLED);
            assert_string_equal(err.text, "interrupted");
            assert_in_range(clock_mono_ms() - began, 80, 30000);
        }
        client_test__end(&t);
    }
    close(cancel[0]);
    close(cancel[1]);
}

/* Neither a server that never stops talking nor one that takes for ever keeps us. */
static void client_endless_test(void **state)
{
    ScriptAnswer answer = {CLIENT_HEAD, CLIENT_OK "\r\nendless", 0};

    (void)state;
    for (int i = 0; i < 2; i++) {
        ClientSource src = {.real = SIZE_MAX / 2, .piece = 1000};
        Source       source = {client_test__read, &src, -1};
        ClientTest   t = {.scripts[0] = {.answers = &answer, .count = i == 0}};
        Exchange    *x;
        Err          err;
        char         p[4];
        size_t       n;
        client_test__begin(&t);
        ClientRequest r = client_test__request(&t, "GET");
        if (i == 0) {
            assert_true(client_open(t.client, &r, &x, &err));
            assert_true(client_read(x, p, sizeof p, &n, clock_after(60000), &err) && n == 4);
            assert_false(client_read(x, p, sizeof p, &n, clock_after(-1), &err));
            assert_string_equal(err.text, "h:8080: the answer did not come to its end in time");
            assert_true(client_read(x, p, sizeof p, &n, clock_after(60000), &err) && n == 3);   /* and can go on */
            client_close(x);
        } else {
            r.body = &source;
            r.deadline = clock_after(50);
            assert_false(client_open(t.client, &r, &x, &err));
            assert_string_equal(err.text, "h:8080: no answer came in time");
        }
        assert_int_equal(err.kind, ERR_TIMEOUT);
        client_test__end(&t);
    }
}

static void client_try_test(void **state)
{
    ScriptAnswer answers[] = {{CLIENT_HEAD, CLIENT_OK "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", 0},
                              {"more", "0\r\n\r\n", 0}};
    ClientTest   t = {.scripts[0] = {.answers = answers, .count = 2}};
    Exchange    *x;
    Err          err;
    char         p[10];
    size_t       n;

    (void)state;
    client_test__begin(&t);
    ClientRequest r = client_test__request(&t, "GET");
    assert_true(client_open(t.client, &r, &x, &err));
    assert_int_equal(client_length(x), -1);
    assert_int_equal(client_headers(x).n, 1);
    assert_int_equal(client_want(x).fd, -1);
    assert_true(client_try(x, p, sizeof p, &n, &err) == STEP_DONE && n == 2);
    assert_true(client_try(x, p, sizeof p, &n, &err) == STEP_MORE && n == 0);
    assert_true(client_want(x).fd >= 0);
    buf_add(&t.scripts[0].written, STR("more"));
    assert_true(client_want(x).fd < 0);
    client_close(x);                    /* the last chunk is there: read, and the connection kept */
    assert_false(t.scripts[0].closed);
    client_test__end(&t);
}

static void client_text_test(void **state)
{
    static const struct { const char *answer; size_t limit; const char *want; } cases[] = {
        {CLIENT_OK "Content-Length: 5\r\n\r\nhello", 5, "hello"},
        {CLIENT_OK "Content-Length: 5\r\n\r\nhello", 4, "h:8080: an answer of more than 4 bytes"},
        {CLIENT_OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 5, "hello"},
        {CLIENT_OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 4, "h:8080: an answer of more than 4 bytes"},
        {"HTTP/1.1 204 No\r\n\r\n", 0, ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ScriptAnswer answer = {CLIENT_HEAD, cases[i].answer, 0};
        ClientTest   t = {.scripts[0] = {.answers = &answer, .count = 1}};
        Exchange    *x;
        Err          err;
        Str          body;
        client_test__begin(&t);
        ClientRequest r = client_test__request(&t, "GET");
        assert_true(client_open(t.client, &r, &x, &err));
        bool ok = client_text(x, cases[i].limit, &t.a, &body, DEADLINE_NONE, &err);
        assert_string_equal(ok ? body.p : err.text, cases[i].want);
        assert_true(ok || err.kind == ERR_LIMIT);
        client_close(x);
        client_test__end(&t);
    }
}

/* Large bodies go right into the caller's memory, whatever frames them. */
static void client_large_test(void **state)
{
    enum { SIZE = 300000 };
    char *body = malloc(SIZE);

    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        body[i] = (char)('a' + i % 23);
    for (int framing = 0; framing < 3; framing++)
        for (size_t piece = 0; piece < 70001; piece += 35000) {
            Buf b = buf_make((size_t)1 << 20);
            buf_add(&b, STR(CLIENT_OK));
            buf_addf(&b, framing == 0 ? "Content-Length: %d\r\n\r\n" : framing == 1 ? "X: %d\r\n\r\n"
                         : "X: %d\r\nTransfer-Encoding: chunked\r\n\r\n", (int)SIZE);
            for (size_t at = 0; at < SIZE; at += 150000) {
                if (framing == 2)
                    buf_addf(&b, "%x\r\n", 150000);
                buf_add(&b, (Str){body + at, 150000});
                if (framing == 2)
                    buf_add(&b, STR("\r\n"));
            }
            if (framing == 2)
                buf_add(&b, STR("0\r\n\r\n"));
            ScriptAnswer answer = {CLIENT_HEAD, b.p, b.n};
            ClientTest   t = {.scripts[0] = {.answers = &answer, .count = 1, .end = SCRIPT_EOF, .piece = piece}};
            client_test__begin(&t);
            ClientRequest r = client_test__request(&t, "GET");
            const char   *got = client_test__run(&t, &r, 128 << 10);
            assert_int_equal(t.got.n, 4 + SIZE + 1);
            assert_memory_equal(got + 4, body, SIZE);
            client_test__end(&t);
            buf_free(&b);
        }
    free(body);
}

static void client_huge_head_test(void **state)
{
    ClientTest   t = {0};
    size_t       size = (size_t)2 << 20;
    char        *text = malloc(size);
    ScriptAnswer answer = {CLIENT_HEAD, text, size};

    (void)state;
    memset(text, 'x', size);
    memcpy(text, CLIENT_OK "A: ", strlen(CLIENT_OK) + 3);
    t.scripts[0] = (Script){.answers = &answer, .count = 1};
    client_test__begin(&t);
    ClientRequest r = client_test__request(&t, "GET");
    assert_string_equal(client_test__run(&t, &r, 100), "|3: h:8080: an HTTP head of more than 262144 bytes or 256 fields");
    assert_true(t.scripts[0].given <= LIMIT_HEAD + POOL_IN_SIZE);
    client_test__end(&t);
    free(text);
}

#undef CLIENT_HEAD
#undef CLIENT_OK

static const struct CMUnitTest client_tests[] = {
    cmocka_unit_test(client_get_test),
    cmocka_unit_test(client_cut_test),
    cmocka_unit_test(client_request_test),
    cmocka_unit_test(client_body_test),
    cmocka_unit_test(client_sized_body_test),
    cmocka_unit_test(client_wrong_size_test),
    cmocka_unit_test(client_early_test),
    cmocka_unit_test(client_interim_limit_test),
    cmocka_unit_test(client_repeat_test),
    cmocka_unit_test(client_repeat_once_test),
    cmocka_unit_test(client_unsent_test),
    cmocka_unit_test(client_stale_test),
    cmocka_unit_test(client_pool_test),
    cmocka_unit_test(client_waiting_test),
    cmocka_unit_test(client_grace_test),
    cmocka_unit_test(client_endless_test),
    cmocka_unit_test(client_try_test),
    cmocka_unit_test(client_text_test),
    cmocka_unit_test(client_large_test),
    cmocka_unit_test(client_huge_head_test),
};
