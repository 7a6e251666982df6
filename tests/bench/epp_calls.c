/* epp_calls.c ECHO CALLS ROUNDS - calls of a plugin, one after the other, and the
 * same bytes over two bare pipes between the same two programs, in turn. Prints
 * a line for each round: microseconds for a call, and bare. */
#define ABX_TEST 1
#include "abx.c"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char epp_calls_request[] =
    "{\"jsonrpc\": \"2.0\", \"id\": 123456, \"method\": \"sandbox.get\", \"params\": {\"sandbox_id\": \"sb-0123456789\"}}\n";
static const char epp_calls_answer[] =
    "{\"jsonrpc\":\"2.0\",\"id\":123456,\"result\":{\"sandbox_id\":\"sb-0123456789\"}}\n";

static double epp_calls_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static Provider *epp_calls_open(const char *echo)
{
    static Str   lifecycle[1], get[1], command[1];
    ProviderHost host = {.cancel_fd = -1};
    Provider    *p;
    Err          err;

    lifecycle[0] = STR("sandbox.lifecycle");
    get[0] = STR("sandbox.get");
    command[0] = str_from(echo);
    EppSpec spec = {.id = STR("echo"), .name = STR("Echo"), .files = "/", .data_dir = "/", .command = {command, 1},
                    .startup_ms = 10000, .call_ms = 10000, .features = {lifecycle, 1}, .cli = {get, 1}};
    if (!epp_open(&spec, (Settings){0}, &host, &p, &err))
        exit(1);
    return p;
}

static double epp_calls_plugin(Provider *p, int calls)
{
    Arena  a = arena_make(1 << 20);
    double start = epp_calls_now();

    for (int i = 0; i < calls; i++) {
        SandboxInfo info;
        Err         err;
        arena_reset(&a);
        if (!p->kind->get(p, STR("sb-0123456789"), &a, &info, DEADLINE_NONE, &err)) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
    }
    arena_free(&a);
    return (epp_calls_now() - start) / calls;
}

static double epp_calls_bare(int in, int out, int calls)
{
    char   block[4096];
    double start = epp_calls_now();

    for (int i = 0; i < calls; i++) {
        if (write(in, epp_calls_request, sizeof epp_calls_request - 1) != sizeof epp_calls_request - 1)
            exit(1);
        for (size_t have = 0; have < sizeof epp_calls_answer - 1;) {
            ssize_t n = read(out, block, sizeof block);
            if (n <= 0)
                exit(1);
            have += (size_t)n;
        }
    }
    return (epp_calls_now() - start) / calls;
}

int main(int argc, char **argv)
{
    int to[2], from[2], calls = argc == 4 ? atoi(argv[2]) : 0, rounds = argc == 4 ? atoi(argv[3]) : 0;

    if (argc != 4 || pipe(to) != 0 || pipe(from) != 0)
        return 2;
    if (fork() == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        close(from[0]);
        execl(argv[1], argv[1], "bare", (char *)NULL);
        _exit(1);
    }
    signal_ignore_writes();         /* as the program does */
    Provider *p = epp_calls_open(argv[1]);
    epp_calls_plugin(p, calls / 10 + 1);
    epp_calls_bare(to[1], from[0], calls / 10 + 1);
    for (int i = 0; i < rounds; i++) {
        double plugin = epp_calls_plugin(p, calls);
        printf("%.3f %.3f\n", plugin, epp_calls_bare(to[1], from[0], calls));
    }
    p->kind->close(p);
    return 0;
}
