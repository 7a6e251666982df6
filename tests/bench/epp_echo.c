/* epp_echo.c - the peer of epp_calls.c: a plugin that answers every request with
 * the same record; with the argument `bare`, the same bytes without a look at
 * what was asked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char hello[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocol\":\"epp/1\",\"operation_contract_version\":1,"
    "\"operations\":{\"cli\":[\"sandbox.get\"],\"python\":[]},\"workflow_inputs\":[],\"startup_modes\":[]}}\n";

static void put(const char *p, size_t n)
{
    for (ssize_t done; n > 0; p += done, n -= (size_t)done)
        if ((done = write(1, p, n)) <= 0)
            exit(1);
}

int main(int argc, char **argv)
{
    static char line[1 << 16], answer[1024];
    size_t      have = 0;
    int         bare = argc > 1 && strcmp(argv[1], "bare") == 0;
    ssize_t     got;

    while ((got = read(0, line + have, sizeof line - have - 1)) > 0) {
        have += (size_t)got;
        line[have] = '\0';
        for (char *lf; (lf = memchr(line, '\n', have)) != NULL;) {
            const char *id = bare ? NULL : strstr(line, "\"id\": ");
            int         n = snprintf(answer, sizeof answer,
                                     "{\"jsonrpc\":\"2.0\",\"id\":%6ld,\"result\":{\"sandbox_id\":\"sb-0123456789\"}}\n",
                                     bare ? 0L : strtol(id ? id + 6 : "0", NULL, 10));
            if (!bare && strstr(line, "\"initialize\""))
                put(hello, sizeof hello - 1);
            else
                put(answer, (size_t)n);
            if (!bare && strstr(line, "\"shutdown\""))
                return 0;
            have -= (size_t)(lf + 1 - line);
            memmove(line, lf + 1, have);
        }
    }
    return 0;
}
