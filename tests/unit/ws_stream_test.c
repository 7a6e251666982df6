#include "net/ws_stream.h"

#include "script_stream.h"

/* ---- a server that upgrades: it knows the proof only once it has the key ---- */

typedef struct WsServer {
    Script       script;
    ScriptAnswer answer;
    const char  *head;      /* its %s is the proof */
    Str          behind;
    char         text[4096];
} WsServer;

static Step ws_server__write(Stream *stream, const char *p, size_t len, size_t *n, Err *err)
{
    WsServer *s = (WsServer *)stream;
    Step      step = script__write(stream, p, len, n, err);
    Str       all = buf_str(&s->script.written);
    char      proof[WS_ACCEPT + 1];

    const char *key = memmem(all.p, all.n, "Sec-WebSocket-Key: ", 19), *end = memmem(all.p, all.n, "\r\n\r\n", 4);
    if (key && end && !s->answer.n) {
        ws_accept((Str){key + 19, WS_KEY}, proof);
        Buf         text = buf_make(sizeof s->text);
        const char *at = strstr(s->head, "%s");
        buf_addf(&text, "%.*s%s%s", (int)(at - s->head), s->head, proof, at + 2);
        buf_add(&text, s->behind);
        s->answer.n = text.n;
        memcpy(s->text, text.p, text.n);
        buf_free(&text);
    }
    return step;
}

static bool ws_server__dial(void *ctx, const Url *url, int cancel_fd, Deadline deadline, Stream **out, Err *err)
{
    static const StreamOps ops = {script__read, ws_server__write, script__want, script__close};
    WsServer *s = ctx;

    (void)url, (void)cancel_fd, (void)deadline, (void)err;
    s->answer = (ScriptAnswer){"\r\n\r\n", s->text, 0};
    s->script.answers = &s->answer;
    s->script.count = 1;
    *out = script_open(&s->script);
    s->script.stream.ops = &ops;
    return true;
}

#define WS_TEST_101 "HTTP/1.1 101 Switching Protocols\r\n"

static void ws_stream_upgrade_test(void **state)
{
    static const struct { const char *head; int status; const char *wrong; } rows[] = {
        {WS_TEST_101 "Upgrade: WebSocket\r\nConnection: keep-alive, upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", 101, NULL},
        {"HTTP/1.1 100 Continue\r\n\r\n" WS_TEST_101 "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", 101, NULL},
        {WS_TEST_101 "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x%s\r\n\r\n", 0, "without the proof"},
        {WS_TEST_101 "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n%s", 0, "without the proof"},
        {WS_TEST_101 "Upgrade: h2c\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", 0, "another protocol"},
        {WS_TEST_101 "Upgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n", 0, "without a field Connection"},
        {WS_TEST_101 "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Extensions: permessage-deflate\r\n"
                     "Sec-WebSocket-Accept: %s\r\n\r\n", 0, "not asked for"},
        {"HTTP/1.1 404 No\r\nContent-Length: 28\r\n\r\n%s", 404, NULL},
        {"HTTP/1.1 200 OK\r\nContent-Length: 28\r\n\r\n%s", 200, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (size_t piece = 0; piece < 3; piece++) {
            WsServer  server = {.script.piece = piece, .head = rows[i].head, .behind = {"\x82\2hi", 4}};
            ClientRequest rq = {.method = "GET", .websocket = true, .deadline = clock_after(60000)};
            Client   *client = client_make(&(ClientOptions){.dial = ws_server__dial, .dial_ctx = &server, .cancel_fd = -1});
            Arena     a = arena_make(1 << 16);
            Exchange *x = NULL;
            Err       err;
            assert_true(url_parse(STR("http://h/x"), &a, &rq.url, &err));
            assert_int_equal(client_open(client, &rq, &x, &err), rows[i].status != 0);
            if (rows[i].wrong && !strstr(err.text, rows[i].wrong))
                fail_msg("row %zu: %s", i, err.text);
            if (rows[i].status)
                assert_int_equal(client_status(x), rows[i].status);
            if (rows[i].status == 101) {
                Buf     rest = buf_make(POOL_IN_SIZE);
                char    got[8];
                size_t  n;
                Stream *raw = client_take(x, &rest);
                assert_false(server.script.closed);
                Stream *s = ws_stream_make(raw, buf_str(&rest), &(WsStreamOptions){0});
                for (size_t at = 0; at < 2; at += n)
                    assert_int_equal(stream_read(s, got + at, sizeof got - at, &n, &err), STEP_DONE);
                assert_memory_equal(got, "hi", 2);
                stream_close(s);
                buf_free(&rest);
            } else {
                client_close(x);
            }
            client_free(client);
            assert_true(server.script.closed);
            script_free(&server.script);
            arena_free(&a);
        }
}

/* What may change the protocol is said by the client alone. */
static void ws_stream_fields_test(void **state)
{
    static const char *const names[] = {"Upgrade", "sec-websocket-key", "Sec-WebSocket-Extensions"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        WsServer  server = {.head = "%s"};
        Header    field = {str_from(names[i]), STR("x")};
        Client   *client = client_make(&(ClientOptions){.dial = ws_server__dial, .dial_ctx = &server, .cancel_fd = -1});
        Arena     a = arena_make(1 << 16);
        ClientRequest rq = {.method = "GET", .headers = {&field, 1}, .deadline = clock_after(60000)};
        Exchange *x;
        Err       err;
        assert_true(url_parse(STR("http://h/x"), &a, &rq.url, &err));
        assert_false(client_open(client, &rq, &x, &err));
        assert_int_equal(err.code, E8002);
        client_free(client);
        arena_free(&a);
    }
}

/* ---- the stream ---- */

/* Read to the end: what came, then "|" and how it ended. */
static void ws_stream_test__all(Stream *s, size_t cap, Buf *got)
{
    char  *p = malloc(cap);
    size_t n;
    Err    err = {0};
    Step   step;
    int    turns = 0;

    while ((step = stream_read(s, p, cap, &n, &err)) != STEP_ERR && (step == STEP_MORE || n)) {
        if (step == STEP_DONE)
            buf_add(got, (Str){p, n});
        else if (stream_want(s, STREAM_READ).fd >= 0 || ++turns > 100000)
            break;
    }
    buf_addf(got, "|%s", step == STEP_ERR ? err.text : step == STEP_MORE ? "more" : "end");
    free(p);
}

static void ws_stream_test__aside(void *ctx, int tag, Str message)
{
    buf_addf(ctx, "%d:%.*s;", tag, STR_ARG(message));
}

#define WS_TEST_IN(lit) sizeof(lit) - 1, lit

static void ws_stream_read_test(void **state)
{
    static const struct { bool tagged; size_t n; const char *in, *want, *aside; ScriptEnd end; } rows[] = {
        {false, WS_TEST_IN("\x82\3abc\2\2de\x80\1f\x88\2\3\xe8"), "abcdef|end", "", SCRIPT_OPEN},
        {false, WS_TEST_IN("\x82\3abc\x88\0"), "abc|end", "", SCRIPT_OPEN},
        {false, WS_TEST_IN("\x82\3abc\x88\2\3\xe9"), "abc|end", "", SCRIPT_OPEN},
        {false, WS_TEST_IN("\x88\2\3\xf0"), "|the other side closed the WebSocket (1008)", "", SCRIPT_OPEN},
        {false, WS_TEST_IN("\x88\6\3\xf3gone"), "|the other side closed the WebSocket (1011): gone", "", SCRIPT_OPEN},
        {false, WS_TEST_IN("\x82\3abc"), "abc|more", "", SCRIPT_OPEN},
        {false, WS_TEST_IN("\x82\3abc"), "abc|the connection ended without a close frame", "", SCRIPT_EOF},
        {false, WS_TEST_IN("\x82\3ab"), "ab|the connection ended without a close frame", "", SCRIPT_EOF},
        {false, WS_TEST_IN("\x82\3ab"), "ab|the connection was reset", "", SCRIPT_RESET},
        {false, WS_TEST_IN("\x82\1a\x83\0"), "a|bad WebSocket: a reserved opcode", "", SCRIPT_OPEN},
        {false, WS_TEST_IN("\x81\2hi\x89\1p\x82\1x\x8a\0"), "x|more", "-1:hi;", SCRIPT_OPEN},
        {true, WS_TEST_IN("\x82\3\1ab\x82\3\2er\x82\1\1\x81\1t\x82\0\2\1\1\x80\1z"), "abz|more", "2:er;-1:t;", SCRIPT_OPEN},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (size_t piece = 0; piece < 4; piece++)
            for (int hiccups = 0; hiccups < 2; hiccups++)
                for (size_t rest = 0; rest < rows[i].n; rest++) {
                    ScriptAnswer answer = {NULL, rows[i].in + rest, rows[i].n - rest};
                    Script  script = {.answers = &answer, .count = 1, .end = rows[i].end, .piece = piece, .hiccups = hiccups};
                    Buf     got = buf_make(4096), aside = buf_make(4096);
                    Stream *s = ws_stream_make(script_open(&script), (Str){rows[i].in, rest},
                                          &(WsStreamOptions){rows[i].tagged, ws_stream_test__aside, &aside});
                    ws_stream_test__all(s, piece == 3 ? 1 : 4096, &got);
                    if (!str_eq(buf_str(&got), str_from(rows[i].want)) || !str_eq(buf_str(&aside), str_from(rows[i].aside)))
                        fail_msg("row %zu piece %zu rest %zu: %.*s, aside %.*s", i, piece, rest, STR_ARG(buf_str(&got)),
                                 STR_ARG(buf_str(&aside)));
                    stream_close(s);
                    assert_true(script.closed);
                    script_free(&script);
                    buf_free(&got);
                    buf_free(&aside);
                }
}

/* What a client wrote, as ws_test_read() shows it. */
static void ws_stream_test__sent(Script *script, Buf *got)
{
    WsReader r = ws_reader(true, 0);

    buf_clear(got);
    (void)ws_test_read(&r, buf_str(&script->written), got);
    buf_addc(got, 0);
}

static void ws_stream_write_test(void **state)
{
    Script  script = {.hiccups = true, .piece = 3};
    Buf     got = buf_make(1 << 20);
    Stream *s = ws_stream_make(script_open(&script), (Str){0}, &(WsStreamOptions){0});
    char   *big = malloc(600000), in[10];
    size_t  n, all = 0;
    Err     err;

    (void)state;
    memset(big, 'x', 600000);
    while (all < 600000) {
        Step step = stream_write(s, big, 600000 - all, &n, &err);
        assert_int_not_equal(step, STEP_ERR);
        all += step == STEP_DONE ? n : 0;
        assert_true(n < WS_STREAM_MESSAGE);
    }
    while (stream_want(s, STREAM_WRITE).fd < 0 && script.written.n < 600000 + 3 * 14)
        assert_int_equal(stream_read(s, in, sizeof in, &n, &err), STEP_MORE);    /* reading sends what is left */
    WsReader r = ws_reader(true, WS_STREAM_MESSAGE);
    assert_true(ws_test_read(&r, buf_str(&script.written), &got));
    assert_int_equal(got.n, 600000 + 3 * 3);
    stream_close(s);
    script_free(&script);

    /* A tagged one, and its close. */
    script = (Script){0};
    s = ws_stream_make(script_open(&script), (Str){0}, &(WsStreamOptions){.tagged = true});
    assert_int_equal(stream_write(s, "hey", 3, &n, &err), STEP_DONE);
    assert_int_equal(n, 3);
    stream_close(s);
    ws_stream_test__sent(&script, &got);
    assert_memory_equal(got.p, "B(\0hey)C1000()", 14);
    script_free(&script);

    /* Of which none is longer than such a backend takes. */
    script = (Script){0};
    s = ws_stream_make(script_open(&script), (Str){0}, &(WsStreamOptions){.tagged = true});
    assert_int_equal(stream_write(s, big, 600000, &n, &err), STEP_DONE);
    assert_int_equal(n, WS_STREAM_TAGGED - 1);
    stream_close(s);
    script_free(&script);
    free(big);
    buf_free(&got);
}

/* A ping is answered at once: while only reading, while only writing, and where
 * the connection takes nothing, the last one later. */
static void ws_stream_ping_test(void **state)
{
    ScriptAnswer answers[] = {{NULL, "\x89\1p", 3}, {"\x8a\x81", "\x89\1q", 3}, {"\x8a\x81", "\x88\2\3\xe8", 4}};
    Buf          got = buf_make(4096);
    char         in[10];
    size_t       n;
    Err          err;

    (void)state;
    Script  script = {.answers = answers, .count = 1};
    Stream *s = ws_stream_make(script_open(&script), (Str){0}, &(WsStreamOptions){0});
    assert_int_equal(stream_read(s, in, sizeof in, &n, &err), STEP_MORE);
    ws_stream_test__sent(&script, &got);
    assert_string_equal(got.p, "Q(p)");
    stream_close(s);
    script_free(&script);

    script = (Script){.answers = answers, .count = 2};
    s = ws_stream_make(script_open(&script), (Str){0}, &(WsStreamOptions){0});
    assert_int_equal(stream_write(s, "a", 1, &n, &err), STEP_DONE);
    assert_int_equal(stream_write(s, "b", 1, &n, &err), STEP_DONE);
    ws_stream_test__sent(&script, &got);
    assert_string_equal(got.p, "Q(p)B(a)Q(q)B(b)");
    stream_close(s);
    script_free(&script);

    /* Full: both pings come, one answer goes, and the descriptor is wanted for both. */
    ScriptAnswer both = {NULL, "\x89\1p\x89\1q", 6};
    script = (Script){.answers = &both, .count = 1, .takes = 3};
    s = ws_stream_make(script_open(&script), (Str){0}, &(WsStreamOptions){0});
    assert_int_equal(stream_write(s, "a", 1, &n, &err), STEP_MORE);
    assert_int_equal(stream_read(s, in, sizeof in, &n, &err), STEP_MORE);
    assert_int_equal(stream_write(s, "a", 1, &n, &err), STEP_MORE);
    script.takes = 0;
    assert_int_equal(stream_write(s, "a", 1, &n, &err), STEP_DONE);
    ws_stream_test__sent(&script, &got);
    assert_string_equal(got.p, "Q(q)B(a)");
    stream_close(s);
    script_free(&script);

    /* Pings without end do not hold the caller, nor does a close lose its answer. */
    Buf flood = buf_make(1 << 16);
    for (int i = 0; i < 1000; i++)
        buf_add(&flood, (Str){"\x89\0", 2});
    buf_add(&flood, (Str){"\x88\2\3\xe8", 4});
    ScriptAnswer many = {NULL, flood.p, flood.n};
    script = (Script){.answers = &many, .count = 1, .piece = 2};
    s = ws_stream_make(script_open(&script), (Str){0}, &(WsStreamOptions){0});
    assert_int_equal(stream_read(s, in, sizeof in, &n, &err), STEP_MORE);
    assert_true(script.given <= 40);
    assert_true(stream_want(s, STREAM_READ).fd < 0);
    buf_clear(&got);
    ws_stream_test__all(s, 10, &got);
    assert_true(str_eq(buf_str(&got), STR("|end")));
    assert_int_equal(stream_write(s, "b", 1, &n, &err), STEP_ERR);
    assert_int_equal(err.kind, ERR_CLOSED);
    stream_close(s);
    ws_stream_test__sent(&script, &got);
    assert_true(str_ends((Str){got.p, got.n - 1}, STR("Q()C1000()")));
    script_free(&script);
    buf_free(&flood);
    buf_free(&got);
}

/* Random frames of every kind, cut anywhere, read in pieces of any size. */
static void ws_stream_mixed_test(void **state)
{
    static const size_t sizes[] = {0, 1, 5, 125, 126, 4000, 65535, 65536, 70000};
    Buf    wire = buf_make((size_t)4 << 20), want = buf_make((size_t)4 << 20), got = buf_make((size_t)4 << 20);
    char  *bytes = malloc(70000);
    size_t k = 1;
    bool   inside = false;

    (void)state;
    for (size_t i = 0; i < 70000; i++)
        bytes[i] = (char)(i * 31 + (i >> 7));
    for (int i = 0; i < 60; i++, k = k * 48271 % 2147483647) {
        Str piece = {bytes, sizes[k % COUNT_OF(sizes)]};
        bool fin = k / 16 % 2;
        ws_put(&wire, inside ? WS_CONTINUATION : WS_BINARY, fin, piece, NULL);
        buf_add(&want, piece);
        inside = !fin;
        if (k / 64 % 3 == 0)
            ws_put(&wire, WS_PING, true, STR("?"), NULL);
    }
    ws_put_close(&wire, WS_NORMAL, (Str){0}, NULL);
    for (size_t piece = 1; piece < 200000; piece = piece * 5 + 3)
        for (size_t cap = 1000; cap < 200000; cap *= 7) {
            ScriptAnswer answer = {NULL, wire.p, wire.n};
            Script       script = {.answers = &answer, .count = 1, .piece = piece};
            Stream      *s = ws_stream_make(script_open(&script), (Str){0}, &(WsStreamOptions){0});
            buf_clear(&got);
            ws_stream_test__all(s, cap, &got);
            assert_int_equal(got.n, want.n + 4);
            assert_memory_equal(got.p, want.p, want.n);
            stream_close(s);
            script_free(&script);
        }
    free(bytes);
    buf_free(&wire);
    buf_free(&want);
    buf_free(&got);
}

static const struct CMUnitTest ws_stream_tests[] = {
    cmocka_unit_test(ws_stream_upgrade_test), cmocka_unit_test(ws_stream_fields_test),
    cmocka_unit_test(ws_stream_read_test), cmocka_unit_test(ws_stream_write_test), cmocka_unit_test(ws_stream_ping_test),
    cmocka_unit_test(ws_stream_mixed_test),
};
