#include "agent/helper.h"

#include "agent/door.h"
#include "agent/front.h"
#include "agent/keeper.h"
#include "base/base64.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/armor.h"
#include "os/fs.h"
#include "os/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* What this process was told in its environment. */
typedef struct Helper {
    char *token, *tag;          /* NULL: not given */
    Str   first;                /* the client's first bytes */
    Str   cwd;
} Helper;

static int helper__usage(const char *what)
{
    fprintf(stderr, "abx agent: %s\n", what);
    return 2;
}

/* A variable, taken out of the environment, also of what /proc shows of it. */
static char *helper__take(const char *name)
{
    char *value = getenv(name), *copy = NULL;

    if (value) {
        copy = mem_str(str_from(value));
        mem_wipe(value, strlen(value));
        unsetenv(name);
    }
    return copy;
}

static bool helper__hex(const char *text)
{
    return text && strlen(text) == ARMOR_TAG && strspn(text, "0123456789abcdef") == ARMOR_TAG;
}

/* Base64, or @NAME: a file here, which is nobody's after this. */
static bool helper__first(const char *text, Arena *a, Str *out)
{
    Buf         b = buf_make(LIMIT_CARRY_FIRST);
    ABX_UNSET struct stat st;
    ABX_UNSET Err err;

    if (!text)
        return true;
    if (text[0] != '@')
        return base64_decode(a, str_from(text), out);
    const char *name = text + 1;
    if (strchr(name, '/') || lstat(name, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    bool ok = fs_read(name, &b, &err);
    unlink(name);
    if (ok)
        *out = arena_str(a, buf_str(&b));
    buf_free(&b);
    return ok;
}

/* All that is ours leaves the environment before anything is started. */
static bool helper__read(Helper *h, Arena *a)
{
    char *first, *cwd;

    proc_std_fds();
    proc_no_core();
    h->token = helper__take("ABX_AGENT_TOKEN");
    h->tag = helper__take("ABX_AGENT_TAG");
    first = helper__take("ABX_AGENT_INPUT");
    cwd = getenv("OLDPWD");
    if (cwd && cwd[0] == '/')
        h->cwd = arena_str(a, str_from(cwd));
    /* They tell where the helper is, which is none of a command's business. */
    unsetenv("OLDPWD");
    unsetenv("PWD");
    unsetenv("_");
    bool ok = helper__first(first, a, &h->first);
    mem_free(first);
    return ok;
}

static void helper__let_go(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int i = 0; i < 3 && fd >= 0; i++)
        dup2(fd, i);
    if (fd > 2)
        close(fd);
}

static void helper__free(Helper *h, Arena *a)
{
    mem_free(h->token);
    mem_free(h->tag);
    arena_free(a);
}

/* ---- listen ---- */

static void helper__wait(const Helper *h, const Door *door)
{
    Buf        rest = buf_make(LIMIT_COPY_BLOCK);
    KeeperWish wish = {.web = true, .first = h->first, .cwd = h->cwd, .pid = (uint32_t)getpid()};

    setsid();
    helper__let_go();
    wish.fd = door_wait(door, str_from(h->token), &rest);
    wish.rest = buf_str(&rest);
    if (wish.fd >= 0)
        keeper_run(&wish);
    buf_free(&rest);
}

int helper_listen(int argc, char **argv)
{
    Arena  a = arena_make(4 * LIMIT_CARRY_FIRST);
    Helper h = {0};
    ABX_UNSET Err err;
    Door   door = {.port_fd = -1};
    int    status = 0;

    (void)argv;
    if (!helper__read(&h, &a) || argc || !helper__hex(h.token))
        status = helper__usage("listen wants ABX_AGENT_TOKEN, 32 hexadecimal digits");
    else if (!door_open(&door, &err))
        status = helper__usage(err.text);
    pid_t pid = door.port_fd < 0 ? 1 : fork();
    if (pid == 0)
        helper__wait(&h, &door);
    else if (pid < 0)
        status = helper__usage("cannot fork");
    else if (door.port_fd >= 0)
        printf("ABX1 port %d\n", door.port);
    helper__free(&h, &a);
    return status;
}

/* ---- pipe, lines ---- */

static bool helper__is_null(int fd)
{
    ABX_UNSET struct stat st;

    return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

static int helper__front(Helper *h, const char *tag)
{
    FrontWish front = {.tag = tag, .reads = !helper__is_null(0)};
    uint32_t  pid = (uint32_t)getpid();
    int       ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return helper__usage("no socket");
    front.link = ends[0];
    front.keeper = fork();
    if (front.keeper < 0)
        return helper__usage("cannot fork");
    close(ends[front.keeper == 0 ? 0 : 1]);
    if (front.keeper) {
        front_run(&front);
        return 0;
    }
    KeeperWish wish = {.fd = ends[1], .first = h->first, .cwd = h->cwd, .pid = pid};
    setsid();
    helper__let_go();
    keeper_run(&wish);
    return 0;
}

int helper_pipe(int argc, char **argv)
{
    Arena  a = arena_make(4 * LIMIT_CARRY_FIRST);
    Helper h = {0};

    (void)argv;
    int status = !helper__read(&h, &a) || argc ? helper__usage("pipe takes no words") : helper__front(&h, NULL);
    helper__free(&h, &a);
    return status;
}

int helper_lines(int argc, char **argv)
{
    Arena  a = arena_make(4 * LIMIT_CARRY_FIRST);
    Helper h = {0};

    (void)argv;
    int status = !helper__read(&h, &a) || argc || !helper__hex(h.tag)
                     ? helper__usage("lines wants ABX_AGENT_TAG, 32 hexadecimal digits")
                     : helper__front(&h, h.tag);
    helper__free(&h, &a);
    return status;
}
