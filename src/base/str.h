/* str.h - looking at text: cutting, comparing, finding. Nothing here copies. */
#ifndef ABX_STR_H
#define ABX_STR_H

#include "base/base.h"

ABX_FN Str  str_from(const char *cstr);             /* NULL gives the empty Str */
ABX_FN bool str_starts(Str s, Str head);
ABX_FN bool str_ends(Str s, Str tail);
ABX_FN bool str_eq_nocase(Str a, Str b);            /* ASCII letters alone are folded */
ABX_FN bool str_has(Str s, char c);
ABX_FN Str  str_trim(Str s);                        /* without SP, TAB, CR, LF at both ends */
ABX_FN Str  str_from_to(Str s, size_t from, size_t to);     /* bytes [from, to) */

/* Where c first stands in s, or s.n. */
ABX_FN size_t str_find(Str s, char c);

/* Cut *rest at the first c: *head is what stood before it, *rest what is
 * behind. Without a c, *head is all of it and *rest empty. False when *rest
 * was exhausted before: its p is NULL then. An empty field at the end counts. */
ABX_FN bool str_cut(Str *rest, char c, Str *head);

/* Less than, equal to or greater than 0, as a comes before b in byte order: of
 * two of which one begins the other, the shorter first. */
ABX_FN int str_order(Str a, Str b);
ABX_FN int str_by_bytes(const void *a, const void *b);      /* the same of two Strs, for qsort() */

/* A control character (C0 or DEL) is in it. */
ABX_FN bool str_has_control(Str s);

#endif
