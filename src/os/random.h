/* random.h - bytes nobody can guess, from the kernel. */
#ifndef ABX_RANDOM_H
#define ABX_RANDOM_H

#include "base/base.h"

/* n random bytes. A kernel that has none is one we cannot run on: BUG(). */
ABX_FN void random_bytes(void *p, size_t n);

/* `digits` hexadecimal digits and a NUL, an even number and at most 64 of them:
 * a name, an id or a boundary that is not there already and that nobody foresees. */
ABX_FN void random_hex(char *text, size_t digits);

#endif
