/* copier.h - `abx agent tar-in`, `tar-out` and `hash`: the end of a copy that is
 * in the sandbox (data/frame.h has their words, sync/item.h what they say).
 *
 * tar-in, ended by HUP, INT or TERM, or by the end of its input or its output,
 * first removes what is not whole; the other two leave nothing.
 */
#ifndef ABX_COPIER_H
#define ABX_COPIER_H

#include "base/base.h"

/* The words behind them. Exit statuses. */
ABX_FN int copier_in(int argc, char **argv);
ABX_FN int copier_out(int argc, char **argv);
ABX_FN int copier_hash(int argc, char **argv);

#endif
