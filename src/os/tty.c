#include "os/tty.h"

#include <fcntl.h>
#include <unistd.h>

bool tty_is(int fd)
{
    return isatty(fd) == 1;
}

void tty_fill_standard(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);   /* the lowest free one: fd */
}

bool tty_writable(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}
