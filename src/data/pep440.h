/* pep440.h - versions of Python packages (PEP 440), and lists of comparators
 * over them.
 *
 *     Version have;
 *     if (!pep440_parse(STR("0.4.0a6"), &have)) ...
 *     if (!pep440_list(STR(">=0.4.0a1, <1"), &have, scratch, &yes)) ...
 *
 * The order is the total order of PEP 440's versions and nothing else: of its
 * rules for specifiers, none applies (specification of the provider host, 2.9,
 * with rows 4 and 5 of docs/differences.md). Numbers have any size.
 *
 * Memory: a Version holds views of the text it was parsed from.
 */
#ifndef ABX_PEP440_H
#define ABX_PEP440_H

#include "base/arena.h"

typedef struct Version {
    Str  epoch;                 /* digits without leading zeros; "" is 0, here and below */
    Str  release;               /* "1.0.12", as written */
    char pre;                   /* 'a', 'b', 'c' for rc; 0: none */
    bool post, dev;
    Str  pre_number, post_number, dev_number;
    Str  local;                 /* as written; p NULL: none */
} Version;

/* The whole text must be one; white space around it is allowed. */
ABX_FN bool pep440_parse(Str text, Version *out) ABX_CHECK;

/* Negative, 0 or positive, as a sorts before, with or behind b. */
ABX_FN int pep440_compare(const Version *a, const Version *b);

/* Whether `have` satisfies every comparator of the list; an empty list is
 * satisfied. False: one of them is none, whatever the others say; *bad is it. */
ABX_FN bool pep440_list(Str list, const Version *have, Arena scratch, bool *yes, Str *bad) ABX_CHECK;

#endif
