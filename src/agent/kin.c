#include "agent/kin.h"

#include "base/num.h"
#include "base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* The group or the session of a process that lives; 0: none such. */
static pid_t kin__of(int proc, const char *name, bool session)
{
    char     path[300], text[512];
    uint64_t number;
    Str      field = {0};

    snprintf(path, sizeof path, "%s/stat", name);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    /* pid (any name at all) state parent group session */
    const char *end = n > 0 ? memrchr(text, ')', (size_t)n) : NULL;
    if (!end || text + n - end < 3)
        return 0;
    Str rest = {end + 2, (size_t)(text + n - end) - 2};
    bool dead = rest.p[0] == 'Z' || rest.p[0] == 'X';
    for (int i = session ? 0 : 1; i < 4; i++)
        if (!str_cut(&rest, ' ', &field))
            return 0;
    return !dead && num_u64(field, &number) ? (pid_t)number : 0;
}

/* How many there are; each gets the signal, but for 0. Where /proc is not
 * mounted, and so has not even this process in it, the group stands for them. */
static size_t kin__walk(pid_t leader, bool session, int number)
{
    DIR           *dir = opendir("/proc");
    struct dirent *e;
    size_t         found = 0;
    uint64_t       pid;
    bool           any = false;

    while (dir && (e = readdir(dir))) {
        if (!num_u64(str_from(e->d_name), &pid))
            continue;
        any = true;
        if (kin__of(dirfd(dir), e->d_name, session) != leader)
            continue;
        found++;
        if (number)
            kill((pid_t)pid, number);
    }
    if (dir)
        closedir(dir);
    if (!any)
        found = kill(-leader, number) == 0;
    return found;
}

void kin_signal(pid_t session, int number)
{
    kin__walk(session, true, number);
}

bool kin_alive(pid_t leader, bool session)
{
    /* Where no zombie even is left in the group there is nothing to look for. */
    return (session || kill(-leader, 0) == 0) && kin__walk(leader, session, 0) > 0;
}
