/* listing.h - the hash of each file of a tree, as text.
 *
 * A receipt has one digest for all files; this says which file a difference is
 * in. A line for each, in byte order of the paths:
 *
 *     64 hexadecimal digits, two blanks, "x" or "-", a blank, the path, NUL, LF
 *
 * (a path may hold an LF, and no NUL). A listing is as good as the digest that
 * it is compared with: listing_read() computes it anew.
 *
 * Memory: the arena's.
 */
#ifndef ABX_LISTING_H
#define ABX_LISTING_H

#include "base/buf.h"
#include "host/tree.h"

typedef struct ListingFile { Str path; bool executable; unsigned char sha256[SHA256_SIZE]; } ListingFile;

typedef struct Listing {
    ListingFile *v;             /* room for LIMIT_TREE_FILES */
    size_t       n;
    Arena       *a;
} Listing;

ABX_FN Listing listing_make(Arena *a);

/* A TreeSeen over a Listing. */
ABX_FN void listing_seen(void *listing, Str path, bool executable, const unsigned char sha256[static SHA256_SIZE]);

/* Of a sealed tree. */
ABX_FN void listing_write(const Tree *t, Buf *to);

/* False: it is malformed, or does not have this digest. */
ABX_FN bool listing_read(Str text, Str digest, Arena *a, Listing *out) ABX_CHECK;

typedef enum ListingDiffers { LISTING_CHANGED, LISTING_ADDED, LISTING_MISSING } ListingDiffers;
typedef struct ListingDiff { Str path; ListingDiffers how; } ListingDiff;

/* In byte order of the paths. */
ABX_FN const ListingDiff *listing_compare(const Listing *was, const Listing *is, Arena *a, size_t *n);

#endif
