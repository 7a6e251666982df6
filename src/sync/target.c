#include "sync/target.h"

#include "base/mem.h"
#include "base/str.h"
#include "data/clean.h"
#include "sync/nest.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TARGET_SHOWN = 4096 };   /* what clean_path() takes */

static bool target__failed(Err *err, int sys, const char *what, const char *path)
{
    bool  missing = sys == ENOENT, denied = sys == EACCES || sys == EPERM || sys == EROFS;
    ABX_UNSET char room[TARGET_SHOWN];
    Arena a = {.p = room, .size = sizeof room};
    Str   shown = clean_path(str_from(path), &a);

    err_sys(err, sys, missing ? E4001 : denied ? E4002 : E4000, "cannot %s %.*s", what, STR_ARG(shown));
    err->kind = missing ? ERR_NOT_FOUND : denied ? ERR_DENIED : ERR_SYSTEM;
    return false;
}

/* Every folder on the way to the end of `path`. */
static bool target__make(char *path, Err *err)
{
    for (char *p = path; *p;) {
        p += strspn(p, "/");
        p += strcspn(p, "/");
        char c = *p;
        *p = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return target__failed(err, errno, "make the folder", path);
        *p = c;
    }
    return true;
}

static bool target__folder(const char *path, Target *out, Err *err)
{
    out->fd = open(*path ? path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return out->fd >= 0 || target__failed(err, errno, "open the folder", path);
}

/* `path`, without slashes at its end, in its folder. */
static bool target__in_folder(char *path, bool make, Target *out, Err *err)
{
    char  *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t above = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    char  *folder = mem_str((Str){path, above});
    bool   ok = (!make || target__make(folder, err)) && target__folder(folder, out, err);

    if (ok)
        out->name = mem_str(str_from(name));
    mem_free(folder);
    return ok;
}

/* What is there is no folder. */
static bool target__over(const char *path, bool regular, TargetKind kind, Target *out, Err *err)
{
    ABX_UNSET char real[PATH_MAX];

    if (kind != TARGET_FILE)
        return target__failed(err, ENOTDIR, "copy into", path);
    if (!regular)
        return target__failed(err, EOPNOTSUPP, "replace", path);
    if (!realpath(path, real))
        return target__failed(err, errno, "find", path);
    return target__in_folder(real, false, out, err);
}

/* Nothing is there. */
static bool target__new(char *path, TargetKind kind, bool slash, Target *out, Err *err)
{
    ABX_UNSET struct stat st;
    Str         name = str_from(strrchr(path, '/') ? strrchr(path, '/') + 1 : path);

    if (lstat(path, &st) == 0)
        return target__failed(err, ENOENT, "follow the link", path);
    if (name.n == 0 || str_eq(name, STR("..")) || (kind == TARGET_SEVERAL && !slash))
        return target__failed(err, ENOENT, "copy into", path);
    if (slash && kind != TARGET_INSIDE)
        return target__make(path, err) && target__folder(path, out, err);
    return target__in_folder(path, true, out, err);
}

static bool target__slash(Str path)
{
    return str_ends(path, STR("/")) || str_ends(path, STR("/."));
}

bool target_making(const char *path)
{
    return !target__slash(str_from(path)) && nest_left(AT_FDCWD, path);
}

bool target_open(const char *path, TargetKind kind, bool resume, Target *out, Err *err)
{
    ABX_UNSET struct stat st;
    Str         plain = str_from(path);
    bool        slash = target__slash(plain);
    int         sys = stat(path, &st) == 0 ? 0 : errno;
    bool        ok;

    *out = (Target){.fd = -1};
    while (plain.n > 1 && target__slash(plain))
        plain.n -= plain.p[plain.n - 1] == '.' && plain.n > 2 ? 2 : 1;
    char *bare = mem_str(plain);
    if (resume && kind == TARGET_FOLDER && target_making(path))
        ok = target__in_folder(bare, false, out, err);
    else if (sys == 0 && S_ISDIR(st.st_mode))
        ok = target__folder(path, out, err);
    else if (sys == 0)
        ok = target__over(bare, S_ISREG(st.st_mode), kind, out, err);
    else if (sys == ENOENT)
        ok = target__new(bare, kind, slash, out, err);
    else
        ok = target__failed(err, sys, "copy to", path);
    mem_free(bare);
    return ok;
}

void target_close(Target *t)
{
    if (t->fd >= 0)
        close(t->fd);
    mem_free(t->name);
    *t = (Target){.fd = -1};
}
