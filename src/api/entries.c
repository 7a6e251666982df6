#include "abx.h"

#include "api/error.h"
#include "api/session.h"
#include "base/limits.h"
#include "base/str.h"

static abx_file_info entries__info(const FileInfo *f, Arena *a)
{
    return (abx_file_info){
        .name = arena_cstr(a, f->name), .path = arena_cstr(a, f->path),
        .type = f->type == FILE_REGULAR ? ABX_FILE : f->type == FILE_FOLDER ? ABX_FOLDER
              : f->type == FILE_LINK ? ABX_LINK : ABX_OTHER,
        .size = f->size, .mode = f->mode, .modified = f->modified.n ? arena_cstr(a, f->modified) : NULL,
    };
}

const abx_file_info *abx_stat(abx_sandbox *b, const char *path, abx_error *e)
{
    Provider *p = b->session->provider;
    Arena    *a = session_result(b);
    FileInfo  f;
    ABX_UNSET Err       err;

    if (!session_can(p, p->kind->file_stat != NULL, "files.stat", &err) ||
        !p->kind->file_stat(p, str_from(b->id), str_from(path), a, &f, DEADLINE_NONE, &err)) {
        error_give(e, &err);
        return NULL;
    }
    abx_file_info *info = arena_new(a, abx_file_info);
    *info = entries__info(&f, a);
    return info;
}

int abx_list_files(abx_sandbox *b, const char *path, int (*each)(void *ctx, const abx_file_info *f), void *ctx,
                   abx_error *e)
{
    Provider *p = b->session->provider;
    Arena     a = arena_make(ARENA_COMMAND);
    FileList  list = {0};
    ABX_UNSET Err       err;
    bool      ok = session_can(p, p->kind->file_list != NULL, "files.list", &err) &&
              p->kind->file_list(p, str_from(b->id), str_from(path), &a, &list, DEADLINE_NONE, &err);

    for (size_t i = 0; ok && i < list.count; i++) {
        Arena         one = a;
        abx_file_info info = entries__info(&list.items[i], &one);
        if (each(ctx, &info) != 0)
            break;
    }
    arena_free(&a);
    return ok ? 0 : error_give(e, &err);
}

int abx_make_folder(abx_sandbox *b, const char *path, abx_error *e)
{
    Provider *p = b->session->provider;
    ABX_UNSET Err       err;
    bool      ok = session_can(p, p->kind->folder_make != NULL, "files.write", &err) &&
              p->kind->folder_make(p, str_from(b->id), str_from(path), DEADLINE_NONE, &err);

    return ok ? 0 : error_give(e, &err);
}

int abx_move(abx_sandbox *b, const char *from, const char *to, abx_error *e)
{
    Provider *p = b->session->provider;
    ABX_UNSET Err       err;
    bool      ok = session_can(p, p->kind->file_move != NULL, "files.move", &err) &&
              p->kind->file_move(p, str_from(b->id), str_from(from), str_from(to), DEADLINE_NONE, &err);

    return ok ? 0 : error_give(e, &err);
}

int abx_remove(abx_sandbox *b, const char *path, abx_error *e)
{
    Provider *p = b->session->provider;
    ABX_UNSET Err       err;
    bool      ok = session_can(p, p->kind->file_remove != NULL, "files.remove", &err) &&
              p->kind->file_remove(p, str_from(b->id), str_from(path), DEADLINE_NONE, &err);

    return ok ? 0 : error_give(e, &err);
}

int abx_chmod(abx_sandbox *b, const char *path, int mode, abx_error *e)
{
    Provider *p = b->session->provider;
    ABX_UNSET Err       err;
    bool      ok = mode >= 0 && mode <= 07777;

    if (!ok)
        err_set(&err, ERR_USAGE, E8002, "a mode of %d makes no sense: 0 to 07777 are", mode);
    ok = ok && session_can(p, p->kind->file_chmod != NULL, "files.chmod", &err) &&
         p->kind->file_chmod(p, str_from(b->id), str_from(path), mode, DEADLINE_NONE, &err);
    return ok ? 0 : error_give(e, &err);
}
