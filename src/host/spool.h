/* spool.h - bytes that are kept until they are read again: in memory while they
 * are few, then in a temporary file that has no name.
 *
 *     Spool s = spool_make(memory, "/tmp");
 *     spool_add(&s, piece, err); ...
 *     spool_get(&s, at, p, n, err);
 *     spool_free(&s);
 *
 * Memory: at most `memory` bytes.
 */
#ifndef ABX_SPOOL_H
#define ABX_SPOOL_H

#include "base/buf.h"
#include "base/err.h"

typedef struct Spool {
    Buf         memory;         /* what is not in the file */
    const char *folder;         /* of the file: the caller's */
    int         fd;             /* -1: there is none */
    uint64_t    n;
} Spool;

/* A file that is gone when it is closed, however this process ends; -1: errno. */
ABX_FN int spool_open(const char *folder) ABX_CHECK;

ABX_FN Spool spool_make(size_t memory, const char *folder);
ABX_FN void  spool_free(Spool *s);

/* False: ERR_SYSTEM, E8010, with the folder's name: no room there, as a rule.
 * spool_get() is for bytes that are there. */
ABX_FN bool spool_add(Spool *s, Str bytes, Err *err) ABX_CHECK;
ABX_FN bool spool_get(Spool *s, uint64_t at, char *p, size_t n, Err *err) ABX_CHECK;

#endif
