#include "net/http.h"

/* One head with what is behind it, as one line of text: the version, the
 * words of its first line, its fields, then what was left in `in`. */
static void http_test__show(const HttpHead *h, Str rest, Buf *out)
{
    buf_addf(out, "1.%d ", h->minor);
    if (h->method.n)
        buf_addf(out, "%.*s %.*s", STR_ARG(h->method), STR_ARG(h->target));
    else
        buf_addf(out, "%d [%.*s]", h->status, STR_ARG(h->reason));
    for (size_t i = 0; i < h->headers.n; i++)
        buf_addf(out, " %.*s=[%.*s]", STR_ARG(h->headers.v[i].name), STR_ARG(h->headers.v[i].value));
    if (rest.n)
        buf_addf(out, " + %.*s", STR_ARG(rest));
}

/* Feed `in` cut at `cut`, or byte by byte when cut is SIZE_MAX; what came out
 * is in `out`: a head, "more", or "error: ...". */
static void http_test__head(HttpSide side, Str in, size_t cut, Arena *a, Buf *out)
{
    HttpHeadReader r = http_head_reader(side);
    HttpHead       head;
    Err            err;
    Step           step = STEP_MORE;

    buf_clear(out);
    while (in.n && step == STEP_MORE) {
        size_t n = cut == SIZE_MAX ? 1 : cut && cut < in.n ? cut : in.n;
        cut = cut == SIZE_MAX ? cut : 0;
        Str piece = guard_copy((Str){in.p, n});
        step = http_head_next(&r, &piece, a, &head, &err);
        str_skip(&in, n - piece.n);
        if (step == STEP_MORE)
            assert_int_equal(piece.n, 0);
    }
    if (step == STEP_DONE) {
        assert_true(http_head_idle(&r));
        http_test__show(&head, in, out);
    } else {
        buf_addf(out, step == STEP_MORE ? "more" : "error: %s", err.text);
    }
    http_head_free(&r);
}

static void http_head_test(void **state)
{
    static const struct { HttpSide side; Str in; const char *want; } cases[] = {
#define HTTP_A(in) HTTP_ANSWER, {in, sizeof(in) - 1}
#define HTTP_R(in) HTTP_REQUEST, {in, sizeof(in) - 1}
        {HTTP_A("HTTP/1.1 200 OK\r\n\r\n"), "1.1 200 [OK]"},
        {HTTP_A("HTTP/1.0 404 Not Found\r\nA: b\r\n\r\nrest"), "1.0 404 [Not Found] A=[b] + rest"},
        {HTTP_A("HTTP/1.1 599 \r\nA:\r\nB:  \t \r\nc:\td e\t \r\n\r\n"), "1.1 599 [] A=[] B=[] c=[d e]"},
        {HTTP_A("HTTP/1.1 204\r\n\r\n"), "1.1 204 []"},
        {HTTP_A("HTTP/1.1 200 \xc3\xa4\r\nX: \xff\x80\r\n\r\n"), "1.1 200 [\xc3\xa4] X=[\xff\x80]"},
        {HTTP_A("HTTP/1.1 200 OK\r\na: 1\r\na: 2\r\n\r\n"), "1.1 200 [OK] a=[1] a=[2]"},
        {HTTP_A(""), "more"},
        {HTTP_A("HTTP/1.1 200 OK\r\nA: b\r\n"), "more"},
        {HTTP_A("HTTP/1.1 200 OK\n\r\n"), "error: bad HTTP: a line of the head does not end in CR LF"},
        {HTTP_A("HTTP/1.1 200 OK\r\nA: b\n\r\n"), "error: bad HTTP: a line of the head does not end in CR LF"},
        {HTTP_A("HTTP/1.1 200 OK\r\n\n"), "error: bad HTTP: a line of the head does not end in CR LF"},
        {HTTP_A("HTTP/1.1 200 OK\r\r\n\r\n"), "error: bad HTTP: a control character in the status line"},
        {HTTP_A("HTTP/1.1 200 O\0K\r\n\r\n"), "error: bad HTTP: a control character in the status line"},
        {HTTP_A("HTTP/1.1 99 OK\r\n\r\n"), "error: bad HTTP: the answer has no status from 100 to 599"},
        {HTTP_A("HTTP/1.1 099 OK\r\n\r\n"), "error: bad HTTP: the answer has no status from 100 to 599"},
        {HTTP_A("HTTP/1.1 600 OK\r\n\r\n"), "error: bad HTTP: the answer has no status from 100 to 599"},
        {HTTP_A("HTTP/1.1 2000 OK\r\n\r\n"), "error: bad HTTP: the answer has no status from 100 to 599"},
        {HTTP_A("HTTP/1.1  200 OK\r\n\r\n"), "error: bad HTTP: the answer has no status from 100 to 599"},
        {HTTP_A("HTTP/1.1 +20 OK\r\n\r\n"), "error: bad HTTP: the answer has no status from 100 to 599"},
        {HTTP_A("HTTP/1.1\r\n\r\n"), "error: bad HTTP: the answer has no status from 100 to 599"},
        {HTTP_A("HTTP/1.2 200 OK\r\n\r\n"), "error: bad HTTP: the answer does not begin with HTTP/1.1 or HTTP/1.0"},
        {HTTP_A("HTTP/2 200\r\n\r\n"), "error: bad HTTP: the answer does not begin with HTTP/1.1 or HTTP/1.0"},
        {HTTP_A("<html>"), "error: bad HTTP: the answer does not begin with HTTP/1.1 or HTTP/1.0"},
        {HTTP_A("\r\nHTTP/1.1 200 OK\r\n\r\n"), "error: bad HTTP: the answer does not begin with HTTP/1.1 or HTTP/1.0"},
        {HTTP_A("\x15\x03\x01"), "error: bad HTTP: the answer does not begin with HTTP/1.1 or HTTP/1.0"},
        {HTTP_A("http/1.1 200 OK\r\n\r\n"), "error: bad HTTP: the answer does not begin with HTTP/1.1 or HTTP/1.0"},
        {HTTP_A("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"), "error: bad HTTP: a folded header field"},
        {HTTP_A("HTTP/1.1 200 OK\r\n A: b\r\n\r\n"), "error: bad HTTP: a folded header field"},
        {HTTP_A("HTTP/1.1 200 OK\r\nA: b\r\n\tc\r\n\r\n"), "error: bad HTTP: a folded header field"},
        {HTTP_A("HTTP/1.1 200 OK\r\nA : b\r\n\r\n"), "error: bad HTTP: a header field's name is not a token"},
        {HTTP_A("HTTP/1.1 200 OK\r\n: b\r\n\r\n"), "error: bad HTTP: a header field's name is not a token"},
        {HTTP_A("HTTP/1.1 200 OK\r\nA\0: b\r\n\r\n"), "error: bad HTTP: a header field's name is not a token"},
        {HTTP_A("HTTP/1.1 200 OK\r\nA\r\n\r\n"), "error: bad HTTP: a header line without a colon"},
        {HTTP_A("HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n"), "error: bad HTTP: a control character in a header field"},
        {HTTP_A("HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n"), "error: bad HTTP: a control character in a header field"},
        {HTTP_A("HTTP/1.1 200 OK\r\nA: b\x7f\r\n\r\n"), "error: bad HTTP: a control character in a header field"},
        {HTTP_R("GET /x?y=%20 HTTP/1.1\r\nHost: h\r\n\r\nPOST"), "1.1 GET /x?y=%20 Host=[h] + POST"},
        {HTTP_R("OPTIONS * HTTP/1.0\r\n\r\n"), "1.0 OPTIONS *"},
        {HTTP_R("\r\n\r\nGET / HTTP/1.1\r\n\r\n"), "1.1 GET /"},
        {HTTP_R("\r\n"), "more"},
        {HTTP_R("\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n"), "error: bad HTTP: empty lines instead of a head"},
        {HTTP_R("\rGET / HTTP/1.1\r\n\r\n"), "error: bad HTTP: the request does not begin with a method"},
        {HTTP_R("\x16\x03\x01"), "error: bad HTTP: the request does not begin with a method"},
        {HTTP_R("G{T / HTTP/1.1\r\n\r\n"), "error: bad HTTP: the request does not begin with a method"},
        {HTTP_R("GET  / HTTP/1.1\r\n\r\n"), "error: bad HTTP: the request's target is not a path"},
        {HTTP_R("GET http://h/ HTTP/1.1\r\n\r\n"), "error: bad HTTP: the request's target is not a path"},
        {HTTP_R("GET h:1 HTTP/1.1\r\n\r\n"), "error: bad HTTP: the request's target is not a path"},
        {HTTP_R("GET /a\tb HTTP/1.1\r\n\r\n"), "error: bad HTTP: the request's target is not a path"},
        {HTTP_R("GET /\xc3\xa4 HTTP/1.1\r\n\r\n"), "error: bad HTTP: the request's target is not a path"},
        {HTTP_R("GET /#f HTTP/1.1\r\n\r\n"), "error: bad HTTP: the request's target is not a path"},
        {HTTP_R("GET /\r\n\r\n"), "error: bad HTTP: the request line does not end with HTTP/1.1 or HTTP/1.0"},
        {HTTP_R("GET / HTTP/1.1 \r\n\r\n"), "error: bad HTTP: the request line does not end with HTTP/1.1 or HTTP/1.0"},
        {HTTP_R("GET / HTTP/0.9\r\n\r\n"), "error: bad HTTP: the request line does not end with HTTP/1.1 or HTTP/1.0"},
#undef HTTP_A
#undef HTTP_R
    };
    Arena a = arena_make((size_t)16 << 20);
    Buf   got = buf_make(4096);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str in = cases[i].in;
        for (size_t cut = 0; cut <= in.n + 1; cut++) {
            arena_reset(&a);
            http_test__head(cases[i].side, in, cut == in.n + 1 ? SIZE_MAX : cut, &a, &got);
            if (!str_eq(buf_str(&got), str_from(cases[i].want)))
                fail_msg("row %zu cut %zu: %.*s", i, cut, STR_ARG(buf_str(&got)));
        }
    }
    buf_free(&got);
    arena_free(&a);
}

/* A head that ends early is never a head. */
static void http_head_truncation_test(void **state)
{
    Str   whole = STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: \t y\r\n\r\n");
    Arena a = arena_make(1 << 16);
    Buf   got = buf_make(4096);

    (void)state;
    for (size_t n = 0; n < whole.n - 1; n++) {
        http_test__head(HTTP_ANSWER, (Str){whole.p, n}, 0, &a, &got);
        assert_true(str_eq(buf_str(&got), STR("more")));
    }
    buf_free(&got);
    arena_free(&a);
}

static void http_head_limit_test(void **state)
{
    Arena a = arena_make((size_t)4 << 20);
    Buf   in = buf_make((size_t)1 << 20), got = buf_make((size_t)1 << 20);

    (void)state;
    for (int extra = 0; extra < 2; extra++) {           /* fields */
        buf_clear(&in);
        arena_reset(&a);
        buf_add(&in, STR("HTTP/1.1 200 OK\r\n"));
        for (int i = 0; i < LIMIT_HEADERS + extra; i++)
            buf_add(&in, STR("A:\r\n"));
        buf_add(&in, STR("\r\n"));
        http_test__head(HTTP_ANSWER, buf_str(&in), 0, &a, &got);
        assert_true(str_starts(buf_str(&got), extra ? STR("error: an HTTP head of more") : STR("1.1 200")));
    }
    for (int extra = 0; extra < 2; extra++) {           /* bytes */
        buf_clear(&in);
        arena_reset(&a);
        buf_add(&in, STR("HTTP/1.1 200 OK\r\nA: "));
        while (in.n < LIMIT_HEAD - 4 + (size_t)extra)
            buf_addc(&in, 'x');
        buf_add(&in, STR("\r\n\r\n"));
        http_test__head(HTTP_ANSWER, buf_str(&in), 100000, &a, &got);
        assert_true(str_starts(buf_str(&got), extra ? STR("error: an HTTP head of more") : STR("1.1 200")));
    }
    buf_free(&in);
    buf_free(&got);
    arena_free(&a);
}

/* The whole body that follows `head_and_body`, or what is wrong with it. */
static void http_test__body(HttpSide side, const char *method, Str in, size_t cut, Arena *a, Buf *out)
{
    HttpHeadReader r = http_head_reader(side);
    HttpHead       head;
    HttpBody       body;
    Err            err;
    Str            piece;

    buf_clear(out);
    assert_int_equal(http_head_next(&r, &in, a, &head, &err), STEP_DONE);
    http_head_free(&r);
    if (!http_body_of(side, str_from(method), &head, &body, &err)) {
        buf_addf(out, "refused: %s", err.text);
        return;
    }
    buf_addf(out, "%lld:", (long long)body.length);
    for (;;) {
        size_t n = cut == SIZE_MAX ? in.n > 0 : cut && cut < in.n ? cut : in.n;
        cut = cut == SIZE_MAX ? cut : 0;
        Str  now = guard_copy((Str){in.p, n});
        Step step;
        while ((step = http_body_next(&body, &now, &piece, &err)) == STEP_DONE && piece.n)
            buf_add(out, piece);
        str_skip(&in, n - now.n);
        if (step == STEP_ERR) {
            buf_addf(out, "|error: %s", err.text);
            return;
        }
        if (step == STEP_DONE)
            break;
        assert_int_equal(now.n, 0);
        if (in.n == 0 && !http_body_ended(&body, &err)) {
            buf_addf(out, "|cut: %s", err.text);
            return;
        }
        if (in.n == 0)
            break;
    }
    buf_addf(out, "|%.*s", STR_ARG(in));
}

static void http_body_test(void **state)
{
#define HTTP_OK "HTTP/1.1 200 OK\r\n"
#define HTTP_CHUNKED HTTP_OK "Transfer-Encoding: chunked\r\n\r\n"
#define HTTP_ROW(in) {in, sizeof(in) - 1}
    static const struct { const char *method; Str in; const char *want; } cases[] = {
        {"GET", HTTP_ROW(HTTP_OK "Content-Length: 5\r\n\r\nhello!"), "5:hello|!"},
        {"GET", HTTP_ROW(HTTP_OK "Content-Length: 0\r\n\r\nx"), "0:|x"},
        {"GET", HTTP_ROW(HTTP_OK "Content-Length: 5\r\ncontent-length: 5\r\n\r\nhello"), "5:hello|"},
        {"GET", HTTP_ROW(HTTP_OK "Content-Length: 5 , 05\r\n\r\nhello"), "5:hello|"},
        {"GET", HTTP_ROW(HTTP_OK "Content-Length: 5\r\n\r\nhell"),
            "5:hell|cut: the connection ended after 4 of 5 bytes of the body"},
        {"GET", HTTP_ROW(HTTP_OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"),
            "refused: bad HTTP: two different Content-Length"},
        {"GET", HTTP_ROW(HTTP_OK "Content-Length: 0\r\nContent-Length: 6\r\n\r\n"),
            "refused: bad HTTP: two different Content-Length"},
        {"GET", HTTP_ROW(HTTP_OK "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n"),
            "refused: bad HTTP: Content-Length beside Transfer-Encoding"},
        {"HEAD", HTTP_ROW(HTTP_OK "Content-Length: 5, 6\r\n\r\n"), "refused: bad HTTP: two different Content-Length"},
        {"GET", HTTP_ROW(HTTP_OK "Content-Length: 5,\r\n\r\n"), "refused: bad HTTP: Content-Length is not a number"},
        {"GET", HTTP_ROW(HTTP_OK "Content-Length:\r\n\r\n"), "refused: bad HTTP: Content-Length is not a number"},
        {"GET", HTTP_ROW(HTTP_OK "Content-Length: -1\r\n\r\n"), "refused: bad HTTP: Content-Length is not a number"},
        {"GET", HTTP_ROW(HTTP_OK "Content-Length: +5\r\n\r\n"), "refused: bad HTTP: Content-Length is not a number"},
        {"GET", HTTP_ROW(HTTP_OK "Content-Length: 0x5\r\n\r\n"), "refused: bad HTTP: Content-Length is not a number"},
        {"GET", HTTP_ROW(HTTP_OK "Content-Length: 9223372036854775808\r\n\r\n"),
            "refused: bad HTTP: Content-Length is not a number"},
        {"GET", HTTP_ROW(HTTP_OK "Content-Length: 9223372036854775807\r\n\r\nab"),
            "9223372036854775807:ab|cut: the connection ended after 2 of 9223372036854775807 bytes of the body"},
        {"GET", HTTP_ROW(HTTP_OK "\r\nuntil the end"), "-1:until the end|"},
        {"GET", HTTP_ROW(HTTP_OK "\r\n"), "-1:|"},
        {"HEAD", HTTP_ROW(HTTP_OK "Content-Length: 5\r\n\r\nnext"), "5:|next"},
        {"HEAD", HTTP_ROW(HTTP_CHUNKED "next"), "-1:|next"},
        {"GET", HTTP_ROW("HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nnext"), "0:|next"},
        {"GET", HTTP_ROW("HTTP/1.1 304 No\r\n\r\nnext"), "0:|next"},
        {"GET", HTTP_ROW("HTTP/1.1 100 Go\r\n\r\nnext"), "0:|next"},
        {"GET", HTTP_ROW(HTTP_OK "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"),
            "refused: bad HTTP: Content-Length beside Transfer-Encoding"},
        {"GET", HTTP_ROW(HTTP_OK "Transfer-Encoding: gzip, chunked\r\n\r\n"),
            "refused: bad HTTP: a Transfer-Encoding other than chunked"},
        {"GET", HTTP_ROW(HTTP_OK "Transfer-Encoding: identity\r\n\r\n"),
            "refused: bad HTTP: a Transfer-Encoding other than chunked"},
        {"GET", HTTP_ROW(HTTP_OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "refused: bad HTTP: a Transfer-Encoding other than chunked"},
        {"GET", HTTP_ROW("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "refused: bad HTTP: chunked in HTTP/1.0"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "5\r\nhello\r\n0\r\n\r\nnext"), "-1:hello|next"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "1\r\na\r\n00A;x=\"y\" ; z\r\n0123456789\r\n000\r\n\r\n"), "-1:a0123456789|"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "1 ;x\r\na\r\n0\t;\r\n\r\n"), "-1:a|"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "0\r\nA: b\r\nc:\r\n\r\nnext"), "-1:|next"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "5\r\nhel"),
            "-1:hel|cut: the connection ended before the last chunk of the body"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "5\r\nhello\r\n0\r\n\r"),
            "-1:hello|cut: the connection ended before the last chunk of the body"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "5\r\nhello!\r\n"), "-1:hello|error: bad HTTP: a chunk is longer than its size"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "5\r\nhello\n"), "-1:hello|error: bad HTTP: a chunk is longer than its size"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "5\r\nhello\rx"), "-1:hello|error: bad HTTP: a chunk is longer than its size"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "\r\n"), "-1:|error: bad HTTP: a chunk's size is not a hexadecimal number"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "5\nhello"), "-1:|error: bad HTTP: a chunk's size is not a hexadecimal number"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "5\rhello"), "-1:|error: bad HTTP: a chunk's size line does not end in CR LF"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "0x5\r\n"), "-1:|error: bad HTTP: a chunk's size is not a hexadecimal number"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "-1\r\n"), "-1:|error: bad HTTP: a chunk's size is not a hexadecimal number"},
        {"GET", HTTP_ROW(HTTP_CHUNKED " 5\r\n"), "-1:|error: bad HTTP: a chunk's size is not a hexadecimal number"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "5 \r\n"), "-1:|error: bad HTTP: a chunk's size is not a hexadecimal number"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "5 5\r\n"), "-1:|error: bad HTTP: a chunk's size is not a hexadecimal number"},
        {"GET", HTTP_ROW(HTTP_CHUNKED ";x\r\n"), "-1:|error: bad HTTP: a chunk's size is not a hexadecimal number"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "5;\nx\r\n"), "-1:|error: bad HTTP: a control character in a chunk's size line"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "5;\0\r\n"), "-1:|error: bad HTTP: a control character in a chunk's size line"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "8000000000000000\r\n"), "-1:|error: bad HTTP: a chunk's size is too large"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "10000000000000005\r\n"), "-1:|error: bad HTTP: a chunk's size is too large"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "7fffffffffffffff\r\nab"),
            "-1:ab|cut: the connection ended before the last chunk of the body"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "0\r\n A: b\r\n\r\n"), "-1:|error: bad HTTP: a trailer field's name is not a token"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "0\r\nA b: c\r\n\r\n"), "-1:|error: bad HTTP: a trailer field's name is not a token"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "0\r\nA\r\n\r\n"), "-1:|error: bad HTTP: a trailer field's name is not a token"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "0\r\nA: b\n\r\n"), "-1:|error: bad HTTP: a control character in a trailer field"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "0\r\nA: b\rc\r\n"), "-1:|error: bad HTTP: a trailer field does not end in CR LF"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "0\r\n\rx"), "-1:|error: bad HTTP: a trailer field does not end in CR LF"},
        {"GET", HTTP_ROW(HTTP_CHUNKED "0\r\n\n"), "-1:|error: bad HTTP: a trailer field's name is not a token"},
        {NULL, HTTP_ROW("GET / HTTP/1.1\r\n\r\nnext"), "0:|next"},
        {NULL, HTTP_ROW("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcnext"), "3:abc|next"},
        {NULL, HTTP_ROW("POST / HTTP/1.1\r\nTransfer-Encoding: CHUNKED\r\n\r\n1\r\na\r\n0\r\n\r\nnext"), "-1:a|next"},
        {NULL, HTTP_ROW("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), "refused: bad HTTP: chunked in HTTP/1.0"},
    };
    Arena a = arena_make((size_t)16 << 20);
    Buf   got = buf_make(8192);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Str      in = cases[i].in;
        HttpSide side = cases[i].method ? HTTP_ANSWER : HTTP_REQUEST;
        for (size_t cut = 0; cut <= in.n + 1; cut++) {
            arena_reset(&a);
            http_test__body(side, cases[i].method, in, cut == in.n + 1 ? SIZE_MAX : cut, &a, &got);
            if (!str_eq(buf_str(&got), str_from(cases[i].want)))
                fail_msg("row %zu cut %zu: %.*s", i, cut, STR_ARG(buf_str(&got)));
        }
    }
    buf_free(&got);
    arena_free(&a);
}

static void http_body_limit_test(void **state)
{
    Arena a = arena_make((size_t)4 << 20);
    Buf   in = buf_make((size_t)1 << 20), got = buf_make(8192);

    (void)state;
    for (size_t extra = 0; extra < 2; extra++) {
        buf_clear(&in);
        buf_add(&in, STR(HTTP_CHUNKED "0;"));
        size_t head = in.n - 2;
        while (in.n - head < LIMIT_CHUNK_LINE - 2 + extra)
            buf_addc(&in, 'x');
        buf_add(&in, STR("\r\n\r\n"));
        http_test__body(HTTP_ANSWER, "GET", buf_str(&in), 0, &a, &got);
        assert_true(str_starts(buf_str(&got), extra ? STR("-1:|error: a chunk's size line of more") : STR("-1:|")));
        assert_int_equal(got.n > 4, extra);
    }
    for (size_t extra = 0; extra < 2; extra++) {
        buf_clear(&in);
        buf_add(&in, STR(HTTP_CHUNKED "0\r\n"));
        size_t head = in.n;
        buf_add(&in, STR("A:"));
        while (in.n - head < LIMIT_TRAILERS - 4 + extra)
            buf_addc(&in, 'x');
        buf_add(&in, STR("\r\n\r\n"));
        http_test__body(HTTP_ANSWER, "GET", buf_str(&in), 0, &a, &got);
        assert_true(str_starts(buf_str(&got), extra ? STR("-1:|error: more than 16384 bytes behind") : STR("-1:|")));
        assert_int_equal(got.n > 4, extra);
    }
    buf_free(&in);
    buf_free(&got);
    arena_free(&a);
#undef HTTP_OK
#undef HTTP_CHUNKED
#undef HTTP_ROW
}

static void http_keeps_test(void **state)
{
    static const struct { int minor; const char *connection; bool keeps; } cases[] = {
        {1, NULL, true}, {1, "close", false}, {1, "Keep-Alive", true}, {1, "x, Close", false}, {0, NULL, false},
        {0, "keep-alive", true}, {0, "keep-alive, close", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Header   field = {STR("connection"), str_from(cases[i].connection)};
        HttpHead head = {.minor = cases[i].minor, .headers = {&field, cases[i].connection ? 1 : 0}};
        assert_int_equal(http_keeps(&head), cases[i].keeps);
    }
}

static void http_put_test(void **state)
{
    Buf  b = buf_make(64);
    char line[HTTP_CHUNK_LINE];
    Err  err;

    (void)state;
    assert_true(http_put_request_line(&b, STR("GET"), STR("/a?b"), &err) && http_put_field(&b, STR("A"), STR("b c"), &err));
    assert_true(str_eq(buf_str(&b), STR("GET /a?b HTTP/1.1\r\nA: b c\r\n")));
    buf_clear(&b);
    assert_false(http_put_request_line(&b, STR("GE T"), STR("/"), &err));
    assert_false(http_put_request_line(&b, STR("GET"), STR("/ HTTP/1.1\r\nX: y"), &err));
    assert_false(http_put_request_line(&b, STR("GET"), STR("x"), &err));
    assert_int_equal(err.code, E8002);
    assert_false(http_put_field(&b, STR("X-Key"), STR("geheim\r\nY: z"), &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.text, "X-Key"));
    assert_null(strstr(err.text, "geheim"));
    assert_false(http_put_field(&b, STR("X\nY"), STR("v"), &err));
    assert_non_null(strstr(err.text, "X?Y"));
    assert_false(http_put_field(&b, STR("X"), STR(" v"), &err));
    assert_int_equal(b.n, 0);
    assert_false(http_put_field(&b, STR("X"), STR("0123456789012345678901234567890123456789012345678901234567890123"), &err));
    assert_int_equal(err.kind, ERR_LIMIT);
    assert_int_equal(http_chunk_line(line, SIZE_MAX), 18);
    assert_int_equal(http_chunk_line(line, 255), 4);
    assert_string_equal(line, "ff\r\n");
    assert_string_equal(http_reason(404), "Not Found");
    assert_string_equal(http_reason(299), "Status");
    buf_free(&b);
}

static const struct CMUnitTest http_tests[] = {
    cmocka_unit_test(http_head_test),
    cmocka_unit_test(http_head_truncation_test),
    cmocka_unit_test(http_head_limit_test),
    cmocka_unit_test(http_body_test),
    cmocka_unit_test(http_body_limit_test),
    cmocka_unit_test(http_keeps_test),
    cmocka_unit_test(http_put_test),
};
