#include "agent/download.h"

#include "agent/answer.h"
#include "agent/query.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include "base/time.h"
#include "net/url.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum DownloadRange { DOWNLOAD_ALL, DOWNLOAD_PART, DOWNLOAD_OUTSIDE, DOWNLOAD_MALFORMED } DownloadRange;

/* "bytes=a-b", "a-", "-n": [*from, *end) of a file of `size` bytes. */
static DownloadRange download__range(Str text, int64_t size, int64_t *from, int64_t *end)
{
    Str     first = text, rest, a;
    int64_t n, last;

    if (!str_starts(text, STR("bytes=")))
        return DOWNLOAD_MALFORMED;
    str_skip(&first, 6);
    rest = str_trim((Str){first.p, str_find(first, ',')});
    if (!str_has(rest, '-'))
        return DOWNLOAD_MALFORMED;
    str_cut(&rest, '-', &a);
    a = str_trim(a);
    rest = str_trim(rest);
    *end = size;
    if (a.n == 0) {                             /* the last n bytes */
        if (!num_i64(rest, &n) || n < 0)
            return DOWNLOAD_MALFORMED;
        *from = n > size ? 0 : size - n;
        return n == 0 || size == 0 ? DOWNLOAD_OUTSIDE : DOWNLOAD_PART;
    }
    if (!num_i64(a, from) || *from < 0 || (rest.n && (!num_i64(rest, &last) || last < *from)))
        return DOWNLOAD_MALFORMED;
    if (*from >= size)
        return DOWNLOAD_OUTSIDE;
    if (rest.n && last < size - 1)
        *end = last + 1;
    return DOWNLOAD_PART;
}

static bool download__unchanged(const HttpdCall *c, time_t changed)
{
    int64_t since;

    return time_parse_http(header_get(c->head.headers, "If-Modified-Since"), &since) && changed <= since / 1000;
}

/* RFC 9110, 13.1.5: a part is for a client that has the rest of this very file. */
static bool download__same(const HttpdCall *c, const char *date)
{
    return !header_count(c->head.headers, "If-Range") || str_eq(header_get(c->head.headers, "If-Range"), str_from(date));
}

/* RFC 6266: a name that is not plain goes out percent-encoded, twice. */
static Str download__disposition(const char *path, Arena *a)
{
    Str  name = query_base(path);
    bool plain = true;

    for (size_t i = 0; i < name.n; i++)
        plain = plain && name.p[i] >= ' ' && name.p[i] < 0x7f && name.p[i] != '"' && name.p[i] != '\\';
    if (plain)
        return arena_fmt(a, "attachment; filename=\"%.*s\"", STR_ARG(name));
    name = url_encode(name, a);
    return arena_fmt(a, "attachment; filename=\"%.*s\"; filename*=UTF-8''%.*s", STR_ARG(name), STR_ARG(name));
}

/* Read before its length is said: files of /proc have none, those of /sys a page. */
static void download__small(HttpdCall *c, int fd, const Header *fields, size_t n)
{
    Buf     b = buf_make(LIMIT_HTTPD_OUT / 2);
    char   *to;
    ssize_t got = 0;

    while ((to = buf_room(&b, LIMIT_COPY_BLOCK)) && (got = read(fd, to, LIMIT_COPY_BLOCK)) > 0)
        buf_grew(&b, (size_t)got);
    close(fd);
    if (got < 0 || b.over) {
        answer_error(c, 500, "RUNTIME_ERROR", "error reading file: %s", got < 0 ? strerror(errno) : "too long");
    } else {
        httpd_start(c, 200, fields, n, (int64_t)b.n);
        httpd_write(c, buf_str(&b));
        httpd_finish(c);
    }
    buf_free(&b);
}

/* A range that cannot be: says how long the file is. */
static void download__no_range(HttpdCall *c, DownloadRange kind, Header name, int64_t size)
{
    Str    text = kind == DOWNLOAD_OUTSIDE ? STR("invalid range: failed to overlap\n") : STR("invalid range\n");
    Header fields[] = {
        name,
        {STR("Content-Range"), arena_fmt(c->arena, "bytes */%lld", (long long)size)},
        {STR("Content-Type"), STR("text/plain; charset=utf-8")},
        {STR("X-Content-Type-Options"), STR("nosniff")},
    };

    httpd_start(c, 416, fields, COUNT_OF(fields), (int64_t)text.n);
    httpd_write(c, text);
    httpd_finish(c);
}

static void download__bytes(HttpdCall *c, int fd, const char *path, const struct stat *st)
{
    char    date[TIME_HTTP_SIZE], range[80];
    int64_t from = 0, end = st->st_size;
    Str     asked = header_get(c->head.headers, "Range");
    Header  fields[4] = {{STR("Content-Disposition"), download__disposition(path, c->arena)}};

    time_http((int64_t)st->st_mtim.tv_sec * 1000, date);
    DownloadRange kind = DOWNLOAD_ALL;
    if (asked.n && download__same(c, date))
        kind = download__range(asked, st->st_size, &from, &end);
    if (kind == DOWNLOAD_OUTSIDE || kind == DOWNLOAD_MALFORMED) {
        close(fd);
        download__no_range(c, kind, fields[0], st->st_size);
        return;
    }
    fields[1] = (Header){STR("Last-Modified"), str_from(date)};
    if (kind == DOWNLOAD_ALL && download__unchanged(c, st->st_mtim.tv_sec)) {
        close(fd);
        httpd_start(c, 304, fields, 2, 0);
        httpd_finish(c);
        return;
    }
    fields[2] = (Header){STR("Content-Type"), STR("application/octet-stream")};
    if (kind == DOWNLOAD_PART) {
        snprintf(range, sizeof range, "bytes %lld-%lld/%lld", (long long)from, (long long)end - 1,
                 (long long)st->st_size);
        fields[1] = (Header){STR("Content-Range"), str_from(range)};
        httpd_start(c, 206, fields, 3, end - from);
        httpd_file(c, fd, from, end - from);
        return;
    }
    fields[3] = (Header){STR("Accept-Ranges"), STR("bytes")};
    if (st->st_size <= (int64_t)LIMIT_COPY_BLOCK) {
        download__small(c, fd, fields, COUNT_OF(fields));
        return;
    }
    httpd_start(c, 200, fields, COUNT_OF(fields), end);
    httpd_file(c, fd, 0, end);
}

/* Where the lines [first, first + count) of a file stand, without the LF of
 * the last. count 0: up to the end. */
static void download__find_lines(int fd, int64_t first, int64_t count, int64_t *from, int64_t *end)
{
    ABX_UNSET char block[16384];
    int64_t line = 1, at = 0;
    ssize_t n;

    *from = first <= 1 ? 0 : -1;
    *end = -1;
    while (*end < 0 && (n = pread(fd, block, sizeof block, at)) > 0) {
        for (ssize_t i = 0; i < n && *end < 0; i++) {
            if (block[i] != '\n')
                continue;
            line++;
            if (count && *from >= 0 && line == (first > 1 ? first : 1) + count)
                *end = at + i;
            if (*from < 0 && line == first)
                *from = at + i + 1;
        }
        at += n;
    }
    if (*end < 0) {                             /* the file's end; its last LF ends a line, and begins none */
        *end = at;
        if (at > 0 && pread(fd, block, 1, at - 1) == 1 && block[0] == '\n')
            --*end;
    }
    if (*from < 0 || *from > *end)
        *from = *end;
}

static void download__lines(HttpdCall *c, int fd, Str offset, Str limit)
{
    int64_t first = 1, count = 0, from, end;
    Header  type = {STR("Content-Type"), STR("text/plain; charset=utf-8")};

    if ((offset.n && (!num_i64(offset, &first) || first < 1)) || (limit.n && (!num_i64(limit, &count) || count < 1)) ||
        count > INT64_MAX - first) {
        close(fd);
        answer_error(c, 400, "INVALID_REQUEST_BODY", "offset and limit are numbers of lines, from 1 on");
        return;
    }
    download__find_lines(fd, first, count, &from, &end);
    httpd_start(c, 200, &type, 1, end - from);
    httpd_file(c, fd, from, end - from);
}

void download_begin(HttpdCall *c)
{
    Str         value, offset = {0}, limit = {0};
    ABX_UNSET struct stat st;

    if (!query_get(c->head.target, "path", c->arena, &value)) {
        answer_error(c, 400, "MISSING_QUERY", "missing query parameter 'path'");
        return;
    }
    bool lines = query_get(c->head.target, "offset", c->arena, &offset);
    lines |= query_get(c->head.target, "limit", c->arena, &limit);
    if (lines && header_count(c->head.headers, "Range")) {
        answer_error(c, 400, "INVALID_REQUEST_BODY", "offset and limit do not go with a Range");
        return;
    }
    const char *path = query_file(value, c->arena);
    /* O_NONBLOCK: a FIFO without a writer would hold everybody up. */
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : (errno = ENOENT, -1);
    if (fd < 0 || fstat(fd, &st) != 0) {
        answer_sys(c, errno, "open %s", path ? path : "");
    } else if (!S_ISREG(st.st_mode)) {
        answer_error(c, 500, "RUNTIME_ERROR", "error reading %s: %s", path,
                     S_ISDIR(st.st_mode) ? "is a directory" : "no regular file");
    } else if (lines) {
        download__lines(c, fd, offset, limit);
        return;
    } else {
        download__bytes(c, fd, path, &st);
        return;
    }
    if (fd >= 0)
        close(fd);
}
