/* error.h - from the inner Err to the abx_error of abx.h. */
#ifndef ABX_ERROR_H
#define ABX_ERROR_H

#include "abx.h"
#include "base/err.h"

/* Fills in *out; -1, so that a call can `return error_give(e, &err)`. The
 * suggestion is the Err's own hint, else the code's standing one. */
ABX_FN int error_give(abx_error *out, const Err *err);

#endif
