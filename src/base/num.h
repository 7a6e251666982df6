/* num.h - numbers from text, exact or not at all.
 *
 * The whole text must be the number: no blanks, no sign but a leading '-' for
 * num_i64(), no underscores, nothing behind. False when it is not, or when it
 * does not fit; *out is untouched then.
 */
#ifndef ABX_NUM_H
#define ABX_NUM_H

#include "base/base.h"

ABX_FN bool num_u64(Str s, uint64_t *out) ABX_CHECK;            /* decimal */
ABX_FN bool num_i64(Str s, int64_t *out) ABX_CHECK;             /* decimal */
ABX_FN bool num_hex(Str s, uint64_t *out) ABX_CHECK;            /* hexadecimal digits, no 0x */

/* Seconds from what a person writes: `90`, `30s`, `5m`, `1h30m`, `250ms`, each
 * unit once, from large to small. The result is in milliseconds. */
ABX_FN bool num_duration(Str s, int64_t *ms) ABX_CHECK;

#endif
