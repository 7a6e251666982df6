#include "net/http.h"

#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include <stdio.h>

enum { HTTP_BLANK_LINES = 2 };      /* before a request line: old clients end a body with one */

/* Where the reader of a chunk's size line, of the CR LF behind it or of the
 * trailers stands. */
enum {
    HTTP_AT_START,      /* nothing of the line, or of the CR LF, has come */
    HTTP_IN_SIZE,
    HTTP_IN_BLANKS,     /* behind the size: only ';' can follow */
    HTTP_IN_EXT,
    HTTP_IN_NAME,       /* of a trailer */
    HTTP_IN_VALUE,
    HTTP_AFTER_CR,      /* the LF is missing */
    HTTP_AFTER_LAST_CR, /* the LF of the empty line behind the trailers is missing */
};

static Step http__bad(Err *err, const char *what)
{
    err_set(err, ERR_INPUT, E5000, "bad HTTP: %s", what);
    return STEP_ERR;
}

/* --- heads ------------------------------------------------------------------ */

HttpHeadReader http_head_reader(HttpSide side)
{
    return (HttpHeadReader){.side = side, .bytes = buf_make(LIMIT_HEAD)};
}

void http_head_free(HttpHeadReader *r)
{
    buf_free(&r->bytes);
}

bool http_head_idle(const HttpHeadReader *r)
{
    return r->bytes.n == 0 && r->blank == 0;
}

/* "HTTP/1.1"; false: some other text. */
static bool http__version(Str s, int *minor)
{
    if (!str_eq(s, STR("HTTP/1.0")) && !str_eq(s, STR("HTTP/1.1")))
        return false;
    *minor = s.p[7] - '0';
    return true;
}

static Step http__status_line(Str line, HttpHead *out, Err *err)
{
    Str      rest = line, version, digits;
    uint64_t status;

    if (!str_cut(&rest, ' ', &version) || !http__version(version, &out->minor))
        return http__bad(err, "the answer does not begin with HTTP/1.1 or HTTP/1.0");
    if (!str_cut(&rest, ' ', &digits) || digits.n != 3 || !num_u64(digits, &status) || status < 100 || status > 599)
        return http__bad(err, "the answer has no status from 100 to 599");
    if (str_has_control(rest))
        return http__bad(err, "a control character in the status line");
    out->status = (int)status;
    out->reason = rest;
    return STEP_DONE;
}

/* origin-form or "*" (RFC 9112, 3.2): printable ASCII without a fragment. */
static bool http__target_ok(Str target)
{
    if (str_eq(target, STR("*")))
        return true;
    if (target.n == 0 || target.p[0] != '/')
        return false;
    for (size_t i = 0; i < target.n; i++)
        if (target.p[i] <= ' ' || target.p[i] > '~' || target.p[i] == '#')
            return false;
    return true;
}

static Step http__request_line(Str line, HttpHead *out, Err *err)
{
    Str rest = line;

    if (!str_cut(&rest, ' ', &out->method) || !header_name_ok(out->method))
        return http__bad(err, "the request does not begin with a method");
    if (!str_cut(&rest, ' ', &out->target) || !http__target_ok(out->target))
        return http__bad(err, "the request's target is not a path");
    if (!http__version(rest, &out->minor)) {
        http__bad(err, "the request line does not end with HTTP/1.1 or HTTP/1.0");
        err->status = str_starts(rest, STR("HTTP/")) ? 505 : 0;
        return STEP_ERR;
    }
    return STEP_DONE;
}

static Step http__field(Str line, Header *out, Err *err)
{
    size_t colon = str_find(line, ':');

    if (line.p[0] == ' ' || line.p[0] == '\t')
        return http__bad(err, "a folded header field");
    if (colon == line.n)
        return http__bad(err, "a header line without a colon");
    out->name = (Str){line.p, colon};
    if (!header_name_ok(out->name))
        return http__bad(err, "a header field's name is not a token");
    str_skip(&line, colon + 1);
    while (line.n && (line.p[0] == ' ' || line.p[0] == '\t'))
        str_skip(&line, 1);
    while (line.n && (line.p[line.n - 1] == ' ' || line.p[line.n - 1] == '\t'))
        line.n--;
    out->value = line;
    if (!header_value_ok(line))
        return http__bad(err, "a control character in a header field");
    return STEP_DONE;
}

/* The next line of a whole head, whose lines are known to end in CR LF. */
static Str http__line(Str *text)
{
    Str line;

    str_cut(text, '\n', &line);
    line.n--;
    return line;
}

/* `text`: the head without its empty last line. */
static Step http__parse(HttpSide side, Str text, size_t lines, Arena *a, HttpHead *out, Err *err)
{
    HttpHead head = {0};
    Str      rest = arena_str(a, text);
    Step     step = side == HTTP_ANSWER ? http__status_line(http__line(&rest), &head, err)
                                        : http__request_line(http__line(&rest), &head, err);
    if (step != STEP_DONE)
        return step;
    Header *fields = arena_array(a, lines - 1, sizeof *fields);
    for (size_t i = 0; i < lines - 1; i++)
        if ((step = http__field(http__line(&rest), &fields[i], err)) != STEP_DONE)
            return step;
    head.headers = (Headers){fields, lines - 1};
    *out = head;
    return STEP_DONE;
}

static Step http__head_over(Err *err)
{
    err_set(err, ERR_LIMIT, E5000, "an HTTP head of more than %zu bytes or %d fields", LIMIT_HEAD, LIMIT_HEADERS);
    return STEP_ERR;
}

/* What cannot become a head is refused at its first bytes, not after a limit. */
static bool http__may_be(const HttpHeadReader *r)
{
    Str begin = STR("HTTP/1.");

    if (r->side == HTTP_REQUEST)
        return r->bytes.n == 0 || r->bytes.p[0] == '\r' || header_name_ok((Str){r->bytes.p, 1});
    if (begin.n > r->bytes.n)
        begin.n = r->bytes.n;
    return begin.n == 0 || memcmp(r->bytes.p, begin.p, begin.n) == 0;
}

/* The line that ends with the last byte gathered. STEP_DONE: it was the empty
 * one behind the head. */
static Step http__line_end(HttpHeadReader *r, Err *err)
{
    size_t n = r->bytes.n - r->line;

    if (n < 2 || r->bytes.p[r->bytes.n - 2] != '\r')
        return http__bad(err, "a line of the head does not end in CR LF");
    if (n > 2) {
        if (++r->lines > LIMIT_HEADERS + 1)
            return http__head_over(err);
        r->line = r->bytes.n;
        return STEP_MORE;
    }
    if (r->lines > 0)
        return STEP_DONE;
    if (r->side == HTTP_ANSWER || ++r->blank > HTTP_BLANK_LINES)
        return http__bad(err, "empty lines instead of a head");
    buf_clear(&r->bytes);
    return STEP_MORE;
}

Step http_head_next(HttpHeadReader *r, Str *in, Arena *a, HttpHead *out, Err *err)
{
    while (in->n) {
        size_t at = str_find(*in, '\n');
        size_t n = at < in->n ? at + 1 : in->n;
        buf_add(&r->bytes, (Str){in->p, n});
        if (r->bytes.over)
            return http__head_over(err);
        if (!http__may_be(r))
            return http__bad(err, r->side == HTTP_ANSWER ? "the answer does not begin with HTTP/1.1 or HTTP/1.0"
                                                         : "the request does not begin with a method");
        bool ended = at < in->n;
        str_skip(in, n);
        if (!ended)
            return STEP_MORE;
        Step step = http__line_end(r, err);
        if (step == STEP_ERR)
            return step;
        if (step == STEP_DONE) {
            step = http__parse(r->side, (Str){r->bytes.p, r->line}, r->lines, a, out, err);
            buf_clear(&r->bytes);
            r->line = r->lines = 0;
            r->blank = 0;
            return step;
        }
    }
    return STEP_MORE;
}

bool http_keeps(const HttpHead *head)
{
    if (header_has_token(head->headers, "Connection", "close"))
        return false;
    return head->minor == 1 || header_has_token(head->headers, "Connection", "keep-alive");
}

/* --- where a body ends ------------------------------------------------------- */

/* *length: -1 when there is no such field. The same length said twice is one. */
static bool http__length(Headers headers, int64_t *length, Err *err)
{
    *length = -1;
    for (size_t i = 0; i < headers.n; i++) {
        if (!str_eq_nocase(headers.v[i].name, STR("Content-Length")))
            continue;
        Str      rest = headers.v[i].value, item;
        uint64_t n;
        if (!rest.p)
            rest.p = "";
        while (str_cut(&rest, ',', &item)) {
            if (!num_u64(str_trim(item), &n) || n > INT64_MAX)
                return err_set(err, ERR_INPUT, E5000, "bad HTTP: Content-Length is not a number");
            if (*length >= 0 && *length != (int64_t)n)
                return err_set(err, ERR_INPUT, E5000, "bad HTTP: two different Content-Length");
            *length = (int64_t)n;
        }
    }
    return true;
}

static bool http__chunked(const HttpHead *head, bool *chunked, Err *err)
{
    size_t count = header_count(head->headers, "Transfer-Encoding");

    *chunked = count > 0;
    if (count == 0)
        return true;
    if (count > 1 || !str_eq_nocase(header_get(head->headers, "Transfer-Encoding"), STR("chunked"))) {
        err_set(err, ERR_INPUT, E5000, "bad HTTP: a Transfer-Encoding other than chunked");
        err->status = 501;
        return false;
    }
    if (head->minor == 0)
        return err_set(err, ERR_INPUT, E5000, "bad HTTP: chunked in HTTP/1.0");
    return true;
}

bool http_body_of(HttpSide side, Str method, const HttpHead *head, HttpBody *out, Err *err)
{
    HttpBody body = {.state = HTTP_BODY_DONE};
    bool     chunked, answer = side == HTTP_ANSWER;

    if (!http__length(head->headers, &body.length, err) || !http__chunked(head, &chunked, err))
        return false;
    if (chunked && body.length >= 0)
        return err_set(err, ERR_INPUT, E5000, "bad HTTP: Content-Length beside Transfer-Encoding");
    if (answer && str_eq(method, STR("HEAD"))) {
        /* nothing follows; the length is that of what GET would give */
    } else if (answer && (head->status < 200 || head->status == 204 || head->status == 304)) {
        body.length = 0;
    } else if (chunked) {
        body.state = HTTP_BODY_SIZE;
    } else if (body.length > 0) {
        body.state = HTTP_BODY_LENGTH;
        body.left = body.length;
    } else if (body.length < 0 && answer) {
        body.state = HTTP_BODY_UNTIL_END;
    } else {
        body.length = 0;
    }
    *out = body;
    return true;
}

static int http__hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool http__text(char c)
{
    return c == '\t' || ((unsigned char)c >= 0x20 && c != 0x7f);
}

static void http__enter(HttpBody *b, HttpBodyState state)
{
    b->state = state;
    b->part = HTTP_AT_START;
    b->line = 0;
}

static Step http__size_byte(HttpBody *b, char c, Err *err)
{
    int digit = http__hex(c);

    if (++b->line > LIMIT_CHUNK_LINE) {
        err_set(err, ERR_LIMIT, E5000, "a chunk's size line of more than %zu bytes", LIMIT_CHUNK_LINE);
        return STEP_ERR;
    }
    if (b->part == HTTP_AFTER_CR) {
        if (c != '\n')
            return http__bad(err, "a chunk's size line does not end in CR LF");
        http__enter(b, b->size ? HTTP_BODY_CHUNK : HTTP_BODY_TRAILER);
        b->left = (int64_t)b->size;
    } else if (b->part <= HTTP_IN_SIZE && digit >= 0) {
        if (b->part == HTTP_AT_START) {
            b->size = 0;
            b->digits = 0;
            b->part = HTTP_IN_SIZE;
        }
        b->size = b->size << 4 | (unsigned)digit;
        if (++b->digits > 16 || b->size > INT64_MAX)
            return http__bad(err, "a chunk's size is too large");
    } else if (b->part == HTTP_AT_START) {
        return http__bad(err, "a chunk's size is not a hexadecimal number");
    } else if (c == '\r' && b->part != HTTP_IN_BLANKS) {
        b->part = HTTP_AFTER_CR;
    } else if (b->part == HTTP_IN_EXT) {
        if (!http__text(c))
            return http__bad(err, "a control character in a chunk's size line");
    } else if (c == ';') {
        b->part = HTTP_IN_EXT;
    } else if (c == ' ' || c == '\t') {
        b->part = HTTP_IN_BLANKS;
    } else {
        return http__bad(err, "a chunk's size is not a hexadecimal number");
    }
    return STEP_MORE;
}

static Step http__chunk_end_byte(HttpBody *b, char c, Err *err)
{
    if (c != (b->part == HTTP_AFTER_CR ? '\n' : '\r'))
        return http__bad(err, "a chunk is longer than its size");
    if (c == '\r')
        b->part = HTTP_AFTER_CR;
    else
        http__enter(b, HTTP_BODY_SIZE);
    return STEP_MORE;
}

static Step http__trailer_byte(HttpBody *b, char c, Err *err)
{
    if (++b->line > LIMIT_TRAILERS) {
        err_set(err, ERR_LIMIT, E5000, "more than %zu bytes behind the last chunk", LIMIT_TRAILERS);
        return STEP_ERR;
    }
    if (b->part == HTTP_AFTER_CR || b->part == HTTP_AFTER_LAST_CR) {
        if (c != '\n')
            return http__bad(err, "a trailer field does not end in CR LF");
        if (b->part == HTTP_AFTER_LAST_CR)
            http__enter(b, HTTP_BODY_DONE);
        else
            b->part = HTTP_AT_START;
    } else if (c == '\r' && b->part != HTTP_IN_NAME) {
        b->part = b->part == HTTP_AT_START ? HTTP_AFTER_LAST_CR : HTTP_AFTER_CR;
    } else if (b->part == HTTP_IN_VALUE) {
        if (!http__text(c))
            return http__bad(err, "a control character in a trailer field");
    } else if (c == ':' && b->part == HTTP_IN_NAME) {
        b->part = HTTP_IN_VALUE;
    } else if (header_name_ok((Str){&c, 1})) {
        b->part = HTTP_IN_NAME;
    } else {
        return http__bad(err, "a trailer field's name is not a token");
    }
    return STEP_MORE;
}

/* Up to `left` bytes of *in. */
static Str http__piece(HttpBody *b, Str *in, HttpBodyState next)
{
    Str piece = *in;

    if (b->state != HTTP_BODY_UNTIL_END) {
        if ((uint64_t)b->left < piece.n)
            piece.n = (size_t)b->left;
        b->left -= (int64_t)piece.n;
        if (b->left == 0)
            http__enter(b, next);
    }
    str_skip(in, piece.n);
    return piece;
}

Step http_body_next(HttpBody *b, Str *in, Str *piece, Err *err)
{
    Step step = STEP_MORE;

    while (step == STEP_MORE) {
        if (b->state == HTTP_BODY_DONE) {
            *piece = (Str){0};
            return STEP_DONE;
        }
        if (in->n == 0)
            return STEP_MORE;
        switch (b->state) {
        case HTTP_BODY_LENGTH:
        case HTTP_BODY_UNTIL_END:
            *piece = http__piece(b, in, HTTP_BODY_DONE);
            return STEP_DONE;
        case HTTP_BODY_CHUNK:
            *piece = http__piece(b, in, HTTP_BODY_CHUNK_END);
            return STEP_DONE;
        case HTTP_BODY_SIZE:
            step = http__size_byte(b, in->p[0], err);
            break;
        case HTTP_BODY_CHUNK_END:
            step = http__chunk_end_byte(b, in->p[0], err);
            break;
        case HTTP_BODY_TRAILER:
            step = http__trailer_byte(b, in->p[0], err);
            break;
        case HTTP_BODY_DONE:
            break;
        }
        str_skip(in, 1);
    }
    return step;
}

bool http_body_ended(const HttpBody *b, Err *err)
{
    if (b->state == HTTP_BODY_DONE || b->state == HTTP_BODY_UNTIL_END)
        return true;
    if (b->state == HTTP_BODY_LENGTH)
        return err_set(err, ERR_CLOSED, E5000, "the connection ended after %lld of %lld bytes of the body",
                       (long long)(b->length - b->left), (long long)b->length);
    return err_set(err, ERR_CLOSED, E5000, "the connection ended before the last chunk of the body");
}

/* --- writing ------------------------------------------------------------------ */

static bool http__fits(const Buf *b, Err *err)
{
    if (b->over)
        return err_set(err, ERR_LIMIT, E8002, "an HTTP head would be longer than %zu bytes", b->limit);
    return true;
}

bool http_put_request_line(Buf *b, Str method, Str target, Err *err)
{
    if (!header_name_ok(method))
        return err_set(err, ERR_USAGE, E8002, "the HTTP method is not a token");
    if (!http__target_ok(target))
        return err_set(err, ERR_USAGE, E8002, "the path of the request holds characters that a URL may not have");
    buf_add(b, method);
    buf_addc(b, ' ');
    buf_add(b, target);
    buf_add(b, STR(" HTTP/1.1\r\n"));
    return http__fits(b, err);
}

bool http_put_field(Buf *b, Str name, Str value, Err *err)
{
    if (!header_name_ok(name)) {
        ABX_UNSET char shown[64];
        size_t n = 0;
        for (; n < name.n && n < sizeof shown; n++)
            shown[n] = header_name_ok((Str){name.p + n, 1}) ? name.p[n] : '?';
        return err_set(err, ERR_USAGE, E8002, "the name of the header \"%.*s\" cannot be sent", (int)n, shown);
    }
    if (!header_value_ok(value))
        return err_set(err, ERR_USAGE, E8002,
                       "the value of the header %.*s cannot be sent: it holds a control character, or a blank at an end",
                       STR_ARG(name));
    buf_add(b, name);
    buf_add(b, STR(": "));
    buf_add(b, value);
    buf_add(b, STR("\r\n"));
    return http__fits(b, err);
}

size_t http_chunk_line(char line[static HTTP_CHUNK_LINE], size_t n)
{
    return (size_t)snprintf(line, HTTP_CHUNK_LINE, "%zx\r\n", n);
}

const char *http_reason(int status)
{
    static const struct { int status; const char *reason; } rows[] = {
        {100, "Continue"}, {101, "Switching Protocols"},
        {200, "OK"}, {201, "Created"}, {202, "Accepted"}, {204, "No Content"}, {206, "Partial Content"},
        {301, "Moved Permanently"}, {302, "Found"}, {303, "See Other"}, {304, "Not Modified"},
        {307, "Temporary Redirect"}, {308, "Permanent Redirect"},
        {400, "Bad Request"}, {401, "Unauthorized"}, {403, "Forbidden"}, {404, "Not Found"},
        {405, "Method Not Allowed"}, {408, "Request Timeout"}, {409, "Conflict"}, {411, "Length Required"},
        {413, "Content Too Large"}, {414, "URI Too Long"}, {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"}, {417, "Expectation Failed"}, {422, "Unprocessable Content"},
        {426, "Upgrade Required"}, {429, "Too Many Requests"}, {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"}, {501, "Not Implemented"}, {502, "Bad Gateway"},
        {503, "Service Unavailable"}, {504, "Gateway Timeout"}, {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].status == status)
            return rows[i].reason;
    return "Status";
}
