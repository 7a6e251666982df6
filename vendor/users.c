/* users.c - who is who, in place of musl's: /etc/passwd and /etc/group, read anew each
 * time, without a daemon to ask (nscd), 6 KB smaller. What comes back is good until
 * the next call, also of another of these. A line that has too few fields, or an id
 * that is no number, is passed over; of a file of 8 MiB or more nobody is known.
 * tests/unit/system_test.c holds it to another libc.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { USERS_FIELDS = 7, USERS_MOST = 8 << 20 };

/* A file, and its lines cut into fields at the colons. */
typedef struct Users {
    char *text, *next;
    char *field[USERS_FIELDS];
} Users;

static Users users__file;
static struct passwd users__user;
static struct group  users__group;
static char        **users__members;

static bool users__open(const char *path)
{
    size_t  n = 0, room = 0;
    ssize_t got = 0;
    int     fd = open(path, O_RDONLY | O_CLOEXEC);

    free(users__file.text);
    users__file = (Users){0};
    while (fd >= 0) {
        if (n == room) {
            char *more = room < USERS_MOST ? realloc(users__file.text, room + 65536) : NULL;
            if (!more)
                break;
            users__file.text = more;
            room += 65536;
        }
        got = read(fd, users__file.text + n, room - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    if (!users__file.text || got != 0)
        return false;
    users__file.text[n] = '\0';
    users__file.next = users__file.text;
    return true;
}

/* The next line that has as many fields. */
static bool users__line(int fields)
{
    Users *u = &users__file;

    while (u->next && *u->next) {
        char *rest = u->next;
        int   n = 0;
        u->next = strchr(rest, '\n');
        if (u->next)
            *u->next++ = '\0';
        for (; rest && n < fields; n++) {
            u->field[n] = rest;
            rest = n + 1 < fields ? strchr(rest, ':') : NULL;
            if (rest)
                *rest++ = '\0';
        }
        if (n == fields)
            return true;
    }
    return false;
}

/* All of a field is a number of 32 bits. */
static bool users__number(const char *text, unsigned *out)
{
    char         *end;
    unsigned long v = strtoul(text, &end, 10);

    *out = (unsigned)v;
    return *text >= '0' && *text <= '9' && !*end && v <= 0xffffffff;
}

static struct passwd *users__find_user(const char *name, uid_t uid)
{
    char   **f = users__file.field;
    unsigned user, group;

    if (!users__open("/etc/passwd"))
        return NULL;
    while (users__line(7))
        if (users__number(f[2], &user) && users__number(f[3], &group) && (name ? strcmp(f[0], name) == 0 : user == uid)) {
            users__user = (struct passwd){f[0], f[1], user, group, f[4], f[5], f[6]};
            return &users__user;
        }
    return NULL;
}

struct passwd *getpwnam(const char *name)
{
    return users__find_user(name, 0);
}

struct passwd *getpwuid(uid_t uid)
{
    return users__find_user(NULL, uid);
}

int getpwuid_r(uid_t uid, struct passwd *to, char *room, size_t size, struct passwd **found)
{
    struct passwd *p = users__find_user(NULL, uid);

    *found = NULL;
    if (!p)
        return 0;
    *to = *p;
    char **texts[] = {&to->pw_name, &to->pw_passwd, &to->pw_gecos, &to->pw_dir, &to->pw_shell};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t n = strlen(*texts[i]) + 1;
        if (n > size)
            return ERANGE;
        *texts[i] = memcpy(room, *texts[i], n);
        room += n;
        size -= n;
    }
    *found = to;
    return 0;
}

/* The names between the commas of the line that was read. */
static bool users__list(void)
{
    char  *rest = users__file.field[3];
    size_t n = 2;

    for (const char *p = rest; *p; p++)
        n += *p == ',';
    free(users__members);
    users__members = malloc(n * sizeof *users__members);
    if (!users__members)
        return false;
    for (n = 0; rest && *rest; n++) {
        users__members[n] = rest;
        rest = strchr(rest, ',');
        if (rest)
            *rest++ = '\0';
    }
    users__members[n] = NULL;
    return true;
}

static struct group *users__find_group(const char *name, gid_t gid)
{
    char   **f = users__file.field;
    unsigned group;

    if (!users__open("/etc/group"))
        return NULL;
    while (users__line(4))
        if (users__number(f[2], &group) && (name ? strcmp(f[0], name) == 0 : group == gid)) {
            if (!users__list())
                return NULL;
            users__group = (struct group){f[0], f[1], group, users__members};
            return &users__group;
        }
    return NULL;
}

struct group *getgrnam(const char *name)
{
    return users__find_group(name, 0);
}

struct group *getgrgid(gid_t gid)
{
    return users__find_group(NULL, gid);
}

int getgrouplist(const char *user, gid_t gid, gid_t *groups, int *n)
{
    char   **f = users__file.field;
    unsigned group;
    int      room = *n, count = 0;

    if (room > 0)
        groups[0] = gid;
    count++;
    for (bool open = users__open("/etc/group"); open && users__line(4);) {
        if (!users__number(f[2], &group) || group == gid || !users__list())
            continue;
        for (char **m = users__members; *m; m++)
            if (strcmp(*m, user) == 0) {
                if (count < room)
                    groups[count] = group;
                count++;
                break;
            }
    }
    *n = count;
    return count > room ? -1 : count;
}
