/* arena.h - memory that goes all at once: results, and scratch.
 *
 * A function that returns memory takes `Arena *a`, and its result lives as
 * long as that arena. A function that only needs room takes `Arena scratch` by
 * value: what it allocates is forgotten with its copy, with no call for it.
 *
 *     Arena a = arena_make(ARENA_COMMAND);
 *     Str s = arena_fmt(&a, "%s/%s", dir, name);
 *     arena_free(&a);
 *
 * Because of the by-value copies an arena never grows: it reserves its whole
 * range at birth, and the kernel gives it pages as they are touched. Running
 * out ends the program like any lack of memory, so nothing whose size comes
 * from outside is copied into one before it was compared with a limit.
 */
#ifndef ABX_ARENA_H
#define ABX_ARENA_H

#include "base/base.h"

typedef struct Arena {
    char  *p;
    size_t used;
    size_t size;
} Arena;

ABX_FN Arena arena_make(size_t size);
ABX_FN void  arena_free(Arena *a);
ABX_FN void  arena_reset(Arena *a);     /* empty again; what it gave out is gone */

/* n zeroed bytes, aligned for any type. */
ABX_FN void *arena_alloc(Arena *a, size_t n);
ABX_FN void *arena_array(Arena *a, size_t count, size_t size);  /* the product is checked */

/* Copies, each with a NUL behind it that is not counted in n. */
ABX_FN Str   arena_str(Arena *a, Str s);
ABX_FN char *arena_cstr(Arena *a, Str s);
ABX_FN Str   arena_fmt(Arena *a, const char *fmt, ...) ABX_PRINTF(2, 3);

#define arena_new(a, Type) ((Type *)arena_alloc((a), sizeof(Type)))

#endif
