/* sha1.h - SHA-1 (FIPS 180-4), of bytes that come in pieces.
 *
 *     Sha1 h = sha1_make();
 *     sha1_add(&h, piece); ...
 *     sha1_end(&h, digest);
 *
 * For the ids of git's objects alone: who wants to can make two contents with
 * one SHA-1, so what it proves is as strong as that.
 */
#ifndef ABX_SHA1_H
#define ABX_SHA1_H

#include "base/base.h"

enum { SHA1_SIZE = 20, SHA1_BLOCK = 64 };

typedef struct Sha1 {
    uint32_t      h[5];
    uint64_t      n;                    /* bytes so far */
    unsigned char block[SHA1_BLOCK];    /* the n % 64 bytes that do not fill a block yet */
} Sha1;

ABX_FN Sha1 sha1_make(void);
ABX_FN void sha1_add(Sha1 *s, Str bytes);
ABX_FN void sha1_end(Sha1 *s, unsigned char out[static SHA1_SIZE]);    /* s is used up */

#endif
