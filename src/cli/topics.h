/* topics.h - the long texts of the help, and the topics of `abx help TOPIC` that
 * belong to no command. The texts stand in help.txt, from which the build packs
 * them; they are unpacked when one is asked for, in 0.2 ms.
 */
#ifndef ABX_TOPICS_H
#define ABX_TOPICS_H

#include "base/buf.h"

typedef struct Topic {
    const char *name;
    const char *summary;
} Topic;

ABX_FN const Topic *topics_all(size_t *count);
ABX_FN bool topics_has(const char *name);

/* The page of a command ('=') or its examples ('$'): NOUN VERB, or what is not "" of
 * them. Empty where there is none. It lies in *pages, which the caller frees. */
ABX_FN Str topics_page(char kind, const char *noun, const char *verb, Buf *pages);

#endif
