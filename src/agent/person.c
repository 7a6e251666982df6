#include "agent/person.h"

#include "base/num.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

enum { PERSON_GROUPS = 65536 };         /* Linux's NGROUPS_MAX */

static void person__known(const struct passwd *pw, Arena *a, Person *out)
{
    int n = 0;

    out->uid = pw->pw_uid;
    out->gid = pw->pw_gid;
    out->name = arena_str(a, (Str){pw->pw_name, strlen(pw->pw_name)});
    out->home = arena_str(a, (Str){pw->pw_dir, strlen(pw->pw_dir)});
    out->shell = arena_str(a, (Str){pw->pw_shell, strlen(pw->pw_shell)});
    if (geteuid() != 0)
        return;
    getgrouplist(out->name.p, out->gid, NULL, &n);
    if (n < 1 || n > PERSON_GROUPS)
        n = 1;
    gid_t *groups = arena_array(a, (size_t)n, sizeof *groups);
    groups[0] = out->gid;
    if (getgrouplist(out->name.p, out->gid, groups, &n) < 0)
        n = 1;                          /* the file grew meanwhile */
    out->groups = groups;
    out->n_groups = (size_t)n;
}

bool person_find(Str who, Arena *a, Person *out, FrameFail *fail)
{
    const char    *name = arena_cstr(a, who);
    struct passwd *pw = getpwnam(name);
    uint64_t       number;
    bool           is_number = num_u64(who, &number) && number < UINT32_MAX;

    *out = (Person){0};
    if (!pw && is_number)
        pw = getpwuid((uid_t)number);
    if (pw) {
        person__known(pw, a, out);
    } else if (is_number) {
        out->uid = (uid_t)number;
        out->gid = (gid_t)number;
        out->name = arena_str(a, who);
        out->home = STR("/");
    } else {
        *fail = (FrameFail){FRAME_AT_USER, 0, arena_fmt(a, "the sandbox has no user %.*s", STR_ARG(who))};
        return false;
    }
    if (out->shell.n == 0)
        out->shell = STR("/bin/sh");
    out->changes = out->uid != geteuid();
    if (out->changes && geteuid() != 0) {
        *fail = (FrameFail){FRAME_AT_USER, EPERM,
                            arena_fmt(a, "only root may become %.*s, and here is user %u", STR_ARG(who),
                                      (unsigned)geteuid())};
        return false;
    }
    return true;
}
