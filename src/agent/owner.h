/* owner.h - mode, owner and group of a file, as execd's clients write them.
 *
 * A mode is a decimal number that spells octal digits: 644 is 0644. Owners and
 * groups are names; where there is no such name, a number is one.
 */
#ifndef ABX_OWNER_H
#define ABX_OWNER_H

#include "base/err.h"
#include "data/json.h"
#include <sys/stat.h>

typedef struct Owner {
    int   mode;         /* -1: is left as it is */
    uid_t uid;          /* (uid_t)-1: the same */
    gid_t gid;
} Owner;

/* The keys mode, owner and group of an object; 0 and "" are absent. False:
 * ERR_USAGE, E0000. */
ABX_FN bool owner_from_json(const Json *v, Owner *out, Err *err) ABX_CHECK;

/* False: ERR_SYSTEM, with "chown" or "chmod" in the text. */
ABX_FN bool owner_apply(const char *path, const Owner *o, Err *err) ABX_CHECK;
ABX_FN bool owner_apply_fd(int fd, const Owner *o, Err *err) ABX_CHECK;

/* 0644 is 644; without setuid and the like. */
ABX_FN int owner_mode_digits(mode_t mode);

/* One file as an object: path, type, size, modified_at, created_at, owner,
 * group, mode. */
ABX_FN void owner_put_entry(JsonOut *w, Str path, const struct stat *st);

#endif
