#include "net/dial.h"
#include "net/tcp.h"
#include "os/lookup.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* A listening socket on 127.0.0.1; *port says where. */
static int dial_test__listen(int backlog, int *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          n = sizeof a;
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    if (backlog >= 0)
        assert_int_equal(listen(fd, backlog), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static Url dial_test__url(Arena *a, const char *scheme_host, int port)
{
    Url url;
    Err err;

    assert_true(url_parse(arena_fmt(a, "%s:%d/", scheme_host, port), a, &url, &err));
    return url;
}

static void dial_lookup_test(void **state)
{
    static const struct { const char *host; size_t n; const char *want; } cases[] = {
        {"127.0.0.1", 1, "127.0.0.1"}, {"::1", 1, "::1"}, {"fe80::1%lo", 1, "fe80::1"}, {"fe80::1%7", 1, "fe80::1"},
        {"localhost", 2, "127.0.0.1"}, {"LOCALHOST.", 2, "127.0.0.1"}, {"a.b.localhost", 2, "127.0.0.1"},
    };
    LookupAddress out[LOOKUP_MAX];
    size_t        n;
    Err           err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[INET6_ADDRSTRLEN];
        assert_true(lookup_host(str_from(cases[i].host), 81, -1, DEADLINE_NONE, out, &n, &err));
        bool v4 = out[0].sa.any.sa_family == AF_INET;
        inet_ntop(out[0].sa.any.sa_family, v4 ? (void *)&out[0].sa.v4.sin_addr : (void *)&out[0].sa.v6.sin6_addr, text,
                  sizeof text);
        assert_string_equal(text, cases[i].want);
        assert_int_equal(n, cases[i].n);
        assert_int_equal(ntohs(v4 ? out[0].sa.v4.sin_port : out[0].sa.v6.sin6_port), 81);
    }
    assert_int_equal(out[1].sa.any.sa_family, AF_INET6);
    assert_true(lookup_host(STR("fe80::1%lo"), 1, -1, DEADLINE_NONE, out, &n, &err) && out[0].sa.v6.sin6_scope_id == 1);
    assert_false(lookup__is_localhost(STR("notlocalhost")) || lookup__is_localhost(STR("localhost.x")) ||
                 lookup__is_localhost(STR("")) || lookup__is_localhost(STR(".")));
}

/* Names that the resolver refuses without asking anybody: a part of 64 letters. */
static void dial_lookup_child_test(void **state)
{
    const char    long_part[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example";
    LookupAddress out[LOOKUP_MAX];
    size_t        n;
    Err           err;
    int           cancel[2];

    (void)state;
    assert_false(lookup_host(STR(long_part), 1, -1, clock_after(60000), out, &n, &err));
    assert_int_equal(err.kind, ERR_UNSENT);
    assert_int_equal(err.code, E5001);
    assert_non_null(strstr(err.text, "there is no host named aaaaaaaa"));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);       /* the child is gone and reaped */
    assert_int_equal(errno, ECHILD);

    assert_int_equal(pipe(cancel), 0);
    assert_int_equal(write(cancel[1], "x", 1), 1);
    assert_false(lookup_host(STR(long_part), 1, cancel[0], clock_after(60000), out, &n, &err));
    assert_int_equal(err.kind, ERR_CANCELLED);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    close(cancel[0]);
    close(cancel[1]);
    assert_false(lookup_host(STR("a\nb"), 1, -1, clock_after(60000), out, &n, &err));
}

static void dial_stream_test(void **state)
{
    Arena   a = arena_make(1 << 16);
    Dialer *d = dial_make(STR(""));
    int     port, one, listening = dial_test__listen(4, &port);
    Stream *s;
    char    p[16];
    size_t  n;
    Err     err;

    (void)state;
    for (int i = 0; i < 2; i++) {
        Url url = dial_test__url(&a, i ? "http://localhost" : "ws://127.0.0.1", port);
        assert_true(dial_stream(d, &url, -1, clock_after(60000), &s, &err));
        int       peer = accept(listening, NULL, NULL), fd = stream_want(s, STREAM_READ).fd;
        socklen_t size = sizeof one;
        assert_true(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, &size) == 0 && one);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC && fcntl(fd, F_GETFL) & O_NONBLOCK);

        assert_int_equal(stream_read(s, p, sizeof p, &n, &err), STEP_MORE);
        assert_false(stream_wait(s, STREAM_READ, -1, clock_after(20), &err));
        assert_int_equal(err.kind, ERR_TIMEOUT);
        assert_true(stream_write(s, "ping", 4, &n, &err) == STEP_DONE && n == 4);
        assert_int_equal(recv(peer, p, sizeof p, 0), 4);
        assert_int_equal(send(peer, "pong!", 5, 0), 5);
        assert_true(stream_wait(s, STREAM_READ, -1, clock_after(60000), &err));
        assert_true(stream_read(s, p, sizeof p, &n, &err) == STEP_DONE && n == 5);
        if (i) {        /* an orderly end, then a write that nobody reads: an error, no signal */
            close(peer);
            assert_true(stream_wait(s, STREAM_READ, -1, clock_after(60000), &err));
            assert_true(stream_read(s, p, sizeof p, &n, &err) == STEP_DONE && n == 0);
            Step step = STEP_DONE;
            for (int k = 0; k < 100 && step != STEP_ERR; k++, usleep(1000))
                step = stream_write(s, "x", 1, &n, &err);
            assert_int_equal(step, STEP_ERR);
        } else {        /* a reset */
            struct linger hard = {1, 0};
            setsockopt(peer, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
            close(peer);
            assert_true(stream_wait(s, STREAM_READ, -1, clock_after(60000), &err));
            assert_int_equal(stream_read(s, p, sizeof p, &n, &err), STEP_ERR);
            assert_string_equal(err.text, "the connection was reset");
        }
        assert_int_equal(err.kind, ERR_CLOSED);
        stream_close(s);
    }
    close(listening);
    dial_free(d);
    arena_free(&a);
}

static void dial_refused_test(void **state)
{
    Arena   a = arena_make(1 << 16);
    Dialer *d = dial_make(STR(""));
    int     port, bound = dial_test__listen(-1, &port);     /* taken, but nobody listens */
    Stream *s;
    char    want[80];
    Err     err;

    (void)state;
    static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]"};
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        Url url = dial_test__url(&a, arena_fmt(&a, "http://%s", hosts[i]).p, port);
        assert_false(dial_stream(d, &url, -1, clock_after(60000), &s, &err));
        snprintf(want, sizeof want, "cannot connect to %s:%d: ", hosts[i], port);
        if (!str_starts(str_from(err.text), str_from(want)) || err.kind != ERR_UNSENT || err.code != E5001)
            fail_msg("%s", err.text);
        if (i < 2)
            assert_non_null(strstr(err.text, "connection refused"));
    }
#ifdef ABX_TLS_NONE
    Url url = dial_test__url(&a, "https://127.0.0.1", port);
    assert_false(dial_stream(d, &url, -1, clock_after(60000), &s, &err));
    assert_string_equal(err.text, "this abx was built without TLS");
#endif
    close(bound);
    dial_free(d);
    arena_free(&a);
}

/* A host that takes no more connections: a full backlog lets SYNs go unanswered. */
static void dial_silent_test(void **state)
{
    Arena   a = arena_make(1 << 16);
    Dialer *d = dial_make(STR(""));
    int     port, cancel[2], listening = dial_test__listen(0, &port);
    Stream *held[8] = {0}, *s;
    Err     err;
    Url     url = dial_test__url(&a, "http://127.0.0.1", port);
    size_t  n = 0;

    (void)state;
    while (n < COUNT_OF(held) && dial_stream(d, &url, -1, clock_after(150), &held[n], &err))
        n++;
    assert_true(n < COUNT_OF(held));
    assert_int_equal(err.kind, ERR_TIMEOUT);
    assert_int_equal(err.code, E5001);
    assert_non_null(strstr(err.text, "the host does not answer"));
    assert_int_equal(pipe(cancel), 0);
    assert_int_equal(write(cancel[1], "x", 1), 1);
    int64_t began = clock_mono_ms();
    assert_false(dial_stream(d, &url, cancel[0], clock_after(60000), &s, &err));
    assert_int_equal(err.kind, ERR_CANCELLED);
    assert_true(clock_mono_ms() - began < 30000);
    while (n)
        stream_close(held[--n]);
    close(cancel[0]);
    close(cancel[1]);
    close(listening);
    dial_free(d);
    arena_free(&a);
}

static const struct CMUnitTest dial_tests[] = {
    cmocka_unit_test(dial_lookup_test),
    cmocka_unit_test(dial_lookup_child_test),
    cmocka_unit_test(dial_stream_test),
    cmocka_unit_test(dial_refused_test),
    cmocka_unit_test(dial_silent_test),
};
