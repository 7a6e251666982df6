#include "agent/owner.h"

#include "agent/answer.h"
#include "base/num.h"
#include "base/str.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

/* 644 is 0644; -1 when a digit is none of an octal number. */
static int owner__mode(int64_t digits)
{
    int mode = 0;

    if (digits < 0 || digits > 7777)
        return -1;
    for (int64_t place = 1000, shift = 9; place; place /= 10, shift -= 3) {
        int64_t digit = digits / place % 10;
        if (digit > 7)
            return -1;
        mode |= (int)digit << shift;
    }
    return mode;
}

int owner_mode_digits(mode_t mode)
{
    return (int)((mode >> 6 & 7) * 100 + (mode >> 3 & 7) * 10 + (mode & 7));
}

static bool owner__number(Str name, uint32_t *out)
{
    uint64_t n;

    if (!num_u64(name, &n) || n >= UINT32_MAX)
        return false;
    *out = (uint32_t)n;
    return true;
}

/* Strings of a JSON tree have a NUL behind them. */
static bool owner__uid(Str name, uid_t *out)
{
    struct passwd *pw = getpwnam(name.p);

    if (!pw)
        return owner__number(name, out);
    *out = pw->pw_uid;
    return true;
}

static bool owner__gid(Str name, gid_t *out)
{
    struct group *gr = getgrnam(name.p);

    if (!gr)
        return owner__number(name, out);
    *out = gr->gr_gid;
    return true;
}

bool owner_from_json(const Json *v, Owner *out, Err *err)
{
    const Json *mode = json_get(v, "mode");
    Str         owner = json_str(json_get(v, "owner")), group = json_str(json_get(v, "group"));
    int64_t     digits = json_int(mode, mode && mode->type != JSON_NULL ? -1 : 0);
    Owner       o = {.mode = -1, .uid = (uid_t)-1, .gid = (gid_t)-1};

    if (digits != 0 && (o.mode = owner__mode(digits)) < 0)
        return err_set(err, ERR_USAGE, E0000, "mode is not a number of octal digits: invalid syntax");
    if (owner.n && !owner__uid(owner, &o.uid))
        return err_set(err, ERR_USAGE, E0000, "failed to lookup user %.*s: unknown user", STR_ARG(owner));
    if (group.n && !owner__gid(group, &o.gid))
        return err_set(err, ERR_USAGE, E0000, "failed to lookup group %.*s: unknown group", STR_ARG(group));
    *out = o;
    return true;
}

/* chown first: it takes setuid and setgid away. */
bool owner_apply(const char *path, const Owner *o, Err *err)
{
    if ((o->uid != (uid_t)-1 || o->gid != (gid_t)-1) && chown(path, o->uid, o->gid) != 0)
        return err_sys(err, errno, E4002, "chown %s", path);
    if (o->mode >= 0 && chmod(path, (mode_t)o->mode) != 0)
        return err_sys(err, errno, E4002, "chmod %s", path);
    return true;
}

/* What is so already is not set: a file that one may write to may be another's. */
bool owner_apply_fd(int fd, const Owner *o, Err *err)
{
    ABX_UNSET struct stat st;

    if (fstat(fd, &st) != 0)
        return err_sys(err, errno, E4002, "stat");
    if (((o->uid != (uid_t)-1 && o->uid != st.st_uid) || (o->gid != (gid_t)-1 && o->gid != st.st_gid)) &&
        (fchown(fd, o->uid, o->gid) != 0 || fstat(fd, &st) != 0))
        return err_sys(err, errno, E4002, "chown");
    if (o->mode >= 0 && (mode_t)o->mode != (st.st_mode & 07777) && fchmod(fd, (mode_t)o->mode) != 0)
        return err_sys(err, errno, E4002, "chmod");
    return true;
}

/* --- one file as an object --- */

/* Looking a name up reads a file; files in one folder have one owner, mostly. */
static const char *owner__user_name(uid_t uid)
{
    static uid_t last = (uid_t)-1;
    static char  name[64];

    if (uid != last) {
        struct passwd *pw = getpwuid(uid);
        snprintf(name, sizeof name, "%s", pw ? pw->pw_name : "");
        if (!pw)
            snprintf(name, sizeof name, "%u", (unsigned)uid);
        last = uid;
    }
    return name;
}

static const char *owner__group_name(gid_t gid)
{
    static gid_t last = (gid_t)-1;
    static char  name[64];

    if (gid != last) {
        struct group *gr = getgrgid(gid);
        snprintf(name, sizeof name, "%s", gr ? gr->gr_name : "");
        if (!gr)
            snprintf(name, sizeof name, "%u", (unsigned)gid);
        last = gid;
    }
    return name;
}

static const char *owner__type(mode_t mode)
{
    return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "symlink" : "other";
}

static void owner__text(JsonOut *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_str(w, str_from(text));
}

void owner_put_entry(JsonOut *w, Str path, const struct stat *st)
{
    ABX_UNSET char time[ANSWER_TIME];

    json_begin(w, '{');
    json_key(w, "path");
    json_put_str(w, path);
    owner__text(w, "type", owner__type(st->st_mode));
    json_key(w, "size");
    json_put_int(w, st->st_size);
    answer_time(st->st_mtim, time);
    owner__text(w, "modified_at", time);
    answer_time(st->st_ctim, time);
    owner__text(w, "created_at", time);
    owner__text(w, "owner", owner__user_name(st->st_uid));
    owner__text(w, "group", owner__group_name(st->st_gid));
    json_key(w, "mode");
    json_put_int(w, owner_mode_digits(st->st_mode));
    json_end(w, '}');
}
