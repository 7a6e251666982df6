/* base.h - the words every other file uses. Includes no layer, does no I/O. */
#ifndef ABX_BASE_H
#define ABX_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ABX_FN marks a function that other files may call. In the one-unit build it
 * is static, so the compiler names every function nobody calls; in the split
 * check it is external, so the linker names every one nobody defines. The
 * library and the unit tests use a part of the functions only. */
#if defined(ABX_UNITY) && defined(ABX_PROGRAM)
#define ABX_FN static
#elif defined(ABX_UNITY)
#define ABX_FN static __attribute__((unused))
#else
#define ABX_FN
#endif

/* ABX_SET marks a function of a set that is complete on purpose, such as both
 * ways of an encoding; the program may leave it uncalled. */
#define ABX_SET ABX_FN __attribute__((unused))

/* A local that is set before it is read, on every way: the release, which zeroes
 * what is not initialized, leaves it as it is. For what is large: an Err has 4 KB. */
#define ABX_UNSET __attribute__((uninitialized))

#define ABX_CHECK        __attribute__((warn_unused_result))
#define ABX_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define ABX_NORETURN     __attribute__((noreturn))

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* A view of bytes: never owned, not NUL-terminated unless its maker says so.
 * {NULL, 0} is the empty one. */
typedef struct Str { const char *p; size_t n; } Str;
#define STR(lit)   ((Str){(lit), sizeof(lit) - 1})
/* No Str has 2 GiB: every limit is far below. A NULL has no byte, and printf asks none of it then. */
#define STR_ARG(s) (int)(s).n, (s).p /* for "%.*s"; s is evaluated twice */

typedef struct Strs { const Str *v; size_t n; } Strs;     /* an array of them */

static inline bool str_eq(Str a, Str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Move *s past its first n bytes; n must not be more than it has. */
static inline void str_skip(Str *s, size_t n)
{
    if (n)              /* the empty Str has no address to add to */
        s->p += n;
    s->n -= n;
}

/* What an incremental reader says of the bytes it was given. */
typedef enum Step { STEP_ERR = -1, STEP_MORE = 0, STEP_DONE = 1 } Step;

/* A mistake of ours, never of the input: one line on stderr, then abort(). */
#define BUG(what) base_bug(__FILE__, __LINE__, what)
ABX_FN ABX_NORETURN void base_bug(const char *file, int line, const char *what);

/* No memory left: one line on stderr, then exit status 1, or base_fail_with()'s. The one way in which
 * the library ends its process. */
ABX_FN ABX_NORETURN void base_no_memory(void);

/* `f` is called before that; it may do what a signal handler may. */
ABX_FN void base_at_no_memory(void (*f)(void));

/* The exit status then: where 1 would be taken for somebody else's. */
ABX_FN void base_fail_with(int status);

#endif
