/* armor.h - bytes as lines of text, for a channel that carries text alone.
 *
 * A line is `TAG SEQ BASE64` and LF: the tag is 32 lower-case hex digits that
 * both sides know, SEQ counts lines from 0 and has no leading zeros, the rest
 * is at most ARMOR_BYTES of what is carried. What is not such a line is passed
 * over: a shell that greets, another program's complaint, the tag alone. A line
 * with the tag and a SEQ that is not the next one is an error, for then a line
 * was lost.
 *
 * Memory: a reader holds one line at most; armor_free().
 */
#ifndef ABX_ARMOR_H
#define ABX_ARMOR_H

#include "base/buf.h"
#include "base/err.h"

enum { ARMOR_TAG = 32, ARMOR_BYTES = 48 << 10, ARMOR_LINE_MAX = 2 << 20 };

typedef struct Armor {
    char     tag[ARMOR_TAG + 1];
    uint64_t seq;               /* of the next line */
    Buf      line;              /* the reader's: the beginning of a line, */
    Buf      bytes;             /* and what the last one carried */
    bool     skipping;          /* in a line that is too long to be one of ours */
} Armor;

ABX_FN Armor armor_make(const char tag[static ARMOR_TAG + 1]);     /* for one direction */
ABX_FN void  armor_free(Armor *a);

/* Lines that carry `bytes`, each at most `piece` of them (0: ARMOR_BYTES). */
ABX_FN void armor_put(Armor *a, Buf *to, Str bytes, size_t piece);

/* STEP_DONE: *bytes came, good until the next call. STEP_MORE: *in is used up.
 * STEP_ERR: ERR_INPUT, E8020. */
ABX_FN Step armor_next(Armor *a, Str *in, Str *bytes, Err *err) ABX_CHECK;

#endif
