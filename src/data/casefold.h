/* casefold.h - full case folding (Unicode, CaseFolding.txt, C and F), as Python's
 * str.casefold() has it: "Straße" and "STRASSE" are one.
 *
 * For telling whether a file system that ignores case would take two names for
 * one. Nothing is normalised. The table is casefold_table.h.
 *
 * Memory: the caller's Buf.
 */
#ifndef ABX_CASEFOLD_H
#define ABX_CASEFOLD_H

#include "base/buf.h"

enum { CASEFOLD_MOST = 3 };     /* characters that one becomes; at most three times the bytes */

/* What c becomes: how many characters, and which. */
ABX_FN size_t casefold_char(uint32_t c, uint32_t out[static CASEFOLD_MOST]);

/* s, folded, behind what is in the Buf. */
ABX_FN void casefold_add(Buf *to, Str s);

#endif
