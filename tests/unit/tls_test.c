#include "net/tls.h"
#include "script_stream.h"

#ifdef ABX_TLS_NONE

static void tls_none_test(void **state)
{
    Script  s = {0};
    Stream *out = NULL;
    Tls    *t = NULL;
    Err     err;

    (void)state;
    assert_false(tls_make(STR(""), &t, &err));
    assert_string_equal(err.text, "this abx was built without TLS");
    assert_int_equal(err.code, E5001);
    assert_false(tls_connect(t, script_open(&s), STR("h"), -1, DEADLINE_NONE, &out, &err));
    assert_true(s.closed);
}

static const struct CMUnitTest tls_tests[] = {
    cmocka_unit_test(tls_none_test),
};

#else

/* What does not get through a handshake, each in its own words. */
static void tls_refusal_test(void **state)
{
#define TLS_ROW(bytes) {NULL, bytes, sizeof(bytes) - 1}
    static const struct { ScriptAnswer answer; ScriptEnd end; const char *want; } cases[] = {
        {TLS_ROW("HTTP/1.1 400 Bad Request\r\n\r\n"), SCRIPT_OPEN, "the server speaks plain http on this port, not https"},
        {TLS_ROW("SSH-2.0-OpenSSH_9\r\n"), SCRIPT_OPEN, "what answers on this port does not speak TLS"},
        {TLS_ROW("\x15\x03\x01\x00\x02\x02\x46"), SCRIPT_OPEN, "the server speaks neither TLS 1.2 nor 1.3"},
        {TLS_ROW("\x15\x03\x03\x00\x02\x02\x28"), SCRIPT_OPEN, "the server and this abx have no cipher in common"},
        {TLS_ROW("\x15\x03\x03\x00\x02\x02\x70"), SCRIPT_OPEN, "the server has no certificate for this name"},
        {TLS_ROW("\x15\x03\x03\x00\x02\x02\x50"), SCRIPT_OPEN, "the server ended the TLS handshake with alert 80"},
        {TLS_ROW("\x16\x03\x03\x00\x05"), SCRIPT_EOF, "the connection was closed in the TLS handshake"},
        {TLS_ROW("\x16\x03\x03\x00\x05"), SCRIPT_RESET, "in the TLS handshake: the connection was reset"},
        {TLS_ROW("\x16\x03\x03\x00\x05"), SCRIPT_OPEN, "the server did not end the TLS handshake in time"},
        {TLS_ROW("\x16\x03\x03\x00\x04\x0e\x00\x00\x00"), SCRIPT_OPEN, "the TLS handshake failed (Mbed TLS -0x"},
        {{NULL, "", 0}, SCRIPT_EOF, "the connection was closed in the TLS handshake"},
    };
    char path[] = "/tmp/abx-tls-XXXXXX";
    int  fd = mkstemp(path);
    Tls *t;
    Err  err;

    (void)state;
    assert_int_equal(write(fd, roots_test__pem, sizeof roots_test__pem - 1), (ssize_t)(sizeof roots_test__pem - 1));
    close(fd);
    assert_true(tls_make(str_from(path), &t, &err));
    unlink(path);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t piece = 0; piece < 2; piece++) {
            Script  s = {.answers = &cases[i].answer, .count = 1, .end = cases[i].end, .piece = piece, .hiccups = piece};
            Stream *out = NULL;
            int64_t ms = strstr(cases[i].want, "in time") ? 150 : 60000;
            assert_false(tls_connect(t, script_open(&s), STR("host.example"), -1, clock_after(ms), &out, &err));
            if (!str_starts(str_from(err.text), str_from(cases[i].want)) || err.code != E5001 || !s.closed ||
                err.kind != (strstr(cases[i].want, "in time") ? ERR_TIMEOUT : ERR_UNSENT))
                fail_msg("row %zu: %s", i, err.text);
            script_free(&s);
        }
    tls_free(t);
#undef TLS_ROW
}

static void tls_missing_roots_test(void **state)
{
    Tls *t;
    Err  err;

    (void)state;
    assert_false(tls_make(STR("/nowhere/ca.pem"), &t, &err));
    assert_non_null(strstr(err.text, "/nowhere/ca.pem"));
    assert_int_equal(err.code, E5001);
    tls_free(NULL);
}

static const struct CMUnitTest tls_tests[] = {
    cmocka_unit_test(tls_refusal_test),
    cmocka_unit_test(tls_missing_roots_test),
};

#endif
