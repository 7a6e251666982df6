/* utf8.h - UTF-8 as Unicode and RFC 3629 define it: no overlong forms, no
 * surrogates, nothing above U+10FFFF.
 *
 *     while (s.n)
 *         if (utf8_next(&s, &c)) ...
 *
 * What is ill-formed is replaced as Unicode 3.9 recommends and browsers do:
 * each maximal subpart (the longest start of a character that could still have
 * become one, else one byte) becomes one U+FFFD.
 *
 * Memory: none but what utf8_clean() puts into its arena.
 */
#ifndef ABX_UTF8_H
#define ABX_UTF8_H

#include "base/arena.h"
#include "base/buf.h"

/* Take one character off the front of *s, which must not be empty. False: it
 * was ill-formed, *c is U+FFFD, and its maximal subpart was taken. */
ABX_FN bool utf8_next(Str *s, uint32_t *c);

/* How many bytes at the front of s are well-formed: s.n when all are. What is
 * cut in the middle of a character is not. */
ABX_FN size_t utf8_good(Str s);
ABX_FN bool  utf8_valid(Str s);

/* White space as Unicode has it, with U+001C to U+001F, which Python counts
 * too; and s without any at both ends. */
ABX_FN bool utf8_space(uint32_t c);
ABX_FN Str  utf8_trim(Str s);

/* Write a character to out: how many bytes it took, 1 to 4. A surrogate, or
 * what is above U+10FFFF, is written as U+FFFD. */
ABX_FN size_t utf8_put(char out[static 4], uint32_t c);

/* A copy in which what is ill-formed was replaced, with a NUL behind it. It
 * has at most three times the bytes. */
ABX_FN Str  utf8_clean(Arena *a, Str s);
ABX_FN  void utf8_add(Buf *to, Str s);

#endif
