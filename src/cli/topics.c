#include "cli/topics.h"

#include "base/err.h"
#include "base/str.h"
#include "data/inflate.h"
#include <topics_data.h>
#include <stdio.h>

static const Topic topics__rows[] = {
    {"exit-codes", "what the exit status means"},
    {"environment", "variables that abx reads"},
    {"output", "what is printed, and the JSON documents"},
    {"copying", "where copied files go, and what is compared"},
    {"providers", "backends and their settings"},
};

const Topic *topics_all(size_t *count)
{
    *count = COUNT_OF(topics__rows);
    return topics__rows;
}

bool topics_has(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(topics__rows); i++)
        if (strcmp(topics__rows[i].name, name) == 0)
            return true;
    return false;
}

Str topics_page(char kind, const char *noun, const char *verb, Buf *pages)
{
    ABX_UNSET char head[64];
    Str  rest, line, page = {0};
    ABX_UNSET Err err;

    *pages = buf_make(TOPICS_RAW_SIZE);
    if (!inflate_gzip((Str){(const char *)topics_data, sizeof topics_data}, pages, &err))
        BUG("embedded help");
    snprintf(head, sizeof head, "%c %s%s%s", kind, noun, *noun && *verb ? " " : "", verb);
    for (rest = buf_str(pages); rest.n && str_cut(&rest, '\n', &line);) {
        if (line.n > 1 && line.p[1] == ' ' && (line.p[0] == '=' || line.p[0] == '$')) {
            if (page.p)
                break;
            if (str_eq(line, str_from(head)))
                page.p = line.p + line.n + 1;     /* every line ends in a line feed */
        } else if (page.p)
            page.n = (size_t)(line.p + line.n + 1 - page.p);
    }
    return page;
}
