#include "agent/replace.h"

#include "agent/answer.h"
#include "agent/place.h"
#include "agent/query.h"
#include "base/limits.h"
#include "base/str.h"
#include "data/json.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Hand on what of `window` can no longer begin an `old`, replaced. */
static bool replace__move(Place *p, Buf *window, Str old, Str with, bool last, int64_t *count, Err *err)
{
    Str         in = buf_str(window);
    const char *at;
    bool        ok = true;

    while (ok && in.n >= old.n && (at = memmem(in.p, in.n, old.p, old.n))) {
        ok = place_write(p, (Str){in.p, (size_t)(at - in.p)}, err) && place_write(p, with, err);
        str_skip(&in, (size_t)(at - in.p) + old.n);
        ++*count;
    }
    size_t held = last ? 0 : in.n < old.n - 1 ? in.n : old.n - 1;
    ok = ok && place_write(p, (Str){in.p, in.n - held}, err);
    buf_drop(window, window->n - held);
    return ok;
}

static bool replace__copy(int fd, Place *p, Str old, Str with, int64_t *count, Err *err)
{
    Buf     window = buf_make(LIMIT_COPY_BLOCK + old.n);
    ssize_t n;
    bool    ok = true;

    do {
        n = read(fd, buf_room(&window, LIMIT_COPY_BLOCK), LIMIT_COPY_BLOCK);
        if (n < 0)
            ok = err_sys(err, errno, E4000, "read");
        if (n > 0)
            buf_grew(&window, (size_t)n);
        ok = ok && replace__move(p, &window, old, with, n == 0, count, err);
    } while (ok && n > 0);
    buf_free(&window);
    return ok;
}

/* One file; its error is answered. */
static void replace__one(HttpdCall *c, const char *path, Str old, Str with, int64_t *count)
{
    static const Owner as_it_is = {.mode = -1, .uid = (uid_t)-1, .gid = (gid_t)-1};
    ABX_UNSET struct stat st;
    Place       p;
    ABX_UNSET Err err;
    int         fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    *count = 0;
    if (fd < 0 || fstat(fd, &st) != 0) {
        answer_sys(c, errno, "stat %s", path);
    } else if (!S_ISREG(st.st_mode)) {
        answer_error(c, 500, "RUNTIME_ERROR", "error reading file %s: no regular file", path);
    } else if (!place_open(&p, path, &as_it_is, &err)) {
        answer_error(c, 500, "RUNTIME_ERROR", "error writing file %s. %s", path, err.text);
    } else if (!p.temp) {
        /* It would be written while it is read. */
        answer_error(c, 500, "RUNTIME_ERROR", "error writing file %s. its folder may not be written to", path);
        place_free(&p);
    } else {
        if (!replace__copy(fd, &p, old, with, count, &err) ||
            (*count && (!place_close(&p, &err) || !place_commit(&p, &err))))
            answer_error(c, 500, "RUNTIME_ERROR", "error writing file %s. %s", path, err.text);
        place_free(&p);
    }
    if (fd >= 0)
        close(fd);
}

static void replace__all(HttpdCall *c, const Json *all, JsonOut *w, Arena *a)
{
    for (size_t i = 0; i < json_count(all) && !httpd_started(c); i++) {
        const char *path = query_file(all->keys[i], a);
        Str         old = json_str(json_get(&all->items[i], "old")), with = json_str(json_get(&all->items[i], "new"));
        int64_t     count;
        if (!path || !old.n) {
            answer_error(c, 400, "INVALID_REQUEST_BODY", "a path and a text `old` that is not empty are wanted");
            return;
        }
        replace__one(c, path, old, with, &count);
        json_key_str(w, all->keys[i]);
        json_begin(w, '{');
        json_key(w, "replacedCount");
        json_put_int(w, count);
        json_end(w, '}');
    }
}

void replace_begin(HttpdCall *c, Str body)
{
    Arena       a = arena_make(LIMIT_AGENT_ARENA);
    Buf         out = buf_make(LIMIT_HTTPD_OUT);
    JsonOut     w = json_out(&out, JSON_COMPACT);
    const Json *all;
    Str         verbose;
    ABX_UNSET Err err;

    if (!json_parse(body, &a, &all, &err) || all->type != JSON_OBJECT) {
        answer_error(c, 400, "INVALID_REQUEST_BODY",
                     "error parsing request, MAYBE invalid body format. an object is wanted");
    } else {
        json_begin(&w, '{');
        replace__all(c, all, &w, &a);
        json_end(&w, '}');
    }
    if (!httpd_started(c) && query_get(c->head.target, "verbose", c->arena, &verbose) && str_eq(verbose, STR("true")))
        answer_json(c, 200, &out);
    else if (!httpd_started(c))
        answer_empty(c);
    buf_free(&out);
    arena_free(&a);
}
