#include "agent/upload.h"

#include "agent/answer.h"
#include "agent/place.h"
#include "agent/query.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/multipart.h"

#include <stdio.h>

typedef enum UploadPart { UPLOAD_OTHER, UPLOAD_METADATA, UPLOAD_FILE } UploadPart;

typedef struct UploadItem {
    char *path;
    Owner owner;
    Place place;
} UploadItem;

typedef struct Upload {
    HttpdCall  *call;
    Multipart   parser;
    UploadPart  part;
    Buf         metadata;
    UploadItem *items;      /* as many as there was metadata */
    size_t      count;
    size_t      files;      /* as many as files were begun */
    bool        failed;     /* answered; the rest is dropped */
    bool        over;       /* the last delimiter came */
} Upload;

/* What was written so far, and is in no place yet, goes away. */
static void upload__drop(Upload *u)
{
    u->failed = true;
    for (size_t i = 0; i < u->count; i++)
        place_free(&u->items[i].place);
}

static void upload__gone(HttpdCall *c, bool whole)
{
    Upload *u = c->ctx;

    (void)whole;
    upload__drop(u);
    for (size_t i = 0; i < u->count; i++)
        mem_free(u->items[i].path);
    mem_free(u->items);
    multipart_free(&u->parser);
    buf_free(&u->metadata);
    mem_free(u);
}

static void upload__refuse(Upload *u, const char *code, const char *text)
{
    upload__drop(u);
    answer_error(u->call, 400, code, "%s", text);
}

static void upload__fail(Upload *u, const char *what, const char *path, const Err *err)
{
    upload__drop(u);
    answer_error(u->call, 500, "RUNTIME_ERROR", "%s %s. %s", what, path, err->text);
}

static void upload__begin_file(Upload *u)
{
    ABX_UNSET Err err;

    if (u->files < u->count) {
        UploadItem *it = &u->items[u->files++];
        if (!place_open(&it->place, it->path, &it->owner, &err))
            upload__fail(u, "error opening destination file", it->path, &err);
    } else if (u->count == 0) {
        upload__refuse(u, "INVALID_FILE_METADATA", "metadata file is missing");
    } else {
        ABX_UNSET char text[120];
        snprintf(text, sizeof text, "metadata and file count mismatch: %zu vs %zu", u->count, u->files + 1);
        upload__refuse(u, "INVALID_FILE", text);
    }
}

static void upload__end_metadata(Upload *u)
{
    Arena       a = arena_make(LIMIT_AGENT_ARENA);
    const Json *doc;
    UploadItem  it = {.place = {.fd = -1}};
    ABX_UNSET Err err;
    const char *path;

    if (!json_parse(buf_str(&u->metadata), &a, &doc, &err) || doc->type != JSON_OBJECT) {
        upload__refuse(u, "INVALID_FILE_METADATA", "the metadata is not a JSON object");
    } else if (!(path = query_file(json_str(json_get(doc, "path")), &a))) {
        upload__refuse(u, "INVALID_FILE_METADATA", "the metadata has no path");
    } else if (!owner_from_json(doc, &it.owner, &err)) {
        upload__fail(u, "error chmoding file", path, &err);
    } else {
        it.path = mem_str(str_from(path));
        u->items = mem_grow(u->items, u->count + 1, sizeof *u->items);
        u->items[u->count++] = it;
    }
    arena_free(&a);
}

/* A part that has no file name is no file part: the stock daemon does not see
 * it either. */
static UploadPart upload__part(const MultipartEvent *ev)
{
    if (!ev->has_filename)
        return UPLOAD_OTHER;
    if (str_eq(ev->name, STR("metadata")))
        return UPLOAD_METADATA;
    return str_eq(ev->name, STR("file")) ? UPLOAD_FILE : UPLOAD_OTHER;
}

static void upload__data(Upload *u, Str data)
{
    ABX_UNSET Err err;

    if (u->part == UPLOAD_FILE) {
        UploadItem *it = &u->items[u->files - 1];
        if (!place_write(&it->place, data, &err))
            upload__fail(u, "error writing file", it->path, &err);
    } else if (u->part == UPLOAD_METADATA) {
        buf_add(&u->metadata, data);
        if (u->metadata.over)
            upload__refuse(u, "INVALID_FILE_METADATA", "the metadata is too long");
    }
}

static void upload__event(Upload *u, const MultipartEvent *ev)
{
    ABX_UNSET Err err;

    switch (ev->kind) {
    case MULTIPART_PART:
        u->part = upload__part(ev);
        buf_clear(&u->metadata);
        if (u->part == UPLOAD_FILE)
            upload__begin_file(u);
        break;
    case MULTIPART_DATA:
        upload__data(u, ev->data);
        break;
    case MULTIPART_PART_END:
        if (u->part == UPLOAD_FILE && !place_close(&u->items[u->files - 1].place, &err))
            upload__fail(u, "error chmoding file", u->items[u->files - 1].path, &err);
        if (u->part == UPLOAD_METADATA)
            upload__end_metadata(u);
        break;
    case MULTIPART_END:
        u->over = true;
        break;
    }
}

static void upload__body(HttpdCall *c, Str piece)
{
    Upload        *u = c->ctx;
    MultipartEvent ev;
    ABX_UNSET Err err;
    Step           step = STEP_MORE;

    while (!u->failed && (step = multipart_next(&u->parser, &piece, &ev, &err)) == STEP_DONE)
        upload__event(u, &ev);
    if (!u->failed && step == STEP_ERR)
        upload__refuse(u, "INVALID_FILE", err.text);
}

static void upload__end(HttpdCall *c)
{
    Upload *u = c->ctx;
    ABX_UNSET char text[120];
    ABX_UNSET Err err;

    if (u->failed)
        return;
    if (!u->over) {
        upload__refuse(u, "INVALID_FILE", "the body ends before its last delimiter");
    } else if (u->count == 0) {
        upload__refuse(u, "INVALID_FILE_METADATA", "metadata file is missing");
    } else if (u->files == 0) {
        upload__refuse(u, "INVALID_FILE_CONTENT", "file is missing");
    } else if (u->files != u->count) {
        snprintf(text, sizeof text, "metadata and file count mismatch: %zu vs %zu", u->count, u->files);
        upload__refuse(u, "INVALID_FILE", text);
    }
    for (size_t i = 0; i < u->count && !u->failed; i++)
        if (!place_commit(&u->items[i].place, &err))
            upload__fail(u, "error opening destination file", u->items[i].path, &err);
    if (!u->failed)
        answer_empty(c);
}

void upload_begin(HttpdCall *c)
{
    static const HttpdHandler upload = {.body = upload__body, .end = upload__end, .gone = upload__gone};
    ABX_UNSET char boundary[MULTIPART_BOUNDARY];
    size_t n = 0;
    ABX_UNSET Err err;

    if (!multipart_boundary(header_get(c->head.headers, "Content-Type"), boundary, &n, &err)) {
        answer_error(c, 400, "INVALID_FILE", "%s", err.text);
        return;
    }
    Upload *u = mem_new(sizeof *u);
    *u = (Upload){.call = c, .parser = multipart_make((Str){boundary, n}), .metadata = buf_make(LIMIT_AGENT_JSON)};
    c->handler = &upload;
    c->ctx = u;
}
