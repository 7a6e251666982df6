#include "epp_script.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The handshake that epp_test_spec expects. */
#define EPP_SCRIPT_HELLO \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocol\":\"epp/1\",\"plugin\":{},\"operation_contract_version\":1," \
    "\"operations\":{\"cli\":[\"sandbox.create\",\"sandbox.list\",\"sandbox.get\",\"sandbox.delete\",\"sandbox.timeout\"," \
    "\"exec.run\",\"exec.stream\",\"files.read\",\"files.write\",\"files.stat\",\"files.list\",\"ports.resolve\"]," \
    "\"python\":[\"sandbox.create\"]},\"workflow_inputs\":[],\"startup_modes\":[\"x\"]}}\n"

static char    *epp_script_line = NULL;     /* the request read last */
static size_t   epp_script_room = 0;
static long     epp_script_id = 0;

static void epp_script_print(int fd, const char *text, size_t n)
{
    for (ssize_t done; n > 0; text += done, n -= (size_t)done)
        if ((done = write(fd, text, n)) < 0)
            _exit(3);
}

/* @ and $ in a text. */
static void epp_script_fill(FILE *to, const char *text)
{
    for (; *text && *text != '\n'; text++)
        if (*text == '@')
            fprintf(to, "%ld", epp_script_id);
        else if (*text == '$')
            fprintf(to, "%.*s", (int)strcspn(epp_script_line ? epp_script_line : "", "\n"), epp_script_line);
        else
            putc(*text, to);
}

static void epp_script_read(void)
{
    if (getline(&epp_script_line, &epp_script_room, stdin) < 0)
        _exit(0);
    const char *id = strstr(epp_script_line, "\"id\": ");
    if (id)
        epp_script_id = strtol(id + 6, NULL, 10);
}

static void epp_script_pid(void)
{
    FILE *f = fopen("pids", "a");

    fprintf(f, "%d\n", (int)getpid());
    fclose(f);
}

static void epp_script_sleep(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&t, &t) != 0)
        continue;
}

static void epp_script_child(bool session)
{
    if (fork() != 0) {
        epp_script_sleep(50);           /* it is in `pids` by then */
        return;
    }
    if (session)
        setsid();
    epp_script_pid();
    for (;;)
        pause();
}

static void epp_script_repeat(long n, const char *text)
{
    char   block[65536] = "";
    size_t length = strcspn(text, "\n");
    long   fit = (long)(sizeof block / (length ? length : 1));

    for (long i = 0; i < fit && i < n; i++)
        memcpy(block + i * (long)length, text, length);
    for (char *p = block; (p = memchr(p, '|', length * (size_t)fit - (size_t)(p - block))) != NULL;)
        *p = '\n';
    for (; n > 0; n -= fit)
        epp_script_print(1, block, length * (size_t)(n < fit ? n : fit));
}

static int epp_script_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void epp_script_self(void)
{
    FILE         *f = fopen("log", "a");
    size_t        n = 0;
    struct rlimit core;
    int           open_fds = 0;

    for (int fd = 3; fd < 256; fd++)
        open_fds += fd != fileno(f) && fcntl(fd, F_GETFD) != -1;
    while (environ[n])
        n++;
    qsort(environ, n, sizeof *environ, epp_script_order);
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%s\n", environ[i]);
    getrlimit(RLIMIT_CORE, &core);
    fprintf(f, "%s, session %d, group %d, descriptors %d, core %llu\n", getcwd((char[1000]){0}, 1000), getsid(0) == getpid(),
            getpgrp() == getpid(), open_fds, (unsigned long long)core.rlim_cur);
    fclose(f);
}

static void epp_script_hello(bool log)
{
    epp_script_read();
    if (log) {
        FILE *f = fopen("log", "a");
        epp_script_fill(f, "$");
        putc('\n', f);
        fclose(f);
    }
    epp_script_print(1, EPP_SCRIPT_HELLO, sizeof EPP_SCRIPT_HELLO - 1);
}

static void epp_script_step(const char *s)
{
    char  *rest;
    long   n = strtol(s + 1, &rest, 10);
    size_t length = strcspn(s + 1, "\n");
    FILE  *f;

    switch (*s) {
    case '<':
        epp_script_read();
        break;
    case '>':
        epp_script_fill(stdout, s + 1);
        putc('\n', stdout);
        fflush(stdout);
        break;
    case '.':
        epp_script_fill(stdout, s + 1);
        fflush(stdout);
        break;
    case '*':
        epp_script_repeat(n, rest + 1);
        break;
    case 'e':
        epp_script_print(2, s + 1, length + 1);
        break;
    case 's':
        epp_script_sleep(n);
        break;
    case 't':
        signal(SIGTERM, SIG_IGN);
        break;
    case 'c':
        close((int)n);
        break;
    case 'f':
    case 'F':
        epp_script_child(*s == 'F');
        break;
    case 'h':
    case 'H':
        epp_script_hello(*s == 'H');
        break;
    case 'n':
        for (; n > 0; n--)
            printf("{\"method\":\"x\",\"params\":{\"process_id\":%ld}}\n", n);
        fflush(stdout);
        break;
    case 'v':
        epp_script_self();
        break;
    case '=':
        _exit(0);
    case 'w':
        do
            epp_script_read();
        while (!strstr(epp_script_line, "\"shutdown\""));
        printf("{\"id\":%ld,\"result\":null}\n", epp_script_id);
        fflush(stdout);
        _exit(0);
    case 'z':
        for (;;)
            pause();
    case 'x':
        _exit((int)n);
    case 'k':
        kill(getpid(), SIGKILL);
        break;
    case 'd':
        f = fopen("log", "a");
        epp_script_fill(f, s + 1);
        putc('\n', f);
        fclose(f);
        break;
    default:
        _exit(99);
    }
}

/* What this process is to do: the part behind as many `=` as there were others. */
static const char *epp_script_part(const char *s)
{
    struct stat st;
    FILE       *f = fopen("starts", "a");

    fstat(fileno(f), &st);
    putc('.', f);
    fclose(f);
    for (off_t i = 0; i < st.st_size && strstr(s, "\n=\n"); i++)
        s = strstr(s, "\n=\n") + 3;
    return s;
}

static void epp_script_main(int argc, char **argv)
{
    if (argc < 3 || strcmp(argv[1], "--plugin") != 0)
        return;
    epp_script_pid();
    signal(SIGPIPE, SIG_IGN);
    for (const char *s = epp_script_part(argv[2]); *s; s += s[strcspn(s, "\n")] != 0 ? strcspn(s, "\n") + 1 : strlen(s))
        epp_script_step(s);
    _exit(0);
}
