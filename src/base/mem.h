/* mem.h - memory of things that live until somebody closes them.
 *
 * Results belong in an Arena, bytes from outside in a Buf; this is for the few
 * objects with an open and a close: connections, sessions, child processes.
 * Never returns NULL: base_no_memory() instead.
 */
#ifndef ABX_MEM_H
#define ABX_MEM_H

#include "base/base.h"

ABX_FN void *mem_new(size_t size);                          /* zeroed; at least one byte */
ABX_FN void *mem_grow(void *p, size_t count, size_t size);  /* realloc of count * size bytes; what is new is not zeroed */
ABX_FN char *mem_str(Str s);                                /* a copy with a NUL behind it */
ABX_FN void  mem_free(void *p);                             /* NULL is fine */

/* Overwrites n bytes in a way that the compiler does not drop: for keys. */
ABX_FN void  mem_wipe(void *p, size_t n);

#endif
