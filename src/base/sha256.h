/* sha256.h - SHA-256 (FIPS 180-4), of bytes that come in pieces.
 *
 *     Sha256 h = sha256_make();
 *     sha256_add(&h, piece); ...
 *     sha256_end(&h, digest);
 *
 * For telling whether bytes are the same; not written to hide secrets from
 * somebody who measures its time.
 */
#ifndef ABX_SHA256_H
#define ABX_SHA256_H

#include "base/base.h"

enum { SHA256_SIZE = 32, SHA256_BLOCK = 64 };

typedef struct Sha256 {
    uint32_t      h[8];
    uint64_t      n;                    /* bytes so far */
    unsigned char block[SHA256_BLOCK];  /* the n % 64 bytes that do not fill a block yet */
} Sha256;

ABX_FN Sha256 sha256_make(void);
ABX_FN void   sha256_add(Sha256 *s, Str bytes);
ABX_FN void   sha256_end(Sha256 *s, unsigned char out[static SHA256_SIZE]);    /* s is used up */

#endif
