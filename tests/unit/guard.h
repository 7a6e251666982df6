/* guard.h - input that ends where memory ends.
 *
 * guard_copy() puts a copy of the bytes flush against an inaccessible page, so
 * that reading one byte too far ends the test at that instruction. A NUL does
 * not follow. One copy is alive at a time.
 */
#ifndef ABX_TEST_GUARD_H
#define ABX_TEST_GUARD_H

#include "base/base.h"

static Str guard_copy(Str s);

#endif
