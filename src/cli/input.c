#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/str.h"
#include "os/nowait.h"
#include "os/tty.h"

/* What kind of thing it is. A closed descriptor is one that cannot be read
 * (tty_fill_standard). */
static InputKind input__kind(bool asked)
{
    int         flags = fcntl(STDIN_FILENO, F_GETFL);
    ABX_UNSET struct stat st;

    if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY || fstat(STDIN_FILENO, &st) != 0)
        return INPUT_NONE;
    if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
        return INPUT_NONE;
    if (tty_is(STDIN_FILENO))
        return asked ? INPUT_TERMINAL : INPUT_NONE;
    return S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) ? INPUT_PIPE : INPUT_FILE;
}

bool input_look(Input *in, bool asked, Err *err)
{
    in->kind = input__kind(asked);
    in->rest = (Str){0};
    in->unsent = false;
    in->ended = in->told = in->kind == INPUT_NONE;
    if (in->kind == INPUT_NONE || in->kind == INPUT_TERMINAL)
        return true;
    if (!input_read(in, err))
        return false;
    if (in->ended)
        in->kind = INPUT_NONE;
    return true;
}

bool input_matters(const Input *in, bool asked)
{
    return in->rest.n > 0 || (asked && in->kind != INPUT_NONE);
}

int input_fd(const Input *in)
{
    return in->ended || in->rest.n ? -1 : STDIN_FILENO;
}

bool input_read(Input *in, Err *err)
{
    ssize_t n = nowait_read(STDIN_FILENO, in->block, sizeof in->block);

    if (n < 0 && errno == EAGAIN)
        return true;
    if (n < 0)
        return err_sys(err, errno, E0000, "cannot read standard input");
    in->rest = (Str){in->block, (size_t)n};
    in->ended = n == 0;
    return true;
}

int input_give(Input *in, abx_exec *x, abx_error *e)
{
    if (in->unsent)
        return 0;
    if (in->rest.n) {
        ptrdiff_t n = abx_exec_write(x, in->rest.p, in->rest.n, e);
        if (n < 0)
            return -1;
        str_skip(&in->rest, (size_t)n);
    }
    if (!in->ended || in->told)
        return 0;
    in->told = true;
    return abx_exec_end_input(x, e);
}
