#include "abx.h"

#include "api/error.h"
#include "api/session.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/clean.h"
#include "data/shell.h"
#include "provider/carried.h"

static abx_file_info entries__info(const FileInfo *f, Arena *a)
{
    return (abx_file_info){
        .name = arena_cstr(a, f->name), .path = arena_cstr(a, f->path),
        .type = f->type == FILE_REGULAR ? ABX_FILE : f->type == FILE_FOLDER ? ABX_FOLDER
              : f->type == FILE_LINK ? ABX_LINK : ABX_OTHER,
        .target = f->target.n ? arena_cstr(a, f->target) : NULL, .size = f->size, .mode = f->mode,
        .modified = f->modified.n ? arena_cstr(a, f->modified) : NULL,
    };
}

const abx_file_info *abx_stat(abx_sandbox *b, const char *path, abx_error *e)
{
    Provider *p = b->session->provider;
    Arena    *a = session_result(b);
    ABX_UNSET FileInfo f;
    ABX_UNSET Err err;

    if (!session_can(p, p->kind->file_stat != NULL, "files.stat", &err) ||
        !p->kind->file_stat(p, str_from(b->id), str_from(path), a, &f, DEADLINE_NONE, &err)) {
        error_give(e, &err);
        return NULL;
    }
    abx_file_info *info = arena_new(a, abx_file_info);
    *info = entries__info(&f, a);
    return info;
}

/* A sandbox may list what no folder can hold, for somebody to write it elsewhere. */
static bool entries__name_is_good(Str name, const char *folder, Err *err)
{
    return (name.n && name.n <= LIMIT_LIST_NAME && !str_has(name, '/') && !str_has(name, '\0')) ||
           err_set(err, ERR_INPUT, E8020, "the listing of %s in the sandbox holds what can be no name", folder);
}

int abx_list_files(abx_sandbox *b, const char *path, int (*each)(void *ctx, const abx_file_info *f), void *ctx,
                   abx_error *e)
{
    Provider *p = b->session->provider;
    Arena     a = arena_make(ARENA_COMMAND);
    FileList  list = {0};
    ABX_UNSET Err err;
    bool      ok = session_can(p, p->kind->file_list != NULL, "files.list", &err) &&
              p->kind->file_list(p, str_from(b->id), str_from(path), &a, &list, DEADLINE_NONE, &err);

    for (size_t i = 0; ok && i < list.count; i++)
        ok = entries__name_is_good(list.items[i].name, path, &err);
    for (size_t i = 0; ok && i < list.count; i++) {
        Arena one = a;
        Str   name = list.items[i].name;
        if (str_eq(name, STR(".")) || str_eq(name, STR("..")))
            continue;
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
    ABX_UNSET Err err;
    bool      ok = session_can(p, p->kind->folder_make != NULL, "files.write", &err) &&
              p->kind->folder_make(p, str_from(b->id), str_from(path), DEADLINE_NONE, &err);

    return ok ? 0 : error_give(e, &err);
}

int abx_move(abx_sandbox *b, const char *from, const char *to, abx_error *e)
{
    Provider *p = b->session->provider;
    ABX_UNSET Err err;
    bool      ok = session_can(p, p->kind->file_move != NULL, "files.move", &err) &&
              p->kind->file_move(p, str_from(b->id), str_from(from), str_from(to), DEADLINE_NONE, &err);

    return ok ? 0 : error_give(e, &err);
}

int abx_remove(abx_sandbox *b, const char *path, abx_error *e)
{
    Provider *p = b->session->provider;
    ABX_UNSET Err err;
    bool      ok = session_can(p, p->kind->file_remove != NULL, "files.remove", &err) &&
              p->kind->file_remove(p, str_from(b->id), str_from(path), DEADLINE_NONE, &err);

    return ok ? 0 : error_give(e, &err);
}

/* ---- modes ---- */

/* No daemon tells and sets all of a mode, and none knows symbolic ones: a line
 * for the sandbox's shell. Of five digits none is passed over, not even for a
 * folder's setgid bit. */
static bool entries__chmod_line(Buf *to, const char *path, const char *mode, int deep, Err *err)
{
    static const char zeros[] = "0000";
    size_t            digits = strspn(mode, "01234567");

    if (mode[digits] ? strspn(mode, "ugoarwxXst+-=,") != strlen(mode) || !strpbrk(mode, "+-=") : digits < 1 || digits > 4) {
        err_set(err, ERR_USAGE, E8002, "'%s' is no mode", mode);
        return err_hint(err, "Modes are octal, such as 0644, or symbolic, such as u+x,go-w.");
    }
    if (!utf8_valid(str_from(path)))
        return err_set(err, ERR_USAGE, E8002, "the path in the sandbox is not UTF-8");
    buf_add(to, STR("cd /; p="));
    shell_quote(to, str_from(path));
    buf_addf(to, "; [ -e \"$p\" ] || exit 20; chmod %s -- %s%s \"$p\" 2>&1", deep ? "-R" : "", mode[digits] ? "" : zeros + digits - 1,
             mode);
    return !to->over || err_set(err, ERR_USAGE, E8002, "the path in the sandbox is too long");
}

int abx_chmod(abx_sandbox *b, const char *path, const char *mode, int deep, abx_error *e)
{
    Provider *p = b->session->provider;
    Buf       line = buf_make(LIMIT_URL), said = buf_make(LIMIT_ERROR_BODY);
    ExecCall *call = NULL;
    ExecEvent end;
    ABX_UNSET Err err;
    bool      ok = entries__chmod_line(&line, path, mode, deep, &err) && session_can(p, p->kind->exec != NULL, "exec.run", &err);
    Str       words[] = {buf_str(&line)};

    ok = ok && p->kind->exec(p, str_from(b->id), &(ExecRequest){.argv = words, .argc = 1}, &call, clock_after(LIMIT_CALL_MS), &err) &&
         carried_gather(call, &said, &end, p->host.cancel_fd, DEADLINE_NONE, &err);
    if (ok && end.exit_code == 20)
        ok = err_set(&err, ERR_NOT_FOUND, E4001, "there is nothing at %s in the sandbox", path);
    else if (ok && end.exit_code != 0) {
        Str why = clean_message(str_trim(buf_str(&said)), NULL, 0, session_result(b));
        ok = err_set(&err, ERR_REMOTE, E4000, "cannot change the mode of %s: %.*s", path, STR_ARG(why));
    }
    if (call)
        call->ops->close(call);
    buf_free(&line);
    buf_free(&said);
    return ok ? 0 : error_give(e, &err);
}
