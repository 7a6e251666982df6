/* delta.h - one content told by another (gitformat-pack, "deltified representation"). */
#ifndef ABX_DELTA_H
#define ABX_DELTA_H

#include "base/err.h"

/* How many bytes the base has and the result will have; *delta is moved past
 * them. False (E8010): cut short, or a number past 64 bits. */
ABX_FN bool delta_sizes(Str *delta, uint64_t *base, uint64_t *result, Err *err) ABX_CHECK;

/* All instructions of a delta whose sizes were read: just n bytes into out.
 * False (E8010): more or less than n, or from beyond the base's end. */
ABX_FN bool delta_apply(Str base, Str delta, char *out, size_t n, Err *err) ABX_CHECK;

#endif
