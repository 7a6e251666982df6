#include "agent/files.h"

#include "agent/answer.h"
#include "agent/owner.h"
#include "agent/query.h"
#include "agent/place.h"
#include "base/limits.h"
#include "base/str.h"
#include "data/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void files_info(HttpdCall *c)
{
    Buf     body = buf_make(LIMIT_HTTPD_OUT);
    JsonOut w = json_out(&body, JSON_COMPACT);
    Str     rest = query_text(c->head.target), key, value;
    Arena   a = arena_make(LIMIT_HTTPD_ARENA);

    json_begin(&w, '{');
    for (; query_next(&rest, &a, &key, &value); arena_reset(&a)) {
        ABX_UNSET struct stat st;
        if (!str_eq(key, STR("path")))
            continue;
        const char *path = query_file(value, &a);
        if (!path || lstat(path, &st) != 0) {
            answer_sys(c, path ? errno : ENOENT, "file not found: %s: lstat %s", path ? path : "", path ? path : "");
            break;
        }
        json_key_str(&w, value);
        owner_put_entry(&w, str_from(path), &st);
    }
    json_end(&w, '}');
    if (!httpd_started(c) && body.over)
        answer_error(c, 400, "INVALID_REQUEST_BODY", "too many paths at once");
    else if (!httpd_started(c))
        answer_json(c, 200, &body);
    buf_free(&body);
    arena_free(&a);
}

void files_delete(HttpdCall *c)
{
    Str   rest = query_text(c->head.target), key, value;
    Arena a = arena_make(LIMIT_HTTPD_ARENA);

    for (; !httpd_started(c) && query_next(&rest, &a, &key, &value); arena_reset(&a)) {
        ABX_UNSET struct stat st;
        if (!str_eq(key, STR("path")))
            continue;
        const char *path = query_file(value, &a);
        if (!path)
            answer_error(c, 400, "INVALID_REQUEST_BODY", "the path is empty or has a NUL");
        else if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
            answer_error(c, 500, "RUNTIME_ERROR", "error removing file %s. path is a directory: %s", path, path);
        else if (unlink(path) != 0 && errno != ENOENT && errno != ENOTDIR)
            answer_error(c, 500, "RUNTIME_ERROR", "error removing file %s. %s", path, strerror(errno));
    }
    if (!httpd_started(c))
        answer_empty(c);
    arena_free(&a);
}

/* What was sent, as JSON of this type; NULL: refused. */
static const Json *files__parse(HttpdCall *c, Str body, JsonType type, Arena *a)
{
    const Json *doc;
    ABX_UNSET Err err;

    if (json_parse(body, a, &doc, &err) && doc->type == type)
        return doc;
    answer_error(c, 400, "INVALID_REQUEST_BODY", "error parsing request, MAYBE invalid body format. %s",
                 type == JSON_ARRAY ? "a list is wanted" : "an object is wanted");
    return NULL;
}

/* The rename never replaces: the kernel sees to it where it can. */
static bool files__rename(const char *from, const char *to)
{
    ABX_UNSET struct stat st;

    if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 1U /* RENAME_NOREPLACE */) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    if (lstat(to, &st) == 0) {
        errno = EEXIST;
        return false;
    }
    return rename(from, to) == 0;
}

static void files__move_one(HttpdCall *c, const char *from, const char *to, Arena *a)
{
    ABX_UNSET struct stat st;
    Str         folder = str_from(to);

    if (lstat(from, &st) != 0) {
        answer_sys(c, errno, "source path not found: %s: stat %s", from, from);
        return;
    }
    while (folder.n && folder.p[folder.n - 1] == '/')
        folder.n--;
    while (folder.n && folder.p[folder.n - 1] != '/')
        folder.n--;
    while (folder.n > 1 && folder.p[folder.n - 1] == '/')
        folder.n--;
    if (folder.n > 1 && !place_folders(arena_cstr(a, folder), 0755))
        answer_error(c, 500, "RUNTIME_ERROR", "error accessing file: mkdir %.*s: %s", STR_ARG(folder), strerror(errno));
    else if (files__rename(from, to))
        return;
    else if (errno == EEXIST)
        answer_error(c, 500, "RUNTIME_ERROR", "error accessing file: destination path already exists: %s", to);
    else
        answer_error(c, 500, "RUNTIME_ERROR", "error accessing file: rename %s %s: %s", from, to, strerror(errno));
}

void files_move(HttpdCall *c, Str body)
{
    Arena       a = arena_make(LIMIT_AGENT_ARENA);
    const Json *list = files__parse(c, body, JSON_ARRAY, &a);

    for (size_t i = 0; i < json_count(list) && !httpd_started(c); i++) {
        const char *from = query_file(json_str(json_get(&list->items[i], "src")), &a);
        const char *to = query_file(json_str(json_get(&list->items[i], "dest")), &a);
        if (from && to)
            files__move_one(c, from, to, &a);
        else
            answer_error(c, 400, "INVALID_REQUEST_BODY", "src and dest must be paths");
    }
    if (!httpd_started(c))
        answer_empty(c);
    arena_free(&a);
}

void files_permissions(HttpdCall *c, Str body)
{
    Arena       a = arena_make(LIMIT_AGENT_ARENA);
    const Json *all = files__parse(c, body, JSON_OBJECT, &a);
    Owner       o;
    ABX_UNSET Err err;

    for (size_t i = 0; i < json_count(all) && !httpd_started(c); i++) {
        const char *path = query_file(all->keys[i], &a);
        if (!path)
            answer_error(c, 400, "INVALID_REQUEST_BODY", "the path is empty or has a NUL");
        else if (!owner_from_json(&all->items[i], &o, &err) || !owner_apply(path, &o, &err))
            answer_error(c, 500, "RUNTIME_ERROR", "error changing permissions for %s. %s", path, err.text);
    }
    if (!httpd_started(c))
        answer_empty(c);
    arena_free(&a);
}
