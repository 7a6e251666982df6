#include "agent/agent.h"

#include "agent/copier.h"
#include "agent/daemon.h"
#include "agent/helper.h"
#include "agent/init.h"
#include "agent/watcher.h"
#include "base/str.h"

#include <stdio.h>

typedef struct AgentPart {
    const char *word;           /* abx agent WORD */
    const char *name;           /* or the program is called so; NULL: never */
    int       (*run)(int argc, char **argv);
} AgentPart;

static const AgentPart agent__parts[] = {
    {"serve", "execd", daemon_main},
    {"init", "bootstrap.sh", init_main},
    {"listen", NULL, helper_listen},
    {"pipe", NULL, helper_pipe},
    {"lines", NULL, helper_lines},
    {"tar-in", NULL, copier_in},
    {"tar-out", NULL, copier_out},
    {"hash", NULL, copier_hash},
    {"watch", NULL, watcher_main},
};

static const char *agent__base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool agent_is_name(const char *argv0)
{
    for (size_t i = 0; argv0 && i < COUNT_OF(agent__parts); i++)
        if (agent__parts[i].name && strcmp(agent__base(argv0), agent__parts[i].name) == 0)
            return true;
    return false;
}

int agent_main(int argc, char **argv)
{
    bool named = argc > 0 && agent_is_name(argv[0]);

    for (size_t i = 0; i < COUNT_OF(agent__parts); i++) {
        const AgentPart *p = &agent__parts[i];
        if (named && p->name && strcmp(agent__base(argv[0]), p->name) == 0)
            return p->run(argc - 1, argv + 1);
        if (!named && argc > 1 && strcmp(argv[1], p->word) == 0)
            return p->run(argc - 2, argv + 2);
    }
    bool asked = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    fputs("usage: abx agent serve [--host ADDRESS] [--port N]\n"
          "       abx agent init [PROGRAM [ARGUMENT...] | -c SHELL-LINE]\n"
          "       abx agent listen | pipe | lines      (as abx starts itself in a sandbox)\n", asked ? stdout : stderr);
    return asked ? 0 : 2;
}
