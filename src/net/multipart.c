#include "net/multipart.h"

#include "base/limits.h"
#include "base/str.h"

/* --- writing --- */

static bool multipart__read(void *ctx, char *p, size_t cap, size_t *n, Err *err)
{
    MultipartUpload *u = ctx;
    Str             *from = u->head.n ? &u->head : &u->tail;

    if (from == &u->tail && u->file.read) {
        if (!u->file.read(u->file.ctx, p, cap, n, err))
            return false;
        if (*n)
            return true;
        u->file.read = NULL;
    }
    *n = from->n < cap ? from->n : cap;
    if (*n)
        memcpy(p, from->p, *n);
    str_skip(from, *n);
    return true;
}

Source multipart_upload(MultipartUpload *u, Arena *a, Str boundary, Str metadata, Source file)
{
    u->head = arena_fmt(a,
                        "--%.*s\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"metadata\"\r\n"
                        "Content-Type: application/json\r\n\r\n%.*s\r\n"
                        "--%.*s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n"
                        "Content-Type: application/octet-stream\r\n\r\n",
                        (int)boundary.n, boundary.p, (int)metadata.n, metadata.p, (int)boundary.n, boundary.p);
    u->tail = arena_fmt(a, "\r\n--%.*s--\r\n", (int)boundary.n, boundary.p);
    u->file = file;
    int64_t size = file.size < 0 ? -1 : (int64_t)(u->head.n + u->tail.n) + file.size;
    return (Source){.read = multipart__read, .ctx = u, .size = size};
}

Str multipart_type(Arena *a, Str boundary)
{
    return arena_fmt(a, "multipart/form-data; boundary=%.*s", (int)boundary.n, boundary.p);
}

/* --- parameters: `; name=token` and `; name="quoted"` --- */

static bool multipart__token_char(char c)
{
    return (unsigned char)c > ' ' && (unsigned char)c < 0x7f && !strchr("()<>@,;:\\\"/[]?=", c);
}

/* Take a quoted string off *rest and write what it means to `to`, which has
 * room for all of *rest. A backslash hides a quote or itself; before anything
 * else it stands for itself, as browsers write file names of Windows. */
static bool multipart__quoted(Str *rest, char *to, size_t *n)
{
    *n = 0;
    str_skip(rest, 1);
    while (rest->n && rest->p[0] != '"') {
        if (rest->p[0] == '\\' && rest->n > 1 && (rest->p[1] == '"' || rest->p[1] == '\\'))
            str_skip(rest, 1);
        to[(*n)++] = rest->p[0];
        str_skip(rest, 1);
    }
    if (!rest->n)
        return false;
    str_skip(rest, 1);
    return true;
}

/* The next parameter of a field: 1, 0 at its end, -1 when it is malformed. The
 * value is written to `to`, which has room for all of *rest. */
static int multipart__parameter(Str *rest, Str *name, char *to, Str *value)
{
    *rest = str_trim(*rest);
    if (!rest->n)
        return 0;
    if (rest->p[0] != ';')
        return -1;
    str_skip(rest, 1);
    *rest = str_trim(*rest);
    if (!rest->n)
        return 0;
    size_t n = 0;
    while (n < rest->n && multipart__token_char(rest->p[n]))
        n++;
    *name = (Str){rest->p, n};
    str_skip(rest, n);
    if (n == 0 || !rest->n || rest->p[0] != '=')
        return -1;
    str_skip(rest, 1);
    n = 0;
    if (rest->n && rest->p[0] == '"') {
        if (!multipart__quoted(rest, to, &n))
            return -1;
    } else {
        for (; rest->n && multipart__token_char(rest->p[0]); str_skip(rest, 1))
            to[n++] = rest->p[0];
        if (n == 0)
            return -1;
    }
    *value = (Str){to, n};
    return 1;
}

/* bchars of RFC 2046, 5.1.1; a blank may not be the last. */
static bool multipart__boundary_ok(Str b)
{
    for (size_t i = 0; i < b.n; i++) {
        char c = b.p[i];
        bool alnum = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
        if (!alnum && !(c && strchr("'()+_,-./:=? ", c)))
            return false;
    }
    return b.n > 0 && b.p[b.n - 1] != ' ';
}

bool multipart_boundary(Str content_type, char out[static MULTIPART_BOUNDARY], size_t *n, Err *err)
{
    ABX_UNSET char to[512];
    Str  rest = content_type, name, value;
    Str  type = str_trim((Str){rest.p, str_find(rest, ';')});
    int  got;

    if (!str_eq_nocase(type, STR("multipart/form-data")))
        return err_set(err, ERR_INPUT, E0000, "the body is not multipart/form-data");
    str_skip(&rest, str_find(rest, ';'));
    if (rest.n > sizeof to)
        return err_set(err, ERR_INPUT, E0000, "the multipart boundary is malformed");
    while ((got = multipart__parameter(&rest, &name, to, &value)) == 1) {
        if (!str_eq_nocase(name, STR("boundary")))
            continue;
        if (value.n > MULTIPART_BOUNDARY || !multipart__boundary_ok(value))
            break;
        memcpy(out, value.p, value.n);
        *n = value.n;
        return true;
    }
    return err_set(err, ERR_INPUT, E0000, "the multipart boundary is %s", got == 0 ? "missing" : "malformed");
}

/* --- reading --- */

Multipart multipart_make(Str boundary)
{
    /* The first delimiter needs no CR LF before it: as if that had come. */
    Multipart m = {.head = buf_make(LIMIT_PART_HEAD), .matched = 2, .length = 4 + boundary.n};

    if (boundary.n > MULTIPART_BOUNDARY)
        BUG("multipart boundary");
    memcpy(m.delimiter, "\r\n--", 4);
    memcpy(m.delimiter + 4, boundary.p, boundary.n);
    return m;
}

void multipart_free(Multipart *m)
{
    buf_free(&m->head);
}

/* Act on `Content-Disposition: form-data; name=...`; other fields mean nothing
 * here. What the parameters say is written over the field itself, in head. */
static bool multipart__field(Str line, MultipartEvent *ev, Err *err)
{
    Str   rest = line, name, value, field;
    char *to = (char *)line.p;
    int   got;

    if (!str_has(line, ':') || str_has_control(line))
        return err_set(err, ERR_INPUT, E0000, "multipart: a part has a malformed field");
    str_cut(&rest, ':', &field);
    if (!str_eq_nocase(field, STR("content-disposition")))
        return true;
    size_t kind = str_find(rest, ';');
    if (!str_eq_nocase(str_trim((Str){rest.p, kind}), STR("form-data")))
        return err_set(err, ERR_INPUT, E0000, "multipart: a part is no form-data");
    str_skip(&rest, kind);
    while ((got = multipart__parameter(&rest, &name, to, &value)) == 1) {
        to += value.n;
        if (str_eq_nocase(name, STR("name"))) {
            ev->name = value;
        } else if (str_eq_nocase(name, STR("filename"))) {
            ev->filename = value;
            ev->has_filename = true;
        }
    }
    if (got < 0)
        return err_set(err, ERR_INPUT, E0000, "multipart: a part has a malformed Content-Disposition");
    return true;
}

/* The blank line behind a part's fields came. */
static Step multipart__head_end(Multipart *m, MultipartEvent *ev, Err *err)
{
    Str rest = buf_str(&m->head), line;

    *ev = (MultipartEvent){.kind = MULTIPART_PART};
    while (rest.n && str_cut(&rest, '\n', &line))
        if (line.n > 1 && !multipart__field(str_from_to(line, 0, line.n - 1), ev, err))
            return STEP_ERR;
    if (!ev->name.n) {
        err_set(err, ERR_INPUT, E0000, "multipart: a part has no name");
        return STEP_ERR;
    }
    m->state = MULTIPART_BODY;
    return STEP_DONE;
}

static Step multipart__head(Multipart *m, Str *in, MultipartEvent *ev, Err *err)
{
    while (in->n) {
        size_t n = str_find(*in, '\n');
        bool   ends = n < in->n;
        buf_add(&m->head, (Str){in->p, n + ends});
        str_skip(in, n + ends);
        if (m->head.over) {
            err_set(err, ERR_LIMIT, E0000, "multipart: the fields of a part are over %zu bytes", m->head.limit);
            return STEP_ERR;
        }
        if (!ends)
            break;
        Str line = str_from_to(buf_str(&m->head), m->line, m->head.n);
        if (line.n < 2 || line.p[line.n - 2] != '\r') {
            err_set(err, ERR_INPUT, E0000, "multipart: a line of a part's fields ends in a bare LF");
            return STEP_ERR;
        }
        m->line = m->head.n;
        if (line.n == 2)
            return multipart__head_end(m, ev, err);
    }
    return STEP_MORE;
}

/* How many bytes at the front of *in cannot belong to a delimiter. A CR stands
 * nowhere in one but at its start, so each CR is a try of its own. */
static size_t multipart__plain(const Multipart *m, Str in)
{
    size_t at = 0;

    while (at < in.n) {
        at += str_find((Str){in.p + at, in.n - at}, '\r');
        size_t left = in.n - at;
        if (memcmp(in.p + at, m->delimiter, left < m->length ? left : m->length) == 0)
            break;
        at++;
    }
    return at;
}

/* Bytes of a part up to the next delimiter. STEP_DONE with *data empty when
 * the delimiter is complete. */
static Step multipart__until(Multipart *m, Str *in, Str *data)
{
    *data = (Str){0};
    if (m->matched == 0) {
        size_t n = multipart__plain(m, *in);
        *data = (Str){in->p, n};
        str_skip(in, n);
        if (n)
            return STEP_DONE;
    }
    while (in->n && m->matched < m->length && in->p[0] == m->delimiter[m->matched]) {
        m->matched++;
        str_skip(in, 1);
    }
    if (m->matched < m->length) {
        if (in->n == 0)
            return STEP_MORE;
        *data = (Str){m->delimiter, m->matched};    /* it was data after all */
    }
    m->matched = 0;
    return STEP_DONE;
}

static Step multipart__bad_line(Err *err)
{
    err_set(err, ERR_INPUT, E0000, "multipart: a delimiter is followed by other text");
    return STEP_ERR;
}

/* What may stand behind a delimiter: "--", or blanks and CR LF. */
static Step multipart__line(Multipart *m, Str *in, MultipartEvent *ev, Err *err)
{
    char c = in->p[0];

    str_skip(in, 1);
    if (m->state == MULTIPART_LINE_LF) {
        if (c != '\n')
            return multipart__bad_line(err);
        if (++m->parts > LIMIT_PARTS) {
            err_set(err, ERR_LIMIT, E0000, "multipart: more than %d parts", LIMIT_PARTS);
            return STEP_ERR;
        }
        buf_clear(&m->head);
        m->line = 0;
        m->state = MULTIPART_HEAD;
        return STEP_MORE;
    }
    if (m->state == MULTIPART_LINE_DASH) {
        if (c != '-')
            return multipart__bad_line(err);
        m->state = MULTIPART_EPILOGUE;
        *ev = (MultipartEvent){.kind = MULTIPART_END};
        return STEP_DONE;
    }
    if (c == '\r')
        m->state = MULTIPART_LINE_LF;
    else if (c == '-' && !m->padded)
        m->state = MULTIPART_LINE_DASH;
    else if (c == ' ' || c == '\t')
        m->padded = true;
    else
        return multipart__bad_line(err);
    return STEP_MORE;
}

Step multipart_next(Multipart *m, Str *in, MultipartEvent *ev, Err *err)
{
    while (in->n) {
        Step step = STEP_MORE;
        bool inside = m->state == MULTIPART_BODY;
        Str  data;

        switch (m->state) {
        case MULTIPART_PREAMBLE:
        case MULTIPART_BODY:
            step = multipart__until(m, in, &data);
            if (step == STEP_MORE)
                return step;
            *ev = (MultipartEvent){.kind = data.n ? MULTIPART_DATA : MULTIPART_PART_END, .data = data};
            if (!data.n) {
                m->padded = false;
                m->state = MULTIPART_LINE;
            }
            step = inside ? STEP_DONE : STEP_MORE;
            break;
        case MULTIPART_LINE:
        case MULTIPART_LINE_DASH:
        case MULTIPART_LINE_LF:
            step = multipart__line(m, in, ev, err);
            break;
        case MULTIPART_HEAD:
            step = multipart__head(m, in, ev, err);
            break;
        case MULTIPART_EPILOGUE:
            str_skip(in, in->n);
            break;
        }
        if (step != STEP_MORE)
            return step;
    }
    return STEP_MORE;
}

bool multipart_ended(const Multipart *m, Err *err)
{
    if (m->state == MULTIPART_EPILOGUE)
        return true;
    return err_set(err, ERR_CLOSED, E0000, "multipart: the body ends before its last delimiter");
}
