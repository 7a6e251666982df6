/* sort.c - qsort() and qsort_r() in place of musl's, 2 KB smaller: by a heap, so what
 * compares as equal comes in any order, and no input makes it slow.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef int SortOrder(const void *, const void *, void *);

static void sort__swap(char *a, char *b, size_t width)
{
    char   kept[64];
    size_t n;

    for (; width; width -= n, a += n, b += n) {
        n = width < sizeof kept ? width : sizeof kept;
        memcpy(kept, a, n);
        memcpy(a, b, n);
        memcpy(b, kept, n);
    }
}

/* The item at `at` goes down until neither of the two below it is larger. */
static void sort__sift(char *base, size_t at, size_t count, size_t width, SortOrder *order, void *with)
{
    for (size_t below; (below = 2 * at + 1) < count; at = below) {
        char *child = base + below * width;
        if (below + 1 < count && order(child, child + width, with) < 0) {
            below++;
            child += width;
        }
        if (order(base + at * width, child, with) >= 0)
            return;
        sort__swap(base + at * width, child, width);
    }
}

void qsort_r(void *base, size_t count, size_t width, SortOrder *order, void *with)
{
    for (size_t at = count / 2; at > 0; at--)
        sort__sift(base, at - 1, count, width, order, with);
    for (; count > 1; count--) {
        sort__swap(base, (char *)base + (count - 1) * width, width);
        sort__sift(base, 0, count - 1, width, order, with);
    }
}

static int sort__plain(const void *a, const void *b, void *with)
{
    return (*(int (**)(const void *, const void *))with)(a, b);
}

void qsort(void *base, size_t count, size_t width, int (*order)(const void *, const void *))
{
    qsort_r(base, count, width, sort__plain, &order);
}
