/* topics.h - the pages of `abx help TOPIC` that belong to no command. */
#ifndef ABX_TOPICS_H
#define ABX_TOPICS_H

#include "base/base.h"

typedef struct Topic {
    const char *name;
    const char *summary;
    const char *text;
} Topic;

ABX_FN const Topic *topics_all(size_t *count);
ABX_FN const Topic *topics_find(const char *name);      /* NULL: there is none */

#endif
