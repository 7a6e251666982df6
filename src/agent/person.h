/* person.h - who a command runs as: names and numbers of the sandbox's own
 * /etc/passwd and /etc/group. */
#ifndef ABX_PERSON_H
#define ABX_PERSON_H

#include "base/arena.h"
#include "data/frame.h"
#include <sys/types.h>

typedef struct Person {
    bool         changes;       /* this process is somebody else */
    uid_t        uid;
    gid_t        gid;           /* a number that passwd does not know has itself, never 0 */
    const gid_t *groups;        /* all of them, gid included; none for such a number */
    size_t       n_groups;
    Str          name, home, shell;
} Person;

/* By name, else by number. False, and *fail: there is nobody of that name, or
 * this process may not become him. */
ABX_FN bool person_find(Str who, Arena *a, Person *out, FrameFail *fail) ABX_CHECK;

#endif
