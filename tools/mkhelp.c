/* mkhelp < src/cli/help.txt > topics_data.h - the pages of the help for the program,
 * as a C header: "@ NAME" pages are put where a line "@NAME" stands. cli/topics
 * takes them apart. A host tool.
 */
#include "packed.h"

enum { SHARED_MAX = 16 };

static struct { char name[32], text[4096]; } shared[SHARED_MAX];
static size_t shared_count;

static void append(char *to, size_t room, const char *line)
{
    if (strlen(to) + strlen(line) >= room)
        die("mkhelp: a page is longer than expected");
    strcat(to, line);
}

int main(void)
{
    static char pages[PACKED_MAX];
    char        line[1024], *into = pages;
    size_t      room = sizeof pages;

    while (fgets(line, sizeof line, stdin)) {
        if (!strchr(line, '\n'))
            die("mkhelp: a line is longer than expected, or has no end");
        if (*line == '#')
            continue;
        if (strncmp(line, "@ ", 2) == 0) {
            if (shared_count == SHARED_MAX || strlen(line) >= sizeof shared->name)
                die("mkhelp: more shared pages than expected");
            sprintf(shared[shared_count].name, "@%s", line + 2);
            into = shared[shared_count++].text;
            room = sizeof shared->text;
            continue;
        }
        if (strncmp(line, "= ", 2) == 0 || strncmp(line, "$ ", 2) == 0) {
            into = pages;
            room = sizeof pages;
        }
        size_t i = 0;
        while (i < shared_count && strcmp(shared[i].name, line) != 0)
            i++;
        if (*line == '@' && i == shared_count)
            die("mkhelp: a line names a shared page that does not stand before it");
        append(into, room, *line == '@' ? shared[i].text : line);
    }
    printf("/* made by tools/mkhelp from src/cli/help.txt */\n");
    print_packed("TOPICS", "topics", (unsigned char *)pages, strlen(pages));
    return 0;
}
